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

/// Maximum number of pauses of an event of a stream that are kept.
const MAX_STREAM_TIMES: usize = 1 << 14;

/// When the probes of a trace were detached.
#[derive(Debug, Default)]
pub struct Pauses {
    /// Of each event, by its index; empty if no probe was ever detached.
    of_event: Vec<PausedTimes>,
    are_cut: bool,
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
        let of_event = of_event.into_iter().map(PausedTimes::new);
        Self {
            of_event: if is_empty {
                Vec::new()
            } else {
                of_event.collect()
            },
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
        for event in events.into_iter().map(|event| event as usize) {
            if self.of_event.len() <= event {
                self.of_event.resize(event + 1, PausedTimes::default());
            }
            if let Some(times) = self.of_event.get_mut(event) {
                times.learn(time, MAX_STREAM_TIMES);
            }
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
