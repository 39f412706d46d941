//! Spans of `testdata/targets/requests.c`, which says how long they took.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::walk::{Asked, ask, list, number};
use crate::common::{Build, Engine, Lab, run, test};

const COUNT: u64 = 3000;
const THREADS: u64 = 4;
const JOBS: u64 = 50;

const REQUEST: Asked<'_> = Asked {
    starts: &["request__start"],
    dones: &["request__done"],
    key: None,
    by: &["arg2"],
};
const FUNCTION: Asked<'_> = Asked {
    starts: &["function__entry"],
    dones: &["function__return"],
    key: None,
    by: &["arg1"],
};
const JOB: Asked<'_> = Asked {
    starts: &["job__begin"],
    dones: &["job__end"],
    key: Some("arg1"),
    by: &[],
};

/// What is inside of a span took so long, and what it is inside of, ns.
type Bounds = (u64, u64);

/// What the program says of its requests, with their kinds, and of its jobs.
pub(super) struct Said {
    requests: BTreeMap<u64, (u64, Bounds)>,
    jobs: BTreeMap<u64, Bounds>,
}

impl Said {
    fn parse(text: &str) -> Self {
        let (mut requests, mut jobs) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines().skip(1) {
            let (what, numbers) = line.split_once(' ').expect("a word");
            let numbers: Vec<u64> = numbers
                .split(' ')
                .map(|number| number.parse().expect("a number"))
                .collect();
            match (what, &*numbers) {
                ("request", &[id, kind, inner, outer]) => {
                    requests.insert(id, (kind, (inner, outer)));
                }
                ("job", &[id, inner, outer]) => {
                    jobs.insert(id, (inner, outer));
                }
                _ => panic!("{line}"),
            }
        }
        Self { requests, jobs }
    }
}

/// Records the program; `None`, and the test is to be skipped, without a compiler.
#[track_caller]
pub(super) fn record(lab: &Lab, engine: Engine) -> Said {
    let program = Build::USUAL.make(lab, "requests.c", "requests");
    let (count, threads) = (COUNT.to_string(), THREADS.to_string());
    let program = program.to_str().expect("a path");
    let command = [program, &count, &threads, "log"];
    // Other tests run programs of the same provider.
    let event = format!("sdt_requests:*@{program}");
    let mut arguments = engine.record("trace", &event, &command);
    // Room for all hits, however late they are read.
    arguments.splice(1..1, ["-m", "64M"]);
    let recorded = run(lab.command(arguments)).success();
    let recorded = recorded.complains(" 0 lost");
    Said::parse(&recorded.stdout)
}

/// As many spans as the program served requests, of each kind and of each depth, and jobs that one thread begins and another ends.
#[test]
fn counts_and_figures() {
    let lab = Lab::privileged();
    let said = record(&lab, Engine::BpfMulti);
    let walk = REQUEST.compare(&lab, "request", &[]);
    assert_eq!((walk.open, walk.unmatched, walk.depth), (0, 0, 1));
    let mut kinds = BTreeMap::new();
    for (kind, _) in said.requests.values() {
        *kinds.entry(format!("[{kind}]")).or_insert(0) += 1;
    }
    let counts = |groups: &BTreeMap<String, Vec<u64>>| -> BTreeMap<String, usize> {
        let groups = groups.iter();
        groups
            .map(|(name, all)| (name.clone(), all.len()))
            .collect()
    };
    assert_eq!(counts(&walk.groups), kinds);

    let walk = FUNCTION.compare(&lab, "function", &["--order", "max"]);
    assert_eq!((walk.open, walk.unmatched, walk.depth), (0, 0, 3));
    let mut depths = BTreeMap::new();
    for id in (0..COUNT * THREADS).step_by(16) {
        for depth in 1..=1 + id % 3 {
            *depths.entry(format!("[{depth}]")).or_insert(0) += 1;
        }
    }
    assert_eq!(counts(&walk.groups), depths);

    let walk = JOB.compare(&lab, "job", &["--key", "arg1"]);
    assert_eq!((walk.open, walk.unmatched), (0, 0));
    assert_eq!(walk.groups["[]"].len() as u64, JOBS * THREADS);
    // The thread that begins them ends none.
    let by_thread = Asked { key: None, ..JOB };
    let walk = by_thread.compare(&lab, "job__begin..job__end", &[]);
    assert_eq!((walk.open, walk.unmatched), (200, 200));
}

/// Each single span took as long as the program says, and so did all together.
#[test]
fn the_program_took_as_long_itself() {
    let lab = Lab::privileged();
    let said = record(&lab, Engine::BpfMulti);
    let most = (COUNT * THREADS).to_string();
    let answer = ask(&lab, &["--span", "request", "--by", "arg1", "--top", &most]);
    let groups = list(&answer["spans"][0], "groups");
    assert_eq!(groups.len(), said.requests.len());
    for group in groups {
        let (_, bounds) = said.requests[&number(group, "arg1")];
        holds(group, bounds);
    }
    let moved = said.requests.keys().filter(|id| *id % 64 == 1).count();
    assert!(moved > 100, "requests that change the CPU: {moved}");
    let answer = ask(&lab, &["--span", "job", "--key", "arg1", "--by", "arg1"]);
    let groups = list(&answer["spans"][0], "groups");
    assert_eq!(groups.len(), said.jobs.len());
    for group in groups {
        holds(group, said.jobs[&number(group, "arg1")]);
    }
}

/// Asserts that the one span of a group is between what the program measured inside and outside of it.
#[track_caller]
fn holds(group: &Value, (inner, outer): Bounds) {
    let took = number(group, "total_ns");
    assert_eq!(group["count"], 1);
    assert!(
        (inner..=outer).contains(&took),
        "the program says from {inner} to {outer} ns: {group}"
    );
}

/// The field of each line that `trace` prints while the program runs says as much; and that of a stream is that of the same one stored.
#[test]
fn they_are_matched_as_they_come() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "requests.c", "requests");
    let event = format!("sdt_requests:request__*@{}", program.display());
    let (count, threads) = (COUNT.to_string(), THREADS.to_string());
    let mut trace = lab.command(["trace", "-q", "-m", "16M", "-e", &event]);
    trace.args(["-F", "+span", "--format", "json", "-o", "lines", "--"]);
    trace.arg(&program).args([&count, &threads, "log"]);
    let said = Said::parse(&run(trace).success().stdout);
    let lines = std::fs::read_to_string(lab.file("lines")).expect("it was written");
    let mut matched = 0;
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).expect("an object");
        if line["span"] == "requests:request" {
            let (_, (inner, outer)) = said.requests[&number(&line["args"], "arg1")];
            let duration = number(&line, "span_ns");
            assert!((inner..=outer).contains(&duration), "{line}");
            matched += 1;
        }
    }
    assert_eq!(matched, said.requests.len());

    let mut record = lab.command(["record", "-q", "-m", "16M", "-e", &event, "-o", "-", "--"]);
    record.arg(&program).args([&count, &threads]);
    let stream = std::fs::File::create(lab.file("stream")).expect("a file");
    let status = record.stdout(stream).status().expect("it starts");
    assert!(status.success());
    let fields = ["script", "-F", "+span", "-i"];
    let stored = lab.usdtrec(fields.iter().chain(&["stream"])).success();
    let mut read = lab.at_home(
        Path::new("sh"),
        [
            "-c",
            "cat stream | \"$0\" script -F +span -i -",
            env!("CARGO_BIN_EXE_usdtrec"),
        ],
    );
    read.stdin(std::process::Stdio::null());
    assert_eq!(run(read).success().stdout, stored.stdout);
    assert!(stored.stdout.contains(" span=requests:request("));
}

/// Hits that perf's rings hand over CPU by CPU are matched in the order of time.
#[test]
fn hits_of_perf_events_are_matched_across_cpus() {
    let lab = Lab::privileged();
    record(&lab, Engine::PerfPmu);
    let walk = REQUEST.compare(&lab, "request", &[]);
    assert_eq!((walk.open, walk.unmatched, walk.depth), (0, 0, 1));
    let walk = FUNCTION.compare(&lab, "function", &[]);
    assert_eq!((walk.open, walk.unmatched, walk.depth), (0, 0, 3));
    JOB.compare(&lab, "job", &["--key", "arg1"]);
}

/// Of a part of the trace, the spans are those of which a part is in it; short ones do not count; a filter is asked of the begin.
#[test]
fn parts_of_a_trace() {
    let lab = Lab::privileged();
    record(&lab, Engine::BpfMulti);
    let events = lab.events("trace");
    let middle = |part: usize| events[events.len() * part / 100].time_ns;
    let (from, to) = (middle(31), middle(67));
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let time = format!("{},{}", seconds(from), seconds(to));
    let whole = FUNCTION.walk(&events);
    let spans = whole.spans.iter();
    let inside = spans.filter(|(begin, took)| *begin <= to && begin + took >= from);
    let count = inside.count();
    let found = ask(&lab, &["--span", "function", "--time", &time]);
    let found = &found["spans"][0];
    assert!(count > 100, "{count}");
    assert_eq!(
        (&found["count"], &found["open"], &found["unmatched"]),
        (&count.into(), &0.into(), &0.into())
    );

    let mut all: Vec<u64> = whole.groups.values().flatten().copied().collect();
    all.sort_unstable();
    let median = all[all.len() / 2];
    let long = all.iter().filter(|&&took| took >= median);
    let found = ask(
        &lab,
        &["--span", "function", "--min", &format!("{median}ns")],
    );
    assert_eq!(found["spans"][0]["count"], long.clone().count());
    let sum = long.clone().sum::<u64>();
    assert_eq!(
        number(&found["spans"][0], "mean_ns"),
        sum / long.count() as u64
    );

    let found = ask(&lab, &["--span", "function", "--filter", "arg1 == 2"]);
    assert_eq!(found["spans"][0]["count"], whole.groups["[2]"].len());
    let sum: u64 = whole.groups["[2]"].iter().sum();
    assert_eq!(number(&found["spans"][0], "sum_ns"), sum);
}

/// Each span is in its bucket, and in the interval in which it began.
#[test]
fn histograms_and_heatmaps() {
    let lab = Lab::privileged();
    record(&lab, Engine::BpfMulti);
    let spans = FUNCTION.walk(&lab.events("trace")).spans;
    let map = ask(&lab, &["--heatmap", "span:function"]);
    let (from, interval) = (number(&map, "from_ns"), number(&map, "interval_ns"));
    let mut cells = 0;
    for bucket in list(&map, "buckets") {
        let range = number(bucket, "from")..number(bucket, "to");
        let counts: Vec<u64> = list(bucket, "counts")
            .iter()
            .map(|count| count.as_u64().expect("a count"))
            .collect();
        let mut walked = vec![0; counts.len()];
        for (begin, _) in spans.iter().filter(|(_, took)| range.contains(took)) {
            let place = (begin - from) / interval;
            walked[(place as usize).min(counts.len() - 1)] += 1;
        }
        assert_eq!(counts, walked, "{range:?}");
        cells += counts.iter().sum::<u64>();
    }
    assert_eq!(cells, spans.len() as u64);

    let histogram = ask(&lab, &["--hist", "span:function"]);
    assert_eq!(histogram["count"], spans.len());
    let mut below = 0;
    for bucket in list(&histogram, "buckets") {
        below += number(bucket, "count");
        // Where there are many different ones, those next to the edge may be on its other side.
        let edge = number(bucket, "to");
        let [least, most] = [edge - edge / 256 - 1, edge + edge / 256 + 1].map(|edge| {
            let shorter = spans.iter().filter(|(_, took)| *took < edge);
            shorter.count() as u64
        });
        assert!(
            (least..=most).contains(&below),
            "{below} below {edge}: {least} to {most}"
        );
    }
    assert_eq!(below, spans.len() as u64);
}

/// A recording that lost hits says so wherever it shows spans.
#[test]
fn losses_are_reported() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "requests.c", "requests");
    lab.usdtrec(["buildid-cache", "--add", "requests"])
        .success();
    let mut record = lab.command(["record", "-m", "4k", "-o", "trace", "-e", "sdt_requests:*"]);
    record.arg("--").arg(program).args(["100000", "2"]);
    run(record).success();
    let summary = ask(&lab, &[]);
    let probes = list(&summary, "probes").iter();
    let of_requests = |probe: &&Value| {
        let name = probe["event"].as_str().expect("a name");
        name.starts_with("sdt_requests:request__")
    };
    let lost = probes.filter(of_requests);
    let lost: u64 = lost.map(|probe| number(probe, "lost")).sum();
    assert!(lost > 0, "a ring of 4 kB sufficed");
    let found = ask(&lab, &["--span", "request"]);
    assert_eq!(number(&found["spans"][0], "lost"), lost);
    for question in [&["--span", "request"][..], &[]] {
        let mut report = lab.command(["report", "-i", "trace"]);
        report.args(question);
        let text = run(report).success().stdout;
        assert!(text.contains("  hits of "), "{text}");
    }
}
