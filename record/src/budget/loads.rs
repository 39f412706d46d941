//! The shares of threads' time that the hits of a unit take while it is attached.

use std::collections::HashMap;

/// Time constant of the average, ns: a short burst of hits does not decide, unless it would take the budget of a third of a second.
const TIME_CONSTANT: f64 = 350e6;
/// Maximum number of threads of a unit. Of more, those without hits are forgotten, and others are not taken in.
pub(super) const MAX_THREADS: usize = 1 << 14;
/// A share below which a thread without hits is forgotten.
const FORGOTTEN: f64 = 1e-5;

/// Hits of a unit in a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedHits<'a> {
    /// Number of hits of each thread.
    pub(crate) threads: &'a HashMap<i32, u64>,
    /// The time, ns.
    pub(super) ns: u64,
    /// What a hit takes, ns, with the hits that were lost.
    pub(super) hit_ns: f64,
}

/// Shares of threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads {
    threads: HashMap<i32, Load>,
    /// Hits a second, of all threads.
    pub(super) rate: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Load {
    average: f64,
    last: f64,
}

impl CountedHits<'_> {
    fn share(&self, hits: u64) -> f64 {
        hits as f64 * self.hit_ns / self.ns.max(1) as f64
    }

    /// Weight of the share in the average.
    fn weight(&self) -> f64 {
        1.0 - (-(self.ns as f64) / TIME_CONSTANT).exp()
    }

    fn rate(&self) -> f64 {
        self.threads.values().sum::<u64>() as f64 * 1e9 / self.ns.max(1) as f64
    }
}

impl Loads {
    /// Takes what was counted since the last time.
    pub(super) fn add(&mut self, counted: CountedHits<'_>) {
        self.rate = counted.rate();
        let weight = counted.weight();
        for (tid, load) in &mut self.threads {
            let hits = counted.threads.get(tid).copied().unwrap_or(0);
            load.last = counted.share(hits);
            load.average += (load.last - load.average) * weight;
        }
        self.threads
            .retain(|_, load| load.last > 0.0 || load.average >= FORGOTTEN);
        for (tid, hits) in counted.threads {
            if self.threads.len() < MAX_THREADS || self.threads.contains_key(tid) {
                let last = counted.share(*hits);
                let new = Load {
                    average: last * weight,
                    last,
                };
                self.threads.entry(*tid).or_insert(new);
            }
        }
    }

    /// Takes what was counted in place of all before.
    pub(super) fn replace(&mut self, counted: CountedHits<'_>) {
        self.rate = counted.rate();
        let threads = counted.threads.iter().map(|(tid, hits)| {
            let last = counted.share(*hits);
            (
                *tid,
                Load {
                    average: last,
                    last,
                },
            )
        });
        self.threads = threads.collect();
    }

    /// From now on what was counted last holds where it is more than the average.
    pub(super) fn raise(&mut self) {
        for load in self.threads.values_mut() {
            load.average = load.average.max(load.last);
        }
    }

    /// The average share of each thread.
    pub(super) fn shares(&self) -> impl Iterator<Item = (i32, f64)> {
        self.threads.iter().map(|(tid, load)| (*tid, load.average))
    }

    /// The average share of a thread.
    pub(super) fn share(&self, tid: i32) -> f64 {
        self.threads.get(&tid).map_or(0.0, |load| load.average)
    }

    /// The thread with the largest share, and that share.
    pub(super) fn largest(&self) -> Option<(i32, f64)> {
        self.shares()
            .max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)))
    }
}
