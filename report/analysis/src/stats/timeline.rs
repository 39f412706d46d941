//! A span of time divided into intervals of one length.

use usdtrec_format::trace::TimeRange;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

/// Most intervals.
const MAX_INTERVALS: u64 = 1 << 16;

/// The time of a trace, or of the part that is selected, in intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// First time, ns.
    pub from: u64,
    /// Length of an interval, ns; not 0.
    pub interval: u64,
    /// Number of intervals.
    pub intervals: usize,
}

impl Timeline {
    /// In so many intervals.
    pub(crate) fn divided(session: &TraceSession, filter: &SampleFilter, intervals: usize) -> Self {
        let TimeRange { first, last } = selected(session, filter);
        let length = (last - first).saturating_add(1);
        Self {
            from: first,
            interval: length.div_ceil(intervals.max(1) as u64).max(1),
            intervals: intervals.max(1),
        }
    }

    /// In intervals of this length, ns.
    ///
    /// # Errors
    /// If that makes too many.
    pub(crate) fn stepped(
        session: &TraceSession,
        filter: &SampleFilter,
        interval: u64,
    ) -> Result<Self, ReportError> {
        let TimeRange { first, last } = selected(session, filter);
        let interval = interval.max(1);
        let intervals = ((last - first) / interval).saturating_add(1);
        if intervals > MAX_INTERVALS {
            return Err(QuestionError::TooManyIntervals {
                intervals,
                most: MAX_INTERVALS,
            }
            .into());
        }
        Ok(Self {
            from: first,
            interval,
            intervals: intervals as usize,
        })
    }

    /// When an interval begins, ns. Times in damaged files may be any.
    pub const fn begin(&self, interval: u64) -> u64 {
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

/// The selected part of the trace's time; at least one moment of it.
fn selected(session: &TraceSession, filter: &SampleFilter) -> TimeRange {
    let trace = session.time().unwrap_or_default();
    let asked = filter.time();
    let first = trace.first.max(asked.first).min(trace.last);
    TimeRange {
        first,
        last: trace.last.min(asked.last).max(first),
    }
}
