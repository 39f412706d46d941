//! A hit that is counted, beside a program at the hit that does nothing, and beside bpftrace, in rounds in which all take turns.

use std::path::Path;

use super::bpftrace::Bpftrace;
use super::common::Lab;
use super::table::{head, row};
use super::{hot, stat};

/// Hits of a round.
const HITS: usize = 200_000;
/// True of no hit, so that a program reads one register and ends. Arguments of the target are not negative.
const NOTHING: [&str; 2] = ["--filter", "arg1 < 0"];

/// What is counted.
struct Case {
    what: &'static str,
    /// Kind of hits of the program.
    kind: &'static str,
    /// The event, as it is named with its arguments.
    event: &'static str,
    options: &'static [&'static str],
    /// A script of bpftrace that does the same.
    script: Option<&'static str>,
    /// Bars: at most so many times a program that does nothing, and bpftrace's.
    beside_nothing: Option<f64>,
    beside_bpftrace: Option<f64>,
}

const CASES: [Case; 7] = [
    Case {
        what: "hits",
        kind: "req",
        event: "req",
        options: &[],
        script: Some("PROBE:req { @ = count(); }"),
        beside_nothing: Some(1.1),
        beside_bpftrace: None,
    },
    Case {
        what: "hits by a number",
        kind: "req",
        event: "req",
        options: &["--by", "arg3"],
        script: Some("PROBE:req { @[arg2] = count(); }"),
        beside_nothing: None,
        beside_bpftrace: None,
    },
    Case {
        what: "hits by a string",
        kind: "url",
        event: "url(id=arg1,url=str(arg2))",
        options: &["--by", "url"],
        script: Some("PROBE:url { @[str(arg1)] = count(); }"),
        beside_nothing: Some(1.5),
        beside_bpftrace: Some(1.0),
    },
    Case {
        what: "hits by the stack",
        kind: "deep",
        event: "deep",
        options: &["--by", "stack"],
        script: Some("PROBE:deep { @[ustack] = count(); }"),
        beside_nothing: None,
        beside_bpftrace: Some(1.0),
    },
    Case {
        what: "histogram",
        kind: "req",
        event: "req",
        options: &["--hist", "arg2"],
        script: Some("PROBE:req { @ = hist(arg1); }"),
        beside_nothing: None,
        beside_bpftrace: None,
    },
    Case {
        what: "histogram by a number",
        kind: "keys",
        event: "keys",
        options: &["--by", "arg1", "--hist", "arg2"],
        script: Some("PROBE:keys { @[arg0] = hist(arg1); }"),
        beside_nothing: None,
        beside_bpftrace: None,
    },
    SPANS,
];

/// The histogram of spans of a thread; a hit is both begin and end.
const SPANS: Case = Case {
    what: "spans, histogram",
    kind: "span",
    event: "span__*",
    options: &["--span", "span", "--hist", "span"],
    script: Some(
        "PROBE:span__start { @s[tid] = nsecs; } PROBE:span__done /@s[tid]/ { @ = hist(nsecs - @s[tid]); delete(@s, tid); }",
    ),
    beside_nothing: None,
    beside_bpftrace: Some(1.0),
};

/// CPU ns of the traced thread for a hit, by round.
#[derive(Default)]
struct Rounds {
    nothing: Vec<f64>,
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

/// Measures and prints.
pub(crate) fn compare(lab: &Lab, program: &Path, rounds: usize) {
    let bpftrace = Bpftrace::find();
    let has_spans = stat::has(lab, "--span");
    let cases = CASES
        .iter()
        .filter(|case| has_spans || case.what != SPANS.what);
    let cases: Vec<&Case> = cases.collect();
    let mut measured: Vec<Rounds> = cases.iter().map(|_| Rounds::default()).collect();
    for _ in 0..rounds {
        for (case, measured) in cases.iter().zip(&mut measured) {
            let run = |options: &[&str]| ours(lab, program, case, options);
            measured.nothing.push(run(&NOTHING));
            measured.ours.push(run(case.options));
            if let Some(script) = case.script {
                measured
                    .theirs
                    .push(theirs(&bpftrace, program, case, script));
            }
        }
    }
    println!(
        "A hit that is counted, CPU ns of the traced thread: the least of {rounds} rounds of {HITS} hits; ratios with those of the middle four fifths of the rounds. \
         Beside {}.\n",
        bpftrace.version()
    );
    head(&[
        "counted",
        "nothing",
        "ours",
        "bpftrace",
        "ours beside nothing",
        "bar",
        "ours beside bpftrace",
        "bar",
        "met",
    ]);
    for (case, rounds) in cases.iter().zip(&measured) {
        print(case, rounds);
    }
    if !has_spans {
        println!("\nstat has no --span here: spans are not measured.");
    }
    println!();
}

fn ours(lab: &Lab, program: &Path, case: &Case, options: &[&str]) -> f64 {
    let waiting = hot::start(program, HITS, 1, case.kind);
    // A list is for keys. What does nothing has none.
    let is_nothing = options == NOTHING;
    let event = match case.event.split_once('(') {
        Some((name, _)) if is_nothing => name,
        _ => case.event,
    };
    let event = stat::event(program, event);
    let stat = stat::start(lab, waiting.pid(), &event, options);
    let hits = waiting.run().hits;
    drop(stat.finish().success().complains(" 0 lost"));
    hits / HITS as f64
}

fn theirs(bpftrace: &Bpftrace, program: &Path, case: &Case, script: &str) -> f64 {
    let waiting = hot::start(program, HITS, 1, case.kind);
    let counting = bpftrace.start(program, waiting.pid(), script);
    let hits = waiting.run().hits;
    drop(counting.finish().success());
    hits / HITS as f64
}

fn least(all: &[f64]) -> f64 {
    all.iter().copied().fold(f64::INFINITY, f64::min)
}

/// A ratio with its spread.
struct Ratio {
    least: f64,
    low: f64,
    high: f64,
}

impl Ratio {
    fn new(ours: &[f64], theirs: &[f64]) -> Self {
        let both = ours.iter().zip(theirs);
        let mut rounds: Vec<f64> = both.map(|(ours, theirs)| ours / theirs).collect();
        rounds.sort_by(f64::total_cmp);
        let tenth = rounds.len() / 10;
        Self {
            least: least(ours) / least(theirs),
            low: rounds[tenth],
            high: rounds[rounds.len() - 1 - tenth],
        }
    }

    fn text(&self) -> String {
        format!("{:.2} ({:.2} to {:.2})", self.least, self.low, self.high)
    }

    /// Whether a bar is met: it is missed only if the whole spread is above.
    fn meets(&self, bar: f64) -> bool {
        self.low.min(self.least) <= bar
    }
}

fn print(case: &Case, rounds: &Rounds) {
    let beside_nothing = Ratio::new(&rounds.ours, &rounds.nothing);
    let has_script = !rounds.theirs.is_empty();
    let beside_bpftrace = has_script.then(|| Ratio::new(&rounds.ours, &rounds.theirs));
    let bars = [
        case.beside_nothing.map(|bar| beside_nothing.meets(bar)),
        case.beside_bpftrace
            .zip(beside_bpftrace.as_ref())
            .map(|(bar, ratio)| ratio.meets(bar)),
    ];
    let met = match bars
        .iter()
        .flatten()
        .copied()
        .reduce(|one, other| one && other)
    {
        None => "",
        Some(true) => "yes",
        Some(false) => "NO",
    };
    let bar = |bar: Option<f64>| bar.map_or_else(String::new, |bar| format!("≤ {bar}"));
    row(&[
        case.what.to_owned(),
        format!("{:.0}", least(&rounds.nothing)),
        format!("{:.0}", least(&rounds.ours)),
        match has_script {
            true => format!("{:.0}", least(&rounds.theirs)),
            false => String::new(),
        },
        beside_nothing.text(),
        bar(case.beside_nothing),
        beside_bpftrace.map_or_else(String::new, |ratio| ratio.text()),
        bar(case.beside_bpftrace),
        met.to_owned(),
    ]);
}
