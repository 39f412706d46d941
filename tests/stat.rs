//! `stat`: counts that the kernel makes are those of the program, and those of `report` on a recording of the same run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Build, Lab, Process, Recorder, Ticker, test, wait_until};

/// A `stat` that has begun.
struct Stat(Process);

impl Stat {
    fn start(lab: &Lab, arguments: &[&str]) -> Self {
        let words = ["stat", "--format", "json"].iter().chain(arguments);
        let mut stat = Process::spawn(lab.command(words));
        stat.until_error_line("[ usdtrec stat:");
        Self(stat)
    }

    fn end(self) -> Vec<Value> {
        self.0.signal("INT");
        lines(&self.0.finish().success().stdout)
    }
}

fn lines(json: &str) -> Vec<Value> {
    let lines = json.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// The sums of the counts of all lines, by event. Nothing is lost.
fn counts(lines: &[Value]) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    for line in lines {
        assert_eq!(line["lost"], 0, "{line}");
        let event = line["event"].as_str().expect("a name");
        *counts.entry(event).or_insert(0) += line["count"].as_u64().expect("a count");
    }
    counts
}

fn event(provider: &str, name: &str, program: &Path) -> String {
    format!("sdt_{provider}:{name}@{}", program.display())
}

/// Threads, children and programs that children execute are counted, and probes that a semaphore guards; each hit in one interval.
#[test]
fn counts_are_those_of_the_program() {
    for engine in ["bpf-multi", "bpf-perf"] {
        let lab = Lab::privileged();
        let mut target = Ticker::start(&lab);
        let (pid, all) = (target.pid().to_string(), target.event("*"));
        let common = ["--engine", engine, "-p", &pid, "-e", &all];
        let once = Stat::start(&lab, &common);
        let often = Stat::start(&lab, &[&common[..], &["-I", "50"]].concat());
        let recorder = Recorder::start(&lab, [&common[..], &["-o", "trace"]].concat());
        let mut passed = 0;
        for command in ["fire 3", "thread 40", "fork 500", "exec 20", "fire 6"] {
            passed += target.hit(command).len() as u64;
        }
        target.tell("guarded 7");
        let once = once.end();
        assert_eq!(once.len(), 2, "a line for each probe: {once:?}");
        assert_eq!(once[0]["event"], "sdt_ticker:tick", "the most hits first");
        let right = BTreeMap::from([("sdt_ticker:tick", passed), ("sdt_ticker:guarded", 7)]);
        assert_eq!(counts(&once), right, "{engine}");
        let often = often.end();
        assert!(often.len() > 2, "several intervals: {often:?}");
        assert_eq!(counts(&often), right, "{engine}");
        recorder.stop();
        let recorded = lab.events("trace").len() as u64;
        assert_eq!(recorded, passed + 7, "what record has of the same run");
        wait_until("the removal of the probes", || {
            target.semaphores() == (0, 0)
        });
    }
}

/// Two threads on two CPUs, and one that is moved from CPU to CPU all the time: no count is lost, at whatever rate.
#[test]
fn no_count_is_lost_under_load() {
    let lab = Lab::privileged();
    let hot = Build::USUAL.make(&lab, "hot.c", "hot");
    let mut stat = lab.command(["stat", "-x,", "-e", &event("hot", "req", &hot), "--"]);
    stat.arg(&hot).args(["500000", "2"]);
    let mut stat = Process::spawn(stat);
    stat.say("go");
    let ended = stat.finish().success();
    let row = ended.stdout.lines().nth(1).expect("a row");
    let cells: Vec<&str> = row.split(',').collect();
    assert_eq!(cells[2..4], ["sdt_hot:req", "1000000"], "{}", ended.stdout);
    assert!(
        ended.stderr.contains("1000000 events, 0 lost"),
        "{}",
        ended.stderr
    );
    let moved = Build::USUAL.make(&lab, "migrating.c", "migrating");
    let words = [
        "stat",
        "--format",
        "json",
        "-e",
        &event("migrating", "hit", &moved),
        "--",
    ];
    let mut stat = lab.command(words);
    stat.arg(&moved).arg("300000");
    let lines = lines(&Process::spawn(stat).finish().success().stdout);
    assert_eq!(counts(&lines), [("sdt_migrating:hit", 300_000)].into());
}

/// Filters are the program's: of numbers, and of strings. What `report` counts of a recording of the same run is the same.
#[test]
fn filters_are_those_of_record() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "preempted.c", "preempted");
    let even = event("preempted", "even", &program);
    let odd = event("preempted", "odd", &program);
    let path = program.to_str().expect("a path");
    let what = [
        "-e",
        &even,
        "--filter",
        "arg3 == \"thread 2\" || arg2 < 10",
        "-e",
        &odd,
        "--filter",
        "arg2 >= 3000100",
        "--",
        path,
        "6",
        "1000",
    ];
    let stat = lab.usdtrec([&["stat", "--format", "json"][..], &what].concat());
    let counted = lines(&stat.success().stdout);
    // Of threads 0, 2 and 4 the first ten each and all others of thread 2; of thread 3 all but the first hundred, and all of thread 5.
    let right = [("sdt_preempted:even", 1020), ("sdt_preempted:odd", 1900)];
    assert_eq!(counts(&counted), right.into());
    lab.usdtrec([&["record", "-o", "trace"][..], &what].concat())
        .success();
    let report = lab
        .usdtrec(["report", "-i", "trace", "--format", "json"])
        .success();
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let probes = report["probes"].as_array().expect("probes");
    let of_report = probes.iter().map(|probe| {
        let event = probe["event"].as_str().expect("a name");
        (event, probe["count"].as_u64().expect("a count"))
    });
    assert_eq!(counts(&counted), of_report.collect());
}

/// Programs that begin while it counts, without an index.
#[test]
fn programs_that_begin_later_are_counted() {
    let lab = Lab::privileged();
    let build = Build {
        options: &["-DPROVIDER=counted_late"],
        ..Build::USUAL
    };
    let program: PathBuf = build.make(&lab, "running.c", "running");
    let mut stat = Stat::start(&lab, &["-a", "-I", "50", "-e", "counted_late:hit"]);
    let mut process = Process::spawn(Command::new(&program));
    let mut hit = |count: u32| {
        process.say(&count.to_string());
        process.line().expect("how often it did");
    };
    let (mut before, mut seen) = (0, Vec::new());
    // The file is found while it runs: what it hits from then on is counted.
    while seen.last().is_none_or(|line: &Value| line["count"] == 0) {
        hit(1);
        before += 1;
        seen.extend(lines(&stat.0.line().expect("an interval")));
    }
    hit(1000);
    seen.extend(stat.end());
    let count = counts(&seen)["sdt_counted_late:hit"];
    assert!((1001..=1000 + before).contains(&count), "{seen:?}");
}

/// A probe without a hit has a row, and the reason.
#[test]
fn nothing_is_counted_and_explained() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let tick = event("ticker", "tick", &program);
    let ended = lab.usdtrec(["stat", "-e", &tick, "--", "true"]).success();
    assert!(
        ended.stdout.contains("ticker:tick       0  0.00     0"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stderr.contains("no recorded process"),
        "{}",
        ended.stderr
    );
}

/// A recorder that is killed leaves nothing.
#[test]
fn a_killed_one_leaves_nothing() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let (pid, tick) = (target.pid().to_string(), target.event("tick"));
    let stat = Stat::start(&lab, &["-p", &pid, "-e", &tick]);
    target.hit("fire 3");
    stat.0.signal("KILL");
    stat.0.finish();
    wait_until("the removal of the probes", || {
        target.semaphores() == (0, 0)
    });
    lab.usdtrec(["doctor"]).success();
}

/// What has no effect on counts, or cannot be counted in the kernel, is refused by name.
#[test]
fn what_has_no_effect_is_refused() {
    let lab = Lab::privileged();
    let target = Ticker::start(&lab);
    let (pid, tick) = (target.pid().to_string(), target.event("tick"));
    let listed = tick.replace('@', "(number=arg1)@");
    let cases: [(&[&str], &str); 9] = [
        (
            &["-e", &tick, "--engine", "perf"],
            "stat needs the bpf engine",
        ),
        (
            &["-e", &tick, "-m", "4M"],
            "-m, --mmap-pages: hits are not written to rings",
        ),
        (
            &["-e", &listed],
            "stat without --by, --value, --hist and --span shows no arguments",
        ),
        (
            &["-e", &tick, "-I", "5"],
            "--interval: expected at least 10ms",
        ),
        (&["-e", &tick, "--strlen", "5"], "<--filter <EXPR>|"),
        (&["-e", &tick, "-x;"], "[possible values: ,]"),
        (&["-e", &tick, "--by", "sym"], "--by sym: stat counts by"),
        (
            &["-e", &tick, "--span", "tick..tick", "--by", "cpu"],
            "use report --span NAME --by cpu",
        ),
        (
            &["-e", &tick, "--by", "arg9"],
            "no probe has an argument arg9",
        ),
    ];
    for (words, reason) in cases {
        let words = [&["stat", "-p", &pid][..], words].concat();
        lab.usdtrec(words).exits(2).complains(reason);
    }
    let float = ["--filter", "arg1 * 0.5 > 2"];
    let words = [&["stat", "-p", &pid, "-e", &tick][..], &float].concat();
    lab.usdtrec(words)
        .exits(2)
        .complains("filter of sdt_ticker:tick");
}

/// Keys of `report` that `stat` does not count by are no arguments.
#[test]
fn other_keys_of_report_are_refused() {
    let lab = Lab::new();
    for key in ["cgroup", "cpu", "build-id", "caller", "stack:script"] {
        lab.usdtrec(["stat", "-e", "x:y", "--by", key])
            .exits(2)
            .complains(&format!("use report --sort {key}"));
    }
}

/// The rows of `report --sort`, as those of `stat`.
fn of_report(lab: &Lab, event: &str, keys: &[&str]) -> BTreeMap<String, u64> {
    let words = [
        "report", "-i", "trace", "--format", "csv-raw", "-e", event, "--sort",
    ];
    let sort = keys.join(",");
    let report = lab.usdtrec(words.iter().chain(&[sort.as_str()])).success();
    let mut lines = report
        .stdout
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let heading = lines.next().expect("a heading");
    let place = |name: &str| heading.iter().position(|column| *column == name);
    let places = keys.iter().map(|key| place(key).expect("the key"));
    let places: Vec<usize> = places.collect();
    let samples = place("samples").expect("a count");
    let rows = lines.map(|cells| {
        let values: Vec<&str> = places.iter().map(|place| cells[*place]).collect();
        (values.join(","), cells[samples].parse().expect("a number"))
    });
    rows.collect()
}

/// The groups of the CSV of `stat`; no hits are in none.
fn groups(csv: &str, keys: usize) -> BTreeMap<String, u64> {
    let rows = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect::<Vec<_>>());
    let rows = rows.map(|cells| {
        assert_eq!(cells[3 + keys], "", "{csv}");
        let count = cells[4 + keys].parse().expect("a number");
        (cells[3..3 + keys].join(","), count)
    });
    rows.collect()
}

/// Threads on all CPUs, with numbers and strings as keys, of sites with other layouts: the groups are those of `report`.
#[test]
fn groups_are_those_of_report() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "preempted.c", "preempted");
    let path = program.to_str().expect("a path");
    let even = event(
        "preempted",
        "even(thread=arg1,number=arg2,text=str(arg3))",
        &program,
    );
    let odd = event("preempted", "odd(text=str(arg1))", &program);
    let run = ["--", path, "6", "2000"];
    let what = ["-e", &even, "-e", &odd];
    let cases: [&[&str]; 4] = [
        &["text"],
        &["thread", "text"],
        &["comm", "uid"],
        &["number"],
    ];
    lab.usdtrec([&["record", "-o", "trace"][..], &what, &run].concat())
        .success();
    for keys in cases {
        let by = ["--by", &keys.join(",")];
        let words = [&["stat", "--format", "csv-raw"][..], &by, &what, &run].concat();
        let stat = lab.usdtrec(words).success().stdout;
        let of_event = |event: &str| {
            let lines = stat.lines().enumerate();
            let lines = lines.filter(|(number, line)| *number == 0 || line.contains(event));
            let lines: Vec<&str> = lines.map(|(_, line)| line).collect();
            groups(&lines.join("\n"), keys.len())
        };
        let counted = of_event("sdt_preempted:even");
        assert_eq!(counted, of_report(&lab, "preempted:even", keys), "{stat}");
        assert_eq!(counted.values().sum::<u64>(), 6000);
        let counted = of_event("sdt_preempted:odd");
        assert_eq!(counted.values().sum::<u64>(), 6000, "{stat}");
        if keys == ["text"] {
            let right = ["thread 1", "thread 3", "thread 5"].map(|text| (text.to_owned(), 2000));
            assert_eq!(counted, right.into());
        }
    }
}

/// More keys than the map has room for: what is in no group is said, and nothing is lost.
#[test]
fn hits_beyond_the_last_group_are_others() {
    let lab = Lab::privileged();
    let hot = Build::USUAL.make(&lab, "hot.c", "hot");
    let words = [
        "stat",
        "--format",
        "json",
        "--by",
        "arg1",
        "-e",
        &event("hot", "req", &hot),
        "--",
    ];
    let mut stat = lab.command(words);
    stat.arg(&hot).args(["80000", "2"]);
    let mut stat = Process::spawn(stat);
    stat.say("go");
    let ended = stat.finish().success();
    let lines = lines(&ended.stdout);
    let (others, groups): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line["others"] == true);
    assert_eq!((groups.len(), others.len()), (65_536, 1));
    let sum = |lines: &[&Value]| -> u64 {
        lines
            .iter()
            .map(|line| line["count"].as_u64().expect("a count"))
            .sum()
    };
    assert_eq!(sum(&others) + sum(&groups), 160_000);
    assert!(
        ended.stderr.contains("160000 events, 0 lost"),
        "{}",
        ended.stderr
    );
}

/// Strings of which only the beginning is compared are marked, and those of equal beginnings are one group.
#[test]
fn keys_that_are_cut_are_marked() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "preempted.c", "preempted");
    let odd = event("preempted", "odd(text=str(arg1))", &program);
    let path = program.to_str().expect("a path");
    let words = [
        "stat", "--format", "json", "--by", "text", "--strlen", "6", "-e", &odd, "--", path, "4",
        "100",
    ];
    let groups = lines(&lab.usdtrec(words).success().stdout);
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(groups[0]["text"], "thread");
    assert_eq!(groups[0]["cut"]["text"], true);
    assert_eq!(groups[0]["count"], 200);
    // A report of a recording says the same.
    let record = [
        "record", "-o", "trace", "--strlen", "6", "-e", &odd, "--", path, "4", "100",
    ];
    lab.usdtrec(record).success();
    let report = ["report", "-i", "trace", "--sort", "text"];
    let text = lab.usdtrec(report).success().stdout;
    assert!(text.contains("thread…"), "{text}");
    let json = [&report[..], &["--format", "json"]].concat();
    let groups = lines(&lab.usdtrec(json).success().stdout);
    assert_eq!(groups[0]["text"], "thread");
    assert_eq!(groups[0]["cut"]["text"], true);
    let csv = [&report[..], &["--format", "csv"]].concat();
    let csv = lab.usdtrec(csv).success().stdout;
    assert!(csv.contains("thread…"), "{csv}");
}

/// Memory that is not resident is brought in, and the key is written again.
#[test]
fn keys_are_read_from_memory_that_is_not_resident() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "absent.c", "absent");
    let text = event("absent", "text(t=str(arg1))", &program);
    let words = ["stat", "--format", "json", "--by", "t", "-e", &text, "--"];
    let mut stat = lab.command(words);
    stat.arg(&program).args(["file", "1", "2", "1"]);
    let mut stat = Process::spawn(stat);
    stat.say("");
    let groups = lines(&stat.finish().success().stdout);
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(groups[0]["t"], "served at last");
    assert_eq!(groups[0]["count"], 2);
}
