//! `stat`: counts that were made in the kernel, as text, JSON or CSV.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use usdtrec_analysis::stats::ratio::per_second;
use usdtrec_format::escape::escape_json;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::events::stream::{StreamSamples, StreamSummary, StreamView, watch};
use usdtrec_trace::session::event_name::short_name;
use usdtrec_trace::session::{Sources, TraceSession};

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
    /// The counts of each probe, in the order in which they are shown.
    pub probes: Vec<StatProbe>,
}

/// The counts of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatProbe {
    /// `sdt_PROVIDER:NAME`.
    pub event: String,
    /// Its hits.
    pub count: u64,
    /// Its hits that are not counted, because a filter could not be evaluated.
    pub lost: u64,
}

/// A line of JSON, or of CSV.
#[derive(Serialize)]
struct Line<'a> {
    elapsed_ns: u64,
    interval_ns: u64,
    event: &'a str,
    count: u64,
    per_second: Option<f64>,
    lost: u64,
}

/// Shows counts, one table or several.
#[derive(Debug)]
pub struct StatView {
    format: Format,
    theme: Theme,
    /// Whether something was shown.
    has_begun: bool,
}

impl StatView {
    /// A view; `colours` is whether headings of text are in colours.
    #[must_use]
    pub fn new(format: Format, colours: bool) -> Self {
        Self {
            format,
            theme: Theme::new(colours),
            has_begun: false,
        }
    }

    /// What is to be printed next.
    pub fn show(&mut self, counts: &StatCounts) -> String {
        let mut out = String::new();
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let lines = counts.probes.iter().map(|probe| Line::new(counts, probe));
        match self.format {
            Format::Text => {
                if !is_first {
                    out.push('\n');
                }
                self.put_text(counts, &mut out);
            }
            Format::Json => lines.for_each(|line| {
                let line = serde_json::to_string(&line).unwrap_or_default();
                out.extend([&*escape_json(&line), "\n"]);
            }),
            Format::Csv | Format::CsvRaw => {
                if is_first {
                    out.push_str("elapsed_ns,interval_ns,event,count,per_second,lost\n");
                }
                lines.for_each(|line| self.put_csv(&line, &mut out));
            }
        }
        out
    }

    fn put_text(&self, counts: &StatCounts, out: &mut String) {
        let sum = |number: fn(&StatProbe) -> u64| counts.probes.iter().map(number).sum::<u64>();
        let (count, lost) = (sum(|probe| probe.count), sum(|probe| probe.lost));
        let remark = format!(
            "# {:.1} s: {count} events in {:.2} s, {lost} lost",
            counts.elapsed.as_secs_f64(),
            counts.interval.as_secs_f64()
        );
        self.theme.put_totals(&remark, lost, out);
        let mut table = Table::new(["Probe", "Events", "/s", "Lost"]);
        let interval = nanoseconds(counts.interval);
        table.rows.extend(counts.probes.iter().map(|probe| {
            vec![
                TableCell::Code(short_name(&probe.event).to_owned()),
                TableCell::count(probe.count),
                TableCell::number(rate(probe.count, interval), probe.count),
                TableCell::count(probe.lost),
            ]
        }));
        put_table(&table, self.theme, out);
    }

    fn put_csv(&self, line: &Line<'_>, out: &mut String) {
        let Line {
            elapsed_ns,
            interval_ns,
            event,
            count,
            per_second,
            lost,
        } = line;
        let event = self.format.csv().field(event);
        let per_second = per_second.map_or_else(String::new, |rate| rate.to_string());
        out.push_str(&format!(
            "{elapsed_ns},{interval_ns},{event},{count},{per_second},{lost}\n"
        ));
    }
}

impl<'a> Line<'a> {
    fn new(counts: &StatCounts, probe: &'a StatProbe) -> Self {
        let interval_ns = nanoseconds(counts.interval);
        Self {
            elapsed_ns: nanoseconds(counts.elapsed),
            interval_ns,
            event: &probe.event,
            count: probe.count,
            per_second: per_second(probe.count, interval_ns),
            lost: probe.lost,
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads the stream of a recording whose hits are counted in the kernel, to its end: it has what is known of the processes.
///
/// # Errors
/// [`ReportError::Read`] if it is no stream.
pub fn read(
    input: impl Read,
    path: &Path,
    sources: &Sources,
) -> Result<StreamSummary, ReportError> {
    watch(input, path, sources, &EventSelection::default(), |_, _| {
        Ok(Unshown)
    })
}

/// A stream without samples.
struct Unshown;

impl StreamView for Unshown {
    fn show(&mut self, _: StreamSamples<'_>) -> Result<(), ReportError> {
        Ok(())
    }

    fn add_events(
        &mut self,
        _: &TraceSession,
        _: &SampleFilter,
    ) -> Result<BTreeSet<String>, ReportError> {
        Ok(BTreeSet::new())
    }

    fn lose(&mut self, _: &TraceSession, _: Option<usize>, _: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> StatCounts {
        let probe = |event: &str, count, lost| StatProbe {
            event: event.to_owned(),
            count,
            lost,
        };
        StatCounts {
            elapsed: Duration::from_secs(3),
            interval: Duration::from_millis(500),
            probes: vec![
                probe("sdt_app:re\u{202e}q", 1000, 1),
                probe("sdt_app:done", 0, 0),
            ],
        }
    }

    #[test]
    fn text_has_the_names_escaped() {
        let mut view = StatView::new(Format::Text, false);
        let text = view.show(&counts());
        assert_eq!(
            text,
            "# 3.0 s: 1000 events in 0.50 s, 1 lost\n\
             Probe             Events    /s  Lost\n\
             app:re\\u{202e}q    1000  2000     1\n\
             app:done               0  0.00     0\n"
        );
        assert!(view.show(&counts()).starts_with("\n# 3.0 s"));
    }

    #[test]
    fn json_and_csv_have_the_same() {
        let mut json = StatView::new(Format::Json, false);
        let first = json.show(&counts());
        assert_eq!(
            first.lines().nth(1).unwrap(),
            r#"{"elapsed_ns":3000000000,"interval_ns":500000000,"event":"sdt_app:done","count":0,"per_second":0.0,"lost":0}"#
        );
        let mut csv = StatView::new(Format::Csv, false);
        let first = csv.show(&counts());
        assert_eq!(first.lines().count(), 3);
        assert_eq!(
            first.lines().nth(2).unwrap(),
            "3000000000,500000000,sdt_app:done,0,0,0"
        );
        let second = csv.show(&counts());
        assert_eq!(second.lines().count(), 2, "the header line is once");
    }
}
