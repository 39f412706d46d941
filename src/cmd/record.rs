//! `usdtrec record`.

mod choose;
mod messages;
mod options;

use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use anyhow::Context;
use usdtrec_format::schema::Schemas;
use usdtrec_record::{
    End, HeldCommand, Options, Outcome, RecordError, Session, Signals, Target, check_privilege,
};

use crate::cli::{CaptureArgs, RecordArgs};
use crate::terminal::say;

use choose::choose;
use messages::{ProgressLine, explain, finished, passed_over};
pub(super) use messages::{planted, tell_losses};
pub(super) use options::capture;
use options::{destination, events, is_pipe, options};

/// Runs the verb.
pub(crate) fn run(args: &RecordArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let quiet = args.capture.quiet;
    let ready = prepare(&args.capture, options(args)?, is_pipe(args), buildid_dir)?;
    let planted = planted("record", &ready.session);
    let started = ready.session.start(destination(args)?, ready.held);
    let recording = started.map_err(|error| match error {
        RecordError::Write(_) => {
            anyhow::Error::from(error).context(args.output.display().to_string())
        }
        error => error.into(),
    })?;
    if !quiet {
        // Said when every probe is live: who waits for this line may start what he wants to see.
        say(planted);
    }
    let mut line = ProgressLine::new(&args.capture);
    let (outcome, released) = recording.run(&ready.signals, &mut |progress| line.draw(progress));
    line.clear();
    let outcome = outcome.with_context(|| args.output.display().to_string())?;
    if !quiet {
        if outcome.end == End::Size {
            say("[ usdtrec record: size limit reached, recording ended ]");
        }
        finished(&outcome, &args.output);
    }
    tell_losses(&outcome);
    drop(released);
    Ok(exit_code(&outcome))
}

/// Probes that are planted and not yet started, with the command that waits for them.
pub(super) struct Ready {
    pub(super) session: Session,
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
    let selection = choose(args, &events, buildid_dir)?;
    for refusal in &selection.refusals {
        say(format_args!("usdtrec: {refusal}"));
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
    let session = Session::attach(selection.probes, options).map_err(with_advice)?;
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
    let command: Vec<_> = std::env::args().collect();
    anyhow::anyhow!(
        "{error}\n  sudo {}\n  or once: sudo setcap cap_bpf,cap_perfmon,cap_ipc_lock,cap_dac_read_search+ep {}",
        command.join(" "),
        command.first().map_or("usdtrec", String::as_str)
    )
}

/// As with perf, the command's status is ours.
pub(super) fn exit_code(outcome: &Outcome) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = |status: ExitStatus| match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        // We end the command ourselves when the recording ends first.
        (None, Some(libc::SIGTERM)) => 0,
        (None, signal) => 128 + u8::try_from(signal.unwrap_or(0)).unwrap_or(0),
    };
    outcome
        .command_status
        .map_or(ExitCode::SUCCESS, |status| ExitCode::from(code(status)))
}
