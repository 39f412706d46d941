//! `top`: which probes of a stream are hit how often, told again and again.

use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use foldhash::HashMap;
use usdtrec_format::escape::escape;

use crate::analysis::summary::counts::by_name;
use crate::error::ReportError;
use crate::events::selection::Selection;
use crate::events::stream::{Samples, Streamed, View, watch};
use crate::trace::process::comm::{CommSpan, ProcessNumber};
use crate::trace::rows::Rows;
use crate::trace::session::event_name::short_name as short;
use crate::trace::session::{Session, Sources};
use crate::view::columns::{ColumnSide, put_columns};
use crate::view::numbers::rate;
use crate::view::report::probes::processes;
use crate::view::silence::reasons;
use crate::view::theme::Theme;

/// Processes of a probe that are counted one by one in the time of a table.
const PROCESSES: usize = 1 << 16;

/// How `top` tells.
#[derive(Clone, Copy, Debug)]
pub struct TopOptions {
    /// Time from one table to the next.
    pub every: Duration,
    /// End after so many tables; `None`: with the stream.
    pub tables: Option<u64>,
    /// Whether headings are in colours.
    pub colours: bool,
}

/// Hands over tables of a stream's probes, those with the highest rates first, until the stream ends or there were enough. The
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
) -> Result<Streamed, ReportError> {
    let selection = Selection::default();
    watch(input, path, sources, &selection, |session, filter| {
        let rows = Rows::new(session, |event| filter.event(event));
        let now = Instant::now();
        Ok(Top {
            counts: rows.rows.iter().map(|_| Counts::default()).collect(),
            rows,
            names: HashMap::default(),
            others_lost: 0,
            started: now,
            last: now,
            news: false,
            tables: 0,
            options,
            show: table,
        })
    })
}

/// Counts of a stream's probes.
struct Top<'a> {
    rows: Rows,
    /// Of each row.
    counts: Vec<Counts>,
    /// What the processes since the last table are called.
    names: HashMap<Process, Option<Box<str>>>,
    /// Losses of no row.
    others_lost: u64,
    started: Instant,
    /// When the last table was shown.
    last: Instant,
    /// Whether anything came since.
    news: bool,
    tables: u64,
    options: TopOptions,
    show: &'a mut dyn FnMut(&str) -> io::Result<()>,
}

/// A pid, and which of the processes that had it.
type Process = (i32, ProcessNumber);

/// Counts of one row.
#[derive(Debug, Default)]
struct Counts {
    /// Hits since the last table.
    hits: u64,
    /// Those of each process.
    processes: HashMap<Process, u64>,
    /// Those of further processes.
    other_processes: u64,
    /// Hits before that.
    before: u64,
    /// Losses from the beginning.
    lost: u64,
}

impl View for Top<'_> {
    fn show(&mut self, samples: Samples<'_>) -> Result<(), ReportError> {
        let known = samples.session.processes();
        let mut last: Option<(i32, CommSpan)> = None;
        samples.each(|target, sample| {
            let Some(&Some(row)) = self.rows.of_event.get(target.event as usize) else {
                return Ok(());
            };
            self.news = true;
            let counts = &mut self.counts[row];
            counts.hits += 1;
            let (_, comm) = match last {
                Some((pid, comm))
                    if pid == sample.pid && (comm.from..comm.until).contains(&sample.time) =>
                {
                    (pid, comm)
                }
                _ => *last.insert((sample.pid, known.comm(sample.pid, sample.time))),
            };
            let process = (sample.pid, comm.process);
            if let Some(hits) = counts.processes.get_mut(&process) {
                *hits += 1;
            } else if counts.processes.len() >= PROCESSES {
                counts.other_processes += 1;
            } else {
                counts.processes.insert(process, 1);
                // Now, because the process may end and be forgotten before the table is shown.
                self.names.entry(process).or_insert_with(|| {
                    comm.name
                        .and_then(|name| Some(known.name(name)?.text.clone()))
                });
            }
            Ok(())
        })
    }

    fn silence(&self, session: &Session) -> Vec<String> {
        reasons(session, |_| true)
    }

    fn lose(&mut self, _: &Session, event: Option<usize>, lost: u64) {
        self.news |= lost > 0;
        let row = event.and_then(|event| *self.rows.of_event.get(event)?);
        let counts = row.and_then(|row| self.counts.get_mut(row));
        let sum = counts.map_or(&mut self.others_lost, |counts| &mut counts.lost);
        *sum = sum.saturating_add(lost);
    }

    fn goes_on(&mut self) -> Result<bool, ReportError> {
        if self.last.elapsed() >= self.options.every {
            self.table()?;
        }
        Ok(self.options.tables.is_none_or(|most| self.tables < most))
    }

    fn end(&mut self) -> Result<(), ReportError> {
        if self.news || self.tables == 0 {
            self.table()?;
        }
        Ok(())
    }
}

impl Top<'_> {
    /// Shows a table and begins the next.
    fn table(&mut self) -> Result<(), ReportError> {
        let mut out = String::new();
        let theme = Theme::new(self.options.colours);
        let elapsed = self.last.elapsed();
        theme.put_remark(&self.remark(elapsed), &mut out);
        put_columns(&self.lines(elapsed), &SIDES, theme, &mut out);
        (self.show)(&out)?;
        self.tables += 1;
        self.last = Instant::now();
        self.news = false;
        self.names.clear();
        for counts in &mut self.counts {
            counts.before += std::mem::take(&mut counts.hits);
            counts.processes.clear();
            counts.other_processes = 0;
        }
        Ok(())
    }

    fn remark(&self, elapsed: Duration) -> String {
        let sum = |of: fn(&Counts) -> u64| self.counts.iter().map(of).sum::<u64>();
        let hits = sum(|counts| counts.hits);
        let silent = self.counts.iter().filter(|counts| counts.is_silent());
        let mut remark = format!(
            "# {:.1} s: {hits} events in {:.2} s, {} in all, {} lost",
            self.started.elapsed().as_secs_f64(),
            elapsed.as_secs_f64(),
            hits + sum(|counts| counts.before),
            self.others_lost.saturating_add(sum(|counts| counts.lost)),
        );
        match silent.count() {
            0 => {}
            1 => remark.push_str("; 1 probe without events"),
            silent => remark.push_str(&format!("; {silent} probes without events")),
        }
        remark
    }

    /// The heading and a line for each probe that was hit, the most hits first.
    fn lines(&self, elapsed: Duration) -> Vec<Vec<String>> {
        let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let rows = self.rows.rows.iter().zip(&self.counts);
        let mut rows: Vec<_> = rows.filter(|(_, counts)| !counts.is_silent()).collect();
        // Of equals, the one with the most from the beginning; then the order of the stream stays.
        rows.sort_by_key(|(_, counts)| std::cmp::Reverse((counts.hits, counts.before)));
        let heading = ["Probe", "Events", "/s", "Total", "Processes", "Lost"];
        let mut lines = vec![heading.map(str::to_owned).to_vec()];
        lines.extend(rows.into_iter().map(|(row, counts)| {
            vec![
                escape(short(&row.name)).into_owned(),
                counts.hits.to_string(),
                rate(counts.hits, elapsed),
                (counts.before + counts.hits).to_string(),
                self.processes(counts),
                counts.lost.to_string(),
            ]
        }));
        lines
    }

    fn processes(&self, counts: &Counts) -> String {
        let name = |process: &Process| match self.names.get(process) {
            Some(Some(name)) => name.to_string(),
            _ => format!(":{}", process.0),
        };
        let named = counts.processes.iter();
        let named = by_name(named.map(|(process, &hits)| (name(process), hits)));
        processes(&named, counts.other_processes > 0)
    }
}

/// Sides of the table's columns.
const SIDES: [ColumnSide; 6] = [
    ColumnSide::Left,
    ColumnSide::Right,
    ColumnSide::Right,
    ColumnSide::Right,
    ColumnSide::Left,
    ColumnSide::Right,
];

impl Counts {
    /// Whether there is nothing to tell of.
    const fn is_silent(&self) -> bool {
        self.hits + self.before == 0 && self.lost == 0
    }
}
