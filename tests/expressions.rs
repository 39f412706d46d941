//! Lists of arguments in `-e`: renamed, dereferenced, strings at pointers, against what the program prints.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::{Build, Engine, Event, Hit, Lab, test};
use crate::node::NODE;

const ENGINES: [Engine; 2] = [Engine::BpfMulti, Engine::BpfPerf];

/// Records the stand-in of Node.js at work; its lines and the events.
fn record(lab: &Lab, engine: Engine, list: &str, more: &[&str]) -> (Vec<Hit>, Vec<Event>) {
    let program = NODE.make(lab, "node.c", "node");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_node:http__client__request({list})@{program}");
    let mut command = lab.command(
        [
            &[
                "record",
                "-o",
                "trace",
                "--engine",
                engine.option(),
                "-e",
                &event,
            ],
            more,
            &["--", program],
        ]
        .concat(),
    );
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut run = command.spawn().expect("usdtrec");
    let mut input = run.stdin.take().expect("a pipe");
    input.write_all(b"request 40\n").expect("a reader");
    drop(input);
    let out = run.wait_with_output().expect("it ends");
    assert!(out.status.success());
    let mut hits = Hit::parse_lines(&String::from_utf8_lossy(&out.stdout));
    hits.retain(|hit| hit.name == "http__client__request");
    (hits, lab.events("trace"))
}

#[test]
fn chains_of_pointers_and_names() {
    let lab = Lab::privileged();
    let list = "url=str(*arg1), method=str(*(arg1+8)), port=arg4, next=port+1, low=(u8)arg4, first=*(s8*)*arg1, \
                remote_port=*(s32*)(connection+4), start=str(*arg1, 3), self=(ptr)arg1, fd";
    for engine in ENGINES {
        let (hits, events) = record(&lab, engine, list, &[]);
        assert_eq!((hits.len(), events.len()), (40, 40));
        for (number, event) in events.iter().enumerate() {
            let port = 51056 + number as i64;
            let expected = serde_json::json!({
                "url": format!("/upstream/{number}"),
                "method": if number % 2 == 1 { "POST" } else { "GET" },
                "port": port,
                "next": port + 1,
                "low": port % 256,
                "first": i64::from(b'/'),
                "remote_port": port,
                "start": "/up",
                "fd": -1 - number as i64,
            });
            for (name, value) in expected.as_object().expect("an object") {
                assert_eq!(event.named(name), value, "{name} with {}", engine.option());
            }
            assert_eq!(event.argument_count(), 10);
        }
        // Of a longer string, no more was asked for.
        let json = lab.usdtrec(["script", "--format", "json", "-i", "trace"]);
        let json = json.success().stdout;
        assert!(
            json.lines()
                .all(|line| line.contains(r#""cut":{"start":true}"#)),
            "{json}"
        );
    }
}

/// The path of a build of testdata/targets/debug.c with debug information.
fn debug_program(lab: &Lab) -> String {
    let options = &["-O0", "-g"];
    let build = Build {
        compiler: "gcc",
        options,
    };
    let program = build.make(lab, "debug.c", "debug");
    program.to_str().expect("a path").to_owned()
}

/// A string is as long as another argument of the list says.
#[test]
fn a_length_in_another_argument() {
    let lab = Lab::privileged();
    let program = debug_program(&lab);
    let event = format!("sdt_debug:serve(part=str(url, fd), n=fd)@{program}");
    let run = ["record", "-o", "trace", "-e", &event, "--", &program];
    lab.usdtrec([&run[..], &["abc", "defg", "hijkl", "mn"]].concat())
        .success();
    let events = lab.events("trace");
    let parts: Vec<_> = events.iter().skip(1).map(|event| event.string(1)).collect();
    // As many bytes as are said, the NUL that comes before included.
    assert_eq!(parts, ["", "d", "hi", "mn\0"]);
}

/// The length is an item of the list whose expression is more than a name, as in the help of `-e`.
#[test]
fn a_length_that_is_computed() {
    let lab = Lab::privileged();
    let help = lab.usdtrec(["record", "--help"]).success().stdout;
    let help: Vec<_> = help.split_whitespace().collect();
    let item = "key=str(arg2, len), len=(u8)arg3";
    assert!(help.join(" ").contains(item), "{help:?}");
    let program = debug_program(&lab);
    // Its arguments: url, fd, …
    let list = item.replace("arg2", "url").replace("arg3", "fd");
    for engine in ENGINES {
        let event = format!("sdt_debug:serve({list})@{program}");
        let engine = engine.option();
        let run = [
            "record", "-o", "trace", "--engine", engine, "-e", &event, "--", &program,
        ];
        lab.usdtrec([&run[..], &["abc", "defg", "hijkl", "mn"]].concat())
            .success();
        let events = lab.events("trace");
        let keys: Vec<_> = events.iter().skip(1).map(|event| event.string(1)).collect();
        assert_eq!(keys, ["", "d", "hi", "mn\0"]);
    }
    // A float is no length.
    let event = format!("sdt_debug:serve(key=str(url, len), len=(f64)fd)@{program}");
    lab.usdtrec(["record", "-o", "trace", "-e", &event, "--", &program])
        .exits(2)
        .complains("a length must be in the list");
}

/// Bytes are read as many as are said, whatever is in them, by a list and by a schema alike.
#[test]
fn bytes_and_their_number() {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "gcc",
        options: &["-O1"],
    };
    let program = build.make(&lab, "bytes.c", "bytes");
    let program = program.to_str().expect("a path");
    let schema = "provider = \"bytes\"\n[[probe]]\nname = \"blob\"\n\
                  arguments = [\"data: bytes(n)\", \"n: s32\", \"half: u16\"]\n";
    std::fs::write(lab.file("bytes.toml"), schema).expect("a file");
    let list =
        "(data=bytes(arg1, arg2), n=arg2, text=str(arg1, arg3), head=bytes(arg1, 4), h=arg3)";
    let lists = [
        (list, ["--quiet", "--quiet"]),
        ("", ["--schema", "bytes.toml"]),
    ];
    for (engine, (list, options)) in ENGINES
        .into_iter()
        .flat_map(|engine| lists.map(|list| (engine, list)))
    {
        let event = format!("sdt_bytes:blob{list}@{program}");
        let options: Vec<&str> = options.into_iter().filter(|_| list.is_empty()).collect();
        let run = [
            "record",
            "-o",
            "trace",
            "--engine",
            engine.option(),
            "-e",
            &event,
        ];
        let printed = lab
            .usdtrec([&run[..], &options, &["--", program]].concat())
            .success()
            .stdout;
        let events = lab.events("trace");
        assert_eq!(events.len(), printed.lines().count());
        for (event, line) in events.iter().zip(printed.lines()) {
            let (count, bytes) = line.split_once(' ').expect("two words");
            let count: i64 = count.parse().expect("a number");
            assert_eq!(event.named("n"), count);
            if count < 0 {
                let reason = event.argument(1).expect_err("nothing");
                assert_eq!(reason, "its length is negative");
            } else {
                assert_eq!(event.string(1), &bytes[..bytes.len().min(512)], "{line}");
            }
            if list.is_empty() || count == 0 {
                continue;
            }
            let half = event.named("h").as_u64().expect("a number") as usize;
            if count >= 4 {
                assert_eq!(event.string(4), &bytes[..8]);
            }
            if (4..300).contains(&count) && half >= 4 && !bytes.starts_with("65") {
                assert_eq!(&event.string(3)[..4], "GET\0");
                assert!(event.string(3).chars().count() <= half);
            }
        }
        let script = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
        assert!(script.contains("data=[47 45 54 00 2f 78]"), "{script}");
        assert!(script.contains(" …]"), "cut at 256 bytes: {script}");
    }
}

/// Of a value of 16 bytes there is the lower half and the reason; a list that computes has no number for it.
#[test]
fn wide_values_are_never_cut_in_silence() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "handmade_x86_64.c", "handmade");
    let program = program.to_str().expect("a path");
    let lower = [
        "upper half not in the note, lower 0x",
        "value of 16 bytes, lower 8 0x",
    ];
    for (list, upper) in [
        ("", lower),
        ("(x=arg1, y=arg2, z=arg3)", lower),
        (
            "(x=arg1, y=arg2, z=arg3, tid=tid+0)",
            ["value of 16 bytes"; 2],
        ),
    ] {
        let event = format!("shapes:sixteen_bytes{list}@{program}");
        lab.usdtrec(["record", "-o", "trace", "-e", &event, "--", program])
            .success();
        let events = lab.events("trace");
        for (place, words) in (1..).zip(upper) {
            let reason = events[0].argument(place).expect_err("not all of it");
            assert!(reason.starts_with(words), "{reason}");
        }
        assert_eq!(events[0].integer(3), 1_234_605_616_436_513_017);
    }
}

/// A fault on the way is no value, at whatever depth, and costs the others nothing.
#[test]
fn what_cannot_be_read_has_a_reason() {
    let lab = Lab::privileged();
    let list = "near=*(s32*)fd, deep=str(*(*(fd+8)+16)), text=str(fd), fine=arg4";
    for engine in ENGINES {
        let (_, events) = record(&lab, engine, list, &[]);
        assert_eq!(events.len(), 40);
        for (number, event) in events.iter().enumerate() {
            for place in 1..=3 {
                let reason = event.argument(place).expect_err("nothing is there");
                assert!(!reason.is_empty());
            }
            assert_eq!(event.named("fine"), 51056 + number as i64);
        }
    }
}

/// A filter knows the arguments as they were before the list.
#[test]
fn with_a_filter_and_later_ones() {
    let lab = Lab::privileged();
    let filter = ["--filter", "method == \"GET\" && port - 51056 < 10"];
    let (_, events) = record(&lab, Engine::BpfMulti, "u=str(*arg1), port", &filter);
    assert_eq!(events.len(), 5);
    let script = ["script", "-i", "trace", "--filter", "u ~ \"*/4\""];
    let script = lab.usdtrec(script).success().stdout;
    assert!(
        script.ends_with("u=\"/upstream/4\" port=51060\n"),
        "{script}"
    );
    assert_eq!(script.lines().count(), 1);
    let summary = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    assert!(summary.contains("request.u "), "{summary}");
}

#[test]
fn what_an_engine_cannot_do_is_refused() {
    let lab = Lab::privileged();
    let program = NODE.make(&lab, "node.c", "node");
    let program = program.to_str().expect("a path");
    let refused = |engine: &str, list: &str, words: &str| {
        let event = format!("sdt_node:gc__start({list})@{program}");
        let options = ["record", "-o", "trace", "--engine", engine, "-e", &event];
        lab.usdtrec([&options[..], &["--", program]].concat())
            .exits(2)
            .complains(words);
        assert!(!lab.file("trace").exists());
    };
    for engine in ["perf", "perf-pmu", "perf-tracefs"] {
        for (item, shown) in [
            ("x=str(arg3)", "computing x=str(arg3) at the hit"),
            ("arg1, next=arg1+1", "computing next=(arg1 + 1) at the hit"),
            ("x=(u8)arg1", "needs the bpf engine"),
        ] {
            refused(engine, item, shown);
        }
    }
    refused("auto", "x=arg1*arg2", "cannot be evaluated while recording");
    refused(
        "auto",
        "x=*arg4",
        "has no argument arg4; it has type, flags, isolate",
    );
    refused("auto", "x=bytes(arg3, arg2)", "must be in the list, too");
    refused("auto", "arg1, comm", "comm is in every event");
    refused("auto", "*arg1", "NAME=");
    refused("auto", "x=str(arg3, arg2)", "must be in the list, too");
    let silent = Command::new(env!("CARGO_BIN_EXE_usdtrec"))
        .args(["record", "--engine=perf", "-o"])
        .arg(lab.file("trace"))
        .args([
            "-e",
            &format!("sdt_node:gc__start(x=*(s32*)isolate)@{program}"),
            "--",
            program,
        ])
        .output()
        .expect("usdtrec");
    let said = String::from_utf8_lossy(&silent.stderr);
    assert_eq!(
        said.lines().count(),
        2,
        "the reason, and what to do: {said}"
    );
}
