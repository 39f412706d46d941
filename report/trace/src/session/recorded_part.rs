//! How much of a time probes were recorded in.

use usdtrec_format::trace::TimeRange;

use crate::events::selection::SampleFilter;
use crate::rows::Rows;
use crate::session::TraceSession;
use crate::session::paused_times::{PausedPart, PausedTimes};

/// How much of a time probes were recorded in that were detached in the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPart {
    /// Number of pauses.
    pub pauses: u64,
    /// The time, ns.
    pub time: u64,
    /// What of it is in no pause, ns.
    pub recorded: u64,
    /// Whether all of them were recorded at the same times; else it is not known what their hits stand for.
    pub is_same: bool,
}

/// A probe that was detached for a part of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PausedProbe {
    /// Its event.
    pub event: String,
    /// When it was recorded.
    pub part: RecordedPart,
}

/// When the probes of some events were detached.
#[derive(Clone, Debug)]
pub struct PausedEvents {
    paused: PausedTimes,
    /// Whether all of them were at the same times.
    is_same: bool,
}

impl PausedEvents {
    /// `None` if none of them was ever detached.
    pub fn new(session: &TraceSession, events: &[usize]) -> Option<Self> {
        let pauses = session.pauses();
        if pauses.is_empty() {
            return None;
        }
        let paused = pauses.of_any(events);
        if paused.is_empty() {
            return None;
        }
        let mut events = events.iter();
        Some(Self {
            is_same: events.all(|&event| pauses.of_event(event) == Some(&paused)),
            paused,
        })
    }

    /// The part of a time in which they were recorded.
    #[must_use]
    pub fn part_of(&self, session: &TraceSession, time: TimeRange) -> RecordedPart {
        let length = time.last.saturating_sub(time.first);
        let all = length.saturating_sub(session.files().unrecorded(time));
        let part: PausedPart = self.paused.within(time);
        RecordedPart {
            pauses: part.pauses,
            time: all,
            recorded: all.saturating_sub(part.time),
            is_same: self.is_same,
        }
    }
}

impl RecordedPart {
    /// The part of a time in which the probes of events were recorded; `None` if none of them was ever detached.
    pub fn new(session: &TraceSession, events: &[usize], time: TimeRange) -> Option<Self> {
        Some(PausedEvents::new(session, events)?.part_of(session, time))
    }

    /// The same of the recording's time that is selected.
    pub fn selected(
        session: &TraceSession,
        filter: &SampleFilter,
        events: &[usize],
    ) -> Option<Self> {
        let recorded = session.trace().recorded().or_else(|| session.time())?;
        let asked = filter.time();
        let time = TimeRange::new(
            recorded.first.max(asked.first),
            recorded.last.min(asked.last),
        );
        Self::new(session, events, time)
    }

    /// Whether it is known what one that was recorded stands for.
    const fn is_known(&self) -> bool {
        self.is_same && self.recorded > 0
    }

    /// How many hits or spans one that was recorded stands for; `None` if it is not known.
    #[must_use]
    pub fn factor(&self) -> Option<f64> {
        self.is_known()
            .then(|| self.time as f64 / self.recorded as f64)
    }

    /// About how many there were, if so many were recorded; `None` if it is not known.
    #[must_use]
    pub fn estimate(&self, recorded: u64) -> Option<u64> {
        if !self.is_known() {
            return None;
        }
        let (time, part) = (u128::from(self.time), u128::from(self.recorded));
        let estimate = (u128::from(recorded) * time + part / 2) / part;
        Some(u64::try_from(estimate).unwrap_or(u64::MAX))
    }
}

impl PausedProbe {
    /// The selected probes that were detached within the selected time.
    pub fn selected(session: &TraceSession, filter: &SampleFilter) -> Vec<Self> {
        if session.pauses().is_empty() {
            return Vec::new();
        }
        let rows = Rows::new(session, |event| filter.event(event));
        let paused = rows.rows.into_iter().filter_map(|row| {
            let part = RecordedPart::selected(session, filter, &row.events)?;
            (part.pauses > 0).then_some(Self {
                event: row.name,
                part,
            })
        });
        paused.collect()
    }
}
