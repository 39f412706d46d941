//! Each engine and attach method, tried on a probe of this program, and what a hit costs with the best one.

use std::time::Instant;

use super::finding::Finding;
use crate::cli::HitKind;
use crate::cmd::hit_trials::{HitTrials, TrialOutcome, TriedHits};
use crate::probes::{self, Request};
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

/// A cost that is shown.
struct Cost {
    check: &'static str,
    hits: TriedHits,
    options: &'static [&'static str],
}

const COSTS: [Cost; 3] = [
    Cost {
        check: "a hit",
        hits: TriedHits::NUMBER,
        options: &[],
    },
    Cost {
        check: "a hit with two strings",
        hits: TriedHits::STRINGS,
        options: &[],
    },
    Cost {
        check: "a hit with its callers",
        hits: TriedHits::NUMBER,
        options: &["-g", "--no-symbols"],
    },
];

/// What was found by recording this program's own probes.
///
/// # Errors
/// If no directory can be made, or this program's file is not known.
pub(super) fn findings() -> anyhow::Result<Vec<Finding>> {
    if !sdt::PLANTED {
        return Ok(Vec::new());
    }
    let trials = HitTrials::new()?;
    let [plain, ..] = &COSTS;
    let mut findings = Vec::new();
    let mut works = false;
    for engine in &ENGINES {
        let tried = trials.cost(&plain.hits, &["--engine", engine.name, "--no-inherit"])?;
        works |= matches!(tried, TrialOutcome::Ns(_));
        findings.push(match tried {
            TrialOutcome::Ns(ns) => Finding::works(engine.check, format!("{ns} ns a hit")),
            TrialOutcome::NotRecorded(reason) => {
                Finding::limited(engine.check, reason, engine.advice)
            }
        });
    }
    if !works {
        let advice = "see the lines above; usdtrec reads traces of other hosts without any of them";
        findings.push(Finding::fails("recording", "no engine works", advice));
        return Ok(findings);
    }
    for cost in &COSTS {
        findings.push(match trials.cost(&cost.hits, cost.options)? {
            TrialOutcome::Ns(ns) => Finding::works(cost.check, format!("{ns} ns")),
            TrialOutcome::NotRecorded(reason) => {
                let advice = "record without it, or see the lines above";
                Finding::limited(cost.check, reason, advice)
            }
        });
    }
    Ok(findings)
}

/// Hits that are timed together, and how often: the least time is that without others on the CPU.
const HITS: u32 = 250;
const ROUNDS: u32 = 20;
/// Hits before: those that load code and strings into caches.
const FIRST: u32 = 500;

/// Passes the probe, and prints what a hit took.
pub(super) fn print_hits(kind: HitKind) {
    let request = Request {
        id: 1,
        worker: 0,
        retries: 0,
    };
    let pass = || match kind {
        HitKind::Number => probes::gc_start(0),
        HitKind::Strings => probes::request_start(&request, c"GET", c"/search?q=usdt"),
    };
    for _ in 0..FIRST {
        pass();
    }
    let rounds = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        for _ in 0..HITS {
            pass();
        }
        begun.elapsed()
    });
    let least = rounds.min().unwrap_or_default();
    println!("{}", least.as_nanos() / u128::from(HITS));
}
