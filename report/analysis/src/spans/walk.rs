//! Reads a trace and matches its spans.

use usdtrec_format::perf::Sample;
use usdtrec_trace::events::order::place::PlacedBody;
use usdtrec_trace::events::order::{Window, in_order};
use usdtrec_trace::events::outcome::ReadOutcome;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::pool::Pool;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::{Hit, ParsedHit};
use usdtrec_trace::session::hit_context::HitContext;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;

use crate::spans::counting::{Counting, OpenSpan, overlaps};
use crate::spans::covers::{Covers, WindowCovers};
use crate::spans::durations::PairStats;
use crate::spans::key::{HitKey, SpanKey};
use crate::spans::matcher::{
    MatchKey, OpenSpans, PendingEnd, Segment, SpanGroupWords, SpanMatcher,
};
use crate::spans::options::{ChosenSpans, GroupChoice, OTHERS, SpanOptions};
use crate::spans::pair::Pair;
use crate::spans::pair_pauses::PairPauses;
use crate::spans::plain_hits::PlainHits;
use crate::spans::role::Role;
use crate::spans::stack::{Frame, UNGROUPED};
use crate::spans::unmatched_times::UnmatchedTimes;
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::key::KeyWords;
use crate::stats::sketch::content_hash;

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
    /// The filter of spans.
    pub(crate) filter: &'s SampleFilter,
    /// That of samples, if it is another one.
    pub(crate) samples: Option<&'s SampleFilter>,
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

impl<A> Worker<'_, A> {
    /// Counts a hit without a key that is selected. `last` is the pair for which it was counted: an event that ends a span and begins the next is one
    /// hit.
    fn count_unkeyed(&mut self, pair: u32, last: &mut Option<u32>) {
        if last.replace(pair) != Some(pair)
            && let Some(stats) = self.pair_stats.get_mut(pair as usize)
        {
            stats.counts.unkeyed += 1;
        }
    }
}

/// What remains of a window to be matched across windows.
struct WindowRest {
    segments: Vec<Segment<OpenSpan>>,
    /// When the spans were that are matched.
    covers: WindowCovers,
    /// Samples that belong to no event.
    unknown: u64,
}

/// What hits begin and end.
struct FoundRoles<'w> {
    /// Of each event.
    roles: Vec<Vec<Role>>,
    plain: PlainHits<'w>,
    hashing: Dictionary,
}

/// A hit, with its place in the trace, and what is known of it from others.
struct PlacedHit<'a> {
    placed: PlacedBody<'a>,
    context: HitContext<'a>,
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
            asked(event)
                || roles.get(event).is_some_and(|roles| !roles.is_empty())
                || self.options.waits.has(event)
        });
        let relaxed = match self.session.is_whole() {
            true => relaxed.of_all_times(),
            false => relaxed,
        };
        // Without filters and groups nothing of a hit is asked for but its key.
        let is_filtered = !self.filter.is_simple() || self.filter.selects_ends();
        let is_plain = !is_filtered && self.options.by.is_empty();
        let found = FoundRoles {
            plain: match is_plain {
                true => PlainHits::new(self.session, &self.options.keys, &roles),
                false => PlainHits::none(),
            },
            roles,
            hashing: Dictionary::hashing(),
        };
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
            let left = self.window(&mut worker, &found, window, &add);
            workers.put(worker);
            left
        };
        let mut across = Across {
            walk: self,
            open: OpenSpans::new(self.options.covers, pauses.clone()),
            pair_stats: self.options.pair_stats(self.pairs),
            covers: Covers::new(self.pairs.len()),
            unmatched: vec![UnmatchedTimes::new(); self.pairs.len()],
            first_hit: self.session.time().map_or(0, |time| time.first),
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
        let unmatched = std::mem::take(&mut across.unmatched);
        let mut spans = across.finish();
        for (stats, times) in spans.pair_stats.iter_mut().zip(unmatched) {
            stats.settle();
            stats.counts.early = match stats.counts.longest {
                Some(longest) => times.within(longest),
                None => stats.counts.unmatched,
            };
        }
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
        found: &FoundRoles<'_>,
        window: Window<'_>,
        add: &impl Fn(&mut A, &mut Resolver<'s>, SampleTarget, &Sample<'_>),
    ) -> WindowRest {
        let mut unknown = 0;
        for number in 0..window.sample_count() {
            let hit = PlacedHit {
                placed: window.get(number).unwrap_or_default(),
                context: window.context(number),
            };
            let is_known = match found.plain.is_empty() {
                false => self.plain_hit(worker, found, &hit, add),
                true => self.other_hit(worker, found, &hit, add),
            };
            unknown += u64::from(!is_known);
        }
        WindowRest {
            segments: worker.matcher.take(),
            covers: std::mem::take(&mut worker.covers),
            unknown,
        }
    }

    /// Matches a hit, of which only what is needed is read where [`PlainHits`] has it; `false` if it belongs to no event.
    #[inline]
    fn plain_hit<A>(
        &self,
        worker: &mut Worker<'s, A>,
        found: &FoundRoles<'_>,
        hit: &PlacedHit<'_>,
        add: &impl Fn(&mut A, &mut Resolver<'s>, SampleTarget, &Sample<'_>),
    ) -> bool {
        let PlacedHit { placed, context } = hit;
        let Some(ParsedHit { target, sample }) = self.session.sample(placed.body) else {
            return false;
        };
        let Some(roles) = found.plain.roles(target) else {
            return self.other_hit(worker, found, hit, add);
        };
        let is_in_time = self.filter.time().contains(sample.time);
        if self.filter.event(target.event as usize) && is_in_time {
            worker.resolver.set_context(*context);
            add(&mut worker.state, &mut worker.resolver, target, &sample);
        }
        let waits = self.session.hit_waits(target, &sample);
        let mut unkeyed = None;
        for role in roles {
            let Role { pair, begins } = role.role;
            let Some(HitKey { words, marks }) = role.key(&sample) else {
                if is_in_time {
                    worker.count_unkeyed(pair, &mut unkeyed);
                }
                continue;
            };
            let key = MatchKey { pair, words };
            if begins {
                let begun = OpenSpan {
                    asked: true,
                    group: Box::default(),
                    place: placed.place,
                    added: context.added.cloned(),
                };
                let mut frame = Frame::new(sample.time, marks, begun);
                frame.waits = waits;
                worker.matcher.begin(key, frame);
            } else {
                let end = PendingEnd {
                    time: sample.time,
                    marks,
                    waits,
                    asked: true,
                    counts: true,
                    group: SpanGroupWords::default(),
                    added: None,
                };
                self.end(worker, key, end);
            }
        }
        true
    }

    /// Matches a hit that is decoded; `false` if it belongs to no event.
    fn other_hit<A>(
        &self,
        worker: &mut Worker<'s, A>,
        found: &FoundRoles<'_>,
        PlacedHit { placed, context }: &PlacedHit<'_>,
        add: &impl Fn(&mut A, &mut Resolver<'s>, SampleTarget, &Sample<'_>),
    ) -> bool {
        let Some(ParsedHit { target, sample }) = self.session.sample(placed.body) else {
            return false;
        };
        let resolver = &mut worker.resolver;
        resolver.set_context(*context);
        // A begin counts although its event is not among those requested, as with `--span a..b -e b`.
        let passes = self.filter.is_simple() || self.filter.late(target, &sample, resolver);
        let asked = match self.samples {
            None => passes && self.filter.event(target.event as usize),
            Some(samples) => {
                samples.event(target.event as usize)
                    && (samples.is_simple() || samples.late(target, &sample, resolver))
            }
        };
        let is_in_time = self.filter.time().contains(sample.time);
        if asked && is_in_time {
            add(&mut worker.state, resolver, target, &sample);
        }
        let hit = Hit {
            target,
            sample: &sample,
        };
        if self.options.waits.has(target.event as usize) {
            self.wait(worker, hit);
        }
        let waits = self.session.hit_waits(target, &sample);
        let mut unkeyed = None;
        for role in found.roles.get(target.event as usize).into_iter().flatten() {
            let resolver = &mut worker.resolver;
            let key = self.key(role.pair, resolver, hit, &found.hashing);
            let asked = match role.begins {
                true => passes,
                false => self.filter.ends(target, &sample, resolver),
            };
            let counts = asked && (role.begins || self.filter.of_hit(&sample, resolver));
            let Some(HitKey { words, marks }) = key else {
                if counts && is_in_time {
                    worker.count_unkeyed(role.pair, &mut unkeyed);
                }
                continue;
            };
            let key = MatchKey {
                pair: role.pair,
                words,
            };
            if role.begins {
                let group = self.begun_group(role.pair, resolver, hit, &found.hashing);
                let begun = OpenSpan {
                    asked,
                    group: group.words,
                    place: placed.place,
                    added: context.added.cloned(),
                };
                let mut frame = Frame::new(sample.time, marks, begun);
                frame.waits = waits;
                frame.group = group.hash;
                worker.matcher.begin(key, frame);
            } else {
                let end = PendingEnd {
                    time: sample.time,
                    marks,
                    waits,
                    asked,
                    counts,
                    group: self.end_group(role.pair, resolver, hit, &found.hashing),
                    added: context.added.cloned(),
                };
                self.end(worker, key, end);
            }
        }
        true
    }

    /// Adds a wait to the newest open span of each pair whose spans are of threads.
    fn wait<A>(&self, worker: &mut Worker<'s, A>, hit: Hit<'_>) {
        let Some(wait) = self.options.waits.read(&mut worker.resolver, hit) else {
            return;
        };
        for (pair, key) in self.options.keys.iter().enumerate() {
            if let Some(words) = key.words_of_thread(hit.sample.tid) {
                let pair = pair as u32;
                worker.matcher.wait(MatchKey { pair, words }, &wait);
            }
        }
    }

    /// Ends a span, or leaves the end to be matched across windows.
    #[inline]
    fn end<A>(&self, worker: &mut Worker<'s, A>, key: MatchKey, end: PendingEnd) {
        let pair = key.pair as usize;
        let Some(stats) = worker.pair_stats.get_mut(pair) else {
            return;
        };
        let mut counting = Counting {
            options: self.options,
            time: self.filter.time(),
            pair,
            stats,
            covers: &mut worker.covers,
            end: &end,
        };
        let PendingEnd {
            time, marks, waits, ..
        } = end;
        if !(worker.matcher).end(key, time, marks, waits, &mut counting) {
            worker.matcher.leave(key, end);
        }
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
        self.group_words(false, pair, resolver, hit, hashing)
    }

    /// The part of the group of a span that only its end has.
    #[inline]
    fn end_group(
        &self,
        pair: u32,
        resolver: &mut Resolver<'s>,
        hit: Hit<'_>,
        hashing: &Dictionary,
    ) -> SpanGroupWords {
        if !self.options.groups_by_end() {
            return SpanGroupWords::default();
        }
        self.group_words(true, pair, resolver, hit, hashing)
    }

    /// The part of a group that is of the begin or of the end, and its hash. If groups are chosen, the words of others are not kept.
    #[inline]
    fn group_words(
        &self,
        of_end: bool,
        pair: u32,
        resolver: &mut Resolver<'s>,
        hit: Hit<'_>,
        hashing: &Dictionary,
    ) -> SpanGroupWords {
        let hash = |words: &[KeyWords]| match of_end {
            true => content_hash(words),
            false => content_hash(words).max(UNGROUPED + 1),
        };
        if let GroupChoice::All = self.options.kept {
            let words = self.group(of_end, resolver, hit, self.dictionary);
            // The hash of an end is for choosing groups.
            let hash = if of_end { 0 } else { hash(&words) };
            return SpanGroupWords { words, hash };
        }
        let words = self.group(of_end, resolver, hit, hashing);
        let hash = hash(&words);
        let GroupChoice::Chosen(chosen) = &self.options.kept else {
            return SpanGroupWords { words, hash };
        };
        let is_chosen = |chosen: &ChosenSpans| match of_end {
            true => chosen.has_end(hash),
            false => chosen.has_begin(hash),
        };
        let words = match chosen.get(pair as usize).is_some_and(is_chosen) {
            true => self.group(of_end, resolver, hit, self.dictionary),
            false => OTHERS.into(),
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

/// The spans that are matched across windows.
struct Across<'w, 's> {
    walk: &'w SpanWalk<'s>,
    open: OpenSpans<OpenSpan>,
    pair_stats: Vec<PairStats>,
    covers: Covers,
    /// When ends of each pair without a begin came.
    unmatched: Vec<UnmatchedTimes>,
    /// Time of the first hit, ns.
    first_hit: u64,
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
                options: self.walk.options,
                time: self.walk.filter.time(),
                pair,
                stats,
                covers: &mut left.covers,
                end: end.as_ref().unwrap_or(&none),
            };
            let taken = self.open.take(segment, end.as_ref(), &mut counting);
            stats.counts.is_out_of_order |= taken.has_others;
            let time = self.walk.filter.time();
            let is_unmatched = |end: &PendingEnd| {
                taken.unmatched && end.counts && overlaps(time, end.time, end.time)
            };
            let unmatched = end.filter(is_unmatched);
            if let Some(end) = unmatched {
                match self.open.pauses.begin_before(pair as u32, end.time) {
                    true => stats.counts.paused_ends += 1,
                    false => {
                        stats.counts.unmatched += 1;
                        if let Some(times) = self.unmatched.get_mut(pair) {
                            times.add(end.time.saturating_sub(self.first_hit));
                        }
                    }
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
                && overlaps(walk.filter.time(), frame.time, until.unwrap_or(u64::MAX))
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
        if !walk.options.waits.is_empty() {
            let both = self.pair_stats.iter_mut().zip(&walk.options.keys);
            both.filter(|(_, key)| key.words_of_thread(0).is_some())
                .for_each(|(stats, _)| stats.know_waits());
        }
        Spans {
            pair_stats: self.pair_stats,
            forgotten: self.open.forgotten(),
        }
    }
}
