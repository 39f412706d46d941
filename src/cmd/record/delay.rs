//! `--delay`: the command runs, or other processes do, before probes are attached.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::bail;
use usdtrec_record::{
    CommandEnd, HeldCommand, Options, RunningCommand, Signals, Workload, check_privilege,
};

use super::attach::{Ready, Selected, attach, select};
use crate::cli::CaptureArgs;
use crate::terminal::say;

/// How often it is looked whether the command has ended.
const STEP: Duration = Duration::from_millis(10);

/// The command ended before the probes were attached.
#[derive(Debug, thiserror::Error)]
#[error(
    "the command ended after {:.3} s, before the delay of {:.3} s was over: nothing was recorded",
    .after.as_secs_f64(), .delay.as_secs_f64()
)]
pub(in crate::cmd) struct EndedBefore {
    status: ExitStatus,
    after: Duration,
    delay: Duration,
}

impl EndedBefore {
    /// The exit status is the command's, as if it had been recorded.
    pub(in crate::cmd) fn exit_code(ended: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
        let error = match ended {
            Ok(code) => return Ok(code),
            Err(error) => error,
        };
        let before: Self = error.downcast()?;
        say(format_args!("usdtrec: {before}"));
        Ok(exit_code(Some(CommandEnd {
            status: before.status,
            with_recording: false,
        })))
    }
}

/// Where indexed files are, and the signals that end waiting.
pub(in crate::cmd) struct AttachContext<'a> {
    pub(in crate::cmd) buildid_dir: Option<&'a Path>,
    pub(in crate::cmd) signals: &'a Signals,
}

/// Attaches the probes, those with a delay when it is over: they are selected again then.
pub(in crate::cmd) fn attach_when_due(
    args: &CaptureArgs,
    selected: Selected,
    options: Options,
    muted: bool,
    beside: AttachContext<'_>,
) -> anyhow::Result<Ready> {
    let AttachContext {
        buildid_dir,
        signals,
    } = beside;
    let Some(delay) = args.delay else {
        return attach(args, selected, options, muted, signals);
    };
    drop(selected);
    let delayed = Delayed {
        args,
        buildid_dir,
        delay,
        muted,
        signals,
    };
    delayed.attach(options)
}

/// What is attached after a delay.
struct Delayed<'a> {
    args: &'a CaptureArgs,
    buildid_dir: Option<&'a Path>,
    delay: Duration,
    /// Whether the command's standard output is redirected to standard error.
    muted: bool,
    signals: &'a Signals,
}

impl Delayed<'_> {
    /// Starts the command, waits, selects the probes again, and attaches them.
    fn attach(self, options: Options) -> anyhow::Result<Ready> {
        check_privilege()?;
        let mut command = match self.args.command.is_empty() {
            true => None,
            false => Some(HeldCommand::fork(&self.args.command, self.muted)?.release()?),
        };
        let begun = Instant::now();
        if !self.args.quiet {
            let seconds = self.delay.as_secs_f64();
            say(format_args!(
                "usdtrec: probes are attached in {seconds:.3} s"
            ));
        }
        let args = self.args_of_running(command.as_ref());
        let ready = self.wait(command.as_mut()).and_then(|()| {
            let selected = select(&args, self.buildid_dir)?;
            attach(&args, selected, options, self.muted, self.signals)
        });
        let Some(mut command) = command else {
            return ready;
        };
        match ready {
            Ok(ready) => Ok(Ready {
                command: Some(Workload::Running(command)),
                ..ready
            }),
            Err(error) => match command.try_wait() {
                Ok(Some(status)) => Err(EndedBefore {
                    status,
                    after: begun.elapsed(),
                    delay: self.delay,
                }
                .into()),
                _ => {
                    command.terminate();
                    Err(error)
                }
            },
        }
    }

    /// The command is a process that runs when the probes are attached.
    fn args_of_running(&self, command: Option<&RunningCommand>) -> CaptureArgs {
        let args = self.args;
        let is_target = !args.all_cpus && args.pid.is_empty() && args.tid.is_empty();
        let command = command.filter(|_| is_target);
        CaptureArgs {
            command: Vec::new(),
            pid: command.map_or_else(|| args.pid.clone(), |command| vec![command.pid()]),
            delay: None,
            ..args.clone()
        }
    }

    fn wait(&self, mut command: Option<&mut RunningCommand>) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let left = self.delay.saturating_sub(begun.elapsed());
            let step = match command {
                Some(_) => left.min(STEP),
                None => left,
            };
            if self.signals.wait(step) {
                bail!("interrupted before the probes were attached");
            }
            if let Some(command) = command.as_deref_mut()
                && command.try_wait()?.is_some()
            {
                bail!("the command has ended");
            }
            if begun.elapsed() >= self.delay {
                return Ok(());
            }
        }
    }
}

/// The exit status: the command's, as with perf; 0 without a command.
pub(in crate::cmd) fn exit_code(end: Option<CommandEnd>) -> ExitCode {
    end.map_or(ExitCode::SUCCESS, |end| ExitCode::from(code(end)))
}

fn code(end: CommandEnd) -> u8 {
    let CommandEnd {
        status,
        with_recording,
    } = end;
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        (None, Some(libc::SIGTERM)) if with_recording => 0,
        (None, signal) => 128 + u8::try_from(signal.unwrap_or(0)).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_the_recording_makes_sigterm_a_success() {
        let code = |status, with_recording| {
            code(CommandEnd {
                status: ExitStatus::from_raw(status),
                with_recording,
            })
        };
        assert_eq!(code(libc::SIGTERM, true), 0);
        assert_eq!(code(libc::SIGTERM, false), 143);
        assert_eq!(code(libc::SIGKILL, true), 137);
        assert_eq!(code(3 << 8, true), 3);
    }
}
