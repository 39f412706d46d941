//! `report --span`: how long what lies between two probes takes.

mod data;
mod facts;
mod sides;
mod text;

pub(crate) use self::data::json_span;
pub(crate) use self::facts::{DurationFacts, SpanFacts};
pub(crate) use self::text::span_table;

use self::facts::{Group, Others, SlowFacts, SpanReport};
use super::ReportOptions;
use super::distribution::Distribution;
use super::groups::{Cell, Dictionary, Key};
use super::head::Head;
use super::heatmap::Cells;
use super::number::Integer;
use super::summary::Rows;
use super::timeline::Timeline;
use crate::error::ReportError;
use crate::notice::Notices;
use crate::script::Format;
use crate::select::Filter;
use crate::session::Session;
use crate::sketch::{Combine, Sketch};
use crate::span::{
    By, Durations, Figure, Kept, MOST_SPAN_GROUPS, OTHERS, Pair, PairTally, SpanKey, SpanOptions,
    SpanWalk, Spans,
};

/// What is asked of spans.
#[derive(Clone, Debug, Default)]
pub struct SpanQuestion {
    /// `START..DONE`, or the name of a span that is found by the names of its probes.
    pub span: String,
    /// What beginning and end have in common, and nothing else must: `tid`, `pid`, or arguments of both. If empty, the thread and those
    /// arguments that both have and that tell calls apart.
    pub key: Vec<String>,
    /// What spans are grouped by: keys as of `--sort`, of the hit that begins them, or of the one that ends them as `EVENT.KEY` or
    /// where it alone has the argument.
    pub by: Vec<String>,
    /// Shorter ones do not count, ns.
    pub min: u64,
    /// How many of the slowest are shown, and how many groups; `None` for 10 in text, else for 10 of the slowest and all groups.
    pub top: Option<usize>,
    /// By which figure groups are sorted.
    pub order: SpanOrder,
}

/// A figure of spans, by which groups are sorted, the greatest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpanOrder {
    /// Number of spans.
    Count,
    /// Time in which at least one of them was open.
    #[default]
    Total,
    /// Time in them and in no span within them.
    Own,
    /// Mean.
    Mean,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Longest.
    Max,
}

/// Groups, and slowest spans, that are shown if nothing is said.
const TOP: usize = 10;

/// Matches spans and shows them.
pub(super) fn report(
    session: &Session,
    filter: &Filter,
    question: &SpanQuestion,
    options: &ReportOptions,
) -> Result<(String, Notices), ReportError> {
    let mut notices = Notices::new(session);
    let extras = Extras {
        slowest: question.top.unwrap_or(TOP),
        human: options.human,
        heat: None,
    };
    let top = match options.format {
        Format::Text => question.top.unwrap_or(TOP),
        Format::Json | Format::Csv | Format::CsvRaw => question.top.unwrap_or(usize::MAX),
    };
    let report = matched(
        session,
        filter,
        (question, extras),
        &mut notices,
        |walk, spans| {
            let tallies = spans.tallies.iter().enumerate();
            let groups =
                tallies.map(|(at, tally)| groups_of((at, tally), walk, (question.order, top)));
            let (groups, others) = groups.unzip();
            SpanReport {
                head: Head::new(session),
                by: walk.options.by.iter().map(|by| by.name.clone()).collect(),
                spans: facts(walk, &spans),
                groups,
                others,
                slowest: spans
                    .tallies
                    .iter()
                    .map(|tally| SlowFacts::of(session, tally))
                    .collect(),
            }
        },
    )?;
    let text = match options.format {
        Format::Text => text::render(&report, question, options.look()),
        Format::Json => data::json(&report),
        format => data::csv(format.csv(), &report),
    };
    Ok((text, notices))
}

/// The durations of spans, ns, with the name of each pair, or of each group in the order asked for.
pub(super) fn durations(
    session: &Session,
    filter: &Filter,
    question: &SpanQuestion,
    options: &ReportOptions,
    notices: &mut Notices,
) -> Result<Vec<(String, Distribution<Integer>)>, ReportError> {
    let extras = Extras {
        human: options.human,
        ..Extras::default()
    };
    let top = question.top.unwrap_or(match options.format {
        Format::Text => TOP,
        _ => usize::MAX,
    });
    matched(
        session,
        filter,
        (question, extras),
        notices,
        |walk, spans| {
            let mut all = Vec::new();
            for (at, (pair, tally)) in walk.pairs.iter().zip(&spans.tallies).enumerate() {
                let name = &pair.name;
                if question.by.is_empty() {
                    all.push((name.clone(), tally.all.distribution.clone()));
                    continue;
                }
                let sorted = sorted(tally, walk, question.order);
                let by = question.by.join(", ");
                let shown = sorted.iter().take(top).map(|(group, durations)| {
                    let name = format!("{name} by {by}: {}", group.name());
                    (name, durations.distribution.clone())
                });
                all.extend(shown);
                if let Some((others, durations)) =
                    others_of((at, tally), walk, (question.order, &sorted, top))
                {
                    let groups = others
                        .groups
                        .map_or_else(String::new, |groups| format!("{groups} "));
                    all.push((
                        format!("{name} by {by}: {groups}other groups"),
                        durations.distribution,
                    ));
                }
            }
            all
        },
    )
}

/// The same by the interval in which they began.
pub(super) fn heat(
    session: &Session,
    filter: &Filter,
    (question, timeline): (&SpanQuestion, Timeline),
    notices: &mut Notices,
) -> Result<Vec<(String, Cells)>, ReportError> {
    let extras = Extras {
        heat: Some(timeline),
        ..Extras::default()
    };
    matched(
        session,
        filter,
        (question, extras),
        notices,
        |walk, spans| {
            let names = walk.pairs.iter().map(|pair| pair.name.clone());
            names
                .zip(spans.tallies.into_iter().map(|tally| tally.heat))
                .collect()
        },
    )
}

/// What is wanted of spans besides their durations.
#[derive(Clone, Copy, Debug, Default)]
struct Extras {
    slowest: usize,
    human: bool,
    heat: Option<Timeline>,
}

/// Matches spans and hands them over.
fn matched<T>(
    session: &Session,
    filter: &Filter,
    (question, extras): (&SpanQuestion, Extras),
    notices: &mut Notices,
    show: impl FnOnce(&SpanWalk<'_>, Spans) -> T,
) -> Result<T, ReportError> {
    let pairs = Pair::asked(&question.span, session)?;
    let of_pair = |event: usize| {
        let has = |pair: &Pair| pair.starts.contains(&event) || pair.dones.contains(&event);
        pairs.iter().any(has)
    };
    let rows = Rows::new(session, of_pair);
    let keys = if question.key.is_empty() {
        Pair::own_keys(&pairs, session, &rows)
    } else {
        let parts = question.key.iter();
        let parts = parts.map(|name| key(name, session, &rows, &pairs));
        let parts: Vec<Key> = parts.collect::<Result<_, _>>()?;
        vec![SpanKey::values(parts); pairs.len()]
    };
    let by = question.by.iter();
    let by = by.map(|name| sides::by(name, (session, &rows), &pairs, extras.human));
    let mut options = SpanOptions {
        keys,
        by: by.collect::<Result<_, _>>()?,
        min: question.min,
        slowest: extras.slowest,
        heat: extras.heat,
        kept: Kept::All,
    };
    let asked = Asked {
        session,
        filter,
        pairs: &pairs,
        rows: &rows,
    };
    let dictionary = Dictionary::default();
    let found = asked.walk(&options, &dictionary, notices);
    let overflow = found.tallies.iter().any(|tally| tally.overflow);
    if !overflow && !dictionary.is_overflown() {
        notices.tell_forgotten(found.forgotten);
        return Ok(show(&asked.of(&options, &dictionary), found));
    }
    drop(found);
    let (figure, combine) = question.order.bounded_by();
    let sketches = pairs.iter().map(|_| Sketch::new(combine)).collect();
    options.kept = Kept::Bounded(sketches, figure);
    asked.walk(&options, &Dictionary::default(), notices);
    let Kept::Bounded(sketches, _) = std::mem::take(&mut options.kept) else {
        return Err(ReportError::Ask("no groups".to_owned()));
    };
    // Hashes are as good as random: a few more groups than expected have room.
    let mut groups = MOST_SPAN_GROUPS * 3 / 4;
    loop {
        let chosen = sketches.iter().map(|sketch| sketch.choose(groups));
        options.kept = Kept::Chosen(chosen.collect());
        let dictionary = Dictionary::default();
        let found = asked.walk(&options, &dictionary, notices);
        let overflow = found.tallies.iter().any(|tally| tally.overflow);
        if groups <= 1 || !(overflow || dictionary.is_overflown()) {
            notices.tell_forgotten(found.forgotten);
            return Ok(show(&asked.of(&options, &dictionary), found));
        }
        groups /= 2;
    }
}

/// What all walks for a question have in common.
struct Asked<'a> {
    session: &'a Session,
    filter: &'a Filter,
    pairs: &'a [Pair],
    rows: &'a Rows,
}

impl<'a> Asked<'a> {
    fn of(&self, options: &'a SpanOptions, dictionary: &'a Dictionary) -> SpanWalk<'a> {
        SpanWalk {
            session: self.session,
            filter: self.filter,
            pairs: self.pairs,
            options,
            rows: self.rows,
            dictionary,
        }
    }

    fn walk(&self, options: &SpanOptions, dictionary: &Dictionary, notices: &mut Notices) -> Spans {
        let walk = SpanWalk {
            session: self.session,
            filter: self.filter,
            pairs: self.pairs,
            options,
            rows: self.rows,
            dictionary,
        };
        let (spans, _, outcome) = walk.run(|| (), |(), _, _, _| (), |_| false);
        notices.add_once(outcome);
        spans
    }
}

impl SpanOrder {
    /// What bounds the figure: none of a group's spans that are left out can make it greater.
    const fn bounded_by(self) -> (Figure, Combine) {
        match self {
            Self::Count => (Figure::Count, Combine::Sum),
            Self::Total => (Figure::Sum, Combine::Sum),
            Self::Own => (Figure::Own, Combine::Sum),
            _ => (Figure::Max, Combine::Max),
        }
    }
}

/// What spans are, pair by pair.
pub(super) fn facts(walk: &SpanWalk<'_>, spans: &Spans) -> Vec<SpanFacts> {
    let both = walk.pairs.iter().zip(&spans.tallies).enumerate();
    both.map(|(at, (pair, tally))| {
        let thread = SpanKey::default();
        let key = walk.options.keys.get(at).unwrap_or(&thread);
        SpanFacts::new(walk.session, (pair, key), tally)
    })
    .collect()
}

/// An argument or process that both probes of each pair have.
fn key(name: &str, session: &Session, rows: &Rows, pairs: &[Pair]) -> Result<Key, ReportError> {
    let key = Key::parse(name, session, rows, false)?;
    let Key::Argument(_, places, _) = &key else {
        return Ok(key);
    };
    let events = pairs
        .iter()
        .flat_map(|pair| pair.starts.iter().chain(&pair.dones));
    let lacking = events
        .copied()
        .find(|&event| places.get(event).is_none_or(Option::is_none));
    match lacking.and_then(|event| session.events().events.get(event)) {
        Some(event) => Err(ReportError::Ask(format!(
            "{} has no argument {name:?}: what begins and what ends a span must have the key, tid and pid are in all events",
            event.name
        ))),
        None => Ok(key),
    }
}

/// The groups of a pair in an order.
fn sorted<'t>(
    tally: &'t PairTally,
    walk: &SpanWalk<'_>,
    order: SpanOrder,
) -> Vec<(Group, &'t Durations)> {
    let grouped = tally.groups.iter().filter(|(words, _)| ***words != OTHERS);
    let mut groups: Vec<(Group, &Durations)> = grouped
        .map(|(words, durations)| {
            let keys = walk.options.by.iter().zip(words);
            let cell = |(by, &words): (&By, _)| {
                by.key.cell(words, walk.session, walk.rows, walk.dictionary)
            };
            let group = Group {
                cells: keys.map(cell).collect(),
                durations: DurationFacts::new(durations),
            };
            (group, durations)
        })
        .collect();
    groups.sort_by(|(a, _), (b, _)| {
        let names = || {
            let (a, b) = (a.cells.iter(), b.cells.iter());
            a.map(Cell::order).cmp(b.map(Cell::order))
        };
        let figure = |group: &Group| group.durations.by(order);
        figure(b)
            .cmp(&figure(a))
            .then_with(names)
            .then_with(|| a.durations.order().cmp(&b.durations.order()))
    });
    groups
}

/// What is in none of the first groups.
fn others_of(
    (at, tally): (usize, &PairTally),
    walk: &SpanWalk<'_>,
    (order, sorted, top): (SpanOrder, &[(Group, &Durations)], usize),
) -> Option<(Others, Durations)> {
    let (shown, rest) = sorted.split_at(sorted.len().min(top));
    let unkept = tally.groups.get(&OTHERS[..]);
    if rest.is_empty() && unkept.is_none() {
        return None;
    }
    let mut durations = Durations::default();
    for other in rest.iter().map(|(_, durations)| *durations).chain(unkept) {
        durations.merge(other.clone());
    }
    durations.distribution.settle();
    let bound = match (&walk.options.kept, unkept) {
        (Kept::Chosen(chosen), Some(_)) => chosen.get(at).map(|chosen| chosen.bound),
        _ => None,
    };
    let missing = |bound: &u64| {
        let last = shown.last().map_or(0, |(last, _)| last.durations.by(order));
        last < u128::from(*bound)
    };
    let others = Others {
        groups: unkept.is_none().then_some(rest.len()),
        durations: DurationFacts::new(&durations),
        doubtful: bound.filter(missing),
    };
    Some((others, durations))
}

/// The first groups of a pair in the order asked for, and what is in none of them.
fn groups_of(
    (at, tally): (usize, &PairTally),
    walk: &SpanWalk<'_>,
    (order, top): (SpanOrder, usize),
) -> (Vec<Group>, Option<Others>) {
    let sorted = sorted(tally, walk, order);
    let others = others_of((at, tally), walk, (order, &sorted, top));
    let shown = sorted.into_iter().take(top).map(|(group, _)| group);
    (shown.collect(), others.map(|(others, _)| others))
}
