//! Reads a trace and matches its spans.

use std::cmp::Reverse;
use std::sync::Arc;

use usdtrec_format::perf::Sample;
use usdtrec_trace::added::added_argument::AddedValues;
use usdtrec_trace::events::order::place::{PlacedBody, SamplePlace};
use usdtrec_trace::events::order::{Window, in_order};
use usdtrec_trace::events::outcome::ReadOutcome;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::pool::Pool;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::{Hit, ParsedHit};
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;

use crate::spans::covers::{Covers, WindowCovers};
use crate::spans::durations::{EndedSpan, MAX_HEAT_GROUPS, MAX_SPAN_GROUPS, PairStats, SlowSpan};
use crate::spans::key::{HitKey, SpanKey};
use crate::spans::matcher::{
    MatchKey, OpenSpans, PendingEnd, Segment, SpanGroupWords, SpanMatcher,
};
use crate::spans::pair::Pair;
use crate::spans::pair_pauses::PairPauses;
use crate::spans::role::Role;
use crate::spans::stack::{Ended, Frame, Totals, UNGROUPED};
use crate::stats::coverage::Interval;
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::key::{Key, KeyWords};
use crate::stats::sketch::{Chosen, Sketch, content_hash};
use crate::stats::timeline::Timeline;

/// How spans are matched and counted.
#[derive(Debug, Default)]
pub(crate) struct SpanOptions {
    /// The key of each pair.
    pub(crate) keys: Vec<SpanKey>,
    /// The keys that spans are grouped by.
    pub(crate) by: Vec<GroupBy>,
    /// Shorter ones do not count, ns.
    pub(crate) min: u64,
    /// Number of the slowest spans to keep.
    pub(crate) slowest: usize,
    /// Time intervals to count spans by, too.
    pub(crate) heat: Option<Timeline>,
    /// Which groups are kept.
    pub(crate) kept: GroupChoice,
    /// Whether it is found in which time spans were open.
    pub(crate) covers: bool,
}

impl SpanOptions {
    /// Maximum number of groups with statistics of their own.
    pub(crate) const fn most_groups(&self) -> usize {
        match self.heat {
            Some(_) => MAX_HEAT_GROUPS,
            None => MAX_SPAN_GROUPS,
        }
    }

    fn pair_stats(&self, pairs: &[Pair]) -> Vec<PairStats> {
        vec![PairStats::new(self.most_groups()); pairs.len()]
    }
}

/// Which groups are kept.
#[derive(Debug, Default)]
pub(crate) enum GroupChoice {
    /// All, up to the maximum.
    #[default]
    All,
    /// No group: only the bounds of the figures of each pair's groups are found.
    Bounded(Vec<Sketch>, BoundedFigure),
    /// Some groups of each pair; all others are one group.
    Chosen(Vec<Chosen>),
}

/// A figure of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundedFigure {
    /// Number of its spans.
    Count,
    /// Sum of their times.
    Sum,
    /// Sum without the time of nested spans.
    Own,
    /// The longest.
    Max,
}

/// The group of all that are not chosen.
pub(crate) const OTHERS: [KeyWords; 1] = [KeyWords::new(u64::MAX, u64::MAX)];

/// A key that spans are grouped by.
#[derive(Clone, Debug)]
pub struct GroupBy {
    /// As it was requested.
    pub name: String,
    pub key: Key,
    /// Whether it is a key of the hit that ends the span, not of the one that begins it.
    pub of_end: bool,
    /// The argument, if both hits have an argument of this name and the question does not say which is meant.
    pub(crate) of_both: Option<String>,
}

impl GroupBy {
    /// A key of the hit that begins the span.
    pub(crate) fn of_begin(key: Key) -> Self {
        Self {
            name: key.name().to_owned(),
            key,
            of_end: false,
            of_both: None,
        }
    }
}

/// The spans of a trace.
#[derive(Debug)]
pub(crate) struct Spans {
    /// The spans of each pair, in the order of the pairs.
    pub(crate) pair_stats: Vec<PairStats>,
    /// Number of begins that were not matched, because too many were open.
    pub(crate) forgotten: u64,
}

/// The result of reading a trace.
#[derive(Debug)]
pub(crate) struct Walked<A> {
    pub(crate) spans: Spans,
    /// The states that samples were added to.
    pub(crate) states: Vec<A>,
    pub(crate) outcome: ReadOutcome,
}

/// A walk over a trace.
#[derive(Debug)]
pub(crate) struct SpanWalk<'s> {
    pub(crate) session: &'s TraceSession,
    pub(crate) filter: &'s SampleFilter,
    pub(crate) pairs: &'s [Pair],
    pub(crate) options: &'s SpanOptions,
    pub(crate) rows: &'s Rows,
    pub(crate) dictionary: &'s Dictionary,
}

/// State of a worker thread.
struct Worker<'s, A> {
    state: A,
    resolver: Resolver<'s>,
    matcher: SpanMatcher<OpenSpan>,
    pair_stats: Vec<PairStats>,
    covers: WindowCovers,
}

/// A span that began.
#[derive(Clone, Debug)]
struct OpenSpan {
    /// Whether it is selected: those that are not must be matched all the same.
    asked: bool,
    /// What it is grouped by; words of keys of the end are empty.
    group: Box<[KeyWords]>,
    place: SamplePlace,
    /// What its begin gets besides its own arguments.
    added: Option<Arc<AddedValues>>,
}

/// What remains of a window to be matched across windows.
struct WindowRest {
    segments: Vec<Segment<OpenSpan>>,
    /// When the spans were that are matched.
    covers: WindowCovers,
    /// Samples that belong to no event.
    unknown: u64,
}

impl<'s> SpanWalk<'s> {
    /// Matches all spans. `add` gets every sample that the filter asks for, in any order, with one of the states that `make` makes.
    pub(crate) fn run<A: Send>(
        &self,
        make: impl Fn() -> A + Sync,
        add: impl Fn(&mut A, &mut Resolver<'s>, SampleTarget, &Sample<'_>) + Sync,
        asked: impl Fn(usize) -> bool,
    ) -> Walked<A> {
        let roles = Role::from_pairs(self.pairs, self.session.events().events.len());
        // Ends of a filtered-out beginning are still its ends: only then does each other one find its own.
        let relaxed = self.filter.relaxed(|event| {
            asked(event) || roles.get(event).is_some_and(|roles| !roles.is_empty())
        });
        let relaxed = match self.session.is_whole() {
            true => relaxed.of_all_times(),
            false => relaxed,
        };
        let hashing = Dictionary::hashing();
        let pauses = PairPauses::new(self.session, self.pairs);
        let workers = Pool::default();
        let show = |window: Window<'_>| {
            let mut worker = workers.take().unwrap_or_else(|| Worker {
                state: make(),
                resolver: Resolver::new(self.session),
                matcher: SpanMatcher::new(self.options.covers, pauses.clone()),
                pair_stats: self.options.pair_stats(self.pairs),
                covers: WindowCovers::default(),
            });
            let left = self.window(&mut worker, &roles, &hashing, window, &add);
            workers.put(worker);
            left
        };
        let mut across = Across {
            walk: self,
            open: OpenSpans::new(self.options.covers, pauses.clone()),
            pair_stats: self.options.pair_stats(self.pairs),
            covers: Covers::new(self.pairs.len()),
            unknown: 0,
        };
        let mut by = self.options.by.iter();
        let calls = by.find_map(|by| by.key.calls());
        let done = in_order(self.session, &relaxed, calls, show, |left| {
            across.take(left);
            Ok::<_, std::convert::Infallible>(())
        });
        let mut outcome = done.unwrap_or_default();
        outcome.unknown += across.unknown;
        let mut states = Vec::new();
        for worker in workers.take_all() {
            for (all, stats) in across.pair_stats.iter_mut().zip(worker.pair_stats) {
                all.merge(stats, self.options.slowest);
            }
            states.push(worker.state);
        }
        let mut spans = across.finish();
        spans.pair_stats.iter_mut().for_each(PairStats::settle);
        Walked {
            spans,
            states,
            outcome,
        }
    }

    /// Matches what is in a window, and says what is left.
    fn window<A>(
        &self,
        worker: &mut Worker<'s, A>,
        roles: &[Vec<Role>],
        hashing: &Dictionary,
        window: Window<'_>,
        add: &impl Fn(&mut A, &mut Resolver<'s>, SampleTarget, &Sample<'_>),
    ) -> WindowRest {
        let mut unknown = 0;
        for number in 0..window.sample_count() {
            let PlacedBody { body, place } = window.get(number).unwrap_or_default();
            let Some(ParsedHit { target, sample }) = self.session.sample(body) else {
                unknown += 1;
                continue;
            };
            let resolver = &mut worker.resolver;
            let context = window.context(number);
            resolver.set_context(context);
            let asked = self.filter.event(target.event as usize)
                && (self.filter.is_simple() || self.filter.late(target, &sample, resolver));
            let is_in_time = self.filter.time().contains(sample.time);
            if asked && is_in_time {
                add(&mut worker.state, resolver, target, &sample);
            }
            let hit = Hit {
                target,
                sample: &sample,
            };
            let mut unkeyed = None;
            for role in roles.get(target.event as usize).into_iter().flatten() {
                let Some(stats) = worker.pair_stats.get_mut(role.pair as usize) else {
                    continue;
                };
                let Some(HitKey { words, marks }) = self.key(role.pair, resolver, hit, hashing)
                else {
                    // An event that ends a span and begins the next is one hit.
                    if unkeyed.replace(role.pair) != Some(role.pair) {
                        stats.counts.unkeyed += u64::from(is_in_time);
                    }
                    continue;
                };
                let key = MatchKey {
                    pair: role.pair,
                    words,
                };
                if role.begins {
                    let group = self.begun_group(role.pair, resolver, hit, hashing);
                    let begun = OpenSpan {
                        asked: asked || self.begins_unasked(target, &sample, resolver),
                        group: group.words,
                        place,
                        added: context.added.cloned(),
                    };
                    let mut frame = Frame::new(sample.time, marks, begun);
                    frame.group = group.hash;
                    worker.matcher.begin(key, frame);
                } else {
                    let end = PendingEnd {
                        time: sample.time,
                        marks,
                        asked: self.filter.ends(target, &sample, resolver),
                        group: self.end_group(resolver, hit, hashing),
                    };
                    let mut counting = Counting {
                        walk: self,
                        pair: role.pair as usize,
                        stats,
                        covers: &mut worker.covers,
                        end: &end,
                    };
                    if !worker.matcher.end(key, end.time, marks, &mut counting) {
                        worker.matcher.leave(key, end);
                    }
                }
            }
        }
        WindowRest {
            segments: worker.matcher.take(),
            covers: std::mem::take(&mut worker.covers),
            unknown,
        }
    }

    /// Whether a span, of which a part must be in the time that is selected, counts.
    fn overlaps(&self, begin: u64, end: u64) -> bool {
        let time = self.filter.time();
        begin <= time.last && end >= time.first
    }

    /// Whether a beginning counts although its event is not among those requested, as with `--span a..b -e b`.
    fn begins_unasked(
        &self,
        target: SampleTarget,
        sample: &Sample<'_>,
        resolver: &mut Resolver<'s>,
    ) -> bool {
        !self.filter.event(target.event as usize)
            && (self.filter.is_simple() || self.filter.late(target, sample, resolver))
    }

    #[inline]
    fn key(
        &self,
        pair: u32,
        resolver: &mut Resolver<'s>,
        hit: Hit<'_>,
        hashing: &Dictionary,
    ) -> Option<HitKey> {
        let key = self.options.keys.get(pair as usize)?;
        key.hit_key(self.rows, resolver, hit, hashing)
    }

    /// Whether a part of what spans are grouped by is only known when they end.
    fn groups_by_end(&self) -> bool {
        self.options.by.iter().any(|by| by.of_end)
    }

    /// The part of the group of a span that its begin has, and its hash.
    #[inline]
    fn begun_group(
        &self,
        pair: u32,
        resolver: &mut Resolver<'s>,
        hit: Hit<'_>,
        hashing: &Dictionary,
    ) -> SpanGroupWords {
        if self.options.by.is_empty() {
            return SpanGroupWords {
                words: Box::default(),
                hash: UNGROUPED,
            };
        }
        let hash = |words: &[KeyWords]| content_hash(words).max(UNGROUPED + 1);
        if let GroupChoice::All = self.options.kept {
            let words = self.group(false, resolver, hit, self.dictionary);
            let hash = hash(&words);
            return SpanGroupWords { words, hash };
        }
        let words = self.group(false, resolver, hit, hashing);
        let hash = hash(&words);
        let GroupChoice::Chosen(chosen) = &self.options.kept else {
            return SpanGroupWords { words, hash };
        };
        let chosen = chosen.get(pair as usize);
        if self.groups_by_end() || chosen.is_some_and(|chosen| chosen.has(hash)) {
            let words = self.group(false, resolver, hit, self.dictionary);
            return SpanGroupWords { words, hash };
        }
        SpanGroupWords {
            words: OTHERS.into(),
            hash: content_hash(OTHERS),
        }
    }

    /// The part of the group of a span that only its end has.
    #[inline]
    fn end_group(
        &self,
        resolver: &mut Resolver<'s>,
        hit: Hit<'_>,
        hashing: &Dictionary,
    ) -> SpanGroupWords {
        if !self.groups_by_end() {
            return SpanGroupWords::default();
        }
        let words = self.group(true, resolver, hit, self.dictionary);
        let hash = match self.options.kept {
            GroupChoice::All => 0,
            _ => content_hash(self.group(true, resolver, hit, hashing)),
        };
        SpanGroupWords { words, hash }
    }

    /// The keys of the begin or of the end by which a span is grouped.
    #[inline]
    fn group(
        &self,
        of_end: bool,
        resolver: &mut Resolver<'s>,
        Hit { target, sample }: Hit<'_>,
        dictionary: &Dictionary,
    ) -> Box<[KeyWords]> {
        let words = self.options.by.iter().map(|by| match by.of_end == of_end {
            true => by
                .key
                .words(self.rows, resolver, target, sample, dictionary),
            false => KeyWords::default(),
        });
        words.collect()
    }
}

/// Counts the spans that end.
struct Counting<'c, 's> {
    walk: &'c SpanWalk<'s>,
    pair: usize,
    stats: &'c mut PairStats,
    covers: &'c mut WindowCovers,
    end: &'c PendingEnd,
}

impl Totals<OpenSpan> for Counting<'_, '_> {
    fn unfinished(&mut self, frame: &Frame<OpenSpan>, until: u64) {
        if frame.what.asked && self.walk.overlaps(frame.time, until) {
            self.stats.counts.open += 1;
            self.stats.counts.unfinished += 1;
        }
    }

    fn paused(&mut self, frame: Frame<OpenSpan>, until: u64) {
        if !frame.what.asked {
            return;
        }
        let counts = &mut self.stats.counts;
        let is_paused = u64::from(self.walk.overlaps(frame.time, until));
        counts.paused_begins += is_paused;
        if let Some(next) = frame.next {
            counts.followed_before_pause.paused += is_paused;
            counts.followed_before_pause.followed +=
                u64::from(self.walk.overlaps(frame.time, next));
        }
    }

    #[inline]
    fn finished(&mut self, frame: &mut Frame<OpenSpan>, Ended { duration, own }: Ended) {
        let options = self.walk.options;
        self.stats.counts.nesting.add(frame);
        let span = Interval {
            begin: frame.time,
            end: frame.time.saturating_add(duration),
        };
        if !frame.what.asked || !self.end.asked || !self.walk.overlaps(span.begin, span.end) {
            return;
        }
        self.stats.counts.ended += 1;
        if duration < options.min {
            return;
        }
        let whole = self.whole_group(frame);
        let ended = EndedSpan {
            duration,
            own,
            interval: options.heat.map(|heat| heat.place(frame.time) as u32),
        };
        let group = match whole.is_empty() {
            true => &frame.what.group,
            false => &whole,
        };
        match &options.kept {
            GroupChoice::Bounded(sketches, figure) => {
                let figure = match figure {
                    BoundedFigure::Count => 1,
                    BoundedFigure::Own => own,
                    BoundedFigure::Sum | BoundedFigure::Max => duration,
                };
                if let Some(sketch) = sketches.get(self.pair) {
                    sketch.add(self.hash(frame), figure);
                }
                self.stats.add(ended, &[]);
            }
            _ => {
                let is_kept = self.stats.add(ended, group);
                if options.covers {
                    let has_own = frame.children.time > 0;
                    let own = has_own.then(|| frame.children.around(span));
                    let group = if is_kept { &**group } else { &[] };
                    self.covers.add(self.pair, group, span, own.as_ref());
                }
            }
        }
        if options.slowest > 0 {
            let slow = SlowSpan {
                duration,
                time: Reverse(frame.time),
                begin: Reverse(frame.what.place),
                added: frame.what.added.clone(),
            };
            self.stats.keep(slow, options.slowest);
        }
    }
}

impl Counting<'_, '_> {
    /// The hash of a span's group, the same in every run.
    fn hash(&self, frame: &Frame<OpenSpan>) -> u64 {
        match self.end.group.words.is_empty() {
            true => frame.group,
            false => content_hash((frame.group, self.end.group.hash)),
        }
    }

    /// The group of a span, where its end has a part of it; else empty.
    fn whole_group(&self, frame: &Frame<OpenSpan>) -> Box<[KeyWords]> {
        let end = &self.end.group.words;
        if end.is_empty() {
            return Box::default();
        }
        let options = self.walk.options;
        if let GroupChoice::Chosen(chosen) = &options.kept
            && let Some(chosen) = chosen.get(self.pair)
            && !chosen.has(self.hash(frame))
        {
            return OTHERS.into();
        }
        let begun = &frame.what.group;
        let both = begun.iter().zip(end).zip(&options.by);
        both.map(|((&begun, &end), by)| if by.of_end { end } else { begun })
            .collect()
    }
}

/// The spans that are matched across windows.
struct Across<'w, 's> {
    walk: &'w SpanWalk<'s>,
    open: OpenSpans<OpenSpan>,
    pair_stats: Vec<PairStats>,
    covers: Covers,
    unknown: u64,
}

impl Across<'_, '_> {
    /// Matches the rest of a window. To be called for one window after the other.
    fn take(&mut self, mut left: WindowRest) {
        self.unknown += left.unknown;
        for mut segment in left.segments {
            let pair = segment.key.pair as usize;
            let Some(stats) = self.pair_stats.get_mut(pair) else {
                continue;
            };
            let end = segment.end.take();
            let none = PendingEnd::default();
            let mut counting = Counting {
                walk: self.walk,
                pair,
                stats,
                covers: &mut left.covers,
                end: end.as_ref().unwrap_or(&none),
            };
            let taken = self.open.take(segment, end.as_ref(), &mut counting);
            let mut end = end.iter();
            if let Some(end) =
                end.find(|end| taken.unmatched && self.walk.overlaps(end.time, end.time))
            {
                match self.open.pauses.begin_before(pair as u32, end.time) {
                    true => stats.counts.paused_ends += 1,
                    false => stats.counts.unmatched += 1,
                }
            }
            let keys = &self.walk.options.keys;
            if keys.get(pair).is_some_and(SpanKey::is_coarse) {
                stats.counts.depth = stats.counts.depth.max(taken.depth as u64);
            }
        }
        self.covers.take(left.covers);
        if self.covers.are_many() {
            self.covers.join(self.open_times());
        }
    }

    /// For each pair, the times in the past at which spans of it may still be found to have begun or ended.
    fn open_times(&self) -> Vec<Vec<u64>> {
        let mut times = vec![Vec::new(); self.walk.pairs.len()];
        for (key, frame) in self.open.frames() {
            if let Some(times) = times.get_mut(key.pair as usize) {
                times.push(frame.time);
                times.extend(frame.children.times());
            }
        }
        times
    }

    fn finish(mut self) -> Spans {
        let walk = self.walk;
        let flat = walk
            .pairs
            .iter()
            .zip(&mut self.pair_stats)
            .map(|(pair, stats)| {
                let is_flat = stats.counts.nesting.is_flat(pair, walk.session);
                if is_flat {
                    // What was given up is not open beside what followed.
                    stats.counts.depth = stats.counts.depth.min(1);
                    stats.counts.settle_followed();
                }
                is_flat
            });
        let flat: Vec<bool> = flat.collect();
        for (key, frame) in self.open.frames() {
            let pair = key.pair as usize;
            let next = frame.next.filter(|_| flat.get(pair) == Some(&true));
            let pause = match next {
                Some(_) => None,
                None => self.open.pauses.known_until(key.pair, frame.time, u64::MAX),
            };
            let until = next.or(pause);
            if let Some(stats) = self.pair_stats.get_mut(pair)
                && frame.what.asked
                && walk.overlaps(frame.time, until.unwrap_or(u64::MAX))
            {
                if pause.is_some() {
                    stats.counts.paused_begins += 1;
                    continue;
                }
                stats.counts.open += 1;
                stats.counts.unfinished += u64::from(next.is_some());
                stats.counts.followed += u64::from(next.is_some());
            }
        }
        for (stats, covers) in self.pair_stats.iter_mut().zip(&self.covers.pairs) {
            stats.cover(covers);
        }
        Spans {
            pair_stats: self.pair_stats,
            forgotten: self.open.forgotten,
        }
    }
}
