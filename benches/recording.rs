//! What a hit costs the traced program, what recording costs the machine, and how large the file is.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Build, Lab, Perf, Process, Recorder};
use crate::hot::{self, armed_perf};
use crate::table::{head, median, ratio, row};
use crate::{ROUNDS, cpu_time};

/// Hits of the target in a round.
const HITS: usize = 1_000_000;

/// Room for them, so that nobody gains by losing events.
const RING: &str = "64M";

/// The traces of the last round, for the benchmark of reading.
pub(crate) struct Recorded {
    pub(crate) ours: PathBuf,
    pub(crate) theirs: PathBuf,
    pub(crate) theirs_compressed: PathBuf,
    pub(crate) events: usize,
}

/// Who watches the hot target.
#[derive(Clone, Copy)]
enum Watcher {
    Nobody,
    Count,
    Perf,
    PerfCompressed,
    Ours,
    OursByPerfEvents,
}

impl Watcher {
    const ALL: [Self; 6] = [
        Self::Nobody,
        Self::Count,
        Self::Perf,
        Self::PerfCompressed,
        Self::Ours,
        Self::OursByPerfEvents,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Count => "`perf stat` (count only)",
            Self::Perf => "`perf record`",
            Self::PerfCompressed => "`perf record -z`",
            Self::Ours => "`usdtrec record`",
            Self::OursByPerfEvents => "`usdtrec record --engine perf`",
        }
    }
}

/// One round of one watcher.
#[derive(Clone, Copy)]
struct Round {
    nanoseconds_per_hit: f64,
    cpu_seconds: f64,
    file_bytes: f64,
}

/// Measures and prints.
pub(crate) fn compare(lab: &Lab, perf: &Perf<'_>) -> Recorded {
    let program = Build::USUAL.make(lab, "hot.c", "hot");
    let _probes = perf.plant(&program, "hot", &["req"]);
    let mut rounds: [Vec<Round>; 6] = Default::default();
    for _ in 0..ROUNDS {
        for (watcher, rounds) in Watcher::ALL.iter().zip(&mut rounds) {
            rounds.push(watch(*watcher, lab, perf, &program));
        }
    }
    print(&rounds);
    Recorded {
        ours: lab.file("ours"),
        theirs: lab.file("theirs"),
        theirs_compressed: lab.file("theirs-z"),
        events: HITS,
    }
}

fn print(rounds: &[Vec<Round>; 6]) {
    let median_of = |index: usize, figure: fn(&Round) -> f64| {
        median(&rounds[index].iter().map(figure).collect::<Vec<_>>())
    };
    println!(
        "One thread hits a probe with four integer arguments {HITS} times; `-a`, rings of {RING}.\n"
    );
    head(&[
        "Watched by",
        "ns per hit",
        "beside perf",
        "CPU s per million events",
        "bytes per event",
    ]);
    let perfs = median_of(2, |round| round.nanoseconds_per_hit);
    for (index, watcher) in Watcher::ALL.iter().enumerate() {
        let hit = median_of(index, |round| round.nanoseconds_per_hit);
        let writes = index >= 2;
        let figure = |text: String| if writes { text } else { String::new() };
        row(&[
            watcher.name().to_owned(),
            format!("{hit:.0}"),
            ratio(hit, perfs),
            figure(format!(
                "{:.2}",
                median_of(index, |round| round.cpu_seconds) * 1e6 / HITS as f64
            )),
            figure(format!(
                "{:.1}",
                median_of(index, |round| round.file_bytes) / HITS as f64
            )),
        ]);
    }
    println!();
}

/// A recorder in the background, armed.
enum Armed {
    Nobody,
    Perf(Process),
    Ours(Recorder),
}

fn watch(watcher: Watcher, lab: &Lab, perf: &Perf<'_>, program: &Path) -> Round {
    let file = lab.file(match watcher {
        Watcher::Ours => "ours",
        Watcher::OursByPerfEvents => "ours-by-perf-events",
        Watcher::PerfCompressed => "theirs-z",
        _ => "theirs",
    });
    let cpu_before = cpu_time::of_children();
    let armed = arm(watcher, lab, perf, program, &file);
    let hot = hot::start(program, HITS, 1, "req").run();
    match armed {
        Armed::Nobody => {}
        Armed::Perf(process) => drop(process.finish().success()),
        Armed::Ours(recorder) => drop(recorder.stop().complains(" 0 lost")),
    }
    Round {
        nanoseconds_per_hit: hot.hits / HITS as f64,
        // The target is a child, too.
        cpu_seconds: cpu_time::of_children() - cpu_before - hot.all / 1e9,
        file_bytes: fs::metadata(&file).map_or(0.0, |metadata| metadata.len() as f64),
    }
}

fn arm(watcher: Watcher, lab: &Lab, perf: &Perf<'_>, program: &Path, file: &Path) -> Armed {
    let file = file.to_str().expect("a path in UTF-8");
    let theirs = |options: &[&str]| {
        let mut arguments = options.to_vec();
        arguments.extend(["-a", "-o", file, "-e", "sdt_hot:req"]);
        Armed::Perf(armed_perf(perf, arguments))
    };
    let ours = |engine: &str| {
        let event = format!("sdt_hot:req@{}", program.display());
        let mut options = vec!["--strings=off", "--engine", engine];
        options.extend(["-m", RING, "-a", "-o", file, "-e", &event]);
        Armed::Ours(Recorder::start(lab, options))
    };
    match watcher {
        Watcher::Nobody => Armed::Nobody,
        Watcher::Count => theirs(&["stat"]),
        Watcher::Perf => theirs(&["record", "-q", "-m", RING]),
        Watcher::PerfCompressed => theirs(&["record", "-q", "-z", "-m", RING]),
        Watcher::Ours => ours("auto"),
        Watcher::OursByPerfEvents => ours("perf"),
    }
}
