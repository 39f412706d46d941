//! Stacks that are hard to follow, against what the program says that it is in.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::recorded::{FRAME_POINTERS, path};
use super::{BUILD, frames, ours};
use crate::common::{Build, Lab, Process, Recorder, test};

/// The functions of the program.
const FUNCTIONS: [&str; 9] = [
    "hits", "deeper", "vforks", "handler", "raises", "below", "spoils", "runs", "main",
];
const OTHER_STACK: &str =
    "\t[cut: a signal was handled on a stack of its own, and the interrupted one was not copied]";

/// What the program printed: its functions at each hit, the innermost first.
fn said(printed: &str) -> Vec<Vec<&str>> {
    let lines = printed
        .lines()
        .filter_map(|line| line.strip_prefix("stack "));
    lines.map(|line| line.split(' ').collect()).collect()
}

/// The functions of the program among frames. A recursion is one.
fn own(frames: &[String]) -> Vec<&str> {
    let names = frames.iter().filter_map(|frame| frame.split_once("+0x"));
    let own = names
        .map(|(name, _)| name)
        .filter(|name| FUNCTIONS.contains(name));
    let mut own: Vec<&str> = own.collect();
    own.dedup();
    own
}

/// Records a run of the program. Returns what it said.
#[track_caller]
fn record(lab: &Lab, program: &Path, options: &[&str], arguments: &[&str]) -> Vec<Vec<String>> {
    let event = format!("*:*@{}", program.display());
    let start = ["record", "-q", "-o", "stacks", "-e", &event];
    let words = [&start[..], options, &["--", path(program)], arguments].concat();
    let printed = lab.usdtrec(words).success().stdout;
    let said = said(&printed).into_iter();
    let said = said.map(|stack| stack.into_iter().map(str::to_owned).collect());
    said.collect()
}

/// The stacks are whole, and have the functions that the program says.
#[track_caller]
fn check_whole(lab: &Lab, said: &[Vec<String>], what: &str) {
    let all = ours(lab);
    let events = frames(&all);
    assert_eq!(events.len(), said.len(), "{what}");
    for (event, said) in events.iter().zip(said) {
        assert_eq!(own(event), *said, "{what}: {event:?}");
        let outermost = event.last().expect("a frame");
        assert!(!outermost.contains("[cut: "), "{what}: {event:?}");
    }
}

#[test]
fn are_what_the_program_says() {
    let lab = Lab::privileged();
    let builds: [&[&str]; 4] = [
        &["-O3", "-fomit-frame-pointer"],
        &["-O1", "-fno-omit-frame-pointer"],
        &["-Os", "-no-pie"],
        &["-O2", "-static"],
    ];
    for options in builds {
        let build = Build {
            compiler: "gcc",
            options,
        };
        fs::remove_dir_all(lab.cache()).ok();
        let program = build.make(&lab, "moving.c", "moving");
        for kind in ["plain", "vfork", "handler"] {
            // The kernel saves vector registers between a handler and what it interrupted.
            let said = record(&lab, &program, &["--call-graph", "dwarf,32K"], &[kind]);
            let hits = if kind == "vfork" { 4 } else { 2 };
            assert_eq!(said.len(), hits);
            check_whole(&lab, &said, &format!("{options:?} {kind}"));
        }
    }
}

/// musl has no unwind information for its own functions.
#[test]
fn of_a_static_program_with_another_c_library_are_its_own_functions() {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "musl-gcc",
        options: &["-O2", "-static", "-idirafter/usr/include/x86_64-linux-gnu"],
    };
    let program = build.make(&lab, "moving.c", "moving");
    let why = format!(
        "\t[cut: no unwind information for this function in {}]",
        program.display()
    );
    for kind in ["plain", "vfork"] {
        let said = record(&lab, &program, &["-g"], &[kind]);
        let all = ours(&lab);
        let events = frames(&all);
        assert_eq!(events.len(), said.len());
        for (event, said) in events.iter().zip(&said) {
            assert_eq!(own(event), *said, "{event:?}");
            assert_eq!(event.last(), Some(&why), "{event:?}");
        }
    }
}

/// The other stack is below or above that of the program, so that it looks as if the copy ended too early, or began too late.
#[test]
fn of_handlers_on_a_stack_of_their_own_say_so() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "moving.c", "moving");
    for kind in ["other", "below"] {
        for options in [
            &["-g"][..],
            &["--call-graph", "dwarf,32K"],
            &["-g", "--engine", "perf"],
        ] {
            let said = record(&lab, &program, options, &[kind]);
            let all = ours(&lab);
            let events = frames(&all);
            assert_eq!(events.len(), said.len());
            for (event, said) in events.iter().zip(&said) {
                assert_eq!(said[..2], ["hits", "handler"]);
                assert_eq!(own(event), said[..2], "{event:?}");
                let (last, frames) = event.split_last().expect("a frame");
                assert_eq!(last, OTHER_STACK, "{kind} {options:?}");
                // Where the handler returns to, and what it interrupted, which is of the C library.
                assert_eq!(frames.len(), 4, "{event:?}");
            }
        }
    }
}

#[test]
fn that_were_written_over_end() {
    let lab = Lab::privileged();
    let program = FRAME_POINTERS.make(&lab, "moving.c", "moving");
    for graph in ["auto", "fp", "dwarf,32K"] {
        for kind in ["garbage", "data", "again", "cyclic", "lower"] {
            let options = ["--call-graph", graph];
            let said = record(&lab, &program, &options, &[kind]);
            assert_eq!(said.len(), 2);
            let all = ours(&lab);
            let events = frames(&all);
            assert_eq!(events.len(), 2);
            for event in events {
                // What is right comes first.
                let own = own(event);
                assert_eq!(own[..2], ["hits", "spoils"], "{graph} {kind}: {event:?}");
                assert!(event.len() <= 9, "{graph} {kind}: {event:?}");
                let last = event.last().expect("a frame");
                let is_cut = last.starts_with("\t[cut: ");
                // A return address of 0 is that of the outermost function.
                assert!(is_cut || kind == "again", "{graph} {kind}: {event:?}");
            }
        }
    }
}

#[test]
fn of_a_hundred_thousand_frames_are_cut() {
    let lab = Lab::privileged();
    let program = FRAME_POINTERS.make(&lab, "moving.c", "moving");
    let beyond = "\t[cut: the next frame is beyond the stack that was copied]";
    for (options, most, why) in [
        (
            &["--call-graph", "fp"][..],
            127,
            "\t[cut: the limit of frames is 127]",
        ),
        (
            &["--call-graph", "fp", "--max-stack", "1024"],
            1024,
            "\t[cut: the limit of frames is 1024]",
        ),
        (&["-g", "--max-stack", "1024"], 1024, beyond),
        (
            &["--call-graph", "dwarf,16K", "--max-stack", "1024"],
            1024,
            beyond,
        ),
        (
            &["--call-graph", "dwarf,32K", "--max-stack", "100"],
            100,
            "\t[cut: the limit of frames is 100]",
        ),
    ] {
        record(&lab, &program, options, &["plain", "100000"]);
        let all = ours(&lab);
        let events = frames(&all);
        assert_eq!(events.len(), 2);
        for event in events {
            assert_eq!(own(event), ["hits", "deeper"]);
            assert_eq!(event.last().map(String::as_str), Some(why), "{options:?}");
            assert!((20..=most + 1).contains(&event.len()), "{}", event.len());
        }
    }
}

/// A process that waits with the program in it; records it until it ends.
#[track_caller]
fn record_process(lab: &Lab, process: Process) -> Vec<Vec<String>> {
    let pid = process.pid().to_string();
    let words = ["-g", "-p", &pid, "-e", "moving:*", "-o", "stacks"];
    let recorder = Recorder::start(lab, words);
    let printed = process.finish().success().stdout;
    recorder.finish().success();
    let said = said(&printed).into_iter();
    let said = said.map(|stack| stack.into_iter().map(str::to_owned).collect());
    said.collect()
}

/// Waits until a process runs a program that is called so.
#[track_caller]
fn wait_for_program(process: &Process, name: &str) {
    let link = format!("/proc/{}/exe", process.pid());
    crate::common::wait_until("the program runs", || {
        fs::read_link(&link).is_ok_and(|path| path.to_string_lossy().contains(name))
    });
}

#[test]
fn of_a_program_in_memory_are_whole_with_names() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "moving.c", "moving");
    let mut command = Command::new(&program);
    command.args(["memfd", "plain", "5"]);
    let process = Process::spawn(command);
    wait_for_program(&process, "memfd:moving");
    let said = record_process(&lab, process);
    assert_eq!(said.len(), 2);
    fs::remove_file(&program).expect("the program");
    check_whole(&lab, &said, "memfd");
}

/// No file is at its path outside of its mount namespace.
#[test]
fn of_a_program_in_another_mount_namespace_are_whole_with_names() {
    let lab = Lab::privileged();
    crate::common::need_tool("unshare");
    let program = BUILD.make(&lab, "moving.c", "moving");
    let inside = lab.file("inside");
    fs::create_dir(&inside).expect("a directory");
    let script =
        "mount -t tmpfs none \"$1\" && cp \"$0\" \"$1/app\" && WAITS=yes exec \"$1/app\" plain 5";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]);
    command.args([&program, &inside]);
    let process = Process::spawn(command);
    wait_for_program(&process, "/app");
    let said = record_process(&lab, process);
    assert_eq!(said.len(), 2);
    assert!(!inside.join("app").exists());
    check_whole(&lab, &said, "a mount namespace");
}

#[test]
fn of_32_bit_programs_are_found_by_frame_pointers_alone() {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "gcc",
        options: &["-m32", "-O1", "-fno-omit-frame-pointer"],
    };
    let program = build.make(&lab, "moving.c", "moving");
    for kind in ["plain", "vfork"] {
        let said = record(&lab, &program, &["--call-graph", "fp"], &[kind]);
        let all = ours(&lab);
        for (event, said) in frames(&all).iter().zip(&said) {
            assert_eq!(own(event), *said, "{event:?}");
        }
        let said = record(&lab, &program, &["-g"], &[kind]);
        let all = ours(&lab);
        for (event, said) in frames(&all).iter().zip(&said) {
            assert_eq!(own(event), said[..1], "{event:?}");
            let why = "\t[cut: stacks of 32-bit programs are not unwound]";
            assert_eq!(event[1..], [why]);
        }
    }
}
