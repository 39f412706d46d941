//! The temporary directory in which the demonstration runs usdtrec's commands.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tempfile::TempDir;
use usdtrec_format::escape::shown;

use crate::shell;

/// The trace that is shown if recording is not possible. `testdata/README.md` has the recipe.
static BUNDLED: &[u8] = include_bytes!("../../../testdata/demo.data");

/// A temporary directory with its own build-id cache. It is removed on drop, also after Ctrl-C.
pub(super) struct Stage {
    directory: TempDir,
    program: String,
    interrupted: Arc<AtomicBool>,
}

impl Stage {
    /// Creates the directory and catches SIGINT, SIGTERM and SIGHUP.
    pub(super) fn set_up() -> anyhow::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The running command receives the signal, too, and ends; `check_interrupted` then ends the demonstration.
            signal_hook::flag::register(signal, Arc::clone(&interrupted))
                .context("cannot catch signals")?;
        }
        #[cfg(feature = "record")]
        usdtrec_record::handle_signals();
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let Ok(program) = program.into_os_string().into_string() else {
            bail!("the path of this program is not UTF-8");
        };
        let directory = tempfile::Builder::new()
            .prefix("usdtrec-demo-")
            .tempdir()
            .context("cannot create a temporary directory")?;
        Ok(Self {
            directory,
            program,
            interrupted,
        })
    }

    /// The path of this program.
    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// Writes the bundled trace to the path where `record` would have written its trace.
    pub(super) fn unpack_bundled_trace(&self) -> anyhow::Result<()> {
        let path: PathBuf = self.directory.path().join("usdtrec.data");
        std::fs::write(&path, BUNDLED).with_context(|| format!("cannot write {}", shown(&path)))
    }

    /// Prints the title of the next step.
    pub(super) fn heading(&self, text: &str) -> io::Result<()> {
        writeln!(io::stdout(), "\n# {text}")
    }

    /// Prints a notice, marked with `***`.
    pub(super) fn notice(&self, text: &str) -> io::Result<()> {
        writeln!(io::stdout(), "*** {text}")
    }

    /// Prints a command and runs it. Returns whether it succeeded.
    pub(super) fn show(&self, arguments: &[&str]) -> anyhow::Result<bool> {
        self.announce(arguments, "")?;
        let status = self
            .command(arguments)
            .status()
            .with_context(|| self.cannot_run())?;
        self.check_interrupted()?;
        Ok(status.success())
    }

    /// Prints a command, runs it and prints the first `lines` lines of its output. Returns whether it succeeded; a closed pipe counts as success.
    pub(super) fn show_head(&self, arguments: &[&str], lines: usize) -> anyhow::Result<bool> {
        self.announce(arguments, &format!(" | head -n {lines}"))?;
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| self.cannot_run())?;
        if let Some(output) = child.stdout.take() {
            for line in BufReader::new(output).split(b'\n').take(lines) {
                let mut line = line?;
                line.push(b'\n');
                io::stdout().write_all(&line)?;
            }
        }
        let status = child.wait()?;
        self.check_interrupted()?;
        Ok(status.success())
    }

    /// Prints a command in shell syntax.
    fn announce(&self, arguments: &[&str], tail: &str) -> io::Result<()> {
        let words: Vec<String> = arguments.iter().map(shell::word).collect();
        writeln!(io::stdout(), "$ usdtrec {}{tail}", words.join(" "))
    }

    /// A command of this program, with the temporary directory as working directory and cache.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("PERF_BUILDID_DIR", self.directory.path().join("cache"));
        command
    }

    fn cannot_run(&self) -> String {
        format!("cannot run {}", self.program)
    }

    /// Returns an error if a signal has arrived.
    fn check_interrupted(&self) -> anyhow::Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }
}
