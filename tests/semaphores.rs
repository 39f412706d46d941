//! Semaphores of programs whose segments share pages of the file: linked by lld, mold, and by Rust's default linker. Each program counts how
//! often it found its probe enabled, and the recording must have exactly these hits.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::{
    Build, Engine, Finished, Lab, Process, Recorder, Ticker, byte_of, complaints, copy_program,
    need_tool, run, sites_of, test, wait_until,
};

const LLD: Build = Build {
    compiler: "clang",
    options: &["-O2", "-fuse-ld=lld"],
};
const MOLD: Build = Build {
    compiler: "clang",
    options: &["-O2", "-fuse-ld=mold"],
};
/// Not position-independent.
const FIXED: Build = Build {
    compiler: "clang",
    options: &["-O2", "-fuse-ld=lld", "-no-pie"],
};
const LLD_32: Build = Build {
    compiler: "gcc",
    options: &["-O2", "-m32", "-fuse-ld=lld"],
};
/// Hits its probe without asking the semaphore.
const ALWAYS: Build = Build {
    compiler: "clang",
    options: &["-O2", "-fuse-ld=lld", "-DALWAYS"],
};
const BFD: Build = Build {
    compiler: "gcc",
    options: &["-O2", "-fuse-ld=bfd"],
};
const LLD_LIBRARY: Build = Build {
    compiler: "clang",
    options: &["-O2", "-fuse-ld=lld", "-DLIBRARY", "-shared", "-fPIC"],
};
const MOLD_LIBRARY: Build = Build {
    compiler: "clang",
    options: &["-O2", "-fuse-ld=mold", "-DLIBRARY", "-shared", "-fPIC"],
};

/// How often the programs found the probe enabled, by what they printed.
fn enabled(outputs: &str) -> usize {
    let lines = outputs
        .lines()
        .filter_map(|line| line.strip_prefix("enabled "));
    let hits = lines.filter_map(|line| line.split(' ').next()?.parse::<usize>().ok());
    hits.sum()
}

/// The event of a file.
fn event(file: &Path) -> String {
    format!("counted:step@{}", file.display())
}

/// The number of recorded hits.
#[track_caller]
fn recorded(lab: &Lab) -> usize {
    lab.events("trace").len()
}

fn spawn(program: &Path, arguments: &[&str]) -> Process {
    let mut command = Command::new(program);
    command.args(arguments);
    Process::spawn(command)
}

/// A lab for a test that needs the linkers.
#[track_caller]
fn lab_with_linkers() -> Lab {
    for linker in ["ld.lld", "mold"] {
        need_tool(linker);
    }
    Lab::privileged()
}

/// A command is stopped before its first instruction, until its semaphores are set.
#[test]
fn a_command_has_all_hits() {
    for build in [LLD, MOLD, FIXED, BFD] {
        let lab = lab_with_linkers();
        let built = build.make(&lab, "counted.c", "built");
        for engine in Engine::ALL {
            let program = lab.file(engine.option());
            copy_program(&built, &program);
            let path = program.to_str().expect("UTF-8");
            let event = event(&program);
            let finished = lab
                .usdtrec(engine.record("trace", &event, &[path, "1000", "0"]))
                .success();
            assert_eq!(enabled(&finished.stdout), 1000, "{build:?} {engine:?}");
            assert_eq!(recorded(&lab), 1000, "{build:?} {engine:?}");
            assert!(
                !finished.stderr.contains("semaphore"),
                "{}",
                finished.stderr
            );
            assert_eq!(complaints(&program), 0, "{build:?} {engine:?}");
        }
    }
}

#[test]
fn a_32_bit_command_has_all_hits() {
    let lab = lab_with_linkers();
    let program = LLD_32.make(&lab, "counted.c", "counted");
    let path = program.to_str().expect("UTF-8");
    let event = event(&program);
    let command = [path, "1000", "0"];
    let finished = lab
        .usdtrec(Engine::BpfMulti.record("trace", &event, &command))
        .success();
    assert_eq!(enabled(&finished.stdout), 1000);
    assert_eq!(recorded(&lab), 1000);
}

/// Processes that run already, and their children.
#[test]
fn running_processes() {
    for build in [LLD, MOLD] {
        for engine in Engine::ALL {
            let lab = lab_with_linkers();
            let program = build.make(&lab, "ticker.c", "ticker");
            let mut target = Ticker::again(&program);
            let mut stranger = Ticker::again(&program);
            assert_eq!(target.tell("guarded 3"), [""; 0]);
            let pid = target.pid().to_string();
            let event = format!("ticker:guarded@{}", program.display());
            let mut arguments = vec!["--engine", engine.option(), "-o", "trace", "-e", &event];
            arguments.extend(["-p", &pid]);
            if engine == Engine::PerfPmu {
                arguments.push("--no-inherit");
            }
            let recorder = Recorder::start(&lab, arguments);
            assert_eq!(target.tell("guarded 3").len(), 3, "{engine:?}");
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(target.tell("guarded 4").len(), 4, "{engine:?}");
            assert_eq!(stranger.tell("guarded 3"), [""; 0], "{engine:?}");
            recorder.stop();
            assert_eq!(recorded(&lab), 7, "{engine:?}");
            assert_eq!(target.semaphores(), (0, 0), "{engine:?}");
            assert_eq!(target.tell("guarded 3"), [""; 0]);
            nothing_is_left(&lab, &program, target.pid());
            drop(stranger);
        }
    }
}

/// The sites of a running process have their own bytes, and the kernel has not complained.
#[track_caller]
fn nothing_is_left(lab: &Lab, program: &Path, pid: u32) {
    for site in sites_of(lab, program) {
        wait_until("the site's own byte", || {
            byte_of(pid, program, site.pc) == 0x90
        });
    }
    for byte in 9..16 {
        wait_until("the place's own byte", || byte_of(pid, program, byte) == 0);
    }
    assert_eq!(complaints(program), 0);
    let doctor = lab.usdtrec(["doctor"]);
    assert!(!doctor.stdout.contains("semaphore"), "{}", doctor.stdout);
}

/// Processes that start while recording: each hit from the moment on in which the semaphore is set.
#[test]
fn later_processes() {
    for build in [LLD, MOLD, ALWAYS] {
        for engine in [Engine::BpfMulti, Engine::PerfTracefs] {
            let lab = lab_with_linkers();
            let program = build.make(&lab, "counted.c", "counted");
            let recorder = start(&lab, engine, &event(&program));
            let later: Vec<Process> = (0..6).map(|_| spawn(&program, &["100", "5000"])).collect();
            let outputs: String = later
                .into_iter()
                .map(|it| it.finish().success().stdout)
                .collect();
            let finished = recorder.stop();
            let hits = recorded(&lab);
            if build.options != ALWAYS.options {
                assert_eq!(hits, enabled(&outputs), "{build:?} {engine:?}: {outputs}");
            }
            // How long the gap is depends on the machine.
            let has_hits = hits > 0 && !outputs.contains("enabled 0 ");
            assert!(has_hits, "{build:?} {engine:?}: {outputs}");
            assert!(
                finished
                    .stderr
                    .contains("after its code was mapped; hits in this time are missing"),
                "{}",
                finished.stderr
            );
            assert_eq!(complaints(&program), 0);
        }
    }
}

#[track_caller]
fn start(lab: &Lab, engine: Engine, event: &str) -> Recorder {
    let arguments = [
        "-a",
        "--engine",
        engine.option(),
        "-o",
        "trace",
        "-e",
        event,
    ];
    Recorder::start(lab, arguments)
}

/// Nothing is left in processes that outlive the recording in which they started.
#[test]
fn the_recording_ends_first() {
    for build in [LLD, MOLD] {
        let lab = lab_with_linkers();
        let program = build.make(&lab, "ticker.c", "ticker");
        let event = format!("ticker:*@{}", program.display());
        let recorder = start(&lab, Engine::BpfMulti, &event);
        let mut later: Vec<Ticker> = (0..3).map(|_| Ticker::again(&program)).collect();
        for ticker in &mut later {
            wait_until("the increment", || ticker.semaphores() != (0, 0));
        }
        // By now the kernel counts.
        std::thread::sleep(Duration::from_millis(300));
        for ticker in &mut later {
            assert_eq!(ticker.tell("guarded 5").len(), 5);
            assert_eq!(ticker.hit("fork 3").len(), 3);
            assert_eq!(ticker.hit("exec 2").len(), 2);
        }
        recorder.stop();
        for ticker in &mut later {
            assert_eq!(ticker.semaphores(), (0, 0));
            nothing_is_left(&lab, &program, ticker.pid());
        }
        assert_eq!(recorded(&lab), 3 * 10);
    }
}

/// Children have their parents' semaphores, and executed programs have their own.
#[test]
fn children_and_executed_programs() {
    for build in [LLD, MOLD] {
        for more in [["fork", ""], ["exec", "4"]] {
            let lab = lab_with_linkers();
            let program = build.make(&lab, "counted.c", "counted");
            let recorder = start(&lab, Engine::BpfMulti, &event(&program));
            let mut arguments = vec!["100", "5000"];
            arguments.extend(more);
            let later: Vec<Process> = (0..3).map(|_| spawn(&program, &arguments)).collect();
            let outputs: String = later
                .into_iter()
                .map(|it| it.finish().success().stdout)
                .collect();
            recorder.stop();
            assert_eq!(
                recorded(&lab),
                enabled(&outputs),
                "{build:?} {more:?}: {outputs}"
            );
            // A child that was forked before its parent's semaphore was incremented has its own incremented, too.
            assert!(!outputs.contains("enabled 0 "), "{outputs}");
            assert_eq!(complaints(&program), 0);
        }
    }
}

/// Children that live on when the recording ends.
#[test]
fn children_outlive_the_recording() {
    let lab = lab_with_linkers();
    let program = LLD.make(&lab, "counted.c", "counted");
    let recorder = start(&lab, Engine::BpfMulti, &event(&program));
    let later: Vec<Process> = (0..3)
        .map(|_| spawn(&program, &["200", "5000", "fork"]))
        .collect();
    std::thread::sleep(Duration::from_millis(400));
    recorder.stop();
    let outputs: String = later
        .into_iter()
        .map(|it| it.finish().success().stdout)
        .collect();
    assert_eq!(recorded(&lab), enabled(&outputs), "{outputs}");
    assert!(enabled(&outputs) < 6 * 200, "{outputs}");
    assert_eq!(complaints(&program), 0);
}

/// A library that a program opens.
#[test]
fn opened_libraries() {
    for build in [LLD_LIBRARY, MOLD_LIBRARY] {
        let lab = lab_with_linkers();
        let program = BFD.make(&lab, "counted.c", "opener");
        let library = build.make(&lab, "counted.c", "libcounted.so");
        let path = library.to_str().expect("UTF-8");
        let arguments = ["100", "5000", "load", path];
        let recorder = start(&lab, Engine::BpfMulti, &event(&library));
        let mut later: Vec<Process> = (0..3).map(|_| spawn(&program, &arguments)).collect();
        // As a library that the program needs: the loader maps it before the program begins.
        for _ in 0..3 {
            let mut command = Command::new(&program);
            command.args(arguments).env("LD_PRELOAD", &library);
            later.push(Process::spawn(command));
        }
        let outputs: String = later
            .into_iter()
            .map(|it| it.finish().success().stdout)
            .collect();
        recorder.stop();
        assert_eq!(recorded(&lab), enabled(&outputs), "{build:?}: {outputs}");
        let has_hits = enabled(&outputs) > 0 && !outputs.contains("enabled 0 ");
        assert!(has_hits, "{build:?}: {outputs}");
        assert_eq!(complaints(&library), 0);
    }
}

/// Each of two recorders increments for itself, and the one that ends first leaves the other one its share.
#[test]
fn two_recordings() {
    for build in [LLD, MOLD] {
        let lab = lab_with_linkers();
        let program = build.make(&lab, "ticker.c", "ticker");
        let event = format!("ticker:guarded@{}", program.display());
        let record = |trace: &str| {
            let arguments = ["-a", "--engine", "bpf", "-o", trace, "-e", &event];
            Recorder::start(&lab, arguments)
        };
        let mut running = Ticker::again(&program);
        let (first, second) = (record("first"), record("trace"));
        let mut later = Ticker::again(&program);
        let each = |tickers: [&mut Ticker; 2], hits: usize| {
            for ticker in tickers {
                wait_until("the increment", || ticker.semaphores() != (0, 0));
                assert_eq!(ticker.tell(&format!("guarded {hits}")).len(), hits);
            }
        };
        each([&mut running, &mut later], 3);
        // By now the kernel counts.
        std::thread::sleep(Duration::from_millis(500));
        each([&mut running, &mut later], 4);
        first.stop();
        each([&mut running, &mut later], 5);
        second.stop();
        assert_eq!(lab.events("first").len(), 2 * 7);
        assert_eq!(recorded(&lab), 2 * 12);
        for ticker in [&mut running, &mut later] {
            assert_eq!(ticker.semaphores(), (0, 0));
            nothing_is_left(&lab, &program, ticker.pid());
        }
    }
}

/// When the recorder is killed, the kernel decrements what it counts.
#[test]
fn a_killed_recorder() {
    let lab = lab_with_linkers();
    let program = LLD.make(&lab, "ticker.c", "ticker");
    let mut target = Ticker::again(&program);
    let event = format!("ticker:*@{}", program.display());
    let recorder = start(&lab, Engine::BpfMulti, &event);
    // By now the kernel counts.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(target.tell("guarded 3").len(), 3);
    recorder.signal("KILL");
    let _: Finished = recorder.finish();
    wait_until("the decrement", || target.semaphores() == (0, 0));
    nothing_is_left(&lab, &program, target.pid());
}

/// A semaphore that the recorder has incremented by hand is decremented by `doctor --heal` or by the next recording, of whatever it is.
#[test]
fn a_killed_recorder_that_counts_by_hand() {
    for heals in ["doctor", "record"] {
        need_tool("ld.lld");
        let lab = Lab::with_own_notes();
        let program = LLD.make(&lab, "ticker.c", "ticker");
        let mut target = Ticker::again(&program);
        // The kernel would find the wrong mapping of the semaphores, so it never counts.
        assert_eq!(target.tell("unprotect"), [""; 0]);
        let event = format!("ticker:*@{}", program.display());
        let recorder = start(&lab, Engine::BpfMulti, &event);
        assert_eq!(target.tell("guarded 3").len(), 3);
        recorder.signal("KILL");
        let _: Finished = recorder.finish();
        wait_until("the site's own byte", || {
            let sites = sites_of(&lab, &program);
            let pid = target.pid();
            sites
                .iter()
                .all(|site| byte_of(pid, &program, site.pc) == 0x90)
        });
        assert_eq!(target.semaphores(), (1, 1));
        let said = "2 semaphores left incremented by a killed recorder; ";
        let doctor = lab.usdtrec(["doctor"]).exits(1).stdout;
        let found = format!(
            "process {}: {said}would be decremented with --heal",
            target.pid()
        );
        assert!(doctor.contains(&found), "{doctor}");
        assert_eq!(target.semaphores(), (1, 1));
        if heals == "doctor" {
            let doctor = lab.usdtrec(["doctor", "--heal"]).stdout;
            assert!(doctor.contains(&format!("{said}decremented")), "{doctor}");
        } else {
            let other = BFD.make(&lab, "counted.c", "other");
            let other = start(&lab, Engine::BpfMulti, &self::event(&other));
            assert_eq!(target.semaphores(), (0, 0));
            other.stop();
        }
        assert_eq!(target.semaphores(), (0, 0));
        let doctor = lab.usdtrec(["doctor"]).stdout;
        assert!(!doctor.contains("semaphore"), "{doctor}");
        assert_eq!(complaints(&program), 0);
    }
}

/// Rust's default linker for x86-64 is lld.
#[test]
fn a_rust_program() {
    let lab = lab_with_linkers();
    let source = lab.file("counted.rs");
    std::fs::write(&source, RUST).expect("a file");
    let program: PathBuf = lab.file("counted");
    let mut rustc = Command::new("rustc");
    rustc
        .args(["-O", "--edition=2021", "-o"])
        .arg(&program)
        .arg(&source);
    run(rustc).success();
    let path = program.to_str().expect("UTF-8");
    let event = event(&program);
    let finished = lab
        .usdtrec(Engine::BpfMulti.record("trace", &event, &[path]))
        .success();
    assert_eq!(enabled(&finished.stdout), 1000);
    assert_eq!(recorded(&lab), 1000);
    assert_eq!(complaints(&program), 0);
}

const RUST: &str = r#"
use std::arch::global_asm;
#[no_mangle]
#[link_section = ".probes"]
pub static mut counted_step_semaphore: u16 = 0;
extern "C" { fn counted_step(); }
global_asm!("
.globl counted_step
.type counted_step, @function
counted_step:
990: nop
ret
.pushsection .note.stapsdt,\"\",@note
.balign 4
.4byte 992f-991f, 994f-993f, 3
991: .asciz \"stapsdt\"
992: .balign 4
993: .8byte 990b
.8byte _.stapsdt.base
.8byte counted_step_semaphore
.asciz \"counted\"
.asciz \"step\"
.asciz \"\"
994: .balign 4
.popsection
.pushsection .stapsdt.base,\"aG\",@progbits,.stapsdt.base,comdat
.weak _.stapsdt.base
.hidden _.stapsdt.base
_.stapsdt.base: .space 1
.size _.stapsdt.base, 1
.popsection
");
fn main() {
    let mut hits = 0;
    for _ in 0..1000 {
        if unsafe { std::ptr::read_volatile(&raw const counted_step_semaphore) } > 0 {
            unsafe { counted_step() };
            hits += 1;
        }
    }
    println!("enabled {hits} of 1000");
}
"#;
