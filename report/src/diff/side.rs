//! One recording of the two, worked out.

use std::collections::BTreeMap;

use usdtrec_format::perf::Sample;
use usdtrec_format::schema;

use super::ranked::Ranked;
use super::slices::{Counts, SLICES, total};
use super::tally::{ArgumentTally, RowTally, Tally};
use super::texts::Texts;
use crate::fold::fold;
use crate::notice::Notices;
use crate::order::Outcome;
use crate::report::distribution::Distribution;
use crate::report::groups::{Dictionary, Key};
use crate::report::head::Head;
use crate::report::losses::Losses;
use crate::report::number::Integer;
use crate::report::summary::Rows;
use crate::report::timeline::Timeline;
use crate::select::Filter;
use crate::session::{Resolver, Session};
use crate::span::{Pair, PairTally, SpanOptions, SpanWalk};
use crate::text::Form;

/// A recording.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) head: Head,
    /// Why nothing of it is compared, if so: it does not have what is asked for.
    pub(super) lacking: Option<String>,
    pub(super) timeline: Timeline,
    /// Its probes that are asked for, by perf's event name.
    pub(super) probes: BTreeMap<String, ProbeSide>,
    /// The spans that names of probes tell of, by name.
    pub(super) spans: BTreeMap<String, SpanSide>,
    pub(super) losses: Losses,
    pub(super) notices: Notices,
}

/// A probe in a recording.
#[derive(Debug)]
pub(super) struct ProbeSide {
    pub(super) counts: Counts,
    /// Events lost, as far as they could be told apart from others.
    pub(super) lost: u64,
    pub(super) arguments: Vec<ArgumentSide>,
}

/// An argument in a recording.
#[derive(Debug)]
pub(super) struct ArgumentSide {
    pub(super) known: schema::Argument,
    pub(super) form: Form,
    /// Its numbers: those of the kind that it has more of.
    pub(super) numbers: Option<Ranked>,
    pub(super) texts: Texts,
    pub(super) missing: Counts,
}

/// Spans of one name.
#[derive(Debug)]
pub(super) struct SpanSide {
    /// ns, in the slices in which they began; `None` if there were none.
    pub(super) durations: Option<Ranked>,
}

impl Side {
    /// Reads a recording once.
    pub(super) fn new(
        session: &Session,
        (filter, lacking): (Filter, Option<String>),
        human: bool,
    ) -> Self {
        let rows = Rows::new(session, |event| filter.event(event));
        let timeline = Timeline::divided(session, &filter, SLICES);
        let (tally, spans, outcome) = walk(session, &filter, &rows, timeline);
        let losses = Losses::new(session, &rows);
        let mut notices = Notices::new(session);
        notices.add(outcome);
        let probes = rows.rows.into_iter().zip(tally.rows).zip(&losses.rows);
        let probes = probes.map(|((row, tally), &lost)| {
            (row.name, ProbeSide::new(&row.arguments, tally, lost, human))
        });
        Self {
            head: Head::new(session),
            lacking,
            timeline,
            probes: probes.collect(),
            spans,
            losses,
            notices,
        }
    }

    /// Events that are asked for.
    pub(super) fn events(&self) -> u64 {
        self.probes.values().map(|probe| total(&probe.counts)).sum()
    }

    /// Length of the time that is asked for, ns.
    pub(super) fn duration(&self) -> u64 {
        let slices = self.timeline.intervals as u64;
        self.timeline.interval.saturating_mul(slices)
    }

    /// Slices in a second; `None` in a recording of no length.
    pub(super) fn slices_per_second(&self) -> Option<f64> {
        (self.timeline.interval > 1).then(|| 1e9 / self.timeline.interval as f64)
    }
}

type Spans = BTreeMap<String, SpanSide>;

/// Sums up all samples, and matches spans where names of probes tell of any.
fn walk(
    session: &Session,
    filter: &Filter,
    rows: &Rows,
    timeline: Timeline,
) -> (Tally, Spans, Outcome) {
    let make = || Tally::new(rows);
    let add = |tally: &mut Tally, resolver: &mut Resolver<'_>, target, sample: &Sample<'_>| {
        let slice = timeline.place(sample.time);
        tally.add((rows, slice), resolver, target, sample);
    };
    let pairs = Pair::find(session, |event| filter.event(event));
    let (spans, tallies, outcome) = if pairs.is_empty() {
        let (tallies, outcome) = fold(session, filter, make, add);
        (Spans::new(), tallies, outcome)
    } else {
        let keys = pairs.iter().map(|pair| pair.own_key(session, rows));
        let options = SpanOptions {
            keys: keys.collect(),
            by: vec![Key::Interval(timeline)],
            ..SpanOptions::default()
        };
        let walk = SpanWalk {
            session,
            filter,
            pairs: &pairs,
            options: &options,
            rows,
            dictionary: &Dictionary::default(),
        };
        let (found, tallies, outcome) = walk.run(make, add, |event| filter.event(event));
        let spans = pairs.iter().zip(found.tallies);
        let spans = spans.map(|(pair, tally)| (pair.name.clone(), SpanSide::new(tally)));
        (spans.collect(), tallies, outcome)
    };
    let tally = tallies.into_iter().reduce(Tally::merge);
    (tally.unwrap_or_else(|| Tally::new(rows)), spans, outcome)
}

impl SpanSide {
    fn new(tally: PairTally) -> Self {
        let mut slices = vec![Distribution::<Integer>::default(); SLICES];
        for (words, durations) in tally.groups {
            let slice = words.first().map_or(0, |&(_, slice)| slice as usize);
            if let Some(slice) = slices.get_mut(slice) {
                slice.merge(durations.distribution);
            }
        }
        Self {
            durations: Ranked::new(slices),
        }
    }
}

impl ProbeSide {
    fn new(known: &[schema::Argument], tally: RowTally, lost: u64, human: bool) -> Self {
        let arguments = known.iter().zip(tally.arguments);
        Self {
            counts: tally.counts,
            lost,
            arguments: arguments
                .map(|(known, tally)| ArgumentSide::new(known, tally, human))
                .collect(),
        }
    }
}

impl ArgumentSide {
    fn new(known: &schema::Argument, tally: ArgumentTally, human: bool) -> Self {
        let integers = Ranked::new(tally.integers.0);
        let floats = Ranked::new(tally.floats.0);
        let numbers = [integers, floats].into_iter().flatten();
        Self {
            known: known.clone(),
            form: Form::new(known, human),
            numbers: numbers.max_by_key(Ranked::count),
            texts: tally.texts,
            missing: tally.missing,
        }
    }
}
