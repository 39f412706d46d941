//! `report --rate`: how many events there are, interval by interval; `report/FIELDS.md` describes its JSON and CSV.

use std::fmt::Write as _;

use foldhash::HashMap;
use serde_json::{Map, Value, json};
use usdtrec_format::escape::{escape, escape_json};

use super::ReportOptions;
use super::bars::sparkline;
use super::columns::{Side, put_columns};
use super::groups::{Cell, Dictionary, Key, Words, json_cell};
use super::head::Head;
use super::look::Look;
use super::numbers::{duration, rate};
use super::summary::Rows;
use super::text::short;
use super::timeline::Timeline;
use crate::error::ReportError;
use crate::fold::fold;
use crate::notice::Notices;
use crate::script::Format;
use crate::select::Filter;
use crate::session::Session;
use crate::text::csv_field;

/// Series that are kept apart.
const MOST_SERIES: usize = 1024;
/// Columns of a sparkline.
const COLUMNS: usize = 40;

type Series = HashMap<Box<[Words]>, Vec<u64>>;

/// All that is told.
#[derive(Debug)]
struct Rates {
    head: Head,
    timeline: Timeline,
    keys: Vec<Key>,
    /// The event, if it is not a key; the value of each key; the counts.
    series: Vec<(Option<String>, Vec<Cell>, Vec<u64>)>,
    /// Events of series that were too many to be kept apart.
    others: u64,
}

/// Counts, and shows the series.
pub(super) fn report(
    session: &Session,
    filter: &Filter,
    (interval, sort): (u64, &[String]),
    options: &ReportOptions,
) -> Result<(String, Notices), ReportError> {
    let timeline = Timeline::stepped(session, filter, interval)?;
    let rows = Rows::new(session, |event| filter.event(event));
    let keys = sort.iter();
    let keys: Vec<Key> = keys
        .map(|name| Key::parse(name, session, &rows, options.human))
        .collect::<Result<_, _>>()?;
    let dictionary = Dictionary::default();
    let (states, outcome) = fold(
        session,
        filter,
        || (Series::default(), 0_u64, Vec::<Words>::new()),
        |(series, others, key), resolver, target, sample| {
            let row = rows.of_event.get(target.event as usize).copied().flatten();
            let Some(row) = row else { return };
            key.clear();
            key.push((row as u64, 0));
            let words = keys.iter();
            key.extend(words.map(|one| one.words(&rows, resolver, target, sample, &dictionary)));
            let full = series.len() >= MOST_SERIES;
            let place = timeline.place(sample.time);
            match series.get_mut(&**key) {
                Some(counts) => counts[place] += 1,
                None if full => *others += 1,
                None => {
                    let mut counts = vec![0; timeline.intervals];
                    counts[place] = 1;
                    series.insert(key.as_slice().into(), counts);
                }
            }
        },
    );
    let mut notices = Notices::new(session);
    notices.add(outcome);
    let mut all = Series::default();
    let mut others = 0;
    for (series, left, _) in states {
        others += left;
        for (key, counts) in series {
            let sums = all
                .entry(key)
                .or_insert_with(|| vec![0; timeline.intervals]);
            sums.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
        }
    }
    let by_event = !keys.contains(&Key::Event);
    let mut series: Vec<_> = all
        .into_iter()
        .map(|(words, counts)| {
            let row = words.first().map_or(0, |words| words.0 as usize);
            let event = rows
                .rows
                .get(row)
                .map_or_else(String::new, |row| row.name.clone());
            let cells = keys.iter().zip(words.iter().skip(1));
            let cells = cells.map(|(key, &words)| key.cell(words, session, &rows, &dictionary));
            (
                by_event.then_some(event),
                cells.collect::<Vec<Cell>>(),
                counts,
            )
        })
        .collect();
    series.sort_by_cached_key(|(event, cells, counts)| {
        let texts: Vec<String> = cells.iter().map(|cell| cell.text.clone()).collect();
        (
            std::cmp::Reverse(counts.iter().sum::<u64>()),
            event.clone(),
            texts,
        )
    });
    let rates = Rates {
        head: Head::new(session),
        timeline,
        keys,
        series,
        others,
    };
    let text = match options.format {
        Format::Text => rates.text(options.look()),
        Format::Json => rates.json(),
        Format::Csv => rates.csv(),
    };
    Ok((text, notices))
}

impl Rates {
    fn text(&self, look: Look) -> String {
        let mut out = String::new();
        self.head.put(look, &mut out);
        let interval = self.timeline.interval;
        let _ = writeln!(
            out,
            "# {} intervals of {}, least, mean and most a second\n",
            self.timeline.intervals,
            duration(interval)
        );
        let heading = ["Series", "Events", "least", "mean", "most", "over time"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for (event, cells, counts) in &self.series {
            let mut name: Vec<String> = event
                .iter()
                .map(|event| escape(short(event)).into_owned())
                .collect();
            name.extend(cells.iter().map(|cell| cell.text.trim().to_owned()));
            let sum: u64 = counts.iter().sum();
            let least = counts.iter().copied().min().unwrap_or(0);
            let most = counts.iter().copied().max().unwrap_or(0);
            rows.push(vec![
                name.join(" "),
                sum.to_string(),
                rate(least, interval),
                rate(sum, interval.saturating_mul(counts.len() as u64)),
                rate(most, interval),
                sparkline(&shrunk(counts)),
            ]);
        }
        let mut sides = [Side::Right; 6];
        (sides[0], sides[5]) = (Side::Left, Side::Left);
        put_columns(&rows, &sides, look, &mut out);
        if self.others > 0 {
            let _ = writeln!(
                out,
                "other series than the {MOST_SERIES} that were met first: {} events",
                self.others
            );
        }
        out
    }

    fn json(&self) -> String {
        let mut out = String::new();
        for (event, cells, counts) in &self.series {
            let mut object = Map::new();
            if let Some(event) = event {
                object.insert("event".to_owned(), json!(event));
            }
            for (key, cell) in self.keys.iter().zip(cells) {
                object.insert(key.name().to_owned(), json_cell(cell));
            }
            object.insert("from_ns".to_owned(), json!(self.timeline.from));
            object.insert("interval_ns".to_owned(), json!(self.timeline.interval));
            object.insert("counts".to_owned(), json!(counts));
            out.push_str(&escape_json(&Value::Object(object).to_string()));
            out.push('\n');
        }
        out
    }

    fn csv(&self) -> String {
        let by_event = self.series.iter().any(|(event, ..)| event.is_some());
        let mut columns: Vec<&str> = if by_event { vec!["event"] } else { Vec::new() };
        columns.extend(self.keys.iter().map(Key::name));
        columns.extend(["time_ns", "count"]);
        let columns: Vec<_> = columns.into_iter().map(csv_field).collect();
        let mut out = columns.join(",") + "\n";
        for (event, cells, counts) in &self.series {
            let mut start: Vec<String> = event
                .iter()
                .map(|event| csv_field(event).into_owned())
                .collect();
            start.extend(cells.iter().map(|cell| csv_field(cell.csv()).into_owned()));
            let start: String = start.into_iter().map(|field| field + ",").collect();
            for (at, count) in counts.iter().enumerate() {
                let time = self.timeline.begin(at as u64);
                let _ = writeln!(out, "{start}{time},{count}");
            }
        }
        out
    }
}

/// The counts in at most [`COLUMNS`] columns, each the sum of as many neighbours.
fn shrunk(counts: &[u64]) -> Vec<u64> {
    let together = counts.len().div_ceil(COLUMNS).max(1);
    counts
        .chunks(together)
        .map(|part| part.iter().sum())
        .collect()
}
