//! Facts about spans.

use usdtrec_format::LeastParts;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::recorded_part::RecordedPart;

use crate::origin::Origin;
use crate::question::GroupOrder;
use crate::spans::ambiguity::Ambiguity;
use crate::spans::better_key::better_key;
use crate::spans::covers::CoveredTime;
use crate::spans::durations::{Durations, PairStats, SlowSpan, SpanCounts};
use crate::spans::key::SpanKey;
use crate::spans::options::GroupBy;
use crate::spans::pair::Pair;
use crate::spans::slowest::{BeginStacks, SlowBegin, begins};
use crate::spans::spent_time::SpentFacts;
use crate::spans::waits::WaitFacts;
use crate::spans::walk::SpanWalk;
use crate::stats::distribution::Quantile;
use crate::stats::keys::value::KeyValue;
use crate::stats::number::Integer;

/// How long spans lasted, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationFacts {
    /// Number of spans.
    pub count: u64,
    /// The time in which they were open, each moment once; `None` if it is not known, because they are of several groups.
    pub covered: Option<CoveredTime>,
    /// Sum of their times in no span within them.
    pub(crate) own_sum: u64,
    /// Sum of all of them, inner and outer ones.
    pub(crate) sum: u128,
    /// The shortest one.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// The 0.90 quantile.
    pub p90: u64,
    /// The 0.99 quantile.
    pub p99: u64,
    /// The 0.999 quantile.
    pub p999: u64,
    /// The longest one.
    pub max: u64,
    /// What they were spent on; `None` if the trace does not say it of any of them.
    pub spent: Option<SpentFacts>,
    /// What their threads waited for in them and in no span within them, the longest first; `None` if the trace has no waits, or if they are not of threads.
    pub waits: Option<Vec<WaitFacts>>,
    /// Whether percentiles are exact; else they are within 1/256 of themselves.
    pub exact: bool,
}

impl DurationFacts {
    pub(crate) fn new(durations: &Durations) -> Self {
        let distribution = &durations.distribution;
        let ns = |number: Integer| u64::try_from(number.0).unwrap_or(u64::MAX);
        let at = |thousandths| match distribution.quantile(thousandths) {
            Some(Quantile::Exact(number) | Quantile::Near(number)) => ns(number),
            None => 0,
        };
        let ends = distribution.ends();
        Self {
            count: distribution.count(),
            covered: durations.covered,
            own_sum: u64::try_from(durations.own_sum).unwrap_or(u64::MAX),
            sum: durations.sum,
            spent: durations.spent.facts(distribution.count()),
            waits: durations.waits.as_ref().map(|waits| waits.facts()),
            min: ends.map_or(0, |ends| ns(ends.least)),
            p50: at(500),
            p90: at(900),
            p99: at(990),
            p999: at(999),
            max: ends.map_or(0, |ends| ns(ends.greatest)),
            exact: !matches!(distribution.median(), Some(Quantile::Near(_))),
        }
    }

    /// Time in which at least one of them was open; 0 if it is not known.
    pub fn total(&self) -> u64 {
        self.covered.map_or(0, |covered| covered.total)
    }

    /// Sum of their times in no span within them, as stacks of spans add them up.
    pub const fn own(&self) -> u64 {
        self.own_sum
    }

    /// Sum of all of them.
    pub fn sum(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// Mean; 0 without spans.
    pub fn mean(&self) -> u64 {
        let mean = self.sum / u128::from(self.count.max(1));
        u64::try_from(mean).unwrap_or(u64::MAX)
    }

    /// Figures in a fixed order.
    pub(crate) fn order(&self) -> [u64; 5] {
        [self.count, self.total(), self.own(), self.min, self.max]
    }

    /// One of the figures.
    pub fn by(&self, order: GroupOrder) -> u128 {
        match order {
            GroupOrder::Count => self.count.into(),
            GroupOrder::Total => self.total().into(),
            GroupOrder::Sum => self.sum,
            GroupOrder::Own => self.own().into(),
            GroupOrder::Mean => self.mean().into(),
            GroupOrder::P50 => self.p50.into(),
            GroupOrder::P90 => self.p90.into(),
            GroupOrder::P99 => self.p99.into(),
            GroupOrder::P999 => self.p999.into(),
            GroupOrder::Max => self.max.into(),
            GroupOrder::Part(part) => self.spent.map_or(0, |spent| spent.part(part)).into(),
        }
    }
}

/// The spans of one pair of probes.
#[derive(Clone, Debug)]
pub struct SpanFacts {
    /// Name of the spans.
    pub name: String,
    /// Names of the events that begin it, and of those that end it.
    pub starts: Vec<String>,
    /// Names of the events that end it.
    pub dones: Vec<String>,
    /// What begin and end have in common: `tid`, `pid` or an argument.
    pub key: String,
    /// How long they lasted.
    pub durations: DurationFacts,
    /// The arguments that begin and end have in common beside it.
    pub agreed: Vec<String>,
    /// How begins and ends were matched.
    pub counts: SpanCounts,
    /// The part of the selected time in which all of its probes were recorded; `None` if they were never detached.
    pub part: Option<RecordedPart>,
    /// Hits of its probes that the recorder lost.
    pub lost: Option<u64>,
    /// The argument that matches begins and ends which the thread does not match.
    pub better_key: Option<String>,
    /// What a program needs for its begins to be hit, as schemas say: names of the events, and what each needs.
    pub begin_needs: Vec<BeginNeed>,
}

/// What a program needs for an event that begins spans to be hit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BeginNeed {
    /// Name of the event.
    pub event: String,
    /// What it needs, as its schema says.
    pub needs: String,
}

/// What the begins of a pair need.
fn begin_needs(session: &TraceSession, starts: &[String]) -> Vec<BeginNeed> {
    let definitions = session.info().definitions.iter();
    let probes = definitions.flat_map(|definitions| &definitions.probes);
    let needs = probes.filter(|probe| starts.contains(&probe.event));
    let needs = needs.filter_map(|probe| {
        Some(BeginNeed {
            event: probe.event.clone(),
            needs: probe.needs.clone()?,
        })
    });
    let mut needs: Vec<BeginNeed> = needs.collect();
    needs.sort();
    needs.dedup();
    needs
}

impl SpanFacts {
    pub(crate) fn new(walk: &SpanWalk<'_>, pair: &Pair, key: &SpanKey, stats: &PairStats) -> Self {
        let session = walk.session;
        let names = |events: &[usize]| {
            let known = |&event: &usize| session.events().events.get(event);
            let mut names: Vec<String> = events
                .iter()
                .filter_map(known)
                .map(|event| event.name.clone())
                .collect();
            names.sort();
            names.dedup();
            names
        };
        let SpanCounts {
            ended_begins,
            begun_ends,
            open,
            unmatched,
            ..
        } = stats.counts;
        let events = [&*pair.starts, &pair.dones].concat();
        let part = RecordedPart::selected(session, walk.filter, &events);
        let is_of_thread = matches!(key, SpanKey::Thread(_) | SpanKey::Crossing(_));
        let is_apart = is_of_thread && open > ended_begins && unmatched > begun_ends;
        Self {
            name: pair.name.clone(),
            better_key: is_apart.then(|| better_key(session, pair)).flatten(),
            key: key.name(),
            agreed: key.agreed().to_vec(),
            begin_needs: begin_needs(session, &names(&pair.starts)),
            starts: names(&pair.starts),
            dones: names(&pair.dones),
            durations: DurationFacts::new(&stats.all),
            counts: stats.counts,
            // No span is matched while any of them is detached.
            part: part.map(|part| RecordedPart {
                is_same: true,
                ..part
            }),
            lost: session
                .losses()
                .lost_of(|event| pair.starts.contains(&event) || pair.dones.contains(&event)),
        }
    }
}

/// Spans in groups that are not shown one by one.
#[derive(Clone, Debug)]
pub struct OtherSpans {
    /// Number of groups; `None` if they were too many to be counted.
    pub groups: Option<usize>,
    /// How long they lasted.
    pub durations: DurationFacts,
    /// What one of them may have at most of the figure that groups are sorted by, if that is more than the last group shown has.
    pub doubtful: Option<u64>,
}

/// The spans of one group.
#[derive(Clone, Debug)]
pub struct SpanGroupFacts {
    /// The value of each key.
    pub values: Vec<KeyValue>,
    /// How long they lasted.
    pub durations: DurationFacts,
}

/// One of the slowest.
#[derive(Clone, Debug)]
pub struct SlowFacts {
    /// The span.
    pub slow: SlowSpan,
    /// The event that began it.
    pub begin: SlowBegin,
}

impl SlowFacts {
    /// The slowest of a pair, the slowest first.
    pub(crate) fn from_stats(
        session: &TraceSession,
        stats: &PairStats,
        stacks: BeginStacks,
    ) -> Vec<Self> {
        let mut all: Vec<SlowSpan> = stats.slowest.iter().map(|slow| slow.0.clone()).collect();
        all.sort_by(|a, b| b.cmp(a));
        let begins = begins(session, &all, stacks);
        let both = all.into_iter().zip(begins);
        both.map(|(slow, begin)| Self { slow, begin }).collect()
    }
}

/// The spans of a trace.
#[derive(Debug)]
pub struct SpanReport {
    /// Facts about the trace.
    pub origin: Origin,
    /// Names that begin and end of a span both have.
    pub ambiguities: Vec<Ambiguity>,
    /// Shorter spans do not count, ns.
    pub min: u64,
    /// Those with less of a part of their time do not count either.
    pub least_parts: LeastParts,
    /// By which figure groups are sorted.
    pub order: GroupOrder,
    /// What spans are grouped by.
    pub by: Vec<GroupBy>,
    /// The spans of each pair.
    pub spans: Vec<SpanFacts>,
    /// For each kind of span, its groups in the requested order.
    pub groups: Vec<Vec<SpanGroupFacts>>,
    /// For each kind of span, the rest that is not in its groups.
    pub others: Vec<Option<OtherSpans>>,
    /// For each kind of span, the slowest ones.
    pub slowest: Vec<Vec<SlowFacts>>,
}
