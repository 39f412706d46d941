//! Names of what is compared, and the reasons for what is not.

use usdtrec_analysis::diff::comparison::{
    Comparison, LeftOut, LeftOutReason, MIN_NUMBERS, WhichRecording,
};
use usdtrec_analysis::diff::metric::{Metric, MetricSubject, ShareOf};
use usdtrec_analysis::diff::span_groups::GroupKey;
use usdtrec_format::counted;
use usdtrec_format::escape::{escape, quote};

use crate::cells::{cells, group_name};
use crate::text::scalar;

/// The values of a group of spans in a line.
pub(crate) fn group(key: &GroupKey, human: bool) -> String {
    group_name(&cells(key.keys.iter(), &key.values, human))
}

/// A value that has a share, in text; escaped.
pub(crate) fn label(of: &ShareOf) -> String {
    match of {
        ShareOf::Missing => "<missing>".to_owned(),
        ShareOf::Number { number, form } => escape(&scalar::shown(*number, form)).into_owned(),
        ShareOf::String { string, form } => {
            let mut quoted = String::new();
            match form.readable_string(string) {
                Some(name) => quote(&mut quoted, name.as_bytes()),
                None => quote(&mut quoted, string),
            }
            quoted
        }
    }
}

/// Why something is not compared.
pub(crate) fn reason(of: &LeftOutReason) -> String {
    let name = |which: &WhichRecording| match which {
        WhichRecording::A => "A",
        WhichRecording::B => "B",
    };
    match of {
        LeftOutReason::ProbeOnlyIn(which, events) => {
            format!("recorded only in {}: {events} events", name(which))
        }
        LeftOutReason::SpansOnlyIn(which, spans) => {
            format!("only in {}: {}", name(which), counted(*spans, "span"))
        }
        LeftOutReason::ArgumentOnlyIn(which) => format!("only in {}", name(which)),
        LeftOutReason::TooFew => format!("fewer than {MIN_NUMBERS} numbers"),
        LeftOutReason::Units(a, b) => format!("{a} in A, {b} in B"),
        LeftOutReason::Addresses => "holds addresses, stamps or hashes".to_owned(),
        LeftOutReason::Counters => "goes one way all the time, as identifiers do".to_owned(),
    }
}

/// All figures in the order of their subjects' names.
pub(crate) fn ordered(comparison: &Comparison) -> Vec<&Metric> {
    let mut figures: Vec<&Metric> = comparison.figures.iter().collect();
    for run in figures.chunk_by_mut(|a, b| of_one_span(&a.subject, &b.subject)) {
        run.sort_by_cached_key(|figure| name_of_group(&figure.subject));
    }
    figures
}

/// The parts that are not compared, groups in the order of their names.
pub(crate) fn left_out(comparison: &Comparison) -> Vec<&LeftOut> {
    let mut all: Vec<&LeftOut> = comparison.left_out.iter().collect();
    let is_new = |left: &LeftOut| {
        matches!(
            left.reason,
            LeftOutReason::SpansOnlyIn(WhichRecording::B, _)
        )
    };
    let together =
        |a: &&LeftOut, b: &&LeftOut| of_one_span(&a.subject, &b.subject) && is_new(a) == is_new(b);
    for run in all.chunk_by_mut(together) {
        run.sort_by_cached_key(|left| name_of_group(&left.subject));
    }
    all
}

fn of_one_span(a: &MetricSubject, b: &MetricSubject) -> bool {
    match (a, b) {
        (MetricSubject::Group { span: a, .. }, MetricSubject::Group { span: b, .. }) => a == b,
        _ => false,
    }
}

fn name_of_group(subject: &MetricSubject) -> Option<String> {
    match subject {
        MetricSubject::Group { group: key, .. } => Some(group(key, false)),
        _ => None,
    }
}
