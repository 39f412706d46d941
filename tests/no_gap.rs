//! `--no-gap`: a thread that maps a new file with code is held in the kernel until its probes are planted, so no hit is missed, and none stays held.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use usdtrec_testing::{is_deep, repetitions, skip};

use crate::common::{Build, Finished, Lab, Process, Recorder, Ticker, test};
use crate::held_children::RAN_BEFORE;
use crate::other_processes::kernel_holds;

/// Number of files of one recording. At most 256 are planted for a user.
fn files() -> usize {
    if is_deep() { 100 } else { 20 }
}

/// What the recorder says of a file whose thread was held.
const IN_TIME: &str = " before its code ran: the thread was held for ";
/// What it says if one was not, or not for long enough.
const UNHELD: &str = "the thread was not held until";
/// What it says if a thread was held until it went on without waiting for a slow file.
const LATE: &str = "hits in that time are not recorded";

/// Threads are held, or the recorder does not begin.
const HELD: &str = "--no-gap=held";

/// Leaves the test out where the kernel cannot hold threads; what is refused and said then is checked here.
fn needs_hold(lab: &Lab) {
    if kernel_holds() {
        return;
    }
    lab.usdtrec(["record", HELD, "-e", "nogap:*", "--", "true"])
        .exits(1)
        .complains("holds threads at new mappings");
    lab.usdtrec(["record", "--no-gap", "-e", "nogap:*", "--", "true"])
        .complains("--no-gap: threads that map new files cannot be held");
    skip("the kernel holds no threads");
}

/// Builds testdata/targets/early.c with these options.
pub(crate) fn early(lab: &Lab, options: &[&'static str], name: &str) -> PathBuf {
    let build = Build {
        options: Vec::leak(options.to_vec()),
        ..Build::USUAL
    };
    build.make(lab, "early.c", name)
}

/// musl has no sys/sdt.h.
const LIBRARY: [&str; 5] = [
    "-shared",
    "-fPIC",
    "-O1",
    "-idirafter",
    "/usr/include/x86_64-linux-gnu",
];

/// The loader of testdata/targets/late.c.
fn loader(lab: &Lab, compiler: &'static str) -> PathBuf {
    let build = Build {
        compiler,
        options: &["-O1", "-ldl"],
    };
    build.make(lab, "late.c", "late")
}

/// Records a command until it ends.
fn record(lab: &Lab, event: &str, command: &[&str]) -> Finished {
    let arguments = ["record", HELD, "-e", event, "-o", "trace", "--"];
    let words = arguments.iter().chain(command).copied();
    lab.usdtrec(words.collect::<Vec<_>>()).success()
}

/// Whether the trace has all the hits, or the recorder reports that it was too slow: a thread or child is held for two seconds at most.
#[track_caller]
fn has_all(lab: &Lab, ended: &Finished, hits: usize) -> bool {
    let found = lab.events("trace").len();
    let is_late = found < hits && ended.stderr.contains(LATE);
    if is_late || ended.stderr.contains(UNHELD) || ended.stderr.contains(RAN_BEFORE) {
        assert!(found <= hits, "{ended:?}");
        return false;
    }
    assert_eq!(found, hits, "{}", ended.stderr);
    true
}

/// Tries again while the machine is too slow.
#[track_caller]
fn until_all(mut attempt: impl FnMut() -> bool) {
    for _ in 0..repetitions("USDTREC_TEST_FIRST_HITS", 1) {
        assert!(
            (0..5).any(|_| attempt()),
            "the machine is too slow each time"
        );
    }
}

/// A shell script that copies a file several times, and uses each copy by a command, in which it is "$copy"; prints a line for each.
fn each_copy(file: &Path, uses: &str) -> String {
    format!(
        "i=0; while [ $i -lt {1} ]; do copy={0}.$i; cp {0} $copy; {uses} && echo done; rm $copy; i=$((i+1)); done",
        file.display(),
        files()
    )
}

#[track_caller]
fn uses_each_copy(lab: &Lab, event: &str, script: &str) -> bool {
    let ended = record(lab, event, &["sh", "-c", script]);
    let done = ended.stdout.matches("done").count();
    assert_eq!(done, files(), "{ended:?}");
    has_all(lab, &ended, 2 * done)
}

/// New programs: their constructors, and `main`.
#[test]
fn first_hits_of_programs() {
    let lab = Lab::privileged();
    let program = early(&lab, &["-O1", "-DPROVIDER=nogap_program"], "early");
    let script = each_copy(&program, "$copy");
    needs_hold(&lab);
    until_all(|| uses_each_copy(&lab, "nogap_program:*", &script));
}

/// Libraries that the loader maps when a program begins: their constructors run before `main`.
#[test]
fn first_hits_of_libraries_of_programs() {
    let lab = Lab::privileged();
    let options = [&LIBRARY[..], &["-DPROVIDER=nogap_needed"]].concat();
    let library = early(&lab, &options, "early.so");
    let library = fs::canonicalize(library).expect("a path");
    let script = each_copy(&library, "LD_PRELOAD=$copy true; LD_PRELOAD=$copy true");
    let script = script
        .replace("true;", "/bin/true;")
        .replace("true &&", "/bin/true &&");
    needs_hold(&lab);
    until_all(|| uses_each_copy(&lab, "nogap_needed:*", &script));
}

/// Libraries that a process loads while it runs, with glibc and musl.
#[test]
fn first_hits_of_libraries_that_are_loaded() {
    let lab = Lab::privileged();
    let options = [&LIBRARY[..], &["-DPROVIDER=nogap_loaded"]].concat();
    for compiler in ["gcc", "musl-gcc"] {
        let build = Build {
            compiler,
            options: Vec::leak(options.clone()),
        };
        let library = build.make(&lab, "early.c", "early.so");
        let program = loader(&lab, compiler);
        needs_hold(&lab);
        until_all(|| loads_in_named_process(&lab, &library, &program));
    }
}

fn loads_in_named_process(lab: &Lab, library: &Path, program: &Path) -> bool {
    let mut process = Process::spawn(Command::new(program));
    let pid = process.pid().to_string();
    let event = "nogap_loaded:*";
    let recorder = Recorder::start(lab, ["--no-gap", "-p", &pid, "-e", event, "-o", "trace"]);
    process.say(&format!("many {} {}", library.display(), files()));
    let hits = process.line_within(Duration::from_secs(60));
    assert_eq!(hits.as_deref(), Some(&*files().to_string()));
    let ended = recorder.stop();
    if !has_all(lab, &ended, 2 * files()) {
        return false;
    }
    let in_time = ended.stderr.matches(IN_TIME).count();
    let reported = ended.stderr.matches(": attached 2 probes ").count();
    assert_eq!((in_time > 0, in_time), (true, reported), "{}", ended.stderr);
    let report = lab.usdtrec(["report", "-i", "trace", "--format", "json"]);
    let report: serde_json::Value =
        serde_json::from_str(&report.success().stdout).expect("an object");
    for shortfall in report["shortfalls"].as_array().expect("a list") {
        assert_eq!(shortfall["gap_ns"], 0, "{shortfall}");
        assert_eq!(shortfall["effect"], "no hit is missed");
    }
    true
}

/// Files that a program maps without the loader.
#[test]
fn first_hits_of_mappings_by_hand() {
    let lab = Lab::privileged();
    let program = early(&lab, &["-O1", "-DPROVIDER=nogap_by_hand"], "early");
    let copies = (0..files()).map(|number| {
        let copy = lab.file(&format!("copy.{number}"));
        fs::copy(&program, &copy).expect("a copy");
        copy.to_str().expect("a path").to_owned()
    });
    let copies: Vec<String> = copies.collect();
    let command = [program.to_str().expect("a path")]
        .into_iter()
        .chain(copies.iter().map(String::as_str));
    let command: Vec<&str> = command.collect();
    needs_hold(&lab);
    until_all(|| {
        let ended = record(&lab, "nogap_by_hand:hit", &command);
        assert_eq!(ended.stdout.trim(), files().to_string(), "{ended:?}");
        has_all(&lab, &ended, files())
    });
}

/// A process that can load a library, and its recorder.
struct Recorded {
    process: Process,
    recorder: Recorder,
    /// The command that lets it load the library.
    load: String,
}

impl Recorded {
    /// `provider` is the option of the compiler that defines the library's provider.
    fn start(lab: &Lab, provider: &'static str) -> Self {
        let library = early(lab, &[&LIBRARY[..], &[provider]].concat(), "early.so");
        let mut command = Command::new(loader(lab, "gcc"));
        // Its process group has a parent that could continue it.
        command.process_group(0);
        let process = Process::spawn(command);
        let (pid, name) = (process.pid().to_string(), &provider["-DPROVIDER=".len()..]);
        let event = format!("{name}:*");
        let recorder = Recorder::start(lab, [HELD, "-p", &pid, "-e", &event, "-o", "trace"]);
        Self {
            process,
            recorder,
            load: format!("load {}", library.display()),
        }
    }

    /// Whether the process is stopped.
    fn is_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.pid()));
        stat.expect("a state").contains(") T ")
    }
}

/// A recorder that does not plant holds no thread for ever, and reports what it may have missed.
#[test]
fn not_for_ever() {
    let lab = Lab::privileged();
    needs_hold(&lab);
    let mut recorded = Recorded::start(&lab, "-DPROVIDER=nogap_stopped");
    recorded.recorder.signal("STOP");
    recorded.process.say(&recorded.load);
    let answer = recorded.process.line_within(Duration::from_millis(100));
    assert_eq!(answer, None, "the thread is not held");
    assert!(recorded.process.line().is_some());
    recorded.recorder.signal("CONT");
    let ended = recorded.recorder.stop();
    assert!(ended.stderr.contains(UNHELD), "{ended:?}");
    assert!(!ended.stderr.contains(IN_TIME), "{ended:?}");
    lab.usdtrec(["report", "-i", "trace"]).complains(UNHELD);
}

/// When the recorder is killed while a thread is held, it goes on.
#[test]
fn not_without_recorder() {
    let lab = Lab::privileged();
    needs_hold(&lab);
    let mut recorded = Recorded::start(&lab, "-DPROVIDER=nogap_killed");
    recorded.recorder.signal("STOP");
    recorded.process.say(&recorded.load);
    let answer = recorded.process.line_within(Duration::from_millis(50));
    assert_eq!(answer, None);
    recorded.recorder.signal("KILL");
    let begun = Instant::now();
    recorded.recorder.finish();
    assert!(recorded.process.line().is_some());
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// A process that a user has stopped before stays stopped.
#[test]
fn others_stop_as_ever() {
    let lab = Lab::privileged();
    needs_hold(&lab);
    let mut recorded = Recorded::start(&lab, "-DPROVIDER=nogap_user");
    recorded.process.signal("STOP");
    recorded.process.say(&recorded.load);
    let answer = recorded.process.line_within(Duration::from_millis(300));
    assert_eq!(answer, None);
    assert!(recorded.is_stopped());
    recorded.process.signal("CONT");
    assert!(recorded.process.line().is_some());
    recorded.process.say("hit 3");
    assert_eq!(recorded.process.line().as_deref(), Some("3"));
    let ended = recorded.recorder.stop();
    if !ended.stderr.contains(UNHELD) {
        assert_eq!(lab.events("trace").len(), 4, "{ended:?}");
    }
}

#[test]
fn what_it_cannot_do_is_refused() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    ticker.hit("fire 1");
    let (pid, event) = (ticker.pid().to_string(), ticker.event("tick"));
    for arguments in [
        &["-a"][..],
        &["-t", &pid],
        &["-a", "--exe", "/bin/sh"],
        &["-a", "--", "true"],
        &[],
    ] {
        for verb in ["record", "trace", "top"] {
            let words = [&[verb, "--no-gap", "-e", &event][..], arguments].concat();
            lab.usdtrec(words)
                .exits(2)
                .complains("--no-gap needs -p PID or a command");
        }
    }
    let perf = [
        "record", "--no-gap", "--engine", "perf", "-p", &pid, "-e", &event,
    ];
    lab.usdtrec(perf)
        .exits(2)
        .complains("--no-gap needs the bpf engine");
}

/// `trace` prints the first hits, too.
#[test]
fn live_verbs_have_it() {
    let lab = Lab::privileged();
    let program = early(&lab, &["-O1", "-DPROVIDER=nogap_live"], "early");
    let program = program.to_str().expect("a path");
    let sh = ["--", "sh", "-c", &format!("{program}; {program}")].map(str::to_owned);
    needs_hold(&lab);
    until_all(|| {
        let mut command = lab.command(["trace", "--no-gap", "-e", "nogap_live:*"]);
        command.args(&sh);
        let ended = Process::spawn(command).finish().success();
        let hits = ended.stdout.matches("sdt_nogap_live:").count();
        assert!(hits == 4 || ended.stderr.contains(UNHELD), "{ended:?}");
        hits == 4
    });
}
