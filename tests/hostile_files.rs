//! Files that a user without rights maps while root records all processes: each decides about itself alone. It is refused, and said to be, and
//! the hits of another user's program are all there.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::{Build, Lab, Process, need_tool, run, test};

/// A probe, by what its note has.
struct Note {
    name: String,
    /// Number of its instruction among those of the function.
    site: usize,
    arguments: String,
}

impl Note {
    fn new(name: impl Into<String>, site: usize) -> Self {
        Self {
            name: name.into(),
            site,
            arguments: "8@%rdi".to_owned(),
        }
    }
}

/// Builds a library whose function `late_work` is so many one-byte nops, with notes.
fn library(lab: &Lab, provider: &str, file: &str, sites: usize, notes: &[Note]) -> PathBuf {
    let mut text = String::from(
        ".section .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n\
         .hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.text\n.globl late_work\nlate_work:\n",
    );
    for site in 0..sites {
        let _ = writeln!(text, "s{site}: nop");
    }
    text.push_str("ret\n.section .note.stapsdt,\"\",\"note\"\n");
    for note in notes {
        let Note {
            name,
            site,
            arguments,
        } = note;
        let _ = write!(
            text,
            ".balign 4\n.4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n\
             993: .8byte s{site},_.stapsdt.base,0\n.asciz \"{provider}\"\n.asciz \"{name}\"\n\
             .asciz \"{arguments}\"\n994: .balign 4\n"
        );
    }
    let source = lab.file("source.s");
    fs::write(&source, text).expect("a source");
    let library = lab.file(file);
    let mut compiler = Command::new("gcc");
    compiler.args(["-shared", "-nostdlib", "-Wl,--build-id", "-o"]);
    compiler.arg(&library).arg(&source);
    run(compiler).success();
    library
}

/// The honest library.
fn honest(lab: &Lab, provider: &str) -> PathBuf {
    library(lab, provider, "honest.so", 1, &[Note::new("fine", 0)])
}

fn loader(lab: &Lab) -> PathBuf {
    fs::set_permissions(lab.path(), fs::Permissions::from_mode(0o755)).expect("our directory");
    let build = Build {
        options: &["-O1", "-ldl"],
        ..Build::USUAL
    };
    build.make(lab, "late.c", "late")
}

/// A loader of a user without rights.
fn of_nobody(program: &Path) -> Process {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(program);
    Process::spawn(command)
}

fn tell(process: &mut Process, command: &str) {
    process.say(command);
    process.line().expect("a number");
}

fn load(process: &mut Process, library: &Path) {
    tell(process, &format!("load {}", library.display()));
}

fn recorder(lab: &Lab, arguments: &[&str]) -> Process {
    let mut recorder = Process::spawn(lab.command(arguments));
    recorder.until_error_line("[ usdtrec ");
    recorder
}

fn stop(recorder: Process) -> String {
    recorder.signal("INT");
    recorder.finish().success().stderr
}

/// Number of hits of an event in a trace.
fn hits(lab: &Lab, trace: &str, event: &str) -> usize {
    let events = lab.events(trace);
    events.iter().filter(|one| one.event == event).count()
}

/// What no trace can have, or no program can capture.
fn odd_files(lab: &Lab, provider: &str) -> Vec<(PathBuf, &'static str)> {
    let many = |number| {
        let words = vec!["8@8(%rsp)"; number];
        Note {
            arguments: words.join(" "),
            ..Note::new("arguments", 0)
        }
    };
    let absurd = Note {
        arguments:
            "99@%zmm99 -8@0xffffffffffffffff(,,) 8@$$$ @ 8@-9223372036854775808(%rip,%rax,16)"
                .into(),
        ..Note::new("absurd", 0)
    };
    let make = |file: &str, notes: &[Note]| library(lab, provider, file, 4, notes);
    vec![
        (
            make("name.so", &[Note::new("n".repeat(8184), 0)]),
            "the event's name has 8",
        ),
        (make("arguments.so", &[many(4000)]), "arguments"),
        (make("absurd.so", &[absurd]), ""),
        (
            make(
                "bytes.so",
                &[
                    Note::new("\\377\\376\\001", 0),
                    Note::new("", 1),
                    Note::new("a\\033[31m\\tb", 2),
                ],
            ),
            "",
        ),
    ]
}

/// At the start and while recording, each odd file harms itself alone.
#[test]
fn odd_files_are_refused_and_others_recorded() {
    const PROVIDER: &str = "hostile_odd";
    let lab = Lab::privileged();
    need_tool("setpriv");
    lab.own_provider(PROVIDER);
    let program = loader(&lab);
    let files = odd_files(&lab, PROVIDER);
    let library = honest(&lab, PROVIDER);
    let pattern = format!("{PROVIDER}:*");
    for (at, (file, reason)) in files.iter().enumerate() {
        for is_first in [true, false] {
            let trace = format!("trace{at}{is_first}");
            let mut nobody = of_nobody(&program);
            let mut mine = Process::spawn(Command::new(&program));
            if is_first {
                load(&mut nobody, file);
            }
            load(&mut mine, &library);
            let mut recorder = recorder(&lab, &["record", "-a", "-e", &pattern, "-o", &trace]);
            tell(&mut mine, "hit 100");
            if !is_first {
                load(&mut nobody, file);
                let said = match reason.is_empty() {
                    true => ": attached ",
                    false => "not attached: ",
                };
                recorder.until_error_line(said);
            }
            // Another honest file after it.
            let another = lab.file(&format!("another{at}{is_first}.so"));
            fs::copy(&library, &another).expect("a copy");
            let mut other = Process::spawn(Command::new(&program));
            load(&mut other, &another);
            recorder.until_error_line("another");
            tell(&mut mine, "hit 100");
            tell(&mut other, "hit 50");
            let said = stop(recorder);
            assert_eq!(hits(&lab, &trace, "sdt_hostile_odd:fine"), 250, "{said}");
            let report = lab.usdtrec(["report", "-i", &trace]).success();
            assert!(!report.stdout.is_empty());
            let told = format!("{said}{}", report.stderr);
            assert!(told.contains(reason), "{reason}: {told}");
        }
    }
}

/// The other verbs go on, too.
#[test]
fn stat_and_trace_go_on() {
    const PROVIDER: &str = "hostile_verbs";
    let lab = Lab::privileged();
    need_tool("setpriv");
    lab.own_provider(PROVIDER);
    let program = loader(&lab);
    let odd = library(
        &lab,
        PROVIDER,
        "name.so",
        1,
        &[Note::new("n".repeat(8184), 0)],
    );
    let library = honest(&lab, PROVIDER);
    let pattern = format!("{PROVIDER}:*");
    for verb in ["stat", "trace"] {
        for is_first in [true, false] {
            let mut nobody = of_nobody(&program);
            let mut mine = Process::spawn(Command::new(&program));
            load(&mut mine, &library);
            if is_first {
                load(&mut nobody, &odd);
            }
            let mut recorder = recorder(&lab, &[verb, "-a", "-e", &pattern]);
            if !is_first {
                load(&mut nobody, &odd);
                recorder.until_error_line("not attached: ");
            }
            tell(&mut mine, "hit 77");
            // `trace` prints what has come within a moment.
            std::thread::sleep(Duration::from_millis(500));
            let said = stop(recorder);
            assert!(said.contains("77 events"), "{verb}: {said}");
        }
    }
}

/// A file with very many probes is refused in little time, and the file of another process is recorded.
#[test]
fn a_file_with_very_many_probes_is_refused() {
    const PROVIDER: &str = "hostile_many";
    let lab = Lab::privileged();
    need_tool("setpriv");
    lab.own_provider(PROVIDER);
    let program = loader(&lab);
    // The assembler takes a time that grows with the square.
    let notes: Vec<Note> = (0..10_000)
        .map(|site| Note::new(format!("p{site}"), site))
        .collect();
    let large = library(&lab, PROVIDER, "large.so", notes.len(), &notes);
    let library = honest(&lab, PROVIDER);
    let pattern = format!("{PROVIDER}:*");
    let mut nobody = of_nobody(&program);
    load(&mut nobody, &large);
    let mut mine = Process::spawn(Command::new(&program));
    load(&mut mine, &library);
    let recorder = recorder(&lab, &["record", "-a", "-e", &pattern, "-o", "trace"]);
    tell(&mut mine, "hit 10");
    let said = stop(recorder);
    assert_eq!(hits(&lab, "trace", "sdt_hostile_many:fine"), 10, "{said}");
    let refused = "the file has 10000 selected sites (expected at most ";
    assert!(said.contains(refused), "{said}");
    let report = lab.usdtrec(["report", "-i", "trace"]).success();
    assert!(report.stderr.contains(refused), "{}", report.stderr);
}

/// A file with very many bytes of notes is refused before it costs memory, at the start and while recording.
#[test]
fn a_file_with_very_many_bytes_of_notes_costs_no_memory() {
    const PROVIDER: &str = "hostile_notes";
    /// Much less than 48 MB of notes take, and more than a recorder does otherwise.
    const MOST_KIB: u64 = 90_000;
    let lab = Lab::privileged();
    need_tool("setpriv");
    lab.own_provider(PROVIDER);
    let program = loader(&lab);
    let source = format!(
        ".section .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n\
         .hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.text\n.globl late_work\nlate_work: nop\nret\n\
         .section .note.stapsdt,\"\",\"note\"\n.rept 700000\n.4byte 8,44,3\n.asciz \"stapsdt\"\n\
         .8byte late_work,_.stapsdt.base,0\n.asciz \"{PROVIDER}\"\n.asciz \"p\"\n.asciz \"\"\n.balign 4\n.endr\n"
    );
    let file = lab.file("notes.s");
    fs::write(&file, source).expect("a source");
    let large = lab.file("notes.so");
    let mut compiler = Command::new("gcc");
    compiler.args(["-shared", "-nostdlib", "-Wl,--build-id", "-o"]);
    compiler.arg(&large).arg(&file);
    run(compiler).success();
    let library = honest(&lab, PROVIDER);
    let pattern = format!("{PROVIDER}:*");
    for is_mapped_before in [true, false] {
        let mut nobody = of_nobody(&program);
        let mut mine = Process::spawn(Command::new(&program));
        load(&mut mine, &library);
        if is_mapped_before {
            load(&mut nobody, &large);
        }
        let mut recorder = recorder(&lab, &["record", "-a", "-e", &pattern, "-o", "trace"]);
        if !is_mapped_before {
            load(&mut nobody, &large);
            recorder.until_error_line("its notes have ");
        }
        tell(&mut mine, "hit 10");
        let status = fs::read_to_string(format!("/proc/{}/status", recorder.pid())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
        let peak: u64 = peak.and_then(|peak| peak.trim().parse().ok()).unwrap();
        let said = stop(recorder);
        assert!(peak < MOST_KIB, "{peak} KiB: {said}");
        assert_eq!(hits(&lab, "trace", "sdt_hostile_notes:fine"), 10, "{said}");
        let report = lab.usdtrec(["report", "-i", "trace"]).success();
        assert!(
            report.stderr.contains("its notes have "),
            "{}",
            report.stderr
        );
    }
}

/// A file that comes to the path of a pattern is recorded, also if another pattern's path is elsewhere and its probes come before.
#[test]
fn a_path_is_found_behind_probes_of_another_one() {
    const PROVIDER: &str = "hostile_paths";
    let lab = Lab::privileged();
    lab.own_provider(PROVIDER);
    let program = loader(&lab);
    let notes: Vec<Note> = (0..100).map(|at| Note::new(format!("p{at}"), at)).collect();
    let [elsewhere, there] = ["elsewhere.so", "there.so"];
    let elsewhere = library(&lab, PROVIDER, elsewhere, notes.len(), &notes);
    let there = library(&lab, PROVIDER, there, notes.len(), &notes);
    let patterns = [
        format!("{PROVIDER}:*@{}", elsewhere.display()),
        format!("{PROVIDER}:p99@{}", there.display()),
    ];
    let [all, last] = &patterns;
    let recorder = recorder(
        &lab,
        &["record", "-a", "-e", all, "-e", last, "-o", "trace"],
    );
    let next = lab.file("next.so");
    fs::copy(&there, &next).expect("a copy");
    fs::rename(&next, &there).expect("another file at the path");
    let mut mine = Process::spawn(Command::new(&program));
    load(&mut mine, &there);
    std::thread::sleep(Duration::from_secs(1));
    tell(&mut mine, "hit 10");
    let said = stop(recorder);
    let events = lab.events("trace");
    assert_eq!(events.len(), 10, "{said}");
    assert!(events.iter().all(|one| one.event.contains("p99")), "{said}");
}

/// Of very many notes at one instruction, a few are recorded.
#[test]
fn hits_of_one_instruction_are_a_few_events() {
    const PROVIDER: &str = "hostile_same";
    const NOTES: usize = 4000;
    let lab = Lab::privileged();
    need_tool("setpriv");
    lab.own_provider(PROVIDER);
    let program = loader(&lab);
    let notes: Vec<Note> = (0..NOTES)
        .map(|number| Note::new(format!("p{number}"), 0))
        .collect();
    let same = library(&lab, PROVIDER, "same.so", 1, &notes);
    let mut nobody = of_nobody(&program);
    load(&mut nobody, &same);
    let pattern = format!("{PROVIDER}:*");
    let recorder = recorder(&lab, &["record", "-a", "-e", &pattern, "-o", "trace"]);
    tell(&mut nobody, "hit 10");
    let said = stop(recorder);
    let events = lab.events("trace").len();
    assert!((10..=200).contains(&events), "{events}: {said}");
    assert!(
        said.contains("selected probes are at the instruction"),
        "{said}"
    );
    // Who names the file gets them all.
    let named = format!("{PROVIDER}:*@{}", same.display());
    let recorder = self::recorder(&lab, &["record", "-a", "-e", &named, "-o", "all"]);
    tell(&mut nobody, "hit 1");
    stop(recorder);
    assert_eq!(lab.events("all").len(), NOTES);
}

/// A user who maps more files than may be planted leaves room for others, and gets room again when they are not mapped any more.
#[test]
fn a_user_leaves_room_for_others_and_gets_it_back() {
    const PROVIDER: &str = "hostile_files";
    const FILES: usize = 300;
    let lab = Lab::privileged();
    need_tool("setpriv");
    lab.own_provider(PROVIDER);
    let program = loader(&lab);
    let library = honest(&lab, PROVIDER);
    let pattern = format!("{PROVIDER}:*");
    let mut nobody = of_nobody(&program);
    for number in 0..FILES {
        let copy = lab.file(&format!("copy{number}.so"));
        fs::copy(&library, &copy).expect("a copy");
        load(&mut nobody, &copy);
    }
    let mut recorder = recorder(&lab, &["record", "-a", "-e", &pattern, "-o", "trace"]);
    // Those of the start stay. Another user's file is planted.
    let mut mine = Process::spawn(Command::new(&program));
    load(&mut mine, &library);
    recorder.until_error_line("honest.so: attached 1 probe");
    tell(&mut mine, "hit 20");
    let said = stop(recorder);
    assert!(
        said.contains("processes of user 65534 would have"),
        "{said}"
    );
    assert_eq!(hits(&lab, "trace", "sdt_hostile_files:fine"), 20);
    drop(nobody);
    // While recording: a program that has ended gives its places back.
    let recorder = self::recorder(&lab, &["record", "-a", "-e", &pattern, "-o", "later"]);
    // On a busy host some are not read: too many wait at once. They are when they are mapped again.
    let mut nobody = Vec::new();
    for _ in 0..3 {
        let mut program = of_nobody(&program);
        for number in 0..FILES {
            load(&mut program, &lab.file(&format!("copy{number}.so")));
            std::thread::sleep(Duration::from_millis(5));
        }
        nobody.push(program);
    }
    drop(nobody);
    let fresh = lab.file("fresh.so");
    fs::copy(&library, &fresh).expect("a copy");
    let mut planted = false;
    for _ in 0..60 {
        std::thread::sleep(Duration::from_secs(1));
        // Each is another file, which is looked at once.
        let fresh = lab.file("fresh.so");
        let next = lab.file("next.so");
        fs::copy(&fresh, &next).expect("a copy");
        fs::rename(&next, &fresh).expect("a name");
        let mut again = of_nobody(&program);
        load(&mut again, &fresh);
        std::thread::sleep(Duration::from_millis(300));
        tell(&mut again, "hit 1");
        drop(again);
        if hits_so_far(&lab) > 0 {
            planted = true;
            break;
        }
    }
    let said = stop(recorder);
    assert!(planted, "{said}");
    assert!(said.contains("not followed: "), "{said}");
}

/// Whether the running recording has hits yet: its trace is whole after each flush.
fn hits_so_far(lab: &Lab) -> usize {
    std::thread::sleep(Duration::from_millis(1500));
    hits(lab, "later", "sdt_hostile_files:fine")
}

/// A probe without the argument that is asked for does not keep a recording from beginning.
#[test]
fn a_recording_begins_although_a_file_has_no_such_argument() {
    const PROVIDER: &str = "hostile_unfit";
    let lab = Lab::privileged();
    need_tool("setpriv");
    lab.own_provider(PROVIDER);
    let program = loader(&lab);
    let without = Note {
        arguments: String::new(),
        ..Note::new("fine", 0)
    };
    let unfit = library(&lab, PROVIDER, "unfit.so", 1, &[without]);
    std::os::unix::fs::chown(&unfit, Some(65534), None).expect("another owner");
    let library = honest(&lab, PROVIDER);
    let mut nobody = of_nobody(&program);
    load(&mut nobody, &unfit);
    for list in ["arg1", "next=arg1+1"] {
        let pattern = format!("{PROVIDER}:fine({list})");
        let mut recorder = recorder(&lab, &["record", "-a", "-e", &pattern, "-o", "trace"]);
        let mut mine = Process::spawn(Command::new(&program));
        load(&mut mine, &library);
        recorder.until_error_line("honest.so: attached 1 probe");
        tell(&mut mine, "hit 20");
        let said = stop(recorder);
        assert!(said.contains("unfit.so: 1 probe not attached: "), "{said}");
        assert_eq!(hits(&lab, "trace", "sdt_hostile_unfit:fine"), 20, "{said}");
    }
}

/// With few descriptors fewer files are recorded, and the recording works.
#[test]
fn few_descriptors_are_enough() {
    const PROVIDER: &str = "hostile_open";
    const FILES: usize = 900;
    let lab = Lab::privileged();
    need_tool("setpriv");
    lab.own_provider(PROVIDER);
    let program = loader(&lab);
    let library = honest(&lab, PROVIDER);
    let mut nobody = of_nobody(&program);
    for number in 0..FILES {
        let copy = lab.file(&format!("copy{number}.so"));
        fs::copy(&library, &copy).expect("a copy");
        load(&mut nobody, &copy);
    }
    let mut mine = Process::spawn(Command::new(&program));
    load(&mut mine, &library);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 1024; exec \"$@\"", "sh"]);
    let pattern = format!("{PROVIDER}:*");
    let recording = lab.command(["record", "-a", "-e", &pattern, "-o", "trace"]);
    command
        .arg(recording.get_program())
        .args(recording.get_args());
    let variables = recording.get_envs();
    command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = recording.get_current_dir() {
        command.current_dir(folder);
    }
    let mut recorder = Process::spawn(command);
    recorder.until_error_line("[ usdtrec ");
    tell(&mut mine, "hit 30");
    let said = stop(recorder);
    assert_eq!(hits(&lab, "trace", "sdt_hostile_open:fine"), 30, "{said}");
    assert!(said.contains("than is left for all others"), "{said}");
}
