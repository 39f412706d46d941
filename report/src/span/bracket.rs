//! Matching beginnings and ends of one window, and across windows.

use foldhash::HashMap;

use crate::report::groups::Words;

/// Beginnings that wait at most; beyond them the later ones are not matched.
const MOST_OPEN: usize = 1 << 20;

/// What a span is matched by: its pair of probes, and the thread, process or value.
pub(crate) type BracketKey = (u32, Words);

/// A span that began.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    /// ns.
    pub(super) time: u64,
    /// Whether it is asked for: those that are not must be matched all the same.
    pub(super) asked: bool,
    /// What it is grouped by.
    pub(super) group: Box<[Words]>,
    /// Index in the file of its block.
    pub(super) block: usize,
    /// Body of the sample, where its arguments may be wanted.
    pub(super) body: Option<Box<[u8]>>,
}

/// An end whose beginning is not in its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(super) key: BracketKey,
    /// ns.
    pub(super) time: u64,
}

/// What one window leaves to be matched with others.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Ends, in the order of time. They come before the beginnings of the same key.
    pub(super) ends: Vec<End>,
    /// Beginnings, in the order of time.
    pub(super) begun: Vec<(BracketKey, Open)>,
    /// How far each key rose.
    pub(super) rises: Vec<(BracketKey, Rise)>,
}

/// How many spans of one key were open at once in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rise {
    /// Of those that began in it, at most.
    own: i64,
    /// The same less those from before that had ended by then, at most.
    beyond: i64,
}

impl Rise {
    /// How many were open at once at most, with so many from before the window. Ends that nobody had begun take none away.
    pub(super) fn above(self, before: usize) -> u64 {
        let beyond = self.beyond.saturating_add(before as i64);
        self.own.max(beyond).unsigned_abs()
    }
}

/// Brackets of one window. Its memory is used again.
#[derive(Debug)]
pub(crate) struct Brackets<T> {
    lanes: Lanes,
    frames: Vec<Frame<T>>,
    pub(crate) ends: Vec<End>,
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// Index of its newest open frame, one more.
    newest: usize,
    /// Open ones that began in this window, and ends of those that did not.
    open: i64,
    ends: i64,
    rise: Rise,
}

/// Lanes that are found without looking their key up.
const NEAR: usize = 16;

/// What is known of all keys of a window.
#[derive(Debug, Default)]
struct Lanes {
    all: Vec<(BracketKey, Lane)>,
    /// Of each key, its place.
    places: HashMap<BracketKey, usize>,
    /// The place last used of the keys whose pair and thread end in the same bits; few threads are at work at once.
    near: [usize; NEAR],
}

impl Lanes {
    #[inline]
    fn of(&mut self, key: BracketKey) -> &mut Lane {
        let slot = (key.1.1 as usize).wrapping_add(key.0 as usize * 5) % NEAR;
        let near = self.near[slot];
        let place = match self.all.get(near) {
            Some((known, _)) if *known == key => near,
            _ => self.find(key),
        };
        self.near[slot] = place;
        &mut self.all[place].1
    }

    fn find(&mut self, key: BracketKey) -> usize {
        let all = &mut self.all;
        *self.places.entry(key).or_insert_with(|| {
            all.push((key, Lane::default()));
            all.len() - 1
        })
    }

    fn clear(&mut self) {
        self.all.clear();
        self.places.clear();
    }
}

#[derive(Debug)]
struct Frame<T> {
    key: BracketKey,
    /// Index of the next older one of the key, one more.
    older: usize,
    what: Option<T>,
}

impl<T> Default for Brackets<T> {
    fn default() -> Self {
        Self {
            lanes: Lanes::default(),
            frames: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl<T> Brackets<T> {
    /// A span begins.
    #[inline]
    pub(crate) fn begin(&mut self, key: BracketKey, what: T) {
        self.frames.push(Frame {
            key,
            older: 0,
            what: Some(what),
        });
        let lane = self.lanes.of(key);
        if let Some(frame) = self.frames.last_mut() {
            frame.older = lane.newest;
        }
        lane.newest = self.frames.len();
        lane.open += 1;
        lane.rise.own = lane.rise.own.max(lane.open);
        lane.rise.beyond = lane.rise.beyond.max(lane.open - lane.ends);
    }

    /// A span ends; gives how it began, if that was in this window.
    #[inline]
    pub(crate) fn end(&mut self, key: BracketKey, time: u64) -> Option<T> {
        let lane = self.lanes.of(key);
        if lane.newest == 0 {
            lane.ends += 1;
            self.ends.push(End { key, time });
            return None;
        }
        let frame = self.frames.get_mut(lane.newest - 1)?;
        lane.newest = frame.older;
        lane.open -= 1;
        frame.what.take()
    }

    /// How far each key rose.
    pub(super) fn rises(&self) -> impl Iterator<Item = (BracketKey, Rise)> {
        let lanes = self.lanes.all.iter();
        let lanes = lanes.filter(|(_, lane)| lane.rise.own > 0);
        lanes.map(|(key, lane)| (*key, lane.rise))
    }

    /// What is still open, in the order in which it began.
    pub(crate) fn take_open(&mut self) -> impl Iterator<Item = (BracketKey, T)> {
        self.lanes.clear();
        let frames = self.frames.drain(..);
        frames.filter_map(|frame| Some((frame.key, frame.what?)))
    }
}

/// Spans that are open between windows.
#[derive(Debug)]
pub(crate) struct OpenSpans<T> {
    open: HashMap<BracketKey, Vec<T>>,
    count: usize,
    /// Beginnings that found no room.
    pub(super) forgotten: u64,
}

impl<T> Default for OpenSpans<T> {
    fn default() -> Self {
        Self {
            open: HashMap::default(),
            count: 0,
            forgotten: 0,
        }
    }
}

impl<T> OpenSpans<T> {
    /// A span begins.
    pub(crate) fn begin(&mut self, key: BracketKey, open: T) {
        if self.count >= MOST_OPEN {
            self.forgotten += 1;
            return;
        }
        self.count += 1;
        self.open.entry(key).or_default().push(open);
    }

    /// A span ends; gives how it began.
    pub(crate) fn end(&mut self, key: BracketKey) -> Option<T> {
        let waiting = self.open.get_mut(&key)?;
        let open = waiting.pop();
        if waiting.is_empty() {
            self.open.remove(&key);
        }
        self.count -= usize::from(open.is_some());
        open
    }

    /// Whether so many more find no room.
    pub(crate) const fn is_full(&self, more: usize) -> bool {
        self.count + more > MOST_OPEN
    }

    /// How many of a key are open.
    pub(super) fn level(&self, key: BracketKey) -> usize {
        self.open.get(&key).map_or(0, Vec::len)
    }

    /// Those that never ended.
    pub(super) fn into_open(self) -> impl Iterator<Item = (BracketKey, T)> {
        let all = self.open.into_iter();
        all.flat_map(|(key, waiting)| waiting.into_iter().map(move |open| (key, open)))
    }
}

impl OpenSpans<u64> {
    /// Makes room: forgets the half that began first, which is the likelier one never to end.
    pub(crate) fn forget_older(&mut self) {
        let mut begins: Vec<u64> = self.open.values().flatten().copied().collect();
        let half = begins.len() / 2;
        if half == 0 {
            return;
        }
        let (_, &mut newest_forgotten, _) = begins.select_nth_unstable(half - 1);
        self.open.retain(|_, waiting| {
            waiting.retain(|&begin| begin > newest_forgotten);
            !waiting.is_empty()
        });
        let kept = self.open.values().map(Vec::len).sum();
        self.forgotten += (self.count - kept) as u64;
        self.count = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_half_is_forgotten() {
        let mut open = OpenSpans::default();
        let key = |tid| (0, (0, tid));
        for time in 0..10 {
            open.begin(key(time % 3), time);
        }
        assert!(!open.is_full(MOST_OPEN - 10) && open.is_full(MOST_OPEN - 9));
        open.forget_older();
        assert_eq!((open.count, open.forgotten), (5, 5));
        let ends = [0, 0, 0, 1, 1, 2, 2].map(|tid| open.end(key(tid)));
        let left = [Some(9), Some(6), None, Some(7), None, Some(8), Some(5)];
        assert_eq!(ends, left);
        assert_eq!(open.count, 0);
        open.forget_older();
    }

    /// Of any hits in any windows: as deep as one window with all of them is.
    #[test]
    fn rises_add_up() {
        let key = (0, (0, 1));
        let mut state = 7u64;
        for _ in 0..2000 {
            let mut whole = 0u64;
            let (mut level, mut before, mut found) = (0u64, 0usize, 0);
            for _ in 0..4 {
                let mut brackets = Brackets::default();
                for _ in 0..5 {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    if state >> 63 == 0 {
                        brackets.begin(key, ());
                        level += 1;
                    } else {
                        brackets.end(key, 0);
                        level = level.saturating_sub(1);
                    }
                    whole = whole.max(level);
                }
                for (_, rise) in brackets.rises() {
                    found = found.max(rise.above(before));
                }
                before = before.saturating_sub(brackets.ends.len()) + brackets.take_open().count();
            }
            assert_eq!(found, whole);
        }
    }
}
