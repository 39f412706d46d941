//! Probes that are attached and do not work in a process: the recorder says so, the trace has it, and what stays is found.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::common::{
    Build, Engine, Lab, Perf, Process, Site, complaints, run, sites_of, test, wait_until,
};

/// A process of testdata/targets/verified.c.
struct Target {
    process: Process,
    program: PathBuf,
    /// The site of `hit`, and the semaphore of `guarded`.
    sites: Vec<Site>,
}

impl Target {
    fn start(lab: &Lab) -> Self {
        let program = Build::USUAL.make(lab, "verified.c", "verified");
        Self::again(lab, &program)
    }

    fn again(lab: &Lab, program: &Path) -> Self {
        let mut process = Process::spawn(Command::new(program));
        process.say("fire 1");
        process.line();
        Self {
            process,
            program: program.to_owned(),
            sites: sites_of(lab, program),
        }
    }

    fn tell(&mut self, command: &str) -> String {
        self.process.say(command);
        self.process.line().expect("an answer")
    }

    fn site(&self, event: &str) -> &Site {
        let mut sites = self.sites.iter();
        sites.find(|site| site.event == event).expect("a site")
    }

    /// An address of the program in the process.
    fn at(&self, address: u64) -> u64 {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.process.pid()));
        let maps = maps.expect("the mappings");
        let start = maps.split('-').next().expect("a mapping");
        u64::from_str_radix(start, 16).expect("an address") + address
    }

    fn memory(&self) -> File {
        let path = format!("/proc/{}/mem", self.process.pid());
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .open(path)
            .expect("its memory")
    }

    /// Writes bytes at an address of the program. Returns what was there.
    fn write(&self, address: u64, bytes: &[u8]) -> Vec<u8> {
        let mut before = vec![0; bytes.len()];
        let at = self.at(address);
        self.memory().read_exact_at(&mut before, at).expect("bytes");
        self.memory().write_all_at(bytes, at).expect("written");
        before
    }

    /// The first byte of the site of `hit`.
    fn code(&self) -> u8 {
        let mut byte = [0];
        let at = self.at(self.site("sdt_verified:hit").pc);
        self.memory().read_exact_at(&mut byte, at).expect("a byte");
        byte[0]
    }

    fn event(&self, name: &str) -> String {
        format!("verified:{name}@{}", self.program.display())
    }
}

/// A recorder whose lines are read one by one.
fn recorder(lab: &Lab, options: &[&str]) -> Process {
    let mut process = Process::spawn(lab.command([&["record", "-o", "trace"], options].concat()));
    process.until_error_line("[ usdtrec record:");
    process
}

/// Ends a recorder whose trace must have one shortfall of a kind, with this process and file. Returns it.
#[track_caller]
fn shortfall(lab: &Lab, recorder: Process, kind: &str, target: &Target) -> Value {
    recorder.signal("INT");
    recorder.finish().success();
    let options = ["report", "-i", "trace", "--format", "json"];
    let report = lab.usdtrec(options).success();
    let answer: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let all = answer["shortfalls"].as_array().expect("a list");
    let [one] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(one["kind"], kind);
    assert_eq!(one["pids"], Value::from(vec![target.process.pid()]));
    assert_eq!(one["file"], target.program.to_str().expect("UTF-8"));
    assert_eq!(one["processes"], 1);
    assert_eq!(answer["lost_exact"], false);
    // The notice has it in words, in every answer.
    let found = one["found"].as_str().expect("words");
    report.complains(found);
    lab.usdtrec(["script", "-i", "trace"]).complains(found);
    one.clone()
}

#[test]
fn a_breakpoint_that_is_overwritten() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    let pid = target.process.pid().to_string();
    let mut recorder = recorder(&lab, &["-p", &pid, "-e", "verified:hit"]);
    target.tell("fire 3");
    let pc = target.site("sdt_verified:hit").pc;
    // The file has the instruction at the same place, since the code is at its address there.
    let before = target.write(pc, &[0x90]);
    assert_eq!(before, [0xcc]);
    let line = recorder.until_error_line("no breakpoint at");
    assert!(line.contains(&format!("process {pid}: ")), "{line}");
    let found = shortfall(&lab, recorder, "no_breakpoint", &target);
    assert_eq!(found["events"], Value::from(vec!["sdt_verified:hit"]));
    assert_eq!(lab.events("trace").len(), 3);
}

#[test]
fn a_semaphore_that_is_zero() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    let event = target.event("guarded");
    let mut recorder = recorder(&lab, &["-a", "-e", &event]);
    assert_eq!(target.tell("fire 3"), "done 1");
    let semaphore = target.site("sdt_verified:guarded").semaphore;
    assert_eq!(target.write(semaphore, &[0, 0]), [1, 0]);
    recorder.until_error_line("the semaphore at");
    assert_eq!(target.tell("fire 3"), "done 0");
    // The kernel would not take the breakpoint back otherwise.
    target.write(semaphore, &[1, 0]);
    shortfall(&lab, recorder, "semaphore", &target);
    assert_eq!(lab.events("trace").len(), 3);
}

/// The process runs the file that was at the path before, of the same build.
#[test]
fn a_file_that_was_replaced() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    // The file of a process that has just begun is read again, and its probes are attached then (`Following::now`).
    thread::sleep(Duration::from_millis(100));
    fs::copy(&target.program, lab.file("new")).expect("a copy");
    fs::rename(lab.file("new"), &target.program).expect("a replacement");
    let event = target.event("hit");
    let mut recorder = recorder(&lab, &["-a", "-e", &event]);
    recorder.until_error_line("another file than the one with the probes is mapped");
    target.tell("fire 3");
    shortfall(&lab, recorder, "other_file", &target);
}

#[test]
fn a_page_that_is_dropped() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    let event = target.event("hit");
    let mut recorder = recorder(&lab, &["-a", "-e", &event]);
    target.tell("fire 3");
    target.tell("drop");
    target.tell("fire 3");
    recorder.until_error_line("in the file's own page");
    shortfall(&lab, recorder, "no_breakpoint", &target);
    assert_eq!(lab.events("trace").len(), 3);
}

#[test]
fn code_that_is_moved() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    let event = target.event("hit");
    let mut recorder = recorder(&lab, &["-a", "-e", &event]);
    target.tell("fire 3");
    target.tell("move");
    recorder.until_error_line("in other memory");
    shortfall(&lab, recorder, "moved_code", &target);
}

/// The kernel raises the library's semaphore, and the library tests that of the program.
#[test]
fn a_semaphore_that_a_symbol_hides() {
    let lab = Lab::privileged();
    let library = Build {
        options: &["-O2", "-shared", "-fPIC"],
        ..Build::USUAL
    };
    let library = library.make(&lab, "hidden_semaphore.c", "libhidden.so");
    let user = Build {
        options: &["-O2", "-DUSER", "-rdynamic"],
        ..Build::USUAL
    };
    let user = user.make(&lab, "hidden_semaphore.c", "user");
    let mut command = Command::new(user);
    command.arg(&library);
    let mut process = Process::spawn(command);
    process.say("");
    process.line();
    let mut target = Target {
        process,
        sites: sites_of(&lab, &library),
        program: library,
    };
    let pid = target.process.pid().to_string();
    let mut recorder = recorder(&lab, &["-p", &pid, "-e", "hidden:hit"]);
    target.tell("");
    let line = recorder.until_error_line("the semaphore that the code tests");
    assert!(
        line.contains("is 0: a symbol of another file hides"),
        "{line}"
    );
    let listed = lab.usdtrec(["list", "-v", "-p", &pid, "hidden:hit"]);
    let listed = listed.success().stdout;
    assert!(
        listed.contains("its code tests a semaphore of another file"),
        "{listed}"
    );
    shortfall(&lab, recorder, "semaphore", &target);
}

/// `p_flags` of a program header (elf.h).
fn make_code_writable(program: &Path) {
    const EXECUTABLE: u32 = 1;
    const WRITABLE: u32 = 2;
    let mut elf = fs::read(program).expect("a program");
    let number = |elf: &[u8], at: usize, len: usize| {
        let bytes = elf[at..at + len].iter().rev();
        bytes.fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
    };
    let (table, size, count) = (
        number(&elf, 32, 8),
        number(&elf, 54, 2),
        number(&elf, 56, 2),
    );
    for header in 0..count {
        let at = table + header * size;
        let flags = number(&elf, at + 4, 4) as u32;
        if number(&elf, at, 4) == 1 && flags & EXECUTABLE != 0 {
            elf[at + 4..at + 8].copy_from_slice(&(flags | WRITABLE).to_le_bytes());
        }
    }
    fs::write(program, elf).expect("the program");
}

#[test]
fn code_that_is_mapped_writable() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "verified.c", "verified");
    make_code_writable(&program);
    let event = format!("verified:hit@{}", program.display());
    let refused = lab.usdtrec(["record", "-o", "trace", "-a", "-e", &event]);
    refused
        .exits(1)
        .complains("is in an executable and writable segment, where the kernel attaches no probe");
    // It starts later.
    let mut recorder = recorder(&lab, &["-a", "--force", "-e", &event]);
    let target = Target::again(&lab, &program);
    let line = recorder.until_error_line("where the kernel inserts none");
    assert!(line.contains("hits there are not recorded"), "{line}");
    shortfall(&lab, recorder, "no_breakpoint", &target);
    let pid = target.process.pid().to_string();
    let listed = lab.usdtrec(["list", "-v", "-p", &pid]).success().stdout;
    assert!(
        listed.contains("the code is mapped writable, where the kernel inserts no breakpoint"),
        "{listed}"
    );
}

/// Programs that start, fork, execute and end while they are looked at are as they must be.
/// The kernel inserts none in shared mappings of a file.
#[test]
fn code_that_is_mapped_shared() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "shared_code.c", "shared_code");
    let mut process = Process::spawn(Command::new(&program));
    process.line();
    let pid = process.pid().to_string();
    let event = format!("shared_code:hit@{}", program.display());
    let mut recorder = recorder(&lab, &["-p", &pid, "-e", &event]);
    let line = recorder.until_error_line("in a shared mapping of the file");
    assert!(line.contains("(MAP_PRIVATE)"), "{line}");
    for _ in 0..3 {
        process.say("go");
        process.line();
    }
    recorder.signal("INT");
    let said = recorder.finish().success().stderr;
    assert!(!said.contains("older version"), "{said}");
    let copies = lab.events("trace");
    let copies: Vec<i128> = copies.iter().map(|event| event.integer(1)).collect();
    assert_eq!(copies, [1, 1, 1]);
}

#[test]
fn nothing_is_said_where_probes_work() {
    let lab = Lab::privileged();
    let mut target = Target::start(&lab);
    let events = target.event("*");
    let recorder = recorder(&lab, &["-a", "-e", &events]);
    let shell = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo fire 2 | {0} & ( echo fire 1 | {0} ) & wait; done",
        target.program.display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &shell]);
    run(command).success();
    target.tell("fire 5");
    let pid = target.process.pid().to_string();
    let options = ["list", "-v", "-p", &pid, "--format", "json"];
    let listed = lab.usdtrec(options).success().stdout;
    assert!(listed.contains("of a running recording"), "{listed}");
    assert!(
        listed.contains("its semaphore is 1: a tracer is attached"),
        "{listed}"
    );
    recorder.signal("INT");
    let ended = recorder.finish().success();
    let lines = ended
        .stderr
        .lines()
        .filter(|line| line.starts_with("usdtrec:"));
    assert_eq!(lines.collect::<Vec<_>>(), [""; 0], "{}", ended.stderr);
    assert_eq!(lab.events("trace").len(), 20 * 6 + 10);
    let listed = lab.usdtrec(options).success().stdout;
    assert!(!listed.contains("processes"), "{listed}");
}

/// A recorder is killed, and a breakpoint stays.
#[test]
fn a_breakpoint_that_stayed_is_restored() {
    let lab = Lab::with_own_notes();
    let target = Target::start(&lab);
    let event = target.event("hit");
    let original = target.code();
    let recorder = recorder(&lab, &["-a", "-e", &event]);
    assert_eq!(target.code(), 0xcc);
    let pid = target.process.pid();
    let named = format!("process {pid} has a breakpoint at ");
    // That of a running recording is not listed.
    let doctor = lab.usdtrec(["doctor"]);
    assert!(!doctor.stdout.contains(&named), "{}", doctor.stdout);
    recorder.signal("KILL");
    recorder.finish();
    wait_until("the kernel removes it", || target.code() == original);
    target.write(target.site("sdt_verified:hit").pc, &[0xcc]);
    let left = lab.usdtrec(["doctor"]).exits(1).stdout;
    assert!(left.contains(&named), "{left}");
    assert!(
        left.contains("left by a recording that has ended; would be restored with --heal"),
        "{left}"
    );
    let healed = lab.usdtrec(["doctor", "--heal"]).stdout;
    assert!(healed.contains(&named), "{healed}");
    assert!(healed.contains("; restored"), "{healed}");
    assert_eq!(target.code(), original);
    let left = lab.usdtrec(["doctor"]).stdout;
    assert!(!left.contains(&named), "{left}");
    // The semaphore was 0, which the kernel does not decrement.
    assert_eq!(complaints(&target.program), 0);
}

/// The notes of a killed recorder name a site at which a tracer that cannot be listed has a probe by now: its breakpoint stays.
#[test]
fn a_breakpoint_of_a_later_tracer_is_not_touched() {
    let lab = Lab::with_own_notes();
    let mut target = Target::start(&lab);
    let event = target.event("hit");
    let killed = recorder(&lab, &["-a", "-e", &event]);
    killed.signal("KILL");
    killed.finish();
    let left = notes_of_sites(&lab);
    let later = recorder(&lab, &["-a", "--engine", "perf-pmu", "-e", &event]);
    let listed = notes_of_sites(&lab)
        .into_iter()
        .find(|path| !left.contains(path));
    fs::remove_file(listed.expect("the notes of the later one")).expect("no notes");
    let named = format!("process {} has a breakpoint at ", target.process.pid());
    let doctor = lab.usdtrec(["doctor", "--heal"]).exits(1).stdout;
    let said = doctor.lines().find(|line| line.contains(&named));
    let said = said.unwrap_or_else(|| panic!("{doctor}"));
    assert!(said.contains("; not restored: another tracer"), "{said}");
    assert_eq!(target.code(), 0xcc);
    target.tell("fire 3");
    later.signal("INT");
    later.finish().success();
    assert_eq!(lab.events("trace").len(), 3);
    lab.usdtrec(["doctor", "--heal"]);
    assert_eq!(notes_of_sites(&lab), Vec::<PathBuf>::new());
}

/// The files with notes of attached sites.
fn notes_of_sites(lab: &Lab) -> Vec<PathBuf> {
    let files = fs::read_dir(lab.notes()).expect("the notes of recordings");
    let files = files.map(|file| file.expect("a file").path());
    let is_of_sites = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "sites");
    files.filter(is_of_sites).collect()
}

/// The notes of a killed recorder stay as long as a process has one of its breakpoints, and are then removed at the end of a recording.
#[test]
fn notes_of_a_killed_recorder_do_not_stay() {
    let lab = Lab::with_own_notes();
    let target = Target::start(&lab);
    let event = target.event("hit");
    let original = target.code();
    let killed = recorder(&lab, &["-a", "-e", &event]);
    killed.signal("KILL");
    killed.finish();
    wait_until("the kernel removes it", || target.code() == original);
    let pc = target.site("sdt_verified:hit").pc;
    let before = target.write(pc, &[0xcc]);
    let guarded = target.event("guarded");
    let record = || {
        let recorder = recorder(&lab, &["-a", "-e", &guarded]);
        recorder.signal("INT");
        recorder.finish().success();
    };
    record();
    assert_eq!(notes_of_sites(&lab).len(), 1);
    target.write(pc, &before);
    // A recording that finds too many processes leaves it to the next one.
    wait_until("the notes are removed", || {
        record();
        notes_of_sites(&lab).is_empty()
    });
}

/// The kernel allows one semaphore for each site: perf's probe at the address of the function has none.
#[test]
fn the_semaphore_of_another_tracer_is_the_reason() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let mut target = Target::start(&lab);
    let mut probes = perf.plant(&target.program, "verified", &[]);
    probes.add(&target.program, "other_verified", "entered=fire");
    let record = ["record", "-q", "-a", "-o", "theirs", "-e"];
    let event = ["other_verified:entered", "--", "sh", "-c"];
    let command = [&record[..], &event, &["echo ready; exec cat"]].concat();
    let mut theirs = Process::spawn(perf.command(command));
    assert_eq!(theirs.line().as_deref(), Some("ready"));
    let event = target.event("hit");
    for engine in Engine::ALL {
        let options = ["record", "-a", "--engine", engine.option(), "-o", "trace"];
        let refused = lab.usdtrec([&options[..], &["-e", &event]].concat());
        refused
            .exits(1)
            .complains("the kernel has a probe at this site with a different semaphore");
    }
    drop(theirs.finish().success());
    drop(probes);
    let recorder = recorder(&lab, &["-a", "-e", &event]);
    target.tell("fire 3");
    recorder.signal("INT");
    recorder.finish().success();
    assert_eq!(lab.events("trace").len(), 3);
}

/// Nobody's notes name the site: it is not touched.
#[test]
fn a_breakpoint_of_unknown_origin_is_not_touched() {
    let lab = Lab::privileged();
    let target = Target::start(&lab);
    let pc = target.site("sdt_verified:guarded").pc;
    let original = target.write(pc, &[0xcc]);
    let doctor = lab.usdtrec(["doctor", "--heal"]);
    let named = format!("process {} has a breakpoint at ", target.process.pid());
    let said = doctor.stderr.lines().find(|line| line.contains(&named));
    let said = said.unwrap_or_else(|| panic!("{}", doctor.stderr));
    assert!(said.contains("owner unknown"), "{said}");
    assert!(said.contains("; not touched"), "{said}");
    assert!(!doctor.stdout.contains(&named), "{}", doctor.stdout);
    assert_eq!(target.write(pc, &original), [0xcc]);
}
