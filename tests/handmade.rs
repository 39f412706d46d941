//! Operand forms that no compiler is sure to emit: hand-written notes with known values.

use crate::common::{Build, Engine, Expected, Hit, Lab, Number, judge, need_tool, sites_of, test};

/// As is usual for assembly, nothing in the program says how large its frames are.
const X86_64: Build = Build {
    compiler: "gcc",
    options: &["-O1", "-fno-asynchronous-unwind-tables"],
};
const I386: Build = Build {
    compiler: "gcc",
    options: &[
        "-O1",
        "-m32",
        "-no-pie",
        "-fno-pic",
        "-fno-asynchronous-unwind-tables",
    ],
};

/// Records a hand-written target from its start to its end, and judges all its probes.
#[track_caller]
fn every_argument_is_right(source: &str, build: Build, starter: &[&str]) {
    let lab = Lab::privileged();
    let program = build.make(&lab, source, "handmade");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("*:*@{path}");
    for engine in Engine::ALL {
        let command = [starter, &[path]].concat();
        let recorded = lab
            .usdtrec(engine.record("trace", &event, &command))
            .success()
            .complains(engine.words());
        let hits = Hit::parse_lines(&recorded.stdout);
        let sites = sites_of(&lab, &program);
        judge(&hits, &lab.events("trace"), &sites, (build, engine));
    }
}

#[test]
fn x86_64() {
    every_argument_is_right("handmade_x86_64.c", X86_64, &[]);
}

#[test]
fn i386() {
    every_argument_is_right("handmade_i386.c", I386, &[]);
}

/// Without randomization the stack is in the last pages below the end of the address space. There the kernel copies less of it than is asked for, and any
/// number of bytes.
#[test]
fn i386_at_the_end_of_the_address_space() {
    need_tool("setarch");
    every_argument_is_right("handmade_i386.c", I386, &["setarch", "-R"]);
}

/// An argument deeper in the frame than what perf events copy is missing.
#[test]
fn what_is_beyond_the_copied_stack_is_missing() {
    let lab = Lab::privileged();
    let program = X86_64.make(&lab, "handmade_x86_64.c", "handmade");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("sdt_shapes:beyond_frame@{path}");
    let start = ["record", "--engine", "perf", "-o", "short", "-e", &event];
    lab.usdtrec([&start[..], &["--", path]].concat()).success();
    let short = &lab.events("short")[0];
    let reason = short.argument(1).expect_err("9000 bytes up the stack");
    assert!(reason.contains("beyond"), "{reason}");
    assert_eq!(short.integer(2), 88, "8 bytes up the stack");
}

/// The marks of shapes.h mean what they say: a wrong value is never taken for a right one.
#[test]
fn the_judge_is_strict() {
    let hit = Hit::parse("fire x =5 ?f0.10000000149011612 !red_zone").expect("a hit");
    assert_eq!(hit.arguments[0], Expected::Must(Number::Integer(5)));
    assert_eq!(
        hit.arguments[2],
        Expected::Missing("red zone".to_owned(), None)
    );
    assert!(!Number::Integer(5).is(Number::Float(5.0), false));
    assert!(Number::Float(f64::from(0.1_f32)).is(Number::Float(0.1), true));
    assert!(!Number::Float(f64::from(0.1_f32)).is(Number::Float(0.1), false));
}
