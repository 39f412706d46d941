//! A span of time divided into intervals of one length.

use crate::error::ReportError;
use crate::events::selection::Filter;
use crate::trace::session::Session;

/// Most intervals.
const MOST: u64 = 1 << 16;

/// The time of a trace, or of the part that is asked for, in intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeline {
    /// First time, ns.
    pub(crate) from: u64,
    /// Length of an interval, ns; not 0.
    pub(crate) interval: u64,
    pub(crate) intervals: usize,
}

impl Timeline {
    /// In so many intervals.
    pub(crate) fn divided(session: &Session, filter: &Filter, intervals: usize) -> Self {
        let (from, to) = ends(session, filter);
        let length = (to - from).saturating_add(1);
        Self {
            from,
            interval: length.div_ceil(intervals.max(1) as u64).max(1),
            intervals: intervals.max(1),
        }
    }

    /// In intervals of this length, ns.
    ///
    /// # Errors
    /// If that makes too many.
    pub(crate) fn stepped(
        session: &Session,
        filter: &Filter,
        interval: u64,
    ) -> Result<Self, ReportError> {
        let (from, to) = ends(session, filter);
        let interval = interval.max(1);
        let intervals = ((to - from) / interval).saturating_add(1);
        if intervals > MOST {
            return Err(ReportError::Ask(format!(
                "{intervals} intervals are more than {MOST}: choose a longer one, or a part of the trace with --time"
            )));
        }
        Ok(Self {
            from,
            interval,
            intervals: intervals as usize,
        })
    }

    /// When an interval begins, ns. Times in damaged files may be any.
    pub(crate) const fn begin(&self, interval: u64) -> u64 {
        let since = self.interval.saturating_mul(interval);
        self.from.saturating_add(since)
    }

    /// The interval of a time.
    #[inline]
    pub(crate) fn place(&self, time: u64) -> usize {
        let place = time.saturating_sub(self.from) / self.interval;
        (place as usize).min(self.intervals - 1)
    }
}

/// First and last time.
fn ends(session: &Session, filter: &Filter) -> (u64, u64) {
    let (first, last) = session.time().unwrap_or((0, 0));
    let (from, to) = filter.time();
    let from = first.max(from).min(last);
    (from, last.min(to).max(from))
}
