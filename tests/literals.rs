//! Texts that the program has in memory that it cannot write and never touches: they are in its file.

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

/// Nothing but the literal is a text, and JSON says that it was not read at the hit.
#[track_caller]
fn is_found(lab: &Lab, trace: &str, text: &str) {
    let script = lab.usdtrec(["script", "--format", "json", "-i", trace]);
    let script = script.success().stdout;
    let events = Event::parse_lines(&script);
    assert_eq!(events.len(), 3);
    for (event, line) in events.iter().zip(script.lines()) {
        assert_eq!(event.named("arg1"), text, "{line}");
        assert!(line.contains(r#""from_file":{"arg1":true}"#), "{line}");
        // Two letters may be a number.
        assert!(event.named("arg2").is_number(), "{line}");
    }
    let filter = format!("arg1 == {text:?}");
    let taken = ["script", "-F", "args", "-i", trace, "--filter", &filter];
    assert_eq!(lab.usdtrec(taken).success().stdout.lines().count(), 3);
}

#[test]
fn literals_that_nobody_has_touched_are_texts() {
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

/// Another version of the file has other texts.
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
fn declared_texts_may_be_short() {
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

/// An argument that is a text in some hits only is neither always a text nor always a number; and a buffer that had a text has texts from
/// then on.
#[test]
fn what_is_a_text_in_some_hits_is_not_always_one() {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "gcc",
        options: &["-O2"],
    };
    let program = build.make(&lab, "short.c", "short");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_short:request@{program}");
    let record = ["record", "-o", "trace", "-e", &event, "--", program];
    let texts = ["GET", "/", "GET", "/", "DELETE", "/", "GET", "/"];
    lab.usdtrec([&record[..], &texts].concat()).success();
    let events = lab.events("trace");
    let shown: Vec<bool> = events
        .iter()
        .map(|event| event.named("arg1").is_string())
        .collect();
    assert_eq!(shown, [false, false, true, true]);
    let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    let line = report.lines().find(|line| line.contains("request.arg1"));
    let line = line.expect("a line of the argument");
    assert!(
        line.contains("50.0% 1") && !line.contains("always"),
        "{report}"
    );
    assert!(report.contains("25.0% \"DELETE\""), "{report}");
}
