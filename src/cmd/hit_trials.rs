//! What a hit costs the thread that has it, measured on this program's own probes: this program records itself.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::Context as _;

/// What a hit is like whose cost is measured.
pub(super) struct TriedHits {
    /// As `doctor --hits` names it.
    kind: &'static str,
    event: &'static str,
}

impl TriedHits {
    /// With a number.
    pub(super) const NUMBER: Self = Self {
        kind: "number",
        event: "sdt_usdtrec:gc__start",
    };
    /// With a number, and then switches between two threads: these are measured.
    pub(super) const SWITCHES: Self = Self {
        kind: "switches",
        event: "sdt_usdtrec:gc__start",
    };
    /// With two strings.
    pub(super) const STRINGS: Self = Self {
        kind: "strings",
        event: "sdt_usdtrec:request__start",
    };
}

/// The outcome of a trial.
pub(super) enum TrialOutcome {
    /// Nanoseconds that a hit, or a switch, took.
    Ns(u64),
    /// Why hits were not recorded.
    NotRecorded(String),
}

/// A directory to record in.
pub(super) struct HitTrials {
    directory: tempfile::TempDir,
    program: PathBuf,
}

impl HitTrials {
    /// # Errors
    /// If no directory can be made, or this program's file is not known.
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            directory: tempfile::Builder::new()
                .prefix("usdtrec-trial-")
                .tempdir()
                .context("cannot create a temporary directory")?,
            program: std::env::current_exe().context("cannot find this program's file")?,
        })
    }

    /// Records hits, and measures what each costs.
    ///
    /// # Errors
    /// If this program cannot be run.
    pub(super) fn cost(&self, hits: &TriedHits, options: &[&str]) -> anyhow::Result<TrialOutcome> {
        let mut command = Command::new(&self.program);
        command
            .args(["record", "-o", "trace", "-e"])
            .arg(event(hits.event, &self.program))
            .args(options)
            .arg("--")
            .arg(&self.program)
            .args(["doctor", "--hits", hits.kind])
            .env("PERF_BUILDID_DIR", self.directory.path().join("cache"))
            // It is not the service.
            .env_remove("NOTIFY_SOCKET")
            .current_dir(self.directory.path());
        let output = command
            .output()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        Ok(cost_of(&output))
    }
}

/// The event of a file; a comma in a path has a backslash before it.
fn event(event: &str, file: &Path) -> OsString {
    let mut pattern = format!("{event}@").into_bytes();
    for &byte in file.as_os_str().as_bytes() {
        if byte == b',' {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    OsString::from_vec(pattern)
}

/// What a recorded program printed; else what the recorder said.
fn cost_of(output: &Output) -> TrialOutcome {
    let said = String::from_utf8_lossy(&output.stderr);
    let has_events = said
        .lines()
        .any(|line| line.contains(" events") && !line.contains(" 0 events"));
    let printed = String::from_utf8_lossy(&output.stdout);
    let ns = printed.lines().find_map(|line| line.trim().parse().ok());
    match ns.filter(|_| output.status.success() && has_events) {
        Some(ns) => TrialOutcome::Ns(ns),
        None => {
            let mut lines = said
                .lines()
                .filter_map(|line| line.strip_prefix("usdtrec: "));
            let reason = lines.next_back().unwrap_or("no hit was recorded");
            TrialOutcome::NotRecorded(reason.to_owned())
        }
    }
}
