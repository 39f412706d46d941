//! What is known of the spans of a whole trace before its hits are taken.

use std::convert::Infallible;

use foldhash::HashMap;
use usdtrec_format::trace::TimeRange;
use usdtrec_trace::added::hit_step::SpanStep;
use usdtrec_trace::events::order::{Window, in_plain_order};
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::pool::Pool;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::{Hit, ParsedHit};
use usdtrec_trace::session::resolver::Resolver;

use crate::enclosing::one_hit::{begun_frame, match_key, pending_end, segment};
use crate::enclosing::roles::SpanRoles;
use crate::spans::matcher::OpenSpans;
use crate::spans::nesting::Nesting;
use crate::spans::stack::{Ended, Frame, Totals};

/// Ends without a begin of which it is kept when they were.
const MAX_LOST: usize = 1 << 20;

/// What is known of the spans of a whole trace.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Of each pair, by its number, whether a begin ends what is open.
    flat: HashMap<u32, bool>,
    /// The pairs whose spans overlap on their threads, by an id.
    overlapping: Vec<u32>,
    /// Of each part and thread, the times in which it may be in a span whose begin is not known, in their order.
    lost: HashMap<PartThread, Vec<TimeRange>>,
}

/// A part, and a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PartThread {
    part: usize,
    tid: i32,
}

/// A hit that begins or ends spans.
struct SurveyedHit {
    tid: i32,
    time: u64,
    steps: Vec<SpanStep>,
}

/// Until when something is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownUntil {
    /// Whether a thread may be in a span whose begin is not known.
    pub(crate) is_lost: bool,
    /// Time after the last for which it is so, ns.
    pub(crate) until: u64,
}

/// Counts whether spans are within each other.
struct Nests<'n>(&'n mut Nesting);

impl Totals<()> for Nests<'_> {
    fn unfinished(&mut self, _: &Frame<()>, _: u64) {}

    fn finished(&mut self, frame: &mut Frame<()>, _: Ended) {
        self.0.add(frame);
    }
}

/// The state of the walk.
#[derive(Default)]
struct Surveying {
    nesting: HashMap<u32, Nesting>,
    /// When the last span of a part and a thread began or ended, ns.
    last: HashMap<PartThread, u64>,
    lost: HashMap<PartThread, Vec<TimeRange>>,
    lost_count: usize,
}

impl Survey {
    /// Walks over the trace.
    pub(crate) fn new(session: &TraceSession, roles: &SpanRoles) -> Self {
        // It selects all, so that no name can be wrong.
        let Ok(all) = SampleFilter::new(&EventSelection::default(), session) else {
            return Self::default();
        };
        let filter = all.relaxed(|event| roles.has(event));
        let resolvers = Pool::default();
        let show = |window: Window<'_>| {
            let resolver = resolvers.take();
            let mut resolver = resolver.unwrap_or_else(|| Resolver::new(session));
            let hits = window.bodies().filter_map(|body| {
                let ParsedHit { target, sample } = session.sample(body)?;
                let hit = Hit {
                    target,
                    sample: &sample,
                };
                Some(SurveyedHit {
                    tid: sample.tid,
                    time: sample.time,
                    steps: roles.steps(&mut resolver, hit, false),
                })
            });
            let hits: Vec<SurveyedHit> = hits.collect();
            resolvers.put(resolver);
            hits
        };
        let mut open = OpenSpans::new(false, roles.pauses.clone());
        let mut surveying = Surveying::default();
        // What is damaged is reported where the hits are shown.
        let Ok(_) = in_plain_order(session, &filter, show, |hits: Vec<SurveyedHit>| {
            hits.into_iter()
                .for_each(|hit| surveying.take(hit, &mut open));
            Ok::<_, Infallible>(())
        });
        let flat = roles.numbers().map(|(number, is_of_calls)| {
            let nesting = surveying.nesting.get(&number).copied().unwrap_or_default();
            (number, nesting.is_flat_unless(is_of_calls))
        });
        Self {
            flat: flat.collect(),
            overlapping: roles.overlapping().collect(),
            lost: surveying.lost,
        }
    }

    /// Whether spans of a pair overlap on their threads, so that the newest is not the one that a hit is in.
    pub(crate) fn is_overlapping(&self, pair: u32) -> bool {
        self.overlapping.contains(&pair)
    }

    /// Whether a begin of a pair ends what is open.
    pub(crate) fn is_flat(&self, pair: u32) -> bool {
        self.flat.get(&pair) == Some(&true)
    }

    /// Whether a thread may be in a span of a part at a time whose begin is not known.
    pub(crate) fn lost(&self, part: usize, tid: i32, time: u64) -> KnownUntil {
        let times = self.lost.get(&PartThread { part, tid });
        let times = times.map_or(&[][..], Vec::as_slice);
        let at = times.partition_point(|range| range.last < time);
        match times.get(at) {
            Some(range) if range.first <= time => KnownUntil {
                is_lost: true,
                until: range.last.saturating_add(1),
            },
            next => KnownUntil {
                is_lost: false,
                until: next.map_or(u64::MAX, |range| range.first),
            },
        }
    }
}

impl Surveying {
    fn take(&mut self, hit: SurveyedHit, open: &mut OpenSpans<()>) {
        let SurveyedHit { tid, time, steps } = hit;
        for step in steps {
            let thread = PartThread {
                part: step.part,
                tid,
            };
            let key = match_key(&step);
            let nesting = self.nesting.entry(step.pair).or_default();
            let begins = step.begin.is_some();
            let end = (!begins).then(|| pending_end(&step, time));
            let segment = segment(key, begins.then(|| begun_frame(&step, time, ())));
            let taken = open.take(segment, end.as_ref(), &mut Nests(nesting));
            let last = self.last.insert(thread, time);
            if taken.unmatched && self.lost_count < MAX_LOST {
                self.lost_count += 1;
                let range = TimeRange {
                    // After the hit before, which belongs to another span.
                    first: last.map_or(0, |last| last.saturating_add(1)).min(time),
                    last: time,
                };
                let times = self.lost.entry(thread).or_default();
                match times.last_mut() {
                    Some(known) if known.last >= range.first => known.last = range.last,
                    _ => times.push(range),
                }
            }
        }
    }
}
