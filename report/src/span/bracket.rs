//! Matching beginnings and ends of one window, and across windows.

use foldhash::HashMap;

use crate::report::groups::Words;

/// Beginnings that wait at most; beyond them the later ones are not matched.
const MOST_OPEN: usize = 1 << 20;

/// What a span is matched by: its pair of probes, and the thread, process or value.
pub(super) type BracketKey = (u32, Words);

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
pub(super) struct End {
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
}

/// Brackets of one window. Its memory is used again.
#[derive(Debug)]
pub(super) struct Brackets<T> {
    /// Of each key, the index of its newest open frame, one more.
    newest: HashMap<BracketKey, usize>,
    frames: Vec<Frame<T>>,
    pub(super) ends: Vec<End>,
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
            newest: HashMap::default(),
            frames: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl<T> Brackets<T> {
    /// A span begins.
    #[inline]
    pub(super) fn begin(&mut self, key: BracketKey, what: T) {
        self.frames.push(Frame {
            key,
            older: 0,
            what: Some(what),
        });
        let newest = self.newest.entry(key).or_default();
        if let Some(frame) = self.frames.last_mut() {
            frame.older = *newest;
        }
        *newest = self.frames.len();
    }

    /// A span ends; gives how it began, if that was in this window.
    #[inline]
    pub(super) fn end(&mut self, key: BracketKey, time: u64) -> Option<T> {
        let newest = self.newest.get_mut(&key).filter(|newest| **newest > 0);
        let Some(newest) = newest else {
            self.ends.push(End { key, time });
            return None;
        };
        let frame = self.frames.get_mut(*newest - 1)?;
        *newest = frame.older;
        frame.what.take()
    }

    /// What is still open, in the order in which it began.
    pub(super) fn take_open(&mut self) -> impl Iterator<Item = (BracketKey, T)> {
        self.newest.clear();
        let frames = self.frames.drain(..);
        frames.filter_map(|frame| Some((frame.key, frame.what?)))
    }
}

/// Spans that are open between windows.
#[derive(Debug, Default)]
pub(super) struct OpenSpans {
    open: HashMap<BracketKey, Vec<Open>>,
    count: usize,
    /// Beginnings that found no room.
    pub(super) forgotten: u64,
}

impl OpenSpans {
    pub(super) fn begin(&mut self, key: BracketKey, open: Open) {
        if self.count >= MOST_OPEN {
            self.forgotten += 1;
            return;
        }
        self.count += 1;
        self.open.entry(key).or_default().push(open);
    }

    pub(super) fn end(&mut self, key: BracketKey) -> Option<Open> {
        let waiting = self.open.get_mut(&key)?;
        let open = waiting.pop();
        if waiting.is_empty() {
            self.open.remove(&key);
        }
        self.count -= usize::from(open.is_some());
        open
    }

    /// Those that never ended.
    pub(super) fn into_open(self) -> impl Iterator<Item = (BracketKey, Open)> {
        let all = self.open.into_iter();
        all.flat_map(|(key, waiting)| waiting.into_iter().map(move |open| (key, open)))
    }
}
