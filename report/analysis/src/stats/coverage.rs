//! The time that intervals cover, each moment once.
//!
//! Intervals come in any order, but from some moment on none begins or ends in the past except at times that are known: where spans that are
//! still open began, and where spans within them began and ended. So blocks between which no such time is need not be kept apart.

/// From a time to a later one, ns; the end is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

impl Interval {
    /// ns.
    pub(crate) const fn len(self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// A part of the time.
#[derive(Clone, Copy, Debug)]
struct Block {
    all: Interval,
    /// Time in it that is covered, ns: all of it, unless blocks were joined.
    covered: u64,
}

impl Block {
    /// Time of an interval that is covered already, ns.
    #[inline]
    fn shared(&self, interval: Interval) -> u64 {
        let common = Interval {
            begin: interval.begin.max(self.all.begin),
            end: interval.end.min(self.all.end),
        };
        // A block of which only a part is common is covered as a whole.
        common.len().min(self.covered)
    }
}

/// The time that intervals cover.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    /// In the order of time; they do not overlap.
    blocks: Vec<Block>,
    time: u64,
}

impl Coverage {
    /// Adds an interval.
    #[inline]
    pub(crate) fn add(&mut self, interval: Interval) {
        if interval.begin >= interval.end {
            return;
        }
        // Most come after all others, or begin in the last block.
        match self.blocks.last_mut() {
            Some(last) if last.all.begin > interval.begin => self.add_earlier(interval),
            Some(last) if last.all.end > interval.begin => {
                let shared = last.shared(interval);
                last.covered += interval.len() - shared;
                last.all.end = last.all.end.max(interval.end);
                self.time += interval.len() - shared;
            }
            _ => {
                self.blocks.push(Block {
                    all: interval,
                    covered: interval.len(),
                });
                self.time += interval.len();
            }
        }
    }

    /// Adds an interval that begins before the last block.
    fn add_earlier(&mut self, interval: Interval) {
        let Interval { begin, end } = interval;
        let first = self.blocks.partition_point(|block| block.all.end <= begin);
        let rest = self.blocks.get(first..).unwrap_or_default();
        let overlapping = rest.iter().take_while(|block| block.all.begin < end);
        let mut all = interval;
        let (mut covered, mut shared, mut count) = (interval.len(), 0, 0);
        for block in overlapping {
            let common = block.shared(interval);
            shared += common;
            covered += block.covered - common;
            all.begin = all.begin.min(block.all.begin);
            all.end = all.end.max(block.all.end);
            count += 1;
        }
        let block = Block { all, covered };
        match count {
            0 => self.blocks.insert(first, block),
            _ => {
                self.blocks.drain(first + 1..first + count);
                if let Some(known) = self.blocks.get_mut(first) {
                    *known = block;
                }
            }
        }
        self.time += interval.len() - shared;
    }

    /// Adds what another one covers, whose blocks were not joined.
    pub(crate) fn add_all(&mut self, other: &Self) {
        other.blocks.iter().for_each(|block| self.add(block.all));
    }

    /// Covered time, ns.
    pub(crate) const fn time(&self) -> u64 {
        self.time
    }

    /// Number of parts that are kept.
    pub(crate) fn parts(&self) -> usize {
        self.blocks.len()
    }

    /// Joins the blocks between which no interval can begin or end any more, given all times in the past where one can, in ascending order.
    pub(crate) fn join(&mut self, times: &[u64]) {
        let mut after = 0;
        self.blocks.dedup_by(|next, block| {
            while times
                .get(after)
                .is_some_and(|time| *time <= block.all.begin)
            {
                after += 1;
            }
            if times.get(after).is_some_and(|time| *time < next.all.end) {
                return false;
            }
            block.all.end = next.all.end;
            block.covered += next.covered;
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: &mut u64, below: u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed % below
    }

    /// Of spans that end in the order of time, as a list of moments has it, with blocks that are joined now and then.
    #[test]
    fn each_moment_counts_once() {
        for start in 1..200 {
            let mut seed = start * 0x9e37_79b9;
            let mut coverage = Coverage::default();
            let mut moments = [false; 1000];
            let mut open: Vec<u64> = Vec::new();
            for now in 0..1000_u64 {
                match random(&mut seed, 4) {
                    0 if open.len() < 6 => open.push(now),
                    1 if !open.is_empty() => {
                        let at = random(&mut seed, open.len() as u64) as usize;
                        let begin = open.remove(at);
                        if random(&mut seed, 3) > 0 {
                            coverage.add(Interval { begin, end: now });
                            moments[begin as usize..now as usize].fill(true);
                        }
                    }
                    2 if random(&mut seed, 8) == 0 => {
                        coverage.join(&open);
                        assert!(coverage.parts() <= 2 * open.len() + 1, "{coverage:?}");
                    }
                    _ => {}
                }
                let covered = moments.iter().filter(|moment| **moment).count() as u64;
                assert_eq!(coverage.time(), covered, "{start} at {now}");
            }
        }
    }

    /// Of what is found piece by piece, as windows find it.
    #[test]
    fn pieces_cover_what_the_whole_does() {
        for start in 1..200 {
            let mut seed = start * 0x9e37_79b9;
            let mut intervals = Vec::new();
            for _ in 0..300 {
                let begin = random(&mut seed, 1000);
                let end = begin + random(&mut seed, 12);
                intervals.push(Interval { begin, end });
            }
            let mut whole = Coverage::default();
            intervals.iter().for_each(|interval| whole.add(*interval));
            let mut joined = Coverage::default();
            for piece in intervals.chunks(1 + start as usize) {
                let mut coverage = Coverage::default();
                piece.iter().for_each(|interval| coverage.add(*interval));
                joined.add_all(&coverage);
            }
            let moments = (0..1100).filter(|moment| {
                let mut all = intervals.iter();
                all.any(|interval| (interval.begin..interval.end).contains(moment))
            });
            assert_eq!(whole.time(), moments.count() as u64, "{start}");
            assert_eq!(joined.time(), whole.time(), "{start}");
        }
    }

    #[test]
    fn what_is_empty_or_backwards_covers_nothing() {
        let mut coverage = Coverage::default();
        for (begin, end) in [(5, 5), (7, 3), (1, 4), (2, 3), (4, 6), (0, 9)] {
            coverage.add(Interval { begin, end });
        }
        assert_eq!(coverage.time(), 9);
        assert_eq!(coverage.parts(), 1);
    }
}
