//! One recording of the two, worked out.

use std::collections::BTreeMap;
use std::sync::Arc;

use usdtrec_format::perf::Sample;
use usdtrec_format::schema;
use usdtrec_format::trace::TimeRange;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::form::Form;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::resolver::Resolver;

use crate::diff::compare_question::{CompareQuestion, ComparedSpans};
use crate::diff::counts::{ArgumentCounts, RecordingCounts};
use crate::diff::frequent_strings::{ComparedSamples, recount};
use crate::diff::quantiles::Ranked;
use crate::diff::slices::{Counts, SLICES, SliceParts, total};
use crate::diff::span_groups::GroupKey;
use crate::diff::strings::SlicedStrings;
use crate::losses::Losses;
use crate::origin::Origin;
use crate::span_report::group_keys;
use crate::spans::asked_keys::asked_keys_with;
use crate::spans::common_integers::CommonIntegers;
use crate::spans::durations::{Durations, MAX_SPAN_GROUPS, PairStats};
use crate::spans::options::GroupBy;
use crate::spans::own_keys::EarlyKeys;
use crate::spans::spent_time::{SpentFacts, SpentSums};
use crate::spans::walk::SpanWalk;
use crate::spans::with_samples::{SpansBeside, fold_with_spans};
use crate::stats::distribution::Distribution;
use crate::stats::keys::key::Key;
use crate::stats::number::Integer;
use crate::stats::timeline::Timeline;

/// The question about a recording.
#[derive(Debug)]
pub(crate) struct RecordingQuestion {
    pub(crate) filter: SampleFilter,
    /// Why it has nothing of that, if so.
    pub(crate) lacking: Option<QuestionError>,
    /// The spans.
    pub(crate) spans: ComparedSpans,
    /// The integers of each pair, with what both recordings say of them: spans of both are matched by the same rule.
    pub(crate) integers: Vec<CommonIntegers>,
}

/// A recording.
#[derive(Debug)]
pub struct ComparedRecording {
    /// Facts about the trace.
    pub origin: Origin,
    /// Why nothing of it is compared, if so: it does not have what is requested.
    pub lacking: Option<QuestionError>,
    pub(crate) timeline: Timeline,
    /// Its probes that are requested, by perf's event name.
    pub probes: BTreeMap<String, ProbeSide>,
    /// The spans that are requested, by name.
    pub(crate) spans: BTreeMap<String, SpanSide>,
    /// By what they are matched, in the order of their names.
    pub rules: Vec<SpanRule>,
    /// Events that it lost.
    pub losses: Losses,
    /// What is wrong with it.
    pub notices: Notices,
}

/// By what the begins and ends of spans are matched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanRule {
    /// Name of the spans.
    pub name: String,
    /// What begin and end have in common: `tid`, `pid` or an argument.
    pub key: String,
    /// The arguments that they have in common beside it.
    pub agreed: Vec<String>,
}

/// A probe in a recording.
#[derive(Debug)]
pub struct ProbeSide {
    /// Its hits.
    pub counts: Counts,
    /// Events lost; 0 if the trace does not say which probe lost them.
    pub lost: u64,
    /// The part of each slice in which it was recorded: not in pauses, nor between files.
    pub(crate) recorded: SliceParts,
    pub(crate) arguments: Vec<ArgumentSide>,
}

/// An argument in a recording.
#[derive(Debug)]
pub(crate) struct ArgumentSide {
    pub(crate) known: schema::Argument,
    pub(crate) form: Form,
    /// Its numbers: those of the kind that it has more of.
    pub(crate) numbers: Option<Ranked>,
    pub(crate) strings: SlicedStrings,
    pub(crate) missing: Counts,
}

/// Spans of one name.
#[derive(Debug)]
pub(crate) struct SpanSide {
    /// ns, in the slices in which they began; `None` without spans.
    pub(crate) durations: Option<Ranked>,
    /// The same figures for each requested group.
    pub(crate) groups: BTreeMap<GroupKey, Ranked>,
    /// What their time was spent on; `None` if the trace does not say it.
    pub(crate) spent: Option<SpentFacts>,
    /// The same of the groups of which it is known.
    pub(crate) spent_by_group: BTreeMap<GroupKey, SpentFacts>,
}

/// Durations of spans by slice, and what they were spent on.
#[derive(Default)]
struct SlicedDurations {
    slices: [Distribution<Integer>; SLICES],
    spent: SpentSums,
}

impl SlicedDurations {
    fn add(&mut self, slice: usize, durations: &Durations) {
        if let Some(slice) = self.slices.get_mut(slice) {
            slice.merge(durations.distribution.clone());
        }
        self.spent.merge(&durations.spent);
    }

    fn spent(&self) -> Option<SpentFacts> {
        let count = self.slices.iter().map(Distribution::count).sum();
        self.spent.facts(count)
    }
}

impl ComparedRecording {
    /// Reads a recording once.
    ///
    /// # Errors
    /// [`ReportError::Question`] if it has no key that spans are to be matched or grouped by, or too many groups.
    pub(crate) fn new(
        session: &TraceSession,
        asked: RecordingQuestion,
        question: CompareQuestion<'_>,
    ) -> Result<Self, ReportError> {
        let RecordingQuestion {
            filter,
            lacking,
            spans,
            integers,
        } = asked;
        let ComparedSpans {
            pairs,
            filter: of_spans,
        } = spans;
        let rows = Rows::new(session, |event| filter.event(event));
        let timeline = Timeline::divided(session, &filter, SLICES);
        let mut by = vec![GroupBy::of_begin(Key::Interval(timeline))];
        for name in question.by.iter().filter(|_| lacking.is_none()) {
            by.push(group_keys::by(name, session, &rows, &pairs)?);
        }
        let keys = asked_keys_with(question.key(&pairs), &pairs, session, &rows, || integers)?;
        let spans = SpansBeside {
            keys: EarlyKeys::given(keys),
            by,
            min: question.spans.least,
            pairs,
            filter: of_spans,
        };
        let rules = spans.pairs.iter().zip(&spans.keys.keys);
        let rules = rules.map(|(pair, key)| SpanRule {
            name: pair.name.clone(),
            key: key.name(),
            agreed: key.agreed().to_vec(),
        });
        let mut rules: Vec<SpanRule> = rules.collect();
        rules.sort();
        let mut notices = Notices::new(session);
        notices.set_paused(session, &filter);
        let (sums, spans) = walk(session, &filter, &rows, timeline, spans, &mut notices)?;
        rules.retain(|rule| {
            let side = spans.get(&rule.name);
            side.is_some_and(|side| side.durations.is_some())
        });
        let losses = Losses::new(session, &rows);
        let probes = rows.rows.into_iter().zip(sums.rows).zip(&losses.rows);
        let probes = probes.map(|((row, sums), &lost)| {
            let recorded = recorded_parts(session, &timeline, &row.events);
            let arguments = row.arguments.iter().zip(sums.arguments);
            let side = ProbeSide {
                counts: sums.counts,
                lost,
                recorded,
                arguments: arguments
                    .map(|(known, sums)| ArgumentSide::new(known, sums))
                    .collect(),
            };
            (row.name, side)
        });
        Ok(Self {
            origin: Origin::new(session),
            lacking,
            timeline,
            probes: probes.collect(),
            spans,
            rules,
            losses,
            notices,
        })
    }

    /// Events that are requested.
    pub fn events(&self) -> u64 {
        self.probes.values().map(|probe| total(&probe.counts)).sum()
    }

    /// Length of the time that is selected, ns.
    pub fn duration(&self) -> u64 {
        let slices = self.timeline.intervals as u64;
        self.timeline.interval.saturating_mul(slices)
    }

    /// Slices in a second; `None` in a recording of no length.
    pub(crate) fn slices_per_second(&self) -> Option<f64> {
        (self.timeline.interval > 1).then(|| 1e9 / self.timeline.interval as f64)
    }
}

type Spans = BTreeMap<String, SpanSide>;

/// Sums up all samples, and matches spans. They are grouped by keys, the first of which is the slice.
fn walk(
    session: &TraceSession,
    filter: &SampleFilter,
    rows: &Rows,
    timeline: Timeline,
    spans: SpansBeside,
    notices: &mut Notices,
) -> Result<(RecordingCounts, Spans), ReportError> {
    let make = || RecordingCounts::new(rows);
    let add =
        |sums: &mut RecordingCounts, resolver: &mut Resolver<'_>, target, sample: &Sample<'_>| {
            let slice = timeline.place(sample.time);
            sums.add(rows, slice, resolver, target, sample);
        };
    let found = |walk: &SpanWalk<'_>, found: crate::spans::walk::Spans| {
        notices.add_forgotten(found.forgotten);
        let named = walk.pairs.iter().zip(found.pair_stats);
        let named = named.map(|(pair, sums)| Ok((pair.name.clone(), SpanSide::new(walk, sums)?)));
        named.collect::<Result<Spans, ReportError>>()
    };
    let walked = fold_with_spans(session, filter, rows, spans, make, add, found);
    let spans = walked.spans.transpose()?.unwrap_or_default();
    notices.add(walked.outcome);
    let sums = walked.states.into_iter().reduce(RecordingCounts::merge);
    let mut sums = sums.unwrap_or_else(|| RecordingCounts::new(rows));
    let samples = ComparedSamples {
        session,
        filter,
        rows,
        timeline,
    };
    recount(samples, &mut sums, notices);
    Ok((sums, spans))
}

impl SpanSide {
    fn new(walk: &SpanWalk<'_>, sums: PairStats) -> Result<Self, ReportError> {
        if sums.overflow {
            return Err(QuestionError::TooManySpanGroups {
                most: MAX_SPAN_GROUPS,
                slices: SLICES,
            }
            .into());
        }
        let keys = walk.options.by.iter().skip(1);
        let keys: Arc<[Key]> = keys.map(|by| by.key.clone()).collect();
        let mut all = SlicedDurations::default();
        #[expect(
            clippy::mutable_key_type,
            reason = "what changes in a key of scripts is not compared"
        )]
        let mut groups: BTreeMap<GroupKey, SlicedDurations> = BTreeMap::new();
        for (words, durations) in sums.groups {
            // What began before the time that is compared is in no slice.
            let Some((slice, words)) = words.split_first().filter(|(slice, _)| slice.is_distinct())
            else {
                continue;
            };
            let slice = (slice.word as usize).min(SLICES - 1);
            if !words.is_empty() {
                let both = keys.iter().zip(words);
                let values = both.map(|(key, &words)| {
                    key.value(words, walk.session, walk.rows, walk.dictionary)
                });
                let name = GroupKey::new(&keys, values.collect());
                groups.entry(name).or_default().add(slice, &durations);
            }
            all.add(slice, &durations);
        }
        let spent = groups.iter();
        let spent = spent.filter_map(|(name, group)| Some((name.clone(), group.spent()?)));
        let ranked = |spans: SlicedDurations| Ranked::new(Vec::from(spans.slices));
        Ok(Self {
            spent_by_group: spent.collect(),
            groups: groups
                .into_iter()
                .filter_map(|(name, group)| Some((name, ranked(group)?)))
                .collect(),
            spent: all.spent(),
            durations: ranked(all),
        })
    }
}

/// The part of each slice in which events were recorded.
fn recorded_parts(session: &TraceSession, timeline: &Timeline, events: &[usize]) -> SliceParts {
    let recorded = timeline.recorded(session, events);
    std::array::from_fn(|slice| {
        let TimeRange { first, last } = timeline.part(slice as u64);
        match (recorded.get(slice), last.saturating_sub(first)) {
            (Some(&recorded), length @ 1..) => recorded as f64 / length as f64,
            _ => 1.0,
        }
    })
}

impl ProbeSide {
    /// The part of the recording's time in which it was recorded, 0 to 1.
    pub fn recorded_part(&self) -> f64 {
        self.recorded.iter().sum::<f64>() / SLICES as f64
    }
}

impl ArgumentSide {
    fn new(known: &schema::Argument, sums: ArgumentCounts) -> Self {
        let integers = Ranked::new(sums.integers.0);
        let floats = Ranked::new(sums.floats.0);
        let numbers = [integers, floats].into_iter().flatten();
        Self {
            known: known.clone(),
            form: Form::new(known),
            numbers: numbers.max_by_key(Ranked::count),
            strings: sums.strings,
            missing: sums.missing,
        }
    }
}
