//! The spans that are open at once under one key: the newest ends first.

use foldhash::HashMap;

use crate::spans::children::Children;
use crate::spans::marks::Marks;
use crate::stats::coverage::Interval;

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
    /// The spans that ended directly in it.
    pub(crate) children: Children,
    /// When the first span of its key began after it while it was open, ns.
    pub(crate) next: Option<u64>,
    pub(crate) what: T,
}

/// What happened outside all open frames.
#[derive(Debug, Default)]
pub(crate) struct Base {
    /// The spans that ended.
    pub(crate) children: Children,
    /// When the first span began, ns.
    pub(crate) next: Option<u64>,
}

/// Receives the spans that end.
pub(crate) trait Totals<T> {
    /// A span is unfinished: the span that contains it ended first, at this time, ns.
    fn unfinished(&mut self, frame: &Frame<T>, until: u64);
    /// A span ended.
    fn finished(&mut self, frame: &mut Frame<T>, ended: Ended);
    /// A span was open when a pause of its probes began, up to which it is known to be open, ns.
    fn paused(&mut self, _frame: Frame<T>, _until: u64) {}
}

/// How a span ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// ns.
    pub(crate) duration: u64,
    /// What of it was in no span within it, ns.
    pub(crate) own: u64,
}

/// Open spans of one key.
#[derive(Debug)]
pub(crate) struct Stack<T> {
    /// Those that are open, the oldest first, and then some whose memory is used again.
    frames: Vec<Frame<T>>,
    /// Number of those that are open.
    len: usize,
    marks: Option<Box<MarkIndex>>,
    keeps_parts: bool,
}

/// The newest frame of each mark.
#[derive(Debug)]
struct MarkIndex {
    newest: HashMap<Marks, u32>,
    /// For each frame, the next older frame of the same mark.
    older: Vec<u32>,
}

impl MarkIndex {
    fn from_marks(marks: impl Iterator<Item = Marks>) -> Box<Self> {
        let mut index = Box::new(Self {
            newest: HashMap::default(),
            older: Vec::new(),
        });
        marks.for_each(|marks| index.push(marks));
        index
    }

    fn push(&mut self, marks: Marks) {
        let place = self.older.len() as u32;
        let older = self.newest.insert(marks, place);
        self.older.push(older.unwrap_or(NONE));
    }

    fn pop(&mut self, marks: Marks) {
        match self.older.pop() {
            Some(NONE) | None => self.newest.remove(&marks),
            Some(older) => self.newest.insert(marks, older),
        };
    }

    fn find(&self, marks: Marks) -> Option<usize> {
        self.newest.get(&marks).map(|&place| place as usize)
    }
}

impl<T> Frame<T> {
    pub(crate) fn new(time: u64, marks: Marks, what: T) -> Self {
        Self {
            time,
            marks,
            group: UNGROUPED,
            children: Children::default(),
            next: None,
            what,
        }
    }

    /// Replaces it by a new one, in which no span has ended.
    // Part by part: what was just written part by part is slow to read as a whole.
    #[inline(always)]
    fn replace(&mut self, new: Self) {
        let Self {
            time,
            marks,
            group,
            children,
            next,
            what,
        } = new;
        self.time = time;
        self.marks = marks;
        self.group = group;
        self.children.replace(children);
        self.next = next;
        self.what = what;
    }

    /// The same frame with something else that is known of its span.
    pub(crate) fn map<U>(self, what: impl FnOnce(T) -> U) -> Frame<U> {
        Frame {
            time: self.time,
            marks: self.marks,
            group: self.group,
            children: self.children,
            next: self.next,
            what: what(self.what),
        }
    }
}

impl<T> Stack<T> {
    /// Without frames. With `keeps_parts`, frames know when the spans within them were.
    pub(crate) const fn new(keeps_parts: bool) -> Self {
        Self {
            frames: Vec::new(),
            len: 0,
            marks: None,
            keeps_parts,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Adds a span that begins.
    // Inlined, a frame is written once, where it stays: it is larger than two cache lines.
    #[inline(always)]
    pub(crate) fn push(&mut self, frame: Frame<T>) {
        let Frame { time, marks, .. } = frame;
        let newest = self.newest_mut();
        let is_late = newest.as_ref().is_some_and(|newest| newest.time > time);
        if let Some(newest) = newest.filter(|_| !is_late) {
            newest.next.get_or_insert(time);
        }
        match self.frames.get_mut(self.len) {
            Some(closed) => closed.replace(frame),
            None => self.push_new(frame),
        }
        self.len += 1;
        if is_late {
            self.move_last();
        } else if let Some(index) = &mut self.marks {
            index.push(marks);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_new(&mut self, frame: Frame<T>) {
        self.frames.push(frame);
    }

    fn newest_mut(&mut self) -> Option<&mut Frame<T>> {
        self.frames.get_mut(self.len.checked_sub(1)?)
    }

    /// Moves the last frame before those that began after it and are known already: a recorder that waits for its end writes its begin late.
    #[cold]
    fn move_last(&mut self) {
        self.frames.truncate(self.len);
        let Some(frame) = self.frames.pop() else {
            return;
        };
        let place = self
            .frames
            .partition_point(|known| known.time <= frame.time);
        let newer = self.frames.get(place).map(|newer| newer.time);
        let mut next = frame.next.min(newer).or(newer);
        if let Some(older) = place.checked_sub(1).and_then(|at| self.frames.get_mut(at)) {
            // It may be that of a span which has ended.
            let known = older.next.filter(|known| *known > frame.time);
            next = known.min(next).or(next);
            older.next = Some(older.next.map_or(frame.time, |known| known.min(frame.time)));
        }
        self.marks = None;
        self.frames.insert(place, Frame { next, ..frame });
    }

    /// Drops the newest frame. Its memory stays.
    #[inline]
    fn drop_newest(&mut self) {
        let Some(newest) = self.len.checked_sub(1) else {
            return;
        };
        if let Some(frame) = self.frames.get_mut(newest) {
            frame.children.drop_many();
            if let Some(index) = &mut self.marks {
                index.pop(frame.marks);
            }
        }
        self.len = newest;
        if self.len <= NEAR / 2 {
            self.marks = None;
        }
    }

    /// All frames, the oldest first.
    pub(crate) fn take(&mut self) -> Vec<Frame<T>> {
        self.marks = None;
        self.frames.truncate(self.len);
        self.len = 0;
        std::mem::take(&mut self.frames)
    }

    /// Takes out the oldest frames: those up to the first that `is_paused` does not say.
    #[cold]
    pub(crate) fn take_paused(&mut self, is_paused: impl Fn(u64) -> bool) -> Vec<Frame<T>> {
        let oldest = self.frames().iter();
        let paused = oldest.take_while(|frame| is_paused(frame.time)).count();
        if paused > 0 {
            self.marks = None;
        }
        self.len -= paused;
        self.frames.drain(..paused).collect()
    }

    /// Keeps the frames that began after a time.
    pub(crate) fn keep_after(&mut self, time: u64) {
        self.marks = None;
        self.frames.truncate(self.len);
        self.frames.retain(|frame| frame.time > time);
        self.len = self.frames.len();
    }

    pub(crate) fn frames(&self) -> &[Frame<T>] {
        self.frames.get(..self.len).unwrap_or_default()
    }

    /// What is known of the spans of all frames.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let open = self.frames.iter_mut().take(self.len);
        open.map(|frame| &mut frame.what)
    }

    /// The newest frame of these marks.
    #[inline]
    pub(crate) fn find(&mut self, marks: Marks) -> Option<usize> {
        let last = self.len.checked_sub(1)?;
        if self.frames[last].marks == marks {
            return Some(last);
        }
        self.find_older(marks)
    }

    fn find_older(&mut self, marks: Marks) -> Option<usize> {
        let frames = self.frames.get(..self.len).unwrap_or_default();
        let near = frames.iter().rev().take(NEAR);
        let near = near.into_iter().position(|frame| frame.marks == marks);
        if near.is_some() || frames.len() <= NEAR {
            return near.map(|near| frames.len() - 1 - near);
        }
        let make = || MarkIndex::from_marks(frames.iter().map(|frame| frame.marks));
        self.marks.get_or_insert_with(make).find(marks)
    }

    /// The first of the newest frames without a known difference, if a value is not known on one of the two sides.
    pub(crate) fn find_compatible(&self, marks: Marks) -> Option<usize> {
        let newest = self.frames().iter().enumerate().rev().take(NEAR);
        let mut fits = newest.filter(|(_, frame)| {
            (marks.is_partial() || frame.marks.is_partial()) && frame.marks.is_compatible(marks)
        });
        fits.next().map(|(at, _)| at)
    }

    /// Ends the span of a frame. Those that began in it and are open are unfinished: they have no end, and the spans that ended in them
    /// are in what they are in.
    pub(crate) fn close(
        &mut self,
        at: usize,
        time: u64,
        totals: &mut impl Totals<T>,
        base: &mut Base,
    ) {
        while self.len > at + 1
            && let Some(newest) = self.newest_mut()
        {
            totals.unfinished(newest, time);
            let children = std::mem::take(&mut newest.children);
            self.drop_newest();
            self.outer(base).append(children);
        }
        let Some(frame) = self.newest_mut() else {
            return;
        };
        let duration = time.saturating_sub(frame.time);
        let own = duration.saturating_sub(frame.children.time);
        totals.finished(frame, Ended { duration, own });
        let span = Interval {
            begin: frame.time,
            end: frame.time.saturating_add(duration),
        };
        let keeps_parts = self.keeps_parts;
        self.drop_newest();
        self.outer(base).push(span, keeps_parts);
    }

    /// The spans that ended directly in the newest frame, or outside all.
    fn outer<'c>(&'c mut self, base: &'c mut Base) -> &'c mut Children {
        match self.newest_mut() {
            Some(newest) => &mut newest.children,
            None => &mut base.children,
        }
    }

    /// Adds what happened after its newest frame began, and outside all later ones.
    pub(crate) fn add_base(&mut self, base: Base) {
        if let Some(newest) = self.newest_mut() {
            newest.children.append(base.children);
            newest.next = newest.next.or(base.next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times after which the next span of each frame began.
    fn pushed(times: &[u64]) -> Vec<(u64, Option<u64>)> {
        let mut stack = Stack::new(false);
        for time in times {
            stack.push(Frame::new(*time, Marks::default(), ()));
        }
        let frames = stack.frames().iter();
        frames.map(|frame| (frame.time, frame.next)).collect()
    }

    #[test]
    fn begins_that_come_late_are_followed_as_those_that_come_in_time() {
        let right = pushed(&[1, 2, 3, 4]);
        assert_eq!(right, [(1, Some(2)), (2, Some(3)), (3, Some(4)), (4, None)]);
        for late in [[2, 3, 4, 1], [1, 3, 4, 2], [1, 2, 4, 3], [4, 3, 2, 1]] {
            assert_eq!(pushed(&late), right, "{late:?}");
        }
    }

    /// A span that began between two open ones and has ended is the next of the one that came late.
    #[test]
    fn the_next_of_a_late_begin_may_have_ended() {
        struct NoTotals;
        impl Totals<()> for NoTotals {
            fn unfinished(&mut self, _: &Frame<()>, _: u64) {}
            fn finished(&mut self, _: &mut Frame<()>, _: Ended) {}
        }
        let mut stack = Stack::new(false);
        let frame = |time| Frame::new(time, Marks::default(), ());
        stack.push(frame(1));
        stack.push(frame(5));
        stack.close(1, 6, &mut NoTotals, &mut Base::default());
        stack.push(frame(8));
        stack.push(frame(3));
        let next: Vec<_> = stack.frames().iter().map(|frame| frame.next).collect();
        assert_eq!(next, [Some(3), Some(5), None]);
    }
}
