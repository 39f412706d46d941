//! The rule by which ends find their begins, wherever spans are matched: in reports, in streams, and for triggers.
//!
//! Hits that may belong together have a key in common: their thread, or what a schema or the user says. Under one key, of the open begins that are
//! not later than it, an end takes
//! 1. the newest one with equal [`Marks`]: those of the arguments in which begin and end must agree;
//! 2. else, if a value is not known on one of both sides, the newest one without a known difference;
//! 3. else none.
//!
//! What began after the begin that is taken has no end. Where spans need not nest ([`SpanSides::cross`](super::SpanSides::cross), and by the id that a
//! whole file shows), the marks are a part of the key instead.
//! Names say which arguments must agree ([`live_agreement`](super::live_agreement)); a reader of a whole file finds the integer that behaves as an id
//! besides, which nobody knows while hits come.
//!
//! Programs in the kernel (`record/attach/src/engine/bpf/spans/`) have the rule in code of their own, for [`PROGRAM_LEVELS`] open spans of a key; their
//! tests compare them with this file, by random hits.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use super::marks::Marks;

/// Maximum number of open begins of all keys: of more, the older half is dropped, which is less likely to end.
const MAX_OPEN: usize = 1 << 20;
/// Maximum number of open begins of one key in programs, whose loops are unrolled.
pub const PROGRAM_LEVELS: u32 = 16;
/// Number of the newest begins that are compared one by one. Older ones are found by an index, if all values are known.
const NEAR: usize = 64;
/// No begin.
const NONE: u32 = u32::MAX;

/// A begin that has no end yet.
pub trait OpenBegin: Sized {
    /// When it was, ns.
    fn time(&self) -> u64;

    /// The marks of its arguments.
    fn marks(&self) -> Marks;

    /// Becomes another begin, of which it uses the memory again.
    #[inline(always)]
    fn replace(&mut self, new: Self) {
        *self = new;
    }

    /// Gives back memory that the next one would not use.
    fn release(&mut self) {}
}

/// A begin of which nothing else is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainBegin {
    /// When it was, ns.
    pub time: u64,
    /// The marks of its arguments.
    pub marks: Marks,
}

impl OpenBegin for PlainBegin {
    fn time(&self) -> u64 {
        self.time
    }

    fn marks(&self) -> Marks {
        self.marks
    }
}

/// The open begins of one key.
#[derive(Debug)]
pub struct OpenBegins<B> {
    /// The open begins, the oldest first, then unused ones whose memory is reused.
    begins: Vec<B>,
    /// Number of those that are open.
    len: usize,
    index: Option<Box<MarkIndex>>,
}

/// The newest begin of each mark.
#[derive(Debug, Default)]
struct MarkIndex {
    newest: HashMap<Marks, u32>,
    /// For each begin, the next older one of the same mark.
    older: Vec<u32>,
}

impl MarkIndex {
    fn from_marks(marks: impl Iterator<Item = Marks>) -> Box<Self> {
        let mut index = Box::<Self>::default();
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

    /// The places of the begins of a mark, the newest first.
    fn places(&self, marks: Marks) -> impl Iterator<Item = usize> {
        let older = |place: &usize| self.older.get(*place).map(|older| *older as usize);
        let newest = self.newest.get(&marks).map(|place| *place as usize);
        std::iter::successors(newest, older).take_while(|place| *place != NONE as usize)
    }
}

impl<B> Default for OpenBegins<B> {
    fn default() -> Self {
        Self {
            begins: Vec::new(),
            len: 0,
            index: None,
        }
    }
}

impl<B: OpenBegin> OpenBegins<B> {
    /// Number of open begins.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no begin is open.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them, the oldest first.
    pub fn as_slice(&self) -> &[B] {
        self.begins.get(..self.len).unwrap_or_default()
    }

    /// The same, to change what does not order or match them.
    pub fn as_mut_slice(&mut self) -> &mut [B] {
        self.begins.get_mut(..self.len).unwrap_or_default()
    }

    /// The newest one.
    pub fn newest_mut(&mut self) -> Option<&mut B> {
        self.begins.get_mut(self.len.checked_sub(1)?)
    }

    /// Adds a begin. If others began after it, as where a recorder that waits for its end writes its begin late, returns its place before them.
    // Inlined, it is written once, where it stays: a begin may be larger than two cache lines.
    #[inline(always)]
    pub fn push(&mut self, begin: B) -> Option<usize> {
        let (time, marks) = (begin.time(), begin.marks());
        let newest = self.newest_mut();
        let is_late = newest.is_some_and(|newest| newest.time() > time);
        match self.begins.get_mut(self.len) {
            Some(closed) => closed.replace(begin),
            None => self.push_new(begin),
        }
        self.len += 1;
        if is_late {
            return self.move_last();
        }
        if let Some(index) = &mut self.index {
            index.push(marks);
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn push_new(&mut self, begin: B) {
        self.begins.push(begin);
    }

    /// Moves the last begin before those that are later.
    #[cold]
    fn move_last(&mut self) -> Option<usize> {
        self.index = None;
        self.begins.truncate(self.len);
        let begin = self.begins.pop()?;
        let time = begin.time();
        let place = self.begins.partition_point(|known| known.time() <= time);
        self.begins.insert(place, begin);
        Some(place)
    }

    /// The begin that an end takes, by its place.
    pub fn find(&mut self, marks: Marks, time: u64) -> Option<usize> {
        let equal = self.find_equal(marks, time);
        equal.or_else(|| self.find_compatible(marks, time))
    }

    /// The newest begin with equal marks that is not later than an end.
    #[inline]
    pub fn find_equal(&mut self, marks: Marks, time: u64) -> Option<usize> {
        let last = self.len.checked_sub(1)?;
        let newest = self.begins.get(last)?;
        if newest.marks() == marks && newest.time() <= time {
            return Some(last);
        }
        self.find_older(marks, time)
    }

    fn find_older(&mut self, marks: Marks, time: u64) -> Option<usize> {
        let begins = self.begins.get(..self.len).unwrap_or_default();
        let is_own = |begin: &B| begin.marks() == marks && begin.time() <= time;
        let near = begins.iter().rev().take(NEAR).position(is_own);
        if near.is_some() || begins.len() <= NEAR {
            return near.map(|near| begins.len() - 1 - near);
        }
        let make = || MarkIndex::from_marks(begins.iter().map(OpenBegin::marks));
        let index = self.index.get_or_insert_with(make);
        let mut places = index.places(marks);
        places.find(|place| begins.get(*place).is_some_and(is_own))
    }

    /// The newest of the begins near the end of which a value is not known there or here, and no known one differs.
    fn find_compatible(&self, marks: Marks, time: u64) -> Option<usize> {
        let newest = self.as_slice().iter().enumerate().rev().take(NEAR);
        let mut fits = newest.filter(|(_, begin)| {
            let own = begin.marks();
            begin.time() <= time
                && (marks.is_partial() || own.is_partial())
                && own.is_compatible(marks)
        });
        fits.next().map(|(at, _)| at)
    }

    /// The newest begin that is not later than an end, which takes it where no argument must agree.
    pub fn find_newest(&self, time: u64) -> Option<usize> {
        let mut begins = self.as_slice().iter();
        begins.rposition(|begin| begin.time() <= time)
    }

    /// Whether the value of the end that takes it, which is watched and known, is that of an older begin and of no newer one.
    pub fn is_of_older(&mut self, marks: Marks, time: u64, newest: usize) -> bool {
        let equal = self.find_equal(marks, time);
        !marks.lacks_first() && equal.is_some_and(|equal| equal < newest)
    }

    /// Ends the span of a begin: those that began after it, and not after its end, are unfinished. Returns when it began, ns.
    pub fn close(&mut self, at: usize, time: u64) -> Option<u64> {
        self.index = None;
        self.begins.truncate(self.len);
        let later = self.begins.partition_point(|begin| begin.time() <= time);
        let began = self.begins.get(at)?.time();
        self.begins.drain(at..later.max(at + 1));
        self.len = self.begins.len();
        Some(began)
    }

    /// Drops the newest begin. Its memory stays.
    #[inline]
    pub fn drop_newest(&mut self) {
        let Some(newest) = self.len.checked_sub(1) else {
            return;
        };
        if let Some(begin) = self.begins.get_mut(newest) {
            begin.release();
            if let Some(index) = &mut self.index {
                index.pop(begin.marks());
            }
        }
        self.len = newest;
        if self.len <= NEAR / 2 {
            self.index = None;
        }
    }

    /// Takes out the oldest begins, up to the first that `is_taken` is not true for.
    #[cold]
    pub fn take_oldest(&mut self, is_taken: impl Fn(&B) -> bool) -> Vec<B> {
        let oldest = self.as_slice().iter();
        let taken = oldest.take_while(|begin| is_taken(begin)).count();
        if taken > 0 {
            self.index = None;
        }
        self.len -= taken;
        self.begins.drain(..taken).collect()
    }

    /// Takes out all of them, the oldest first.
    pub fn take(&mut self) -> Vec<B> {
        self.begins.truncate(self.len);
        let begins = std::mem::take(&mut self.begins);
        *self = Self::default();
        begins
    }
}

/// The open begins of all keys.
#[derive(Debug)]
pub struct OpenByKey<K, B, S> {
    open: HashMap<K, OpenBegins<B>, S>,
    count: usize,
    /// Maximum number of open begins.
    most: usize,
    forgotten: u64,
}

impl<K: Copy + Eq + Hash, B: OpenBegin, S: BuildHasher + Default> Default for OpenByKey<K, B, S> {
    fn default() -> Self {
        Self::bounded(MAX_OPEN)
    }
}

impl<K: Copy + Eq + Hash, B: OpenBegin, S: BuildHasher + Default> OpenByKey<K, B, S> {
    /// At most so many, and at most those of a whole file.
    pub fn bounded(most: usize) -> Self {
        Self {
            open: HashMap::default(),
            count: 0,
            most: most.min(MAX_OPEN),
            forgotten: 0,
        }
    }

    /// Works on the begins of a key.
    pub fn with<R>(&mut self, key: K, work: impl FnOnce(&mut OpenBegins<B>) -> R) -> R {
        let open = self.open.entry(key).or_default();
        let before = open.len();
        let result = work(open);
        let after = open.len();
        self.count = self.count - before + after;
        if after == 0 {
            self.open.remove(&key);
        }
        result
    }

    /// Works on the begins of each key.
    pub fn with_each(&mut self, mut work: impl FnMut(K, &mut OpenBegins<B>)) {
        self.open.retain(|key, open| {
            work(*key, open);
            !open.is_empty()
        });
        self.count = self.open.values().map(OpenBegins::len).sum();
    }

    /// Whether a begin of a key is open.
    pub fn has(&self, key: &K) -> bool {
        self.open.contains_key(key)
    }

    /// All begins.
    pub fn iter(&self) -> impl Iterator<Item = (K, &B)> {
        let all = self.open.iter();
        all.flat_map(|(key, open)| open.as_slice().iter().map(|begin| (*key, begin)))
    }

    /// The same, to change what does not order or match them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut B> {
        self.open.values_mut().flat_map(OpenBegins::as_mut_slice)
    }

    /// Whether this number of further begins exceeds the maximum.
    pub const fn is_full(&self, more: usize) -> bool {
        self.count + more > self.most
    }

    /// Drops the older half of the begins.
    pub fn forget_older(&mut self) {
        let mut times: Vec<u64> = self.iter().map(|(_, begin)| begin.time()).collect();
        let half = times.len() / 2;
        if half == 0 {
            return;
        }
        let (_, &mut newest, _) = times.select_nth_unstable(half - 1);
        let before = self.count;
        self.with_each(|_, open| {
            open.take_oldest(|begin| begin.time() <= newest);
        });
        self.forgotten += (before - self.count) as u64;
    }

    /// Number of begins that were dropped because too many were open.
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Forgets all begins.
    pub fn clear(&mut self) {
        self.open.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use super::*;

    fn random(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % below
        }
    }

    /// The rule, begin by begin.
    fn expected(open: &[PlainBegin], marks: Marks, time: u64) -> Option<usize> {
        let known = |at: &usize| open[*at].time <= time;
        let newest = || (0..open.len()).rev().filter(known);
        let equal = newest().find(|at| open[*at].marks == marks);
        equal.or_else(|| {
            let near = (0..open.len()).rev().take(NEAR).filter(known);
            let mut near = near.filter(|at| {
                let own = open[*at].marks;
                own.is_compatible(marks) && (own.is_partial() || marks.is_partial())
            });
            near.next()
        })
    }

    /// Begins and ends of one key at random: nested, overlapping, of equal and of unknown values, without an end, read late, and deep.
    #[test]
    fn ends_take_the_begins_of_the_rule() {
        for seed in 1..40 {
            let mut random = random(seed);
            let (values, begins) = (1 + random(200), 45 + random(20));
            let late = random(2) * 8;
            let mut open = OpenBegins::default();
            let mut model: Vec<PlainBegin> = Vec::new();
            for hit in 100..3000 {
                let time = hit - random(late + 1);
                let marks = match random(10) {
                    0 => Marks::unknown(1),
                    _ => Marks::from_words([1 + random(values), 1, 1, 1]),
                };
                if random(100) < begins {
                    let begin = PlainBegin { time, marks };
                    let place = model.partition_point(|known| known.time <= time);
                    model.insert(place, begin);
                    let is_late = place + 1 < model.len();
                    assert_eq!(open.push(begin), is_late.then_some(place));
                } else {
                    let found = open.find(marks, time);
                    assert_eq!(found, expected(&model, marks, time), "{seed} {hit}");
                    let Some(at) = found else {
                        continue;
                    };
                    if late > 0 {
                        assert_eq!(open.close(at, time), Some(model[at].time));
                        model = [&model[..at], &model[at + 1..]].concat();
                        let unfinished = |begin: &PlainBegin| begin.time > time;
                        let later = model.split_off(at).into_iter().filter(unfinished);
                        model.extend(later);
                    } else {
                        (at..open.len()).for_each(|_| open.drop_newest());
                        model.truncate(at);
                    }
                }
                assert_eq!(open.as_slice(), model, "{seed} {hit}");
            }
        }
    }

    #[test]
    fn memory_for_open_begins_is_bounded() {
        let mut open = OpenByKey::<u64, PlainBegin, RandomState>::bounded(1000);
        for time in 0..10_000 {
            if open.is_full(1) {
                open.forget_older();
            }
            let marks = Marks::default();
            open.with(time % 7, |open| open.push(PlainBegin { time, marks }));
            assert!(open.iter().count() <= 1000);
        }
        let newest = open.iter().map(|(_, begin)| begin.time).min();
        assert!(newest >= Some(9000), "{newest:?}");
        assert_eq!(open.forgotten() + open.iter().count() as u64, 10_000);
        let found = open.with(9999 % 7, |open| open.find(Marks::default(), 10_000));
        assert!(found.is_some());
        open.clear();
        assert!(!open.has(&1) && !open.is_full(1000) && open.is_full(1001));
    }
}
