//! Strings that the program has in memory that it cannot write and never touches: they are in its file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Build, Engine, Event, Lab, test};

fn build(lab: &Lab, options: &'static [&'static str], name: &str) -> PathBuf {
    let build = Build {
        compiler: "gcc",
        options,
    };
    build.make(lab, "literals.c", name)
}

/// The arguments of a recording of a program, as a recorder takes them.
fn recorded(event: &str, program: &Path) -> [String; 4] {
    let program = program.display().to_string();
    ["-e".into(), event.into(), "--".into(), program]
}

fn event(program: &Path) -> String {
    format!("sdt_literals:hit@{}", program.display())
}

/// Nothing but the literal is a string, and JSON says that it was not read at the hit.
#[track_caller]
fn is_found(lab: &Lab, trace: &str, text: &str) {
    let script = lab.usdtrec(["script", "--format", "json", "-i", trace]);
    let script = script.success().stdout;
    let events = Event::parse_lines(&script);
    assert_eq!(events.len(), 3);
    for (event, line) in events.iter().zip(script.lines()) {
        assert_eq!(event.named("arg1"), text, "{line}");
        assert!(
            line.contains(r#""from_file":{"arg1":true,"arg2":true}"#),
            "{line}"
        );
        assert_eq!(event.named("arg2"), "ab", "{line}");
    }
    let filter = format!("arg1 == {text:?}");
    let taken = ["script", "-F", "args", "-i", trace, "--filter", &filter];
    assert_eq!(lab.usdtrec(taken).success().stdout.lines().count(), 3);
}

#[test]
fn literals_that_nobody_has_touched_are_strings() {
    let lab = Lab::privileged();
    for options in [&["-O2"][..], &["-O2", "-no-pie"]] {
        let program = build(&lab, options, "literals");
        for engine in [Engine::BpfMulti, Engine::PerfTracefs] {
            let record = ["record", "-o", "trace", "--engine", engine.option()];
            let run = recorded(&event(&program), &program);
            let run = run.iter().map(String::as_str);
            let all: Vec<&str> = record.into_iter().chain(run).collect();
            lab.usdtrec(&all).success();
            is_found(&lab, "trace", "a literal");
            // Another host has no such file, or another version of it.
            fs::remove_file(&program).unwrap();
            is_found(&lab, "trace", "a literal");
            build(&lab, &["-O2", "-DWORD=\"another one\""], "literals");
            is_found(&lab, "trace", "a literal");
            build(&lab, options, "literals");
        }
    }
}

/// What the program, or the dynamic linker, could have written is not what the file has.
#[test]
fn what_could_be_written_is_a_number() {
    let lab = Lab::privileged();
    let program = build(&lab, &["-O2"], "literals");
    let record = ["record", "-o", "trace", "--engine", "perf-tracefs"];
    let run = recorded(&event(&program), &program);
    let run = run.iter().map(String::as_str);
    lab.usdtrec(record.into_iter().chain(run).collect::<Vec<_>>())
        .success();
    for event in lab.events("trace") {
        assert!(event.named("arg3").is_number() && event.named("arg4").is_number());
    }
}

/// Another version of the file has other strings.
#[test]
fn another_version_of_the_file_is_not_read() {
    let lab = Lab::privileged();
    let program = build(&lab, &["-O2"], "literals");
    let run = recorded(&event(&program), &program);
    let run = run.iter().map(String::as_str);
    let record = ["record", "-o", "-", "--engine", "perf-tracefs"];
    let all: Vec<&str> = record.into_iter().chain(run).collect();
    let trace = fs::File::create(lab.file("trace")).unwrap();
    let status = lab.command(&all).stdout(trace).status().unwrap();
    assert!(status.success());
    is_found(&lab, "trace", "a literal");
    build(&lab, &["-O2", "-DWORD=\"another one\""], "literals");
    for event in lab.events("trace") {
        assert_ne!(event.named("arg1"), "another one");
    }
}

/// A literal that a schema or a filter declares is one, however short it is.
#[test]
fn declared_strings_may_be_short() {
    let lab = Lab::privileged();
    let program = build(&lab, &["-O2"], "literals");
    let schema = "provider = \"literals\"\n[[probe]]\nname = \"hit\"\n\
                  arguments = [\"word\", \"little: str\", \"data: ptr\", \"linked: ptr\", \"i: s32\"]\n";
    fs::write(lab.file("s.toml"), schema).unwrap();
    let record = [
        "record",
        "-o",
        "trace",
        "--engine",
        "perf-tracefs",
        "--schema",
        "s.toml",
    ];
    let run = recorded(&event(&program), &program);
    let run = run.iter().map(String::as_str);
    lab.usdtrec(record.into_iter().chain(run).collect::<Vec<_>>())
        .success();
    for event in lab.events("trace") {
        assert_eq!(event.named("little"), "ab");
    }
}

/// A program with a literal at an address that the note has.
const FIXED: &[&str] = &[
    "-O2",
    "-no-pie",
    "-DFIXED=0x600000",
    "-Wl,--section-start=.fixed=0x600000",
];

/// An address that is a constant of the note is that of a literal, too.
#[test]
fn literals_at_fixed_addresses_are_strings() {
    let lab = Lab::privileged();
    let program = build(&lab, FIXED, "literals");
    let event = format!("sdt_literals:fixed@{}", program.display());
    for engine in [Engine::BpfMulti, Engine::PerfTracefs] {
        let record = ["record", "-o", "trace", "--engine", engine.option()];
        let run = recorded(&event, &program);
        let run = run.iter().map(String::as_str);
        let all: Vec<&str> = record.into_iter().chain(run).collect();
        lab.usdtrec(&all).success();
        // Another host has no such file.
        for _ in 0..2 {
            let events = lab.events("trace");
            assert_eq!(events.len(), 3);
            for event in events {
                assert_eq!(event.named("arg1"), "a fixed one", "{engine:?}");
            }
            let _ = fs::remove_file(&program);
        }
        build(&lab, FIXED, "literals");
    }
}

/// Records a program with strings in buffers on its stack.
#[track_caller]
fn record_buffers(lab: &Lab, options: &'static [&'static str], strings: &[&str]) {
    let build = Build {
        compiler: "gcc",
        options,
    };
    let program = build.make(lab, "short.c", "short");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_short:request@{program}");
    let record = ["record", "-o", "trace", "-e", &event, "--", program];
    lab.usdtrec([&record[..], strings].concat()).success();
}

/// Each hit's two strings, as text output shows them.
fn shown(lab: &Lab, options: &[&str]) -> Vec<[String; 2]> {
    let script = ["script", "--format", "json", "-i", "trace"];
    let script = lab.usdtrec([&script[..], options].concat()).success();
    let events = Event::parse_lines(&script.stdout);
    let strings = events
        .iter()
        .map(|event| ["arg1", "arg2"].map(|name| event.named(name).to_string()));
    strings.collect()
}

/// A site of which one hit has shown that an argument is a string has strings in all hits, in those before it, too, and in any part of the time.
#[test]
fn what_is_a_string_in_one_hit_is_one_in_all() {
    let lab = Lab::privileged();
    let strings = ["GET", "/", "GET", "", "DELETE", "/long", "GET", "/"];
    record_buffers(&lab, &["-O2"], &strings);
    let quoted = |string: &str| format!("{string:?}");
    let expected: Vec<_> = strings
        .chunks(2)
        .map(|hit| [quoted(hit[0]), quoted(hit[1])])
        .collect();
    assert_eq!(shown(&lab, &[]), expected);
    let events = lab.events("trace");
    let [seconds, ns] = [
        events[1].time_ns / 1_000_000_000,
        events[1].time_ns % 1_000_000_000,
    ];
    let early = format!(",{seconds}.{ns:09}");
    assert_eq!(shown(&lab, &["--time", &early]), expected[..2]);
    assert_eq!(shown(&lab, &["--filter", "arg1 == \"GET\""]).len(), 3);
    let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    let line = report.lines().find(|line| line.contains("request.arg1"));
    let line = line.expect("a line of the argument");
    assert!(line.contains("75.0% \"GET\""), "{report}");
}

/// A string is one by what its hit has shown, however short it is.
#[test]
fn short_strings_alone() {
    let lab = Lab::privileged();
    record_buffers(&lab, &["-O2"], &["GET", "/", "PUT", "/", "GET", "/"]);
    let quoted = [["GET", "/"], ["PUT", "/"], ["GET", "/"]];
    let quoted = quoted.map(|hit| hit.map(|string| format!("{string:?}")));
    assert_eq!(shown(&lab, &[]), quoted);
    let by = lab.usdtrec(["report", "-i", "trace", "--sort", "arg2", "--format", "csv"]);
    let groups = by.success().stdout;
    assert_eq!(groups.lines().count(), 2, "{groups}");
    assert!(groups.contains(",3,/"), "{groups}");
    let filtered = shown(&lab, &["--filter", "arg2 == \"/\""]);
    assert_eq!(filtered.len(), 3);
    assert!(filtered.iter().all(|[_, path]| path == "\"/\""));
    assert!(shown(&lab, &["--filter", "arg2 != \"/\""]).is_empty());
}

/// Debugging information says that an argument is an array of `char`.
#[test]
fn arrays_of_char_are_strings() {
    let lab = Lab::privileged();
    for options in [&["-O2", "-g"][..], &["-O0", "-g"]] {
        record_buffers(&lab, options, &["GET", "/"]);
        let expected = ["\"GET\"", "\"/\""].map(str::to_owned);
        assert_eq!(shown(&lab, &[]), [expected], "{options:?}");
    }
}
