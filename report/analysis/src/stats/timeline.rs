//! A span of time divided into intervals of one length.

use usdtrec_format::trace::TimeRange;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::recorded_part::PausedEvents;

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
    /// End of the time, ns.
    pub(crate) until: u64,
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
            until: first.saturating_add(length),
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
            until: last.saturating_add(1),
        })
    }

    /// When an interval begins, ns. Times in damaged files may be any.
    pub const fn begin(&self, interval: u64) -> u64 {
        let since = self.interval.saturating_mul(interval);
        self.from.saturating_add(since)
    }

    /// The time of an interval that is selected; the last one may be shorter.
    pub(crate) fn part(&self, interval: u64) -> TimeRange {
        TimeRange {
            first: self.begin(interval),
            last: self.begin(interval.saturating_add(1)).min(self.until),
        }
    }

    /// For how long events were recorded in each interval, ns. Pauses count where all of them had the same ones.
    pub(crate) fn recorded(&self, session: &TraceSession, events: &[usize]) -> Vec<u64> {
        let paused = PausedEvents::new(session, events);
        let part = |interval: u64| {
            let time = self.part(interval);
            let all = time.last.saturating_sub(time.first);
            match paused.as_ref().map(|paused| paused.part_of(session, time)) {
                Some(part) if part.is_same => part.recorded,
                _ => all.saturating_sub(session.files().unrecorded(time)),
            }
        };
        (0..self.intervals as u64).map(part).collect()
    }

    /// The interval of a time; `None` before the first one.
    #[inline]
    pub(crate) fn place_from_begin(&self, time: u64) -> Option<usize> {
        (time >= self.from).then(|| self.place(time))
    }

    /// The interval of a time that is selected.
    #[inline]
    pub(crate) fn place(&self, time: u64) -> usize {
        let place = time.saturating_sub(self.from) / self.interval;
        (place as usize).min(self.intervals - 1)
    }
}

/// The selected part of the time in which was recorded; where the trace does not say that, of the time of its events. At least one moment.
fn selected(session: &TraceSession, filter: &SampleFilter) -> TimeRange {
    let (recorded, events) = (session.trace().recorded(), session.time());
    let both = recorded.map(|recorded| events.map_or(recorded, |events| recorded.joined(events)));
    let trace = both.or(events).unwrap_or_default();
    let asked = filter.time();
    let first = trace.first.max(asked.first).min(trace.last);
    TimeRange {
        first,
        last: trace.last.min(asked.last).max(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_is_in_no_interval() {
        let timeline = Timeline {
            from: 100,
            interval: 10,
            intervals: 2,
            until: 115,
        };
        let places = [0, 99, 100, 109, 110, 115, 999].map(|time| timeline.place_from_begin(time));
        let expected = [None, None, Some(0), Some(0), Some(1), Some(1), Some(1)];
        assert_eq!(places, expected);
    }
}
