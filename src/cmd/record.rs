//! `usdtrec record`.

mod call_graph;
mod choose;
mod messages;
mod names;
mod once;
mod options;
mod periods;
mod schedule;

use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use usdtrec_format::Pattern;
use usdtrec_format::schema::Schemas;
use usdtrec_record::{
    EventSelector, HeldCommand, Notice, Options, Planting, Selection, Signals, Target,
    check_privilege, raise_open_files,
};

use crate::advice;
use crate::cli::{CaptureArgs, RecordArgs};
use crate::terminal::say;

use choose::choose;
pub(super) use messages::{
    AppearedReports, attached_line, print_end_reason, print_losses, print_scope,
};
use messages::{print_refused_engines, print_sites, print_smaller_rings};
pub(super) use names::OfRunning;
use once::Once;
pub(super) use options::{Given, capture};
use options::{events, options};
use schedule::Schedule;

/// Runs the verb.
pub(crate) fn run(args: &RecordArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let schedule = Schedule::of(args)?;
    let once = Once {
        args,
        options: options(args)?,
        buildid_dir,
        due: None,
    };
    match schedule {
        Schedule::Now => {
            let selected = select(&args.capture, buildid_dir)?;
            let signals = Signals::catch(once.options.switch.is_some())?;
            let recorded = once.record(selected, &signals)?;
            Ok(exit_code(recorded.status))
        }
        Schedule::At(moment) => periods::at(once, moment),
        Schedule::Every(slots) => periods::every(&once, slots),
    }
}

/// Prints a notice about the end of a recording. With `quiet`, only what is left undone when the process exits is printed.
pub(super) fn print_notice(notice: Notice, quiet: bool) {
    if !quiet || notice.is_final() {
        say(format_args!("usdtrec: {notice}"));
    }
}

/// Probes that are attached but not yet enabled, and the command that waits for them.
pub(super) struct Ready {
    pub(super) session: usdtrec_record::Session,
    pub(super) held: Option<HeldCommand>,
}

/// Selected probes.
pub(super) struct Selected {
    selection: Selection,
    patterns: Vec<Pattern>,
}

/// Selects the probes, and prints what is not recorded.
pub(super) fn select(args: &CaptureArgs, buildid_dir: Option<&Path>) -> anyhow::Result<Selected> {
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
    Ok(Selected {
        selection,
        patterns: patterns(&events),
    })
}

/// Attaches the probes. With `muted`, the command's standard output is redirected to standard error.
pub(super) fn attach(
    args: &CaptureArgs,
    selected: Selected,
    mut options: Options,
    muted: bool,
    signals: &Signals,
) -> anyhow::Result<Ready> {
    let held = (!args.command.is_empty())
        .then(|| HeldCommand::fork(&args.command, muted))
        .transpose()?;
    options.target = target(args, held.as_ref());
    options.patterns = selected.patterns;
    let planting = Planting {
        signals,
        say: &|caution| {
            if !args.quiet {
                say(format_args!("usdtrec: {}", advice::caution(caution)));
            }
        },
    };
    let session = usdtrec_record::Session::attach(selected.selection.probes, options, planting)?;
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
    Ok(Ready { session, held })
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
