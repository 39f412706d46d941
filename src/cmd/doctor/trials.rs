//! Each engine and attach method, tried on a probe of this program, and what a hit costs with the best one.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::Context as _;

use super::finding::Finding;
use crate::sdt;

/// An engine with an attach method, as `--engine` names it.
struct Engine {
    check: &'static str,
    name: &'static str,
    /// What to use instead, or to change, if it does not work.
    advice: &'static str,
}

/// The best ones first.
const ENGINES: [Engine; 4] = [
    Engine {
        check: "bpf, uprobe_multi",
        name: "bpf-multi",
        advice: "needs Linux 6.6, and CAP_BPF and CAP_PERFMON; the next one is used instead",
    },
    Engine {
        check: "bpf, uprobe PMU",
        name: "bpf-perf",
        advice: "needs Linux 5.15 (one program a site from 5.10 on), and CAP_SYS_ADMIN",
    },
    Engine {
        check: "perf, tracefs",
        name: "perf-tracefs",
        advice: "needs tracefs, and CAP_SYS_ADMIN and CAP_DAC_OVERRIDE",
    },
    Engine {
        check: "perf, uprobe PMU",
        name: "perf-pmu",
        advice: "needs CAP_SYS_ADMIN",
    },
];

/// What a hit is like whose cost is measured, besides a number.
struct Cost {
    check: &'static str,
    kind: &'static str,
    event: &'static str,
    options: &'static [&'static str],
}

const COSTS: [Cost; 3] = [
    Cost {
        check: "a hit",
        kind: "number",
        event: "sdt_usdtrec:gc__start",
        options: &[],
    },
    Cost {
        check: "a hit with two texts",
        kind: "texts",
        event: "sdt_usdtrec:request__start",
        options: &[],
    },
    Cost {
        check: "a hit with its callers",
        kind: "number",
        event: "sdt_usdtrec:gc__start",
        options: &["-g", "--no-symbols"],
    },
];

/// A directory to record in.
struct TrialFolder {
    directory: tempfile::TempDir,
    program: PathBuf,
}

/// What was found by recording this program's own probes.
///
/// # Errors
/// If no directory can be made, or this program's file is not known.
pub(super) fn findings() -> anyhow::Result<Vec<Finding>> {
    if !sdt::PLANTED {
        return Ok(Vec::new());
    }
    let folder = TrialFolder {
        directory: tempfile::Builder::new()
            .prefix("usdtrec-doctor-")
            .tempdir()
            .context("cannot create a temporary directory")?,
        program: std::env::current_exe().context("cannot find this program's file")?,
    };
    let [plain, ..] = &COSTS;
    let mut findings = Vec::new();
    let mut works = false;
    for engine in &ENGINES {
        let tried = folder.record(plain, &["--engine", engine.name, "--no-inherit"])?;
        works |= tried.is_ok();
        findings.push(match tried {
            Ok(ns) => Finding::works(engine.check, format!("{ns} ns a hit")),
            Err(reason) => Finding::limited(engine.check, reason, engine.advice),
        });
    }
    if !works {
        let advice = "see the lines above; usdtrec reads traces of other hosts without any of them";
        findings.push(Finding::fails("recording", "no engine works", advice));
        return Ok(findings);
    }
    for cost in &COSTS {
        findings.push(match folder.record(cost, cost.options)? {
            Ok(ns) => Finding::works(cost.check, format!("{ns} ns")),
            Err(reason) => {
                let advice = "record without it, or see the lines above";
                Finding::limited(cost.check, reason, advice)
            }
        });
    }
    Ok(findings)
}

impl TrialFolder {
    /// Records hits of a kind; what each took, ns, or why they were not recorded.
    fn record(&self, cost: &Cost, options: &[&str]) -> anyhow::Result<Result<u64, String>> {
        let mut command = Command::new(&self.program);
        command
            .args(["record", "-o", "trace", "-e"])
            .arg(event(cost.event, &self.program))
            .args(options)
            .arg("--")
            .arg(&self.program)
            .args(["doctor", "--hits", cost.kind])
            .env("PERF_BUILDID_DIR", self.directory.path().join("cache"))
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
fn cost_of(output: &Output) -> Result<u64, String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let has_events = said
        .lines()
        .any(|line| line.contains(" events") && !line.contains(" 0 events"));
    let printed = String::from_utf8_lossy(&output.stdout);
    let ns = printed.lines().find_map(|line| line.trim().parse().ok());
    match ns.filter(|_| output.status.success() && has_events) {
        Some(ns) => Ok(ns),
        None => {
            let mut lines = said
                .lines()
                .filter_map(|line| line.strip_prefix("usdtrec: "));
            let reason = lines.next_back().unwrap_or("no hit was recorded");
            Err(reason.to_owned())
        }
    }
}
