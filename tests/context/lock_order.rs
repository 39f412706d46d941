//! A program that logs its own lock order (testdata/targets/lock_order.c).

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::common::{Build, Lab, Process, run, test};

/// What the program says of a piece of work.
#[derive(Clone, Debug)]
struct Work {
    tid: i64,
    name: String,
    work: i64,
    lock: usize,
    waited: i64,
    acquired: i64,
    released: i64,
}

const SCHEMA: &str = r#"
provider = "lock_order"
[[probe]]
name = "work__start"
arguments = ["work: s32", "name: str"]
[[probe]]
name = "work__done"
arguments = ["work: s32"]
[[probe]]
name = "lock__acquire"
waits = "lock"
arguments = ["lock: ptr"]
[[probe]]
name = "lock__acquired"
acquires = "lock"
arguments = ["lock: ptr"]
[[probe]]
name = "lock__release"
releases = "lock"
arguments = ["lock: ptr"]
"#;

const ARGUMENTS: [&str; 3] = ["4", "40", "2"];

/// The program, and the options that record all its probes.
fn options(lab: &Lab) -> [String; 5] {
    let program = Build::USUAL.make(lab, "lock_order.c", "lock_order");
    std::fs::write(lab.file("locks.toml"), SCHEMA).expect("a file");
    let program = program.to_str().expect("a path").to_owned();
    let event = format!("lock_order:*@{program}");
    let schema = lab.file("locks.toml").to_str().expect("a path").to_owned();
    [
        "-e".to_owned(),
        event,
        "--schema".to_owned(),
        schema,
        program,
    ]
}

fn said(stdout: &str) -> Vec<Work> {
    let lines = stdout.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words.get(at)?.parse::<i64>().ok();
        Some(Work {
            tid: number(0)?,
            name: (*words.get(1)?).to_owned(),
            work: number(2)?,
            lock: usize::try_from(number(3)?).ok()?,
            waited: number(4)?,
            acquired: number(5)?,
            released: number(6)?,
        })
    });
    lines.collect()
}

/// Records the program; what it says.
#[track_caller]
fn record(lab: &Lab) -> Vec<Work> {
    let [e, event, schema, file, program] = options(lab);
    let mut record = lab.command([
        "record", "-m", "64M", "-o", "trace", &e, &event, &schema, &file, "--", &program,
    ]);
    record.args(ARGUMENTS);
    let recorded = run(record).success().complains(" 0 lost");
    let said = said(&recorded.stdout);
    assert_eq!(said.len(), 160);
    said
}

fn script(lab: &Lab, options: &[&str]) -> Vec<Value> {
    let fixed = ["script", "-i", "trace", "--format", "json"];
    let words = fixed.iter().chain(options);
    let printed = lab.usdtrec(words.copied()).success().stdout;
    let lines = printed.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// The groups of the spans of locks in a report.
fn groups(lab: &Lab, options: &[&str]) -> Vec<Value> {
    let report = ["report", "-i", "trace", "--format", "json"];
    let span = ["--span", "lock_order:lock"];
    let words = report.iter().chain(&span).chain(options);
    let printed = lab.usdtrec(words.copied()).success().stdout;
    let report: Value = serde_json::from_str(&printed).expect("JSON");
    report["spans"][0]["groups"]
        .as_array()
        .expect("groups")
        .clone()
}

/// Every event within a piece of work has its number and name; what comes after work that failed belongs to nothing that has ended.
#[test]
fn each_event_is_in_the_work_of_its_thread() {
    let lab = Lab::privileged();
    let said = record(&lab);
    let events = script(&lab, &["--with", "work"]);
    let mut hits: HashMap<(i64, String), usize> = HashMap::new();
    let mut checked = 0;
    for event in &events {
        let tid = event["tid"].as_i64().expect("a tid");
        let args = &event["args"];
        let name = event["event"].as_str().expect("a name");
        match name {
            "sdt_lock_order:work__start" => assert_eq!(args.get("work.work"), None, "{event}"),
            "sdt_lock_order:work__done" => assert_eq!(args["work.work"], args["work"], "{event}"),
            _ => {
                // A thread may be preempted between its clock and its probe: the times of two pieces of work tell nothing, their order does.
                let hits = hits.entry((tid, name.to_owned())).or_default();
                let mut of_thread = said.iter().filter(|work| work.tid == tid);
                let work = of_thread.nth(*hits).expect("work of the thread");
                *hits += 1;
                assert_eq!(args["work.work"], work.work, "{event}");
                assert_eq!(args["work.name"], *work.name, "{event}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 3 * said.len());
    // By the name of the work: each worker has as many.
    let groups = groups(&lab, &["--with", "work", "--by", "work.name"]);
    let counts: BTreeMap<&str, u64> = groups
        .iter()
        .map(|group| {
            let name = group["work.name"].as_str().expect("a name");
            (name, group["count"].as_u64().expect("a count"))
        })
        .collect();
    let names = ["worker-0", "worker-1", "worker-2", "worker-3"];
    assert_eq!(counts, BTreeMap::from(names.map(|name| (name, 40))));
}

/// Of each wait, how long each other piece of work had the lock meanwhile, as the program says, by thread.
fn held_meanwhile(said: &[Work], waiting: &Work) -> HashMap<i64, i64> {
    let mut held = HashMap::new();
    for other in said {
        if other.lock != waiting.lock || other.tid == waiting.tid {
            continue;
        }
        let from = other.acquired.max(waiting.waited);
        let until = other.released.min(waiting.acquired);
        if until > from {
            *held.entry(other.tid).or_default() += until - from;
        }
    }
    held
}

/// The holder of each wait is the thread that had the lock for the longest part of it, as the program says, with what it worked on then.
#[test]
fn who_held_the_lock() {
    let lab = Lab::privileged();
    let said = record(&lab);
    let options = [
        "--holders",
        "--with",
        "work",
        "-e",
        "lock_order:lock__acquired",
    ];
    let events = script(&lab, &options);
    assert_eq!(events.len(), said.len());
    let (mut waits, mut free) = (0, 0);
    for event in &events {
        let args = &event["args"];
        let work = said.iter().find(|work| args["work.work"] == work.work);
        let waiting = work.expect("its work");
        let mut held: Vec<(i64, i64)> = held_meanwhile(&said, waiting).into_iter().collect();
        held.sort_by_key(|(_, held)| -held);
        // What takes less than the probes themselves may be seen either way.
        let is_clear = |held: i64, next: i64| held - next > 200_000;
        let next = held.get(1).map_or(0, |(_, held)| *held);
        let Some(&(tid, blocked)) = held.first().filter(|(_, held)| is_clear(*held, next)) else {
            continue;
        };
        if blocked < 200_000 {
            free += 1;
            continue;
        }
        waits += 1;
        assert_eq!(args["holder.tid"], tid, "{event} {held:?}");
        let seen = args["holder.blocked"].as_i64().expect("a time");
        assert!((seen - blocked).abs() < 2_000_000, "{event} {held:?}");
        let holder = said
            .iter()
            .filter(|work| work.tid == tid && work.lock == waiting.lock);
        let mut holder = holder
            .filter(|work| work.released > waiting.waited && work.acquired < waiting.acquired);
        let is_of_holder = |work: &Work| {
            args["holder.work.work"] == work.work && args["holder.comm"] == *work.name
        };
        assert!(holder.any(is_of_holder), "{event}");
    }
    assert!(waits > 40, "{waits} waits, {free} without");

    // The sums by holder are those of the events.
    let groups = groups(&lab, &["--holders"]);
    for group in &groups {
        let same = events.iter().filter(|event| {
            ["holder.comm", "holder.tid"]
                .iter()
                .all(|key| event["args"][key] == group[key])
        });
        assert_eq!(group["count"], same.count(), "{group}");
    }
    let counted: u64 = groups
        .iter()
        .map(|group| group["count"].as_u64().expect("a count"))
        .sum();
    assert_eq!(counted, 160);
}

/// While it runs, events have the same as in a recording: what a thread is in is known when it begins.
#[test]
fn live() {
    let lab = Lab::privileged();
    let [e, event, schema, file, program] = options(&lab);
    let mut trace = lab.command([
        "trace",
        "-m",
        "64M",
        "--with",
        "work",
        "--holders",
        "--format",
        "json",
        &e,
        &event,
        &schema,
        &file,
        "-o",
        "lines",
        "--",
        &program,
    ]);
    trace.args(ARGUMENTS);
    let ended = Process::spawn(trace).finish().success();
    let said = said(&ended.stdout);
    assert_eq!(said.len(), 160, "{}", ended.stderr);
    let lines = std::fs::read_to_string(lab.file("lines")).expect("lines");
    let mut acquired = 0;
    let mut held = 0;
    for line in lines.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        if event["event"] != "sdt_lock_order:lock__acquired" {
            continue;
        }
        acquired += 1;
        let args = &event["args"];
        let work = said.iter().find(|work| args["work.work"] == work.work);
        let work = work.unwrap_or_else(|| panic!("{event}"));
        assert_eq!(event["tid"], work.tid, "{event}");
        held += usize::from(args["holder.tid"].is_i64());
    }
    assert_eq!(acquired, 160);
    assert!(held > 40, "{held}");
}
