//! A pager in front of what a verb prints on a terminal, as perf and git have one.
//!
//! It is started with the first byte: what fails before that, and progress, need none. While it runs, Ctrl-C is for it alone, and the process ends with it:
//! who leaves it has read enough.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use signal_hook::consts::{SIGINT, SIGQUIT};
use usdtrec_buildid_cache::in_path;

use crate::terminal::say;

/// The variables that name a pager, the first one that is set before the others.
const VARIABLES: [&str; 2] = ["USDTREC_PAGER", "PAGER"];
/// The pager if no variable names one.
const USUAL: &str = "less";
/// How `less` behaves if nobody says it: it ends at once if all fits, shows colours, and leaves the text on the terminal.
const LESS: &str = "FRX";

/// Standard output, with a pager in front of it if it is a terminal.
#[derive(Debug)]
pub(crate) struct Paged {
    out: File,
    /// The pager that the first byte starts.
    command: Option<OsString>,
    running: Option<Running>,
}

/// A pager that runs.
#[derive(Debug)]
struct Running {
    pipe: File,
    /// Whether all is written.
    is_complete: Arc<AtomicBool>,
    /// Waits for its end.
    waiter: JoinHandle<()>,
}

impl Paged {
    /// Standard output; with a pager if it is a terminal, and a pager is wanted.
    pub(crate) fn new(is_wanted: bool, out: File) -> Self {
        let command = match is_wanted && out.is_terminal() {
            true => command(),
            false => None,
        };
        Self {
            out,
            command,
            running: None,
        }
    }

    /// Whether what is written appears on a terminal.
    pub(crate) fn is_seen(&self) -> bool {
        self.out.is_terminal()
    }

    /// Whether there is a pager.
    pub(crate) const fn has_pager(&self) -> bool {
        self.command.is_some() || self.running.is_some()
    }

    /// Waits until all is read. What is printed afterwards is below it on the terminal.
    pub(crate) fn finish(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        running.is_complete.store(true, Ordering::SeqCst);
        drop(running.pipe);
        let _ = running.waiter.join();
    }

    /// Where the next byte goes.
    fn writer(&mut self) -> &mut File {
        if let Some(command) = self.command.take() {
            match Running::start(&command) {
                Ok(running) => self.running = Some(running),
                Err(error) => {
                    let command = Path::new(&command).display();
                    say(format_args!(
                        "usdtrec: cannot run the pager {command}: {error}"
                    ));
                }
            }
        }
        match &mut self.running {
            Some(running) => &mut running.pipe,
            None => &mut self.out,
        }
    }
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Paged {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Running {
    fn start(command: &OsStr) -> io::Result<Self> {
        find(command)?;
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            shell.env("LESS", LESS);
        }
        let mut child = shell.spawn()?;
        #[cfg(feature = "record")]
        usdtrec_record::handle_signals();
        // From now on they are for the pager. It was started before: it does not inherit that.
        for signal in [SIGINT, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::default())?;
        }
        let pipe = child.stdin.take().map(OwnedFd::from);
        let pipe = pipe.ok_or(io::ErrorKind::BrokenPipe)?;
        let is_complete = Arc::new(AtomicBool::new(false));
        let waiter = std::thread::spawn({
            let is_complete = Arc::clone(&is_complete);
            move || wait(child, &is_complete)
        });
        Ok(Self {
            pipe: pipe.into(),
            is_complete,
            waiter,
        })
    }
}

/// Waits for the end of a pager. If not all is written then, nobody reads it any longer, as if a pipe was closed.
fn wait(mut child: Child, is_complete: &AtomicBool) {
    let _ = child.wait();
    if !is_complete.load(Ordering::SeqCst) {
        std::process::exit(0);
    }
}

/// The pager of the environment, a command of a shell; `None` if the terminal can show none, or none is wanted.
fn command() -> Option<OsString> {
    let terminal = std::env::var_os("TERM")?;
    if terminal.is_empty() || terminal == "dumb" {
        return None;
    }
    let named = VARIABLES.iter().find_map(std::env::var_os);
    match named {
        Some(command) if command.is_empty() || command == "cat" => None,
        Some(command) => Some(command),
        // A host without it needs no message.
        None => find(OsStr::new(USUAL)).is_ok().then(|| USUAL.into()),
    }
}

/// Finds the program of a command. A shell would only say that it is not there when the text is lost.
///
/// # Errors
/// [`io::ErrorKind::NotFound`]. What a shell must look at is taken to be there.
fn find(command: &OsStr) -> io::Result<()> {
    let bytes = command.as_bytes().trim_ascii();
    let word = bytes.split(u8::is_ascii_whitespace).next();
    let word = word.unwrap_or_default();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./+".contains(byte);
    if !word.iter().all(is_plain) {
        return Ok(());
    }
    let name = Path::new(OsStr::from_bytes(word));
    let is_there = match word.contains(&b'/') {
        true => name.is_file(),
        false => in_path(name).is_some(),
    };
    match is_there {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::NotFound, "not found")),
    }
}
