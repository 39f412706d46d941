//! Files that stock perf writes here, in all its forms: we show the same events in the same order, with typed arguments.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::{Build, Event, Lab, Perf, Process, test};

/// The group of the event at the function `tell`.
const GROUP: &str = "stocked_lab";
/// What perf is asked to record.
const EVENTS: &str = "sdt_stocked:step,stocked_lab:tell";
/// A string and a number of two bytes from registers, as `perf probe` writes them.
const TELL: &str = "tell=tell text=+0(%di):string number=%si:s16";
const HITS: usize = 200;

fn program(lab: &Lab) -> PathBuf {
    Build::USUAL.make(lab, "stocked.c", "stocked")
}

/// What both scripts print of a file, without the ends of lines.
fn scripts(lab: &Lab, perf: &Perf<'_>, file: &str, fields: &[&str]) -> [Vec<String>; 2] {
    let options = [&["script", "-i", file][..], fields].concat();
    let theirs = perf.run(&options).success().stdout;
    let ours = lab.usdtrec(&options).success().stdout;
    [theirs, ours].map(|text| {
        let lines = text.lines().map(|line| line.trim_end().to_owned());
        lines.collect()
    })
}

#[track_caller]
fn same(lab: &Lab, perf: &Perf<'_>, file: &str, fields: &[&str]) -> usize {
    let [theirs, ours] = scripts(lab, perf, file, fields);
    let differing = theirs
        .iter()
        .zip(&ours)
        .find(|(theirs, ours)| theirs != ours);
    assert_eq!(differing, None, "perf's line, our line: {file} {fields:?}");
    assert_eq!(theirs.len(), ours.len(), "lines: {file} {fields:?}");
    ours.len()
}

/// Every argument of every event of a run of [`HITS`] rounds from `first` on.
#[track_caller]
fn check_arguments(events: &[Event], first: i64) {
    for (number, event) in events.iter().enumerate() {
        let at = first + number as i64 / 2;
        match event.event.as_str() {
            "sdt_stocked:step" => {
                let integers = [1, 2, 3].map(|number| event.integer(number));
                let expected = [i64::from(-at as i16), (200 + at) & 0xff, at << 32];
                assert_eq!(integers, expected.map(i128::from), "hit {at}");
                assert_eq!(event.argument_count(), 3, "the address is no argument");
            }
            "stocked_lab:tell" => {
                let text = match at % 3 {
                    0 => format!("\"quoted\"\n{}", at % 7),
                    _ => format!("text {}", at % 7),
                };
                assert_eq!(event.named("text"), &text, "hit {at}");
                assert_eq!(event.named("number"), -at, "hit {at}");
            }
            other => panic!("event {other}"),
        }
    }
}

/// Plain, compressed, piped, with call chains: the same lines, and the arguments that the program passed.
#[test]
fn every_form_shows_what_perf_shows() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = program(&lab);
    let mut probes = perf.plant(&program, "stocked", &["step"]);
    probes.add(&program, GROUP, TELL);
    let count = HITS.to_string();
    // What the program prints must not get into a pipe of perf's.
    let quiet = "exec \"$0\" \"$1\" > /dev/null";
    let run = ["sh", "-c", quiet, program.to_str().expect("a path"), &count];
    let record = |file: &str, options: &[&str]| {
        let start = ["record", "-q", "-B", "-e", EVENTS, "-o"];
        if file.starts_with("pipe") {
            perf.run_into(file, &[&start[..], &["-"], options, &["--"], &run].concat());
        } else {
            perf.run([&start[..], &[file], options, &["--"], &run].concat())
                .success();
        }
    };
    let forms: [(&str, &[&str]); 7] = [
        ("plain", &[]),
        ("packed", &["-z"]),
        ("pipe", &[]),
        ("pipe-packed", &["-z"]),
        ("chains", &["-g"]),
        ("pipe-chains", &["-g"]),
        ("stacks", &["--call-graph", "dwarf,512", "-m", "1024"]),
    ];
    for (file, options) in forms {
        record(file, options);
        let fields = ["--ns", "-F", "comm,tid,cpu,time,event"];
        // Of a pipe's events, perf shows callers that were not asked for.
        if file != "pipe-chains" {
            assert_eq!(same(&lab, &perf, file, &fields), 2 * HITS, "{file}");
        }
        assert_eq!(lab.events(file).len(), 2 * HITS, "{file}");
        check_arguments(&lab.events(file), 0);
        if !options.contains(&"-g") && file != "stacks" {
            same(
                &lab,
                &perf,
                file,
                &["-F", "comm,pid,tid,time,event,ip,sym,dso"],
            );
        }
    }
    for file in ["chains", "pipe-chains"] {
        check_chains(&lab, &perf, file);
    }
    check_text(&lab);
}

/// Head lines and the functions of every caller. The address before a function's name is the file's in perf 6.1 and the
/// process's from perf 7 on.
#[track_caller]
fn check_chains(lab: &Lab, perf: &Perf<'_>, file: &str) {
    let fields = ["-F", "comm,tid,time,event,ip,sym,symoff,dso"];
    let [theirs, ours] = scripts(lab, perf, file, &fields).map(|lines| {
        let without_address = |line: &String| match line.strip_prefix('\t') {
            Some(frame) => frame
                .split_whitespace()
                .skip(1)
                .collect::<Vec<_>>()
                .join(" "),
            None => line.clone(),
        };
        lines.iter().map(without_address).collect::<Vec<_>>()
    });
    assert_eq!(theirs, ours, "{file}");
    let functions = ours.iter().filter(|line| line.starts_with("tell+0x0 ("));
    assert_eq!(functions.count(), HITS, "{file}");
}

/// Text, CSV and report show the same as JSON.
#[track_caller]
fn check_text(lab: &Lab) {
    let text = lab.usdtrec(["script", "-i", "plain"]).success().stdout;
    for part in [
        "arg1=-1 arg2=201 arg3=4294967296\n",
        " text=\"\\\"quoted\\\"\\n3\" number=-3\n",
        " text=\"text 1\" number=-1\n",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let csv = lab
        .usdtrec(["script", "-i", "plain", "--format", "csv"])
        .success()
        .stdout;
    let head = csv.lines().next().expect("a header line");
    assert!(
        head.ends_with(",arg1,arg2,arg3,text,number,missing"),
        "{head}"
    );
    assert!(csv.contains(",-1,201,4294967296,,,\n"), "{csv}");
    let report = lab.usdtrec(["report", "-i", "plain"]).success().stdout;
    for part in ["s16", "u8", "str", "\"text 1\"", "min -199"] {
        assert!(report.contains(part), "{part} in\n{report}");
    }
    let grouped = lab
        .usdtrec([
            "report",
            "-i",
            "plain",
            "-n",
            "--sort",
            "text",
            "-e",
            "stocked_lab:tell",
        ])
        .success()
        .stdout;
    assert!(grouped.contains("text 1"), "{grouped}");
}

/// Events of other kinds: samples of the CPU's time and page faults, the kernel's tracepoints.
#[test]
fn events_of_other_kinds_are_shown() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = program(&lab);
    let path = program.to_str().expect("a path");
    let events = "cpu-clock,page-faults,sched:sched_process_exec,sched:sched_process_exit";
    for (file, options) in [("kinds", &[][..]), ("kinds-chains", &["-g"][..])] {
        let start = ["record", "-q", "-B", "-o", file, "-e", events];
        perf.run([&start[..], options, &["--", path, "20000"]].concat())
            .success();
        let lines = same(&lab, &perf, file, &["-F", "comm,tid,time,event"]);
        assert!(lines > 10, "{file}: {lines} lines");
        let text = lab
            .usdtrec(["script", "-i", file])
            .success()
            .silent()
            .stdout;
        let exec = text
            .lines()
            .find(|line| line.contains("sched:sched_process_exec: "))
            .expect("the program was executed");
        assert!(
            exec.contains(&format!(" filename=\"{path}\" pid=")),
            "{exec}"
        );
        let with_cpu = |line: &&str| line.contains("cpu-clock:") && line.contains('[');
        let invented = text
            .lines()
            .find(|line| with_cpu(line) && !line.starts_with('\t'));
        assert!(
            invented.is_none_or(|line| line
                .split(": ")
                .next()
                .is_some_and(|head| !head.contains('['))),
            "a CPU that was not sampled: {invented:?}"
        );
        lab.usdtrec(["report", "-i", file]).success();
        lab.usdtrec(["report", "-i", file, "--sort", "comm,dso,sym"])
            .success();
        lab.usdtrec(["script", "-i", file, "--format", "csv"])
            .success();
    }
}

/// Waits until a file has so many bytes.
#[track_caller]
fn wait_for_bytes(file: &Path, bytes: u64, mut meanwhile: impl FnMut()) {
    let deadline = Instant::now() + Duration::from_secs(240);
    while fs::metadata(file).map_or(0, |metadata| metadata.len()) < bytes {
        assert!(
            Instant::now() < deadline,
            "{} does not grow",
            file.display()
        );
        meanwhile();
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// perf killed while it records: every whole record is shown, of which perf itself shows none.
#[test]
fn what_a_killed_perf_wrote_is_shown() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = program(&lab);
    let probes = perf.plant(&program, "stocked", &["step"]);
    for (file, options) in [("killed", &[][..]), ("killed-packed", &["-z"][..])] {
        let mut target = Process::spawn(lab.at_home(&program, [""; 0]));
        let pid = target.pid().to_string();
        let start = [
            "record",
            "-q",
            "-B",
            "-o",
            file,
            "-e",
            "sdt_stocked:step",
            "-p",
            &pid,
        ];
        let recorder = Process::spawn(perf.command([&start[..], options].concat()));
        let mut rounds = 0;
        let mut round = || {
            target.say("500");
            while target.line().as_deref() != Some("done") {}
            rounds += 1;
        };
        wait_for_bytes(&lab.file(file), 4096, &mut round);
        // perf keeps samples in memory before it writes them, the longer the busier the machine is.
        let lines = || {
            let script = lab.usdtrec(["script", "-i", file, "-F", "comm,time,event"]);
            script.stdout.lines().count()
        };
        let deadline = Instant::now() + Duration::from_secs(240);
        while lines() <= 200 {
            assert!(Instant::now() < deadline, "perf writes no samples");
            round();
        }
        recorder.signal("KILL");
        recorder.finish();
        target.finish().success();
        let shown = lab
            .usdtrec(["script", "-i", file, "-F", "comm,time,event"])
            .success()
            .complains("killed");
        let lines = shown.stdout.lines().count();
        assert!(
            lines > 200 && lines <= rounds * 500,
            "{file}: {lines} of {rounds} rounds"
        );
        assert!(
            shown
                .stdout
                .lines()
                .all(|line| line.trim_start().starts_with("stocked "))
        );
    }
    drop(probes);
}

/// A program that takes memory and CPU.
fn busy(lab: &Lab) -> PathBuf {
    let source = "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 60; i++) { volatile char *p = malloc(1 << 20);\n\
                  for (int k = 0; k < 1 << 20; k += 4096) p[k] = i; for (volatile int j = 0; j < 3000000; j++); free((void *)p); }\n\
                  return 0; }\n";
    fs::write(lab.file("busy.c"), source).expect("a file");
    let mut compiler = std::process::Command::new("gcc");
    compiler
        .args(["-O1", "-o"])
        .arg(lab.file("busy"))
        .arg(lab.file("busy.c"));
    crate::common::run(compiler).success();
    lab.file("busy")
}

/// Of samples that read a group, the events of its leader are shown, which is said once.
#[test]
fn a_group_that_is_read_with_its_leader_is_the_leader_alone() {
    let lab = Lab::new();
    let trace = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/testdata/traces/group-7.3.data"
    );
    let script = ["script", "-F", "period,event", "-i", trace];
    let shown = lab.usdtrec(script).success();
    let said = "only the events of its leader are shown";
    assert_eq!(shown.stderr.matches(said).count(), 1, "{}", shown.stderr);
    let leader = ["1", "sdt_requests:request__start:"];
    for line in shown.stdout.lines() {
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), leader);
    }
    assert_eq!(shown.stdout.lines().count(), 120);
    // What is copied for other programs is as perf wrote it.
    let export = ["export", "-i", trace, "--to", "perf", "-o", "copied"];
    lab.usdtrec(export).success();
    let copied = lab.usdtrec(["script", "-F", "period,event", "-i", "copied"]);
    assert_eq!(copied.success().stdout, shown.stdout);
}

/// The microseconds of a line of `script -F tid,cpu,time,event`.
fn time_of(line: &str) -> u64 {
    let time = line.split_whitespace().nth(2).expect("a time");
    let digits: String = time.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// The directories of `perf record --threads`: a header, and the records of each CPU.
#[test]
fn directories_of_threads() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = busy(&lab);
    let program = program.to_str().expect("a path in UTF-8");
    for (directory, more) in [("plain", &[][..]), ("packed", &["-z"][..])] {
        let record = [
            "record",
            "-q",
            "--threads",
            "-a",
            "-e",
            "cpu-clock",
            "-F",
            "500",
            "-o",
        ];
        perf.run([&record[..], &[directory], more, &["--", program]].concat())
            .success();
        let fields = ["-F", "tid,cpu,time,event"];
        let [mut theirs, mut ours] = scripts(&lab, &perf, directory, &fields);
        assert!(ours.is_sorted_by_key(|line| time_of(line)));
        // Samples of one microsecond on two CPUs have no order.
        theirs.sort_by_key(|line| (time_of(line), line.clone()));
        ours.sort_by_key(|line| (time_of(line), line.clone()));
        assert!(!ours.is_empty());
        assert_eq!(theirs, ours, "perf's lines, our lines: {directory}");
        assert!(lab.file(directory).join("data.0").exists());
    }
    // One file of it alone says that the others are missing.
    lab.usdtrec(["script", "-i", "plain/data"])
        .complains("open the directory");
    fs::create_dir(lab.file("empty")).expect("a directory");
    lab.usdtrec(["script", "-i", "empty"])
        .exits(1)
        .complains("without the file \"data\"");
}
