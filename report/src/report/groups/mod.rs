//! `report --sort`: samples counted by groups, as perf report shows them.

mod dictionary;
mod key;
mod near;
mod render;
mod shape;
mod stats;
mod table;

pub(crate) use self::dictionary::Dictionary;
pub(crate) use self::key::{Cell, Datum, Key, Words, argument_value};
pub(crate) use self::render::json_cell;
pub(crate) use self::shape::shape;
pub(crate) use self::stats::StatFacts;
pub(crate) use self::table::{Count, Groups, MOST_GROUPS};

use super::ReportOptions;
use super::head::Head;
use super::losses::Losses;
use super::summary::Rows;
use crate::error::ReportError;
use crate::fold::fold;
use crate::notice::Notices;
use crate::script::Format;
use crate::select::Filter;
use crate::session::Session;

/// A table of groups: of one event, or of all if they are grouped by event.
#[derive(Debug)]
pub(crate) struct Table {
    /// The event; `None` if the table is of all.
    pub(crate) event: Option<String>,
    pub(crate) total: Count,
    /// Rows, the greatest weight first: the value of each key.
    pub(crate) rows: Vec<Group>,
    /// Samples of groups that are too many to be counted one by one.
    pub(crate) others: Count,
}

/// One group.
#[derive(Debug)]
pub(crate) struct Group {
    /// The value of each key.
    pub(crate) cells: Vec<Cell>,
    pub(crate) count: Count,
    /// The numbers of the argument that is summed up, if one is.
    pub(crate) stats: Option<StatFacts>,
}

/// Groups of a trace, ready to be shown.
#[derive(Debug)]
pub(crate) struct Grouped {
    pub(crate) head: Head,
    pub(crate) losses: Losses,
    pub(crate) keys: Vec<Key>,
    /// The argument that is summed up.
    pub(crate) value: Option<String>,
    /// How many groups are shown.
    pub(crate) top: usize,
    pub(crate) tables: Vec<Table>,
}

/// Counts by groups and shows the tables.
pub(super) fn report(
    session: &Session,
    filter: &Filter,
    (sort, value, top): (&[String], Option<&str>, Option<usize>),
    options: &ReportOptions,
) -> Result<(String, Notices), ReportError> {
    let rows = Rows::new(session, |event| filter.event(event));
    let keys = sort
        .iter()
        .map(|name| Key::parse(name, session, &rows, options.human))
        .collect::<Result<Vec<_>, _>>()?;
    let places = value.map(|name| places(name, session, &rows)).transpose()?;
    let by_row = !keys.contains(&Key::Event);
    let dictionary = Dictionary::default();
    let (states, outcome) = fold(
        session,
        filter,
        Groups::default,
        |groups, resolver, target, sample| {
            groups.add(
                by_row,
                &keys,
                &rows,
                resolver,
                (target, sample),
                &dictionary,
            );
            if let Some(places) = &places
                && let Some(value) = argument_value(places, resolver, target, sample)
            {
                groups.add_value(value);
            }
        },
    );
    let groups = states.into_iter().reduce(Groups::merge).unwrap_or_default();
    let mut notices = Notices::new(session);
    notices.add(outcome);
    let count = if by_row { rows.rows.len() } else { 1 };
    let table = |(row, found): (usize, Vec<_>)| {
        let event = by_row.then(|| rows.rows.get(row).map_or("", |row| &row.name).to_owned());
        Table::new(event, groups.others(row), found, |words, count| {
            let cells = keys.iter().zip(words);
            let cell = |(key, &words): (&Key, _)| key.cell(words, session, &rows, &dictionary);
            Group {
                cells: cells.map(cell).collect(),
                count,
                stats: value.map(|_| groups.stats(row, words)),
            }
        })
    };
    let grouped = Grouped {
        head: Head::new(session),
        losses: Losses::new(session, &rows),
        tables: groups
            .by_row(count)
            .into_iter()
            .enumerate()
            .map(table)
            .collect(),
        value: value.map(str::to_owned),
        top: top.unwrap_or(usize::MAX),
        keys,
    };
    let text = match options.format {
        Format::Text => render::text(&grouped, options.show_samples, options.look()),
        Format::Json => render::json(&grouped),
        Format::Csv => render::csv(&grouped),
    };
    Ok((text, notices))
}

impl Table {
    fn new(
        event: Option<String>,
        others: Count,
        groups: Vec<(&[key::Words], Count)>,
        group: impl Fn(&[key::Words], Count) -> Group,
    ) -> Self {
        let mut total = others;
        let mut rows: Vec<Group> = groups
            .into_iter()
            .map(|(words, count)| {
                total.add(count);
                group(words, count)
            })
            .collect();
        // Stable: without numbers the order stays.
        let weight = |group: &Group| group.stats.as_ref().map_or(0.0, |stats| stats.weight);
        rows.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        Self {
            event,
            total,
            rows,
            others,
        }
    }
}

/// Where each event has the argument of a name.
fn places(name: &str, session: &Session, rows: &Rows) -> Result<Vec<Option<usize>>, ReportError> {
    match Key::parse(name, session, rows, false)? {
        Key::Argument(_, places, _) => Ok(places),
        _ => Err(ReportError::Ask(format!(
            "--value {name}: expected the name of an argument"
        ))),
    }
}
