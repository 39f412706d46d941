//! What stacks weigh: hits, an argument's sum, or the time of the spans that begin there.

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::question_error::QuestionError;

use crate::groups::stats::Sum;
use crate::groups::{GroupQuestion, GroupTable, grouped};
use crate::origin::Origin;
use crate::question::{GroupOrder, SpanQuestion, StackKind, StackWeight};
use crate::samples::SelectedSamples;
use crate::span_report::request::SpanRequest;
use crate::span_report::spans;
use crate::stacks::call_facts::CallFacts;
use crate::stacks::path::{HitsWithoutStack, StackTable, WeighedPath};
use crate::stacks::unnamed_frames::UnnamedFrames;
use crate::stacks::weighed::{WeighedStacks, WeightUnit};
use crate::stats::keys::key::Key;
use crate::stats::keys::value::KeyValue;

/// Weighs the stacks of the selected samples.
pub(crate) fn weigh(
    samples: SelectedSamples<'_>,
    weight: &StackWeight,
    of: StackKind,
    notices: &mut Notices,
) -> Result<WeighedStacks, ReportError> {
    let (unit, weighed) = match weight {
        StackWeight::Hits => (WeightUnit::Hits, by_hits(samples, None, of, notices)?),
        StackWeight::Sum(name) => (
            WeightUnit::Sum(name.clone()),
            by_hits(samples, Some(name), of, notices)?,
        ),
        StackWeight::Spans(question) => (
            WeightUnit::SpanTime,
            by_spans(samples, question, of, notices)?,
        ),
    };
    let Weighed {
        tables,
        without_stack,
        calls,
    } = weighed;
    let session = samples.session;
    Ok(WeighedStacks {
        origin: Origin::new(session),
        losses: session.losses().clone(),
        unit,
        calls,
        without_stack,
        unnamed: UnnamedFrames::count(&tables, session),
        tables,
    })
}

/// Stacks of all events.
struct Weighed {
    tables: Vec<StackTable>,
    without_stack: HitsWithoutStack,
    calls: Option<CallFacts>,
}

/// Stacks by hits, or by the sum of an argument.
fn by_hits(
    samples: SelectedSamples<'_>,
    value: Option<&str>,
    of: StackKind,
    notices: &mut Notices,
) -> Result<Weighed, ReportError> {
    let question = GroupQuestion {
        sort: &[of.key().to_owned()],
        value,
        top: None,
        order: GroupOrder::Sum,
    };
    let found = grouped(samples, question, notices)?;
    let calls = found.keys.iter().find_map(Key::calls);
    let calls = calls.map(|calls| CallFacts::new(calls, samples.session));
    let mut without_stack = HitsWithoutStack::default();
    let tables = found.tables.into_iter();
    let tables = tables.map(|table| table_of(table, value, &mut without_stack));
    let tables: Vec<Option<StackTable>> = tables.collect::<Result<_, _>>()?;
    Ok(Weighed {
        tables: tables.into_iter().flatten().collect(),
        without_stack,
        calls,
    })
}

fn table_of(
    table: GroupTable,
    value: Option<&str>,
    without_stack: &mut HitsWithoutStack,
) -> Result<Option<StackTable>, ReportError> {
    let mut paths = Vec::new();
    let others = table.others.map(|others| {
        let figures = others.stats.and_then(|stats| stats.figures);
        (KeyValue::OtherStacks, others.count, figures)
    });
    let groups = table.rows.into_iter().map(|group| {
        let figures = group.stats.and_then(|stats| stats.figures);
        let stack = group.values.into_iter().next();
        (stack.unwrap_or(KeyValue::Absent), group.count, figures)
    });
    for (stack, count, figures) in groups.chain(others) {
        let weight = match (value, figures) {
            (None, _) => count.samples,
            (Some(_), None) => 0,
            (Some(name), Some(figures)) => whole(figures.sum, name)?,
        };
        paths.push(WeighedPath::from_value(stack, weight, count.samples));
    }
    let name = table.event.unwrap_or_default();
    Ok(StackTable::new(name, paths, without_stack))
}

/// A sum as a weight: floats are rounded to the nearest integer.
fn whole(sum: Sum, name: &str) -> Result<u64, ReportError> {
    let whole = match sum {
        Sum::Integers(sum) => u64::try_from(sum).ok(),
        Sum::Floats(sum) => {
            let fits = (0.0..u64::MAX as f64).contains(&sum);
            fits.then(|| sum.round() as u64)
        }
    };
    let name = name.to_owned();
    whole.ok_or_else(|| QuestionError::NoWeight { name }.into())
}

/// The stacks on which spans begin, by the time in the spans and in no span within them.
fn by_spans(
    samples: SelectedSamples<'_>,
    question: &SpanQuestion,
    of: StackKind,
    notices: &mut Notices,
) -> Result<Weighed, ReportError> {
    let question = SpanQuestion {
        by: vec![of.key().to_owned()],
        order: GroupOrder::Own,
        // All stacks; a number would be that of the slowest spans that are kept and read again, too.
        top: None,
        ..question.clone()
    };
    let request = SpanRequest {
        samples,
        question: &question,
    };
    let report = spans(request, notices)?;
    let calls = report.by.iter().find_map(|by| by.key.calls());
    let calls = calls.map(|calls| CallFacts::new(calls, samples.session));
    let pairs = report
        .spans
        .into_iter()
        .zip(report.groups)
        .zip(report.others);
    let mut without_stack = HitsWithoutStack::default();
    let tables = pairs.filter_map(|((span, groups), others)| {
        let groups = groups.into_iter().map(|group| {
            let stack = group.values.into_iter().next();
            (stack.unwrap_or(KeyValue::Absent), group.durations)
        });
        let others = others.map(|others| (KeyValue::OtherStacks, others.durations));
        let paths = groups.chain(others);
        let paths = paths.map(|(stack, durations)| {
            WeighedPath::from_value(stack, durations.own_sum, durations.count)
        });
        StackTable::new(span.name, paths.collect(), &mut without_stack)
    });
    Ok(Weighed {
        tables: tables.collect(),
        without_stack,
        calls,
    })
}
