//! C++: `libstdcxx:throw` and `libstdcxx:catch`, system-wide, in the library that every program shares.

use std::process::Command;

use crate::common::{Build, Event, Lab, Process, Recorder, run};

const CXX: Build = Build {
    compiler: "g++",
    options: &["-O2"],
};

/// The library that the program is linked with.
fn library_of(program: &std::path::Path) -> String {
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
    let Some(lab) = Lab::privileged() else { return };
    let Some(program) = CXX.make(&lab, "thrower.cc", "thrower") else {
        return;
    };
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
    let of = |name: &str| -> Vec<&Event> {
        events.iter().filter(|event| event.name() == name).collect()
    };
    let thrown: Vec<_> = of("throw")
        .iter()
        .map(|event| (event.integer(1), event.integer(2)))
        .collect();
    assert_eq!(thrown, expected);
    // The type of what is caught lies in memory that the stack does not reach.
    let caught = of("catch");
    assert_eq!(caught.len(), 20);
    for (event, (object, kind)) in caught.iter().zip(&expected) {
        for (number, right) in [(1, object), (2, kind)] {
            if let Ok(value) = event.argument(number) {
                assert_eq!(value, crate::common::Number::Integer(*right), "arg{number}");
            }
        }
    }
}

/// The name of the type is two pointers away.
#[test]
fn names_of_types() {
    let Some(lab) = Lab::privileged() else { return };
    let Some(program) = CXX.make(&lab, "thrower.cc", "thrower") else {
        return;
    };
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
        let events = events.iter().filter(|event| event.name() == name);
        let types: Vec<_> = events.map(|event| event.named("type")).collect();
        assert_eq!(types, names, "{name}");
    }
}
