//! `report --rate`: how many events there are, interval by interval; `report/FIELDS.md` describes its JSON and CSV.

use std::fmt::Write as _;

use foldhash::HashMap;
use serde_json::{Map, Value, json};
use usdtrec_format::escape::{escape, escape_json};

use crate::analysis::groups::kept::{Bounded, Counted, Grouping, Kept};
use crate::analysis::summary::counts::Rows;
use crate::error::ReportError;
use crate::events::notices::Notices;
use crate::events::selection::Filter;
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::key::{Cell, Key, Words};
use crate::stats::sketch::Combine;
use crate::stats::timeline::Timeline;
use crate::trace::session::Session;
use crate::view::bars::sparkline;
use crate::view::columns::{Side, folded_from, put_columns};
use crate::view::head::Head;
use crate::view::numbers::{duration, rate};
use crate::view::report::ReportOptions;
use crate::view::report::groups::json_cell;
use crate::view::report::text::short;
use crate::view::script::Format;
use crate::view::text::quoted::Csv;
use crate::view::theme::Look;

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
    others: Option<Others>,
}

/// Series that are not kept apart.
#[derive(Debug)]
struct Others {
    counts: Vec<u64>,
    /// What one of them may have of events, if that is more than the last one that is kept has.
    doubtful: Option<u64>,
}

/// Counts of a thread.
#[derive(Debug, Default)]
struct Counts {
    series: Series,
    others: Option<Vec<u64>>,
    /// Whether there were more series than there may be.
    overflow: bool,
    key: Vec<Words>,
}

/// Counts, and shows the series.
pub(crate) fn report(
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
    let asked = Asked {
        grouping: Grouping {
            session,
            filter,
            rows: &rows,
            keys: &keys,
            by_row: true,
            apart: false,
        },
        timeline: &timeline,
    };
    let mut notices = Notices::new(session);
    let Counted {
        counts,
        dictionary,
        kept,
    } = asked.count(&mut notices);
    let by_event = !keys.contains(&Key::Event);
    let mut series: Vec<_> = counts
        .series
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
    series.sort_by(|(of_a, a, counts), (of_b, b, others)| {
        let sum = |counts: &[u64]| counts.iter().sum::<u64>();
        let cells = a.iter().map(Cell::order);
        sum(others)
            .cmp(&sum(counts))
            .then_with(|| of_a.cmp(of_b))
            .then_with(|| cells.cmp(b.iter().map(Cell::order)))
    });
    let last = series
        .last()
        .map_or(0, |(_, _, counts)| counts.iter().sum());
    let bound = kept.map_or(0, |kept| kept.bound(0));
    let others = counts.others.map(|counts| Others {
        counts,
        doubtful: (bound > last).then_some(bound),
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
        format => rates.csv(format.csv()),
    };
    Ok((text, notices))
}

/// What all walks for a question have in common.
struct Asked<'a> {
    grouping: Grouping<'a>,
    timeline: &'a Timeline,
}

impl Asked<'_> {
    /// Counts all series, or if there are too many, those with the most events.
    fn count(&self, notices: &mut Notices) -> Counted<Counts> {
        let grouping = &self.grouping;
        grouping.count(
            MOST_SERIES,
            notices,
            |kept, dictionary, notices| self.walk(kept, dictionary, notices),
            |_, notices| grouping.bounds(&[true], Combine::Sum, |_, _, _| 1, notices),
        )
    }

    fn walk(&self, kept: Option<&Kept>, dictionary: &Dictionary, notices: &mut Notices) -> Counts {
        let states = self.grouping.walk(
            kept.is_none(),
            Counts::default,
            |counts, resolver, target, sample| {
                let hit = (target, sample);
                let key = &mut counts.key;
                if kept.is_some_and(|kept| !kept.has(&self.grouping, key, resolver, hit)) {
                    counts.count_other(self.timeline, sample.time);
                } else if self.grouping.put(key, resolver, hit, dictionary).is_some() {
                    counts.count(self.timeline, sample.time);
                }
            },
            notices,
        );
        let all = states.into_iter().reduce(Counts::merge);
        all.unwrap_or_default()
    }
}

impl Bounded for Counts {
    fn is_overflown(&self) -> bool {
        self.overflow
    }
}

impl Counts {
    /// Counts an event of the series of `key`.
    fn count(&mut self, timeline: &Timeline, time: u64) {
        let place = timeline.place(time);
        let full = self.series.len() >= MOST_SERIES;
        match self.series.get_mut(&*self.key) {
            Some(counts) => counts[place] += 1,
            None if full => {
                self.overflow = true;
                self.count_other(timeline, time);
            }
            None => {
                let mut counts = vec![0; timeline.intervals];
                counts[place] = 1;
                self.series.insert(self.key.as_slice().into(), counts);
            }
        }
    }

    fn count_other(&mut self, timeline: &Timeline, time: u64) {
        let others = self
            .others
            .get_or_insert_with(|| vec![0; timeline.intervals]);
        others[timeline.place(time)] += 1;
    }

    /// Adds those of another thread.
    fn merge(mut self, other: Self) -> Self {
        let add = |sums: &mut Vec<u64>, counts: &[u64]| {
            let both = sums.iter_mut().zip(counts);
            both.for_each(|(sum, count)| *sum += count);
        };
        self.overflow |= other.overflow;
        for (key, counts) in other.series {
            let full = self.series.len() >= MOST_SERIES;
            match self.series.get_mut(&key) {
                Some(sums) => add(sums, &counts),
                None if full => self.overflow = true,
                None => {
                    self.series.insert(key, counts);
                }
            }
        }
        match (&mut self.others, other.others) {
            (Some(sums), Some(counts)) => add(sums, &counts),
            (None, Some(counts)) => self.others = Some(counts),
            (_, None) => {}
        }
        self
    }
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
            rows.push(row(name.join(" "), interval, counts));
        }
        if let Some(others) = &self.others {
            rows.push(row("all other series".to_owned(), interval, &others.counts));
        }
        let mut sides = [Side::Right; 6];
        (sides[0], sides[5]) = (Side::Left, Side::Left);
        put_columns(&rows, &sides, look, &mut out);
        if let Some(bound) = self.others.as_ref().and_then(|others| others.doubtful) {
            let warning = format!(
                "there were too many series to keep all apart: one that is not shown may have up to {bound} events"
            );
            folded_from("WARNING: ", &warning, "  ", &mut out);
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
            self.put_json(object, counts, &mut out);
        }
        if let Some(others) = &self.others {
            let by_event = self.series.iter().any(|(event, ..)| event.is_some());
            let names = by_event.then_some("event");
            let names = names.into_iter().chain(self.keys.iter().map(Key::name));
            let mut object: Map<String, Value> =
                names.map(|name| (name.to_owned(), Value::Null)).collect();
            object.insert("others".to_owned(), json!(true));
            object.insert("doubtful".to_owned(), json!(others.doubtful));
            self.put_json(object, &others.counts, &mut out);
        }
        out
    }

    fn put_json(&self, mut object: Map<String, Value>, counts: &[u64], out: &mut String) {
        object.insert("from_ns".to_owned(), json!(self.timeline.from));
        object.insert("interval_ns".to_owned(), json!(self.timeline.interval));
        object.insert("counts".to_owned(), json!(counts));
        out.push_str(&escape_json(&Value::Object(object).to_string()));
        out.push('\n');
    }

    fn csv(&self, csv: Csv) -> String {
        let by_event = self.series.iter().any(|(event, ..)| event.is_some());
        let mut columns: Vec<&str> = if by_event { vec!["event"] } else { Vec::new() };
        columns.extend(self.keys.iter().map(Key::name));
        columns.extend(["time_ns", "count", "others", "doubtful"]);
        let columns: Vec<_> = columns.into_iter().map(|name| csv.field(name)).collect();
        let mut out = columns.join(",") + "\n";
        for (event, cells, counts) in &self.series {
            let mut start: Vec<String> = event
                .iter()
                .map(|event| csv.field(event).into_owned())
                .collect();
            start.extend(cells.iter().map(|cell| csv.field(cell.csv()).into_owned()));
            let start: String = start.into_iter().map(|field| field + ",").collect();
            self.put_csv((&start, ",false,"), counts, &mut out);
        }
        if let Some(others) = &self.others {
            let start = ",".repeat(self.keys.len() + usize::from(by_event));
            let doubtful = others.doubtful.map(|bound| bound.to_string());
            let end = format!(",true,{}", doubtful.unwrap_or_default());
            self.put_csv((&start, &end), &others.counts, &mut out);
        }
        out
    }

    fn put_csv(&self, (start, end): (&str, &str), counts: &[u64], out: &mut String) {
        for (at, count) in counts.iter().enumerate() {
            let time = self.timeline.begin(at as u64);
            let _ = writeln!(out, "{start}{time},{count}{end}");
        }
    }
}

/// A line of the table.
fn row(name: String, interval: u64, counts: &[u64]) -> Vec<String> {
    let sum: u64 = counts.iter().sum();
    let least = counts.iter().copied().min().unwrap_or(0);
    let most = counts.iter().copied().max().unwrap_or(0);
    vec![
        name,
        sum.to_string(),
        rate(least, interval),
        rate(sum, interval.saturating_mul(counts.len() as u64)),
        rate(most, interval),
        sparkline(&shrunk(counts)),
    ]
}

/// The counts in at most [`COLUMNS`] columns, each the sum of as many neighbours.
fn shrunk(counts: &[u64]) -> Vec<u64> {
    let together = counts.len().div_ceil(COLUMNS).max(1);
    counts
        .chunks(together)
        .map(|part| part.iter().sum())
        .collect()
}
