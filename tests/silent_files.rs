//! File systems that do not answer: an overlay above FUSE, as any user can make one. Nobody waits for them, and who answers is recorded.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Build, Finished, Lab, Process, Recorder, Ticker, skip, test, wait_until};

/// More than any verb here takes on a busy machine, and less than for ever.
const LIMIT: Duration = Duration::from_secs(90);
/// What is said of a file whose file system does not answer.
const SILENT: &str = "its file system did not answer";

/// A program that loads a library of such a file system.
struct SilentMount {
    program: Process,
    library: PathBuf,
    silent: PathBuf,
}

impl SilentMount {
    /// Mounts the library with this provider. Skips the test where users have no namespaces or no FUSE.
    #[track_caller]
    fn start(lab: &Lab, provider: &'static str) -> Self {
        if !fs::exists("/dev/fuse").unwrap_or(false) {
            skip("needs /dev/fuse");
        }
        let options: &'static [&'static str] = Vec::leak(vec!["-shared", "-fPIC", "-O1", provider]);
        let library = Build {
            options,
            ..Build::USUAL
        };
        let library = library.make(lab, "late_library.c", "liblate.so");
        let loader = Build {
            options: &["-O1", "-ldl"],
            ..Build::USUAL
        };
        let loader = loader.make(lab, "late.c", "late");
        let server = Build::USUAL.make(lab, "silent_mount.c", "silent_mount");
        let folder = lab.file("mounted");
        fs::create_dir(&folder).expect("a folder");
        let mut command = Command::new(server);
        command.arg(&folder).args([&library, &loader]);
        let mut this = Self {
            program: Process::spawn(command),
            library: folder.join("o/lib.so"),
            silent: folder.join("silent"),
        };
        // It executes the loader when all is mounted.
        this.program.say("all");
        match this.program.line_within(LIMIT) {
            Some(_) => this,
            None => skip("needs user namespaces, FUSE and overlayfs"),
        }
    }

    fn tell(&mut self, command: &str) {
        self.program.say(command);
        self.program.line().expect("a number");
    }

    fn load(&mut self) {
        self.tell(&format!("load {}", self.library.display()));
    }

    /// Lets nobody but the program itself have an answer.
    fn fall_silent(&self) {
        fs::write(&self.silent, "").expect("a file");
    }

    fn answer(&self) {
        fs::remove_file(&self.silent).expect("it is silent");
    }
}

/// What waits for an answer can end.
impl Drop for SilentMount {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.silent);
    }
}

/// Runs a verb, which ends in time.
#[track_caller]
fn ends(lab: &Lab, words: &[&str]) -> Finished {
    let begun = Instant::now();
    let mut process = Process::spawn(lab.command(words));
    while process.is_running() {
        let time = begun.elapsed();
        if time > LIMIT {
            let stack = fs::read_to_string(format!("/proc/{}/stack", process.pid()));
            panic!("{words:?} hangs: {}", stack.unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    process.finish()
}

#[test]
fn verbs_that_look_at_processes_end() {
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let mut mount = SilentMount::start(&lab, "-DPROVIDER=silent_verbs");
    mount.load();
    mount.fall_silent();
    let pid = mount.program.pid().to_string();
    let all = ends(&lab, &["list", "-a"]).success();
    let ticker_path = ticker.program().to_str().expect("a path");
    assert!(all.stdout.contains(ticker_path), "{}", all.stdout);
    let own = ends(&lab, &["list", "-p", &pid]);
    assert!(own.stderr.contains(SILENT), "{}{}", own.stdout, own.stderr);
    ends(&lab, &["doctor"]);
    ends(&lab, &["doctor", "-p", &pid]);
    ends(&lab, &["doctor", "-p", "ticker"]);
    let time = ["--duration", "1s"];
    for verb in [&["stat", "-a"][..], &["trace", "-a"]] {
        ends(
            &lab,
            &[verb, &["-e", &ticker.event("tick")], &time].concat(),
        );
    }
}

/// The file is mapped before the recording begins.
#[test]
fn others_are_recorded_and_the_recording_ends() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let mut mount = SilentMount::start(&lab, "-DPROVIDER=silent_before");
    mount.load();
    mount.fall_silent();
    let event = ticker.event("tick");
    for more in [&["-e", "silent_before:hit"][..], &["--no-follow"]] {
        let options = ["-a", "-e", &event, "-o", "trace"];
        let recorder = Recorder::start(&lab, [&options[..], more].concat());
        let hits = ticker.hit("fire 5").len();
        let begun = Instant::now();
        recorder.stop();
        assert!(begun.elapsed() < LIMIT, "{more:?}");
        assert_eq!(lab.events("trace").len(), hits, "{more:?}");
    }
}

/// The file is mapped while recording; later its file system answers.
#[test]
fn a_file_is_named_and_tried_again() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let mut mount = SilentMount::start(&lab, "-DPROVIDER=silent_later");
    let mut command = lab.command(["record", "-a", "-v", "-o", "trace"]);
    command.args(["-e", &ticker.event("tick"), "-e", "silent_later:hit"]);
    let mut recorder = Process::spawn(command);
    recorder.until_error_line("[ usdtrec record:");
    mount.fall_silent();
    mount.load();
    let library = mount.library.to_str().expect("a path");
    // Tests beside this one have silent files, too.
    while !recorder.until_error_line(SILENT).contains(library) {}
    let hits = ticker.hit("fire 5").len();
    mount.answer();
    recorder.until_error_line("attached 1 probe ");
    mount.tell("hit 3");
    recorder.signal("INT");
    recorder.finish().success();
    assert_eq!(lab.events("trace").len(), hits + 3);
}

/// A file system that answers is like any other one.
#[test]
fn one_that_answers_is_recorded() {
    let lab = Lab::privileged();
    let mut mount = SilentMount::start(&lab, "-DPROVIDER=silent_never");
    mount.load();
    let pid = mount.program.pid().to_string();
    let list = lab.usdtrec(["list", "-p", &pid]).success();
    assert!(list.stdout.contains("silent_never:hit"), "{}", list.stdout);
    for target in [&["-a"][..], &["-p", &pid]] {
        let options = ["-g", "-e", "silent_never:hit", "-o", "trace"];
        let recorder = Recorder::start(&lab, [target, &options].concat());
        mount.tell("hit 4");
        recorder.stop();
        let events = lab.events("trace");
        assert_eq!(events.len(), 4, "{target:?}");
    }
    let script = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
    assert!(script.contains("late_work"), "{script}");
}

/// A recorder that is killed ends, whatever its helpers wait for.
#[test]
fn a_killed_recorder_does_not_stay() {
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let mut mount = SilentMount::start(&lab, "-DPROVIDER=silent_kill");
    mount.load();
    mount.fall_silent();
    let recorder = Recorder::start(&lab, ["-a", "-e", &ticker.event("tick"), "-o", "trace"]);
    let pid = recorder.pid();
    recorder.signal("KILL");
    let is_gone = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.is_empty() || status.contains("State:\tZ")
    };
    wait_until("the recorder to end", is_gone);
    assert_eq!(recorder.finish().status.code(), None);
}

/// Attaching would wait for the lock of a process that maps the file, too, and each process of the host that forks for that.
#[test]
fn a_file_of_a_process_with_locked_mappings_is_refused() {
    let lab = Lab::privileged();
    if !fs::exists("/dev/fuse").unwrap_or(false) {
        skip("needs /dev/fuse");
    }
    let options: &'static [&'static str] = &["-shared", "-fPIC", "-O1", "-DPROVIDER=silent_lock"];
    let library = Build {
        options,
        ..Build::USUAL
    };
    let library = library.make(&lab, "late_library.c", "liblate.so");
    let loader = Build {
        options: &["-O1", "-ldl"],
        ..Build::USUAL
    };
    let loader = loader.make(&lab, "late.c", "late");
    let stuck = Build {
        options: &["-O1", "-ldl"],
        ..Build::USUAL
    };
    let stuck = stuck.make(&lab, "stuck_unmap.c", "stuck_unmap");
    let folder = lab.file("stuck");
    fs::create_dir(&folder).expect("a folder");
    let answer = lab.file("answer");
    let mut command = Command::new(stuck);
    command.args([&folder, &library, &answer]);
    let mut stuck = Process::spawn(command);
    if stuck.line_within(LIMIT).as_deref() != Some("mapped") {
        skip("needs user namespaces and FUSE");
    }
    let mut loaded = Process::spawn(Command::new(loader));
    loaded.say(&format!("load {}", library.display()));
    loaded.line().expect("a number");
    stuck.say("");
    let stack = format!("/proc/{}/stack", stuck.pid());
    wait_until("the process to wait in munmap", || {
        fs::read_to_string(&stack).is_ok_and(|stack| stack.contains("munmap"))
    });
    let pid = loaded.pid().to_string();
    let refused = format!(
        "process {} maps it, and has its mappings locked",
        stuck.pid()
    );
    let event = "silent_lock:hit";
    for engine in ["bpf-multi", "bpf-perf", "perf-tracefs"] {
        let options = ["record", "-p", &pid, "-e", event, "--engine", engine];
        let record = lab.usdtrec([&options[..], &["-o", "trace", "--duration", "1s"]].concat());
        record.exits(1).complains(&refused).complains("--force");
    }
    fs::write(&answer, "").expect("a file");
    assert_eq!(stuck.line().as_deref(), Some("unmapped"));
    let recorder = Recorder::start(&lab, ["-p", &pid, "-e", event, "-o", "trace"]);
    loaded.say("hit 3");
    loaded.line().expect("a number");
    recorder.stop();
    assert_eq!(lab.events("trace").len(), 3);
    stuck.say("");
    stuck.finish().success();
}
