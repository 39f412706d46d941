//! What the times of a line depend on, besides its own.

use usdtrec_trace::events::order::before::PreviousTimes;

use crate::script::times::TimesOfDay;

/// What the times of a line depend on, besides its own.
pub(crate) struct LineTimes<'a> {
    /// The lines before.
    pub(crate) before: PreviousTimes,
    /// `None` if no times of day are shown.
    pub(crate) of_day: Option<TimesOfDay<'a>>,
}
