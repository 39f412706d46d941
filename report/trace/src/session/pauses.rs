//! When the probes of a trace were detached, so that they did not cost more than their budget.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_format::trace::{Pause, TimeRange};

use crate::process::pause_log::PauseLog;
use crate::session::ids::SampleIds;
use crate::session::paused_times::PausedTimes;

/// Maximum number of pauses of all events together that are kept. A day has some 100,000.
const MAX_TIMES: usize = 1 << 22;

/// Maximum numbers of pauses of a stream that are kept one by one. Each round with a pause copies them.
const MAX_OF_STREAM: MostKept = MostKept {
    of_event: 1 << 12,
    together: 1 << 18,
};

/// Number of pauses for each event of a stream that are kept one by one, even if those of all events are too many. With so many, adding up the older halves
/// makes room for at least half as many again, although the latest one of each event stays.
const MIN_KEPT: usize = 4;

/// When the probes of a trace were detached.
#[derive(Debug, Default)]
pub struct Pauses {
    /// Of each event, by its index; empty if no probe was ever detached.
    of_event: Vec<PausedTimes>,
    are_cut: bool,
    /// Number of times of all events that are kept one by one.
    kept: usize,
}

/// Maximum numbers of pauses that are kept one by one; of more, the older ones are added up.
#[derive(Clone, Copy, Debug)]
struct MostKept {
    of_event: usize,
    /// Of all events, if they are not very many.
    together: usize,
}

impl Pauses {
    /// The pauses of a log. Ids that no event has are ignored.
    pub(crate) fn new(log: PauseLog, ids: &SampleIds, events: usize) -> Self {
        let mut of_event: Vec<Vec<TimeRange>> = Vec::new();
        let mut of_ids: HashMap<Arc<[u64]>, BTreeSet<u32>> = HashMap::default();
        let mut room = MAX_TIMES;
        let mut are_cut = false;
        for pause in log.into_pauses() {
            let paused = of_ids.entry(pause.ids).or_insert_with_key(|all| {
                let targets = all.iter().filter_map(|&id| ids.get(id));
                targets.map(|target| target.event).collect()
            });
            if paused.len() > room {
                are_cut = true;
                break;
            }
            room -= paused.len();
            of_event.resize(events, Vec::new());
            for &event in &*paused {
                if let Some(times) = of_event.get_mut(event as usize) {
                    times.push(pause.time);
                }
            }
        }
        let is_empty = of_event.iter().all(Vec::is_empty);
        let of_event = of_event.into_iter().filter(|_| !is_empty);
        let of_event: Vec<PausedTimes> = of_event.map(PausedTimes::new).collect();
        Self {
            kept: of_event.iter().map(PausedTimes::len).sum(),
            of_event,
            are_cut,
        }
    }

    /// Adds what the next record of a stream says. Ids that no event has are ignored.
    pub(crate) fn learn(&mut self, pause: &Pause, ids: &SampleIds) {
        let targets = pause.ids.iter().filter_map(|&id| ids.get(id));
        let events: BTreeSet<u32> = targets.map(|target| target.event).collect();
        let time = TimeRange::new(pause.from_ns, pause.to_ns.unwrap_or(u64::MAX));
        if time.first >= time.last {
            return;
        }
        for event in events {
            self.learn_of(event as usize, time, MAX_OF_STREAM);
        }
    }

    /// Adds a time of an event of a stream.
    fn learn_of(&mut self, event: usize, time: TimeRange, most: MostKept) {
        if self.of_event.len() <= event {
            self.of_event.resize(event + 1, PausedTimes::default());
        }
        let Some(times) = self.of_event.get_mut(event) else {
            return;
        };
        self.kept -= times.len();
        times.learn(time, most.of_event);
        self.kept += times.len();
        if self.kept > most.together.max(MIN_KEPT * self.of_event.len()) {
            self.of_event.iter_mut().for_each(PausedTimes::forget_older);
            self.kept = self.of_event.iter().map(PausedTimes::len).sum();
        }
    }

    /// Whether no probe was ever detached.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.of_event.is_empty()
    }

    /// Whether some were left out, because there are too many.
    pub(crate) const fn are_cut(&self) -> bool {
        self.are_cut
    }

    /// When the probe of an event was detached; `None` if no probe ever was.
    pub fn of_event(&self, event: usize) -> Option<&PausedTimes> {
        self.of_event.get(event)
    }

    /// When at least one of the probes of several events was detached.
    pub fn of_any(&self, events: &[usize]) -> PausedTimes {
        PausedTimes::of_any(events.iter().filter_map(|&event| self.of_event(event)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events with many pauses and with few: all of them have their latest one, and together they keep no more than the maximum.
    #[test]
    fn a_stream_keeps_a_bounded_number_of_pauses_of_all_events() {
        const EVENTS: u64 = 100;
        let most = MostKept {
            of_event: 50,
            together: 400,
        };
        let mut pauses = Pauses::default();
        for at in 0..10_000_u64 {
            let event = if at % 3 == 0 { at % EVENTS } else { at % 7 };
            let time = TimeRange::new(at * 10, at * 10 + 4);
            pauses.learn_of(event as usize, time, most);
            let kept = pauses.of_event.iter().map(PausedTimes::len);
            assert_eq!(pauses.kept, kept.sum::<usize>());
            assert!(pauses.kept <= most.together);
            let latest = pauses.of_event(event as usize).unwrap();
            assert_eq!(latest.between(time.first, time.last), Some(time));
        }
        let parts = pauses.of_event.iter();
        let parts = parts.map(|times| times.within(TimeRange::ALL));
        let all = parts.fold((0, 0), |(pauses, time), part| {
            (pauses + part.pauses, time + part.time)
        });
        assert_eq!(all, (10_000, 40_000));
    }

    /// More events than pauses that are kept: the latest one of each is.
    #[test]
    fn the_latest_pause_of_each_event_of_a_stream_is_kept() {
        let most = MostKept {
            of_event: 50,
            together: 10,
        };
        let mut pauses = Pauses::default();
        for at in 0..1000_u64 {
            let time = TimeRange::new(at * 10, at * 10 + 4);
            pauses.learn_of((at % 100) as usize, time, most);
        }
        assert!(pauses.kept <= MIN_KEPT * 100, "{}", pauses.kept);
        let kept = pauses.of_event.iter().map(PausedTimes::len);
        assert!(kept.min() >= Some(1));
    }
}
