//! `top`: the rates of a stream's probes, as a table at regular intervals.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use usdtrec_analysis::context_question::ContextQuestion;
use usdtrec_analysis::live_counts::{LiveCounts, LiveTotal};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::events::stream::{StreamSamples, StreamSummary, StreamView, watch};
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::event_name::short_name as short;
use usdtrec_trace::session::{Sources, TraceSession};

use crate::columns::put_table;
use crate::numbers::rate;
use crate::report::probes::processes;
use crate::table::{Table, TableCell};
use crate::theme::Theme;

/// Options of `top`.
#[derive(Clone, Copy, Debug)]
pub struct TopOptions {
    /// Time from one table to the next.
    pub every: Duration,
    /// Number of tables; `None` for as many as the stream has time for.
    pub tables: Option<u64>,
    /// Whether headings are in colours.
    pub colours: bool,
    /// Width of lines at the moment, columns; `None` for 80.
    pub columns: fn() -> Option<usize>,
}

/// Passes tables of a stream's probes to `table`, the highest rates first, until the stream ends or [`TopOptions::tables`] were shown. The
/// stream must have rounds ([`RecordType::FINISHED_ROUND`](usdtrec_format::perf::RecordType::FINISHED_ROUND)) at a pace much
/// faster than that of the tables, also when nothing happens.
///
/// # Errors
/// [`ReportError::Read`] if it is no stream; [`ReportError::Write`] if `table` fails.
pub fn show(
    input: impl Read,
    path: &Path,
    sources: &Sources,
    options: TopOptions,
    table: &mut dyn FnMut(&str) -> io::Result<()>,
) -> Result<StreamSummary, ReportError> {
    let selection = EventSelection::default();
    let context = ContextQuestion::default();
    watch(
        input,
        path,
        sources,
        &selection,
        &context,
        |session, filter| {
            let rows = Rows::new(session, |event| filter.event(event));
            let now = Instant::now();
            Ok(Top {
                counts: LiveCounts::new(rows),
                started: now,
                last: now,
                tables: 0,
                options,
                show: table,
            })
        },
    )
}

/// The tables of a stream.
struct Top<'a> {
    counts: LiveCounts,
    started: Instant,
    /// When the last table was shown.
    last: Instant,
    tables: u64,
    options: TopOptions,
    show: &'a mut dyn FnMut(&str) -> io::Result<()>,
}

impl StreamView for Top<'_> {
    fn show(&mut self, samples: StreamSamples<'_>) -> Result<(), ReportError> {
        self.counts.add(samples)
    }

    fn add_events(
        &mut self,
        session: &TraceSession,
        filter: &SampleFilter,
    ) -> Result<BTreeSet<String>, ReportError> {
        let rows = Rows::new(session, |event| filter.event(event));
        self.counts.add_events(rows);
        Ok(BTreeSet::new())
    }

    fn lose(&mut self, _: &TraceSession, event: Option<usize>, lost: u64) {
        self.counts.lose(event, lost);
    }

    fn goes_on(&mut self) -> Result<bool, ReportError> {
        if self.last.elapsed() >= self.options.every {
            self.table()?;
        }
        Ok(self.options.tables.is_none_or(|most| self.tables < most))
    }

    fn end(&mut self, _: &TraceSession) -> Result<(), ReportError> {
        if self.counts.has_news() || self.tables == 0 {
            self.table()?;
        }
        Ok(())
    }
}

impl Top<'_> {
    /// Shows the table of the time since the last one, and begins the next.
    fn table(&mut self) -> Result<(), ReportError> {
        let mut out = String::new();
        let theme = Theme::new(self.options.colours).with_columns((self.options.columns)());
        let elapsed = self.last.elapsed();
        theme.put_remark(&self.remark(elapsed), &mut out);
        put_table(&self.probes(elapsed), theme, &mut out);
        (self.show)(&out)?;
        self.tables += 1;
        self.last = Instant::now();
        self.counts.begin();
        Ok(())
    }

    fn remark(&self, elapsed: Duration) -> String {
        let LiveTotal {
            hits,
            all,
            lost,
            silent,
        } = self.counts.total();
        let mut remark = format!(
            "# {:.1} s: {hits} events in {:.2} s, {all} in all, {lost} lost",
            self.started.elapsed().as_secs_f64(),
            elapsed.as_secs_f64(),
        );
        match silent {
            0 => {}
            1 => remark.push_str("; 1 probe without events"),
            silent => remark.push_str(&format!("; {silent} probes without events")),
        }
        remark
    }

    /// The probes that were hit, the most hits first.
    fn probes(&self, elapsed: Duration) -> Table {
        let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let mut table = Table::new(["Probe", "Events", "/s", "Total", "Processes", "Lost"]);
        table
            .rows
            .extend(self.counts.probes().into_iter().map(|probe| {
                vec![
                    TableCell::Code(short(&probe.event).to_owned()),
                    TableCell::count(probe.hits),
                    TableCell::number(rate(probe.hits, elapsed), probe.hits),
                    TableCell::count(probe.all),
                    TableCell::Text(processes(&probe.processes, probe.has_others)),
                    TableCell::count(probe.lost),
                ]
            }));
        table
    }
}
