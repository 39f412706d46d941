//! A command that runs when a file is complete.
//!
//! A thread for each starts it and waits for it: both may take arbitrarily long where a file system does not answer, and then neither the
//! recording nor its end waits.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use usdtrec_kernel::host::inherited;

use crate::command::runnable;

/// Maximum number of commands that run at a time.
const MAX_RUNNING: usize = 4;
/// How long a command may run.
const LIMIT: Duration = Duration::from_secs(60);
/// How long the end of the recording waits for commands that it kills: one in an uninterruptible sleep ends later.
const MAX_KILL_TIME: Duration = Duration::from_millis(500);
/// Interval at which the end of commands is looked for.
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
    /// It ran too long, and is killed.
    #[error("it did not end within {} s, and is killed", LIMIT.as_secs())]
    TooLong,
    /// Too many run already.
    #[error("it was not started: {MAX_RUNNING} of them run already")]
    TooMany,
}

/// Commands that run.
#[derive(Debug, Default)]
pub(crate) struct RunningCommands(Vec<RunningCommand>);

#[derive(Debug)]
struct RunningCommand {
    begun: Instant,
    /// Disconnected when its thread has ended.
    faults: Receiver<CommandFault>,
    /// Whether it is to be killed.
    stop: Arc<AtomicBool>,
}

impl TriggerCommand {
    /// Looks for the program, and checks what the kernel would refuse.
    ///
    /// # Errors
    /// The error of `execve(2)`.
    pub fn check(&self) -> io::Result<()> {
        let program = self.words.first().ok_or(io::ErrorKind::InvalidInput)?;
        runnable::check(program)
    }

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
    /// [`CommandFault::Start`] if it has no thread, [`CommandFault::TooMany`].
    pub(crate) fn start(
        &mut self,
        command: &TriggerCommand,
        environment: Vec<(&'static str, OsString)>,
    ) -> Result<(), CommandFault> {
        if self.0.len() >= MAX_RUNNING {
            return Err(CommandFault::TooMany);
        }
        let command = command.prepare(environment).map_err(CommandFault::Start)?;
        let (sender, faults) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        std::thread::Builder::new()
            .name("command".to_owned())
            .spawn(move || run(command, &sender, &stopped))
            .map_err(CommandFault::Start)?;
        self.0.push(RunningCommand {
            begun: Instant::now(),
            faults,
            stop,
        });
        Ok(())
    }

    /// Looks which have ended. Returns what is wrong with those, and kills what runs too long.
    pub(crate) fn look(&mut self) -> Vec<CommandFault> {
        let mut faults = Vec::new();
        self.0.retain(|running| {
            let ended = loop {
                match running.faults.try_recv() {
                    Ok(fault) => faults.push(fault),
                    Err(error) => break error == TryRecvError::Disconnected,
                }
            };
            let is_late = !ended && running.begun.elapsed() >= LIMIT;
            if is_late && !running.stop.swap(true, Ordering::Relaxed) {
                faults.push(CommandFault::TooLong);
            }
            !ended
        });
        faults
    }

    /// Waits for their ends, or until `stops`; then they are killed.
    pub(crate) fn finish(mut self, stops: impl Fn() -> bool) -> Vec<CommandFault> {
        let mut faults = self.look();
        while self.0.iter().any(|running| !running.is_stopped()) && !stops() {
            std::thread::sleep(STEP);
            faults.extend(self.look());
        }
        for running in &self.0 {
            running.stop.store(true, Ordering::Relaxed);
        }
        let begun = Instant::now();
        while !self.0.is_empty() && begun.elapsed() < MAX_KILL_TIME {
            std::thread::sleep(STEP);
            self.look();
        }
        faults
    }
}

impl RunningCommand {
    /// Whether it is being killed.
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Starts a command, and waits until it ends, or is to be killed.
fn run(mut command: Command, faults: &Sender<CommandFault>, stop: &AtomicBool) {
    read_program(command.get_program());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let _ = faults.send(CommandFault::Start(error));
            return;
        }
    };
    let status = loop {
        match child.try_wait() {
            Ok(None) if stop.load(Ordering::Relaxed) => return kill(&mut child),
            Ok(None) => std::thread::sleep(STEP),
            Ok(Some(status)) => break Ok(status),
            Err(error) => break Err(error),
        }
    };
    let _ = match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => faults.send(CommandFault::Status(status)),
        Err(error) => faults.send(CommandFault::Start(error)),
    };
}

/// Reads the beginning of a program. If its file system does not answer, this thread waits, and not a child that has the descriptors of this
/// process until it executes the program, probes among them.
fn read_program(program: &OsStr) {
    let paths = std::env::var_os("PATH").filter(|_| !program.as_bytes().contains(&b'/'));
    let folders: Vec<PathBuf> = paths.map_or_else(
        || vec![PathBuf::new()],
        |paths| std::env::split_paths(&paths).collect(),
    );
    for folder in folders {
        if let Ok(mut file) = File::open(folder.join(program)) {
            // Whether it can be executed is found by executing it.
            let _ = file.read(&mut [0; 256]);
            return;
        }
    }
}

/// Kills a command and what it has started in its process group, and waits for its end.
fn kill(child: &mut Child) {
    // Until it is waited for, the id is its own, ended or not.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
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
        assert!(running.finish(|| true).is_empty());
        assert_eq!(sleeping(), 0, "they are killed");
    }

    /// The children of this process that run the command of the test.
    fn sleeping() -> usize {
        let of_threads = std::fs::read_dir("/proc/self/task").expect("threads");
        let children = of_threads
            .flatten()
            .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        let children: Vec<String> = children
            .flat_map(|pids| pids.split(' ').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let is_it = |pid: &&String| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line == b"sleep\x001000\0")
        };
        children.iter().filter(is_it).count()
    }

    /// A program on a file system that does not answer: here a FIFO that nobody writes.
    #[test]
    fn a_program_that_cannot_be_read_holds_up_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::XUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).expect("a FIFO");
        let mut running = RunningCommands::default();
        let words = [fifo.to_str().expect("a path")];
        running
            .start(&command(&words), Vec::new())
            .expect("a thread");
        assert!(running.look().is_empty());
        assert_eq!(running.0.len(), 1, "it waits in its thread");
        assert!(running.finish(|| true).is_empty());
        // Its thread continues.
        drop(File::options().write(true).open(&fifo));
    }
}
