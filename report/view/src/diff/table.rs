//! Figures of both recordings in a table.

use usdtrec_analysis::diff::comparison::Comparison;
use usdtrec_analysis::diff::metric::{Metric, MetricKind, MetricSubject};
use usdtrec_analysis::diff::recording::{ComparedRecording, ProbeSide};
use usdtrec_analysis::diff::slices::total;
use usdtrec_format::escape::escape;
use usdtrec_trace::form::Form;
use usdtrec_trace::session::event_name::short_name as short;

use crate::columns::put_table;
use crate::diff::names::{self, label};
use crate::numbers::{percent_of, rate};
use crate::table::{Table, TableCell};
use crate::text::scalar;
use crate::theme::Theme;

/// Settings of all tables of a comparison.
pub(crate) struct Tables<'c> {
    pub(crate) comparison: &'c Comparison,
}

impl Tables<'_> {
    /// The figure of A (0) or B (1), in text.
    fn shown(&self, figure: &Metric, which: usize) -> String {
        let (amount, recording) = match which {
            0 => (&figure.a, &self.comparison.a),
            _ => (&figure.b, &self.comparison.b),
        };
        let form = match &figure.kind {
            MetricKind::Share(_) => return percent_of(amount.value),
            MetricKind::Rate => return rate_of(&figure.subject, recording),
            MetricKind::Count => Form::Plain,
            MetricKind::Max => Form::Time(1),
            MetricKind::Quantile(at) => match &at.forms {
                Some(forms) => forms[which].clone(),
                None => Form::Time(1),
            },
        };
        amount
            .number
            .map_or_else(String::new, |number| scalar::shown(number, &form))
    }
}

/// The rate of a probe.
fn rate_of(subject: &MetricSubject, recording: &ComparedRecording) -> String {
    let probe = match subject {
        MetricSubject::Probe(event) => recording.probes.get(event),
        _ => None,
    };
    let events = probe.map_or(0, |probe| total(&probe.counts));
    let part = probe.map_or(1.0, ProbeSide::recorded_part);
    rate(events, (recording.duration() as f64 * part) as u64)
}

/// Appends a table with a line for each figure.
pub(crate) fn table(
    heading: &str,
    figures: &[&Metric],
    tables: &Tables<'_>,
    theme: Theme,
    out: &mut String,
) {
    let mut table = Table::new([heading, "", "A", "B", "Change", "99% sure of"]);
    let rows = figures.iter().map(|figure| row(figure, tables));
    table.rows.extend(rows);
    put_table(&table, theme, out);
}

fn row(figure: &Metric, tables: &Tables<'_>) -> Vec<TableCell> {
    vec![
        name(figure),
        TableCell::Text(kind(&figure.kind)),
        TableCell::number(tables.shown(figure, 0), figure.a.value),
        TableCell::number(tables.shown(figure, 1), figure.b.value),
        TableCell::unsorted(change(figure)),
        TableCell::unsorted(interval(figure).unwrap_or_default()),
    ]
}

/// `p50`, `/s`.
pub(crate) fn kind(of: &MetricKind) -> String {
    match of {
        MetricKind::Rate => "/s".to_owned(),
        MetricKind::Count => "count".to_owned(),
        MetricKind::Max => "max".to_owned(),
        MetricKind::Quantile(at) => format!("p{}", at.thousandths / 10),
        MetricKind::Share(_) => "share".to_owned(),
    }
}

/// `postgresql:query`, `postgresql:query__start.query="SELECT 1"`.
fn name(figure: &Metric) -> TableCell {
    let name = subject(&figure.subject, true);
    match (&figure.kind, &figure.subject) {
        (MetricKind::Share(of), _) => TableCell::Value(format!("{name}={}", label(of))),
        (_, MetricSubject::Group { .. }) => TableCell::Value(name),
        _ => TableCell::Code(name),
    }
}

/// `postgresql:query__start.query`.
pub(crate) fn subject(subject: &MetricSubject, human: bool) -> String {
    let name = match subject {
        MetricSubject::Probe(event) => short(event).to_owned(),
        MetricSubject::Span(name) => name.clone(),
        MetricSubject::Group { span, group } => {
            let values = names::group(group, human);
            return format!("{}  {values}", escape(span));
        }
        MetricSubject::Argument { event, name } => format!("{}.{name}", short(event)),
    };
    escape(&name).into_owned()
}

pub(crate) fn change(figure: &Metric) -> String {
    let (a, b) = (figure.a.value, figure.b.value);
    match (&figure.kind, figure.change()) {
        (MetricKind::Rate, _) if a == 0.0 => "new".to_owned(),
        (MetricKind::Rate, _) if b == 0.0 => "gone".to_owned(),
        (MetricKind::Share(_), _) => points(b - a),
        (_, Some(change)) => relative(change),
        (_, None) if a == b => "0.0%".to_owned(),
        (_, None) => format!("{:+}", b - a),
    }
}

/// A change of a share, 0 to 1.
fn points(difference: f64) -> String {
    format!("{} pts", signed(100.0 * difference))
}

/// A change as a part of the figure before.
fn relative(change: f64) -> String {
    if change >= 9.0 {
        format!("x{:.0}", change + 1.0)
    } else if change <= -0.9 && change > -1.0 {
        format!("÷{:.0}", 1.0 / (change + 1.0))
    } else if change.abs() < 0.0995 {
        format!("{}%", signed(100.0 * change))
    } else {
        format!("{:+.0}%", 100.0 * change)
    }
}

/// With its sign and one digit after the point; 0 has no sign.
fn signed(number: f64) -> String {
    let text = format!("{number:+.1}");
    if text == "-0.0" || text == "+0.0" {
        "0.0".to_owned()
    } else {
        text
    }
}

/// The limits of the change, in its unit: `+46% to +48%`; `None` if it has none.
pub(crate) fn interval(figure: &Metric) -> Option<String> {
    let test = figure.test?;
    let limit = |difference: f64| match figure.kind {
        MetricKind::Share(_) => points(difference),
        _ => relative(difference / figure.a.value),
    };
    let is_known = figure.a.value > 0.0 || matches!(figure.kind, MetricKind::Share(_));
    let limits = (
        test.low.filter(|_| is_known),
        test.high.filter(|_| is_known),
    );
    match limits {
        (Some(low), Some(high)) => Some(format!("{} to {}", limit(low), limit(high))),
        (Some(low), None) => Some(format!("{} or more", limit(low))),
        (None, Some(high)) => Some(format!("{} or less", limit(high))),
        (None, None) if test.noise.is_none() => Some("not known".to_owned()),
        (None, None) => None,
    }
}
