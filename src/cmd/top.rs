//! `usdtrec top`: rates of probes, or with `--by` and `--span` of keys, which are counted in the kernel, and how long spans lasted.

use std::fs::File;
use std::io::{self, IsTerminal, Write, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use rustix::process::{Signal, getpid, kill_process};
use usdtrec_record::{HitTotals, SlowSpans};
use usdtrec_report::stat::{HISTORY, LiveTable, RowChoice, RowOrder, StatSnapshot, StatSpans};
use usdtrec_report::top::{self, TopOptions};

use super::count_screen::{CountScreen, TableKeys};
use super::live::{CountView, Live};
use super::screen::{Screen, TextDestination};
use super::stat::by::StatBy;
use super::stat::snapshots::Snapshots;
use super::stat::sums::StatGrouping;
use super::stat::{check_interval, refuse_perf_engine};
use super::{named_counts, selection};
use crate::cli::{TopArgs, TopOrder};
use crate::mutex::locked;
use crate::text_room;
use crate::units::parse_duration;

/// Runs the verb.
pub(crate) fn run(args: &TopArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let spans = named_counts::spans(&args.spans, &args.capture)?;
    if spans.is_some() || !args.by.is_empty() {
        return ByKey::run(args, spans, buildid_dir);
    }
    let options = TopOptions {
        every: parse_duration("--delay", &args.delay)?,
        tables: args.iterations,
        colours: AutoStream::choice(&stdout()) != ColorChoice::Never,
        columns: || text_room::columns(None),
    };
    let mut out = selection::output()?;
    let verb = Live {
        verb: "top",
        args: &args.capture,
        buildid_dir,
        output: out.try_clone()?,
        unnamed: None,
        muted: true,
        heartbeat: true,
        redraws: true,
        prints_arguments: false,
        graph: None,
        slow_spans: None,
        aggregated: None,
    };
    verb.run(|pipe, sources| {
        let path = Path::new("top");
        if out.is_terminal() {
            let shown = Arc::new(Mutex::new(String::new()));
            let last = Arc::clone(&shown);
            let text = move |_: TextDestination| locked(&last).clone();
            let screen = Screen::new(out, None, Box::new(text))?;
            top::show(pipe, path, sources, options, &mut |table| {
                table.clone_into(&mut locked(&shown));
                screen.draw()
            })
        } else {
            let mut first = true;
            top::show(pipe, path, sources, options, &mut |table| {
                let between = if std::mem::take(&mut first) { "" } else { "\n" };
                out.write_all(format!("{between}{table}").as_bytes())
            })
        }
    })
}

/// What is refused names the option.
const WHAT: &str = "top --by";
/// The same where spans are shown.
const WHAT_OF_SPANS: &str = "top --span";

/// Tables of rates by keys.
struct ByKey {
    snapshots: Snapshots,
    output: Output,
    /// Number of tables that are shown still; `None` for no limit.
    left: Option<u64>,
}

/// Where tables are shown.
enum Output {
    Screen(CountScreen),
    Lines(Lines),
}

/// Tables one below the other.
struct Lines {
    out: File,
    table: LiveTable,
    choice: RowChoice,
    /// Whether a table is above the next one.
    has_begun: bool,
}

impl ByKey {
    /// Runs the verb.
    fn run(
        args: &TopArgs,
        spans: Option<SlowSpans>,
        buildid_dir: Option<&Path>,
    ) -> anyhow::Result<ExitCode> {
        let what = match spans {
            Some(_) => WHAT_OF_SPANS,
            None => WHAT,
        };
        refuse_perf_engine(what, &args.capture)?;
        let keys = args
            .by
            .iter()
            .map(|key| StatBy::named(what, key, spans.is_some()));
        let grouping = StatGrouping {
            keys: keys.collect::<Result<_, _>>()?,
            measured: named_counts::with_durations(Vec::new(), spans.as_ref(), &args.capture),
        };
        let delay = parse_duration("--delay", &args.delay)?;
        let delay = check_interval("--delay", delay)?;
        let out = selection::output()?;
        let is_screen = out.is_terminal();
        let aggregation = grouping.aggregation(Some(delay));
        let mut view = Self::new(args, grouping, delay, &out)?;
        let verb = Live {
            verb: "top",
            args: &args.capture,
            buildid_dir,
            output: out,
            unnamed: None,
            muted: true,
            heartbeat: false,
            redraws: is_screen,
            prints_arguments: true,
            graph: None,
            slow_spans: spans,
            aggregated: None,
        };
        let stacks = view.snapshots.stacks();
        named_counts::run(verb, aggregation, &mut view, stacks)
    }

    fn new(
        args: &TopArgs,
        grouping: StatGrouping,
        delay: Duration,
        out: &File,
    ) -> io::Result<Self> {
        let colours = AutoStream::choice(out) != ColorChoice::Never;
        let table = LiveTable::new(colours, args.by.clone(), Vec::new());
        let spans = (!args.spans.span.is_empty()).then_some(StatSpans {
            has_histogram: false,
            has_parts: args.capture.off_cpu,
        });
        let table = table.with_spans(spans);
        let choice = RowChoice {
            order: order(args.order),
            ..RowChoice::default()
        };
        let (shown, history) = (out.try_clone()?, out.is_terminal());
        let output = if history {
            // The input is that of the command.
            let keys = match args.capture.command.is_empty() {
                true => TableKeys::Taken,
                false => TableKeys::Left,
            };
            Output::Screen(CountScreen::new(shown, table, choice, keys)?)
        } else {
            Output::Lines(Lines {
                out: shown,
                table,
                choice,
                has_begun: false,
            })
        };
        Ok(Self {
            snapshots: Snapshots::new(grouping, delay, if history { HISTORY } else { 0 })
                .with_totals(false),
            output,
            left: args.iterations,
        })
    }
}

same!(fn order(TopOrder) -> RowOrder: Rate P99 Max P50 Total Key);

impl Lines {
    fn put(&mut self, snapshot: &StatSnapshot) -> io::Result<()> {
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        let between = if has_begun { "\n" } else { "" };
        let table = self.table.show(snapshot, &self.choice, None);
        self.out.write_all(format!("{between}{table}").as_bytes())
    }
}

impl CountView for ByKey {
    fn show(&mut self, counted: &HitTotals) -> io::Result<()> {
        if self.left == Some(0) {
            return Ok(());
        }
        let snapshot = self.snapshots.next(counted);
        match &mut self.output {
            Output::Screen(screen) => screen.show(snapshot)?,
            Output::Lines(lines) => lines.put(&snapshot)?,
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
            if *left == 0 {
                // As Ctrl-C does.
                kill_process(getpid(), Signal::INT)?;
            }
        }
        Ok(())
    }

    /// What was counted since the last table is shown, unless that is nothing, or there were enough tables.
    fn end(&mut self, counted: Option<&HitTotals>) -> io::Result<()> {
        let counted = counted.filter(|_| self.left != Some(0));
        let last = counted.map(|counted| self.snapshots.next(counted));
        match &mut self.output {
            Output::Screen(screen) => screen.end(last),
            Output::Lines(lines) => {
                let last = last.filter(|last| last.count() > 0 || !lines.has_begun);
                last.map_or(Ok(()), |last| lines.put(&last))
            }
        }
    }
}
