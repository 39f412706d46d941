//! A comparison as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use usdtrec_analysis::diff::FALSE_ALARMS;
use usdtrec_analysis::diff::comparison::{Comparison, LeftOut, LeftOutReason};
use usdtrec_analysis::diff::metric::{Metric, MetricKind, MetricSubject, Verdict};
use usdtrec_analysis::diff::slices::{SLICES, total};
use usdtrec_format::escape::escape;
use usdtrec_format::{counted, plural_ending};

use crate::columns::folded;
use crate::cut_apart::cut_apart;
use crate::diff::head::{losses, put_head, rules};
use crate::diff::headline::headline;
use crate::diff::names::{left_out, ordered, reason};
use crate::diff::options::DiffOptions;
use crate::diff::spent;
use crate::diff::table::{Tables, subject, table};
use crate::hints::Hint;
use crate::report::spans::only_long;
use crate::theme::Theme;

/// Maximum number of names of what is not compared.
const MAX_NAMED: usize = 32;

/// The comparison as text.
pub(crate) fn render(comparison: &Comparison, options: &DiffOptions) -> String {
    let mut out = String::new();
    let theme = Theme::new(options.colours).with_columns(options.columns);
    let shares = Shares::new(comparison, options);
    match shares.nothing(options.min) {
        Some(nothing) => out.extend([nothing.as_str(), "\n"]),
        None => headline(comparison, &shares.beyond, theme, &mut out),
    }
    out.push('\n');
    put_head("A", &comparison.a, theme, &mut out);
    put_head("B", &comparison.b, theme, &mut out);
    losses(comparison, theme, &mut out);
    rules(comparison, theme, &mut out);
    if let Some(remark) = only_long(options.spans.least) {
        theme.put_remark(&format!("# {remark}"), &mut out);
    }
    out.push('\n');
    let tables = Tables { comparison };
    let length = out.len();
    if !shares.beyond.is_empty() {
        table("Beyond noise", &shares.beyond, &tables, theme, &mut out);
        spent::put(comparison, &shares.beyond, theme, &mut out);
    }
    news(comparison, theme, &mut out);
    if out.len() > length {
        out.push('\n');
    }
    if options.all {
        everything(&shares, &tables, theme, &mut out);
    } else {
        put_shares(&shares, options, &mut out);
    }
    put_left_out(comparison, options, theme, &mut out);
    method(comparison, theme, &mut out);
    out
}

/// Figures by their verdicts.
struct Shares<'c> {
    /// The farthest beyond noise first.
    beyond: Vec<&'c Metric>,
    /// Beyond noise, by less than is requested.
    small: Vec<&'c Metric>,
    within: Vec<&'c Metric>,
    unknown: Vec<&'c Metric>,
    /// Not tested.
    facts: Vec<&'c Metric>,
}

impl<'c> Shares<'c> {
    fn new(comparison: &'c Comparison, options: &DiffOptions) -> Self {
        let DiffOptions { min, .. } = *options;
        let mut shares = Self {
            beyond: Vec::new(),
            small: Vec::new(),
            within: Vec::new(),
            unknown: Vec::new(),
            facts: Vec::new(),
        };
        for figure in ordered(comparison) {
            match figure.verdict() {
                Some(Verdict::Beyond) if figure.changed_by(min) => shares.beyond.push(figure),
                Some(Verdict::Beyond) => shares.small.push(figure),
                Some(Verdict::Within) => shares.within.push(figure),
                Some(Verdict::Unknown) => shares.unknown.push(figure),
                None => shares.facts.push(figure),
            }
        }
        let size = |figure: &Metric| {
            figure
                .change()
                .map_or(f64::INFINITY, |ratio| (1.0 + ratio).ln().abs())
        };
        shares.beyond.sort_by(|one, other| {
            let by_score = other.score().total_cmp(&one.score());
            by_score.then_with(|| size(other).total_cmp(&size(one)))
        });
        shares
    }
}

impl Shares<'_> {
    /// What the first line says if nothing is shown as different.
    fn nothing(&self, min: f64) -> Option<String> {
        let words = if !self.beyond.is_empty() {
            return None;
        } else if !self.small.is_empty() {
            return Some(format!("Nothing differs beyond noise by {min}% or more."));
        } else if !self.within.is_empty() {
            "Nothing differs beyond noise."
        } else if !self.unknown.is_empty() {
            "Too few, or too uneven, events to tell whether anything differs."
        } else {
            "Nothing can be compared."
        };
        Some(words.to_owned())
    }
}

/// Appends the probes that were hit in one recording only, and so seldom, or in so few moments, that it may be chance.
fn news(comparison: &Comparison, theme: Theme, out: &mut String) {
    for (title, is_new) in [("New", true), ("Gone", false)] {
        let is_one = |figure: &&Metric| {
            let none = if is_new { &figure.a } else { &figure.b };
            figure.kind == MetricKind::Rate
                && none.value == 0.0
                && figure.verdict() != Some(Verdict::Beyond)
        };
        let side = if is_new { &comparison.b } else { &comparison.a };
        let names = comparison.figures.iter().filter(is_one).map(|figure| {
            let counts = match &figure.subject {
                MetricSubject::Probe(event) => {
                    side.probes.get(event).map(|probe| total(&probe.counts))
                }
                _ => None,
            };
            format!(
                "{} ({})",
                subject(&figure.subject, false),
                counts.unwrap_or(0)
            )
        });
        let names: Vec<String> = names.collect();
        if !names.is_empty() {
            let line = format!("{title}, but seldom or all at once: {}", names.join(", "));
            folded(&line, "", theme, out);
        }
    }
}

/// Appends a line with the number of figures within noise.
fn put_shares(shares: &Shares<'_>, options: &DiffOptions, out: &mut String) {
    let DiffOptions { min, hints, .. } = *options;
    if !shares.small.is_empty() {
        let _ = writeln!(
            out,
            "Beyond noise by less than {min}%: {}{}",
            subjects(&shares.small, &[]),
            hints.in_brackets(&Hint::SmallChanges)
        );
    }
    let listed = [&*shares.beyond, &*shares.small].concat();
    for (title, figures) in [
        ("Within noise", &shares.within),
        ("Too few, or too uneven, to tell", &shares.unknown),
    ] {
        let rest = subjects(figures, &listed);
        if !rest.is_empty() {
            let how = hints.in_brackets(&Hint::AllFigures);
            let _ = writeln!(out, "{title}: {rest}{how}");
        }
    }
}

/// `11 probes, 2 spans`: what metrics are of, except those listed before.
fn subjects(figures: &[&Metric], listed: &[&Metric]) -> String {
    #[expect(
        clippy::mutable_key_type,
        reason = "what changes in a key of scripts is not compared"
    )]
    let listed: BTreeSet<&MetricSubject> = listed.iter().map(|figure| &figure.subject).collect();
    #[expect(
        clippy::mutable_key_type,
        reason = "what changes in a key of scripts is not compared"
    )]
    let subjects: BTreeSet<&MetricSubject> = figures.iter().map(|figure| &figure.subject).collect();
    let mut counts = [("probe", 0), ("span", 0), ("argument", 0)];
    for subject in subjects.difference(&listed) {
        let place = match subject {
            MetricSubject::Probe(_) => 0,
            MetricSubject::Span(_) | MetricSubject::Group { .. } => 1,
            MetricSubject::Argument { .. } => 2,
        };
        counts[place].1 += 1;
    }
    let parts = counts.iter().filter(|(_, count)| *count > 0);
    let parts = parts.map(|(name, count)| counted(*count, name));
    parts.collect::<Vec<_>>().join(", ")
}

/// Appends the figures that are not beyond noise.
fn everything(shares: &Shares<'_>, tables: &Tables<'_>, theme: Theme, out: &mut String) {
    for (heading, figures) in [
        ("Beyond noise, small", &shares.small),
        ("Within noise", &shares.within),
        ("Too little to tell", &shares.unknown),
        ("Not tested", &shares.facts),
    ] {
        if !figures.is_empty() {
            table(heading, figures, tables, theme, out);
            out.push('\n');
        }
    }
}

/// The parts that are not compared. Probes, arguments and groups of one recording only are named.
fn put_left_out(comparison: &Comparison, options: &DiffOptions, theme: Theme, out: &mut String) {
    let DiffOptions { all, hints, .. } = *options;
    let is_named = |left: &&LeftOut| {
        let of_one = matches!(
            left.reason,
            LeftOutReason::ProbeOnlyIn(..)
                | LeftOutReason::SpansOnlyIn(..)
                | LeftOutReason::ArgumentOnlyIn(_)
        );
        all || of_one
    };
    let (named, mut counted): (Vec<_>, Vec<_>) =
        left_out(comparison).into_iter().partition(is_named);
    let names = named.iter().take(MAX_NAMED);
    let names: Vec<String> = names.map(|left| subject(&left.subject, true)).collect();
    let whole: Vec<&str> = names.iter().map(String::as_str).collect();
    let cut = cut_apart(&whole, theme.columns());
    for (left, (whole, cut)) in named.iter().zip(names.iter().zip(cut)) {
        // The values of a group can be of any length.
        let what = match left.subject {
            MetricSubject::Group { .. } => &cut,
            _ => whole,
        };
        let line = format!("Not compared: {what}: {}", escape(&reason(&left.reason)));
        folded(&line, "", theme, out);
    }
    counted.extend(named.into_iter().skip(MAX_NAMED));
    if !counted.is_empty() {
        let plural = plural_ending(counted.len());
        let how = hints.in_brackets(&Hint::NotCompared { all });
        let _ = writeln!(
            out,
            "Not compared: {} probe{plural}, span{plural} or argument{plural}{how}",
            counted.len()
        );
    }
}

fn method(comparison: &Comparison, theme: Theme, out: &mut String) {
    if comparison.tested > 0 {
        let line = format!(
            "{} figures were tested. Each kind of them (rates; shares of values; p50, p90 and p99 each of spans, of groups and of \
             arguments) is falsely called beyond noise in {} of 100 comparisons at most. Noise is what random events would vary by, \
             and more where {SLICES} slices of both recordings show it.",
            comparison.tested,
            FALSE_ALARMS * 100.0
        );
        folded(&line, "", theme, out);
    }
}
