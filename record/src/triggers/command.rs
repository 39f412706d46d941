//! A command that runs when a file is complete.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::host::inherited;

/// Maximum number of commands that run at a time.
const MAX_RUNNING: usize = 4;
/// How long a command may run.
const LIMIT: Duration = Duration::from_secs(60);
/// Interval at which the end of commands is looked for at the end of the recording.
const STEP: Duration = Duration::from_millis(20);

/// A command that runs when a file is complete: without a shell, with values in its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerCommand {
    /// The program, and its arguments.
    pub words: Vec<OsString>,
}

/// Why a command did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CommandFault {
    /// It could not be started.
    #[error("it cannot be started: {0}")]
    Start(io::Error),
    /// It ended with a failure.
    #[error("{0}")]
    Status(ExitStatus),
    /// It ran too long, and was killed.
    #[error("it was killed: it ran longer than {} s", LIMIT.as_secs())]
    TooLong,
    /// Too many run already.
    #[error("it was not started: {MAX_RUNNING} of them run already")]
    TooMany,
}

/// Commands that run.
#[derive(Debug, Default)]
pub(crate) struct RunningCommands(Vec<RunningChild>);

#[derive(Debug)]
struct RunningChild {
    child: Child,
    begun: Instant,
}

impl TriggerCommand {
    /// The command, which gets no other descriptors than standard input, which is empty, output and error.
    fn prepare(&self, environment: Vec<(&'static str, OsString)>) -> io::Result<Command> {
        let (program, arguments) = self
            .words
            .split_first()
            .ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(environment)
            .stdin(Stdio::null())
            .process_group(0);
        prepare_child(&mut command);
        Ok(command)
    }
}

/// Has a command close the descriptors of this process that were not opened with `O_CLOEXEC`, and ignore the signals that our caller ignores.
fn prepare_child(command: &mut Command) {
    let prepare = || {
        inherited::restore();
        const FIRST: libc::c_uint = 3;
        // SAFETY: the call changes flags of the child's own descriptors only.
        let closed = unsafe {
            libc::close_range(
                FIRST,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC.cast_signed(),
            )
        };
        // Kernels before 5.11 do not know it: all descriptors of this process have the flag anyway.
        let _ = closed;
        Ok(())
    };
    // SAFETY: between fork and exec only close_range(2), sigaction(2) and sigprocmask(2) are called; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(prepare) };
}

impl RunningCommands {
    /// Starts one.
    ///
    /// # Errors
    /// [`CommandFault::Start`], [`CommandFault::TooMany`].
    pub(crate) fn start(
        &mut self,
        command: &TriggerCommand,
        environment: Vec<(&'static str, OsString)>,
    ) -> Result<(), CommandFault> {
        if self.0.len() >= MAX_RUNNING {
            return Err(CommandFault::TooMany);
        }
        let child = command
            .prepare(environment)
            .and_then(|mut command| command.spawn())
            .map_err(CommandFault::Start)?;
        self.0.push(RunningChild {
            child,
            begun: Instant::now(),
        });
        Ok(())
    }

    /// Looks which have ended. Returns what is wrong with those, and kills what runs too long.
    pub(crate) fn look(&mut self) -> Vec<CommandFault> {
        let mut faults = Vec::new();
        self.0.retain_mut(|running| match running.child.try_wait() {
            Ok(None) if running.begun.elapsed() < LIMIT => true,
            Ok(None) => {
                running.kill();
                faults.push(CommandFault::TooLong);
                false
            }
            Ok(Some(status)) if status.success() => false,
            Ok(Some(status)) => {
                faults.push(CommandFault::Status(status));
                false
            }
            Err(error) => {
                faults.push(CommandFault::Start(error));
                false
            }
        });
        faults
    }

    /// Waits for their ends, or until `stops`; then they are killed.
    pub(crate) fn finish(mut self, stops: impl Fn() -> bool) -> Vec<CommandFault> {
        let mut faults = self.look();
        while !self.0.is_empty() && !stops() {
            std::thread::sleep(STEP);
            faults.extend(self.look());
        }
        self.0.iter_mut().for_each(RunningChild::kill);
        faults
    }
}

impl RunningChild {
    /// Kills it, and what it has started in its process group.
    fn kill(&mut self) {
        // Until it is waited for, the id is its own, ended or not.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> TriggerCommand {
        TriggerCommand {
            words: words.iter().map(OsString::from).collect(),
        }
    }

    fn run(words: &[&str], environment: Vec<(&'static str, OsString)>) -> Vec<CommandFault> {
        let mut running = RunningCommands::default();
        match running.start(&command(words), environment) {
            Ok(()) => running.finish(|| false),
            Err(fault) => vec![fault],
        }
    }

    #[test]
    fn values_are_in_the_environment_and_no_shell_reads_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out");
        let script = "printf %s \"$USDTREC_FILE\" > \"$1\"";
        let words = ["sh", "-c", script, "sh", out.to_str().expect("a path")];
        let file = OsString::from("/tmp/a b;$(touch x)");
        let faults = run(&words, vec![("USDTREC_FILE", file.clone())]);
        assert!(faults.is_empty(), "{faults:?}");
        let written = std::fs::read(&out).expect("a file");
        assert_eq!(written, file.as_encoded_bytes());
    }

    #[test]
    fn only_the_standard_descriptors_are_inherited() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = std::fs::File::create(folder.path().join("f")).expect("a file");
        // As a library of another language opens them.
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).expect("a flag");
        // ls has one of its own for the directory.
        let script = "test $(ls /proc/self/fd | wc -l) -le 4";
        let faults = run(&["sh", "-c", script], Vec::new());
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn failures_are_said_and_what_runs_at_the_end_is_killed() {
        assert!(matches!(
            run(&["/nonexistent"], Vec::new())[..],
            [CommandFault::Start(_)]
        ));
        assert!(matches!(
            run(&["false"], Vec::new())[..],
            [CommandFault::Status(_)]
        ));
        let mut running = RunningCommands::default();
        for _ in 0..MAX_RUNNING {
            running
                .start(&command(&["sleep", "1000"]), Vec::new())
                .expect("it starts");
        }
        let refused = running.start(&command(&["true"]), Vec::new());
        assert!(matches!(refused, Err(CommandFault::TooMany)));
        let pids: Vec<u32> = running.0.iter().map(|running| running.child.id()).collect();
        assert!(running.finish(|| true).is_empty());
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        }
    }
}
