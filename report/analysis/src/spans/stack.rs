//! The spans that are open at once under one key, and what ends them.

use usdtrec_format::HitWaits;
use usdtrec_format::spans::{Marks, OpenBegin, OpenBegins};

use crate::spans::children::Children;
use crate::spans::spent_time::{SpentTime, ThreadParts};
use crate::stats::coverage::Interval;

/// The group of frames if spans are not grouped.
pub(crate) const UNGROUPED: u64 = 0;

/// Open spans of one key.
pub(crate) type Stack<T> = OpenBegins<Frame<T>>;

/// A span that began and has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Frame<T> {
    /// When it began, ns.
    pub(crate) time: u64,
    pub(crate) marks: Marks,
    /// How long its thread had waited then.
    pub(crate) waits: HitWaits,
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
    pub(crate) spent: SpentTime,
}

impl<T> Frame<T> {
    pub(crate) fn new(time: u64, marks: Marks, what: T) -> Self {
        Self {
            time,
            marks,
            waits: HitWaits::default(),
            group: UNGROUPED,
            children: Children::default(),
            next: None,
            what,
        }
    }

    /// The same frame with something else that is known of its span.
    pub(crate) fn map<U>(self, what: impl FnOnce(T) -> U) -> Frame<U> {
        Frame {
            time: self.time,
            marks: self.marks,
            waits: self.waits,
            group: self.group,
            children: self.children,
            next: self.next,
            what: what(self.what),
        }
    }
}

impl<T> OpenBegin for Frame<T> {
    fn time(&self) -> u64 {
        self.time
    }

    fn marks(&self) -> Marks {
        self.marks
    }

    // Part by part: what was just written part by part is slow to read as a whole.
    #[inline(always)]
    fn replace(&mut self, new: Self) {
        let Self {
            time,
            marks,
            waits,
            group,
            children,
            next,
            what,
        } = new;
        self.time = time;
        self.marks = marks;
        self.waits = waits;
        self.group = group;
        self.children.replace(children);
        self.next = next;
        self.what = what;
    }

    fn release(&mut self) {
        self.children.drop_many();
    }
}

/// Adds a span that begins.
#[inline(always)]
pub(crate) fn begin<T>(stack: &mut Stack<T>, frame: Frame<T>) {
    let time = frame.time;
    if let Some(newest) = stack.newest_mut().filter(|newest| newest.time <= time) {
        newest.next.get_or_insert(time);
    }
    if let Some(place) = stack.push(frame) {
        follow_late(stack.as_mut_slice(), place);
    }
}

/// What follows a begin that came late, and the one before it.
#[cold]
fn follow_late<T>(frames: &mut [Frame<T>], place: usize) {
    let newer = frames.get(place + 1).map(|newer| newer.time);
    let Some((late, older)) = frames[..=place].split_last_mut() else {
        return;
    };
    let mut next = late.next.min(newer).or(newer);
    if let Some(older) = older.last_mut() {
        // It may be that of a span which has ended.
        let known = older.next.filter(|known| *known > late.time);
        next = known.min(next).or(next);
        older.next = Some(older.next.map_or(late.time, |known| known.min(late.time)));
    }
    late.next = next;
}

/// An end, and the place of its begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Close {
    pub(crate) at: usize,
    /// ns.
    pub(crate) time: u64,
    /// How long the thread of the end has waited.
    pub(crate) waits: HitWaits,
    /// Whether frames know when the spans within them were.
    pub(crate) keeps_parts: bool,
}

/// Ends the span of a frame. Those that began in it and are open are unfinished: they have no end, and the spans that ended in them
/// are in what they are in.
pub(crate) fn close<T>(
    stack: &mut Stack<T>,
    Close {
        at,
        time,
        waits,
        keeps_parts,
    }: Close,
    totals: &mut impl Totals<T>,
    base: &mut Base,
) {
    while stack.len() > at + 1
        && let Some(newest) = stack.newest_mut()
    {
        totals.unfinished(newest, time);
        let children = std::mem::take(&mut newest.children);
        stack.drop_newest();
        outer(stack, base).append(children);
    }
    let Some(frame) = stack.newest_mut() else {
        return;
    };
    let duration = time.saturating_sub(frame.time);
    let own = duration.saturating_sub(frame.children.time);
    let parts = ThreadParts::between(frame.waits, waits, duration);
    let spent = SpentTime {
        whole: parts.map(|known| known.parts),
        own: parts.ok().and_then(|known| frame.children.rest(known)),
    };
    let ended = Ended {
        duration,
        own,
        spent,
    };
    totals.finished(frame, ended);
    let span = Interval {
        begin: frame.time,
        end: frame.time.saturating_add(duration),
    };
    stack.drop_newest();
    let around = outer(stack, base);
    around.push(span, keeps_parts);
    if let Ok(parts) = parts {
        around.spend(parts);
    }
}

/// The spans that ended directly in the newest frame, or outside all.
pub(crate) fn outer<'c, T>(stack: &'c mut Stack<T>, base: &'c mut Base) -> &'c mut Children {
    match stack.newest_mut() {
        Some(newest) => &mut newest.children,
        None => &mut base.children,
    }
}

/// Adds what happened after its newest frame began, and outside all later ones.
pub(crate) fn add_base<T>(stack: &mut Stack<T>, base: Base) {
    if let Some(newest) = stack.newest_mut() {
        newest.children.append(base.children);
        newest.next = newest.next.or(base.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times after which the next span of each frame began.
    fn pushed(times: &[u64]) -> Vec<(u64, Option<u64>)> {
        let mut stack = Stack::default();
        for time in times {
            begin(&mut stack, Frame::new(*time, Marks::default(), ()));
        }
        let frames = stack.as_slice().iter();
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
        let mut stack = Stack::default();
        let frame = |time| Frame::new(time, Marks::default(), ());
        begin(&mut stack, frame(1));
        begin(&mut stack, frame(5));
        let closed = Close {
            at: 1,
            time: 6,
            waits: HitWaits::default(),
            keeps_parts: false,
        };
        close(&mut stack, closed, &mut NoTotals, &mut Base::default());
        begin(&mut stack, frame(8));
        begin(&mut stack, frame(3));
        let next: Vec<_> = stack.as_slice().iter().map(|frame| frame.next).collect();
        assert_eq!(next, [Some(3), Some(5), None]);
    }
}
