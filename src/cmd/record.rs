//! `usdtrec record`.

mod choose;
mod messages;
mod options;

use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use anyhow::Context;
use usdtrec_format::Pattern;
use usdtrec_format::escape::shown;
use usdtrec_format::schema::Schemas;
use usdtrec_record::{
    HeldCommand, Notice, Options, Outcome, Planting, RecordError, Signals, Target, Wanted,
    check_privilege, raise_open_files,
};
use usdtrec_report::{Session, Sources, reasons};

use crate::cli::{CaptureArgs, RecordArgs};
use crate::terminal::say;

use choose::choose;
use messages::{ProgressLine, explain, finished, passed_over};
pub(super) use messages::{Said, planted, tell_end, tell_losses};
pub(super) use options::capture;
use options::{LastFile, destination, events, is_pipe, options};

/// Runs the verb.
pub(crate) fn run(args: &RecordArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let quiet = args.capture.quiet;
    let options = options(args)?;
    let duration = options.duration;
    let ready = prepare(&args.capture, options, is_pipe(args), buildid_dir)?;
    let planted = planted("record", &ready.session);
    let last = LastFile::default();
    let started = ready.session.start(
        destination(args, &ready.signals, duration, &last)?,
        ready.held,
    );
    let recording = started.map_err(|error| match error {
        RecordError::Write(_) => {
            anyhow::Error::from(error).context(shown(&args.output).to_string())
        }
        error => error.into(),
    })?;
    if !quiet {
        // Said when every probe is live: who waits for this line may start what he wants to see.
        say(planted);
    }
    let mut line = ProgressLine::new(&args.capture);
    let mut said = Said::new(quiet);
    let (outcome, mut ending) = recording.run(&ready.signals, &mut |progress| {
        if said.has_new(&progress.appeared) {
            line.interrupt(|| said.say_new(&progress.appeared));
        }
        line.draw(&progress);
    });
    line.clear();
    let outcome = outcome.with_context(|| shown(&args.output).to_string());
    if let Ok(outcome) = &outcome {
        if !quiet {
            tell_end("record", &args.capture, outcome.end);
            finished(outcome, &args.output);
        }
        said.say_all(&outcome.appeared);
        tell_losses(outcome);
    }
    let mut tell = |told| notice(told, quiet);
    let status = ending.end_command(&ready.signals, &mut tell);
    ending.let_go(&ready.signals, &mut tell);
    let synced = ending.sync(&ready.signals, &mut tell);
    let outcome = outcome?;
    synced.with_context(|| shown(&args.output).to_string())?;
    if !quiet {
        tell_silent(args, &last, &outcome);
    }
    Ok(exit_code(status))
}

/// Tells what is waited for at the end; with `quiet` only what is not done when we end.
pub(super) fn notice(notice: Notice, quiet: bool) {
    if !quiet || notice.is_final() {
        say(format_args!("usdtrec: {notice}"));
    }
}

/// Says what is known of why probes were not hit. It is all in the trace.
fn tell_silent(args: &RecordArgs, last: &LastFile, outcome: &Outcome) {
    if outcome.silent.is_empty() || is_pipe(args) {
        return;
    }
    // A device that was written to cannot be read back.
    let path = last.path().unwrap_or_else(|| args.output.clone());
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    let session = is_file.then(|| Session::open(&path, &Sources::default()));
    if let Some(Ok(session)) = session {
        let silent = |event: &str| outcome.silent.iter().any(|silent| silent == event);
        for reason in reasons(&session, silent) {
            say(format_args!("usdtrec: {reason}"));
        }
    }
}

/// Probes that are planted and not yet started, with the command that waits for them.
pub(super) struct Ready {
    pub(super) session: usdtrec_record::Session,
    pub(super) held: Option<HeldCommand>,
    pub(super) signals: Signals,
}

/// Chooses and plants the probes. With `muted`, the command's standard output is our standard error.
pub(super) fn prepare(
    args: &CaptureArgs,
    mut options: Options,
    muted: bool,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<Ready> {
    let events = events(args)?;
    check_privilege().map_err(with_advice)?;
    raise_open_files();
    let selection = choose(args, &events, buildid_dir)?;
    for refusal in &selection.refusals {
        say(format_args!("usdtrec: {refusal}"));
    }
    if args.verbose && selection.tried_nops {
        say("usdtrec: 5-byte nops: tried on a process of our own, sound on this kernel");
    }
    // That a built-in schema is for another version is of interest to who asks for details.
    for told in &selection.disagreements {
        if args.verbose || told.place != Schemas::BUNDLED {
            say(format_args!("usdtrec: {told}"));
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
        say: &|slow| {
            if !args.quiet {
                say(format_args!("usdtrec: {slow}"));
            }
        },
    };
    let session = usdtrec_record::Session::attach(selection.probes, options, planting)
        .map_err(with_advice)?;
    for (probe, error) in session.refused() {
        say(format_args!(
            "usdtrec: {:#}; {} is left out",
            anyhow::anyhow!("{error}"),
            probe.event()
        ));
    }
    if !args.quiet {
        passed_over(&session, args.verbose);
    }
    if args.verbose {
        explain(&session);
    }
    Ok(Ready {
        session,
        held,
        signals,
    })
}

fn patterns(events: &[Wanted]) -> Vec<Pattern> {
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

fn with_advice(error: RecordError) -> anyhow::Error {
    let advice = matches!(error, RecordError::Privilege(_));
    let error = anyhow::Error::from(error);
    if !advice {
        return error;
    }
    let command: Vec<_> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let program = std::env::current_exe().map_or_else(
        |_| "usdtrec".to_owned(),
        |program| shown(&program).to_string(),
    );
    // The group first: changing it takes the capabilities away.
    anyhow::anyhow!(
        "{error}\n  sudo {}\n  \
         or for a group of users who may trace everything (Documentation/admin-guide/perf-security.rst):\n    \
         sudo groupadd -f perf_users; sudo chgrp perf_users {program}; sudo chmod 0750 {program}\n    \
         sudo setcap cap_bpf,cap_perfmon,cap_ipc_lock+ep {program}",
        command.join(" "),
    )
}

/// As with perf, the command's status is ours.
pub(super) fn exit_code(status: Option<ExitStatus>) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = |status: ExitStatus| match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        // We end the command ourselves when the recording ends first.
        (None, Some(libc::SIGTERM)) => 0,
        (None, signal) => 128 + u8::try_from(signal.unwrap_or(0)).unwrap_or(0),
    };
    status.map_or(ExitCode::SUCCESS, |status| ExitCode::from(code(status)))
}
