//! Which of very many groups may be the greatest: bounds of their figures, in fixed memory, whatever order they come in.
//!
//! What a state may hold is bounded: 262,144 groups of `--sort`, 16,384 with `--value` and of spans, 1024 series of
//! `--rate` (fewer in many intervals), 4096 strings of an argument. If there are more, the file is read again, twice:
//!
//! * The second pass adds up the figure that groups are sorted by in a million buckets, by a hash of what the group's
//!   key says. No group's figure is greater than its bucket's.
//! * The third pass counts the groups of the greatest buckets one by one, and all others together. Of spans that are grouped by what only
//!   their ends say, a pass before it finds the begins and ends of these groups, so that strings of others need not be kept.
//!
//! If the last group shown has less than the greatest bucket that was left out, the report says so (`doubtful`): a
//! group that is not shown may come before it. Hashes and sums do not depend on the order of samples, so the answer is
//! the same with any number of threads.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use foldhash::quality::FixedState;

/// Buckets, if nothing else is said; groups of one bucket share a bound.
const BUCKETS: usize = 1 << 20;

/// How figures of one group make its figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// Their sum.
    Sum,
    /// The greatest.
    Max,
}

/// Bounds of figures of groups.
#[derive(Debug)]
pub(crate) struct Sketch {
    combine: Combine,
    buckets: Vec<AtomicU64>,
}

/// Groups that may be the greatest.
#[derive(Debug)]
pub(crate) struct Chosen {
    buckets: Vec<bool>,
    /// No group that is not chosen has a greater figure.
    pub(crate) bound: u64,
}

/// A hash that is the same in every run and with any number of threads.
pub fn content_hash(of: impl Hash) -> u64 {
    FixedState::with_seed(0x7573_6474_7265_6363).hash_one(of)
}

const fn bucket(hash: u64, buckets: usize) -> usize {
    if buckets == 0 {
        return 0;
    }
    (hash % buckets as u64) as usize
}

impl Sketch {
    pub(crate) fn new(combine: Combine) -> Self {
        Self::one_of(1, combine)
    }

    /// One of so many, which together take no more memory than eight, or 32 KiB each.
    pub(crate) fn one_of(all: usize, combine: Combine) -> Self {
        let buckets = match all {
            0..=8 => BUCKETS,
            _ => (BUCKETS / all.div_ceil(8)).max(1 << 12),
        };
        Self {
            combine,
            buckets: (0..buckets).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Adds a figure of the group of this hash. What is 0 counts as 1: the group is there.
    pub(crate) fn add(&self, hash: u64, figure: u64) {
        let Some(bucket) = self.buckets.get(bucket(hash, self.buckets.len())) else {
            return;
        };
        let figure = figure.max(1);
        match self.combine {
            Combine::Max => {
                bucket.fetch_max(figure, Relaxed);
            }
            Combine::Sum => {
                let add = |sum: u64| Some(sum.saturating_add(figure));
                // Never fails: `add` always gives a sum.
                let _ = bucket.fetch_update(Relaxed, Relaxed, add);
            }
        }
    }

    /// About how many groups there are.
    pub(crate) fn groups(&self) -> f64 {
        let empty = |bucket: &&AtomicU64| bucket.load(Relaxed) == 0;
        self.estimate(self.buckets.iter().filter(empty).count())
    }

    /// So many groups leave so many buckets empty if they fall into them at random.
    fn estimate(&self, empty: usize) -> f64 {
        let buckets = self.buckets.len() as f64;
        -(empty.max(1) as f64 / buckets).ln() * buckets
    }

    /// The buckets with the greatest figures, in which there are about so many groups.
    pub(crate) fn choose(&self, groups: usize) -> Chosen {
        let figures = self.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let mut filled: Vec<(u64, usize)> = figures
            .enumerate()
            .filter(|(_, figure)| *figure > 0)
            .map(|(at, figure)| (figure, at))
            .collect();
        filled.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let all = self.estimate(self.buckets.len() - filled.len());
        let in_one = (all / filled.len().max(1) as f64).max(1.0);
        let wanted = ((groups as f64 / in_one) as usize).max(1);
        let mut buckets = vec![false; self.buckets.len()];
        for &(_, at) in filled.iter().take(wanted) {
            buckets[at] = true;
        }
        Chosen {
            buckets,
            bound: filled.get(wanted).map_or(0, |(figure, _)| *figure),
        }
    }
}

impl Chosen {
    /// Whether the group of this hash is among them.
    #[inline]
    pub(crate) fn has(&self, hash: u64) -> bool {
        self.buckets.get(bucket(hash, self.buckets.len())) == Some(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_are_chosen() {
        for combine in [Combine::Sum, Combine::Max] {
            let sketch = Sketch::new(combine);
            for group in 0..200_000_u64 {
                sketch.add(content_hash(group), 1 + group % 7);
            }
            for great in [13, 190_000_u64] {
                sketch.add(content_hash(great), 1_000_000 + great);
            }
            let chosen = sketch.choose(1000);
            assert!(
                [13, 190_000]
                    .map(content_hash)
                    .iter()
                    .all(|&hash| chosen.has(hash))
            );
            assert!((7..100).contains(&chosen.bound), "{}", chosen.bound);
            let kept = (0..200_000_u64).filter(|&group| chosen.has(content_hash(group)));
            assert!((500..8000).contains(&kept.count()));
        }
    }
}
