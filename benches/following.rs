//! What following files costs that are mapped while recording: `cargo bench --bench following`, as root, on an idle machine.
//!
//! Prints how long after `execve(2)` and `dlopen(3)` of a new file its probes are planted; what programs that begin cost the recorder; how soon the
//! first event is printed on a host with many processes and an empty cache; what `list -a` takes; and what the trace grows by for each file that is
//! added. Beside each is the bar. Nothing is asserted. `USDTREC_BENCH_PROGRAM` gives another build, and arguments the names of the measurements.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run has no other way to say so"
)]

#[path = "../tests/common/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod common;
mod shared;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Build, Lab, Process, copy_program};
use shared::table;
use table::{head, median, row};
use usdtrec_format::trace::{Compression, NewEvents, Trace, TraceInfo, TraceWriter};

/// Recordings in each of which so many files are planted. More would not be reported one by one.
const RECORDINGS: usize = 5;
const FILES: usize = 20;
/// Programs that begin, one after the other.
const PROGRAMS: usize = 1000;
/// Pause between programs that begin now and then.
const SLOW: Duration = Duration::from_millis(20);
/// Processes of a host, for the first event and for `list -a`.
const PROCESSES: usize = 500;
const LISTED_PROCESSES: usize = 1000;
const ROUNDS: usize = 5;
/// What begins next begins after this time.
const PAUSE: Duration = Duration::from_millis(50);

fn main() {
    // `cargo test --benches` only builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&String> = asked.iter().filter(|word| !word.starts_with('-')).collect();
    let is_asked = |name: &str| names.is_empty() || names.iter().any(|asked| *asked == name);
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    if is_asked("latency") {
        latencies(&lab, &program);
    }
    if is_asked("programs") {
        println!("\nµs of the recorder's CPU for each program without probes that begins.\n");
        head(&["", "median", "least to most", "bar"]);
        for (what, pause) in [("at once", Duration::ZERO), ("each 20 ms", SLOW)] {
            let of_known = programs(&lab, false, pause);
            let of_new = programs(&lab, true, pause);
            print(&format!("files known, {what}"), &of_known, "");
            print(&format!("new files, {what}"), &of_new, "");
            let more: Vec<f64> = of_new.iter().zip(&of_known).map(|(a, b)| a - b).collect();
            print("new files, beside known ones", &more, "20");
        }
    }
    if is_asked("host") {
        println!("\nSeconds on a host with many more processes.\n");
        head(&["", "median", "least to most", "bar"]);
        first_event(&lab, &program);
        list(&lab);
    }
    if is_asked("head") {
        println!(
            "\nWhat one more file with a probe adds to a trace: the head again, of all files.\n"
        );
        head(&["files before", "KiB", "ms", "MiB of all so far"]);
        added_files(&lab, &program);
    }
}

fn latencies(lab: &Lab, program: &Path) {
    println!("ms from a file's mapping until its probes are attached.\n");
    head(&["", "median", "p99", "least to most", "bar"]);
    latency("`execve(2)`", lab, "sdt_ticker:tick", |path| {
        copy_program(program, path);
        Process::spawn(Command::new(path))
    });
    let options = &["-shared", "-fPIC", "-O1", "-DPROVIDER=bench_late"];
    let library = build(options).make(lab, "late_library.c", "liblate.so");
    let loader = build(&["-O1", "-ldl"]).make(lab, "late.c", "late");
    latency("`dlopen(3)`", lab, "bench_late:hit", |path| {
        copy_program(&library, path);
        let mut process = Process::spawn(Command::new(&loader));
        std::thread::sleep(PAUSE);
        process.say(&format!("load {}", path.display()));
        process
    });
}

fn build(options: &'static [&'static str]) -> Build {
    Build {
        options,
        ..Build::USUAL
    }
}

/// The program that is measured.
fn usdtrec<'a>(lab: &Lab, arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let program = std::env::var_os("USDTREC_BENCH_PROGRAM");
    let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_usdtrec").into());
    lab.at_home(Path::new(&program), arguments)
}

/// A recorder of all processes that records.
fn recorder(lab: &Lab, event: &str) -> Process {
    let mut recorder = Process::spawn(usdtrec(lab, ["record", "-a", "-e", event, "-o", "trace"]));
    recorder.until_error_line("[ usdtrec record:");
    std::thread::sleep(Duration::from_secs(1));
    recorder
}

/// Measures how long after files were mapped their probes are planted. `begin` makes a file, and lets a process map it.
fn latency(name: &str, lab: &Lab, event: &str, begin: impl Fn(&Path) -> Process) {
    let mut times = Vec::new();
    for _ in 0..RECORDINGS {
        let mut recorder = recorder(lab, event);
        for number in 0..FILES {
            let path = lab.file(&format!("file-{number}"));
            let process = begin(&path);
            let line = recorder.until_error_line("attached 1 probe ");
            times.push(milliseconds(&line));
            drop(process);
            fs::remove_file(&path).unwrap();
            std::thread::sleep(PAUSE);
        }
        recorder.signal("INT");
        recorder.finish().success();
    }
    times.sort_by(f64::total_cmp);
    let last = times[times.len() * 99 / 100];
    let [least, most] = ends(&times);
    row(&[
        name.to_owned(),
        format!("{:.1}", median(&times)),
        format!("{last:.1}"),
        format!("{least:.1} to {most:.1}"),
        "20, p99 50".to_owned(),
    ]);
}

/// The time that the recorder says.
fn milliseconds(line: &str) -> f64 {
    let (_, rest) = line.split_once("attached 1 probe ").unwrap();
    let (number, _) = rest.split_once(" ms").unwrap();
    number.parse().unwrap()
}

/// CPU time for each program that begins, µs, in several rounds.
fn programs(lab: &Lab, are_new: bool, pause: Duration) -> Vec<f64> {
    let number = if pause.is_zero() {
        PROGRAMS
    } else {
        PROGRAMS / 10
    };
    let round = || {
        let paths = (0..number).map(|number| match are_new {
            true => lab.file(&format!("true-{number}")),
            false => lab.file("true"),
        });
        let paths: Vec<_> = paths.collect();
        for path in &paths[..if are_new { number } else { 1 }] {
            copy_program("/bin/true", path);
        }
        let recorder = recorder(lab, "sdt_nothing_has_this:hit");
        let idle = idle(recorder.pid());
        let before = cpu_time(recorder.pid());
        let begun = Instant::now();
        for path in &paths {
            assert!(Command::new(path).status().unwrap().success());
            std::thread::sleep(pause);
        }
        // What the recorder does without programs.
        let alone = idle * begun.elapsed().as_secs_f64();
        std::thread::sleep(PAUSE);
        let taken = cpu_time(recorder.pid()) - before - alone;
        recorder.signal("INT");
        recorder.finish().success();
        for path in paths {
            let _ = fs::remove_file(path);
        }
        taken / number as f64
    };
    (0..ROUNDS).map(|_| round()).collect()
}

/// CPU time of a recorder without anything to do, µs per second.
fn idle(pid: u32) -> f64 {
    let before = cpu_time(pid);
    std::thread::sleep(Duration::from_secs(1));
    cpu_time(pid) - before
}

/// CPU time of a process so far, µs (`/proc/PID/schedstat`, the first number).
fn cpu_time(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_thread = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    threads.flatten().filter_map(of_thread).sum::<f64>() / 1e3
}

/// Processes that map different files, until this is dropped.
struct Sleepers(Vec<Child>);

impl Sleepers {
    fn start(lab: &Lab, count: usize) -> Self {
        let start = |number: usize| {
            let path = lab.file(&format!("sleep-{number}"));
            copy_program("/bin/sleep", &path);
            Command::new(path).arg("1000").spawn().unwrap()
        };
        Self((0..count).map(start).collect())
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn first_event(lab: &Lab, program: &Path) {
    let _sleepers = Sleepers::start(lab, PROCESSES);
    let mut ticker = Process::spawn(Command::new(program));
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let _ = fs::remove_dir_all(lab.cache());
        let begun = Instant::now();
        let mut tracer = Process::spawn(usdtrec(lab, ["trace", "-a", "-e", "sdt_ticker:*"]));
        while tracer.line_within(Duration::ZERO).is_none() {
            ticker.say("fire 1");
            while ticker.line().is_some_and(|line| line != "done") {}
            std::thread::sleep(Duration::from_millis(1));
        }
        times.push(begun.elapsed().as_secs_f64());
        tracer.signal("INT");
        tracer.finish();
    }
    let name = format!("first event of `trace -a`, empty cache, {PROCESSES} processes");
    print(&name, &times, "1");
}

fn list(lab: &Lab) {
    let _sleepers = Sleepers::start(lab, LISTED_PROCESSES);
    let round = || {
        let begun = Instant::now();
        let mut command = usdtrec(lab, ["list", "-a"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().unwrap().success());
        begun.elapsed().as_secs_f64()
    };
    let times: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    print(
        &format!("`list -a`, {LISTED_PROCESSES} processes"),
        &times,
        "1",
    );
}

/// Adds the event of a real trace again and again, as that of another file, in a flush of its own each.
fn added_files(lab: &Lab, program: &Path) {
    const MAX_FILES: usize = 1000;
    let event = format!("sdt_ticker:tick@{}", program.display());
    let path = program.to_str().unwrap();
    let mut record = usdtrec(
        lab,
        ["record", "-q", "-o", "one", "-e", &event, "--", path, "1"],
    );
    assert!(record.status().unwrap().success());
    let one = Trace::open(&lab.file("one")).unwrap().info().clone();
    let file = fs::File::create_new(lab.file("added")).unwrap();
    let mut writer = TraceWriter::create(file, &one, Compression::Zstd(1)).unwrap();
    let mut written = writer.totals().file_bytes;
    let begin = written;
    for number in 0..MAX_FILES {
        let new = added_file(writer.info(), &one, number);
        let begun = Instant::now();
        writer.add_events(new).unwrap();
        writer.flush().unwrap();
        let taken = begun.elapsed();
        let now = writer.totals().file_bytes;
        if [0, 10, 100, 255, 511, MAX_FILES - 1].contains(&number) {
            row(&[
                (number + 1).to_string(),
                format!("{:.0}", (now - written) as f64 / 1024.0),
                format!("{:.1}", taken.as_secs_f64() * 1e3),
                format!("{:.1}", (now - begin) as f64 / f64::from(1 << 20)),
            ]);
        }
        written = now;
    }
    writer.finish(&[]).unwrap();
}

/// The first event of a trace, as that of another file beside a head.
fn added_file(info: &TraceInfo, one: &TraceInfo, number: usize) -> NewEvents {
    let mut event = one.events[0].clone();
    event.name = format!("{}_{number}", event.name);
    event.ids = vec![1 << 40 | number as u64];
    let format = one.tracepoints.first().map(|format| {
        let mut format = format.clone();
        format.name = format!("{}_{number}", format.name);
        format.id += number as u16 + 1;
        event.attr.config = format.id.into();
        format
    });
    let definitions = info.definitions.as_ref().unwrap();
    let mut file = definitions.files[0].clone();
    file.path = format!("/usr/lib/x86_64-linux-gnu/file-{number}.so").into();
    let mut probe = definitions.probes[0].clone();
    probe.file = definitions.files.len();
    probe
        .sites
        .iter_mut()
        .for_each(|site| site.ids.clone_from(&event.ids));
    NewEvents {
        events: vec![event],
        tracepoints: format.into_iter().collect(),
        files: vec![file],
        probes: vec![probe],
    }
}

fn print(name: &str, values: &[f64], bar: &str) {
    let digits = if median(values) < 10.0 { 3 } else { 1 };
    let [least, most] = ends(values);
    row(&[
        name.to_owned(),
        format!("{:.digits$}", median(values)),
        format!("{least:.digits$} to {most:.digits$}"),
        bar.to_owned(),
    ]);
}

/// The least and the most.
fn ends(values: &[f64]) -> [f64; 2] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    [least, values.iter().copied().fold(0.0, f64::max)]
}
