//! `usdtrec stat`.

pub(super) mod by;
pub(super) mod group_key;
#[cfg(feature = "listen")]
mod listen;
mod metrics;
mod numbers;
pub(super) mod snapshots;
pub(super) mod sums;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use usdtrec_format::expr::EventSpec;
use usdtrec_format::split_patterns;
use usdtrec_record::{HitTotals, MeasuredArgument};
use usdtrec_report::Format;
use usdtrec_report::stat::{
    HISTORY, LiveTable, RowChoice, StatArgument, StatCounts, StatSnapshot, StatSpans, StatView,
};

use self::by::StatBy;
use self::metrics::Metrics;
use self::snapshots::Snapshots;
use self::sums::StatGrouping;
use super::count_screen::{CountScreen, TableKeys};
use super::live::{CountView, Live, LiveFile};
use super::{named_counts, selection};
use crate::cli::{CaptureArgs, OutputFormat, StatArgs};
use crate::terminal::{Usage, say};
use crate::text_room;
use crate::units::parse_duration;

/// Runs the verb.
pub(crate) fn run(args: &StatArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let spans = named_counts::spans(&args.spans, &args.capture)?;
    refuse(args)?;
    let keys = args
        .by
        .iter()
        .map(|key| StatBy::named("stat", key, spans.is_some()));
    let counted = StatGrouping {
        keys: keys.collect::<Result<_, _>>()?,
        measured: named_counts::with_durations(measured(args), spans.as_ref(), &args.capture),
    };
    let interval = args.interval.as_deref().map(interval).transpose()?;
    let aggregation = counted.aggregation(interval);
    let mut view = Output::new(args, counted, interval)?;
    let verb = Live {
        verb: "stat",
        args: &args.capture,
        buildid_dir,
        output: view.out.try_clone()?,
        unnamed: view.unnamed.take(),
        muted: args.output.is_none(),
        heartbeat: false,
        redraws: view.screen.is_some(),
        prints_arguments: shows_arguments(args),
        graph: None,
        slow_spans: spans,
        aggregated: None,
    };
    let stacks = view.snapshots.stacks();
    named_counts::run(verb, aggregation, &mut view, stacks)
}

/// The arguments of `--value` and `--hist`, each once.
fn measured(args: &StatArgs) -> Vec<MeasuredArgument> {
    let mut measured: Vec<MeasuredArgument> = Vec::new();
    let is_histogram_of_spans = |name: &String| !args.spans.span.is_empty() && name == SPAN;
    let names = args.value.iter().chain(&args.hist);
    for name in names.filter(|name| !is_histogram_of_spans(name)) {
        if !measured.iter().any(|known| known.name == *name) {
            measured.push(MeasuredArgument {
                name: name.clone(),
                has_histogram: args.hist.contains(name),
                of_span: None,
            });
        }
    }
    measured
}

/// Whether arguments are keys, are measured, or match spans.
const fn shows_arguments(args: &StatArgs) -> bool {
    let has_numbers = !(args.value.is_empty() && args.hist.is_empty());
    has_numbers || !args.by.is_empty() || !args.spans.span.is_empty()
}

/// The name of the durations of spans in `--hist`.
const SPAN: &str = "span";

/// How spans are shown; `None` if there are none.
fn shown_spans(args: &StatArgs) -> Option<StatSpans> {
    (!args.spans.span.is_empty()).then(|| StatSpans {
        has_histogram: args.hist.iter().any(|name| name == SPAN),
        has_parts: args.capture.off_cpu,
    })
}

/// Where counts are shown.
struct Output {
    out: File,
    /// The file that `out` is of, until the recording begins.
    unnamed: Option<LiveFile>,
    /// What is printed, if there is no screen.
    view: StatView,
    /// A table that is redrawn at each interval, if the output is a terminal.
    screen: Option<CountScreen>,
    metrics: Option<Metrics>,
    /// What is shown.
    snapshots: Snapshots,
}

impl Output {
    fn new(
        args: &StatArgs,
        counted: StatGrouping,
        interval: Option<Duration>,
    ) -> anyhow::Result<Self> {
        let arguments = counted.measured.iter();
        let arguments = arguments.filter(|argument| argument.of_span.is_none());
        let shown = arguments.map(|argument| StatArgument {
            name: argument.name.clone(),
            has_histogram: argument.has_histogram,
        });
        let spans = shown_spans(args);
        let shown: Vec<StatArgument> = shown.collect();
        let metrics = Metrics::new(args)?;
        let mut unnamed = args.output.as_deref().map(LiveFile::create).transpose()?;
        let out = match &mut unnamed {
            Some(file) => file.handle()?,
            None => selection::output()?,
        };
        let colours = args.output.is_none() && AutoStream::choice(&out) != ColorChoice::Never;
        let format = selection::format(match args.field_separator {
            Some(_) => OutputFormat::Csv,
            None => args.format,
        });
        // A file is for other programs.
        let columns = args.output.is_none().then(|| text_room::columns(None));
        let columns = columns.flatten();
        let is_screen = interval.is_some() && format == Format::Text && out.is_terminal();
        let screen = is_screen.then(|| {
            let table = LiveTable::new(colours, args.by.clone(), shown.clone());
            let table = table.with_spans(spans);
            let out = out.try_clone()?;
            CountScreen::new(out, table, RowChoice::default(), TableKeys::Left)
        });
        let history = if is_screen { HISTORY } else { 0 };
        // Tables show only how many hits there were since the start.
        let has_totals = metrics.is_some();
        Ok(Self {
            out,
            unnamed,
            view: StatView::new(format, colours, args.by.clone(), shown)
                .with_columns(columns)
                .with_spans(spans),
            screen: screen.transpose()?,
            metrics,
            snapshots: Snapshots::new(counted, interval.unwrap_or_default(), history)
                .with_totals(has_totals),
        })
    }
}

impl Output {
    /// What is shown, which is in the metrics then.
    fn snapshot(&mut self, counted: &HitTotals) -> StatSnapshot {
        let snapshot = self.snapshots.next(counted);
        let failed = self.metrics.as_mut().map(|metrics| metrics.show(&snapshot));
        if let (Some(Err(error)), None) = (failed, &self.screen) {
            say(format_args!(
                "usdtrec: {error}; it is tried again at the next interval"
            ));
        }
        snapshot
    }

    fn print(&mut self, snapshot: &StatSnapshot) -> io::Result<()> {
        let counts = StatCounts::of_interval(snapshot);
        self.out.write_all(self.view.show(&counts).as_bytes())
    }
}

impl CountView for Output {
    fn show(&mut self, counted: &HitTotals) -> io::Result<()> {
        let snapshot = self.snapshot(counted);
        match &self.screen {
            Some(screen) => screen.show(snapshot),
            None => self.print(&snapshot),
        }
    }

    fn end(&mut self, counted: Option<&HitTotals>) -> io::Result<()> {
        let snapshot = counted.map(|counted| self.snapshot(counted));
        let shown = match (&mut self.screen, snapshot) {
            (Some(screen), snapshot) => screen.end(snapshot),
            (None, Some(snapshot)) => self.print(&snapshot),
            (None, None) => Ok(()),
        };
        let written = self.metrics.as_mut().map_or(Ok(()), Metrics::end);
        shown.and(written)
    }
}

/// `--interval`; a number without a unit is milliseconds.
fn interval(text: &str) -> Result<Duration, Usage> {
    let is_number = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let time = match is_number {
        // Errors have what was typed.
        true => parse_duration("--interval", &format!("{text}ms"))
            .or_else(|_| parse_duration("--interval", text))?,
        false => parse_duration("--interval", text)?,
    };
    check_interval("--interval", time)
}

/// Refuses intervals in which counts could hardly be read. Errors name `option`.
pub(super) fn check_interval(option: &str, time: Duration) -> Result<Duration, Usage> {
    const MIN_INTERVAL: Duration = Duration::from_millis(10);
    Usage::ensure(
        time >= MIN_INTERVAL,
        format!("{option}: expected at least 10ms"),
    )?;
    Ok(time)
}

/// Refuses engines that cannot count, and arguments that are not shown.
fn refuse(stat: &StatArgs) -> Result<(), Usage> {
    let args = &stat.capture;
    refuse_perf_engine("stat", args)?;
    let specs = args.event.iter().flat_map(|list| split_patterns(list));
    let has_list = |part: &str| EventSpec::parse(part).is_ok_and(|spec| spec.captures.is_some());
    let listed = specs.into_iter().find(|part| has_list(part));
    Usage::ensure(
        listed.is_none() || shows_arguments(stat),
        "stat without --by, --value, --hist and --span shows no arguments: an argument list of -e has no effect",
    )
}

/// Refuses engines that copy each hit out.
pub(super) fn refuse_perf_engine(what: &str, args: &CaptureArgs) -> Result<(), Usage> {
    Usage::ensure(
        !args.engine.is_perf(),
        format!("{what} needs the bpf engine: perf events copy each hit out"),
    )
}

#[cfg(test)]
mod tests;
