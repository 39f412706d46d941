//! What matters first: which figures differ, by how much, and how sure that is.

use std::collections::BTreeMap;

use usdtrec_analysis::diff::comparison::Comparison;
use usdtrec_analysis::diff::metric::{Metric, MetricKind, MetricSubject};

use crate::columns::folded;
use crate::diff::names::{self, label};
use crate::diff::table::{change, interval, kind, subject};
use crate::theme::Theme;

/// Figures that are named in a line.
const MAX_NAMED: usize = 3;

usdtrec_format::listed! {
    /// What a difference means.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Meaning {
        Slower,
        Faster,
        MoreOften,
        LessOften,
        OtherValues,
    }
}

impl Meaning {
    const fn words(self) -> &'static str {
        match self {
            Self::Slower => "Slower",
            Self::Faster => "Faster",
            Self::MoreOften => "More often",
            Self::LessOften => "Less often",
            Self::OtherValues => "Other values",
        }
    }

    fn of(figure: &Metric) -> Self {
        let is_more = figure.b.value > figure.a.value;
        match (&figure.subject, &figure.kind) {
            (_, MetricKind::Rate) if is_more => Self::MoreOften,
            (_, MetricKind::Rate) => Self::LessOften,
            (MetricSubject::Span(_) | MetricSubject::Group { .. }, _) if is_more => Self::Slower,
            (MetricSubject::Span(_) | MetricSubject::Group { .. }, _) => Self::Faster,
            _ => Self::OtherValues,
        }
    }
}

/// Appends a line for each meaning of the figures beyond noise, of which the farthest beyond it are first.
pub(crate) fn headline(
    comparison: &Comparison,
    beyond: &[&Metric],
    theme: Theme,
    out: &mut String,
) {
    for meaning in Meaning::ALL {
        let of_it = |figure: &&Metric| Meaning::of(figure) == meaning;
        let figures = firsts(beyond.iter().copied().filter(of_it));
        let is_group = |figure: &&Metric| matches!(figure.subject, MetricSubject::Group { .. });
        let (groups, others): (Vec<_>, Vec<_>) = figures.into_iter().partition(is_group);
        let mut parts = Vec::new();
        if !others.is_empty() {
            parts.push(named(&others));
        }
        if !groups.is_empty() {
            let all = comparison.figures.iter().filter(is_group);
            let compared = all
                .filter(|figure| figure.kind == MetricKind::Count)
                .count();
            let groups_named = named(&groups);
            parts.push(format!(
                "{} of {compared} groups: {groups_named}",
                groups.len()
            ));
        }
        if !parts.is_empty() {
            let line = format!("{}, 99% sure: {}", meaning.words(), parts.join("; "));
            folded(&line, "", theme, out);
        }
    }
}

/// One figure of each subject, its least percentile; of an argument all values with shares.
fn firsts<'c>(figures: impl Iterator<Item = &'c Metric>) -> Vec<&'c Metric> {
    let mut firsts: Vec<&Metric> = Vec::new();
    #[expect(
        clippy::mutable_key_type,
        reason = "what changes in a key of scripts is not compared"
    )]
    let mut places = BTreeMap::new();
    for figure in figures {
        let known = match figure.kind {
            MetricKind::Quantile(_) => places.get(&figure.subject).copied(),
            _ => None,
        };
        match known.and_then(|place: usize| firsts.get_mut(place)) {
            Some(known) if rank(figure) < rank(known) => *known = figure,
            Some(_) => {}
            None => {
                places.insert(&figure.subject, firsts.len());
                firsts.push(figure);
            }
        }
    }
    firsts
}

const fn rank(figure: &Metric) -> u32 {
    match &figure.kind {
        MetricKind::Quantile(at) => at.thousandths,
        _ => 0,
    }
}

/// `postgresql:query p50 +47% (+46% to +48%), 3 more`.
fn named(figures: &[&Metric]) -> String {
    let name = |figure: &&Metric| {
        let name = match (&figure.subject, &figure.kind) {
            (MetricSubject::Group { group, .. }, _) => names::group(group, true),
            (of, MetricKind::Share(share)) => {
                format!("{}={}", subject(of, true), label(share))
            }
            (of, _) => subject(of, true),
        };
        let limits = interval(figure).map_or_else(String::new, |limits| format!(" ({limits})"));
        format!("{name} {} {}{limits}", kind(&figure.kind), change(figure))
    };
    let mut names: Vec<String> = figures.iter().take(MAX_NAMED).map(name).collect();
    if figures.len() > MAX_NAMED {
        names.push(format!("{} more", figures.len() - MAX_NAMED));
    }
    names.join(", ")
}
