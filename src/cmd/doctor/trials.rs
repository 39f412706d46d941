//! Each engine and attach method, tried on a probe of this program, and what a hit and a switch cost with the best one.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

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
    findings.push(switches(&trials)?);
    Ok(findings)
}

/// What `--off-cpu` adds to each switch from one recorded thread to another.
fn switches(trials: &HitTrials) -> anyhow::Result<Finding> {
    const CHECK: &str = "a switch with --off-cpu";
    let cost = |options: &[&str]| trials.cost(&TriedHits::SWITCHES, options);
    let without = cost(&[])?;
    Ok(match (cost(&["--off-cpu"])?, without) {
        (TrialOutcome::Ns(ns), TrialOutcome::Ns(without)) => {
            Finding::works(CHECK, format!("{ns} ns, {without} ns without it"))
        }
        (TrialOutcome::NotRecorded(reason), _) | (_, TrialOutcome::NotRecorded(reason)) => {
            Finding::limited(CHECK, reason, "record without it")
        }
    })
}

/// Hits, or switches to and fro, that are timed together, and how often: the least time is that without others on the CPU.
const HITS: u32 = 250;
const ROUNDS: u32 = 20;
/// Hits before: those that load code and strings into caches.
const FIRST: u32 = 500;

/// Passes the probe, and prints what a hit took; or what a switch took.
pub(super) fn print_hits(kind: HitKind) {
    let request = Request {
        id: 1,
        worker: 0,
        retries: 0,
    };
    let pass = || match kind {
        HitKind::Number | HitKind::Switches => probes::gc_start(0),
        HitKind::Strings => probes::request_start(&request, c"GET", c"/search?q=usdt"),
    };
    for _ in 0..FIRST {
        pass();
    }
    if matches!(kind, HitKind::Switches) {
        // What fails prints nothing, which the recording process reports.
        if let Ok(least) = least_of_switches() {
            println!("{}", least.as_nanos() / u128::from(2 * HITS));
        }
        return;
    }
    let least = least_of(|| {
        for _ in 0..HITS {
            pass();
        }
    });
    println!("{}", least.as_nanos() / u128::from(HITS));
}

/// The least time of some rounds.
fn least_of(mut round: impl FnMut()) -> Duration {
    let rounds = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        round();
        begun.elapsed()
    });
    rounds.min().unwrap_or_default()
}

/// The least time in which two threads, which share a CPU and have passed the probe, wake each other [`HITS`] times.
fn least_of_switches() -> io::Result<Duration> {
    let mut cpu = CpuSet::new();
    cpu.set(sched_getcpu());
    // Threads inherit it.
    sched_setaffinity(None, &cpu)?;
    let (asked, mut ask) = io::pipe()?;
    let (mut answered, answer) = io::pipe()?;
    let other = thread::spawn(move || {
        probes::gc_start(0);
        answer_all(asked, answer)
    });
    let mut is_well = Ok(());
    let least = least_of(|| {
        for _ in 0..HITS {
            let asked = ask.write_all(&[0]);
            is_well = asked.and_then(|()| answered.read_exact(&mut [0]));
        }
    });
    drop(ask);
    let _ = other.join();
    is_well.map(|()| least)
}

/// Answers each byte with one.
fn answer_all(mut asked: PipeReader, mut answer: PipeWriter) -> io::Result<()> {
    let mut byte = [0];
    while asked.read(&mut byte)? > 0 {
        answer.write_all(&byte)?;
    }
    Ok(())
}
