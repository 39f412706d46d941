//! What recording a hit costs beside the trap, which no tool can avoid, and beside one thread when two threads hit at once.

use crate::ROUNDS;
use crate::common::{Build, Lab, Recorder};
use crate::hot::start;
use crate::table::{head, median, ratio, row};

/// Hits of each thread in a round.
const HITS: usize = 300_000;
const RING: &str = "64M";
/// True of no hit, so that a program reads one register and ends. Arguments of the target are not negative.
const TRUE_OF_NO_HIT: [&str; 2] = ["--filter", "arg1 < 0"];

/// What the target hits, and how it is recorded.
struct Case {
    what: &'static str,
    kind: &'static str,
    threads: usize,
    options: &'static [&'static str],
}

const INTEGERS: &[&str] = &["--strings=off"];
const TEXT: &[&str] = &["--schema", "hot.toml"];

const CASES: [Case; 4] = [
    Case {
        what: "four integers",
        kind: "req",
        threads: 1,
        options: INTEGERS,
    },
    Case {
        what: "four integers, two threads",
        kind: "req",
        threads: 2,
        options: INTEGERS,
    },
    Case {
        what: "three integers and a string",
        kind: "url",
        threads: 1,
        options: TEXT,
    },
    Case {
        what: "three integers and a string, two threads",
        kind: "url",
        threads: 2,
        options: TEXT,
    },
];

/// Nanoseconds of CPU time that a hit costs the target.
struct Cost {
    rejected: f64,
    recorded: f64,
}

/// Measures and prints. The lab has the target and the schema of [`kinds`](crate::kinds).
pub(crate) fn compare(lab: &Lab) {
    let program = Build::USUAL.make(lab, "kinds.c", "kinds");
    let cases = CASES.each_ref();
    let mut rounds = cases.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (case, rounds) in cases.iter().zip(&mut rounds) {
            let cost = |filter: &[&str]| cost(lab, &program, case, filter);
            rounds.push(Cost {
                rejected: cost(&TRUE_OF_NO_HIT),
                recorded: cost(&[]),
            });
        }
    }
    print(&cases, &rounds);
}

fn cost(lab: &Lab, program: &std::path::Path, case: &Case, filter: &[&str]) -> f64 {
    let event = format!("sdt_hot:{}@{}", case.kind, program.display());
    let options = ["-m", RING, "-a", "-o", "ours", "-e", &event];
    let recorder = Recorder::start(lab, [case.options, &options[..], filter].concat());
    let hits = start(program, HITS, case.threads, case.kind).run().hits;
    drop(recorder.stop().complains(" 0 lost"));
    hits / (HITS * case.threads) as f64
}

fn print(cases: &[&Case; 4], rounds: &[Vec<Cost>; 4]) {
    println!(
        "A hit beside the trap: `--filter` that is true of no hit, and everything; {HITS} hits a thread, CPU ns per hit.\n"
    );
    head(&[
        "",
        "rejected",
        "recorded",
        "beside rejected",
        "rejected, beside one thread",
        "recorded, beside one thread",
    ]);
    let median_of = |index: usize, figure: fn(&Cost) -> f64| {
        median(&rounds[index].iter().map(figure).collect::<Vec<_>>())
    };
    for (index, case) in cases.iter().enumerate() {
        let rejected = median_of(index, |cost| cost.rejected);
        let recorded = median_of(index, |cost| cost.recorded);
        // The case before is that of one thread.
        let beside_one = |cost: f64, figure: fn(&Cost) -> f64| {
            let of_several = case.threads > 1;
            of_several.then(|| ratio(cost, median_of(index - 1, figure)))
        };
        row(&[
            case.what.to_owned(),
            format!("{rejected:.0}"),
            format!("{recorded:.0}"),
            ratio(recorded, rejected),
            beside_one(rejected, |cost| cost.rejected).unwrap_or_default(),
            beside_one(recorded, |cost| cost.recorded).unwrap_or_default(),
        ]);
    }
    println!();
}
