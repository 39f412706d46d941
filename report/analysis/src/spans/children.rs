//! The spans that ended directly within another one.

use usdtrec_format::TimeParts;

use crate::spans::spent_time::ThreadParts;
use crate::spans::waits::{Wait, WaitSums};
use crate::stats::coverage::Interval;

/// Spans that are kept one by one; of very many, the older ones are summed up.
const MAX_KEPT_SPANS: usize = 1 << 14;

/// The spans that ended directly within another one, or outside all that are open: their time, and when they were if that is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Children {
    /// Their time, ns.
    pub(crate) time: u64,
    /// In the order of time; those without a pause between them are one.
    parts: Vec<Interval>,
    older: Option<Older>,
    /// What they were spent on, as far as it is known of one thread.
    spent: Option<Box<ThreadParts>>,
    /// The waits beside them: those of the span that they are in.
    waits: Option<Box<WaitSums>>,
}

/// Spans that are not kept one by one.
#[derive(Clone, Copy, Debug)]
struct Older {
    /// When the last of them ended, ns.
    until: u64,
    /// Their time, ns.
    time: u64,
}

/// The time of a span without the spans within it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnTime {
    pub(crate) parts: Vec<Interval>,
    /// Time before these, of which it is not known when it was, ns.
    pub(crate) before: u64,
}

/// Number of spans for which memory is used again.
const MAX_SPARE_PARTS: usize = 64;

impl Children {
    /// Replaces them by others. Memory is used again.
    #[inline(always)]
    pub(crate) fn replace(&mut self, new: Self) {
        self.time = new.time;
        self.older = new.older;
        self.spent = new.spent;
        self.waits = new.waits;
        if new.parts.is_empty() {
            self.parts.clear();
        } else {
            self.parts = new.parts;
        }
    }

    /// Gives back the memory of many.
    #[inline]
    pub(crate) fn drop_many(&mut self) {
        if self.parts.capacity() > MAX_SPARE_PARTS {
            self.parts = Vec::new();
        }
    }

    /// Adds one, which is later than the others.
    pub(crate) fn push(&mut self, span: Interval, keeps_parts: bool) {
        self.time = self.time.saturating_add(span.len());
        if keeps_parts && span.len() > 0 {
            self.push_part(span);
        }
    }

    /// Adds what those that were added were spent on.
    pub(crate) fn spend(&mut self, more: ThreadParts) {
        match &mut self.spent {
            None => self.spent = Some(Box::new(more)),
            Some(known) if known.tid == more.tid => known.parts = known.parts.plus(more.parts),
            // Then it is not known of all of their time.
            Some(_) => {}
        }
    }

    /// Adds a wait beside them.
    pub(crate) fn wait(&mut self, wait: &Wait<'_>) {
        self.waits.get_or_insert_default().add(wait);
    }

    /// Whether there are waits beside them.
    pub(crate) const fn have_waits(&self) -> bool {
        self.waits.is_some()
    }

    /// Takes out the waits beside them.
    #[inline]
    pub(crate) fn take_waits(&mut self) -> Option<Box<WaitSums>> {
        self.waits.take()
    }

    /// What the span around them was spent on without them; `None` if that is not known.
    pub(crate) fn rest(&self, whole: ThreadParts) -> Option<TimeParts> {
        if self.time == 0 {
            return Some(whole.parts);
        }
        let known = self.spent.as_ref()?;
        let are_all = known.tid == whole.tid && known.parts.total() == self.time;
        whole.parts.without(known.parts).filter(|_| are_all)
    }

    /// Adds those of another span, which are later.
    pub(crate) fn append(&mut self, others: Self) {
        self.time = self.time.saturating_add(others.time);
        if let Some(spent) = others.spent {
            self.spend(*spent);
        }
        WaitSums::join(&mut self.waits, others.waits);
        if let Some(older) = others.older {
            // There were too many already.
            self.sum_up(0);
            let time = self.older.map_or(0, |known| known.time);
            self.older = Some(Older {
                until: older.until,
                time: time.saturating_add(older.time),
            });
        }
        others
            .parts
            .into_iter()
            .for_each(|part| self.push_part(part));
    }

    fn push_part(&mut self, span: Interval) {
        match self.parts.last_mut() {
            Some(last) if last.end == span.begin => last.end = span.end,
            _ => self.parts.push(span),
        }
        if self.parts.len() >= 2 * MAX_KEPT_SPANS {
            self.sum_up(MAX_KEPT_SPANS);
        }
    }

    /// Sums up all but the last ones.
    fn sum_up(&mut self, keep: usize) {
        let left = self.parts.len().saturating_sub(keep);
        let older = self.parts.drain(..left);
        let known = self.older.unwrap_or(Older { until: 0, time: 0 });
        let summed = older.fold(known, |sum, part| Older {
            until: part.end,
            time: sum.time.saturating_add(part.len()),
        });
        if left > 0 {
            self.older = Some(summed);
        }
    }

    /// Times at which parts of the time around them begin or end.
    pub(crate) fn times(&self) -> impl Iterator<Item = u64> {
        let older = self.older.map(|older| older.until);
        let parts = self.parts.iter().flat_map(|part| [part.begin, part.end]);
        older.into_iter().chain(parts)
    }

    /// The time of the span that they are in without them. The result does not depend on how they were put together.
    pub(crate) fn around(&mut self, span: Interval) -> OwnTime {
        self.sum_up(MAX_KEPT_SPANS);
        let mut own = OwnTime::default();
        let mut begin = span.begin;
        if let Some(older) = self.older {
            let whole = older.until.saturating_sub(span.begin);
            own.before = whole.saturating_sub(older.time);
            begin = older.until;
        }
        for part in &self.parts {
            if part.begin > begin {
                own.parts.push(Interval {
                    begin,
                    end: part.begin,
                });
            }
            begin = begin.max(part.end);
        }
        if span.end > begin {
            own.parts.push(Interval {
                begin,
                end: span.end,
            });
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(begin: u64, end: u64) -> Interval {
        Interval { begin, end }
    }

    #[test]
    fn own_time_is_around_them() {
        let mut children = Children::default();
        for span in [at(2, 3), at(3, 5), at(7, 7), at(8, 9)] {
            children.push(span, true);
        }
        assert_eq!(children.time, 4);
        let own = children.around(at(1, 10));
        assert_eq!(own.parts, [at(1, 2), at(5, 8), at(9, 10)]);
        assert_eq!(own.before, 0);
        assert_eq!(children.around(at(2, 9)).parts, [at(5, 8)]);
    }

    #[test]
    fn of_very_many_the_older_ones_are_summed_up_however_they_came() {
        let many = 5 * MAX_KEPT_SPANS as u64;
        let spans = || (0..many).map(|number| at(number * 10, number * 10 + 4));
        let mut whole = Children::default();
        spans().for_each(|span| whole.push(span, true));
        let own = whole.around(at(0, many * 10));
        // One before each that is kept, and one after the last.
        assert_eq!(own.parts.len(), MAX_KEPT_SPANS + 1);
        let parts: u64 = own.parts.iter().map(|part| part.len()).sum();
        assert_eq!(own.before + parts, many * 6);
        for piece in [100, MAX_KEPT_SPANS, 3 * MAX_KEPT_SPANS] {
            let mut joined = Children::default();
            let spans: Vec<Interval> = spans().collect();
            for piece in spans.chunks(piece) {
                let mut children = Children::default();
                piece.iter().for_each(|span| children.push(*span, true));
                joined.append(children);
            }
            assert_eq!(joined.time, whole.time);
            let other = joined.around(at(0, many * 10));
            assert_eq!((other.before, &other.parts), (own.before, &own.parts));
        }
    }
}
