//! Spans that are aggregated in the kernel, by `stat --span` and `top --span`: they are those that the program had, and those of `report --span` on a
//! recording of the same run.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::common::{Build, Finished, Lab, Process, Recorder, test};
use crate::slow_spans::{build, events, is_refused};

/// A program that has not begun (testdata/targets/slow.c).
struct Program {
    process: Process,
    events: [String; 2],
    pid: String,
}

impl Program {
    fn start(lab: &Lab, arguments: &[&str]) -> Self {
        let path = build(lab);
        let process = Process::spawn(lab.at_home(&path, arguments));
        Self {
            pid: process.pid().to_string(),
            process,
            events: events(&path),
        }
    }

    fn capture(&self) -> Vec<&str> {
        let [begin, end] = &self.events;
        vec!["-p", &self.pid, "-e", begin, "-e", end]
    }

    /// Lets it run to its end. Returns what it printed.
    fn run(mut self) -> String {
        self.process.say("go");
        self.process.finish().success().stdout
    }
}

fn begin(lab: &Lab, verb: &str, capture: &[&str], more: &[&str]) -> Process {
    let mut process = Process::spawn(lab.command([&[verb][..], capture, more].concat()));
    process.until_error_line(&format!("[ usdtrec {verb}:"));
    process
}

#[track_caller]
fn end(process: Process) -> Finished {
    process.finish().success()
}

/// The lines of JSON.
#[track_caller]
fn json(lines: &str) -> Vec<Value> {
    let lines = lines.lines();
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

#[track_caller]
fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} of {value}"))
}

/// The spans of a report.
#[track_caller]
fn report(lab: &Lab, more: &[&str]) -> Value {
    let words = [
        "report", "-i", "trace", "--span", "request", "--format", "json",
    ];
    let report = lab
        .usdtrec([&words[..], more, &["--top", "100000"]].concat())
        .success();
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    report["spans"][0].clone()
}

const SPAN: [&str; 2] = ["--span", "request"];
const JSON: [&str; 2] = ["--format", "json"];

/// What one program and another one measure of a span differs by what comes between both, as the two clock readings of a hit.
#[track_caller]
fn are_near(one: u64, other: u64, count: u64, what: &str) {
    let between = one.abs_diff(other);
    let most = count * 100_000 + 30_000_000;
    assert!(between <= most, "{what}: {one} and {other}");
}

/// Counted while they are recorded: threads, of which each nests spans, with the keys of the begin and of the thread.
#[test]
fn spans_are_those_of_report() {
    for engine in ["bpf-multi", "bpf-perf"] {
        let lab = Lab::privileged();
        let program = Program::start(&lab, &["load", "4", "2000", "500", "40"]);
        let capture = [&program.capture()[..], &["--engine", engine]].concat();
        let by_thread = [&SPAN[..], &JSON, &["--by", "tid,comm"]].concat();
        let by_thread = begin(&lab, "stat", &capture, &by_thread);
        let by_id = [&SPAN[..], &JSON, &["--key", "id", "--by", "url:shape"]].concat();
        let by_id = begin(&lab, "stat", &capture, &by_id);
        let slow = [&SPAN[..], &JSON, &["--min", "20ms", "--by", "id"]].concat();
        let slow = begin(&lab, "stat", &capture, &slow);
        let recorder = Recorder::start(&lab, [&capture[..], &["-o", "trace"]].concat());
        let said = program.run();
        let (by_thread, by_id, slow) = (end(by_thread), end(by_id), end(slow));
        recorder.finish().success();
        let of_report = report(&lab, &["--by", "tid,comm"]);
        let ended = number(&of_report, "count");
        let said_ended = said.lines().last().expect("a line");
        assert_eq!(said_ended, format!("spans {ended}"));
        let lines = json(&by_thread.stdout);
        let groups = of_report["groups"].as_array().expect("groups");
        assert_eq!((groups.len(), lines.len()), (4, 4 + 1), "{lines:?}");
        for group in groups {
            let mut lines = lines.iter();
            let line = lines
                .find(|line| line["tid"] == group["tid"])
                .expect("a group");
            assert_eq!(line["span"], "slow:request");
            assert_eq!(line["comm"], "slow");
            let count = number(group, "count");
            assert_eq!(number(line, "count"), count);
            for figure in ["sum_ns", "min_ns", "max_ns", "p99_ns"] {
                let (one, other) = (number(line, figure), number(group, figure));
                are_near(
                    one,
                    other,
                    if figure == "sum_ns" { count } else { 1 },
                    figure,
                );
            }
            assert!(number(line, "min_ns") <= number(line, "p50_ns"), "{line}");
            assert!(number(line, "p99_ns") <= number(line, "max_ns"), "{line}");
            let mean = number(line, "sum_ns") / count;
            assert_eq!(number(line, "mean_ns"), mean);
        }
        let all = lines.iter().find(|line| line["others"] == true);
        let all = all.expect("what became of begins and ends");
        for fate in ["open", "unfinished", "unmatched", "unkeyed"] {
            assert_eq!(all[fate], of_report[fate], "{fate}: {all}");
        }
        assert_eq!((number(all, "count"), number(all, "lost")), (0, 0));
        let lines = json(&by_id.stdout);
        let shapes = lines.iter().filter(|line| line["others"] != true);
        let shapes: Vec<&Value> = shapes.collect();
        assert_eq!(shapes.len(), 1, "{lines:?}");
        assert_eq!(shapes[0]["url:shape"], "/request/?", "{lines:?}");
        // Each string is a group of its own in the kernel.
        assert_eq!(number(shapes[0], "count"), ended, "{lines:?}");
        assert!(
            number(shapes[0], "p99_ns") >= number(shapes[0], "p50_ns"),
            "{lines:?}"
        );
        let lines = json(&slow.stdout);
        let of_report = report(&lab, &["--by", "id", "--min", "20ms"]);
        let groups = lines.iter().filter(|line| line["others"] != true);
        let ids: BTreeMap<u64, u64> = groups
            .map(|line| (number(line, "id"), number(line, "count")))
            .collect();
        let right = of_report["groups"].as_array().expect("groups").iter();
        let right: BTreeMap<u64, u64> = right
            .map(|group| (number(group, "id"), number(group, "count")))
            .collect();
        assert_eq!(ids, right);
        let all = lines.iter().find(|line| line["others"] == true);
        let short = number(all.expect("all spans"), "short");
        assert_eq!(short + ids.len() as u64, ended);
        let said = format!("{} spans, {short} shorter ones", ids.len());
        assert!(slow.stderr.contains(&said), "{}", slow.stderr);
    }
}

/// A begin that fails ends with the one around it, ends without a begin and begins without an end are counted.
#[test]
fn spans_without_a_partner_are_those_of_report() {
    let lab = Lab::privileged();
    let program = Program::start(&lab, &["odd", "30"]);
    let capture = program.capture();
    let json_of = [&SPAN[..], &JSON].concat();
    let by_rules = begin(&lab, "stat", &capture, &json_of);
    let by_key = [&json_of[..], &["--key", "id"]].concat();
    let by_key = begin(&lab, "stat", &capture, &by_key);
    let text = begin(&lab, "stat", &capture, &SPAN);
    let recorder = Recorder::start(&lab, [&capture[..], &["-o", "trace"]].concat());
    program.run();
    let (by_rules, by_key, text) = (end(by_rules), end(by_key), end(text));
    recorder.finish().success();
    let rules = json(&by_rules.stdout);
    assert_eq!(rules.len(), 1, "{rules:?}");
    for (line, of_report) in [
        (&rules[0], report(&lab, &[])),
        (&json(&by_key.stdout)[0], report(&lab, &["--key", "id"])),
    ] {
        for figure in ["count", "open", "unfinished", "unmatched", "unkeyed"] {
            assert_eq!(
                line[figure], of_report[figure],
                "{figure}: {line} {of_report}"
            );
        }
        for figure in ["min_ns", "max_ns"] {
            are_near(number(line, figure), number(&of_report, figure), 1, figure);
        }
    }
    assert_eq!(number(&rules[0], "unfinished"), 1);
    assert_eq!(number(&rules[0], "unmatched"), 2);
    assert!(
        text.stdout
            .contains("begins without an end: slow:request 1"),
        "{}",
        text.stdout
    );
    assert!(
        text.stdout
            .contains("ends without a beginning: slow:request 2"),
        "{}",
        text.stdout
    );
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80));
    assert!(
        text.stderr.contains(" 2 spans, 0 lost ]"),
        "{}",
        text.stderr
    );
}

/// Begins without an end, as of statements that fail, are given up when there are many: what comes after them is counted.
#[test]
fn many_begins_that_fail_are_given_up() {
    let lab = Lab::privileged();
    let program = Program::start(&lab, &["failed", "100", "1"]);
    let capture = program.capture();
    let stat = begin(&lab, "stat", &capture, &[&SPAN[..], &JSON].concat());
    program.run();
    let lines = json(&end(stat).stdout);
    // What is kept of 100 begins, and of a span after each tenth.
    let (mut depth, mut kept) = (0, BTreeMap::new());
    let mut add = |name: &'static str, count| *kept.entry(name).or_insert(0) += count;
    for number in 1..=100 {
        for is_span in [false, true] {
            if is_span && number % 10 > 0 {
                continue;
            }
            let is_kept = depth < 16;
            match is_kept {
                true => depth += 1,
                false => {
                    depth = 0;
                    add("unfinished", 16);
                    add("open", 16);
                    add("unkept", 1);
                }
            }
            if is_span {
                add(if is_kept { "count" } else { "unmatched" }, 1);
                depth -= u64::from(is_kept);
            }
        }
    }
    add("open", depth);
    assert!(kept["count"] >= 8, "{kept:?}");
    for (name, count) in kept {
        assert_eq!(number(&lines[0], name), count, "{name}: {lines:?}");
    }
}

/// Spans within each other, up to 16 of a thread; of more, the outer ones are given up.
#[test]
fn spans_nest_to_sixteen_levels() {
    let lab = Lab::privileged();
    for (depth, kept) in [(16, 16), (20, 3)] {
        let program = Program::start(&lab, &["deep", &depth.to_string(), "20"]);
        let capture = program.capture();
        let how = [&SPAN[..], &JSON, &["--by", "id"]].concat();
        let stat = begin(&lab, "stat", &capture, &how);
        let recorder = Recorder::start(&lab, [&capture[..], &["-o", "trace"]].concat());
        program.run();
        let lines = json(&end(stat).stdout);
        recorder.finish().success();
        let of_report = report(&lab, &["--by", "id"]);
        let groups = of_report["groups"].as_array().expect("groups");
        let group = |id: u64| groups.iter().find(|group| number(group, "id") == id);
        let spans = lines.iter().filter(|line| line["others"] != true);
        let spans: Vec<&Value> = spans.collect();
        assert_eq!(spans.len(), kept);
        for line in spans {
            let group = group(number(line, "id")).expect("the span");
            assert_eq!(number(line, "count"), 1);
            are_near(number(line, "sum_ns"), number(group, "sum_ns"), 1, "sum");
        }
        let all = lines.iter().find(|line| line["others"] == true);
        let all = all.expect("all spans");
        let missing = ["unkept", "unfinished"].map(|fate| number(all, fate));
        assert_eq!(missing.iter().sum::<u64>(), depth - kept as u64, "{all}");
        assert_eq!(number(all, "unmatched"), depth - kept as u64, "{all}");
    }
}

/// Other probes beside spans: their hits are counted, and their arguments added up.
#[test]
fn hits_of_other_probes_are_counted_beside_spans() {
    let lab = Lab::privileged();
    let program = Program::start(&lab, &["load", "2", "1000", "100", "1"]);
    let [start, done] = &program.events;
    let numbers = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let tick = format!("sdt_ticker:tick(number=arg1)@{}", numbers.display());
    let capture = ["-a", "-e", &**start, "-e", &**done, "-e", &*tick];
    let how = ["--by", "pid", "--hist", "number,span", "--value", "number"];
    let stat = begin(&lab, "stat", &capture, &[&SPAN[..], &JSON, &how].concat());
    let csv = ["--format", "csv", "--by", "pid", "--hist", "number,span"];
    let csv = begin(&lab, "stat", &capture, &[&SPAN[..], &csv].concat());
    let pid = program.pid.clone();
    program.run();
    let ticks = std::process::Command::new(&numbers).arg("30").output();
    assert!(ticks.expect("the program").status.success());
    for process in [&stat, &csv] {
        process.signal("INT");
    }
    let lines = json(&end(stat).stdout);
    let of = |name: &str, value: &str| -> Vec<&Value> {
        let lines = lines.iter();
        lines
            .filter(|line| line[name] == value && line["others"] != true)
            .collect()
    };
    let spans = of("span", "slow:request");
    assert_eq!(spans.len(), 1, "{lines:?}");
    assert_eq!(spans[0]["pid"].to_string(), pid);
    let buckets = spans[0]["buckets"].as_array().expect("a histogram");
    let in_buckets: u64 = buckets.iter().map(|bucket| number(bucket, "count")).sum();
    assert_eq!(in_buckets, number(spans[0], "count"));
    assert_eq!(spans[0]["number.sum"], Value::Null);
    let ticks = of("event", "sdt_ticker:tick");
    assert_eq!(ticks.len(), 1, "{lines:?}");
    assert_eq!(number(ticks[0], "number.count"), number(ticks[0], "count"));
    assert_eq!(ticks[0]["sum_ns"], Value::Null);
    assert!(of("event", "sdt_slow:request__start").is_empty());
    let csv = end(csv).stdout;
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heading = rows.next().expect("a heading");
    let right = [
        "elapsed_ns",
        "interval_ns",
        "event",
        "span",
        "pid",
        "others",
        "count",
        "per_second",
        "lost",
        "open",
        "unfinished",
        "unmatched",
        "unkeyed",
        "short",
        "unkept",
        "mean_ns",
        "min_ns",
        "p50_ns",
        "p90_ns",
        "p99_ns",
        "max_ns",
        "sum_ns",
        "exact",
        "number.count",
    ];
    assert_eq!(heading[..right.len()], right, "{csv}");
    for row in rows {
        assert_eq!(row.len(), heading.len(), "{csv}");
        assert_ne!(row[2].is_empty(), row[3].is_empty(), "{csv}");
    }
}

/// Each span is in one interval, in the table of `top` and in the metrics.
#[test]
fn intervals_and_metrics_have_each_span_once() {
    let lab = Lab::privileged();
    let program = Program::start(&lab, &["load", "2", "3000", "300", "20"]);
    let capture = program.capture();
    let how = ["-I", "50", "--by", "comm", "--prometheus", "out.prom"];
    let stat = begin(&lab, "stat", &capture, &[&SPAN[..], &JSON, &how].concat());
    let how = ["-d", "100ms", "--by", "comm", "--order", "p99"];
    let top = begin(&lab, "top", &capture, &[&SPAN[..], &how].concat());
    let said = program.run();
    let ended = said.lines().last().expect("a line").replace("spans ", "");
    let ended: u64 = ended.parse().expect("a number");
    let lines = json(&end(stat).stdout);
    let counts = lines.iter().map(|line| number(line, "count"));
    assert_eq!(counts.sum::<u64>(), ended);
    let sums = lines.iter().filter_map(|line| line["sum_ns"].as_u64());
    let sum: u64 = sums.sum();
    let metrics = fs::read_to_string(lab.file("out.prom")).expect("metrics");
    let labels = "provider=\"slow\",span=\"request\"";
    for line in [
        format!("usdtrec_spans_total{{{labels},comm=\"slow\"}} {ended}\n"),
        format!("usdtrec_span_seconds_count{{{labels},comm=\"slow\"}} {ended}\n"),
        format!("usdtrec_span_seconds_bucket{{{labels},comm=\"slow\",le=\"+Inf\"}} {ended}\n"),
        format!("usdtrec_spans_open{{{labels}}} 0\n"),
        "# TYPE usdtrec_span_seconds histogram\n".to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    let seconds = format!("usdtrec_span_seconds_sum{{{labels},comm=\"slow\"}} ");
    let (_, seconds) = metrics.split_once(&seconds).expect("a sum");
    let seconds = seconds.lines().next().expect("a number");
    let seconds: f64 = seconds.parse().expect("a number");
    assert!((seconds - sum as f64 / 1e9).abs() < 1e-6, "{seconds} {sum}");
    let top = end(top).stdout;
    let heading = top.lines().find(|line| line.starts_with("Span"));
    let heading = heading.expect("a heading").split_whitespace();
    let right = ["Span", "comm", "Count", "/s", "Total", "p50", "p99", "max"];
    assert_eq!(heading.collect::<Vec<_>>(), right);
    let rows = top.lines().filter(|line| line.starts_with("slow:request"));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split_whitespace().collect()).collect();
    let counts = rows
        .iter()
        .map(|row| row[2].parse::<u64>().expect("a count"));
    assert_eq!(counts.sum::<u64>(), ended, "{top}");
    let last = rows.last().expect("a row");
    assert_eq!(last[4], ended.to_string(), "{top}");
}

/// What cannot be is refused with the reason.
#[test]
fn what_cannot_be_is_refused() {
    let lab = Lab::privileged();
    for (verb, more, reason) in [
        ("stat", &["--key", "id"][..], "--span <START..DONE|NAME>"),
        ("stat", &["--min", "1ms"], "--span <START..DONE|NAME>"),
        ("top", &["--min", "1ms"], "--span <START..DONE|NAME>"),
        ("top", &["--order", "p99"], "were not provided"),
        (
            "top",
            &["--by", "comm", "--sort", "p99"],
            "--span <START..DONE|NAME>",
        ),
        (
            "stat",
            &["--span", "query"],
            "there is no span \"query\"; there are: slow:request",
        ),
        (
            "stat",
            &["--span", "request", "--key", "url"],
            "begin and end can be matched only by the thread, the process or one integer",
        ),
        (
            "stat",
            &["--span", "request", "--value", "span"],
            "cannot be used with",
        ),
        (
            "stat",
            &["--span", "request", "--value", "id"],
            "whose durations are added up",
        ),
        (
            "stat",
            &["--span", "request", "--filter", "arg1 > 3"],
            "a filter of its begin or end",
        ),
        (
            "top",
            &["--span", "request", "--engine", "perf"],
            "top --span needs the bpf engine",
        ),
    ] {
        is_refused(&lab, &[&[verb], more].concat(), reason);
    }
}
