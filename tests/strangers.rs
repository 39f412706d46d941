//! Who is not recorded pays nothing: no breakpoint, no semaphore, no event.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::common::{Lab, Process, Recorder, Ticker, signal, sites_of, test};

/// x86's `nop`.
const NOP: u8 = 0x90;

/// The byte of a process's code at a link-time address of its program, which is position-independent.
fn code_of(target: &Ticker, address: u64) -> u8 {
    let pid = target.pid();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("our own child");
    let path = target.program().to_str().expect("a path in UTF-8");
    let first = maps.lines().find(|line| line.ends_with(path));
    let first = first.expect("the program is mapped");
    let (start, _) = first.split_once('-').expect("START-END");
    let start = u64::from_str_radix(start, 16).expect("an address");
    let mut memory = File::open(format!("/proc/{pid}/mem")).expect("our own child");
    let mut byte = [0];
    let at = SeekFrom::Start(start + address);
    memory.seek(at).expect("any address");
    memory.read_exact(&mut byte).expect("mapped code");
    byte[0]
}

/// Whether this kernel plants in single processes for all their threads (Linux 6.10, BPF).
fn kernel_can() -> bool {
    kernel_is_after(6, 10)
}

fn kernel_is_after(major: u32, minor: u32) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    (number(), number()) > (Some(major), Some(minor))
}

/// The link-time address of the probe that is hit.
fn site_of_tick(lab: &Lab, target: &Ticker) -> u64 {
    let sites = sites_of(lab, target.program());
    let site = sites.iter().find(|site| site.event == "sdt_ticker:tick");
    site.expect("a site").pc
}

/// Records one process, or one of its threads, without its children, by the bpf engine: another process of the same program has
/// no breakpoint and no semaphore, and children of the recorded one live.
#[track_caller]
fn strangers_pay_nothing(whose: impl Fn(&mut Ticker) -> Vec<String>, hits_of: &[&str]) {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let mut stranger = Ticker::again(target.program());
    assert_eq!(stranger.semaphores().0, 0);
    let site = site_of_tick(&lab, &target);
    let mut options = whose(&mut target);
    options.extend(["-v", "--engine", "bpf-multi", "-o", "trace", "-e"].map(str::to_owned));
    options.push(target.event("tick"));
    let recorder = Recorder::start(&lab, options);
    if kernel_can() {
        assert_eq!(code_of(&stranger, site), NOP, "a breakpoint");
        assert_eq!(stranger.semaphores().0, 0);
    }
    assert_ne!(code_of(&target, site), NOP, "no breakpoint");
    assert_ne!(target.semaphores().0, 0);
    let mut printed = Vec::new();
    for command in ["fire 5", "kept 6", "thread 7", "fork 8", "exec 9", "fire 4"] {
        stranger.hit("fire 5");
        let hits = target.hit(command);
        if hits_of.contains(&command) {
            printed.extend(hits);
        }
    }
    let mut later = Ticker::again(target.program());
    // It answers when it has begun.
    let semaphores = later.semaphores();
    if kernel_can() {
        assert_eq!(code_of(&later, site), NOP, "a breakpoint");
        assert_eq!(semaphores.0, 0);
    }
    later.hit("fire 5");
    let ended = recorder.stop();
    assert_eq!(
        ended.stderr.contains("in the recorded processes alone"),
        kernel_can(),
        "{}",
        ended.stderr
    );
    let recorded: Vec<_> = lab
        .events("trace")
        .iter()
        .map(|event| (event.integer(1), event.integer(2)))
        .collect();
    assert_eq!(recorded, printed);
    assert_eq!(code_of(&target, site), NOP, "a breakpoint after the end");
    assert_eq!(target.semaphores().0, 0);
    target.hit("fork 3");
}

#[test]
fn of_a_process_without_its_children() {
    strangers_pay_nothing(
        |target| {
            target.keep_thread();
            ["-p", &target.pid().to_string(), "--no-inherit"]
                .map(str::to_owned)
                .to_vec()
        },
        &["fire 5", "kept 6", "thread 7", "fire 4"],
    );
}

#[test]
fn of_a_thread() {
    strangers_pay_nothing(
        |target| {
            let tid = target.keep_thread();
            ["-t".to_owned(), tid.to_string()].to_vec()
        },
        &["kept 6"],
    );
}

/// Whether this kernel can hold processes that begin (Linux 6.18, with BTF), and has memory for that on this processor.
pub(crate) fn kernel_holds() -> bool {
    kernel_is_after(6, 17)
        && Path::new("/sys/kernel/btf/vmlinux").exists()
        && fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" cx16 "))
}

/// A process of the same program that is not recorded: whether it has a breakpoint at the site and a raised semaphore.
#[track_caller]
fn is_spared(stranger: &mut Ticker, site: u64) -> bool {
    let semaphores = stranger.semaphores();
    let has_breakpoint = code_of(stranger, site) != NOP;
    assert_eq!(semaphores.0 != 0, has_breakpoint, "one without the other");
    !has_breakpoint
}

/// With its children recorded, too: strangers pay nothing until it starts the first, of which no hit is missed.
#[test]
fn of_a_process_until_it_forks() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let mut stranger = Ticker::again(target.program());
    let site = site_of_tick(&lab, &target);
    let pid = target.pid().to_string();
    let options = ["-v", "-o", "trace", "--engine", "bpf-multi", "-p", &pid];
    let event = target.event("tick");
    let recorder = Recorder::start(&lab, [&options[..], &["-e", &event]].concat());
    assert_eq!(is_spared(&mut stranger, site), kernel_holds());
    assert_ne!(target.semaphores().0, 0);
    let mut printed = Vec::new();
    for command in ["fire 5", "thread 7"] {
        stranger.hit("fire 5");
        printed.extend(target.hit(command));
    }
    let mut later = Ticker::again(target.program());
    for stranger in [&mut stranger, &mut later] {
        assert_eq!(is_spared(stranger, site), kernel_holds());
    }
    for command in ["fork 8", "exec 9", "fire 4", "thread 3", "fork 2"] {
        printed.extend(target.hit(command));
        stranger.hit("fire 5");
    }
    let ended = recorder.stop().complains(" 0 lost");
    assert_eq!(
        ended.stderr.contains("until one of them starts another"),
        kernel_holds(),
        "{}",
        ended.stderr
    );
    let recorded = lab.events("trace");
    let recorded: Vec<_> = recorded
        .iter()
        .map(|event| (event.integer(1), event.integer(2)))
        .collect();
    assert_eq!(recorded, printed);
    for process in [&mut target, &mut stranger, &mut later] {
        assert!(is_spared(process, site), "after the end");
    }
    target.hit("fork 3");
}

/// The same for a command, which is the recorder's child.
#[test]
fn of_a_command_until_it_forks() {
    let lab = Lab::privileged();
    let mut stranger = Ticker::start(&lab);
    let site = site_of_tick(&lab, &stranger);
    let event = stranger.event("tick");
    let mut command = lab.command(["record", "-o", "trace", "--engine", "bpf-multi", "-e"]);
    command.arg(&event).arg("--").arg(stranger.program());
    let mut recorder = Process::spawn(command);
    recorder.until_error_line("[ usdtrec record:");
    let mut printed = 0;
    let mut tell = |command: &str| {
        recorder.say(command);
        while let Some(line) = recorder.line().filter(|line| line != "done") {
            printed += usize::from(line.starts_with("fire "));
        }
    };
    tell("fire 3");
    assert_eq!(is_spared(&mut stranger, site), kernel_holds());
    tell("exec 5");
    tell("fork 4");
    stranger.hit("fire 5");
    let pid = recorder.pid();
    signal(pid, "INT");
    recorder.finish().complains(" 0 lost");
    assert_eq!(lab.events("trace").len(), printed);
    assert!(is_spared(&mut stranger, site), "after the end");
}

/// What has no effect is refused.
#[test]
fn nobody_to_inherit() {
    let lab = Lab::privileged();
    lab.usdtrec(["record", "-i", "-e", "a:b"])
        .exits(2)
        .complains("--no-inherit");
    lab.usdtrec(["record", "-i", "-a", "-e", "a:b"])
        .exits(2)
        .complains("--no-inherit");
}
