//! The groups of the spans of a pair of probes: those that are shown, in the requested order, and what is not shown.

use crate::question::GroupOrder;
use crate::span_report::facts::{DurationFacts, OtherSpans, SpanGroupFacts};
use crate::span_report::request::Ranking;
use crate::spans::durations::{Durations, PairStats};
use crate::spans::options::{GroupBy, GroupChoice, OTHERS};
use crate::spans::walk::{SpanWalk, Spans};
use crate::stats::keys::key::Key;

/// Groups of a pair.
#[derive(Debug)]
pub(crate) struct RankedGroups<'t> {
    /// The first ones.
    pub(crate) shown: Vec<RankedGroup<'t>>,
    /// The rest that is not in the groups.
    pub(crate) rest: Option<Rest>,
}

/// A group that is shown.
#[derive(Debug)]
pub(crate) struct RankedGroup<'t> {
    pub(crate) group: SpanGroupFacts,
    pub(crate) durations: &'t Durations,
}

/// Groups that are not shown.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) others: OtherSpans,
    pub(crate) durations: Durations,
}

/// The groups of the pair at a place.
pub(crate) fn ranked<'t>(
    walk: &SpanWalk<'_>,
    spans: &'t Spans,
    at: usize,
    ranking: Ranking,
) -> RankedGroups<'t> {
    let Some(stats) = spans.pair_stats.get(at) else {
        return RankedGroups {
            shown: Vec::new(),
            rest: None,
        };
    };
    let mut shown = sorted(stats, walk, ranking.order);
    let rest = shown.split_off(shown.len().min(ranking.top));
    let last = shown.last();
    let least = last.map_or(0, |last| last.group.durations.by(ranking.order));
    let rest = others(stats, &rest).map(|durations| {
        let unkept = stats.groups.contains_key(&OTHERS[..]);
        let bound = match &walk.options.kept {
            GroupChoice::Chosen(chosen) if unkept => {
                chosen.get(at).map(|chosen| chosen.groups.bound)
            }
            _ => None,
        };
        let others = OtherSpans {
            groups: (!unkept).then_some(rest.len()),
            durations: DurationFacts::new(&durations),
            doubtful: bound.filter(|&bound| least < u128::from(bound)),
        };
        Rest { others, durations }
    });
    RankedGroups { shown, rest }
}

/// The groups of a pair in an order.
fn sorted<'t>(
    stats: &'t PairStats,
    walk: &SpanWalk<'_>,
    order: GroupOrder,
) -> Vec<RankedGroup<'t>> {
    let grouped = stats.groups.iter().filter(|(words, _)| ***words != OTHERS);
    let mut groups: Vec<RankedGroup<'_>> = grouped
        .map(|(words, durations)| {
            let keys = walk.options.by.iter().zip(words);
            let value = |(by, &words): (&GroupBy, _)| {
                by.key
                    .value(words, walk.session, walk.rows, walk.dictionary)
            };
            let group = SpanGroupFacts {
                values: keys.map(value).collect(),
                durations: DurationFacts::new(durations),
            };
            RankedGroup { group, durations }
        })
        .collect();
    let keys: Vec<Key> = walk.options.by.iter().map(|by| by.key.clone()).collect();
    groups.sort_by(
        |RankedGroup { group: a, .. }, RankedGroup { group: b, .. }| {
            let names = || Key::compare(&keys, &a.values, &b.values);
            let figure = |group: &SpanGroupFacts| group.durations.by(order);
            figure(b)
                .cmp(&figure(a))
                .then_with(names)
                .then_with(|| a.durations.order().cmp(&b.durations.order()))
        },
    );
    groups
}

/// The rest: groups that are not shown, and spans without statistics of a group.
fn others(stats: &PairStats, rest: &[RankedGroup<'_>]) -> Option<Durations> {
    let unkept = stats.groups.get(&OTHERS[..]);
    if rest.is_empty() && unkept.is_none() {
        return None;
    }
    let mut others = rest.iter().map(|other| other.durations).chain(unkept);
    let mut durations = others.next().cloned().unwrap_or_default();
    for other in others {
        durations.merge(other.clone());
    }
    durations.distribution.settle();
    Some(durations)
}
