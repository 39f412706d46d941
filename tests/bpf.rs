//! The bpf engine: strings, losses, who is recorded, programs that are killed, and what stock perf makes of its samples.

use std::path::Path;
use std::process::Command;

use crate::common::{
    Build, Engine, Event, Hit, Lab, Perf, Process, Recorder, Ticker, judge, need_tool, run,
    sites_of, test,
};
use crate::held_children::{RAN_BEFORE, until_fast_enough};

/// Records testdata/targets/strings.c and gives the lines of `script` with the arguments only, by the probe's name.
#[track_caller]
fn strings(lab: &Lab, options: &[&str]) -> Vec<(String, String)> {
    let program = Build::USUAL.make(lab, "strings.c", "strings");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("strings:*@{path}");
    let mut record = vec!["record", "-o", "trace", "-e", &event];
    if !options.contains(&"--engine") {
        record.extend(["--engine", "bpf"]);
    }
    record.extend(options);
    record.extend(["--", path]);
    let recorded = lab.usdtrec(record).success();
    let script = lab
        .usdtrec(["script", "-F", "event,args", "-i", "trace"])
        .success()
        .stdout;
    assert_eq!(recorded.stdout.lines().count(), 18);
    let mut lines = Vec::new();
    for (printed, shown) in recorded.stdout.lines().zip(script.lines()) {
        let (name, address) = printed.split_once(' ').expect("NAME ADDRESS");
        let (event, arguments) = shown.split_once(": ").expect("EVENT: ARGUMENTS");
        assert_eq!(event.trim(), format!("sdt_strings:{name}"));
        let (_, value) = arguments.split_once("arg1=7 arg2=").expect("two arguments");
        let hexadecimal = format!("{:#x}", address.parse::<u64>().expect("a number"));
        // Addresses differ from run to run; that of the null pointer is 0.
        let mut value = value.to_owned();
        if name != "null" {
            value = value
                .replace(address, "ADDRESS")
                .replace(&hexadecimal, "ADDRESS");
        }
        lines.push((name.to_owned(), value));
    }
    lines
}

/// Without any knowledge of types, what looks like a string is shown as one, and nothing else is. What may be no string at all is not
/// brought in, if it is not resident.
#[test]
fn strings_at_pointers() {
    let lab = Lab::privileged();
    for engine in [Engine::BpfMulti, Engine::BpfPerf] {
        let lines = strings(&lab, &["--engine", engine.option()]);
        let quoted = |letter: &str, times| format!("\"{}\"", letter.repeat(times));
        let expected: [(&str, String); 18] = [
            ("plain", "\"/index.html\"".to_owned()),
            ("empty", "ADDRESS".to_owned()),
            ("untouched", "\"never touched before\"".to_owned()),
            ("crossing", "\"crosses\"".to_owned()),
            ("dropped", "ADDRESS".to_owned()),
            ("edge", "\"edged\"".to_owned()),
            ("null", "0".to_owned()),
            ("forbidden", "ADDRESS".to_owned()),
            ("unterminated", "ADDRESS".to_owned()),
            ("control", r#""a\tb\nc\\d\"e\x1b[0m""#.to_owned()),
            ("utf8", "\"größe\"".to_owned()),
            ("binary", "ADDRESS".to_owned()),
            ("exact16", quoted("e", 16)),
            ("over16", quoted("o", 17)),
            ("exact256", quoted("E", 256)),
            ("over256", quoted("O", 256) + "…"),
            ("long4096", quoted("L", 256) + "…"),
            ("long5000", quoted("M", 256) + "…"),
        ];
        for (line, expected) in lines.iter().zip(expected) {
            // The number stays beside what only looks like a string.
            let (name, mut expected) = expected;
            if expected.starts_with('"') {
                expected = format!("ADDRESS {expected}");
            }
            // Whether these are resident is up to the kernel, which maps pages near one that is touched.
            if matches!(line.0.as_str(), "untouched" | "crossing") && line.1 == "ADDRESS" {
                continue;
            }
            assert_eq!((line.0.as_str(), &line.1), (name, &expected), "{engine:?}");
        }
    }
}

/// The hit alone decides whether an argument is a string, and the number stays beside it: a number in memory may look like one.
#[test]
fn guesses_keep_the_number() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "guesses.c", "guesses");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("guesses:*@{path}");
    let record = [
        "record", "-o", "trace", "--engine", "bpf", "-e", &event, "--", path,
    ];
    let recorded = lab.usdtrec(record).success().stdout;
    let numbers: Vec<u64> = recorded
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    let shown = lab.usdtrec(["script", "-F", "args", "-i", "trace"]);
    let shown = shown.success().stdout;
    let text = |text, number| format!("arg1={number:#x} \"{text}\"");
    let expected = [
        // The number 33.
        text("!", numbers[0]),
        text("/index", numbers[1]),
        text("/login", numbers[2]),
        text("/logout", numbers[3]),
        text("GET", numbers[4]),
    ];
    let lines = shown.lines().map(|line| {
        let (_, arguments) = line.split_once(") ").expect("an address, then arguments");
        arguments.trim()
    });
    assert_eq!(lines.collect::<Vec<_>>(), expected);
    let json = lab.usdtrec(["script", "--format", "json", "-i", "trace"]);
    let json = json.success().stdout;
    let first = json.lines().next().expect("a line");
    assert!(
        first.contains(&format!(
            r#""args":{{"arg1":"!"}},"numbers":{{"arg1":{}}}"#,
            numbers[0]
        )),
        "{first}"
    );
    let last = json.lines().last().expect("a line");
    let both = format!(
        r#""args":{{"arg1":"GET"}},"numbers":{{"arg1":{}}}"#,
        numbers[4]
    );
    assert!(last.contains(&both), "{last}");
}

/// A string in quotes, with the mark of one that is longer than the limit.
fn cut_at(limit: usize, text: &str) -> String {
    match text.get(..limit) {
        Some(kept) if kept.len() < text.len() => format!("\"{kept}\"…"),
        _ => format!("\"{text}\""),
    }
}

/// Taken for strings: empty, cut and unreadable ones are three different things.
#[test]
fn empty_cut_and_unreadable_strings_differ() {
    let lab = Lab::privileged();
    for limit in [16_usize, 4096] {
        let limit_text = limit.to_string();
        let lines = strings(&lab, &["--strings", "all", "--strlen", &limit_text]);
        let string_of = |name: &str| {
            let line = lines.iter().find(|(line, _)| line == name);
            line.unwrap_or_else(|| panic!("no {name}")).1.as_str()
        };
        assert_eq!(string_of("empty"), "\"\"");
        // What is not resident is brought in.
        assert_eq!(
            string_of("untouched"),
            cut_at(limit, "never touched before")
        );
        assert_eq!(string_of("crossing"), "\"crosses\"");
        assert_eq!(string_of("dropped"), "\"from a file\"");
        assert_eq!(string_of("edge"), "\"edged\"");
        assert_eq!(string_of("null"), "NULL");
        for unreadable in ["forbidden", "unterminated"] {
            assert_eq!(string_of(unreadable), "<fault ADDRESS>");
        }
        assert_eq!(string_of("binary"), r#""\x01\x02\x03""#);
        assert_eq!(string_of("exact16"), "\"eeeeeeeeeeeeeeee\"");
        let cut = |letter: &str, times: usize| {
            let kept = letter.repeat(times.min(limit));
            let mark = if times > limit { "…" } else { "" };
            format!("\"{kept}\"{mark}")
        };
        assert_eq!(string_of("over16"), cut("o", 17));
        assert_eq!(string_of("exact256"), cut("E", 256));
        assert_eq!(string_of("long4096"), cut("L", 4096));
        assert_eq!(string_of("long5000"), cut("M", 5000));
    }
}

/// Stock perf prints our arguments by name, strings on one line included, and groups by them.
#[test]
fn stock_perf_prints_the_arguments() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    strings(&lab, &["--strings", "all"]);
    let script = perf
        .run(["script", "-i", "trace", "-F", "comm,event,trace"])
        .success()
        .stdout;
    let lines: Vec<&str> = script.lines().collect();
    assert_eq!(lines.len(), 18, "{script}");
    assert!(
        lines[0].contains("sdt_strings:plain: arg1=7 arg2=0x"),
        "{script}"
    );
    assert!(lines[0].contains("arg2_str=\"/index.html\""), "{script}");
    assert!(
        lines[9].contains(r#"arg2_str="a\tb\nc\\d"e\x1b[0m""#),
        "{script}"
    );
    let report = perf
        .run(["report", "--stdio", "-n", "-s", "arg2_str", "-i", "trace"])
        .success()
        .stdout;
    assert!(
        report.contains("100.00%             1  \"/index.html\""),
        "{report}"
    );
    let python = lab.file("print.py");
    std::fs::write(
        &python,
        "def trace_begin():\n    pass\ndef sdt_strings__plain(name, context, cpu, s, ns, pid, comm, callchain, *fields):\n    print('got', fields)\n",
    )
    .expect("a file");
    let python = perf.run([
        "script".as_ref(),
        "-i".as_ref(),
        "trace".as_ref(),
        "-s".as_ref(),
        python.as_os_str(),
    ]);
    if !python.stderr.contains("not supported") {
        assert!(python.stdout.contains("got"), "{python:?}");
        assert!(python.stdout.contains("/index.html"), "{python:?}");
    }
}

/// Every argument of a narrow signed type is printed by stock perf with its sign.
#[test]
fn stock_perf_prints_signs() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = Build::USUAL.make(&lab, "operands.c", "operands");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("sdt_shapes:narrow_signed@{path}");
    lab.usdtrec(["record", "-o", "trace", "-e", &event, "--", path])
        .success();
    let script = perf
        .run(["script", "-i", "trace", "-F", "trace"])
        .success()
        .stdout;
    let first = script.lines().next().expect("a line").trim();
    assert!(
        first.starts_with("arg1=-100 arg2=-30000 arg3=-2000000000 arg4=-9000000000000000000"),
        "{script}"
    );
}

/// Counter and thread of each recorded tick, as the ticker prints them.
fn ticks(events: &[Event]) -> Vec<(i128, i128)> {
    let tick = |event: &Event| (event.integer(1), event.integer(2));
    events.iter().map(tick).collect()
}

/// `-a`, `-p`, `-t` and `-C` mean the same whatever captures.
#[test]
fn who_is_recorded_does_not_depend_on_the_engine() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let mut stranger = Ticker::again(target.program());
    let tid = target.keep_thread().to_string();
    let (pid, event) = (target.pid().to_string(), target.event("tick"));
    for engine in Engine::ALL {
        let options = |who: &'static [&'static str]| {
            let mut all = vec![
                "--strings=off",
                "--engine",
                engine.option(),
                "-o",
                "trace",
                "-e",
                &event,
            ];
            all.extend(who);
            all
        };
        let record = |who: Vec<&str>| Recorder::start(&lab, who);
        let recorder = record(options(&["-a"]));
        let mut printed = target.hit("fire 5");
        printed.extend(stranger.hit("fire 6"));
        recorder.stop().complains("11 events");
        assert_eq!(ticks(&lab.events("trace")), printed, "-a, {engine:?}");

        let mut threads = options(&["-t"]);
        threads.push(&tid);
        let recorder = record(threads);
        target.hit("fire 5");
        let printed = target.hit("kept 6");
        stranger.hit("fire 5");
        recorder.stop();
        assert_eq!(ticks(&lab.events("trace")), printed, "-t, {engine:?}");

        let mut processes = options(&["-p"]);
        processes.push(&pid);
        if engine == Engine::PerfPmu {
            let mut command = lab.command(["record"]);
            command.args(processes);
            run(command)
                .exits(2)
                .complains("cannot follow threads and children");
            continue;
        }
        let recorder = record(processes);
        let mut printed = Vec::new();
        for command in ["fire 5", "kept 6", "thread 7", "fork 8", "exec 9"] {
            printed.extend(target.hit(command));
            stranger.hit("fire 5");
        }
        recorder.stop();
        assert_eq!(ticks(&lab.events("trace")), printed, "-p, {engine:?}");
    }
}

/// Hits on other CPUs do not count.
#[test]
fn one_cpu_with_every_engine() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    for engine in Engine::ALL {
        let event = target.event("tick");
        let options = [
            "--engine",
            engine.option(),
            "-a",
            "-C",
            "1",
            "-o",
            "trace",
            "-e",
            &event,
        ];
        target.run_on(0);
        let recorder = Recorder::start(&lab, options);
        target.hit("fire 7");
        target.run_on(1);
        let printed = target.hit("fire 8");
        recorder.stop();
        assert_eq!(ticks(&lab.events("trace")), printed, "{engine:?}");
    }
}

/// A child is recorded from its first hit, and a process id that is used anew is a stranger: children come and go fast.
#[test]
fn children_from_their_first_hit() {
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let program = ticker.program().to_str().expect("a path").to_owned();
    let event = ticker.event("tick");
    let script = format!("for i in $(seq 100); do {program} 1 & {program} 2; done; wait");
    until_fast_enough(|| {
        let recorded = lab
            .usdtrec([
                "record", "-o", "trace", "-e", &event, "--", "sh", "-c", &script,
            ])
            .success();
        assert_eq!(recorded.stdout.lines().count(), 300);
        let is_slow = recorded.stderr.contains(RAN_BEFORE);
        if !is_slow {
            recorded.complains("300 events");
        }
        !is_slow
    });
}

/// A program that does not fit the ring loses hits, each of which is counted at its probe.
#[test]
fn every_loss_is_counted_at_its_probe() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    for engine in [Engine::BpfMulti, Engine::BpfPerf] {
        let mut command = Command::new(&program);
        command.args(["200000", "2"]);
        let mut hot = Process::spawn(command);
        let event = format!("sdt_hot:req@{}", program.display());
        let options = [
            "--engine",
            engine.option(),
            "-m",
            "1",
            "-a",
            "-o",
            "trace",
            "-e",
            &event,
        ];
        let recorder = Recorder::start(&lab, options);
        hot.say("go");
        hot.finish().success();
        let told = recorder.stop().stderr;
        let report = lab
            .usdtrec(["report", "--format", "json", "-i", "trace"])
            .success()
            .stdout;
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        let number = |value: &serde_json::Value| value.as_u64().expect("a number");
        let (events, lost) = (number(&report["events"]), number(&report["lost"]));
        assert!(lost > 0, "a ring of one page must overflow: {told}");
        assert_eq!(events + lost, 400_000, "{told}");
        assert_eq!(number(&report["probes"][0]["lost"]), lost);
        assert_eq!(lab.events("trace").len() as u64, events);
    }
}

/// The largest rings have room for all hits of a burst, whenever they are drained.
#[test]
fn the_largest_rings_lose_nothing() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    let event = format!("sdt_hot:req@{}", program.display());
    let mut command = Command::new(&program);
    command.args(["100000", "2"]);
    let mut hot = Process::spawn(command);
    let options = ["-m", "1G", "-a", "-o", "trace", "-e", &event];
    let recorder = Recorder::start(&lab, options);
    recorder.signal("STOP");
    hot.say("go");
    hot.finish().success();
    recorder.signal("CONT");
    recorder.stop().complains("200000 events, 0 lost");
}

/// Kernels that make calls of breakpoints on 5-byte nops overwrite what leaf functions keep below the stack pointer, too: such
/// sites are refused, all others are recorded, and the program computes what it does unobserved.
#[test]
fn calls_in_place_of_nops_damage_nothing() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "nops.c", "nops");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("nops:*@{path}");
    for engine in Engine::ALL {
        let recorded = lab
            .usdtrec(engine.record("trace", &event, &[path, "300"]))
            .success();
        assert!(recorded.stdout.ends_with("wrong 0\n"), "{engine:?}");
        let mut hits = Hit::parse_lines(&recorded.stdout);
        if recorded.stderr.contains("5-byte nop") {
            hits.retain(|hit| !matches!(hit.name.as_str(), "leaf_five" | "caller_five"));
        }
        let sites = sites_of(&lab, &program);
        judge(&hits, &lab.events("trace"), &sites, (Build::USUAL, engine));
    }
}

/// Only events of the uprobe PMU need its number, which sysfs has. All processes are recorded, as following some needs the kernel's types, which
/// are there, too.
#[test]
fn links_need_no_sysfs() {
    need_tool("unshare");
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let script = "umount -l /sys && exec \"$@\"";
    let mut shell = vec!["--mount", "sh", "-c", script, "sh"];
    shell.push(env!("CARGO_BIN_EXE_usdtrec"));
    shell.extend([
        "record",
        "--engine",
        "bpf-multi",
        "-a",
        "-o",
        "trace",
        "-e",
        &event,
    ]);
    let mut recorder = Process::spawn(lab.at_home(Path::new("unshare"), shell));
    recorder.until_error_line("[ usdtrec record:");
    target.hit("fire 7");
    recorder.signal("INT");
    recorder.finish().success().complains("7 events, 0 lost");
    assert_eq!(lab.events("trace").len(), 7);
}
