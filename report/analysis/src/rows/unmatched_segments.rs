//! The segments of a window that are matched across windows, one after the other.
//!
//! A pause ends what is open under a key, which is found at the next hit of the key. Segments are matched later, with their end or at the end of the window.
//! So that a sink gets the spans that a pause ended in an order that does not depend on the windows, it is looked for them at the first hit of each segment.

use std::iter::Peekable;
use std::vec::IntoIter;

use foldhash::HashMap;

use crate::rows::window_rows::BegunHit;
use crate::spans::matcher::{MatchKey, Segment};

/// Segments of a window in their order.
#[derive(Debug)]
pub(crate) struct UnmatchedSegments {
    segments: IntoIter<Segment<BegunHit>>,
    /// For each segment that a pause ended in the window, when the first hit of its key came after that, ns; empty if there are no looks.
    cuts: IntoIter<Option<u64>>,
    looks: Peekable<IntoIter<PauseLook>>,
}

/// The first hit of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PauseLook {
    /// ns.
    pub(crate) time: u64,
    pub(crate) key: MatchKey,
}

impl UnmatchedSegments {
    /// The segments of a window. With `looks`, segments that pauses ended are found before their ends are matched.
    pub(crate) fn new(segments: Vec<Segment<BegunHit>>, looks: bool) -> Self {
        let (cuts, looks) = match looks {
            true => (cuts(&segments), pause_looks(&segments)),
            false => (Vec::new(), Vec::new()),
        };
        Self {
            segments: segments.into_iter(),
            cuts: cuts.into_iter(),
            looks: looks.into_iter().peekable(),
        }
    }

    /// The next one that a pause ended in the window before a hit at this time or an earlier one.
    pub(crate) fn next_cut(&mut self, time: u64) -> Option<Segment<BegunHit>> {
        let cut = self.cuts.as_slice().first().copied().flatten();
        cut.filter(|&cut| cut <= time).and_then(|_| self.next())
    }

    /// Whether any looks are left.
    pub(crate) fn has_looks(&mut self) -> bool {
        self.looks.peek().is_some()
    }

    /// The next look before a time; the last ones if it is `None`.
    pub(crate) fn next_look(&mut self, time: Option<u64>) -> Option<PauseLook> {
        self.looks
            .next_if(|look| time.is_none_or(|time| look.time < time))
    }
}

impl Iterator for UnmatchedSegments {
    type Item = Segment<BegunHit>;

    fn next(&mut self) -> Option<Self::Item> {
        self.cuts.next();
        self.segments.next()
    }
}

/// For each segment that has no end and is not the last one of its key, when the next one begins.
fn cuts(segments: &[Segment<BegunHit>]) -> Vec<Option<u64>> {
    let mut following: HashMap<MatchKey, Option<u64>> = HashMap::default();
    let cuts = segments.iter().rev().map(|segment| {
        let next = following.insert(segment.key, segment.first());
        next.flatten().filter(|_| segment.end.is_none())
    });
    let mut cuts: Vec<Option<u64>> = cuts.collect();
    cuts.reverse();
    cuts
}

/// The first hits of segments in the order of time.
fn pause_looks(segments: &[Segment<BegunHit>]) -> Vec<PauseLook> {
    let looks = segments.iter().filter_map(|segment| {
        Some(PauseLook {
            time: segment.first()?,
            key: segment.key,
        })
    });
    let mut looks: Vec<PauseLook> = looks.collect();
    looks.sort_by_key(|look| look.time);
    looks
}

#[cfg(test)]
mod tests {
    use usdtrec_format::spans::Marks;

    use super::*;
    use crate::spans::matcher::PendingEnd;
    use crate::spans::stack::{Base, Frame};
    use crate::stats::keys::key::KeyWords;

    /// A segment of a thread with a begin and perhaps an end.
    fn segment(thread: u64, begin: u64, end: Option<u64>) -> Segment<BegunHit> {
        Segment {
            key: MatchKey {
                pair: 0,
                words: KeyWords::new(0, thread),
            },
            rise: 1,
            base: Base::default(),
            begun: vec![Frame::new(begin, Marks::default(), None)],
            end: end.map(|time| PendingEnd {
                time,
                ..PendingEnd::default()
            }),
        }
    }

    /// What a pause from 20 to 30 ended is taken before the next hit of its thread, and what is open at the end of the window is not.
    #[test]
    fn segments_are_taken_when_the_next_hit_of_their_key_comes() {
        let segments = || {
            vec![
                segment(1, 10, None),
                segment(2, 40, Some(41)),
                segment(3, 11, None),
                segment(3, 35, None),
                segment(1, 38, None),
            ]
        };
        let mut all = UnmatchedSegments::new(segments(), true);
        let looks = std::iter::from_fn(|| all.next_look(Some(40)));
        let looks: Vec<_> = looks.map(|look| (look.time, look.key.words.word)).collect();
        assert_eq!(looks, [(10, 1), (11, 3), (35, 3), (38, 1)]);
        assert!(all.has_looks());
        assert!(all.next_cut(37).is_none());
        let begin = |segment: Option<Segment<BegunHit>>| segment.and_then(|found| found.first());
        assert_eq!(begin(all.next_cut(38)), Some(10));
        // It is matched with its end.
        assert!(all.next_cut(100).is_none());
        assert_eq!(begin(all.next()), Some(40));
        assert_eq!(begin(all.next_cut(100)), Some(11));
        assert!(all.next_cut(100).is_none());
        assert_eq!(all.next_look(None).map(|look| look.time), Some(40));
        assert_eq!(all.count(), 2);
        let mut plain = UnmatchedSegments::new(segments(), false);
        assert!(!plain.has_looks() && plain.next_cut(100).is_none());
        assert_eq!(plain.count(), 5);
    }
}
