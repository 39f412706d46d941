//! `stat`: counts that were made in the kernel, as text, JSON or CSV.

mod durations;
mod fates;
mod fitted;
mod histograms;
mod key;
mod lines;
mod live;
mod member;
mod numbers;
mod parts;
mod prometheus;
mod snapshot;
mod stack_name;
mod stack_namer;
mod stream;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use usdtrec_format::counted;
use usdtrec_format::escape::escape;
use usdtrec_trace::session::event_name::short_name;

pub use usdtrec_analysis::counted_numbers::{CountedNumbers, NumberFacts};
pub use usdtrec_analysis::stats::shape::shape;
pub use usdtrec_format::NumberEnds;

pub use self::durations::StatSpans;
use self::fates::FateCount;
pub use self::fates::SpanFates;
use self::fitted::{Block, FittedTable};
pub use self::key::StatKey;
use self::key::address_hint;
pub use self::live::{HISTORY, LiveTable, RowChoice, RowOrder, TableRoom};
pub use self::numbers::StatArgument;
use self::parts::SpanParts;
pub use self::prometheus::PrometheusView;
pub use self::snapshot::{SnapshotRow, StatSnapshot, StatSum};
pub use self::stack_name::StackName;
pub use self::stack_namer::{StackAddresses, StackNamer};
pub use self::stream::{CountReader, read};
use crate::columns::folded;
use crate::format::Format;
use crate::numbers::rate;
use crate::table::TableCell;
use crate::theme::Theme;

/// The counts of an interval, or of a whole recording.
#[derive(Clone, Debug, Default)]
pub struct StatCounts {
    /// Time from the start of the recording to the end of the interval.
    pub elapsed: Duration,
    /// Length of the interval.
    pub interval: Duration,
    /// The counts, in the order in which they are shown.
    pub rows: Vec<StatRow>,
}

/// The counts of a probe, or of a group of its hits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatRow {
    /// `sdt_PROVIDER:NAME`, or the name of a span.
    pub event: String,
    /// Whether it is a span, or a group of spans: the hits are spans then.
    pub is_span: bool,
    /// The value of each key; `None` for hits that are in no group.
    pub keys: Option<Vec<StatKey>>,
    /// Number of hits.
    pub count: u64,
    /// Hits that are not counted, because a filter could not be evaluated; 0 in groups.
    pub lost: u64,
    /// The numbers of each measured argument, and the durations of spans where these are asked for; `None` if they are not known.
    pub numbers: Vec<Option<NumberFacts>>,
    /// What became of begins and ends; `None` but for all spans of a name.
    pub fates: Option<SpanFates>,
}

impl StatCounts {
    /// The counts of the interval of a snapshot: the most hits first; equal counts in its order. Groups without hits in the interval are
    /// left out; a probe without a hit is not, unless it has groups.
    #[must_use]
    pub fn of_interval(snapshot: &StatSnapshot) -> Self {
        let is_group = |row: &&SnapshotRow| row.keys.as_ref().is_some_and(|keys| !keys.is_empty());
        let groups = snapshot.rows.iter().filter(is_group);
        let grouped: BTreeSet<&str> = groups.map(|row| &*row.event).collect();
        let rows = snapshot.rows.iter().filter(|row| {
            let has_fates = row.interval.fates.is_some();
            let is_empty = row.interval.count == 0 && row.interval.lost == 0 && !has_fates;
            !is_empty || !grouped.contains(&*row.event)
        });
        let rows = rows.map(|row| StatRow {
            event: row.event.clone(),
            is_span: row.is_span,
            keys: row.keys.clone(),
            count: row.interval.count,
            lost: row.interval.lost,
            numbers: row.interval.facts(),
            fates: row.interval.fates,
        });
        let mut rows: Vec<StatRow> = rows.collect();
        rows.sort_by_key(|row| Reverse(row.count));
        Self {
            elapsed: snapshot.elapsed,
            interval: snapshot.interval,
            rows,
        }
    }
}

impl StatRow {
    /// The numbers of a measured argument, by its place.
    fn numbers_of(&self, place: usize) -> Option<&NumberFacts> {
        self.numbers.get(place)?.as_ref()
    }

    /// The durations of spans.
    fn durations(&self) -> Option<&NumberFacts> {
        self.numbers.last().filter(|_| self.is_span)?.as_ref()
    }
}

/// Shows counts, one table or several.
#[derive(Debug)]
pub struct StatView {
    format: Format,
    theme: Theme,
    /// Names of the keys; empty if probes are not divided into groups.
    keys: Vec<String>,
    /// The arguments whose numbers are shown.
    measured: Vec<StatArgument>,
    /// How spans are shown; `None` if there are none.
    spans: Option<StatSpans>,
    /// Whether something was shown.
    has_begun: bool,
}

impl StatView {
    /// A view; `colours` is whether headings of text are in colours.
    #[must_use]
    pub fn new(
        format: Format,
        colours: bool,
        keys: Vec<String>,
        measured: Vec<StatArgument>,
    ) -> Self {
        Self {
            format,
            theme: Theme::new(colours),
            keys,
            measured,
            spans: None,
            has_begun: false,
        }
    }

    /// The same with lines of text that have so many columns; `None` for 80, where values are whole.
    #[must_use]
    pub const fn with_columns(mut self, columns: Option<usize>) -> Self {
        self.theme = self.theme.with_columns(columns);
        self
    }

    /// The same with spans.
    #[must_use]
    pub const fn with_spans(mut self, spans: Option<StatSpans>) -> Self {
        self.spans = spans;
        self
    }

    /// What is to be printed next.
    pub fn show(&mut self, counts: &StatCounts) -> String {
        let mut out = String::new();
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        match self.format {
            Format::Text => {
                if !is_first {
                    out.push('\n');
                }
                self.put_text(counts, &mut out);
            }
            Format::Json => self.put_json(counts, &mut out),
            Format::Csv | Format::CsvRaw => {
                if is_first {
                    self.put_csv_heading(&mut out);
                }
                self.put_csv(counts, &mut out);
            }
        }
        out
    }

    fn put_text(&self, counts: &StatCounts, out: &mut String) {
        let of = |spans: bool| counts.rows.iter().filter(move |row| row.is_span == spans);
        let (events, spans): (Vec<&StatRow>, Vec<&StatRow>) =
            (of(false).collect(), of(true).collect());
        let sum = |rows: &[&StatRow]| rows.iter().map(|row| row.count).sum::<u64>();
        let shows_events = self.spans.is_none() || !events.is_empty();
        let counted_spans = self.spans.map(|_| counted(sum(&spans), "span"));
        let counted_events = shows_events.then(|| format!("{} events", sum(&events)));
        let all = counted_spans.into_iter().chain(counted_events);
        let lost = counts.rows.iter().map(|row| row.lost).sum::<u64>();
        let remark = format!(
            "# {:.1} s: {} in {:.2} s, {lost} lost",
            counts.elapsed.as_secs_f64(),
            Vec::from_iter(all).join(", "),
            counts.interval.as_secs_f64()
        ) + &address_hint(
            &self.keys,
            counts.rows.iter().filter_map(|row| row.keys.as_deref()),
        );
        self.theme.put_totals(&remark, lost, out);
        let interval = nanoseconds(counts.interval);
        if let Some(of_spans) = self.spans {
            // Beside groups, what is of all spans of a name is a row only if it says anything.
            let says = |row: &&StatRow| {
                let open = row.fates.map_or(0, |fates| fates.open);
                row.keys.is_some() || row.count + row.lost + open > 0
            };
            let shown: Vec<&StatRow> = spans.iter().copied().filter(says).collect();
            let shown = if shown.is_empty() { &spans } else { &shown };
            self.span_table(shown, of_spans, interval)
                .put(self.theme, out);
            put_fates(&spans, self.theme, out);
            put_unknown_parts(&spans, of_spans, self.theme, out);
        }
        if shows_events {
            self.table(&events, interval).put(self.theme, out);
        }
        self.put_error(counts, out);
        self.put_histograms(counts, out);
    }

    /// The table of probes and groups of their hits.
    fn table(&self, rows: &[&StatRow], interval: u64) -> FittedTable {
        let mut table = self.names("Probe", rows);
        let mut counts = Block::new(["Events", "/s"], counts(rows, interval));
        let lost = rows.iter().map(|row| vec![TableCell::count(row.lost)]);
        counts.last = Some(Box::new(Block::new(["Lost"], lost)));
        table.blocks.push(counts);
        let is_only = self.measured.len() == 1;
        for (place, argument) in self.measured.iter().enumerate() {
            let cells = rows.iter().map(|row| row.numbers_of(place));
            let cells = cells.map(|facts| argument.cells(facts).collect());
            table
                .blocks
                .push(Block::new(argument.columns(is_only), cells));
        }
        table
    }

    /// The table of spans and their groups.
    fn span_table(&self, rows: &[&StatRow], spans: StatSpans, interval: u64) -> FittedTable {
        let mut table = self.names("Span", rows);
        let mut counts = Block::new(["Count", "/s"], counts(rows, interval));
        if rows.iter().any(|row| row.fates.is_some()) {
            let open = rows.iter().map(|row| match row.fates {
                Some(fates) => vec![TableCell::count(fates.open)],
                None => vec![TableCell::unsorted("")],
            });
            counts.last = Some(Box::new(Block::new(["Open"], open)));
        }
        table.blocks.push(counts);
        let cells = rows.iter().map(|row| spans.cells(row));
        table.blocks.push(Block::new(spans.columns(), cells));
        table
    }

    /// A table of the names and keys of rows alone.
    fn names(&self, first: &str, rows: &[&StatRow]) -> FittedTable {
        let columns = [first.to_owned()]
            .into_iter()
            .chain(self.keys.iter().cloned());
        let cells = rows.iter().map(|row| {
            let name = TableCell::Code(short_name(&row.event).to_owned());
            let keys = self.keys.iter().enumerate().map(|(place, _)| {
                // Of all spans of a name.
                let others = if row.count == 0 && row.is_span {
                    ""
                } else {
                    "<others>"
                };
                match &row.keys {
                    None => TableCell::Text(others.to_owned()),
                    Some(keys) => keys
                        .get(place)
                        .map_or_else(|| TableCell::Text(String::new()), StatKey::table_cell),
                }
            });
            [name].into_iter().chain(keys).collect()
        });
        FittedTable {
            names: Block {
                columns: columns.collect(),
                rows: cells.collect(),
                last: None,
            },
            blocks: Vec::new(),
        }
    }
}

/// The counts of rows, and their rates.
fn counts(rows: &[&StatRow], interval: u64) -> impl Iterator<Item = Vec<TableCell>> {
    rows.iter().map(move |row| {
        vec![
            TableCell::count(row.count),
            TableCell::number(rate(row.count, interval), row.count),
        ]
    })
}

/// Appends what became of begins and ends that are not added up.
fn put_fates(rows: &[&StatRow], theme: Theme, out: &mut String) {
    for row in rows {
        for FateCount { name, count } in row.fates.iter().flat_map(|fates| fates.remarks()) {
            let remark = format!("{name}: {} {count}", escape(short_name(&row.event)));
            folded(&remark, "  ", theme, out);
        }
    }
}

/// Appends of how many spans it is not known what their time was spent on.
fn put_unknown_parts(rows: &[&StatRow], spans: StatSpans, theme: Theme, out: &mut String) {
    // Of spans in no group nothing is known.
    let rows = rows.iter().filter(|row| row.durations().is_some());
    for row in rows.filter(|_| spans.has_parts) {
        let unknown = SpanParts::unknown(spans.parts(row), row.count);
        if unknown > 0 {
            let name = escape(short_name(&row.event));
            let why = parts::why_unknown(&row.numbers);
            let remark =
                format!("not known what the time was spent on, as {why}: {name} {unknown}");
            folded(&remark, "  ", theme, out);
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use usdtrec_format::{NumberBucket, StringAt, Value};

    use super::*;

    fn row(event: &str, keys: Option<Vec<StatKey>>, count: u64, lost: u64) -> StatRow {
        StatRow {
            event: event.to_owned(),
            is_span: false,
            keys,
            count,
            lost,
            numbers: Vec::new(),
            fates: None,
        }
    }

    fn counts(rows: Vec<StatRow>) -> StatCounts {
        StatCounts {
            elapsed: Duration::from_secs(3),
            interval: Duration::from_millis(500),
            rows,
        }
    }

    fn of_probes() -> StatCounts {
        let probe = |event, count, lost| row(event, Some(Vec::new()), count, lost);
        counts(vec![
            probe("sdt_app:re\u{202e}q", 1000, 1),
            probe("sdt_app:done", 0, 0),
        ])
    }

    fn of_groups() -> StatCounts {
        let text = StatKey::Argument {
            value: Value::String(StringAt {
                address: 0,
                bytes: b"a,\x1b".to_vec(),
                cut: true,
                guessed: false,
                from_file: false,
            }),
            argument: None,
        };
        let keys = |number, text| Some(vec![StatKey::Number(number), text]);
        counts(vec![
            row("sdt_app:req", keys(7, text), 5, 0),
            row("sdt_app:req", keys(8, StatKey::Absent), 2, 0),
            row("sdt_app:req", None, 1, 3),
        ])
    }

    #[test]
    fn text_has_the_names_escaped() {
        let mut view = StatView::new(Format::Text, false, Vec::new(), Vec::new());
        let text = view.show(&of_probes());
        assert_eq!(
            text,
            "# 3.0 s: 1000 events in 0.50 s, 1 lost\n\
             Probe            Events    /s  Lost\n\
             app:re\\u{202e}q    1000  2000     1\n\
             app:done              0  0.00     0\n"
        );
        assert!(view.show(&of_probes()).starts_with("\n# 3.0 s"));
    }

    #[test]
    fn json_and_csv_have_the_same() {
        let mut json = StatView::new(Format::Json, false, Vec::new(), Vec::new());
        let first = json.show(&of_probes());
        assert_eq!(
            first.lines().nth(1).unwrap(),
            r#"{"count":0,"elapsed_ns":3000000000,"event":"sdt_app:done","interval_ns":500000000,"lost":0,"per_second":0.0}"#
        );
        let mut csv = StatView::new(Format::Csv, false, Vec::new(), Vec::new());
        let first = csv.show(&of_probes());
        assert_eq!(first.lines().count(), 3);
        assert_eq!(
            first.lines().nth(2).unwrap(),
            "3000000000,500000000,sdt_app:done,0,0,0"
        );
        let second = csv.show(&of_probes());
        assert_eq!(second.lines().count(), 2, "the header line is once");
    }

    #[test]
    fn groups_have_their_keys_and_marks() {
        let keys = || vec!["pid".to_owned(), "url".to_owned()];
        let text = StatView::new(Format::Text, false, keys(), Vec::new()).show(&of_groups());
        assert!(text.contains("a,\\x1b…"), "{text}");
        assert!(text.contains("<others>"), "{text}");
        let json = StatView::new(Format::Json, false, keys(), Vec::new()).show(&of_groups());
        let lines: Vec<serde_json::Value> = json
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["pid"], 7);
        assert_eq!(lines[0]["url"], "a,\x1b");
        assert_eq!(lines[0]["cut"]["url"], true);
        assert_eq!(lines[1]["url"], serde_json::Value::Null);
        assert_eq!(lines[1]["lost"], serde_json::Value::Null);
        assert_eq!(lines[2]["others"], true);
        assert_eq!(lines[2]["lost"], 3);
        let csv = StatView::new(Format::Csv, false, keys(), Vec::new()).show(&of_groups());
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(
            lines[0],
            "elapsed_ns,interval_ns,event,pid,url,others,count,per_second,lost"
        );
        assert_eq!(
            lines[1],
            "3000000000,500000000,sdt_app:req,7,\"a,\\x1b…\",,5,10,"
        );
        assert_eq!(lines[3], "3000000000,500000000,sdt_app:req,,,true,1,2,3");
    }

    fn of_numbers(has_histogram: bool) -> StatCounts {
        let mut numbers = CountedNumbers::default();
        for (from, count) in [(7, 3), (1024, 2)] {
            let bucket = NumberBucket::from_number(from);
            numbers.add(CountedNumbers {
                count,
                sum: from * i128::from(count),
                ends: Some(NumberEnds { min: 7, max: 1030 }),
                histogram: has_histogram.then(|| [(bucket, count)].into_iter().collect()),
                unbucketed: 0,
            });
        }
        let known = StatRow {
            numbers: vec![Some(numbers.facts())],
            ..row("sdt_app:req", Some(vec![StatKey::Number(7)]), 6, 0)
        };
        let others = StatRow {
            numbers: vec![None],
            ..row("sdt_app:req", None, 1, 3)
        };
        counts(vec![known, others])
    }

    fn of_bytes(format: Format, has_histogram: bool) -> String {
        let name = "bytes".to_owned();
        let argument = StatArgument {
            name,
            has_histogram,
        };
        let keys = vec!["pid".to_owned()];
        StatView::new(format, false, keys, vec![argument]).show(&of_numbers(has_histogram))
    }

    #[test]
    fn numbers_have_the_figures_of_a_report() {
        let text = of_bytes(Format::Text, true);
        assert_eq!(
            text,
            "# 3.0 s: 7 events in 0.50 s, 3 lost\n\
             Probe         pid  Events    /s   sum   mean  min  p50    p90    p99   max  Lost\n\
             app:req         7       6  12.0  2069  413.8    7   ~7  ~1030  ~1030  1030     0\n\
             app:req  <others>       1  2.00     -      -    -    -      -      -     -     3\n\
             ~ means: within 1.6 %\n\
             \n\
             app:req  7: bytes, 5 values, log2 buckets\n"
                .to_owned()
                + text.split_once("log2 buckets\n").unwrap().1
        );
        assert!(text.contains("\n   4  3  █"), "{text}");
        let plain = of_bytes(Format::Text, false);
        assert!(plain.contains("sum   mean  min   max  Lost"), "{plain}");
        assert!(!plain.contains('~'), "{plain}");
        let json = of_bytes(Format::Json, true);
        let lines: Vec<serde_json::Value> = json
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["bytes.count"], 5);
        assert_eq!(lines[0]["bytes.sum"], 2069);
        assert_eq!(lines[0]["bytes.mean"], 413.8);
        assert_eq!(lines[0]["bytes.exact"], false);
        assert_eq!(lines[0]["bytes.buckets"][0]["from"], 4);
        assert_eq!(lines[1]["bytes.max"], serde_json::Value::Null);
        let csv = of_bytes(Format::Csv, false);
        let lines: Vec<&str> = csv.lines().collect();
        assert!(
            lines[0].ends_with(",lost,bytes.count,bytes.sum,bytes.mean,bytes.min,bytes.max"),
            "{csv}"
        );
        assert!(lines[1].ends_with(",,5,2069,413.8,7,1030"), "{csv}");
        assert!(lines[2].ends_with(",3,,,,,"), "{csv}");
    }
}
