//! `stat`: counts that were made in the kernel, as text, JSON or CSV.

mod figures;
mod key;
mod lines;
mod live;
mod prometheus;
mod snapshot;
mod stream;

use std::time::Duration;

use usdtrec_trace::session::event_name::short_name;

pub use self::figures::{StatBucket, StatFigures, StatRange};
pub use self::key::StatKey;
pub use self::live::{HISTORY, LiveTable, RowChoice, RowOrder, TableRoom};
pub use self::prometheus::{MAX_SERIES, PrometheusView};
pub use self::snapshot::{SnapshotRow, StatSnapshot, StatSum};
pub use self::stream::read;
use crate::columns::put_table;
use crate::format::Format;
use crate::numbers::rate;
use crate::table::{Table, TableCell};
use crate::theme::Theme;

/// The counts of an interval, or of a whole recording.
#[derive(Clone, Debug)]
pub struct StatCounts {
    /// Time from the start of the recording to the end of the interval.
    pub elapsed: Duration,
    /// Length of the interval.
    pub interval: Duration,
    /// The counts, in the order in which they are shown.
    pub rows: Vec<StatRow>,
}

/// The counts of a probe, or of a group of its hits.
#[derive(Clone, Debug, PartialEq)]
pub struct StatRow {
    /// `sdt_PROVIDER:NAME`.
    pub event: String,
    /// The value of each key; `None` for hits that are in no group.
    pub keys: Option<Vec<StatKey>>,
    /// Number of hits.
    pub count: u64,
    /// Hits that are not counted, because a filter could not be evaluated; 0 in groups.
    pub lost: u64,
}

/// Shows counts, one table or several.
#[derive(Debug)]
pub struct StatView {
    format: Format,
    theme: Theme,
    /// Names of the keys; empty if probes are not divided into groups.
    keys: Vec<String>,
    /// Whether something was shown.
    has_begun: bool,
}

impl StatView {
    /// A view; `colours` is whether headings of text are in colours.
    #[must_use]
    pub fn new(format: Format, colours: bool, keys: Vec<String>) -> Self {
        Self {
            format,
            theme: Theme::new(colours),
            keys,
            has_begun: false,
        }
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
        let sum = |number: fn(&StatRow) -> u64| counts.rows.iter().map(number).sum::<u64>();
        let (count, lost) = (sum(|row| row.count), sum(|row| row.lost));
        let remark = format!(
            "# {:.1} s: {count} events in {:.2} s, {lost} lost",
            counts.elapsed.as_secs_f64(),
            counts.interval.as_secs_f64()
        );
        self.theme.put_totals(&remark, lost, out);
        let keys = self.keys.iter().map(String::as_str);
        let columns = ["Probe"].into_iter().chain(keys);
        let mut table = Table::new(columns.chain(["Events", "/s", "Lost"]));
        let interval = nanoseconds(counts.interval);
        table.rows.extend(counts.rows.iter().map(|row| {
            let mut cells = vec![TableCell::Code(short_name(&row.event).to_owned())];
            cells.extend(self.keys.iter().enumerate().map(|(place, _)| {
                match &row.keys {
                    None => TableCell::Text("<others>".to_owned()),
                    Some(keys) => keys
                        .get(place)
                        .map_or_else(|| TableCell::Text(String::new()), StatKey::table_cell),
                }
            }));
            cells.extend([
                TableCell::count(row.count),
                TableCell::number(rate(row.count, interval), row.count),
                TableCell::count(row.lost),
            ]);
            cells
        }));
        put_table(&table, self.theme, out);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use usdtrec_format::{StringAt, Value};

    use super::*;

    fn row(event: &str, keys: Option<Vec<StatKey>>, count: u64, lost: u64) -> StatRow {
        StatRow {
            event: event.to_owned(),
            keys,
            count,
            lost,
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
        let mut view = StatView::new(Format::Text, false, Vec::new());
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
        let mut json = StatView::new(Format::Json, false, Vec::new());
        let first = json.show(&of_probes());
        assert_eq!(
            first.lines().nth(1).unwrap(),
            r#"{"count":0,"elapsed_ns":3000000000,"event":"sdt_app:done","interval_ns":500000000,"lost":0,"per_second":0.0}"#
        );
        let mut csv = StatView::new(Format::Csv, false, Vec::new());
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
        let text = StatView::new(Format::Text, false, keys()).show(&of_groups());
        assert!(text.contains("a,\\x1b…"), "{text}");
        assert!(text.contains("<others>"), "{text}");
        let json = StatView::new(Format::Json, false, keys()).show(&of_groups());
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
        let csv = StatView::new(Format::Csv, false, keys()).show(&of_groups());
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
}
