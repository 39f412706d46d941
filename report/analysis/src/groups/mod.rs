//! `report --sort`: samples counted by groups, as perf report shows them.

pub(crate) mod counted_groups;
pub(crate) mod recent_groups;
pub(crate) mod reused_pids;
pub mod stats;
pub mod table;

use crate::groups::counted_groups::{Bounded, ChosenGroups, CountedGroups, Grouping};
use crate::groups::stats::{Sum, ValueFacts};
use crate::groups::table::{CountedGroup, GroupWalk, Groups, SampleCount};
use crate::origin::Origin;
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::dictionary::MAX_GROUPS;
use crate::stats::keys::key::{Key, KeyWords, argument_value};
use crate::stats::keys::value::KeyValue;

use std::cmp::Ordering;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use usdtrec_format::perf::Sample;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::site_samples::SiteSamples;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::loss_ledger::LossLedger;
use usdtrec_trace::session::resolver::Resolver;

use crate::question::GroupOrder;
use crate::samples::SelectedSamples;
use crate::stats::sketch::Combine;

/// A table of groups: of one event, or of all if they are grouped by event.
#[derive(Debug)]
pub struct GroupTable {
    /// The event; `None` if the table is of all.
    pub event: Option<String>,
    /// The samples of all groups.
    pub total: SampleCount,
    /// Rows, the greatest weight first, as many as are requested.
    pub rows: Vec<SampleGroup>,
    /// The rest that is not in the groups.
    pub others: Option<OtherGroups>,
}

/// Groups that are not shown.
#[derive(Debug)]
pub struct OtherGroups {
    /// Number of groups; `None` if they are too many to be counted.
    pub groups: Option<usize>,
    /// Their samples.
    pub count: SampleCount,
    /// The numbers of the argument that is summed up, if one is.
    pub stats: Option<ValueFacts>,
    /// What one of them may have at most of what groups are sorted by, if that is more than the last one shown has.
    pub doubtful: Option<Sum>,
}

/// One group.
#[derive(Debug)]
pub struct SampleGroup {
    /// The value of each key.
    pub values: Vec<KeyValue>,
    /// Its samples.
    pub count: SampleCount,
    /// The numbers of the argument that is summed up, if one is.
    pub stats: Option<ValueFacts>,
}

/// Groups of a trace.
#[derive(Debug)]
pub struct Grouped {
    /// Facts about the trace.
    pub origin: Origin,
    /// Events that were lost.
    pub losses: LossLedger,
    /// What samples are grouped by.
    pub keys: Vec<Key>,
    /// The argument that is summed up.
    pub value: Option<String>,
    /// By which of its figures groups are sorted.
    pub order: GroupOrder,
    /// The tables.
    pub tables: Vec<GroupTable>,
}

/// A question about groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupQuestion<'a> {
    /// Keys.
    pub(crate) sort: &'a [String],
    /// The argument that is summed up.
    pub(crate) value: Option<&'a str>,
    /// Maximum number of groups shown; `None` for all.
    pub(crate) top: Option<usize>,
    /// By which figure of the argument they are sorted.
    pub(crate) order: GroupOrder,
}

/// Counts by groups.
pub(crate) fn grouped(
    samples: SelectedSamples<'_>,
    question: GroupQuestion<'_>,
    notices: &mut Notices,
) -> Result<Grouped, ReportError> {
    let SelectedSamples { session, filter } = samples;
    let rows = Rows::new(session, |event| filter.event(event));
    let keys = question
        .sort
        .iter()
        .map(|name| Key::parse(name, session, &rows))
        .collect::<Result<Vec<_>, _>>()?;
    grouped_by(samples, keys, question, notices)
}

/// Counts by groups with these keys, whatever the question's are.
pub(crate) fn grouped_by(
    samples: SelectedSamples<'_>,
    keys: Vec<Key>,
    question: GroupQuestion<'_>,
    notices: &mut Notices,
) -> Result<Grouped, ReportError> {
    let SelectedSamples { session, filter } = samples;
    let GroupQuestion { value, top, .. } = question;
    let rows = Rows::new(session, |event| filter.event(event));
    let places = value.map(|name| places(name, session, &rows)).transpose()?;
    let by_row = !keys.contains(&Key::Event);
    let grouping = Grouping {
        session,
        filter,
        rows: &rows,
        keys: &keys,
        by_row,
        apart: by_row,
    };
    let asked = Asked {
        grouping,
        places,
        tables: if by_row { rows.rows.len() } else { 1 },
        top: top.unwrap_or(usize::MAX),
        order: match (value, question.order) {
            (None, _) => GroupOrder::Count,
            (Some(_), order) => order.of_numbers()?,
        },
    };
    let counted = asked.count(notices);
    let tables = (0..asked.tables).map(|at| {
        let row = rows.rows.get(at);
        let event = by_row.then(|| row.map_or("", |row| &row.name).to_owned());
        asked.table(event, at, &counted)
    });
    Ok(Grouped {
        origin: Origin::new(session),
        losses: session.losses().clone(),
        tables: tables.collect(),
        value: value.map(str::to_owned),
        order: asked.order,
        keys: keys.clone(),
    })
}

/// What all walks for a question have in common.
struct Asked<'a> {
    grouping: Grouping<'a>,
    /// Where the argument is that is summed up.
    places: Option<Vec<Option<usize>>>,
    tables: usize,
    top: usize,
    order: GroupOrder,
}

/// A group, and the words of its keys.
struct GroupAndWords<'w> {
    group: SampleGroup,
    words: &'w [KeyWords],
}

/// Groups, and what their figures were multiplied by to be bounded.
struct Scaled {
    counted: CountedGroups<Groups>,
    scale: f64,
}

impl Asked<'_> {
    /// Counts all groups, or if there are too many, those that come first.
    fn count(&self, notices: &mut Notices) -> Scaled {
        let mut scale = 1.0;
        let grouping = &self.grouping;
        let counted = grouping.count(
            self.most(),
            notices,
            |kept, dictionary, notices| self.walk(kept, dictionary, notices),
            |groups, notices| {
                scale = self.scale(&groups);
                let tables = groups.tables(self.tables);
                drop(groups);
                grouping.bounds(&tables, self.combine(), self.figure(scale), notices)
            },
        );
        Scaled { counted, scale }
    }

    /// Whether groups are sorted by a figure of numbers.
    fn is_by_value(&self) -> bool {
        self.order != GroupOrder::Count
    }

    fn scale(&self, groups: &Groups) -> f64 {
        match self.is_by_value() {
            true => groups.range.scale(),
            false => 1.0,
        }
    }

    /// How figures of samples bound that of their group.
    fn combine(&self) -> Combine {
        match self.order {
            GroupOrder::Count | GroupOrder::Sum => Combine::Sum,
            _ => Combine::Max,
        }
    }

    /// The figure of a sample.
    fn figure<'s>(
        &'s self,
        scale: f64,
    ) -> impl Fn(&mut Resolver<'_>, SampleTarget, &Sample<'_>) -> u64 + Sync + 's {
        let session = self.grouping.session;
        move |resolver, target, sample| match &self.places {
            Some(places) if self.is_by_value() => argument_value(places, resolver, target, sample)
                .map_or(0, |value| stats::scaled(value, scale)),
            _ => session.weight(target, sample),
        }
    }

    const fn most(&self) -> usize {
        match self.places {
            Some(_) => stats::MAX_STATS,
            None => MAX_GROUPS,
        }
    }

    fn walk(
        &self,
        kept: Option<&ChosenGroups>,
        dictionary: &Dictionary,
        notices: &mut Notices,
    ) -> Groups {
        // Of too many groups, the counts are of no use: only what bounds their figures is.
        let is_full = AtomicBool::new(false);
        let walk = GroupWalk {
            grouping: &self.grouping,
            kept,
            dictionary,
            summed: self.places.as_deref(),
        };
        let states = self.grouping.walk(
            kept.is_none(),
            || Groups::new(self.most()),
            |groups, resolver, samples| {
                if is_full.load(Relaxed) {
                    return self.note(groups, resolver, samples);
                }
                groups.add(walk, resolver, samples);
                if kept.is_none() && (groups.is_overflown() || dictionary.is_overflown()) {
                    is_full.store(true, Relaxed);
                }
            },
            notices,
        );
        let all = states.into_iter().reduce(Groups::merge);
        all.unwrap_or_else(|| Groups::new(self.most()))
    }

    /// Notes what bounds the figures of groups: that the table of samples has any, and the range of values.
    fn note(&self, groups: &mut Groups, resolver: &mut Resolver<'_>, samples: SiteSamples<'_>) {
        if let Some(table) = self.grouping.table(samples.target) {
            groups.note_table(table);
        }
        if self.is_by_value()
            && let Some(places) = &self.places
        {
            for sample in samples.samples() {
                let value = argument_value(places, resolver, samples.target, &sample);
                value.into_iter().for_each(|value| groups.range.add(value));
            }
        }
    }

    /// A table, its first groups in the requested order.
    fn table(&self, event: Option<String>, at: usize, scaled: &Scaled) -> GroupTable {
        let counted = &scaled.counted;
        let Grouping {
            session,
            rows,
            keys,
            ..
        } = self.grouping;
        let found = counted.counts.of_table(at);
        let groups = found.into_iter().map(|CountedGroup { words, count }| {
            let both = keys.iter().zip(words);
            let value =
                |(key, &words): (&Key, _)| key.value(words, session, rows, &counted.dictionary);
            let stats = self
                .places
                .as_ref()
                .map(|_| counted.counts.stats(at, words));
            let group = SampleGroup {
                values: both.map(value).collect(),
                count,
                stats: stats.map(|stats| stats.facts(self.order)),
            };
            GroupAndWords { group, words }
        });
        let mut groups: Vec<GroupAndWords<'_>> = groups.collect();
        groups.sort_by(|a, b| a.group.compare(&b.group, keys));
        let mut total = SampleCount::default();
        groups
            .iter()
            .for_each(|counted| total.add(counted.group.count));
        let rest = groups.split_off(groups.len().min(self.top));
        let last = groups.last().map(|last| &last.group);
        let others = self.others(at, last, &rest, scaled);
        if let Some(unkept) = counted.counts.others(at) {
            total.add(unkept.count);
        }
        GroupTable {
            event,
            total,
            rows: groups.into_iter().map(|counted| counted.group).collect(),
            others,
        }
    }

    /// The rest that is not in the groups shown, of which the last is `last`.
    fn others(
        &self,
        at: usize,
        last: Option<&SampleGroup>,
        rest: &[GroupAndWords<'_>],
        scaled: &Scaled,
    ) -> Option<OtherGroups> {
        let counted = &scaled.counted;
        let unkept = counted.counts.others(at);
        if rest.is_empty() && unkept.is_none() {
            return None;
        }
        let mut others = unkept.cloned().unwrap_or_default();
        for GroupAndWords { group, words } in rest {
            others.count.add(group.count);
            if self.places.is_some() {
                others.stats.merge(counted.counts.stats(at, words));
            }
        }
        let bound = match (&counted.kept, unkept) {
            (Some(kept), Some(_)) => kept.bound(at),
            _ => 0,
        };
        let doubtful = if self.is_by_value() {
            let bound = bound as f64 / scaled.scale;
            let least = last.map_or(f64::NEG_INFINITY, SampleGroup::weight);
            (unkept.is_some() && least < bound).then(|| Sum::Floats(bound.ceil()))
        } else {
            let least = last.map_or(0, |last| last.count.weight);
            (least < bound).then(|| Sum::Integers(bound.into()))
        };
        Some(OtherGroups {
            groups: unkept.is_none().then_some(rest.len()),
            count: others.count,
            stats: self.places.as_ref().map(|_| others.stats.facts(self.order)),
            doubtful,
        })
    }
}

impl SampleGroup {
    /// The figure of its numbers that groups are sorted by, if it is one of them.
    fn weight(&self) -> f64 {
        self.stats.as_ref().map_or(0.0, |stats| stats.weight)
    }

    /// The greatest first, equals by their keys.
    fn compare(&self, other: &Self, keys: &[Key]) -> Ordering {
        let names = || Key::compare(keys, &self.values, &other.values);
        let (a, b) = (self, other);
        b.weight()
            .total_cmp(&a.weight())
            .then_with(|| b.count.weight.cmp(&a.count.weight))
            .then_with(|| b.count.samples.cmp(&a.count.samples))
            .then_with(names)
    }
}

/// Where each event has the argument of a name.
fn places(
    name: &str,
    session: &TraceSession,
    rows: &Rows,
) -> Result<Vec<Option<usize>>, ReportError> {
    match Key::parse(name, session, rows)? {
        Key::Argument(_, places, _) => Ok(places),
        _ => Err(QuestionError::ValueOfKey {
            name: name.to_owned(),
        }
        .into()),
    }
}
