//! The walk over a trace that matches its spans.

use std::cmp::Reverse;

use usdtrec_format::perf::Sample;

use super::bracket::{BracketKey, Brackets, Left, Open, OpenSpans, Rise};
use super::key::SpanKey;
use super::pair::Pair;
use super::role::Role;
use super::tally::{PairTally, Shown, Slow};
use crate::order::{Outcome, Window, in_order};
use crate::pool::Pool;
use crate::report::groups::{Dictionary, Key, Words};
use crate::report::summary::Rows;
use crate::report::timeline::Timeline;
use crate::select::Filter;
use crate::session::{Resolver, Session, Target};
use crate::text::{Form, Text};

/// How spans are matched and counted.
#[derive(Debug, Default)]
pub(crate) struct SpanOptions {
    /// Of each pair, what beginnings and ends have in common; the thread where there is none.
    pub(crate) keys: Vec<SpanKey>,
    /// What they are grouped by, of the hit that begins them.
    pub(crate) by: Vec<Key>,
    /// Shorter ones do not count, ns.
    pub(crate) min: u64,
    /// How many of the slowest are kept.
    pub(crate) slowest: usize,
    /// Intervals to count them in, too.
    pub(crate) heat: Option<Timeline>,
}

/// The spans of a trace.
#[derive(Debug)]
pub(crate) struct Spans {
    /// Of each pair, in their order.
    pub(crate) tallies: Vec<PairTally>,
    /// Beginnings that were not matched because too many waited.
    pub(crate) forgotten: u64,
}

/// A walk over a trace.
#[derive(Debug)]
pub(crate) struct SpanWalk<'s> {
    pub(crate) session: &'s Session,
    pub(crate) filter: &'s Filter,
    pub(crate) pairs: &'s [Pair],
    pub(crate) options: &'s SpanOptions,
    pub(crate) rows: &'s Rows,
    pub(crate) dictionary: &'s Dictionary,
}

/// What a thread has in hand.
struct Hand<'s, A> {
    state: A,
    resolver: Resolver<'s>,
    brackets: Brackets<Begun>,
    tallies: Vec<PairTally>,
}

/// A span that began in the window at hand.
#[derive(Debug)]
struct Begun {
    time: u64,
    asked: bool,
    group: Box<[Words]>,
    /// Which of the window's samples it is.
    sample: u32,
}

impl<'s> SpanWalk<'s> {
    /// Matches all spans. `add` gets every sample that the filter asks for, in any order, with one of the states that `make` makes.
    pub(crate) fn run<A: Send>(
        &self,
        make: impl Fn() -> A + Sync,
        add: impl Fn(&mut A, &mut Resolver<'s>, Target, &Sample<'_>) + Sync,
        asked: impl Fn(usize) -> bool,
    ) -> (Spans, Vec<A>, Outcome) {
        let roles = Role::of(self.pairs, self.session.events().events.len());
        // Ends of a filtered-out beginning are still its ends: only then does each other one find its own.
        let relaxed = self.filter.relaxed(|event| {
            asked(event) || roles.get(event).is_some_and(|roles| !roles.is_empty())
        });
        let hands = Pool::default();
        let show = |window: Window<'_>| {
            let mut hand = hands.take().unwrap_or_else(|| Hand {
                state: make(),
                resolver: Resolver::new(self.session),
                brackets: Brackets::default(),
                tallies: vec![PairTally::default(); self.pairs.len()],
            });
            let left = self.window(&mut hand, &roles, window, &add);
            hands.put(hand);
            left
        };
        let mut across = Across {
            walk: self,
            resolver: Resolver::new(self.session),
            open: OpenSpans::default(),
            tallies: vec![PairTally::default(); self.pairs.len()],
            unknown: 0,
        };
        let done = in_order(self.session, &relaxed, show, |(left, unknown)| {
            across.take(left);
            across.unknown += unknown;
            Ok::<_, std::convert::Infallible>(())
        });
        let mut outcome = done.unwrap_or_default();
        outcome.unknown += across.unknown;
        let mut states = Vec::new();
        let (mut tallies, forgotten) = across.finish();
        for hand in hands.take_all() {
            for (all, tally) in tallies.iter_mut().zip(hand.tallies) {
                all.merge(tally, self.options.slowest);
            }
            states.push(hand.state);
        }
        tallies.iter_mut().for_each(PairTally::settle);
        (Spans { tallies, forgotten }, states, outcome)
    }

    /// Matches what is in a window, and says what is left, and how many samples belong to no event.
    fn window<A>(
        &self,
        hand: &mut Hand<'s, A>,
        roles: &[Vec<Role>],
        window: Window<'_>,
        add: &impl Fn(&mut A, &mut Resolver<'s>, Target, &Sample<'_>),
    ) -> (Left, u64) {
        let mut unknown = 0;
        for number in 0..window.len() {
            let body = window.get(number).map_or(&[][..], |(body, _)| body);
            let Some((target, sample)) = self.session.sample(body) else {
                unknown += 1;
                continue;
            };
            let asked = self.filter.event(target.event as usize)
                && (self.filter.is_simple()
                    || self.filter.late(target, &sample, &mut hand.resolver));
            if asked {
                add(&mut hand.state, &mut hand.resolver, target, &sample);
            }
            let mut unkeyed = None;
            for role in roles.get(target.event as usize).into_iter().flatten() {
                let Some(word) = self.key(role.pair, &mut hand.resolver, target, &sample) else {
                    // An event that ends a span and begins the next is one hit.
                    if let Some(tally) = hand.tallies.get_mut(role.pair as usize)
                        && unkeyed.replace(role.pair) != Some(role.pair)
                    {
                        tally.unkeyed += 1;
                    }
                    continue;
                };
                let key = (role.pair, word);
                if role.begins {
                    let begun = Begun {
                        time: sample.time,
                        asked: asked || self.begins_unasked(target, &sample, &mut hand.resolver),
                        group: self.group(&mut hand.resolver, target, &sample),
                        sample: number as u32,
                    };
                    hand.brackets.begin(key, begun);
                } else if let Some(begun) = hand.brackets.end(key, sample.time) {
                    let open = || self.open(&begun, window);
                    let duration = sample.time.saturating_sub(begun.time);
                    if let Some(tally) = hand.tallies.get_mut(role.pair as usize)
                        && begun.asked
                    {
                        let span = (begun.time, duration);
                        self.count(tally, &mut hand.resolver, span, &begun.group, open);
                    }
                }
            }
        }
        let nests = |&((pair, _), _): &(BracketKey, Rise)| {
            let key = self.options.keys.get(pair as usize);
            key.is_none_or(SpanKey::is_coarse)
        };
        let rises = hand.brackets.rises().filter(nests).collect();
        let open = hand.brackets.take_open();
        let begun = open.map(|(key, begun)| (key, self.open(&begun, window)));
        let left = Left {
            begun: begun.collect(),
            ends: std::mem::take(&mut hand.brackets.ends),
            rises,
        };
        (left, unknown)
    }

    /// Whether a beginning counts although its event is not among those asked for, as with `--span a..b -e b`.
    fn begins_unasked(
        &self,
        target: Target,
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
        target: Target,
        sample: &Sample<'_>,
    ) -> Option<Words> {
        let key = self.options.keys.get(pair as usize);
        let place = (target, sample);
        key.unwrap_or(&SpanKey::Thread)
            .words(self.rows, resolver, place, self.dictionary)
    }

    #[inline]
    fn group(
        &self,
        resolver: &mut Resolver<'s>,
        target: Target,
        sample: &Sample<'_>,
    ) -> Box<[Words]> {
        let keys = self.options.by.iter();
        keys.map(|key| key.words(self.rows, resolver, target, sample, self.dictionary))
            .collect()
    }

    /// A beginning, to be kept longer than its window.
    fn open(&self, begun: &Begun, window: Window<'_>) -> Open {
        let wanted = self.options.slowest > 0;
        let sample = wanted.then(|| window.get(begun.sample as usize));
        let sample = sample.flatten();
        Open {
            time: begun.time,
            asked: begun.asked,
            group: begun.group.clone(),
            block: sample.map_or(0, |(_, block)| block),
            body: sample.map(|(body, _)| body.into()),
        }
    }

    /// Counts a span that is asked for.
    #[inline]
    fn count(
        &self,
        tally: &mut PairTally,
        resolver: &mut Resolver<'s>,
        (begin, duration): (u64, u64),
        group: &[Words],
        open: impl FnOnce() -> Open,
    ) {
        if duration < self.options.min {
            return;
        }
        tally.add(duration, group);
        if let Some(timeline) = self.options.heat {
            tally.add_heat(timeline.place(begin), duration);
        }
        if self.options.slowest > 0 && tally.is_slow((begin, duration), self.options.slowest) {
            let slow = self.slow(resolver, duration, &open());
            if let Some(slow) = slow {
                tally.keep(slow, self.options.slowest);
            }
        }
    }

    #[cold]
    fn slow(&self, resolver: &mut Resolver<'s>, duration: u64, open: &Open) -> Option<Slow> {
        let (target, sample) = self.session.sample(open.body.as_deref()?)?;
        let event = self.session.events().events.get(target.event as usize)?;
        let comm = resolver.name(sample.tid, sample.time);
        let processes = self.session.processes();
        let comm = processes.name_or_number(comm, sample.tid).into_owned();
        let values = match self.session.site_of(target, &sample) {
            Some(site) => resolver.values(site, &sample),
            None => &[],
        };
        let arguments = event.arguments.iter().zip(values);
        let shown = arguments.map(|(argument, value)| {
            let form = Form::new(argument, false);
            let [mut text, mut json] = [Text::default(), Text::default()];
            text.formed(&form, value);
            json.formed_json(&form, value);
            Shown {
                name: argument.name.clone(),
                text: text.into_string(),
                json: json.into_string(),
            }
        });
        let block = self.session.blocks().get(open.block);
        Some(Slow {
            duration,
            time: Reverse(open.time),
            pid: sample.pid,
            tid: sample.tid,
            comm,
            event: target.event as usize,
            arguments: shown.collect(),
            offset: block.map_or(0, |block| block.block.offset),
        })
    }
}

/// What is matched across windows.
struct Across<'w, 's> {
    walk: &'w SpanWalk<'s>,
    resolver: Resolver<'s>,
    open: OpenSpans<Open>,
    tallies: Vec<PairTally>,
    unknown: u64,
}

impl Across<'_, '_> {
    /// Takes what a window left, one window after the other.
    fn take(&mut self, left: Left) {
        for (key, rise) in left.rises {
            let level = self.open.level(key);
            if let Some(tally) = self.tallies.get_mut(key.0 as usize) {
                tally.depth = tally.depth.max(rise.above(level));
            }
        }
        for end in left.ends {
            let Some(tally) = self.tallies.get_mut(end.key.0 as usize) else {
                continue;
            };
            match self.open.end(end.key) {
                None => tally.unmatched += 1,
                Some(open) if open.asked => {
                    let duration = end.time.saturating_sub(open.time);
                    let (span, group) = ((open.time, duration), open.group.clone());
                    self.walk
                        .count(tally, &mut self.resolver, span, &group, || open);
                }
                Some(_) => {}
            }
        }
        for (key, open) in left.begun {
            self.open.begin(key, open);
        }
    }

    fn finish(mut self) -> (Vec<PairTally>, u64) {
        let forgotten = self.open.forgotten;
        for ((pair, _), open) in self.open.into_open() {
            if let Some(tally) = self.tallies.get_mut(pair as usize) {
                tally.open += u64::from(open.asked);
            }
        }
        (self.tallies, forgotten)
    }
}
