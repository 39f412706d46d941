//! What the time of spans was spent on in both recordings.

use serde_json::{Value, json};
use usdtrec_analysis::diff::comparison::Comparison;
use usdtrec_analysis::diff::metric::{Metric, MetricSubject};
use usdtrec_analysis::diff::spent_change::{PartChange, SpentChange};
use usdtrec_analysis::spans::spent_time::SpentFacts;
use usdtrec_format::TimePart;

use crate::columns::folded;
use crate::diff::table::subject;
use crate::numbers::{duration, percent_of};
use crate::theme::Theme;

/// Appends a line for the spans, and the groups of them, of which a figure is shown as different.
pub(crate) fn put(comparison: &Comparison, shown: &[&Metric], theme: Theme, out: &mut String) {
    let is_shown = |of: &MetricSubject| shown.iter().any(|figure| figure.subject == *of);
    for change in comparison
        .spent
        .iter()
        .filter(|change| is_shown(&change.subject))
    {
        folded(&line(change), "  ", theme, out);
    }
}

/// `query: 3.10ms more blocked a span; on cpu 56.9% to 16.9%, blocked 5.2% to 62.9%`.
fn line(change: &SpentChange) -> String {
    let PartChange { part, by } = change.most();
    let more = if by < 0.0 { "less" } else { "more" };
    let shares = TimePart::ALL.map(|part| {
        let [a, b] = change.shares(part).map(percent_of);
        format!("{} {a} to {b}", part.spec().words)
    });
    format!(
        "{}: {} {more} {} a span; {}",
        subject(&change.subject, true),
        duration(by.abs()),
        part.spec().words,
        shares.join(", ")
    )
}

/// The same for programs; `words` are kind, name, argument and group of a subject.
pub(crate) fn json(
    comparison: &Comparison,
    words: impl Fn(&MetricSubject) -> [Option<String>; 4],
) -> Option<Value> {
    let side = |spent: &SpentFacts| {
        let mut row = json!({"known": spent.known});
        for part in TimePart::ALL {
            row[part.spec().column] = spent.part(part).into();
        }
        row
    };
    let changes = comparison.spent.iter().map(|change| {
        let [kind, name, _, group] = words(&change.subject);
        let most = change.most().part.spec().name;
        json!({"kind": kind, "name": name, "group": group, "most": most, "a": side(&change.a), "b": side(&change.b)})
    });
    (!comparison.spent.is_empty()).then(|| changes.collect())
}
