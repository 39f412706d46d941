//! One recording of `record`, from attaching to the end.

use std::collections::HashSet;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::Context;
use usdtrec_format::escape::shown;
use usdtrec_record::{
    CommandEnd, FileChange, Finished, Options, Outcome, RecordError, Recording, Signals,
};
use usdtrec_report::{NoEventsReason, Sentences, Sources, TraceSession};

use super::attach::{Ready, Selected};
use super::budget;
use super::delay::{AttachContext, attach_when_due};
use super::hot_probe::HotProbeRemark;
use super::messages::{
    ProgressLine, RunningReports, attached_line, print_attached, print_end_reason, print_losses,
    print_missing_groups, print_notice, print_scope, print_spans, print_summary,
};
use super::names::{NameStore, readable};
use super::no_follow::check_folder;
use super::options::{destination, is_pipe};
use super::switch_output::NumberedFiles;
use super::triggered::{WrittenFiles, print_without_file};
use crate::advice::HINTS;
use crate::cli::RecordArgs;
use crate::service;
use crate::slow_start::{STARTING, waiting_for};
use crate::terminal::say;

/// A recording to be made.
pub(super) struct Once<'a> {
    pub(super) args: &'a RecordArgs,
    pub(super) options: Options,
    pub(super) buildid_dir: Option<&'a Path>,
}

impl Once<'_> {
    /// Whether SIGUSR2 has a meaning.
    pub(super) const fn takes_switch(&self) -> bool {
        self.options.switch.is_some() || self.args.ring.ring.is_some()
    }

    /// Attaches the probes, records to the end, and detaches them. Returns how the command ended.
    pub(super) fn record(
        mut self,
        selected: Selected,
        signals: &Signals,
    ) -> anyhow::Result<Option<CommandEnd>> {
        let (args, buildid_dir) = (self.args, self.buildid_dir);
        let quiet = args.capture.quiet;
        let has_stacks = self.options.engine.graph.is_some();
        let stores_names = !args.no_symbols && !is_pipe(args);
        let files = NumberedFiles::default();
        let mut hot_probe = HotProbeRemark::new(args, &mut self.options);
        let recording = self.start(selected, &files, signals)?;
        let mut line = ProgressLine::new(&args.capture);
        let mut reports = RunningReports::new(quiet);
        let mut written = WrittenFiles::default();
        let finished = recording.run(signals, &mut |progress| {
            hot_probe.measure_if_needed(&progress);
            let has_events = !progress.triggered.is_empty()
                || !progress.budget.is_empty()
                || progress.hot_probe.is_some();
            if reports.has_new(&progress) || has_events {
                line.interrupt(|| {
                    reports.print_new(&progress);
                    written.print(&progress.triggered, quiet);
                    budget::print_events(&progress.budget, args);
                    hot_probe.print(&progress);
                });
            }
            line.draw(&progress);
        });
        let Finished {
            outcome,
            elsewhere,
            maker_files,
            mut ending,
        } = finished;
        service::stopping();
        line.clear();
        hot_probe.end();
        let outcome = outcome.with_context(|| shown(&args.output).to_string());
        if let Ok(outcome) = &outcome {
            written.print(&outcome.triggered, quiet);
            budget::print_events(&outcome.budget, args);
            print_outcome(args, outcome, written, &mut reports);
        }
        let mut notify = |notice| print_notice(notice, quiet);
        let command = ending.end_command(signals, &mut notify);
        ending.let_go(signals, &mut notify);
        let is_lacking = |outcome: &Outcome| has_stacks || outcome.engine.may_lack_strings;
        if stores_names && outcome.as_ref().is_ok_and(is_lacking) {
            let store = NameStore {
                buildid_dir,
                readable: &readable(&elsewhere),
                maker_files: &maker_files,
                has_stacks,
                signals,
            };
            let mut traces = files.all();
            // A window may have no files.
            if traces.is_empty() && args.ring.ring.is_none() {
                traces.push(args.output.clone());
            }
            let changes = outcome.as_ref().map_or(&[][..], |outcome| &outcome.changes);
            let places = traces.iter().map(|path| FileChange::place(changes, path));
            store.store(&places.collect::<Vec<_>>());
        }
        let synced = ending.sync(signals, &mut notify);
        let outcome = outcome?;
        synced.with_context(|| shown(&args.output).to_string())?;
        if !quiet {
            print_silent_reasons(args, &files, &outcome);
        }
        Ok(command)
    }

    fn start(
        self,
        selected: Selected,
        files: &NumberedFiles,
        signals: &Signals,
    ) -> anyhow::Result<Recording> {
        let Self {
            args,
            options,
            buildid_dir,
        } = self;
        check_folder(args)?;
        let duration = options.duration;
        let beside = AttachContext {
            buildid_dir,
            signals,
        };
        let Ready { session, command } =
            attach_when_due(&args.capture, selected, options, is_pipe(args), beside)?;
        let attached = attached_line("record", &session);
        let destination = destination(args, signals, duration, files)?;
        let started = waiting_for(STARTING, args.capture.quiet, || {
            session.start(destination, command)
        });
        let recording = started.map_err(|error| match error {
            RecordError::Write(_) => {
                anyhow::Error::from(error).context(shown(&args.output).to_string())
            }
            error => error.into(),
        })?;
        print_attached(&attached, &args.capture);
        Ok(recording)
    }
}

fn print_outcome(
    args: &RecordArgs,
    outcome: &Outcome,
    written: WrittenFiles,
    reports: &mut RunningReports,
) {
    if !args.capture.quiet {
        print_end_reason("record", &args.capture, outcome);
        match args.ring.ring {
            Some(_) => written.print_summary(outcome, &args.output),
            None => print_summary(outcome, &args.output),
        }
        if !args.ring.trigger.is_empty() {
            print_without_file(outcome);
        }
        print_missing_groups(&args.capture, outcome);
        let output = args.output.metadata();
        if output.is_ok_and(|found| found.file_type().is_char_device()) {
            let device = shown(&args.output);
            say(format_args!(
                "usdtrec: {device} is a device: nothing of the trace is kept"
            ));
        }
        for change in &outcome.changes {
            say(format_args!("usdtrec: {change}"));
        }
    }
    reports.print_all(outcome);
    if args.capture.verbose {
        print_scope(outcome);
    }
    print_spans(outcome, &args.capture);
    print_losses(outcome);
    budget::print_paused(outcome);
}

/// Prints the known reasons for probes without hits, which are read from the finished trace.
fn print_silent_reasons(args: &RecordArgs, files: &NumberedFiles, outcome: &Outcome) {
    if outcome.silent.is_empty() || is_pipe(args) {
        return;
    }
    // A trace that was written to a device cannot be read back.
    let whole = args.ring.ring.is_none().then(|| args.output.clone());
    let Some(path) = files.last().or(whole) else {
        return;
    };
    let path = FileChange::place(&outcome.changes, &path);
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    let session = is_file.then(|| TraceSession::open(&path, &Sources::default()));
    if let Some(Ok(session)) = session {
        let events: HashSet<&str> = outcome.silent.iter().map(String::as_str).collect();
        let silent = |event: &str| events.contains(event);
        let reasons = NoEventsReason::find(&session, silent);
        for reason in reasons.sentences(HINTS) {
            say(format_args!("usdtrec: {reason}"));
        }
    }
}
