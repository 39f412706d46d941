//! Only slow spans: those that a program says it had are shown while they happen, recorded, and found in recordings of all hits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Build, Finished, Lab, Process, Recorder, test};

/// A span that the program says was slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slow {
    status: u64,
    /// ns.
    inner: u64,
    outer: u64,
}

/// What the program says.
#[derive(Debug)]
struct Said {
    slow: BTreeMap<u64, Slow>,
    /// Number of spans that ended.
    ended: u64,
}

impl Said {
    #[track_caller]
    fn parse(said: &str) -> Self {
        let mut all = Self {
            slow: BTreeMap::new(),
            ended: 0,
        };
        for line in said.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<u64>().expect(line);
            match words[0] {
                "slow" => {
                    let slow = Slow {
                        status: number(2),
                        inner: number(3),
                        outer: number(4),
                    };
                    all.slow.insert(number(1), slow);
                }
                _ => all.ended = number(1),
            }
        }
        all
    }

    /// Checks that spans are those of the program which took so long: each by its id, with its status and duration.
    #[track_caller]
    fn check(&self, found: &BTreeMap<u64, (u64, u64)>, least: u64, what: &str) {
        for (id, (status, took)) in found {
            let slow = self.slow.get(id).expect("a span of the program");
            assert_eq!(*status, slow.status, "{what}: {id}");
            let range = slow.inner..=slow.outer;
            assert!(
                range.contains(took) && *took >= least,
                "{what}: {id} took {took}, not {range:?}"
            );
        }
        let missing = self.slow.iter().filter(|(_, slow)| slow.inner >= least);
        let missing: Vec<_> = missing.filter(|(id, _)| !found.contains_key(id)).collect();
        assert!(missing.is_empty(), "{what}: {missing:?}");
    }
}

/// A program that has not begun.
struct Program {
    process: Process,
    events: [String; 2],
}

impl Program {
    fn start(lab: &Lab, arguments: &[&str]) -> Self {
        let path = build(lab);
        Self {
            process: Process::spawn(lab.at_home(&path, arguments)),
            events: events(&path),
        }
    }

    fn capture<'a>(&'a self, pid: &'a str) -> Vec<&'a str> {
        let [begin, end] = &self.events;
        vec!["-p", pid, "-e", begin, "-e", end]
    }

    fn run(mut self) -> Said {
        self.process.say("go");
        Said::parse(&self.process.finish().success().stdout)
    }
}

pub(crate) fn build(lab: &Lab) -> PathBuf {
    let built = Build {
        compiler: "gcc",
        options: &["-O2", "-pthread"],
    };
    built.make(lab, "slow.c", "slow")
}

pub(crate) fn events(path: &Path) -> [String; 2] {
    let path = path.display();
    [
        format!("sdt_slow:request__start(id=(s64)arg1,url=str(arg2))@{path}"),
        format!("sdt_slow:request__done(id=(s64)arg1,status=(s32)arg2)@{path}"),
    ]
}

/// The same probes without argument lists, for perf events.
fn bare<'a>(capture: &[&'a str]) -> Vec<&'a str> {
    let words = capture.iter();
    let words = words.map(|word| match word.split_once('(') {
        Some((name, _)) if name.ends_with("request__start") => "sdt_slow:request__start",
        Some(_) => "sdt_slow:request__done",
        None => word,
    });
    words.collect()
}

fn begin(lab: &Lab, verb: &str, arguments: &[&str]) -> Process {
    let mut process = Process::spawn(lab.command([&[verb][..], arguments].concat()));
    process.until_error_line(&format!("[ usdtrec {verb}:"));
    process
}

/// A verb that ends with the program.
#[track_caller]
fn stop(process: Process) -> Finished {
    process.finish().success()
}

const TEMPLATE: &str = "{begin.id} {end.status} {span_ns} {begin.url} {end.id} {span_name}";

/// The spans of lines of the template.
#[track_caller]
fn of_template(lines: &str) -> BTreeMap<u64, (u64, u64)> {
    let spans = lines.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect(line);
        assert_eq!(words[3], format!("/request/{}", words[0]), "{line}");
        assert_eq!((words[4], words[5]), (words[0], "slow:request"), "{line}");
        (number(0), (number(1), number(2)))
    });
    spans.collect()
}

/// The spans of lines of JSON.
#[track_caller]
fn of_json(lines: &str) -> BTreeMap<u64, (u64, u64)> {
    let spans = lines.lines().map(|line| {
        let span: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(span["span"], "slow:request", "{line}");
        assert_eq!(span["fate"], "ended", "{line}");
        let number = |value: &Value| value.as_u64().expect(line);
        let took = number(&span["end"]["time_ns"]) - number(&span["begin"]["time_ns"]);
        assert_eq!(number(&span["span_ns"]), took, "{line}");
        let id = number(&span["begin"]["args"]["id"]);
        (id, (number(&span["end"]["args"]["status"]), took))
    });
    spans.collect()
}

/// The number before words of a message.
#[track_caller]
fn said_number(said: &str, words: &str) -> u64 {
    let (before, _) = said.split_once(words).expect(said);
    let mut words = before.split_whitespace().rev();
    let number = words.find_map(|word| word.parse().ok());
    number.expect(said)
}

/// What is said of spans that were matched in the kernel.
const IN_KERNEL: &str = "too short to be recorded";

const LOAD: [&str; 5] = ["load", "4", "3000", "500", "60"];
/// ns.
const MIN_DURATION: u64 = 30_000_000;
const LIMIT: [&str; 4] = ["--span", "request", "--min", "30ms"];

/// The spans of four threads, some within others, matched in the kernel and by the reader: those of the program, and those of a recording beside it.
#[test]
fn slow_spans_are_those_of_the_program_wherever_they_are_matched() {
    let lab = Lab::privileged();
    let program = Program::start(&lab, &LOAD);
    let pid = program.process.pid().to_string();
    let capture = program.capture(&pid);
    let with = |more: &[&'static str]| -> Vec<&str> {
        [&capture[..], more, &["--format", TEMPLATE]].concat()
    };
    let in_kernel = begin(&lab, "trace", &with(&LIMIT));
    let by_id = begin(
        &lab,
        "trace",
        &with(&[&LIMIT[..], &["--key", "id"]].concat()),
    );
    let in_reader = begin(
        &lab,
        "trace",
        &with(&[&LIMIT[..], &["--key", "comm,id"]].concat()),
    );
    let limit = [
        "--engine",
        "perf",
        "--span",
        "request__start..request__done",
        "--min",
        "30ms",
    ];
    let of_perf = begin(&lab, "trace", &[&bare(&capture)[..], &limit].concat());
    let named = begin(&lab, "trace", &with(&["--filter", "span >= 30ms"]));
    let slow = Recorder::start(&lab, [&capture[..], &LIMIT, &["-o", "long"]].concat());
    let all = Recorder::start(&lab, [&capture[..], &["-o", "all"]].concat());
    let said = program.run();
    assert!(said.slow.len() >= 36, "{said:?}");
    assert_eq!(said.ended, 12_012);
    for (tracer, is_in_kernel) in [
        (in_kernel, true),
        (by_id, true),
        (in_reader, false),
        (named, true),
    ] {
        let ended = stop(tracer);
        let found = of_template(&ended.stdout);
        said.check(&found, MIN_DURATION, &ended.what);
        let (shown, said) = (found.len() as u64, &ended.stderr);
        assert!(said.contains(&format!(" {shown} spans")), "{said}");
        let words = if is_in_kernel {
            IN_KERNEL
        } else {
            "shorter ones"
        };
        assert_eq!(said_number(said, words), 12_012 - shown, "{said}");
        assert_eq!(said.contains(IN_KERNEL), is_in_kernel, "{said}");
    }
    let ended = stop(of_perf);
    assert!(ended.stdout.lines().count() >= 36, "{}", ended.stdout);
    let ended = slow.finish().success();
    let short = said_number(&ended.stderr, IN_KERNEL);
    all.finish().success();
    for trace in ["long", "all"] {
        for more in [
            &LIMIT[..],
            &["--filter", "span >= 30ms"],
            &["--span", "slow:*", "--min", "30ms", "--key", "id"],
        ] {
            let json = [&["script", "-i", trace, "--format", "json"][..], more].concat();
            let json = lab.usdtrec(json).success();
            said.check(&of_json(&json.stdout), MIN_DURATION, &json.what);
        }
        let lines = [&["script", "-i", trace, "--format", TEMPLATE][..], &LIMIT].concat();
        let found = of_template(&lab.usdtrec(lines).success().stdout);
        said.check(&found, MIN_DURATION, trace);
        let report = [
            "report", "-i", trace, "--span", "request", "--min", "30ms", "--format", "json",
            "--by", "id",
        ];
        let report = lab.usdtrec(report).success();
        let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
        let groups = report["spans"][0]["groups"].as_array().expect("groups");
        assert_eq!(groups.len(), found.len(), "{trace}");
    }
    let events = lab.events("long").len() as u64;
    assert_eq!(events, 2 * (12_012 - short), "begin and end, and no others");
    let summary = lab.usdtrec(["report", "-i", "long"]).success();
    let summary = summary.stdout + &summary.stderr;
    assert!(
        summary.contains("only spans of at least 30ms were recorded"),
        "{summary}"
    );
    let left_out = format!("{short} shorter ones are left out");
    assert!(summary.contains(&left_out), "{summary}");
}

/// A line of text fits, has the arguments of both hits once, and no address.
#[test]
fn a_line_has_what_begin_and_end_say() {
    let lab = Lab::privileged();
    let program = Program::start(&lab, &["load", "1", "10", "10", "40"]);
    let pid = program.process.pid().to_string();
    let capture = program.capture(&pid);
    let text = begin(&lab, "trace", &[&capture[..], &LIMIT].concat());
    let events = begin(&lab, "trace", &capture);
    let csv = begin(
        &lab,
        "trace",
        &[&capture[..], &LIMIT, &["--format", "csv"]].concat(),
    );
    let said = program.run();
    let (id, slow) = said.slow.iter().next().expect("a slow span");
    let text = stop(text).stdout;
    let [line] = *text.lines().collect::<Vec<_>>() else {
        panic!("{text}")
    };
    let (head, rest) = line.split_once(": slow:request: ").expect(line);
    assert!(head.contains("slow"), "{line}");
    let (took, arguments) = rest.split_once(' ').expect(line);
    assert!(took.ends_with("ms"), "{line}");
    let expected = format!("id={id} url=\"/request/{id}\" status={}", slow.status);
    assert_eq!(arguments, expected);
    assert!(line.len() <= 120, "{line}");
    let events = stop(events).stdout;
    assert_eq!(events.lines().count(), 20);
    for line in events.lines() {
        assert!(line.contains(": id="), "no address: {line}");
        assert!(line.len() <= 100, "{line}");
    }
    let csv = stop(csv).stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "span,span_ns,fate,begin.time_ns,begin.cpu,begin.pid,begin.tid,begin.comm,begin.event,begin.args.id,begin.args.url,\
         end.time_ns,end.cpu,end.pid,end.tid,end.comm,end.event,end.args.id,end.args.status,missing"
    );
    let row: Vec<&str> = lines[1].split(',').collect();
    assert_eq!(
        (row[0], row[2], row[9]),
        ("slow:request", "ended", &*id.to_string()),
        "{csv}"
    );
    assert_eq!(row[18], slow.status.to_string(), "{csv}");
}

/// Begins without an end, ends without a begin, and ends of other threads.
#[test]
fn spans_without_a_partner_are_counted() {
    let lab = Lab::privileged();
    let program = Program::start(&lab, &["odd", "60"]);
    let pid = program.process.pid().to_string();
    let capture = program.capture(&pid);
    let format = ["--format", "{begin.id} {end.status} {span_ns}"];
    let with = |more: &[&'static str]| [&capture[..], &LIMIT, &format, more].concat();
    let in_kernel = begin(&lab, "trace", &with(&[]));
    let by_id = begin(&lab, "trace", &with(&["--key", "id"]));
    let all = Recorder::start(&lab, [&capture[..], &["-o", "all"]].concat());
    let said = program.run();
    let ids = |lines: &str| -> Vec<u64> {
        let ids = lines
            .lines()
            .map(|line| line.split(' ').next()?.parse().ok());
        ids.collect::<Option<_>>().expect(lines)
    };
    assert_eq!(said.slow.keys().copied().collect::<Vec<_>>(), [100, 300]);
    let ended = stop(in_kernel);
    assert_eq!(ids(&ended.stdout), [100, 300], "{}", ended.stderr);
    assert!(
        ended.stderr.contains("2 ends without a begin"),
        "{}",
        ended.stderr
    );
    all.finish().success();
    let script = [&["script", "-i", "all"][..], &LIMIT, &format].concat();
    let of_recording = lab.usdtrec(script).success().stdout;
    assert_eq!(ids(&of_recording), [100, 300]);
    assert_eq!(ids(&stop(by_id).stdout), [100, 400, 300]);
    let every = [
        "script",
        "-i",
        "all",
        "--span",
        "request",
        "--format",
        "{begin.id} {span} {end.status}",
    ];
    let every = lab.usdtrec(every).success().stdout;
    assert!(every.contains("200 <unfinished> -\n100 "), "{every}");
    assert!(every.contains("400 <open> -"), "{every}");
}

/// Spans within each other, up to 16 of a thread.
#[test]
fn spans_nest_to_sixteen_levels() {
    let lab = Lab::privileged();
    for (depth, shown) in [(16, 16), (20, 16)] {
        let text = depth.to_string();
        let program = Program::start(&lab, &["deep", &text, "40"]);
        let pid = program.process.pid().to_string();
        let capture = program.capture(&pid);
        let tracer = begin(
            &lab,
            "trace",
            &[&capture[..], &LIMIT, &["--format", TEMPLATE]].concat(),
        );
        let mut said = program.run();
        assert_eq!(said.slow.len(), depth);
        let ended = stop(tracer);
        // The outermost.
        said.slow.retain(|id, _| *id < 2 + shown);
        said.check(&of_template(&ended.stdout), MIN_DURATION, &ended.stderr);
        let deep = format!(
            "{} spans not matched, because more than 16",
            depth as u64 - shown
        );
        assert_eq!(ended.stderr.contains(&deep), depth > 16, "{}", ended.stderr);
    }
}

/// A recorder that is killed leaves a file of the spans until then, and the next one finds all.
#[test]
fn nothing_stays_of_a_killed_recorder() {
    let lab = Lab::privileged();
    let mut program = Program::start(&lab, &["load", "2", "2000", "20", "30"]);
    let pid = program.process.pid().to_string();
    let limit = ["--span", "request", "--min", "15ms"];
    let capture: Vec<String> = program
        .capture(&pid)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let capture: Vec<&str> = capture.iter().map(String::as_str).collect();
    let killed = Recorder::start(&lab, [&capture[..], &limit, &["-o", "killed"]].concat());
    program.process.say("go");
    std::thread::sleep(Duration::from_millis(1500));
    killed.signal("KILL");
    killed.finish();
    let next = begin(
        &lab,
        "trace",
        &[&capture[..], &limit, &["--format", TEMPLATE]].concat(),
    );
    let said = Said::parse(&program.process.finish().success().stdout);
    let next = stop(next);
    let of_next = of_template(&next.stdout);
    let script = [
        &["script", "-i", "killed", "--format", TEMPLATE][..],
        &limit,
    ]
    .concat();
    let of_killed = of_template(&lab.usdtrec(script).success().stdout);
    assert!(!of_killed.is_empty() && !of_next.is_empty());
    for found in [&of_killed, &of_next] {
        for (id, (status, took)) in found {
            let slow = said.slow.get(id).expect("a span of the program");
            assert_eq!(*status, slow.status);
            assert!((slow.inner..=slow.outer).contains(took));
        }
    }
    let summary = lab.usdtrec(["report", "-i", "killed"]).success();
    let summary = summary.stdout + &summary.stderr;
    assert!(
        summary.contains("only spans of at least 15ms were recorded"),
        "{summary}"
    );
}

/// A slow span is shown soon, while short ones come as fast as they can.
#[test]
fn a_slow_span_is_shown_soon_under_load() {
    let lab = Lab::privileged();
    let mut program = Program::start(&lab, &["load", "2", "400000", "40000", "100"]);
    let pid = program.process.pid().to_string();
    let capture: Vec<String> = program
        .capture(&pid)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let capture: Vec<&str> = capture.iter().map(String::as_str).collect();
    let format = [
        "--format",
        "{begin.id} {end.time:.9} {begin.url} {end.status}",
    ];
    let limit = ["--span", "request", "--min", "50ms"];
    let mut tracer = begin(&lab, "trace", &[&capture[..], &limit, &format].concat());
    program.process.say("go");
    let started = Instant::now();
    let mut latest = Duration::ZERO;
    let mut lines = 0;
    // 10 of each thread, every second of them with another in it.
    while lines < 30 {
        let line = tracer.line().expect("a slow span");
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32);
        let words: Vec<&str> = line.split(' ').collect();
        let (seconds, fraction) = words[1].split_once('.').expect(&line);
        let ended = Duration::new(
            seconds.parse().expect(&line),
            fraction.parse().expect(&line),
        );
        assert_eq!(words[2], format!("/request/{}", words[0]));
        latest = latest.max(now.saturating_sub(ended));
        lines += 1;
    }
    let took = started.elapsed();
    let said = Said::parse(&program.process.finish().success().stdout);
    let ended = stop(tracer);
    assert!(said.slow.len() >= 30);
    assert!(ended.stderr.contains(" 0 lost"), "{}", ended.stderr);
    eprintln!(
        "{:.0} spans a second, shown after {latest:?} at most",
        said.ended as f64 / took.as_secs_f64()
    );
}

/// What cannot be is refused with the reason.
#[test]
fn what_cannot_be_is_refused() {
    let lab = Lab::privileged();
    for (verb, more, reason) in [
        (
            "record",
            &["--span", "request"][..],
            "--span and --key need --min",
        ),
        (
            "record",
            &["--min", "1ms", "--engine", "perf"],
            "needs the bpf engine",
        ),
        ("record", &["--min", "1ms", "-g"], "cannot be used with"),
        (
            "record",
            &["--min", "1ms", "--span", "query"],
            "there is no span \"query\"; there are: slow:request",
        ),
        (
            "record",
            &["--filter", "span < 1ms"],
            "expected span > TIME",
        ),
        (
            "record",
            &["--filter", "span > 1ms && status == 1"],
            "sdt_slow:request__done has no argument status",
        ),
        (
            "trace",
            &["--key", "id"],
            "--key has no effect without --span",
        ),
        ("trace", &["--span", "request", "-g"], "cannot be used with"),
        (
            "trace",
            &["--span", "request", "-F", "+ip"],
            "ip is a field of events",
        ),
        (
            "trace",
            &["--span", "request", "--format", "{begin.status}"],
            "\"begin.status\"",
        ),
        ("trace", &["--span", "query"], "no span \"query\""),
        ("trace", &["--max-stack", "3"], "<-g|--call-graph <MODE>>"),
        ("top", &["--filter", "span > 1ms"], "needs --span"),
        ("stat", &["--filter", "span > 1ms"], "needs --span"),
    ] {
        is_refused(&lab, &[&[verb], more].concat(), reason);
    }
}

/// Asserts that a recording of the program is refused: the verb and its options, and what is said.
#[track_caller]
pub(crate) fn is_refused(lab: &Lab, words: &[&str], reason: &str) {
    let path = build(lab);
    let [start, done] = events(&path);
    let (verb, more) = words.split_first().expect("a verb");
    let program = path.to_str().expect("a path");
    let capture = [*verb, "-e", &start, "-e", &done];
    let ended = lab.usdtrec([&capture, more, &["--", program, "odd", "1"]].concat());
    assert!(!ended.status.success(), "{words:?}");
    assert!(ended.stderr.contains(reason), "{words:?}: {}", ended.stderr);
}

/// The callers of hits, while they happen.
#[test]
fn trace_shows_callers() {
    let lab = Lab::privileged();
    let program = Program::start(&lab, &["load", "1", "2", "5", "1"]);
    let pid = program.process.pid().to_string();
    let tracer = begin(
        &lab,
        "trace",
        &[&program.capture(&pid)[..], &["-g"]].concat(),
    );
    program.run();
    let traced = stop(tracer).stdout;
    assert_eq!(
        traced.matches("sdt_slow:request__start").count(),
        2,
        "{traced}"
    );
    let frames = traced.lines().filter(|line| line.starts_with('\t'));
    let frames: Vec<&str> = frames.collect();
    for function in ["begin", "span", "load"] {
        assert!(
            frames.iter().any(|frame| frame.contains(function)),
            "{traced}"
        );
    }
}

/// A filter beside the duration is about the span: of its begin if that has the arguments, else of its end. What it excludes is matched all the same.
#[test]
fn a_filter_beside_the_duration_chooses_spans() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "nested_ops.c", "nested_ops");
    let program = program.to_str().expect("a path");
    let event = format!("nested_ops:op__*@{program}");
    let recorded = |filter: &[&str]| {
        let record = ["record", "-o", "trace", "-e", &event];
        let run = ["--", program, "6"];
        let said = lab
            .usdtrec([&record[..], filter, &run].concat())
            .success()
            .stderr;
        assert!(said.contains(", or excluded by --filter"), "{said}");
        let events = lab.events("trace");
        let of = |name: &str| -> Vec<i128> {
            let events = events.iter().filter(|event| event.event.ends_with(name));
            events.map(|event| event.integer(1)).collect()
        };
        (of("op__begin"), of("op__end"))
    };
    let outer = (vec![1; 6], vec![200, 200, 500, 200, 200, 500]);
    assert_eq!(recorded(&["--filter", "span > 1ms && arg1 == 1"]), outer);
    assert_eq!(recorded(&["--min", "1ms", "--filter", "arg1 == 1"]), outer);
    let inner = recorded(&["--filter", "arg1 == 0 && span > 1ms"]);
    assert_eq!(inner, (vec![0; 6], vec![200; 6]));
    let failed = recorded(&["--filter", "span > 1ms && op__end.arg1 == 500"]);
    assert_eq!(failed, (vec![1; 2], vec![500; 2]));
    let both = recorded(&[
        "--filter",
        "span > 1ms && op__end.arg1 != 500 && arg2 > 4 && arg1 == 1",
    ]);
    assert_eq!(both, (vec![1], vec![200]));
    let unknown = [
        "record",
        "-e",
        &event,
        "--filter",
        "span > 1ms && nosuch == 1",
        "--",
        program,
    ];
    lab.usdtrec(unknown)
        .exits(2)
        .complains("has no argument nosuch");
}
