//! Child processes: their output by lines, deadlines on every wait, and an end in any case.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// No wait in a test is longer than this.
const WAIT_LIMIT: Duration = Duration::from_secs(240);

/// A child process. Killed when dropped, if it has not ended by then.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    what: String,
    stdout: Lines,
    stderr: Lines,
}

/// A process that ended, with all that it said.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) what: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Lines as they come from a pipe, and all of them so far.
#[derive(Debug)]
struct Lines {
    incoming: Receiver<String>,
    seen: String,
}

impl Lines {
    /// Reads a pipe in a thread of its own, so that its writer never blocks.
    fn from_pipe(pipe: impl Read + Send + 'static) -> Self {
        let (sender, incoming) = channel();
        thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while matches!(pipe.read_until(b'\n', &mut line), Ok(1..)) {
                if sender
                    .send(String::from_utf8_lossy(&line).into_owned())
                    .is_err()
                {
                    break;
                }
                line.clear();
            }
        });
        let seen = String::new();
        Self { incoming, seen }
    }

    /// The next line, if there is one within this time.
    fn next_within(&mut self, time: Duration) -> Option<String> {
        let line = self.incoming.recv_timeout(time).ok()?;
        self.seen.push_str(&line);
        Some(line.trim_end_matches('\n').to_owned())
    }

    /// The next line; `None` at the end of the pipe.
    fn next(&mut self, deadline: Instant) -> Option<String> {
        let wait = deadline.saturating_duration_since(Instant::now());
        match self.incoming.recv_timeout(wait) {
            Ok(line) => {
                self.seen.push_str(&line);
                Some(line.trim_end_matches('\n').to_owned())
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("no further line in time; so far:\n{}", self.seen)
            }
        }
    }
}

impl Process {
    /// Starts a command with pipes on all three streams. Its program is mapped then.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let what = format!("{command:?}");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        wait_until_mapped(&mut child);
        let stdout = Lines::from_pipe(child.stdout.take().expect("a pipe"));
        let stderr = Lines::from_pipe(child.stderr.take().expect("a pipe"));
        Self {
            child,
            what,
            stdout,
            stderr,
        }
    }

    /// Process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its standard input.
    pub(crate) fn say(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("standard input is open");
        // In one write: a program that has read enough may end before a second one.
        let line = format!("{line}\n");
        let said = stdin.write_all(line.as_bytes());
        said.unwrap_or_else(|error| panic!("{}: {error}", self.what));
    }

    /// Writes a line to its standard input, if it still reads.
    pub(crate) fn say_perhaps(&mut self, line: &str) {
        if let Some(stdin) = &mut self.child.stdin {
            let _ = writeln!(stdin, "{line}");
        }
    }

    /// The next line of its standard output; `None` at the end.
    pub(crate) fn line(&mut self) -> Option<String> {
        self.stdout.next(Instant::now() + WAIT_LIMIT)
    }

    /// The next line of its standard output, if there is one within this time.
    pub(crate) fn line_within(&mut self, time: Duration) -> Option<String> {
        self.stdout.next_within(time)
    }

    /// Waits for a line of standard error that contains `text`, and gives it.
    pub(crate) fn until_error_line(&mut self, text: &str) -> String {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            match self.stderr.next(deadline) {
                Some(line) if line.contains(text) => return line,
                Some(_) => {}
                None => panic!(
                    "{} ended before it said {text:?}; it said:\n{}",
                    self.what, self.stderr.seen
                ),
            }
        }
    }

    /// The next line of its standard error, if there is one within this time.
    pub(crate) fn error_line_within(&mut self, time: Duration) -> Option<String> {
        self.stderr.next_within(time)
    }

    /// Sends it a signal (`INT`, `KILL`, …).
    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Whether it runs still.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Closes its standard input and waits for its end.
    pub(crate) fn finish(mut self) -> Finished {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + WAIT_LIMIT;
        // Most processes end with their output, so this is the wait that needs no polling.
        while self.stdout.next(deadline).is_some() {}
        while self.stderr.next(deadline).is_some() {}
        let status = self.ended(deadline);
        Finished {
            what: std::mem::take(&mut self.what),
            status,
            stdout: std::mem::take(&mut self.stdout.seen),
            stderr: std::mem::take(&mut self.stderr.seen),
        }
    }

    fn ended(&mut self, deadline: Instant) -> ExitStatus {
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                return status;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("{} did not end in {WAIT_LIMIT:?}", self.what);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_running() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Finished {
    /// Asserts exit status 0.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        self.exits(0)
    }

    /// Asserts an exit status.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.status.code(),
            Some(code),
            "{}\n{}\nstandard output:\n{}\nstandard error:\n{}",
            self.what,
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Asserts that standard error contains a text.
    #[track_caller]
    pub(crate) fn complains(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text),
            "{}: {text:?} is not in standard error:\n{}",
            self.what,
            self.stderr
        );
        self
    }

    /// Asserts that there is nothing on standard error.
    #[track_caller]
    pub(crate) fn silent(self) -> Self {
        assert_eq!(self.stderr, "", "standard error of {}", self.what);
        self
    }
}

/// Waits until a process has code. `execve` closes descriptors, by which the parent knows of it, before it maps the program.
fn wait_until_mapped(child: &mut Child) {
    let path = format!("/proc/{}/maps", child.id());
    let has_no_code = || std::fs::read_to_string(&path).is_ok_and(|maps| !maps.contains(" r-xp "));
    while has_no_code() && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs a command to its end, with an empty standard input.
pub(crate) fn run(command: Command) -> Finished {
    Process::spawn(command).finish()
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .stderr(Stdio::null())
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "kill -{name} {pid}"
    );
}
