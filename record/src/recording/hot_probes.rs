//! Finds a probe that takes much of a thread's time, where there is no budget.

use std::collections::HashMap;
use std::sync::Arc;

use usdtrec_attach::engine::{AttachMethod, Attached, UsedEngine};
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_kernel::trace_clock;

use crate::budget::budgeting::thread_name;
use crate::budget::stage::HotThreads;
use crate::recording::outcome::{HotProbe, ThreadShare};
use crate::recording::session::Options;

const MS: u64 = 1_000_000;
/// Hits are counted for so long, ns, and if they are many, for so long again.
const GLANCE: u64 = 100 * MS;
const COUNT_TIME: u64 = 1000 * MS;
/// Time between.
const REST: u64 = 1000 * MS;
/// Hits of a thread a second that may be too much for it: those of a probe that takes it 5 µs each.
const HOT_HITS_PER_SECOND: u64 = 10_000;
/// The part of a thread's time that is much.
const HOT_SHARE: f64 = 0.05;

/// What is known of hot probes.
#[derive(Debug)]
pub(super) struct HotProbes {
    state: State,
    /// Whether it was said that the costs of a hit are needed.
    is_asked: bool,
    /// The hot probe found since the last call.
    found: Option<HotProbe>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing is counted until then.
    Rest { until: u64 },
    /// Hits are counted since then, for a time.
    Counting { since: u64, time: u64 },
    /// One was found, or it cannot be known.
    Over,
}

impl HotProbes {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            state: match options.hit_costs {
                Some(_) => State::Rest { until: 0 },
                None => State::Over,
            },
            is_asked: false,
            found: None,
        }
    }

    /// Whether what a hit costs has to be measured.
    pub(super) const fn needs_costs(&self) -> bool {
        self.is_asked
    }

    pub(super) fn take_found(&mut self) -> Option<HotProbe> {
        self.found.take()
    }

    /// After a pass over all rings.
    pub(super) fn look(&mut self, stage: &mut HotThreads, attached: &Attached, options: &Options) {
        let now = trace_clock::now();
        let (since, time) = match self.state {
            State::Over => return,
            State::Rest { until } => {
                if now >= until {
                    self.begin(stage, now, GLANCE);
                }
                return;
            }
            State::Counting { since, time } => (since, time),
        };
        let ns = now.saturating_sub(since);
        if ns < time {
            return;
        }
        let counted = std::mem::take(stage);
        let many = (HOT_HITS_PER_SECOND as f64 * ns as f64 / 1e9) as u64;
        let is_hot = counted.hits().any(|(_, hits)| hits >= many);
        if !is_hot {
            return self.rest(now);
        }
        if time == GLANCE {
            return self.begin(stage, now, COUNT_TIME);
        }
        self.is_asked = true;
        match options.hit_costs.as_ref().and_then(|costs| costs.get()) {
            None => self.rest(now),
            // They cannot be measured.
            Some(None) => self.state = State::Over,
            Some(Some(costs)) => {
                let hits = CountedHits {
                    threads: &counted,
                    ns,
                };
                self.found = hits.hottest(attached, |probe| {
                    costs.of_probe(probe, options.engine.graph)
                });
                match self.found {
                    Some(_) => self.state = State::Over,
                    None => self.rest(now),
                }
            }
        }
    }

    fn begin(&mut self, stage: &mut HotThreads, now: u64, time: u64) {
        stage.begin();
        self.state = State::Counting { since: now, time };
    }

    const fn rest(&mut self, now: u64) {
        self.state = State::Rest { until: now + REST };
    }
}

/// What was counted in a time.
struct CountedHits<'c> {
    threads: &'c HotThreads,
    ns: u64,
}

impl CountedHits<'_> {
    /// The event that takes the largest share of a thread's time, if that is more than [`HOT_SHARE`]. `cost` is that of a hit, ns.
    fn hottest(
        &self,
        attached: &Attached,
        cost: impl Fn(&PlannedProbe) -> u64,
    ) -> Option<HotProbe> {
        let probes = attached.probes.iter().zip(&attached.attrs);
        let of_id: HashMap<u64, &Arc<PlannedProbe>> = probes
            .flat_map(|(probe, attr)| attr.site_ids.iter().flatten().map(move |id| (*id, probe)))
            .collect();
        let mut sums: HashMap<(String, i32), (u64, u64)> = HashMap::new();
        for ((tid, id), hits) in self.threads.hits() {
            if let Some(probe) = of_id.get(&id) {
                let (all, taken) = sums.entry((probe.event(), tid)).or_default();
                *all += hits;
                *taken += hits * cost(probe);
            }
        }
        let share = |taken: u64| taken as f64 / self.ns.max(1) as f64;
        let hot = sums
            .into_iter()
            .filter(|(_, (_, taken))| share(*taken) > HOT_SHARE);
        let ((event, thread), (hits, taken)) =
            hot.max_by(|(one_key, one), (other_key, other)| {
                one.1.cmp(&other.1).then_with(|| other_key.cmp(one_key))
            })?;
        Some(HotProbe {
            event,
            takes: ThreadShare {
                rate: hits as f64 * 1e9 / self.ns.max(1) as f64,
                thread,
                thread_name: thread_name(thread),
                share: share(taken),
            },
            can_pause: matches!(attached.engine.used(), UsedEngine::Bpf(AttachMethod::Multi)),
        })
    }
}
