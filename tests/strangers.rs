//! Who is not recorded pays nothing: no breakpoint, no semaphore, no event.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};

use crate::common::{Lab, Recorder, Ticker, sites_of};

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
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    (number(), number()) > (Some(6), Some(10))
}

/// Records one process, or one of its threads, without its children, by the bpf engine: another process of the same program has
/// no breakpoint and no semaphore, and children of the recorded one live.
#[track_caller]
fn strangers_pay_nothing(whose: impl Fn(&mut Ticker) -> Vec<String>, hits_of: &[&str]) {
    let Some(lab) = Lab::privileged() else { return };
    let Some(mut target) = Ticker::start(&lab) else {
        return;
    };
    let mut stranger = Ticker::again(target.program());
    assert_eq!(stranger.semaphores().0, 0);
    let sites = sites_of(&lab, target.program());
    let site = sites.iter().find(|site| site.event == "sdt_ticker:tick");
    let site = site.expect("a site").pc;
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

/// What has no effect is refused.
#[test]
fn nobody_to_inherit() {
    let Some(lab) = Lab::privileged() else { return };
    lab.usdtrec(["record", "-i", "-e", "a:b"])
        .exits(2)
        .complains("--no-inherit");
    lab.usdtrec(["record", "-i", "-a", "-e", "a:b"])
        .exits(2)
        .complains("--no-inherit");
}
