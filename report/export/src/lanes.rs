//! Which spans of a thread nest, so that they can be on one track of a timeline.

use foldhash::HashMap;

/// Spans of a track that are kept one by one.
const MAX_TOPS: usize = 1024;

/// A span on a track, ns.
#[derive(Clone, Copy, Debug)]
struct LaneSpan {
    begin: u64,
    end: u64,
}

/// The outermost spans of a track, one after the other in time. Of very many, the older ones are one span.
type Tops = Vec<LaneSpan>;

/// The tracks of threads.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    tracks: HashMap<i32, Tops>,
}

impl Lanes {
    /// Puts a span on the track of a thread if it nests with those that are there; they have ended before it. Two that begin at the same time do
    /// not nest, because readers that sort by time cannot see which is the outer one.
    pub(crate) fn nests(&mut self, tid: i32, begin: u64, end: u64) -> bool {
        let tops = self.tracks.entry(tid).or_default();
        let inner = match tops.last() {
            // Most spans come after all others.
            Some(last) if last.begin < begin => tops.len(),
            _ => tops.partition_point(|top| top.begin < begin),
        };
        let crosses = |top: &LaneSpan| top.end > begin;
        let before = inner.checked_sub(1).and_then(|last| tops.get(last));
        let same = tops.get(inner).filter(|top| top.begin == begin);
        if begin > end || before.is_some_and(crosses) || same.is_some_and(crosses) {
            return false;
        }
        if tops.last().is_some_and(|last| last.end > end) {
            return false;
        }
        tops.truncate(inner);
        tops.push(LaneSpan { begin, end });
        if tops.len() > MAX_TOPS {
            let old = tops.get(MAX_TOPS / 2).map_or(end, |top| top.end);
            tops.drain(1..=MAX_TOPS / 2);
            if let Some(first) = tops.first_mut() {
                first.end = old;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_cross_are_not_on_one_track() {
        let mut lanes = Lanes::default();
        assert!(lanes.nests(1, 10, 20));
        assert!(lanes.nests(1, 20, 30), "one after the other");
        assert!(!lanes.nests(1, 15, 35), "began in the first one");
        assert!(!lanes.nests(1, 10, 35), "which is the outer one?");
        assert!(lanes.nests(1, 5, 40), "around both");
        assert!(!lanes.nests(1, 30, 50));
        assert!(lanes.nests(2, 30, 50), "another thread");
        assert!(lanes.nests(1, 41, 41));
        assert!(lanes.nests(1, 41, 60), "after one that took no time");
    }

    #[test]
    fn of_very_many_the_older_ones_are_one() {
        let mut lanes = Lanes::default();
        for number in 1..10_000_u64 {
            assert!(lanes.nests(1, number * 10, number * 10 + 5));
        }
        assert!(lanes.tracks[&1].len() <= MAX_TOPS);
        assert!(!lanes.nests(1, 106, 200_000), "not known to nest");
        assert!(lanes.nests(1, 99_896, 200_000), "around few of them");
        assert!(lanes.nests(1, 10 - 1, 200_001), "around all");
    }
}
