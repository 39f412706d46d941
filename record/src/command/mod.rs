//! A command that is started held back, so that it can be watched from its first instruction.

pub(super) mod exec_stop;
pub(super) mod runnable;

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};
use usdtrec_attach::error::RecordError;
use usdtrec_attach::error::UsageError;
use usdtrec_kernel::host::{inherited, limits};

use crate::command::exec_stop::ExecStop;

/// A forked process that waits before its `execve(2)`. If it is dropped, or we are killed, the process ends
/// without running the command.
#[derive(Debug)]
pub struct HeldCommand {
    name: PathBuf,
    pid: u32,
    gate: PipeWriter,
    spawner: JoinHandle<io::Result<Child>>,
}

/// A command whose recording begins.
#[derive(Debug)]
pub enum Workload {
    /// It begins with the recording.
    Held(HeldCommand),
    /// It runs.
    Running(RunningCommand),
}

/// A command that runs.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
}

impl HeldCommand {
    /// Forks, and returns when the child waits. With `quiet`, the standard output of the command is redirected to standard error, because
    /// the trace is written to standard output.
    ///
    /// # Errors
    /// [`RecordError::Command`] if it cannot be run (not found, not executable), or no process can be started; [`UsageError::EmptyCommand`].
    pub fn fork(command: &[OsString], quiet: bool) -> Result<Self, RecordError> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(UsageError::EmptyCommand.into());
        };
        let name = PathBuf::from(program);
        let failed = |source| RecordError::Command {
            command: name.clone(),
            source,
        };
        // A trace is written before the command begins.
        runnable::check(program).map_err(failed)?;
        let (held, gate) = io::pipe().map_err(failed)?;
        let (mut pid, child_pid) = io::pipe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(arguments);
        if quiet {
            command.stdout(io::stderr());
        }
        hold(&mut command, held, child_pid, gate.as_raw_fd());
        // `spawn` returns only when the command has begun, so it has to wait on a thread of its own.
        let spawner = thread::Builder::new().spawn(move || command.spawn());
        let spawner = spawner.map_err(failed)?;
        let mut bytes = [0; 4];
        match pid.read_exact(&mut bytes) {
            Ok(()) => Ok(Self {
                name,
                pid: u32::from_ne_bytes(bytes),
                gate,
                spawner,
            }),
            Err(source) => Err(failed(source)),
        }
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the command begin, and calls `stopped` while it is stopped after its `execve(2)`, before its first instruction. Where it cannot
    /// be stopped, it is called when the command runs.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub(super) fn release_stopped(
        self,
        stopped: impl FnOnce(),
    ) -> Result<RunningCommand, RecordError> {
        let stop = ExecStop::begin(self.pid);
        let name = self.name.clone();
        let failed = |source| RecordError::Command {
            command: name.clone(),
            source,
        };
        let Self {
            mut gate, spawner, ..
        } = self;
        gate.write_all(&[1]).map_err(failed)?;
        if let Ok(stop) = stop {
            stop.wait();
            stopped();
            drop(stop);
        } else {
            stopped();
        }
        join(spawner).map_err(failed)
    }

    /// Lets the command begin.
    ///
    /// # Errors
    /// [`RecordError::Command`] if it cannot be run (not found, not executable).
    pub fn release(mut self) -> Result<RunningCommand, RecordError> {
        let failed = |source| RecordError::Command {
            command: self.name.clone(),
            source,
        };
        self.gate.write_all(&[1]).map_err(failed)?;
        join(self.spawner).map_err(failed)
    }
}

/// Waits until the command was executed.
fn join(spawner: JoinHandle<io::Result<Child>>) -> io::Result<RunningCommand> {
    let spawned = spawner.join();
    let child = spawned.map_err(|_| io::Error::other("its starter failed"))??;
    Ok(RunningCommand { child })
}

impl RunningCommand {
    /// Its status, once it has ended.
    ///
    /// # Errors
    /// The error of `waitpid(2)`.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM, as perf does when it is interrupted, and continues the command if it was stopped.
    pub fn terminate(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let pid = Pid::from_child(&self.child);
            // Until it is waited for, the id is its own, ended or not.
            for signal in [Signal::TERM, Signal::CONT] {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Makes the child report its process id and wait for one byte before `execve(2)`.
fn hold(command: &mut Command, mut held: PipeReader, mut child_pid: PipeWriter, gate: RawFd) {
    let wait = move || {
        // Our end of the gate must be the only one: then the child sees it close if we are killed.
        // SAFETY: the descriptor is the child's copy, which nothing else in the child uses.
        unsafe { libc::close(gate) };
        limits::restore();
        child_pid.write_all(&std::process::id().to_ne_bytes())?;
        if held.read_exact(&mut [0]).is_err() {
            // The recorder gave up. It does not wait for an error, so that the library would abort with a message of its own.
            // SAFETY: ends this process only, without running anything of the parent's.
            unsafe { libc::_exit(127) };
        }
        inherited::restore();
        Ok(())
    };
    // SAFETY: between fork and exec only close(2), setrlimit(2), write(2), read(2), getpid(2), sigaction(2),
    // sigprocmask(2) and _exit(2) are called, on the child's own descriptors; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(wait) };
}
