//! Programs with a few changes each, which run and are recorded: the recorder refuses or records. Nothing but what their notes say is
//! planted, in nothing but them, and all is gone afterwards.
//!
//! `USDTREC` names the program to test (this build's), `USDTREC_GARBLED_PROGRAMS` is the number of inputs, `USDTREC_GARBLED_SEED` where their
//! numbers begin. An input that failed is kept in the directory `garbled` below the tests' temporary directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use usdtrec_testing::{number, repetitions};

use crate::changes::{Numbers, change, change_at};
use crate::common::{Build, Lab, Process, need_tool, test, within, write_program};

/// Inputs of a usual run.
const USUAL: u64 = 24;
/// Limits of the recorder: KiB of address space, seconds of CPU time.
const RECORDER: &str = "ulimit -v 4194304; ulimit -t 20; ulimit -c 0; exec \"$@\"";
/// Limits of the program, which may do anything once it is changed; it has no rights either.
const PROGRAM: &str = "ulimit -v 1048576; ulimit -t 10; ulimit -c 0; ulimit -f 0; exec \"$@\"";
/// How long a recorder may take to plant, or to end.
const WAIT_LIMIT: Duration = Duration::from_secs(120);

/// What is changed. The 5-byte nops are others: what a kernel does there is another test's.
const BUILDS: [Build; 3] = [
    Build {
        compiler: "gcc",
        options: &["-O2"],
    },
    Build {
        compiler: "gcc",
        options: &["-O0", "-g", "-no-pie"],
    },
    Build {
        compiler: "gcc",
        options: &["-O1", "-m32"],
    },
];
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0, 0];

/// Words of a recording; `{}` is the program's path, `{pid}` its process.
const RECORDINGS: [&str; 8] = [
    "record -a -e *:*@{}",
    "record -p {pid} -e *:*",
    "record -p {pid} -e *:*@{}",
    "record -a -e ticker:tick(arg1,text=str(arg3))@{}",
    "record -p {pid} -e ticker:* --filter arg1>0",
    "record -p {pid} -e *:* --strings=all",
    "trace -p {pid} -e *:*",
    "top -a -d 100ms -e *:*@{}",
];
/// The recorder chooses where there is `auto`.
const ENGINES: [&str; 5] = ["auto", "bpf-multi", "bpf-perf", "perf-tracefs", "perf-pmu"];

/// A few changes, half of them in the notes.
fn garble(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..1 + numbers.below(3) {
        let notes: Vec<usize> = bytes
            .windows(8)
            .enumerate()
            .filter(|(_, window)| window == b"stapsdt\0")
            .map(|(at, _)| at)
            .collect();
        if numbers.below(2) == 0 && !notes.is_empty() {
            // From the note's header to its texts.
            let at = notes[numbers.below(notes.len())].saturating_sub(12) + numbers.below(80);
            change_at(bytes, at.min(bytes.len() - 1), numbers);
        } else {
            change(bytes, numbers);
        }
    }
}

/// The bytes of a file that a process maps, by the offset in the file, and whether they may be written.
type Memory = BTreeMap<u64, (u8, bool)>;

/// What a process has in its memory of a file; as much of it as there is.
fn memory(pid: u32, file: &Path) -> Memory {
    let mut found = Memory::new();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else {
        return found;
    };
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights), Some(offset)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        if words.nth(2).map(Path::new) != Some(file) {
            continue;
        }
        let hexadecimal = |text| u64::from_str_radix(text, 16).expect("a number");
        let (start, end) = range.split_once('-').expect("a range");
        let (start, end) = (hexadecimal(start), hexadecimal(end));
        for page in (start..end).step_by(4096) {
            let mut bytes = [0; 4096];
            if memory.read_exact_at(&mut bytes, page).is_ok() {
                let offset = hexadecimal(offset) + page - start;
                let bytes = (offset..).zip(bytes);
                // What may be written is in another place of the file, or in pages of its own.
                let is_writable = rights.contains('w');
                let place = u64::from(is_writable) << 63;
                found.extend(bytes.map(|(at, byte)| (place | at, (byte, is_writable))));
            }
        }
    }
    found
}

/// Offsets in a file: of its sites, and of their semaphores.
struct Noted {
    sites: Vec<u64>,
    semaphores: Vec<u64>,
}

fn noted(lab: &Lab, file: &Path) -> Noted {
    let listed = lab.usdtrec([
        Path::new("list"),
        "--format=json".as_ref(),
        "--file".as_ref(),
        file,
    ]);
    let mut noted = Noted {
        sites: Vec::new(),
        semaphores: Vec::new(),
    };
    for line in listed.stdout.lines() {
        let probe: Value = serde_json::from_str(line).expect("JSON");
        for site in probe["sites"].as_array().expect("sites") {
            let offset = |name: &str| {
                let text = site[name].as_str()?;
                u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
            };
            noted.sites.extend(offset("offset"));
            noted.semaphores.extend(offset("semaphore_offset"));
        }
    }
    noted
}

/// What is planted that should not be: the memory is not what it was, other than at nops that are sites, and at semaphores.
fn planted_elsewhere(before: &Memory, now: &Memory, noted: &Noted) -> Vec<String> {
    let mut wrong = Vec::new();
    for (place, (old, is_writable)) in before {
        let Some((new, _)) = now.get(place).filter(|(new, _)| new != old) else {
            continue;
        };
        let offset = place & (u64::MAX >> 1);
        let is_expected = if *is_writable {
            // The program itself writes, too, but not in its data while it waits.
            let mut semaphores = noted.semaphores.iter();
            semaphores.any(|at| (*at..*at + 2).contains(&offset))
        } else {
            *new == 0xcc && [0x90, 0x66, 0x0f].contains(old) && noted.sites.contains(&offset)
        };
        if !is_expected {
            wrong.push(format!("{offset:#x}: {old:#x} became {new:#x}"));
        }
    }
    wrong
}

/// How a recording went.
#[derive(Debug, Default)]
struct Went {
    wrong: Vec<String>,
    /// It planted.
    began: bool,
    /// The program had a breakpoint.
    planted: bool,
}

/// A program that waits for commands, without rights.
fn start(program: &Path) -> Process {
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "sh",
        "-c",
    ]);
    command.args([PROGRAM, "sh"]).arg(program);
    Process::spawn(command)
}

/// Waits until a process runs its program, or has ended; whether it runs.
fn runs(process: &mut Process, program: &Path) -> bool {
    let deadline = Instant::now() + WAIT_LIMIT;
    while process.is_running() && Instant::now() < deadline {
        let wchan = fs::read_to_string(format!("/proc/{}/stat", process.pid())).unwrap_or_default();
        let waits = wchan
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" S"));
        let is_it =
            fs::read_link(format!("/proc/{}/exe", process.pid())).is_ok_and(|exe| exe == program);
        if is_it && waits {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

/// One garbled program, recorded in one way, beside one that is as it was.
struct Trial<'a> {
    lab: &'a Lab,
    path: &'a Path,
    /// Words of the recorder.
    line: String,
    /// What must not change.
    twin: (u32, &'a Path, &'a Memory),
}

impl Trial<'_> {
    fn run(&self, mut program: Process) -> Went {
        let mut went = Went::default();
        let waits = runs(&mut program, self.path);
        let pid = program.pid();
        let noted = noted(self.lab, self.path);
        let before = memory(pid, self.path);
        let mut recorder = self.recorder(pid);
        went.began = begins(&mut recorder, &mut went.wrong);
        if went.began && waits {
            let during = memory(pid, self.path);
            went.planted = during != before;
            went.wrong
                .extend(planted_elsewhere(&before, &during, &noted));
            if memory(self.twin.0, self.twin.1) != *self.twin.2 {
                went.wrong.push("another program has changed".to_owned());
            }
            if program.is_running() {
                program.say_perhaps("fire 3");
            }
        }
        if recorder.is_running() {
            recorder.signal("INT");
        }
        let ended = recorder.finish();
        if !matches!(ended.status.code(), Some(0..=2)) || ended.stderr.contains("panicked") {
            went.wrong
                .push(format!("{}: {}", ended.status, ended.stderr));
        }
        let left = || -> Vec<u64> {
            let after = memory(pid, self.path);
            let executable = |(place, (byte, is_writable)): (&u64, &(u8, bool))| {
                let was = before
                    .get(place)
                    .filter(|(was, _)| !is_writable && was != byte);
                was.map(|_| *place)
            };
            after.iter().filter_map(executable).collect()
        };
        // A recorder does not wait for ever for a kernel that is slow to remove its probes.
        within(Duration::from_secs(60), || left().is_empty());
        let left = left();
        if !left.is_empty() {
            went.wrong
                .push(format!("breakpoints are left at {left:x?}"));
        }
        went
    }

    fn recorder(&self, pid: u32) -> Process {
        let path = self.path.to_str().expect("a path");
        let program = std::env::var_os("USDTREC").unwrap_or(env!("CARGO_BIN_EXE_usdtrec").into());
        let mut command = self.lab.at_home(Path::new("sh"), ["-c", RECORDER, "sh"]);
        command.arg(program);
        let words = self.line.split(' ');
        command.args(words.map(|word| word.replace("{pid}", &pid.to_string()).replace("{}", path)));
        command
            .env("RUST_BACKTRACE", "0")
            .env("MALLOC_ARENA_MAX", "1");
        Process::spawn(command)
    }
}

/// Waits until a recorder records, or has ended; whether it records.
fn begins(recorder: &mut Process, wrong: &mut Vec<String>) -> bool {
    let deadline = Instant::now() + WAIT_LIMIT;
    while Instant::now() < deadline {
        match recorder.error_line_within(Duration::from_secs(1)) {
            Some(line) if line.starts_with("[ usdtrec") => return true,
            Some(_) => {}
            None if !recorder.is_running() => return false,
            None => {}
        }
    }
    wrong.push(format!("neither recorded nor ended in {WAIT_LIMIT:?}"));
    false
}

fn keep(at: u64, bytes: &[u8]) -> PathBuf {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("garbled");
    fs::create_dir_all(&kept).expect("a directory");
    let kept = kept.join(format!("{at}-program"));
    fs::write(&kept, bytes).expect("a file");
    kept
}

#[test]
fn nothing_is_planted_elsewhere() {
    let lab = Lab::privileged();
    need_tool("setpriv");
    fs::set_permissions(lab.path(), fs::Permissions::from_mode(0o755)).expect("our directory");
    let mut seeds = Vec::new();
    for build in BUILDS {
        let built = build.make(&lab, "ticker.c", "built");
        let mut bytes = fs::read(&built).expect("our program");
        while let Some(at) = bytes.windows(5).position(|window| window == NOP5) {
            bytes[at..at + 5].fill(0x90);
        }
        seeds.push(bytes);
    }
    let twin_path = lab.file("twin");
    write_program(&twin_path, &seeds[0]);
    let mut twin = start(&twin_path);
    assert!(runs(&mut twin, &twin_path));
    let twin_memory = memory(twin.pid(), &twin_path);
    assert!(!twin_memory.is_empty());
    let first = number("USDTREC_GARBLED_SEED", 0);
    let count = repetitions("USDTREC_GARBLED_PROGRAMS", USUAL);
    let (mut bad, mut began, mut planted) = (Vec::new(), 0, 0);
    for at in first..first + count {
        let mut numbers = Numbers(at);
        let mut bytes = seeds[numbers.below(seeds.len())].clone();
        garble(&mut bytes, &mut numbers);
        if bytes.windows(5).any(|window| window == NOP5) {
            continue;
        }
        let engine = ENGINES[numbers.below(ENGINES.len())];
        let recording = RECORDINGS[numbers.below(RECORDINGS.len())];
        let path = lab.file(&format!("program{at}"));
        write_program(&path, &bytes);
        let trial = Trial {
            lab: &lab,
            path: &path,
            line: format!("{recording} --engine {engine}"),
            twin: (twin.pid(), &twin_path, &twin_memory),
        };
        let went = trial.run(start(&path));
        began += u64::from(went.began);
        planted += u64::from(went.planted);
        if !went.wrong.is_empty() {
            let kept = keep(at, &bytes);
            let said = format!("{at}: {}: {kept:?}: {}", trial.line, went.wrong.join("; "));
            eprintln!("{said}");
            bad.push(said);
        }
        fs::remove_file(&path).expect("our file");
    }
    eprintln!("{count} programs, {began} recordings, {planted} with breakpoints in the program");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(count < USUAL || planted > count / 8, "{planted}");
}
