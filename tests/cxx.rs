//! C++: `libstdcxx:throw` and `libstdcxx:catch`, system-wide, in the library that every program shares.

use std::process::Command;

use crate::common::{Build, Lab, Process, Recorder, events_named, run, test};

const CXX: Build = Build {
    compiler: "g++",
    options: &["-O2"],
};

/// The library that the program is linked with.
pub(crate) fn library_of(program: &std::path::Path) -> String {
    let mut ldd = Command::new("ldd");
    ldd.arg(program);
    let libraries = run(ldd).success().stdout;
    let line = libraries
        .lines()
        .find(|line| line.contains("libstdc++"))
        .expect("a C++ program");
    line.split_whitespace().nth(2).expect("a path").to_owned()
}

#[test]
fn throw_and_catch() {
    let lab = Lab::privileged();
    let program = CXX.make(&lab, "thrower.cc", "thrower");
    lab.usdtrec(["buildid-cache", "--add", &library_of(&program)])
        .success();
    let events = [
        "-a",
        "--strings=off",
        "-o",
        "trace",
        "-e",
        "libstdcxx:throw",
        "-e",
        "sdt_libstdcxx:catch",
    ];
    let recorder = Recorder::start(&lab, events);
    let mut command = Command::new(&program);
    command.arg("20");
    let thrower = Process::spawn(command);
    let pid = thrower.pid();
    let printed = thrower.finish().success().stdout;
    recorder.stop();
    let mut events = lab.events("trace");
    events.retain(|event| event.pid == pid);
    let expected: Vec<(i128, i128)> = printed
        .lines()
        .map(|line| {
            let mut words = line
                .split_whitespace()
                .skip(1)
                .map(|word| word.parse().expect("an address"));
            (
                words.next().expect("the object"),
                words.next().expect("its type"),
            )
        })
        .collect();
    assert_eq!(expected.len(), 20);
    let thrown: Vec<_> = events_named(&events, "throw")
        .iter()
        .map(|event| (event.integer(1), event.integer(2)))
        .collect();
    assert_eq!(thrown, expected);
    // The type of what is caught is in memory outside the captured stack.
    let caught = events_named(&events, "catch");
    assert_eq!(caught.len(), 20);
    for (event, (object, kind)) in caught.iter().zip(&expected) {
        for (number, right) in [(1, object), (2, kind)] {
            if let Ok(value) = event.argument(number) {
                assert_eq!(value, crate::common::Number::Integer(*right), "arg{number}");
            }
        }
    }
}

/// The name of the type is two pointers away: the schema says how to get there, and that it is mangled.
#[test]
fn types_are_named() {
    let lab = Lab::privileged();
    let program = CXX.make(&lab, "exceptions.cc", "exceptions");
    let library = library_of(&program);
    let throw = format!("libstdcxx:throw@{library}");
    let program = program.to_str().expect("a path");
    let record = ["record", "-o", "trace", "-e", &throw, "--", program];
    let printed = lab.usdtrec(record).success().stdout;
    // What type_info::name() gives, and what the ABI's own demangler makes of it.
    let names: Vec<(&str, &str)> = printed
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    assert_eq!(names.len(), 5, "{printed}");
    let text = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
    let json = ["script", "-i", "trace", "--format", "json"];
    let json = lab.usdtrec(json).success().stdout;
    let csv = ["script", "-i", "trace", "--format", "csv"];
    let csv = lab.usdtrec(csv).success().stdout;
    let sorted = [
        "report", "-i", "trace", "--sort", "type", "--format", "json",
    ];
    let sorted = lab.usdtrec(sorted).success().stdout;
    let lines = text.lines().zip(json.lines()).zip(csv.lines().skip(1));
    assert_eq!(lines.clone().count(), 5, "{text}");
    for (((text, json), csv), (raw, readable)) in lines.zip(&names) {
        assert!(text.contains(&format!("type=\"{readable}\"")), "{text}");
        let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(json["args"]["type"], **raw);
        assert_eq!(json["demangled"]["type"], **readable);
        assert!(csv.contains(readable), "{csv}");
        assert!(sorted.contains(raw), "{sorted}");
    }
    let sorted = lab.usdtrec(["report", "-i", "trace", "--sort", "type"]);
    let sorted = sorted.success().stdout;
    assert!(sorted.contains("std::runtime_error"), "{sorted}");
    let groups = |question: &[&str]| -> Vec<serde_json::Value> {
        let report = ["report", "-i", "trace", "--format", "json"];
        let answer = lab.usdtrec([&report, question].concat()).success().stdout;
        let lines = answer.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    };
    let by_type = [&["--sort", "type"][..], &["--rate", "1s", "--by", "type"]];
    for groups in by_type.map(groups) {
        assert_eq!(groups.len(), 5, "{groups:?}");
        for (raw, readable) in &names {
            let mut groups = groups.iter();
            let group = groups.find(|group| group["type"] == **raw);
            let group = group.expect("a group of each type");
            assert_eq!(group["demangled"]["type"], **readable, "{group}");
        }
    }
    let histogram = &groups(&["--hist", "type"])[0];
    let summary = &groups(&[])[0];
    let arguments = summary["probes"][0]["arguments"].as_array();
    let strings = arguments.expect("a list").iter();
    let strings = strings.filter_map(|argument| argument["texts"]["values"].as_array());
    let strings: Vec<_> = strings.flatten().collect();
    let buckets = histogram["buckets"].as_array().expect("a list");
    for (raw, readable) in &names {
        let bucket = buckets.iter().find(|bucket| bucket["from"] == **raw);
        assert_eq!(bucket.expect("a bucket")["demangled"], **readable);
        let string = strings.iter().find(|string| string["value"] == **raw);
        assert_eq!(string.expect("a text")["demangled"], **readable);
    }
    for question in [&["--hist", "type"][..], &[]] {
        let text = lab.usdtrec([&["report", "-i", "trace"], question].concat());
        let text = text.success().stdout;
        assert!(text.contains("std::runtime_error"), "{text}");
    }
    // A filter is of the name as it is in the program, or as it is shown.
    let chosen = |filter: &str| {
        let chosen = lab.usdtrec(["script", "-i", "trace", "--filter", filter]);
        chosen.success().stdout.lines().count()
    };
    for (raw, readable) in &names {
        assert_eq!(chosen(&format!("type == {raw:?}")), 1);
        assert_eq!(chosen(&format!("type == {readable:?}")), 1);
        assert_eq!(chosen(&format!("{readable:?} != type")), 4);
        assert_eq!(chosen(&format!("type != {raw:?} && tid > 0")), 4);
        assert_eq!(chosen(&format!("!(type == {readable:?})")), 4);
    }
    assert_eq!(chosen(r#"type ~ "*runtime_error""#), 1);
    assert_eq!(chosen(r#"type ~ "std::*""#), 1);
    assert_eq!(chosen(r#"type ~ "shop::Failure<*""#), 2);
    // The program compares what the schema captures: the name as it is in memory.
    for (raw, _) in &names {
        let filter = format!("type == {raw:?}");
        let start = ["record", "-o", "passed", "-e", &throw, "--filter", &filter];
        lab.usdtrec([&start[..], &["--", program]].concat())
            .success();
        let passed = lab.events("passed");
        let types = passed.iter().map(|event| event.named("type").as_str());
        assert_eq!(types.collect::<Vec<_>>(), [Some(*raw)], "{filter}");
    }
}

/// Perf events do not read the name: the pointer is left.
#[test]
fn without_programs_types_are_pointers() {
    let lab = Lab::privileged();
    let program = CXX.make(&lab, "thrower.cc", "thrower");
    let throw = format!("libstdcxx:throw@{}", library_of(&program));
    let program = program.to_str().expect("a path");
    let record = [
        "record", "--engine", "perf", "-o", "trace", "-e", &throw, "--", program, "1",
    ];
    let printed = lab.usdtrec(record).success().stdout;
    let address: u64 = printed
        .split_whitespace()
        .nth(2)
        .and_then(|word| word.parse().ok())
        .expect("the type's address");
    let text = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
    assert!(text.contains(&format!("type={address:#x}")), "{text}");
}

/// A list says itself where the name is.
#[test]
fn names_of_types() {
    let lab = Lab::privileged();
    let program = CXX.make(&lab, "thrower.cc", "thrower");
    let library = library_of(&program);
    let throw = format!("libstdcxx:throw(object, type=str(*(type+8)))@{library}");
    let catch = format!("libstdcxx:catch(type=str(*(type+8)))@{library}");
    let program = program.to_str().expect("a path");
    let record = [
        "record", "-o", "trace", "-e", &throw, "-e", &catch, "--", program, "5",
    ];
    let printed = lab.usdtrec(record).success().stdout;
    let names: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.split(' ').nth(3))
        .collect();
    assert_eq!(names.len(), 5, "{printed}");
    let events = lab.events("trace");
    for name in ["throw", "catch"] {
        let events = events_named(&events, name).into_iter();
        let types: Vec<_> = events.map(|event| event.named("type")).collect();
        assert_eq!(types, names, "{name}");
    }
    let text = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
    assert!(names.iter().all(|name| *name == "7Trouble"), "{names:?}");
    assert_eq!(text.matches("type=\"Trouble\"").count(), 10, "{text}");
}
