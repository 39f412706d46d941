//! The spans that are open at once under one key: the newest ends first.

use foldhash::HashMap;

use crate::analysis::spans::marks::Marks;
use crate::stats::keys::key::KeyWords;

/// Number of the newest frames that are compared one by one; older ones are found by an index.
const NEAR: usize = 64;
/// The group of frames if spans are not grouped.
pub(crate) const UNGROUPED: u64 = 0;
/// No frame.
const NONE: u32 = u32::MAX;

/// A span that began and has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Frame<T> {
    /// When it began, ns.
    pub(crate) time: u64,
    pub(crate) marks: Marks,
    /// Hash of its group, as far as the group is known when the span begins.
    pub(crate) group: u64,
    /// Time of its ended direct children, ns.
    pub(crate) inner: u64,
    /// Time of ended spans in it that count, each moment once, ns.
    pub(crate) counted: u64,
    /// The same for spans of its group, ns.
    pub(crate) covered: Vec<Covered>,
    pub(crate) what: T,
}

/// Time of spans of one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covered {
    /// The group, if a part of it is known only when the span ends; otherwise empty.
    pub(crate) group: Box<[KeyWords]>,
    /// ns.
    pub(crate) time: u64,
}

/// Spans that ended and are in no open one of their group as far as is known.
#[derive(Debug)]
pub(crate) struct UnenclosedGroup {
    pub(crate) hash: u64,
    pub(crate) covered: Covered,
}

/// Spans that ended outside all open frames.
#[derive(Debug, Default)]
pub(crate) struct Unenclosed {
    /// Time of all spans outside open frames, ns.
    pub(crate) inner: u64,
    /// The same for spans that count, ns.
    pub(crate) counted: u64,
    pub(crate) spans: Vec<UnenclosedGroup>,
}

/// Receives the spans that end.
pub(crate) trait Totals<T> {
    /// A span is unfinished: the span that contains it ended first.
    fn unfinished(&mut self, what: &T);
    /// A span ended: `own` of its time was in no span within it. Gives its group (empty if that was known when it began) if it counts.
    fn finished(&mut self, frame: &Frame<T>, duration: u64, own: u64) -> Option<Box<[KeyWords]>>;
}

/// Open spans of one key.
#[derive(Debug)]
pub(crate) struct Stack<T> {
    frames: Vec<Frame<T>>,
    marks: Option<Box<Index<Marks>>>,
    groups: Option<Box<Index<u64>>>,
}

/// The newest frame of each mark or group.
#[derive(Debug)]
struct Index<K> {
    newest: HashMap<K, u32>,
    /// For each frame, the next older frame of the same mark or group.
    older: Vec<u32>,
}

impl<K: Eq + std::hash::Hash + Copy> Index<K> {
    fn of(keys: impl Iterator<Item = K>) -> Box<Self> {
        let mut index = Box::new(Self {
            newest: HashMap::default(),
            older: Vec::new(),
        });
        keys.for_each(|key| index.push(key));
        index
    }

    fn push(&mut self, key: K) {
        let place = self.older.len() as u32;
        let older = self.newest.insert(key, place);
        self.older.push(older.unwrap_or(NONE));
    }

    fn pop(&mut self, key: K) {
        match self.older.pop() {
            Some(NONE) | None => self.newest.remove(&key),
            Some(older) => self.newest.insert(key, older),
        };
    }

    fn find(&self, key: K) -> Option<usize> {
        self.newest.get(&key).map(|&place| place as usize)
    }
}

impl<T> Default for Stack<T> {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            marks: None,
            groups: None,
        }
    }
}

impl<T> Frame<T> {
    pub(crate) const fn new(time: u64, marks: Marks, what: T) -> Self {
        Self {
            time,
            marks,
            group: UNGROUPED,
            inner: 0,
            counted: 0,
            covered: Vec::new(),
            what,
        }
    }

    /// The same frame with something else that is known of its span.
    pub(crate) fn map<U>(self, what: impl FnOnce(T) -> U) -> Frame<U> {
        Frame {
            time: self.time,
            marks: self.marks,
            group: self.group,
            inner: self.inner,
            counted: self.counted,
            covered: self.covered,
            what: what(self.what),
        }
    }

    fn cover(&mut self, more: Covered) {
        let mut known = self.covered.iter_mut();
        match known.find(|known| known.group == more.group) {
            Some(known) => known.time = known.time.saturating_add(more.time),
            None => self.covered.push(more),
        }
    }
}

impl Unenclosed {
    fn add(&mut self, hash: u64, covered: Covered) {
        match self.spans.last_mut() {
            Some(last) if last.hash == hash && last.covered.group == covered.group => {
                last.covered.time = last.covered.time.saturating_add(covered.time);
            }
            _ => self.spans.push(UnenclosedGroup { hash, covered }),
        }
    }
}

impl<T> Stack<T> {
    pub(crate) const fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn push(&mut self, frame: Frame<T>) {
        if let Some(index) = &mut self.marks {
            index.push(frame.marks);
        }
        if let Some(index) = &mut self.groups {
            index.push(frame.group);
        }
        self.frames.push(frame);
    }

    pub(crate) fn pop(&mut self) -> Option<Frame<T>> {
        let frame = self.frames.pop()?;
        if self.frames.len() <= NEAR / 2 {
            (self.marks, self.groups) = (None, None);
        }
        if let Some(index) = &mut self.marks {
            index.pop(frame.marks);
        }
        if let Some(index) = &mut self.groups {
            index.pop(frame.group);
        }
        Some(frame)
    }

    /// All frames, the oldest first.
    pub(crate) fn take(&mut self) -> Vec<Frame<T>> {
        (self.marks, self.groups) = (None, None);
        std::mem::take(&mut self.frames)
    }

    /// Keeps the frames that began after a time.
    pub(crate) fn keep_after(&mut self, time: u64) {
        (self.marks, self.groups) = (None, None);
        self.frames.retain(|frame| frame.time > time);
    }

    pub(crate) fn frames(&self) -> &[Frame<T>] {
        &self.frames
    }

    /// The newest frame of these marks.
    #[inline]
    pub(crate) fn find(&mut self, marks: Marks) -> Option<usize> {
        let last = self.frames.len().checked_sub(1)?;
        if self.frames[last].marks == marks {
            return Some(last);
        }
        self.find_older(marks)
    }

    fn find_older(&mut self, marks: Marks) -> Option<usize> {
        let near = self.frames.iter().rev().take(NEAR);
        let near = near.into_iter().position(|frame| frame.marks == marks);
        if near.is_some() || self.frames.len() <= NEAR {
            return near.map(|near| self.frames.len() - 1 - near);
        }
        let frames = &self.frames;
        let make = || Index::of(frames.iter().map(|frame| frame.marks));
        self.marks.get_or_insert_with(make).find(marks)
    }

    /// The first of the newest frames without a known difference, if a value is not known on one of the two sides.
    pub(crate) fn find_compatible(&self, marks: Marks) -> Option<usize> {
        let newest = self.frames.iter().enumerate().rev().take(NEAR);
        let mut fits = newest.filter(|(_, frame)| {
            (marks.is_partial() || frame.marks.is_partial()) && frame.marks.is_compatible(marks)
        });
        fits.next().map(|(at, _)| at)
    }

    /// The newest frame of a group.
    fn enclosing(&mut self, group: u64) -> Option<&mut Frame<T>> {
        let near = self.frames.iter().rev().take(NEAR);
        let near = near.into_iter().position(|frame| frame.group == group);
        let at = match near {
            Some(near) => self.frames.len() - 1 - near,
            None if self.frames.len() <= NEAR => return None,
            None => {
                let frames = &self.frames;
                let make = || Index::of(frames.iter().map(|frame| frame.group));
                self.groups.get_or_insert_with(make).find(group)?
            }
        };
        self.frames.get_mut(at)
    }

    /// Ends the span of a frame. Those that began in it and are open are unfinished: they have no end, and what they have of spans that
    /// ended goes to what they are in.
    pub(crate) fn close(
        &mut self,
        at: usize,
        time: u64,
        totals: &mut impl Totals<T>,
        base: &mut Unenclosed,
    ) {
        while self.frames.len() > at + 1
            && let Some(frame) = self.pop()
        {
            totals.unfinished(&frame.what);
            self.pass_on(frame, base);
        }
        let Some(mut frame) = self.pop() else {
            return;
        };
        let duration = time.saturating_sub(frame.time);
        let own = duration.saturating_sub(frame.inner);
        let group = totals.finished(&frame, duration, own);
        frame.inner = duration;
        let Some(group) = group else {
            return self.pass_on(frame, base);
        };
        frame.counted = duration;
        let own = Covered {
            group,
            time: duration,
        };
        frame.covered.retain(|covered| covered.group != own.group);
        let hash = frame.group;
        self.pass_on(frame, base);
        if hash != UNGROUPED {
            self.cover(hash, own, base);
        }
    }

    /// Adds the times of a frame that ended to the frame that contains it.
    fn pass_on(&mut self, frame: Frame<T>, base: &mut Unenclosed) {
        let (inner, counted) = match self.frames.last_mut() {
            Some(outer) => (&mut outer.inner, &mut outer.counted),
            None => (&mut base.inner, &mut base.counted),
        };
        *inner = inner.saturating_add(frame.inner);
        *counted = counted.saturating_add(frame.counted);
        for covered in frame.covered {
            self.cover(frame.group, covered, base);
        }
    }

    /// Adds time of a group to the newest frame that may be of that group.
    fn cover(&mut self, hash: u64, covered: Covered, base: &mut Unenclosed) {
        match self.enclosing(hash) {
            Some(outer) => outer.cover(covered),
            None => base.add(hash, covered),
        }
    }

    /// Adds the times of spans that ended outside this stack to its newest frame.
    pub(crate) fn add_base(&mut self, base: Unenclosed) {
        let Some(newest) = self.frames.last_mut() else {
            return;
        };
        newest.inner = newest.inner.saturating_add(base.inner);
        newest.counted = newest.counted.saturating_add(base.counted);
        for UnenclosedGroup { hash, covered } in base.spans {
            if let Some(outer) = self.enclosing(hash) {
                outer.cover(covered);
            }
        }
    }
}
