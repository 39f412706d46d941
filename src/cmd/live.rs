//! Live recording for `trace`, `top` and `stat`: one thread records into a pipe, another one reads the pipe and prints.
//!
//! `trace` is `record -o -` and `script -i -` in one process: the recorder writes the uncompressed stream to a pipe, a
//! round every 30 ms, and a thread prints it. So there is one renderer, one order and one bound of memory: at most a
//! few rounds are buffered. If the reader is too slow, the pipe and then the rings fill up, and further hits are lost,
//! counted and reported. `top` is another view of the same stream; for it, rounds end even without records, so that it
//! sees time pass. `stat` and `top --by` have the counts from the recorder; the stream says what runs.
//!
//! The recorder writes losses to every pipe once per second. Its `poll` reports when the reader of the pipe, or of
//! standard output, has closed it.

use std::fs::File;
use std::io::{self, PipeReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use usdtrec_format::counted;
use usdtrec_record::plan::Strings;
use usdtrec_record::{
    Aggregation, CallGraph, CommandEnd, Destination, Finished, HitTotals, LiveDestination, Options,
    Outcome, RecordError, Recording, Signals, SlowSpans, page_size,
};
use usdtrec_report::{ReportError, Sentences, Sources, SpanTotals, StreamSummary};

use super::record::{
    AttachContext, EndedBefore, Ready, RunningReports, attach_when_due, attached_line, capture,
    exit_code, print_attached, print_end_reason, print_losses, print_missing_groups, print_notice,
    print_older, print_scope, print_spans, select,
};
use super::screen::leave_screen;
use super::selection;
use crate::advice::HINTS;
use crate::cli::CaptureArgs;
use crate::output;
use crate::service;
use crate::slow_start::{STARTING, waiting_for};
use crate::terminal::{inform, is_closed_pipe, say};
use crate::unfinished_file::UnfinishedFile;

/// Result of a recording.
struct Recorded {
    outcome: Outcome,
    /// Reports of files that appeared while recording.
    reports: RunningReports,
    /// How the command ended, if there was one and it has.
    command: Option<CommandEnd>,
}

/// What is aggregated in the kernel, where hits are not copied out.
pub(super) struct Aggregated<'a> {
    pub(super) aggregation: Aggregation,
    pub(super) view: Box<dyn CountView + 'a>,
}

/// Shows what is counted in the kernel.
pub(super) trait CountView {
    /// Shows the counts so far, when an interval ends.
    ///
    /// # Errors
    /// The error of the output. Nothing is shown then any longer.
    fn show(&mut self, counted: &HitTotals) -> io::Result<()>;

    /// Shows all counts, if they are known and could be shown before. Messages follow.
    ///
    /// # Errors
    /// The error of the output, and what has failed without ending the recording.
    fn end(&mut self, counted: Option<&HitTotals>) -> io::Result<()>;

    /// The recording could not begin: nothing more comes.
    fn give_up(&mut self) {}
}

impl<V: CountView + ?Sized> CountView for &mut V {
    fn show(&mut self, counted: &HitTotals) -> io::Result<()> {
        (**self).show(counted)
    }

    fn end(&mut self, counted: Option<&HitTotals>) -> io::Result<()> {
        (**self).end(counted)
    }

    fn give_up(&mut self) {
        (**self).give_up();
    }
}

/// A file that a verb prints to.
pub(super) struct LiveFile {
    file: UnfinishedFile,
    path: PathBuf,
}

impl LiveFile {
    /// One that has no name yet. Errors name the path.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let created = UnfinishedFile::create(path);
        Ok(Self {
            file: created.map_err(|error| output::named(path, &error))?,
            path: path.to_owned(),
        })
    }

    /// Another handle of it.
    pub(super) fn handle(&mut self) -> io::Result<File> {
        self.file.file().try_clone()
    }

    /// Gives it its name. A file of this name is renamed to `PATH.old`. Errors name the path.
    fn name(self) -> io::Result<()> {
        let named = self.file.finish_and_keep_old(&self.path);
        named.map_err(|error| output::named(&self.path, &error))
    }
}

/// A verb that prints hits while they are captured.
pub(super) struct Live<'a> {
    /// Name of the verb.
    pub(super) verb: &'static str,
    /// Capture options.
    pub(super) args: &'a CaptureArgs,
    /// Value of `--buildid-dir`.
    pub(super) buildid_dir: Option<&'a Path>,
    /// The verb's output. The recording ends when its reader closes it.
    pub(super) output: File,
    /// The file that is the output, which gets its name when the probes are attached: what fails before leaves an older file in place.
    pub(super) unnamed: Option<LiveFile>,
    /// Whether the command's standard output is redirected to standard error.
    pub(super) muted: bool,
    /// Whether the recorder ends its rounds regularly even if there are no hits, so that the reader sees time pass.
    pub(super) heartbeat: bool,
    /// Whether the output replaces what was there before, so that messages wait for the end of the recording.
    pub(super) redraws: bool,
    /// Whether arguments are printed. If not, strings are read for filters only.
    pub(super) prints_arguments: bool,
    /// How callers are recorded; `None` if they are not.
    pub(super) graph: Option<CallGraph>,
    /// The spans of which only the slow ones are shown; `None` if hits are.
    pub(super) slow_spans: Option<SlowSpans>,
    /// What is aggregated in the kernel; `None` if hits are copied out.
    pub(super) aggregated: Option<Aggregated<'a>>,
}

impl Live<'_> {
    /// Records until the recording ends; `show` reads the trace from the pipe and prints it.
    pub(super) fn run(
        self,
        show: impl FnOnce(PipeReader, &Sources) -> Result<StreamSummary, ReportError> + Send,
    ) -> anyhow::Result<ExitCode> {
        EndedBefore::exit_code(self.run_to_end(show))
    }

    fn run_to_end(
        mut self,
        show: impl FnOnce(PipeReader, &Sources) -> Result<StreamSummary, ReportError> + Send,
    ) -> anyhow::Result<ExitCode> {
        let mut options = Options {
            leave_command: true,
            ..capture(self.args, self.graph)?
        };
        options.engine.slow_spans = self.slow_spans.take();
        if !self.prints_arguments && self.args.filter.is_empty() {
            options.engine.strings = Strings::default();
        }
        if let Some(aggregated) = &self.aggregated {
            options.engine.aggregation = Some(aggregated.aggregation.clone());
            // Nothing is written to the rings.
            options.engine.ring_bytes = Some(page_size());
        }
        let duration = options.duration;
        let selected = select(self.args, self.buildid_dir)?;
        let mut signals = Signals::catch(false)?;
        let beside = AttachContext {
            buildid_dir: self.buildid_dir,
            signals: &signals,
        };
        let Ready { session, command } =
            attach_when_due(self.args, selected, options, self.muted, beside)?;
        if let Some(file) = self.unnamed.take() {
            file.name()?;
        }
        signals.watch_output(self.output.try_clone()?);
        let sources = Sources {
            buildid_dir: selection::cache_dir(self.buildid_dir),
            ..Sources::default()
        };
        let LiveDestination {
            destination,
            reader: pipe,
        } = Destination::live(self.heartbeat, &signals, duration).context("cannot make a pipe")?;
        let attached = attached_line(self.verb, &session);
        let (shown, recorded) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| show(pipe, &sources));
            let started = waiting_for(STARTING, self.args.quiet, || {
                session.start(destination, command)
            });
            let recorded = self.record(attached, started, &signals);
            self.wait_for_reader(&signals, || reader.is_finished());
            let shown = reader.join();
            (shown, recorded)
        });
        let shown = shown.map_err(|_| anyhow::anyhow!("the thread that prints events panicked"))?;
        self.end(shown.map_err(anyhow::Error::from), recorded)
    }

    /// Records. When this returns, the whole trace is in the pipe, the pipe is closed, and the probes are detached.
    fn record(
        &mut self,
        attached: String,
        started: Result<Recording, RecordError>,
        signals: &Signals,
    ) -> anyhow::Result<Recorded> {
        let recording = started.inspect_err(|_| {
            if let Some(aggregated) = &mut self.aggregated {
                aggregated.view.give_up();
            }
        })?;
        print_attached(&attached, self.args);
        let mut reports = RunningReports::new(self.args.quiet);
        let mut printed = Ok(());
        let mut print = |counted: &Option<HitTotals>| {
            if let (Some(aggregated), Some(counted), Ok(())) =
                (&mut self.aggregated, counted, &printed)
            {
                printed = aggregated.view.show(counted);
            }
        };
        let finished = recording.run(signals, &mut |progress| {
            print(&progress.counted);
            if !self.redraws {
                reports.print_new(&progress);
            }
        });
        let Finished {
            elsewhere: _,
            maker_files: _,
            outcome,
            mut ending,
        } = finished;
        service::stopping();
        if let Some(aggregated) = &mut self.aggregated {
            let counted = outcome.as_ref().ok().filter(|_| printed.is_ok());
            let counted = counted.and_then(|outcome| outcome.counted.as_ref());
            printed = printed.and(aggregated.view.end(counted));
        }
        let mut notify = |notice| print_notice(notice, self.args.quiet);
        let command = ending.end_command(signals, &mut notify);
        ending.let_go(signals, &mut notify);
        let outcome = outcome?;
        printed?;
        Ok(Recorded {
            outcome,
            reports,
            command,
        })
    }

    /// Waits until everything captured is printed. A further signal exits at once, as the reader of our output may have stalled.
    fn wait_for_reader(&self, signals: &Signals, is_shown: impl Fn() -> bool) {
        const STEP: Duration = Duration::from_millis(5);
        const MESSAGE_AFTER: Duration = Duration::from_secs(2);
        let start = Instant::now();
        let mut is_message_printed = self.args.quiet;
        while !is_shown() {
            if signals.has_arrived() {
                leave_screen();
                // 128 + SIGINT, as shells report it.
                std::process::exit(130);
            }
            if !is_message_printed && start.elapsed() >= MESSAGE_AFTER {
                say(
                    "usdtrec: the recording has ended; waiting until the rest of the output is read (Ctrl-C exits at once)",
                );
                is_message_printed = true;
            }
            std::thread::sleep(STEP);
        }
    }

    /// Prints the summary, the losses, and the reasons for probes without hits.
    fn end(
        &self,
        shown: anyhow::Result<StreamSummary>,
        recorded: anyhow::Result<Recorded>,
    ) -> anyhow::Result<ExitCode> {
        let (mut streamed, recorded) = match (shown, recorded) {
            (Ok(streamed), Ok(recorded)) => (streamed, recorded),
            // If the reader fails first, the recorder finds the pipe closed: the reader's error is the cause.
            (Ok(_), Err(error)) | (Err(error), Ok(_)) => return Err(error),
            (Err(shown), Err(recorded)) if is_closed_pipe(&recorded) => return Err(shown),
            (Err(_), Err(recorded)) => return Err(recorded),
        };
        let Recorded {
            outcome,
            mut reports,
            command,
        } = recorded;
        // The recorder's own are newer.
        streamed.notices.shortfalls.clear();
        selection::print_notices(Path::new(self.verb), &streamed.notices);
        if !self.args.quiet {
            print_end_reason(self.verb, self.args, &outcome);
            let lost: u64 = outcome.losses.iter().map(|loss| loss.lost).sum();
            let counted = outcome.counted.as_ref().map(HitTotals::count);
            let events = counted.unwrap_or(streamed.shown);
            let counted_spans = outcome.counted.as_ref();
            let counted_spans = counted_spans.filter(|counted| !counted.spans.is_empty());
            let shown = match (streamed.spans, counted_spans) {
                (Some(spans), _) => spans_shown(&spans),
                (None, Some(counted)) => spans_counted(counted),
                (None, None) => format!("{events} events"),
            };
            let events = events + counted_spans.map_or(0, HitTotals::span_count);
            inform(format_args!(
                "[ usdtrec {}: {:.1} s, {shown}, {lost} lost ]",
                self.verb,
                outcome.elapsed.as_secs_f64(),
            ));
            print_missing_groups(self.args, &outcome);
            let reasons = (events == 0).then_some(streamed.reasons);
            for reason in reasons.unwrap_or_default().sentences(HINTS) {
                say(format_args!("usdtrec: {reason}"));
            }
        }
        reports.print_all(&outcome);
        if self.args.verbose {
            print_scope(&outcome);
        }
        for span in outcome.counted.iter().flat_map(|counted| &counted.spans) {
            print_older(Some(&span.name), span.counts.older);
        }
        print_spans(&outcome, self.args);
        print_losses(&outcome);
        Ok(exit_code(command))
    }
}

/// How many spans were added up, how many were not, and how many hits were counted besides.
fn spans_counted(all: &HitTotals) -> String {
    let short = all.spans.iter().map(|span| span.counts.short).sum();
    let spans = spans_shown(&SpanTotals {
        shown: all.span_count(),
        shorter: short,
        ..SpanTotals::default()
    });
    match all.count() {
        0 => spans,
        events => format!("{spans}, {events} events"),
    }
}

/// How many spans were shown, and how many were not.
fn spans_shown(spans: &SpanTotals) -> String {
    let shown = counted(spans.shown, "span");
    match spans.shorter {
        0 => shown,
        shorter => format!("{shown}, {shorter} shorter ones"),
    }
}
