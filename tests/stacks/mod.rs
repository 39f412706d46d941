//! Stacks that are unwound from a copy: of files of `perf record --call-graph dwarf`, against stock perf and against the program.

mod another_host;
mod inlined;
mod moving;
mod options;
mod recorded;
mod return_addresses;

use std::fs;
use std::path::Path;

use crate::common::{Build, Lab, Perf, test};

const BUILD: Build = Build {
    compiler: "gcc",
    options: &["-O2", "-fomit-frame-pointer"],
};

/// The fields that are compared.
const FIELDS: &str = "event,ip,sym,symoff,dso";

/// Records the program with copies of the stack of so many bytes.
fn record(lab: &Lab, perf: &Perf<'_>, program: &Path, bytes: &str, depth: &str) {
    let probes = perf.plant(program, "stacks", &["hit"]);
    let graph = format!("dwarf,{bytes}");
    let program = program.to_str().expect("a path");
    let record = ["record", "-q", "-B", "-m", "1024", "-o", "stacks"];
    let events = ["--call-graph", &graph, "-e", "sdt_stacks:hit*"];
    perf.run([&record[..], &events, &["--", program, depth]].concat())
        .success();
    drop(probes);
    assert!(!lab.events("stacks").is_empty());
}

/// A line without the address of its frame, which is the file's in perf 6.1.
fn without_address(line: &str) -> String {
    let Some(frame) = line
        .strip_prefix('\t')
        .filter(|line| !line.starts_with('['))
    else {
        return line.to_owned();
    };
    let words = frame.split_whitespace().skip(1);
    words.collect::<Vec<_>>().join(" ")
}

/// What stock perf and we print.
fn both(lab: &Lab, perf: &Perf<'_>, options: &[&str]) -> [Vec<String>; 2] {
    let start = ["script", "-i", "stacks"];
    // It is refused where no stacks are shown.
    let no_inline: &[&str] = match options.contains(&"-G") {
        true => &[],
        false => &["--no-inline"],
    };
    let options = [no_inline, options].concat();
    let theirs = perf.run([&start[..], &options].concat());
    let ours = lab.usdtrec([&start[..], &options].concat());
    [theirs.success(), ours.success().silent()]
        .map(|text| text.stdout.lines().map(without_address).collect())
}

/// The frames of each event.
fn frames(lines: &[String]) -> Vec<&[String]> {
    let events = lines.split(String::is_empty);
    events
        .filter_map(|event| Some(event.split_first()?.1))
        .collect()
}

fn ours(lab: &Lab) -> Vec<String> {
    let script = lab.usdtrec(["script", "-i", "stacks", "--no-inline", "-F", FIELDS]);
    let text = script.success().silent().stdout;
    text.lines().map(without_address).collect()
}

/// How many frames of an event are of a function.
fn count(frames: &[String], function: &str) -> usize {
    let start = format!("{function}+0x");
    let of_function = frames.iter().filter(|frame| frame.starts_with(&start));
    of_function.count()
}

/// Recursion, callbacks of the C library, a signal handler.
#[track_caller]
fn check_program(ours: &[String], depth: usize) {
    let events = frames(ours);
    assert!(events.len() > 6, "{}", events.len());
    for event in &events {
        assert_eq!(count(event, "leaf"), 1, "{event:?}");
        assert_eq!(count(event, "middle"), depth + 1, "{event:?}");
        let outermost = event.last().expect("a frame");
        assert!(outermost.starts_with("_start+0x"), "{event:?}");
    }
    let stacks_with = |function| {
        let events = events.iter().filter(|event| count(event, function) > 0);
        events.count()
    };
    assert_eq!(
        stacks_with("handler"),
        1,
        "the frame of the signal is passed"
    );
    assert_eq!(stacks_with("compare"), events.len() - 2);
}

#[test]
fn are_those_of_perf_and_of_the_program() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = BUILD.make(&lab, "stacks.c", "stacks-target");
    record(&lab, &perf, &program, "8192", "20");
    let [theirs, ours] = both(&lab, &perf, &["-F", FIELDS]);
    assert_eq!(theirs, ours);
    check_program(&ours, 20);
    for options in [
        &[][..],
        &["-G"],
        &["--max-stack", "200"],
        &["-G", "-F", "comm,tid,event,ip,sym,dso"],
        &["-F", "comm,event"],
        &["-F", "event,ip"],
        &["-F", "ip,sym"],
        &["-F", "ip,dso"],
    ] {
        let [theirs, ours] = both(&lab, &perf, options);
        assert_eq!(theirs, ours, "{options:?}");
        assert!(!ours.is_empty());
    }
    for limit in [1, 3] {
        let limit = limit.to_string();
        let [theirs, ours] = both(&lab, &perf, &["--max-stack", &limit]);
        let cut = format!("\t[cut: the limit of frames is {limit}]");
        let (cuts, others): (Vec<_>, Vec<_>) = ours.into_iter().partition(|line| *line == cut);
        assert_eq!(theirs, others);
        assert_eq!(cuts.len(), frames(&theirs).len());
    }
}

#[test]
fn of_other_builds_are_those_of_perf() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let builds: [(&str, &str, &[&str]); 3] = [
        (
            "gcc",
            "stacks.c",
            &["-O3", "-fomit-frame-pointer", "-no-pie"],
        ),
        ("g++", "stacks.cc", &["-O3", "-fomit-frame-pointer"]),
        ("g++", "stacks.cc", &["-O0"]),
    ];
    for (compiler, source, options) in builds {
        let build = Build { compiler, options };
        // perf makes events of all programs of its cache that have the probe.
        fs::remove_dir_all(lab.cache()).ok();
        let program = build.make(&lab, source, "stacks-target");
        record(&lab, &perf, &program, "8192", "20");
        let [theirs, ours] = both(&lab, &perf, &["-F", FIELDS]);
        assert_eq!(theirs, ours, "{options:?}");
        match source {
            "stacks.c" => check_program(&ours, 20),
            _ => {
                let events = frames(&ours);
                let deepest = events.iter().map(|event| count(event, "deep"));
                assert!(deepest.max() >= Some(20));
                for event in events {
                    let outermost = event.last().expect("a frame");
                    assert!(outermost.starts_with("_start+0x"), "{event:?}");
                }
            }
        }
    }
}

/// perf finds no caller in a static program: it has no sorted table.
#[test]
fn of_a_static_program_are_those_of_the_program() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let build = Build {
        compiler: "gcc",
        options: &["-O2", "-static"],
    };
    let program = build.make(&lab, "stacks.c", "stacks-target");
    record(&lab, &perf, &program, "8192", "20");
    check_program(&ours(&lab), 20);
}

#[test]
fn that_are_longer_than_the_copy_say_so() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = BUILD.make(&lab, "stacks.c", "stacks-target");
    record(&lab, &perf, &program, "512", "100");
    let ours = ours(&lab);
    for event in frames(&ours) {
        let (last, frames) = event.split_last().expect("frames");
        let why = "the next frame is beyond the 512 bytes of stack that were copied";
        assert_eq!(*last, format!("\t[cut: {why}]"));
        assert!((5..100).contains(&count(frames, "middle")), "{frames:?}");
        assert_eq!(count(frames, "leaf"), 1);
        let both = count(frames, "leaf") + count(frames, "middle");
        assert_eq!(both, frames.len());
    }
    let json = lab.usdtrec([
        "script",
        "-i",
        "stacks",
        "--format",
        "json",
        "-F",
        "ip,sym,dso",
    ]);
    let lines = json.success().silent().stdout;
    for (line, event) in lines.lines().zip(frames(&ours)) {
        let json: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let stack = json["stack"].as_array().expect("a list");
        assert_eq!(stack.len() + 1, event.len());
        assert_eq!(stack[0]["ip"], json["ip"]);
        for (frame, line) in stack.iter().zip(event) {
            let [function, file] = ["sym", "dso"].map(|name| frame[name].as_str().expect("text"));
            assert!(line.starts_with(&format!("{function}+0x")), "{line}");
            assert!(line.ends_with(&format!("({file})")), "{line}");
        }
        let why = json["stack_cut"].as_str().expect("text");
        assert_eq!(format!("\t[cut: {why}]"), event[event.len() - 1]);
    }
    let hidden = lab.usdtrec(["script", "-i", "stacks", "--format", "json", "-G"]);
    assert!(!hidden.success().stdout.contains("\"stack\":"));
}

#[test]
fn of_a_file_that_is_another_now_end_with_the_hit() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = BUILD.make(&lab, "stacks.c", "stacks-target");
    record(&lab, &perf, &program, "8192", "3");
    fs::remove_dir_all(lab.cache()).expect("perf's copy of the program");
    fs::remove_file(&program).expect("the program");
    let other = Build::USUAL.make(&lab, "first.c", "stacks-other");
    fs::rename(other, &program).expect("another program");
    let why = format!(
        "no unwind information for {}: it is not the recorded file, or not readable",
        program.display()
    );
    for event in frames(&ours(&lab)) {
        assert_eq!(event.len(), 2, "{event:?}");
        assert_eq!(event[1], format!("\t[cut: {why}]"));
    }
}

/// Functions without unwind information, and one whose unwind information is an expression that never ends.
#[test]
fn that_cannot_be_unwound_say_why() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let bare: &[&str] = &[
        "-O2",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
    ];
    let cases: [(&str, &[&str], &str, &str); 2] = [
        (
            "stacks.c",
            bare,
            "leaf",
            "no unwind information for this function in FILE",
        ),
        (
            "endless.c",
            &["-O2"],
            "endless",
            "the unwind information for this function in FILE is not valid",
        ),
    ];
    for (source, options, function, why) in cases {
        let build = Build {
            compiler: "gcc",
            options,
        };
        fs::remove_dir_all(lab.cache()).ok();
        let program = build.make(&lab, source, "stacks-target");
        record(&lab, &perf, &program, "8192", "3");
        let why = why.replace("FILE", &program.display().to_string());
        let ours = ours(&lab);
        for event in frames(&ours) {
            assert_eq!(event.len(), 2, "{event:?}");
            assert_eq!(count(event, function), 1, "{event:?}");
            assert_eq!(event[1], format!("\t[cut: {why}]"));
        }
    }
}

#[test]
fn options_without_effect_are_refused() {
    let lab = Lab::new();
    let refused = |options: &[&str], why: &str| {
        let script = lab.usdtrec([&["script", "-i", "absent"], options].concat());
        let errors = script.exits(2).stderr;
        assert!(errors.contains(why), "{options:?}: {errors}");
    };
    refused(
        &["-G", "--format", "csv"],
        "'--hide-call-graph' cannot be used with '--format csv'",
    );
    refused(
        &["--max-stack=3", "--format", "{comm}"],
        "'--max-stack 3' cannot be used with",
    );
    refused(&["-G", "--max-stack=3"], "cannot be used with");
    refused(&["--max-stack=0"], "0 is not in 1..=65535");
    refused(&["-F", "ip,symoff"], "symoff");
}
