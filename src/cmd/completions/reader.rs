//! What words are made of is read by another process.
//!
//! The shell waits for the answer while the user types. A file system may not answer. So files are read by another process, which may be stuck at
//! one, and does not have the shell's pipe: it is killed when time is up, and is not waited for.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long the answer takes at most if it has a word.
pub(super) const USUAL: Duration = Duration::from_millis(100);
/// How long it takes at most.
pub(super) const LONGEST: Duration = Duration::from_secs(1);

/// This program as another process, which prints lines.
pub(super) struct Reader {
    process: Child,
    lines: Receiver<String>,
    begun: Instant,
}

impl Reader {
    /// Starts it with these arguments.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start<S: AsRef<OsStr>>(
        arguments: impl IntoIterator<Item = S>,
    ) -> io::Result<Self> {
        let begun = Instant::now();
        let mut process = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (send, lines) = channel();
        if let Some(output) = process.stdout.take() {
            std::thread::spawn(move || {
                let lines = BufReader::new(output).lines().map_while(Result::ok);
                lines
                    .take_while(|line| send.send(line.clone()).is_ok())
                    .count()
            });
        }
        Ok(Self {
            process,
            lines,
            begun,
        })
    }

    /// The lines that come until so long after its start.
    pub(super) fn lines_until(&self, limit: Duration) -> impl Iterator<Item = String> + '_ {
        std::iter::from_fn(move || {
            let left = limit.saturating_sub(self.begun.elapsed());
            self.lines.recv_timeout(left).ok()
        })
    }
}

/// It may be stuck, and then does not end before its file system answers: this process has ended by then.
impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}
