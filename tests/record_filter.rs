//! `--filter` of record: what the kernel lets through is what `script --filter` takes from a recording of all.

use std::path::PathBuf;

use crate::common::{Build, Engine, Event, Lab, test};

/// Expressions over `sdt_debug:serve` with an argument for each call's line.
const FILTERS: [&str; 17] = [
    "fd - 1 < 0",
    "port + 10 > 65540",
    "port - 65530 >= -1 && fd + 9223372036854775807 > 9223372036854775807",
    "fd > 0",
    "fd >= -1 && !(fd == 2)",
    "arg2 == -1",
    "arg2 < 0x7fffffff",
    "port == 65533 || port < 65532",
    "(s16)port == -4",
    "colour == \"GREEN\"",
    "secure",
    "url == \"/x\"",
    "url != \"/x\"",
    "url ~ \"/long/*\"",
    "url == \"\" && comm == \"debug\"",
    "comm ~ \"other*\"",
    "(fd & 1) == 1 && url ~ \"*\"",
];

/// Those that perf events can answer: their samples hold no strings.
const NUMBERS: [&str; 4] = [
    "fd > 0",
    "port - fd < 65530 || colour == \"BLUE\"",
    "secure && pid != 1",
    "fd == 77",
];

fn program(lab: &Lab) -> PathBuf {
    let options = &["-O0", "-g"];
    let build = Build {
        compiler: "gcc",
        options,
    };
    build.make(lab, "debug.c", "debug")
}

/// What can be compared of two runs: addresses differ.
fn calls(events: &[Event]) -> Vec<(String, i64)> {
    let call = |event: &Event| {
        let fd = event.named("fd").as_i64();
        (event.named("url").to_string(), fd.expect("a number"))
    };
    events.iter().map(call).collect()
}

#[test]
fn the_kernel_lets_through_what_script_takes() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let program = program.to_str().expect("a path");
    let event = format!("sdt_debug:serve@{program}");
    let long = format!("/long/{}", "x".repeat(180));
    let run = ["--", program, "/x", "", &long, "/x/y", "b\u{e4}", "/long"];
    let all = ["record", "-o", "all", "-e", &event];
    lab.usdtrec([&all[..], &run].concat()).success();
    for engine in [Engine::BpfMulti, Engine::BpfPerf] {
        for filter in FILTERS {
            let passed = ["record", "-o", "passed", "--engine", engine.option()];
            let asked = ["-e", &event, "--filter", filter];
            let said = lab
                .usdtrec([&passed[..], &asked, &run].concat())
                .success()
                .stderr;
            assert!(said.contains(" 0 lost"), "{filter}: {said}");
            let script = [
                "script", "--format", "json", "-i", "all", "--filter", filter,
            ];
            let expected = Event::parse_lines(&lab.usdtrec(script).success().stdout);
            assert!(expected.len() < 7 || filter.contains("0x7f"), "{filter}");
            assert_eq!(
                calls(&lab.events("passed")),
                calls(&expected),
                "{filter} with {}",
                engine.option()
            );
        }
    }
}

/// Floats are compared in the program; sums, casts and two values of a hit in the recorder.
#[test]
fn floats_pass_as_script_takes_them() {
    const FILTERS: [&str; 17] = [
        "arg1 > 2.5",
        "arg1 <= 2.5 && arg3 != 1",
        "arg1 == 0",
        "!(arg1 < 2)",
        "arg1 != 1",
        "arg2 == 0.1 || arg4 == 2.5",
        "arg4 >= -2.5 && arg4 < 1e39",
        "arg3 < -1e300",
        "arg5 > 2.5 && arg5 < 9.5",
        "arg2",
        "!arg3",
        "arg1 == arg2",
        "arg3 > arg5",
        "arg1 < arg4 || arg3 == 2",
        "arg1 * 2 > 5",
        "(s32)arg2 == 2",
        "(f32)arg1 == 0.1",
    ];
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "floats.c", "floats");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_floats:hit@{program}");
    lab.usdtrec(["record", "-o", "all", "-e", &event, "--", program])
        .success();
    let counts = |events: &[Event]| -> Vec<i128> {
        let count = |event: &Event| event.integer(5);
        events.iter().map(count).collect()
    };
    for engine in [Engine::BpfMulti, Engine::PerfTracefs] {
        for filter in FILTERS {
            let start = ["record", "-o", "passed", "--engine", engine.option()];
            let asked = ["-e", &event, "--filter", filter, "--", program];
            let said = lab.usdtrec([&start[..], &asked].concat()).success().stderr;
            assert!(
                said.contains(" 0 lost") && !said.contains("neither"),
                "{filter}: {said}"
            );
            let script = [
                "script", "--format", "json", "-i", "all", "--filter", filter,
            ];
            let expected = Event::parse_lines(&lab.usdtrec(script).success().stdout);
            assert!(!expected.is_empty() && expected.len() < 15, "{filter}");
            let passed = counts(&lab.events("passed"));
            let engine = engine.option();
            assert_eq!(passed, counts(&expected), "{filter} with {engine}");
        }
    }
    let text = ["record", "-e", &event, "--filter", "arg1 == \"2.5\"", "--"];
    lab.usdtrec([&text[..], &[program]].concat())
        .exits(2)
        .complains("the filter can never match: at every site its arguments are unavailable");
}

/// What a filter compares with a string is a string, in the trace too, however short it is and whatever it looks like.
#[test]
fn a_filter_declares_strings() {
    let lab = Lab::privileged();
    let options = &["-O2"];
    let build = Build {
        compiler: "gcc",
        options,
    };
    let program = build.make(&lab, "short.c", "short");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_short:request@{program}");
    let run = [
        "--", program, "GET", "/", "PUT", "/a", "", "/b", "G", "/c", "\u{1}", "/d", "GET", "/e",
    ];
    for (filter, numbers) in [
        ("arg1 == \"GET\"", &[1, 11][..]),
        ("\"GET\" != arg1", &[3, 5, 7, 9]),
        ("arg1 ~ \"G*\" && !(arg2 == \"/e\")", &[1, 7]),
        ("arg1 == \"\" || arg1 == \"\\x01\"", &[5, 9]),
        ("str(arg1) == \"G\"", &[7]),
        ("str(arg1, 2) == \"GE\"", &[1, 11]),
        ("str(args.arg1, 2) ~ \"P*\"", &[3]),
    ] {
        let record = ["record", "-o", "trace", "-e", &event, "--filter", filter];
        lab.usdtrec([&record[..], &run].concat()).success();
        let third_arguments = |events: Vec<Event>| -> Vec<i128> {
            events.iter().map(|event| event.integer(3)).collect()
        };
        assert_eq!(third_arguments(lab.events("trace")), numbers, "{filter}");
        let script = [
            "script", "--format", "json", "-i", "trace", "--filter", filter,
        ];
        let taken = lab.usdtrec(script).success().stdout;
        assert_eq!(
            third_arguments(Event::parse_lines(&taken)),
            numbers,
            "{filter}"
        );
        for event in lab.events("trace") {
            assert!(event.named("arg1").is_string(), "{filter}");
        }
    }
}

/// What only looks like a string is a number where it is compared with none, while recording and afterwards.
#[test]
fn what_looks_like_a_string_is_a_number_to_numbers() {
    let lab = Lab::privileged();
    let options = &["-O2"];
    let build = Build {
        compiler: "gcc",
        options,
    };
    let program = build.make(&lab, "short.c", "short");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_short:request@{program}");
    let run = [
        "--",
        program,
        "/a.html",
        "/first/path",
        "/b.html",
        "/second",
    ];
    let all = ["record", "-o", "all", "-e", &event];
    lab.usdtrec([&all[..], &run].concat()).success();
    for event in lab.events("all") {
        assert!(event.named("arg1").is_string(), "it looks like one");
    }
    let third_arguments =
        |events: &[Event]| -> Vec<i128> { events.iter().map(|event| event.integer(3)).collect() };
    for filter in [
        "arg1 != 0",
        "arg1",
        "arg1 > 4096 && arg2 + 1 > 4096",
        "(arg1 & 0) == 0",
    ] {
        let record = ["record", "-o", "passed", "-e", &event, "--filter", filter];
        lab.usdtrec([&record[..], &run].concat()).success();
        let passed = lab.events("passed");
        assert_eq!(third_arguments(&passed), [1, 3], "{filter}");
        let script = [
            "script", "--format", "json", "-i", "all", "--filter", filter,
        ];
        let taken = Event::parse_lines(&lab.usdtrec(script).success().stdout);
        assert_eq!(third_arguments(&taken), [1, 3], "{filter}");
    }
}

#[test]
fn each_event_has_its_own() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let program = program.to_str().expect("a path");
    let event = |name: &str| format!("sdt_debug:{name}@{program}");
    let (serve, length, sum) = (event("serve"), event("length"), event("sum"));
    let options = ["record", "-o", "trace", "-e", &serve, "--filter", "fd == 0"];
    let others = [
        "-e",
        &length,
        "-e",
        &sum,
        "--filter",
        "length > 1",
        "--filter",
        "arg1 == 2",
    ];
    let run = ["--", program, "a", "bc", "def"];
    lab.usdtrec([&options[..], &others, &run].concat())
        .success();
    let names: Vec<_> = lab
        .events("trace")
        .iter()
        .map(|event| event.name().to_owned())
        .collect();
    assert_eq!(
        names,
        ["length", "serve", "length", "length", "sum", "length"]
    );
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_is_planted() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let program = program.to_str().expect("a path");
    let event = format!("sdt_debug:serve@{program}");
    let refused = |options: &[&str], words: &str| {
        let start = ["record", "-o", "trace"];
        let run = ["--", program, "a"];
        lab.usdtrec([&start[..], options, &run].concat())
            .exits(2)
            .complains(words);
        assert!(!lab.file("trace").exists(), "{options:?}");
    };
    refused(
        &["-e", &event, "--filter", "arg9 == 1"],
        "has no argument arg9; it has url, fd",
    );
    refused(&["-e", &event, "--filter", "fd =="], "--filter");
    refused(&["-e", &event, "--filter", "colour == \"PINK\""], "RED");
    refused(
        &["-e", &event, "--filter", "fd == *(u8*)raw"],
        "two values of a hit",
    );
    refused(&["--filter", "fd == 1", "-e", &event], "give -e first");
    refused(
        &["--engine=perf", "-e", &event, "--filter", "url == \"/x\""],
        "needs the bpf engine",
    );
}

/// Where the kernel does not work a filter out, it is worked out before anything is written.
#[test]
fn perf_events_are_left_out_before_they_are_written() {
    let lab = Lab::privileged();
    let program = program(&lab);
    let program = program.to_str().expect("a path");
    let event = |name: &str| format!("sdt_debug:{name}@{program}");
    let (serve, sum) = (event("serve"), event("sum"));
    for engine in [Engine::PerfTracefs, Engine::PerfPmu] {
        for filter in NUMBERS {
            let mut run = vec!["record", "-o", "trace", "--engine", engine.option()];
            if engine == Engine::PerfPmu {
                run.push("-a");
            }
            run.extend(["-e", &serve, "--filter", filter, "-e", &sum]);
            run.extend(["--", program, "/x", "", "/long/x", "b"]);
            let said = lab.usdtrec(&run).success().stderr;
            assert!(
                said.contains(" 0 lost") && !said.contains("neither"),
                "{said}"
            );
            let all = ["record", "-o", "all", "-e", &serve, "--", program];
            lab.usdtrec([&all[..], &["/x", "", "/long/x", "b"]].concat())
                .success();
            let expected = [
                "script", "-i", "all", "--format", "json", "--filter", filter,
            ];
            let expected = Event::parse_lines(&lab.usdtrec(expected).success().stdout);
            let (served, others): (Vec<_>, Vec<_>) = lab
                .events("trace")
                .into_iter()
                .partition(|event| event.name() == "serve");
            assert_eq!(others.len(), 5);
            let fd = |event: &Event| event.named("fd").as_i64();
            let (served, expected): (Vec<_>, Vec<_>) = (
                served.iter().map(fd).collect(),
                expected.iter().map(fd).collect(),
            );
            assert_eq!(served, expected, "{filter} with {}", engine.option());
        }
    }
}
