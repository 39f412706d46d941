//! `usdtrec record`.

mod call_graph;
mod choose;
mod messages;
mod names;
mod options;

use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use anyhow::Context;
use usdtrec_format::Pattern;
use usdtrec_format::escape::shown;
use usdtrec_format::schema::Schemas;
use usdtrec_record::{
    EventSelector, Finished, HeldCommand, Notice, Options, Outcome, Planting, RecordError, Signals,
    Target, check_privilege, raise_open_files,
};
use usdtrec_report::{NoEventsReason, Sources, TraceSession};

use crate::advice::{self, HINTS};
use crate::cli::{CaptureArgs, RecordArgs};
use crate::terminal::say;

use choose::choose;
pub(super) use messages::{
    AppearedReports, attached_line, print_end_reason, print_losses, print_scope,
};
use messages::{
    ProgressLine, print_refused_engines, print_sites, print_smaller_rings, print_summary,
};
use names::NameStore;
pub(super) use names::OfRunning;
pub(super) use options::{Given, capture};
use options::{NumberedFiles, destination, events, is_pipe, options};

/// Runs the verb.
pub(crate) fn run(args: &RecordArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let quiet = args.capture.quiet;
    let options = options(args)?;
    let duration = options.duration;
    let stores_names = options.graph.is_some() && !args.no_symbols && !is_pipe(args);
    let ready = prepare(&args.capture, options, is_pipe(args), buildid_dir)?;
    let attached = attached_line("record", &ready.session);
    let files = NumberedFiles::default();
    let started = ready.session.start(
        destination(args, &ready.signals, duration, &files)?,
        ready.held,
    );
    let recording = started.map_err(|error| match error {
        RecordError::Write(_) => {
            anyhow::Error::from(error).context(shown(&args.output).to_string())
        }
        error => error.into(),
    })?;
    if !quiet {
        // Printed when all probes are enabled: scripts wait for this line before they start their workload.
        say(attached);
    }
    let mut line = ProgressLine::new(&args.capture);
    let mut appeared = AppearedReports::new(quiet);
    let finished = recording.run(&ready.signals, &mut |progress| {
        if appeared.has_new(&progress.appeared) {
            line.interrupt(|| appeared.print_new(&progress.appeared));
        }
        line.draw(&progress);
    });
    let Finished {
        outcome,
        elsewhere,
        maker_files,
        mut ending,
    } = finished;
    line.clear();
    let outcome = outcome.with_context(|| shown(&args.output).to_string());
    if let Ok(outcome) = &outcome {
        if !quiet {
            print_end_reason("record", &args.capture, outcome.end);
            print_summary(outcome, &args.output);
        }
        appeared.print_all(&outcome.appeared);
        if args.capture.verbose {
            print_scope(outcome);
        }
        print_losses(outcome, &args.capture);
    }
    let mut notify = |notice| print_notice(notice, quiet);
    let status = ending.end_command(&ready.signals, &mut notify);
    ending.let_go(&ready.signals, &mut notify);
    if stores_names && outcome.is_ok() {
        let store = NameStore {
            buildid_dir,
            elsewhere: &elsewhere,
            maker_files: &maker_files,
            signals: &ready.signals,
        };
        let numbered = files.all();
        let single = [args.output.clone()];
        store.store(if numbered.is_empty() {
            &single
        } else {
            &numbered
        });
    }
    let synced = ending.sync(&ready.signals, &mut notify);
    let outcome = outcome?;
    synced.with_context(|| shown(&args.output).to_string())?;
    if !quiet {
        print_silent_reasons(args, &files, &outcome);
    }
    Ok(exit_code(status))
}

/// Prints a notice about the end of a recording. With `quiet`, only what is left undone when the process exits is printed.
pub(super) fn print_notice(notice: Notice, quiet: bool) {
    if !quiet || notice.is_final() {
        say(format_args!("usdtrec: {notice}"));
    }
}

/// Prints the known reasons for probes without hits, which are read from the finished trace.
fn print_silent_reasons(args: &RecordArgs, files: &NumberedFiles, outcome: &Outcome) {
    if outcome.silent.is_empty() || is_pipe(args) {
        return;
    }
    // A trace that was written to a device cannot be read back.
    let path = files.last().unwrap_or_else(|| args.output.clone());
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    let session = is_file.then(|| TraceSession::open(&path, &Sources::default()));
    if let Some(Ok(session)) = session {
        let silent = |event: &str| outcome.silent.iter().any(|silent| silent == event);
        let reasons = NoEventsReason::find(&session, silent);
        for reason in NoEventsReason::sentences(&reasons, HINTS) {
            say(format_args!("usdtrec: {reason}"));
        }
    }
}

/// Probes that are attached but not yet enabled, and the command that waits for them.
pub(super) struct Ready {
    pub(super) session: usdtrec_record::Session,
    pub(super) held: Option<HeldCommand>,
    pub(super) signals: Signals,
}

/// Selects and attaches the probes. With `muted`, the command's standard output is redirected to standard error.
pub(super) fn prepare(
    args: &CaptureArgs,
    mut options: Options,
    muted: bool,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<Ready> {
    let events = events(args)?;
    check_privilege()?;
    raise_open_files();
    let selection = choose(args, &events, buildid_dir)?;
    for refusal in &selection.refusals {
        say(format_args!("usdtrec: {}", advice::refusal(refusal)));
    }
    if args.verbose && selection.tried_nops {
        say("usdtrec: 5-byte nops: safe on this kernel (tested on a process of usdtrec)");
    }
    // A built-in schema may be for another version of the program: printed only with -v.
    for disagreement in &selection.disagreements {
        if args.verbose || disagreement.place != Schemas::BUNDLED {
            say(format_args!("usdtrec: {disagreement}"));
        }
    }
    let signals = Signals::catch(options.switch.is_some())?;
    let held = (!args.command.is_empty())
        .then(|| HeldCommand::fork(&args.command, muted))
        .transpose()?;
    options.target = target(args, held.as_ref());
    options.patterns = patterns(&events);
    let planting = Planting {
        signals: &signals,
        say: &|caution| {
            if !args.quiet {
                say(format_args!("usdtrec: {}", advice::caution(caution)));
            }
        },
    };
    let session = usdtrec_record::Session::attach(selection.probes, options, planting)?;
    for refused in session.refused() {
        say(format_args!(
            "usdtrec: {}; {} is not recorded",
            advice::message(&refused.error),
            refused.probe.event()
        ));
    }
    if !args.quiet {
        print_smaller_rings(&session);
    }
    if args.verbose {
        print_refused_engines(&session);
        print_sites(&session);
    }
    Ok(Ready {
        session,
        held,
        signals,
    })
}

fn patterns(events: &[EventSelector]) -> Vec<Pattern> {
    events.iter().map(|wanted| wanted.pattern.clone()).collect()
}

fn target(args: &CaptureArgs, held: Option<&HeldCommand>) -> Target {
    match held {
        _ if !args.pid.is_empty() => Target::Processes(args.pid.clone()),
        _ if !args.tid.is_empty() => Target::Threads(args.tid.clone()),
        Some(held) if !args.all_cpus => Target::Command(held.pid()),
        _ => Target::All,
    }
}

/// The exit status: the command's, as with perf; 0 without a command.
pub(super) fn exit_code(status: Option<ExitStatus>) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = |status: ExitStatus| match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        // Sent by `end_command` if the recording ends before the command.
        (None, Some(libc::SIGTERM)) => 0,
        (None, signal) => 128 + u8::try_from(signal.unwrap_or(0)).unwrap_or(0),
    };
    status.map_or(ExitCode::SUCCESS, |status| ExitCode::from(code(status)))
}
