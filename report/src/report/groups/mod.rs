//! `report --sort`: samples counted by groups, as perf report shows them.

mod dictionary;
mod key;
mod render;
mod table;

pub(crate) use self::dictionary::Dictionary;
pub(crate) use self::key::{Cell, Datum, Key};
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
    pub(crate) rows: Vec<(Vec<Cell>, Count)>,
    /// Samples of groups that are too many to be counted one by one.
    pub(crate) others: Count,
}

/// Groups of a trace, ready to be shown.
#[derive(Debug)]
pub(crate) struct Grouped {
    pub(crate) head: Head,
    pub(crate) losses: Losses,
    pub(crate) keys: Vec<Key>,
    pub(crate) tables: Vec<Table>,
}

/// Counts by groups and shows the tables.
pub(super) fn report(
    session: &Session,
    filter: &Filter,
    options: &ReportOptions,
) -> Result<(String, Notices), ReportError> {
    let rows = Rows::new(session, |event| filter.event(event));
    let keys = options
        .sort
        .iter()
        .map(|name| Key::parse(name, session, &rows, options.human))
        .collect::<Result<Vec<_>, _>>()?;
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
        },
    );
    let groups = states.into_iter().reduce(Groups::merge).unwrap_or_default();
    let mut notices = Notices::new(session);
    notices.add(outcome);
    let count = if by_row { rows.rows.len() } else { 1 };
    let table = |(row, found): (usize, Vec<_>)| {
        let event = by_row.then(|| rows.rows.get(row).map_or("", |row| &row.name).to_owned());
        Table::new(event, groups.others(row), found, |words| {
            let cells = keys.iter().zip(words);
            let cell = |(key, &words): (&Key, _)| key.cell(words, session, &rows, &dictionary);
            cells.map(cell).collect()
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
        keys,
    };
    let text = match options.format {
        Format::Text => render::text(&grouped, options.show_samples),
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
        cells: impl Fn(&[key::Words]) -> Vec<Cell>,
    ) -> Self {
        let mut total = others;
        let rows: Vec<(Vec<Cell>, Count)> = groups
            .into_iter()
            .map(|(words, count)| {
                total.add(count);
                (cells(words), count)
            })
            .collect();
        Self {
            event,
            total,
            rows,
            others,
        }
    }
}
