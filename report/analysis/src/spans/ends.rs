//! The spans that samples end, one by one.
//!
//! A window is matched without knowing what began before it. What it cannot match stays, to be matched when the windows are put one after the
//! other. Of a stream, a window is what is shown at once.

use std::sync::Mutex;

use usdtrec_format::{NoTimeParts, TimeParts};
use usdtrec_trace::events::notices::SpanOverlap;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::Resolver;

use crate::spans::common_integers::IdWatch;
use crate::spans::key::{HitKey, SpanKey};
use crate::spans::matcher::{MatchKey, OpenSpans, PendingEnd, Segment, SpanMatcher};
use crate::spans::own_keys::own_keys;
use crate::spans::pair::Pair;
use crate::spans::pair_pauses::PairPauses;
use crate::spans::role::Role;
use crate::spans::stack::{Ended, Frame, Totals};
use crate::spans::stream_pairs::ChangedPairs;
use crate::stats::keys::dictionary::Dictionary;

/// Which samples begin and end spans.
pub struct SpanEnds {
    /// Names of the spans.
    pub names: Vec<String>,
    roles: Vec<Vec<Role>>,
    /// The key of each span.
    keys: Vec<SpanKey>,
    rows: Rows,
    dictionary: Dictionary,
    pauses: PairPauses,
    pairs: Vec<Pair>,
    /// Finds out whether spans of a stream overlap that are matched by the thread.
    ids: Option<Mutex<IdWatch>>,
}

/// State of a worker thread.
pub struct EndsWorker<'s> {
    /// Begins and ends since the window began.
    matcher: SpanMatcher<()>,
    /// Resolves the samples.
    pub resolver: Resolver<'s>,
}

/// What a sample ends.
pub enum SpanEnd {
    /// The first span that a sample which is requested ends.
    Matched(ClosedSpan),
    /// A span that is matched across windows.
    Open {
        /// Whether it is the first one of a sample that is selected.
        is_shown: bool,
    },
}

/// A span that ended.
pub struct ClosedSpan {
    /// Index of its name.
    pub span: u32,
    /// How long it lasted; `None` if its begin is unknown.
    pub time: Option<ClosedTime>,
}

/// How long a span lasted.
#[derive(Clone, Copy, Debug)]
pub struct ClosedTime {
    /// ns.
    pub duration: u64,
    /// What it was spent on; else why that is not known.
    pub parts: Result<TimeParts, NoTimeParts>,
}

/// The time of a span that ended.
#[derive(Default)]
struct Duration(Option<ClosedTime>);

impl Totals<()> for Duration {
    fn unfinished(&mut self, _: &Frame<()>, _: u64) {}

    fn finished(&mut self, _: &mut Frame<()>, ended: Ended) {
        self.0 = Some(ClosedTime {
            duration: ended.duration,
            parts: ended.spent.whole,
        });
    }
}

impl<'s> EndsWorker<'s> {
    /// A worker without open spans; `ends` is which samples begin and end them, if any do.
    pub fn new(session: &'s TraceSession, ends: Option<&SpanEnds>) -> Self {
        let pauses = ends.map(|ends| ends.pauses.clone());
        Self {
            matcher: SpanMatcher::new(false, pauses.unwrap_or_default()),
            resolver: Resolver::new(session),
        }
    }

    /// Ends a window. Returns the begins and ends that it could not match.
    pub fn take(&mut self) -> Vec<Segment<()>> {
        self.matcher.take()
    }
}

impl SpanEnds {
    /// `None` if no event that is selected ends a span.
    pub fn new(session: &TraceSession, filter: &SampleFilter) -> Option<Self> {
        let mut pairs = Pair::find(session, |_| true);
        pairs.retain(|pair| pair.dones.iter().any(|&done| filter.event(done)));
        if pairs.is_empty() {
            return None;
        }
        let rows = Rows::new(session, |_| true);
        let mut ends = Self {
            pauses: PairPauses::new(session, &pairs),
            keys: own_keys(&pairs, session, &rows),
            rows,
            dictionary: Dictionary::default(),
            roles: Role::from_pairs(&pairs, session.events().events.len()),
            names: pairs.iter().map(|pair| pair.name.clone()).collect(),
            pairs,
            ids: None,
        };
        ends.watch(session);
        Some(ends)
    }

    /// Watches pairs of a stream that are matched by the thread, from now on.
    fn watch(&mut self, session: &TraceSession) {
        let keys = self.pairs.iter().zip(&self.keys);
        let by_thread = keys.filter(|(_, key)| matches!(key, SpanKey::Thread(_)));
        let by_thread: Vec<&Pair> = by_thread.map(|(pair, _)| pair).collect();
        let is_stream = session.blocks().is_empty();
        self.ids = is_stream.then(|| {
            let ids = IdWatch::new(session, &self.pairs, |pair| by_thread.contains(&pair));
            Mutex::new(ids)
        });
    }

    /// The spans of a stream that overlap on their threads, as far as it went.
    pub fn overlaps(&self) -> Vec<SpanOverlap> {
        let ids = self.ids.as_ref().and_then(|ids| ids.lock().ok());
        ids.map_or_else(Vec::new, |mut ids| ids.overlaps())
    }

    /// Adds the spans of events that were added to a stream. Spans that are open are not affected.
    pub fn add_events(&mut self, session: &TraceSession, filter: &SampleFilter) {
        let mut pairs = Pair::find(session, |_| true);
        pairs.retain(|pair| pair.dones.iter().any(|&done| filter.event(done)));
        // Rows are in the order of events.
        self.rows = Rows::new(session, |_| true);
        let changed = ChangedPairs::take(&mut self.pairs, pairs);
        if changed.is_empty() {
            return;
        }
        let keys = own_keys(&changed.pairs, session, &self.rows);
        changed.put_keys(keys, &mut self.keys);
        self.roles = Role::from_pairs(&self.pairs, session.events().events.len());
        let new = self.pairs.iter().skip(self.names.len());
        self.names.extend(new.map(|pair| pair.name.clone()));
        self.pauses = PairPauses::new(session, &self.pairs);
        self.watch(session);
    }

    /// Takes pauses of a stream that have become known, also for its open spans.
    pub fn renew_pauses(&mut self, session: &TraceSession, open: &mut OpenSpans<()>) {
        self.pauses.renew(session);
        open.pauses = self.pauses.clone();
    }

    /// Without open spans between windows.
    pub fn open(&self) -> OpenSpans<()> {
        OpenSpans::new(false, self.pauses.clone())
    }

    /// Whether an event begins or ends a span.
    pub fn has_role(&self, event: usize) -> bool {
        self.roles.get(event).is_some_and(|roles| !roles.is_empty())
    }

    /// The filter for what is read: beginnings, too, that are not shown, or are earlier.
    pub fn relaxed(&self, session: &TraceSession, filter: &SampleFilter) -> SampleFilter {
        let relaxed = filter.relaxed(|event| filter.event(event) || self.has_role(event));
        match session.is_whole() {
            true => relaxed.starting_at_zero(),
            false => relaxed,
        }
    }

    /// Takes a sample, and calls `ended` with each span that it ends; returns whether it ends any. `asked` says whether the sample itself is selected.
    #[inline]
    pub fn sample(
        &self,
        EndsWorker { matcher, resolver }: &mut EndsWorker<'_>,
        hit: Hit<'_>,
        asked: bool,
        mut ended: impl FnMut(SpanEnd),
    ) -> bool {
        let Hit { target, sample } = hit;
        if let Some(mut ids) = self.ids.as_ref().and_then(|ids| ids.lock().ok()) {
            ids.take(resolver, hit);
        }
        let waits = resolver.session().hit_waits(target, sample);
        let mut ends = false;
        for role in self.roles.get(target.event as usize).into_iter().flatten() {
            let Some(key) = self.keys.get(role.pair as usize) else {
                continue;
            };
            let of_hit = key.hit_key(&self.rows, resolver, hit, &self.dictionary);
            let Some(HitKey { words, marks }) = of_hit else {
                continue;
            };
            let key = MatchKey {
                pair: role.pair,
                words,
            };
            if role.begins {
                let mut frame = Frame::new(sample.time, marks, ());
                frame.waits = waits;
                matcher.begin(key, frame);
                continue;
            }
            let is_shown = asked && !std::mem::replace(&mut ends, true);
            let mut span = Duration::default();
            if matcher.end(key, sample.time, marks, waits, &mut span) {
                if is_shown {
                    ended(SpanEnd::Matched(ClosedSpan {
                        span: role.pair,
                        time: span.0,
                    }));
                }
                continue;
            }
            let end = PendingEnd {
                time: sample.time,
                marks,
                waits,
                ..PendingEnd::default()
            };
            matcher.leave(key, end);
            ended(SpanEnd::Open { is_shown });
        }
        ends
    }

    /// Matches what is left of a window, one window after the other: the spans that ended, in the order in which [`sample`](Self::sample) reported them as open.
    pub fn close(
        &self,
        left: Vec<Segment<()>>,
        open: &mut OpenSpans<()>,
    ) -> impl Iterator<Item = ClosedSpan> {
        left.into_iter().filter_map(move |mut segment| {
            let (span, end) = (segment.key.pair, segment.end.take());
            let mut duration = Duration::default();
            open.take(segment, end.as_ref(), &mut duration);
            end.map(|_| ClosedSpan {
                span,
                time: duration.0,
            })
        })
    }
}
