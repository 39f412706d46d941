//! The file that was checked is the file that is planted, whichever user names files and whatever paths mean meanwhile.

mod forged;
mod names;
mod roots;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::common::{Build, Lab, Process, Recorder, Ticker, copy_program, path_text, run, test};

/// Gives a ticker a command, and waits for `done`; the lines before it.
fn tell(ticker: &mut Process, command: &str) -> Vec<String> {
    ticker.say(command);
    let lines = std::iter::from_fn(|| ticker.line());
    lines.take_while(|line| line != "done").collect()
}

/// Whether a ticker's semaphores are raised.
fn is_planted(ticker: &mut Ticker) -> bool {
    ticker.semaphores().0 > 0
}

/// The traced program's directory is its owner's, who exchanges the file with another one all the time. Nothing is planted in
/// the other.
#[test]
fn files_that_change_places() {
    let lab = Lab::privileged();
    let mut traced = Ticker::start(&lab);
    let path = traced.program().to_owned();
    let other = lab.file("other");
    copy_program(&path, &other);
    let mut stranger = Ticker::again(&other);
    let pid = traced.pid().to_string();
    for engine in ["bpf-multi", "bpf-perf", "perf-tracefs"] {
        for round in 0..6 {
            let ended = AtomicBool::new(false);
            let planted = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        renameat_with(CWD, &path, CWD, &other, RenameFlags::EXCHANGE)
                            .expect("an exchange");
                        std::thread::sleep(Duration::from_micros(300));
                    }
                });
                let arguments = ["-p", &pid, "-o", "trace", "--engine", engine];
                let arguments = arguments.into_iter().chain(["-e", "ticker:tick"]);
                let recorder = Recorder::start(&lab, arguments);
                ended.store(true, Ordering::Relaxed);
                let planted = is_planted(&mut traced);
                let harmed = is_planted(&mut stranger);
                let hits = traced.hit("fire 3").len();
                recorder.stop();
                (planted, harmed, hits)
            });
            assert_eq!(planted, (true, false, 3), "{engine}, round {round}");
            assert_eq!(lab.events("trace").len(), 3, "{engine}, round {round}");
        }
    }
}

/// No text of a path is a part of a command to tracefs, where `#` begins a comment.
#[test]
fn names_that_are_commands() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    // Offset and semaphore of another place, if the kernel took them for its own words.
    for name in ["a#b", "x:0x1000(0x2000)#z", "a b", "a\tb", "a\\b", "a\nb"] {
        let path = lab.file(name);
        copy_program(&program, &path);
        let mut ticker = Ticker::again(&path);
        for engine in ["perf-tracefs", "bpf-perf", "perf-pmu"] {
            let event = format!("ticker:tick@{}", path_text(&path));
            let whose = match engine {
                "perf-pmu" => vec!["-a".to_owned()],
                _ => vec!["-p".to_owned(), ticker.pid().to_string()],
            };
            let arguments = ["-o", "trace", "--engine", engine, "-e", &event].map(str::to_owned);
            let recorder = Recorder::start(&lab, whose.into_iter().chain(arguments));
            let hits = ticker.hit("fire 4");
            recorder.stop();
            assert_eq!(lab.events("trace").len(), hits.len(), "{name:?}, {engine}");
        }
    }
}

/// A program at a fixed address whose file is gone: in `map_files`, addresses have no leading zeros.
#[test]
fn deleted_files() {
    let lab = Lab::privileged();
    for options in [&["-O2", "-no-pie"][..], &["-O2", "-pie"]] {
        let build = Build {
            compiler: "gcc",
            options,
        };
        let program = build.make(&lab, "ticker.c", "ticker");
        let mut deleted = Ticker::again(&program);
        fs::remove_file(&program).expect("the file");
        let pid = deleted.pid().to_string();
        let listed = lab.usdtrec(["list", "-p", &pid]).success().silent();
        assert!(listed.stdout.contains("sdt_ticker:tick"), "{options:?}");
        let explained = lab.usdtrec(["list", "-v", "-p", &pid]).success().silent();
        let name = format!("{} (deleted)", path_text(&program));
        assert!(explained.stdout.contains(&name), "{}", explained.stdout);
        // Another program at its path is none of ours.
        fs::copy("/bin/true", &program).expect("a copy");
        let recorder = Recorder::start(&lab, ["-p", &pid, "-o", "trace", "-e", "ticker:tick"]);
        let hits = deleted.hit("fire 5");
        recorder.stop();
        assert_eq!(lab.events("trace").len(), hits.len(), "{options:?}");
    }
}

/// Somebody cuts the file while it is read: no signal ends us.
#[test]
fn files_that_are_cut() {
    let lab = Lab::new();
    let build = Build {
        compiler: "gcc",
        options: &["-O1", "-g"],
    };
    let program = build.make(&lab, "debug.c", "debug");
    let whole = fs::read(&program).expect("a program");
    let name = path_text(&program);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = fs::OpenOptions::new().write(true).open(&program);
            let file = file.expect("a file");
            for len in (0..).map(|step| step * 4096 % whole.len() as u64) {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                file.set_len(len).expect("a shorter file");
                fs::write(&program, &whole).expect("a whole file");
            }
        });
        let start = Instant::now();
        let mut signals = Vec::new();
        while start.elapsed() < Duration::from_secs(4) {
            let list = run(lab.command(["list", "-v", "--file", name]));
            signals.extend(list.status.code().is_none().then_some(list.status));
        }
        ended.store(true, Ordering::Relaxed);
        assert!(signals.is_empty(), "{signals:?}");
    });
}

/// Many files need many descriptors, more than the soft limit allows. The command has the limit that we began with.
#[test]
fn more_files_than_the_limit() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    fs::create_dir(lab.file("many")).expect("a directory");
    let mut content = fs::read(&program).expect("a program");
    let found = content.windows(4).position(|bytes| bytes == b"GNU\0");
    let id = found.expect("a build-id") + 4;
    for number in 0_u8..150 {
        content[id] = number;
        let path = lab.file("many").join(format!("ticker{number}"));
        fs::write(&path, &content).expect("a file");
    }
    lab.usdtrec(["buildid-cache", "--scan", "many"]).success();
    let binary = Path::new(env!("CARGO_BIN_EXE_usdtrec"));
    let shell = format!(
        "ulimit -S -n 100; exec {} record -o trace -e ticker:tick -- sh -c 'ulimit -S -n'",
        String::from_utf8_lossy(binary.as_os_str().as_bytes())
    );
    let record = lab.at_home(Path::new("sh"), ["-c", &shell]);
    let record = run(record).success().complains("in 150 files");
    assert_eq!(record.stdout.trim(), "100");
}

/// Nothing to list is said, and where.
#[test]
fn nothing_to_list() {
    let lab = Lab::new();
    let none = |arguments: &[&str], said: &str| {
        let list = lab.usdtrec([&["list"], arguments].concat()).success();
        assert_eq!(list.stdout, "");
        list.complains(said);
    };
    none(&["--file", "/bin/true"], "/bin/true has no SDT probes");
    let mut sleep = Command::new("sleep");
    sleep.arg("100");
    let sleep = Process::spawn(sleep);
    let pid = sleep.pid().to_string();
    fs::create_dir(lab.file("empty")).expect("a directory");
    none(&["--dir", "empty"], "no file below empty has SDT probes");
    // The C library has some; whether `sleep` maps it is not ours to know.
    lab.usdtrec(["list", "-p", &pid]).success();
}
