//! `report --span`: how long what lies between two probes takes.

mod data;
mod facts;
mod text;

pub(crate) use self::data::json_span;
pub(crate) use self::facts::{DurationFacts, SpanFacts};
pub(crate) use self::text::span_table;

use self::facts::{Group, SlowFacts, SpanReport};
use super::ReportOptions;
use super::distribution::Distribution;
use super::groups::{Dictionary, Key};
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
use crate::span::{Pair, SpanKey, SpanOptions, SpanWalk, Spans};

/// What is asked of spans.
#[derive(Clone, Debug, Default)]
pub struct SpanQuestion {
    /// `START..DONE`, or the name of a span that is found by the names of its probes.
    pub span: String,
    /// What beginning and end have in common: `tid`, `pid`, or an argument of both; `None` for the thread.
    pub key: Option<String>,
    /// What spans are grouped by: keys as of `--sort`, of the hit that begins them.
    pub by: Vec<String>,
    /// Shorter ones do not count, ns.
    pub min: u64,
    /// How many of the slowest are shown, and how many groups.
    pub top: usize,
    /// By which figure groups are sorted.
    pub order: SpanOrder,
}

/// A figure of spans, by which groups are sorted, the greatest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpanOrder {
    /// Number of spans.
    Count,
    /// Sum of their times.
    #[default]
    Total,
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

/// Matches spans and shows them.
pub(super) fn report(
    session: &Session,
    filter: &Filter,
    question: &SpanQuestion,
    options: &ReportOptions,
) -> Result<(String, Notices), ReportError> {
    let mut notices = Notices::new(session);
    let extras = Extras {
        slowest: question.top,
        human: options.human,
        heat: None,
    };
    let report = matched(
        session,
        filter,
        (question, extras),
        &mut notices,
        |walk, spans| {
            let groups = |tally| groups_of(tally, walk, question);
            SpanReport {
                head: Head::new(session),
                by: walk
                    .options
                    .by
                    .iter()
                    .map(|key| key.name().to_owned())
                    .collect(),
                spans: facts(walk, &spans),
                groups: spans.tallies.iter().map(groups).collect(),
                others: spans
                    .tallies
                    .iter()
                    .map(|tally| tally.others.count())
                    .collect(),
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
        Format::Csv => data::csv(&report),
    };
    Ok((text, notices))
}

/// The durations of spans, ns, with the name of each pair.
pub(super) fn durations(
    session: &Session,
    filter: &Filter,
    question: &SpanQuestion,
    notices: &mut Notices,
) -> Result<Vec<(String, Distribution<Integer>)>, ReportError> {
    let asked = (question, Extras::default());
    matched(session, filter, asked, notices, |walk, spans| {
        let names = walk.pairs.iter().map(|pair| pair.name.clone());
        let durations = spans.tallies.into_iter();
        names
            .zip(durations.map(|tally| tally.all.distribution))
            .collect()
    })
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
    let keys: Vec<SpanKey> = match question.key.as_deref() {
        None => pairs
            .iter()
            .map(|pair| pair.own_key(session, &rows))
            .collect(),
        Some("tid") => Vec::new(),
        Some(name) => vec![SpanKey::Value(key(name, session, &rows, &pairs)?); pairs.len()],
    };
    let by = question.by.iter();
    let by = by.map(|name| Key::parse(name, session, &rows, extras.human));
    let options = SpanOptions {
        keys,
        by: by.collect::<Result<_, _>>()?,
        min: question.min,
        slowest: extras.slowest,
        heat: extras.heat,
    };
    let walk = SpanWalk {
        session,
        filter,
        pairs: &pairs,
        options: &options,
        rows: &rows,
        dictionary: &Dictionary::default(),
    };
    let (spans, _, outcome) = walk.run(|| (), |(), _, _, _| (), |_| false);
    notices.add(outcome);
    notices.tell_forgotten(spans.forgotten);
    Ok(show(&walk, spans))
}

/// What spans are, pair by pair.
pub(super) fn facts(walk: &SpanWalk<'_>, spans: &Spans) -> Vec<SpanFacts> {
    let both = walk.pairs.iter().zip(&spans.tallies).enumerate();
    both.map(|(at, (pair, tally))| {
        let key = walk.options.keys.get(at).map_or("tid", SpanKey::name);
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

fn groups_of(
    tally: &crate::span::PairTally,
    walk: &SpanWalk<'_>,
    question: &SpanQuestion,
) -> Vec<Group> {
    let mut groups: Vec<Group> = tally
        .groups
        .iter()
        .map(|(words, durations)| {
            let keys = walk.options.by.iter().zip(words);
            let cell = |(key, &words): (&Key, _)| {
                key.cell(words, walk.session, walk.rows, walk.dictionary)
            };
            Group {
                cells: keys.map(cell).collect(),
                durations: DurationFacts::new(durations),
            }
        })
        .collect();
    groups.sort_by(|a, b| {
        let by = |group: &Group| group.durations.by(question.order);
        by(b).cmp(&by(a)).then_with(|| a.name().cmp(&b.name()))
    });
    groups
}
