//! A span of a trace.

use usdtrec_analysis::rows::row_sink::{SpanFate, SpanRow};
use usdtrec_analysis::spans::spent_time::SpentTime;
use usdtrec_format::{NoTimeParts, TimeParts};

use crate::rows::row_event::RowEvent;

/// A span.
#[derive(Clone, Copy, Debug)]
pub struct RowSpan<'r> {
    pub(crate) name: &'r str,
    pub(crate) row: &'r SpanRow<'r>,
    pub(crate) begin: RowEvent<'r>,
    pub(crate) end: Option<RowEvent<'r>>,
}

impl<'r> RowSpan<'r> {
    /// Its name, as `report --span` prints it: `postgresql:query`.
    #[must_use]
    pub const fn name(&self) -> &'r str {
        self.name
    }

    /// Whether it ended.
    #[must_use]
    pub const fn fate(&self) -> SpanFate {
        self.row.fate
    }

    /// The event that begins it, with its arguments, thread and stack.
    #[must_use]
    pub const fn begin(&self) -> RowEvent<'r> {
        self.begin
    }

    /// The event that ends it; `None` if it did not end.
    #[must_use]
    pub const fn end(&self) -> Option<RowEvent<'r>> {
        self.end
    }

    /// Length, ns; `None` if it did not end.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        Some(self.row.end?.duration)
    }

    /// Time in it and in no span of the same name within it, ns; `None` if it did not end.
    #[must_use]
    pub fn self_ns(&self) -> Option<u64> {
        Some(self.row.end?.own)
    }

    /// What its time was spent on; else why that is not known.
    ///
    /// # Errors
    /// [`NoTimeParts`].
    pub fn parts(&self) -> Result<TimeParts, NoTimeParts> {
        self.row.parts()
    }

    /// The same by the names of columns, and of the time in no span of the same name within it (`self_blocked_ns`), ns; `None` for what is not known.
    pub fn named_parts(&self) -> impl Iterator<Item = (&'static str, Option<u64>)> + use<> {
        SpentTime::named(self.row.end.map(|end| end.spent))
    }
}
