//! Matching begins and ends of one window, and across windows.
//!
//! A window matches what it can be sure of: an end whose begin is in the window with nothing doubtful above it. Everything else it
//! leaves, key by key in the order of time, as [`Segment`]s, to be matched one window after the other. The result is that of matching
//! hit by hit, however windows are cut.
//!
//! A pause of its probes ends the segment of a key: what is open then is matched with nothing after it. Whether a pause is between two hits depends on
//! their times alone.

use std::sync::Arc;

use foldhash::HashMap;
use foldhash::fast::RandomState;
use usdtrec_format::HitWaits;
use usdtrec_format::spans::{Marks, OpenByKey};
use usdtrec_trace::added::added_argument::AddedValues;

use crate::spans::pair_pauses::PairPauses;
use crate::spans::stack::{Base, Close, Frame, Stack, Totals, add_base, begin, close, outer};
use crate::spans::waits::Wait;
use crate::stats::keys::key::KeyWords;

/// Number of frames for which a lane keeps its memory from window to window.
const KEPT: usize = 128;

/// What a span is matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MatchKey {
    /// Number of the pair of probes.
    pub(crate) pair: u32,
    /// The thread, the process, or values.
    pub(crate) words: KeyWords,
}

/// An end whose begin may be in an earlier window.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingEnd {
    /// ns.
    pub(crate) time: u64,
    pub(crate) marks: Marks,
    /// How long its thread has waited.
    pub(crate) waits: HitWaits,
    /// Whether a span that it ends is selected, as far as it says.
    pub(crate) asked: bool,
    /// Whether it is counted as an end, with or without a begin: its own process, thread, CPU and name are selected, too.
    pub(crate) counts: bool,
    /// The part of its group that only the end has.
    pub(crate) group: SpanGroupWords,
    /// What it gets besides its own arguments.
    pub(crate) added: Option<Arc<AddedValues>>,
}

/// The part of the group of a span that one of its two hits has.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpanGroupWords {
    pub(crate) words: Box<[KeyWords]>,
    /// Hash; the same in every run.
    pub(crate) hash: u64,
}

/// The unmatched begins and ends of a key: up to an end that the window could not match, or up to the end of the window.
#[derive(Debug)]
pub struct Segment<T> {
    pub(crate) key: MatchKey,
    /// Maximum number of spans that began in it and were open at once.
    pub(crate) rise: usize,
    /// What ended in it, and what began first.
    pub(crate) base: Base,
    /// Spans that began in it and are open, the oldest first.
    pub(crate) begun: Vec<Frame<T>>,
    /// Comes last.
    pub(crate) end: Option<PendingEnd>,
}

impl<T> Segment<T> {
    /// Time of the first hit, ns; `None` without any.
    pub(crate) fn first(&self) -> Option<u64> {
        let begun = self.begun.first().map(|frame| frame.time);
        let end = self.end.as_ref().map(|end| end.time);
        [self.base.next, begun, end].into_iter().flatten().min()
    }

    /// The same segment with something else that is known of its begins.
    pub(crate) fn map<U>(self, mut what: impl FnMut(T) -> U) -> Segment<U> {
        let begun = self.begun.into_iter();
        Segment {
            key: self.key,
            rise: self.rise,
            base: self.base,
            begun: begun.map(|frame| frame.map(&mut what)).collect(),
            end: self.end,
        }
    }
}

/// Spans of one window. Its memory is used again.
#[derive(Debug)]
pub(crate) struct SpanMatcher<T> {
    lanes: Lanes<T>,
    segments: Vec<Segment<T>>,
    pauses: PairPauses,
}

/// The open spans of a key in a window.
#[derive(Debug)]
struct Lane<T> {
    key: MatchKey,
    stack: Stack<T>,
    rise: usize,
    base: Base,
    /// Time of its latest hit, ns; not used if there are no pauses.
    latest: u64,
}

/// Number of lanes that are found without a lookup of their key.
const NEAR: usize = 16;

/// The lanes of all keys of a window.
#[derive(Debug)]
struct Lanes<T> {
    /// Lanes in use, then lanes whose memory is used again.
    all: Vec<Lane<T>>,
    used: usize,
    /// The place of each key's lane.
    places: HashMap<MatchKey, usize>,
    /// The place last used of the keys whose pair and thread end in the same bits; few threads are at work at once.
    near: [usize; NEAR],
    keeps_parts: bool,
}

impl<T> Lanes<T> {
    #[inline]
    fn lane(&mut self, key: MatchKey) -> &mut Lane<T> {
        let slot = (key.words.word as usize).wrapping_add(key.pair as usize * 5) % NEAR;
        let near = self.near[slot];
        let place = if near < self.used && self.all[near].key == key {
            near
        } else {
            self.find(key)
        };
        self.near[slot] = place;
        &mut self.all[place]
    }

    fn find(&mut self, key: MatchKey) -> usize {
        let (all, used) = (&mut self.all, &mut self.used);
        *self.places.entry(key).or_insert_with(|| {
            match all.get_mut(*used) {
                Some(lane) => lane.key = key,
                None => all.push(Lane {
                    key,
                    stack: Stack::default(),
                    rise: 0,
                    base: Base::default(),
                    latest: 0,
                }),
            }
            *used += 1;
            *used - 1
        })
    }
}

impl<T> Lane<T> {
    /// Ends the segment here.
    fn cut(&mut self, end: Option<PendingEnd>) -> Option<Segment<T>> {
        let begun = if self.stack.is_empty() {
            Vec::new()
        } else {
            self.stack.take()
        };
        let base = std::mem::take(&mut self.base);
        let rise = std::mem::take(&mut self.rise);
        let any = rise > 0 || end.is_some() || base.children.have_waits();
        any.then_some(Segment {
            key: self.key,
            rise,
            base,
            begun,
            end,
        })
    }
}

impl<T> SpanMatcher<T> {
    /// Without spans. With `keeps_parts`, spans know when the spans within them were.
    pub(crate) fn new(keeps_parts: bool, pauses: PairPauses) -> Self {
        Self {
            lanes: Lanes {
                all: Vec::new(),
                used: 0,
                places: HashMap::default(),
                near: [0; NEAR],
                keeps_parts,
            },
            segments: Vec::new(),
            pauses,
        }
    }

    /// Ends the segment of a key if a pause is between its latest hit and one at this time.
    #[cold]
    fn pause(&mut self, key: MatchKey, time: u64) {
        let lane = self.lanes.lane(key);
        let latest = match lane.rise {
            0 => time,
            _ => lane.latest,
        };
        lane.latest = latest.max(time);
        if self.pauses.between(key.pair, latest, time).is_some() {
            self.segments.extend(lane.cut(None));
        }
    }

    /// A span begins.
    #[inline(always)]
    pub(crate) fn begin(&mut self, key: MatchKey, mut frame: Frame<T>) {
        if !self.pauses.is_empty() {
            self.pause(key, frame.time);
        }
        let lane = self.lanes.lane(key);
        let oldest = lane.stack.as_slice().first();
        if oldest.is_none_or(|oldest| oldest.time > frame.time) {
            // It may come late.
            let known = lane.base.next;
            frame.next = known.filter(|known| *known > frame.time);
            lane.base.next = Some(known.map_or(frame.time, |known| known.min(frame.time)));
        }
        begin(&mut lane.stack, frame);
        lane.rise = lane.rise.max(lane.stack.len());
    }

    /// A span ends; `false` if it did not surely begin in this window.
    #[inline]
    pub(crate) fn end(
        &mut self,
        key: MatchKey,
        time: u64,
        marks: Marks,
        waits: HitWaits,
        totals: &mut impl Totals<T>,
    ) -> bool {
        if !self.pauses.is_empty() {
            self.pause(key, time);
        }
        let keeps_parts = self.lanes.keeps_parts;
        let lane = self.lanes.lane(key);
        let Some(at) = lane.stack.find_equal(marks, time) else {
            return false;
        };
        let closed = Close {
            at,
            time,
            waits,
            keeps_parts,
        };
        close(&mut lane.stack, closed, totals, &mut lane.base);
        true
    }

    /// A thread has waited.
    pub(crate) fn wait(&mut self, key: MatchKey, wait: &Wait<'_>) {
        let lane = self.lanes.lane(key);
        outer(&mut lane.stack, &mut lane.base).wait(wait);
    }

    /// Leaves an end, and the open spans of its key, to be matched across windows.
    pub(crate) fn leave(&mut self, key: MatchKey, end: PendingEnd) {
        let segment = self.lanes.lane(key).cut(Some(end));
        self.segments.extend(segment);
    }

    /// The segments that are left to be matched across windows.
    pub(crate) fn take(&mut self) -> Vec<Segment<T>> {
        let lanes = &mut self.lanes;
        let used = lanes.all.iter_mut().take(lanes.used);
        self.segments.extend(used.filter_map(|lane| lane.cut(None)));
        lanes.places.clear();
        lanes.used = 0;
        lanes.all.truncate(KEPT);
        std::mem::take(&mut self.segments)
    }
}

/// The result of matching a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentOutcome {
    /// Maximum number of spans of its key that were open at once.
    pub(crate) depth: usize,
    /// Whether its end found no begin.
    pub(crate) unmatched: bool,
    /// Whether others were open then.
    pub(crate) has_others: bool,
}

/// A span that was open when a pause of its probes began.
#[derive(Debug)]
pub(crate) struct PausedFrame<T> {
    pub(crate) pair: u32,
    pub(crate) frame: Frame<T>,
    /// Up to which it is known to be open, ns.
    pub(crate) until: u64,
}

/// Spans that are open between windows.
#[derive(Debug, Default)]
pub struct OpenSpans<T> {
    open: OpenByKey<MatchKey, Frame<T>, RandomState>,
    keeps_parts: bool,
    pub(crate) pauses: PairPauses,
}

impl<T> OpenSpans<T> {
    /// Without spans. With `keeps_parts`, spans know when the spans within them were.
    pub fn new(keeps_parts: bool, pauses: PairPauses) -> Self {
        Self {
            open: OpenByKey::default(),
            keeps_parts,
            pauses,
        }
    }

    /// The same of at most so many open spans.
    pub(crate) fn bounded(most: usize) -> Self {
        Self {
            open: OpenByKey::bounded(most),
            ..Self::new(false, PairPauses::default())
        }
    }

    /// Takes out the spans of a key that were open when a pause began before a hit at a time.
    #[cold]
    pub(crate) fn pause(&mut self, key: MatchKey, hit: u64, totals: &mut impl Totals<T>) {
        if !self.open.has(&key) {
            return;
        }
        let until = |frame: &Frame<T>| self.pauses.known_until(key.pair, frame.time, hit);
        let is_paused = |frame: &Frame<T>| until(frame).is_some();
        let paused = self.open.with(key, |stack| stack.take_oldest(is_paused));
        for frame in paused {
            if let Some(until) = until(&frame) {
                totals.paused(frame, until);
            }
        }
    }

    /// Matches a segment of a window.
    pub(crate) fn take(
        &mut self,
        segment: Segment<T>,
        end: Option<&PendingEnd>,
        totals: &mut impl Totals<T>,
    ) -> SegmentOutcome {
        if !self.pauses.is_empty() {
            let ended = end.map(|end| end.time);
            let hits = segment.first().into_iter().chain(ended);
            if let Some(first) = hits.min() {
                self.pause(segment.key, first, totals);
            }
        }
        let Segment {
            key,
            rise,
            base,
            begun,
            ..
        } = segment;
        if begun.is_empty() && !self.open.has(&key) {
            return SegmentOutcome {
                depth: rise,
                unmatched: end.is_some(),
                has_others: false,
            };
        }
        if self.open.is_full(begun.len()) {
            self.open.forget_older();
        }
        let keeps_parts = self.keeps_parts;
        self.open.with(key, |stack| {
            let depth = stack.len() + rise;
            add_base(stack, base);
            for frame in begun {
                begin(stack, frame);
            }
            let found = end.and_then(|end| {
                Some(Close {
                    at: stack.find(end.marks, end.time)?,
                    time: end.time,
                    waits: end.waits,
                    keeps_parts,
                })
            });
            if let Some(found) = found {
                close(stack, found, totals, &mut Base::default());
            }
            let unmatched = end.is_some() && found.is_none();
            SegmentOutcome {
                depth,
                unmatched,
                has_others: unmatched && !stack.is_empty(),
            }
        })
    }

    /// Whether this number of further begins exceeds the maximum.
    pub(crate) const fn is_full(&self, more: usize) -> bool {
        self.open.is_full(more)
    }

    /// The open spans.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (MatchKey, &Frame<T>)> {
        self.open.iter()
    }

    /// What is known of the open spans.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.open.iter_mut().map(|frame| &mut frame.what)
    }

    /// Takes out the spans that were open when a pause began before a time, up to which all hits were taken.
    pub(crate) fn take_paused(&mut self, time: u64) -> Vec<PausedFrame<T>> {
        let mut paused = Vec::new();
        self.open.with_each(|key, stack| {
            let until = |frame: &Frame<T>| self.pauses.known_until(key.pair, frame.time, time);
            let frames = stack.take_oldest(|frame| until(frame).is_some());
            paused.extend(frames.into_iter().filter_map(|frame| {
                Some(PausedFrame {
                    pair: key.pair,
                    until: until(&frame)?,
                    frame,
                })
            }));
        });
        paused
    }

    /// Number of begins that were dropped because too many were open.
    pub(crate) const fn forgotten(&self) -> u64 {
        self.open.forgotten()
    }
}
