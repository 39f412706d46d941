//! Who is not recorded pays nothing: no breakpoint, no semaphore, no event.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{
    Build, Finished, Lab, Postgres, Process, Recorder, Ticker, byte_of, need_tool, signal,
    sites_of, test,
};
use crate::held_children::recorded;

/// x86's `nop`.
const NOP: u8 = 0x90;

/// The byte of a process's code at a link-time address of its program.
fn code_of(target: &Ticker, address: u64) -> u8 {
    byte_of(target.pid(), target.program(), address)
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

/// Whether probes stayed in the recorded processes and their children. A machine that is too busy to attach to each child in time is no reason to
/// fail; any other is one where the kernel can.
#[track_caller]
fn stayed(ended: &Finished) -> bool {
    let stderr = &ended.stderr;
    let began = stderr.contains("in the recorded processes and their children alone");
    let is_slow =
        stderr.contains("attaching to each child of the recorded processes takes too long");
    let went = stderr.contains("attached in all processes of the files while recording");
    assert_eq!(began, kernel_holds(), "{stderr}");
    assert_eq!(went, is_slow, "{stderr}");
    began && !went
}

/// Looks at a process's code and semaphore all the time, until `job` is done. Whether it never had a breakpoint or a raised semaphore.
fn is_spared_during(stranger: &Ticker, (site, semaphore): (u64, u64), job: impl FnOnce()) -> bool {
    let done = AtomicBool::new(false);
    let (pid, program) = (stranger.pid(), stranger.program());
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut spared = true;
            while !done.load(Ordering::Relaxed) {
                spared &= byte_of(pid, program, site) == NOP;
                spared &= byte_of(pid, program, semaphore) == 0;
            }
            spared
        });
        job();
        done.store(true, Ordering::Relaxed);
        watch.join().expect("it only reads")
    })
}

/// With its children recorded, too: strangers pay nothing before, while and after it starts some, of which no hit is missed.
#[test]
fn of_a_process_and_its_children() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let mut stranger = Ticker::again(target.program());
    let watched = Ticker::again(target.program());
    let site = site_of_tick(&lab, &target);
    let pid = target.pid().to_string();
    let options = ["-v", "-o", "trace", "--engine", "bpf-multi", "-p", &pid];
    let event = target.event("tick");
    let recorder = Recorder::start(&lab, [&options[..], &["-e", &event]].concat());
    assert_eq!(is_spared(&mut stranger, site), kernel_holds());
    assert_ne!(target.semaphores().0, 0);
    let mut printed = Vec::new();
    let places = (site, semaphore_of_tick(&lab, &target));
    let was_spared = is_spared_during(&watched, places, || {
        for command in [
            "fire 5", "thread 7", "fork 8", "exec 9", "fire 4", "thread 3", "fork 2",
        ] {
            stranger.hit("fire 5");
            printed.extend(target.hit(command));
        }
    });
    let mut later = Ticker::again(target.program());
    let are_spared = [&mut stranger, &mut later].map(|stranger| is_spared(stranger, site));
    later.hit("fire 5");
    let ended = recorder.stop().complains(" 0 lost");
    if stayed(&ended) {
        assert!(was_spared, "a breakpoint or a semaphore meanwhile");
        assert_eq!(are_spared, [true, true], "after the forks");
    }
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

/// The link-time address of the semaphore of the probe that is hit.
fn semaphore_of_tick(lab: &Lab, target: &Ticker) -> u64 {
    let sites = sites_of(lab, target.program());
    let site = sites.iter().find(|site| site.event == "sdt_ticker:tick");
    site.expect("a site").semaphore
}

/// The same for a command, which is the recorder's child.
#[test]
fn of_a_command_and_its_children() {
    let lab = Lab::privileged();
    let mut stranger = Ticker::start(&lab);
    let site = site_of_tick(&lab, &stranger);
    let event = stranger.event("tick");
    let options = ["record", "-v", "-o", "trace", "--engine", "bpf-multi", "-e"];
    let mut command = lab.command(options);
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
    let was_spared = is_spared(&mut stranger, site);
    let pid = recorder.pid();
    signal(pid, "INT");
    let ended = recorder.finish().complains(" 0 lost");
    assert!(was_spared || !stayed(&ended), "after the forks");
    assert_eq!(lab.events("trace").len(), printed);
    assert!(is_spared(&mut stranger, site), "after the end");
}

/// The program that starts processes in many ways, and the event of its probe.
fn forks(lab: &Lab) -> (PathBuf, String) {
    let program = Build::USUAL.make(lab, "forks.c", "forks");
    let event = format!("forks:hit@{}", program.display());
    (program, event)
}

fn start(program: &Path, arguments: [&str; 2]) -> Process {
    let mut command = Command::new(program);
    command.args(arguments);
    Process::spawn(command)
}

/// The lines until `ready`, and the numbers of those that begin with `name`.
fn numbers_until_ready(target: &mut Process, name: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    while let Some(line) = target.line().filter(|line| line != "ready") {
        let number = line
            .strip_prefix(name)
            .and_then(|number| number.parse::<u32>().ok());
        numbers.extend(number);
    }
    numbers
}

/// So many children live at the same time, each of which hits before and after the others have come to be. A process of the same program has
/// breakpoints only once they are too many. Returns whether all hits are recorded: of those that are not, the recorder says that there may be some.
#[track_caller]
fn many_children(count: usize, is_many: bool) -> bool {
    let lab = Lab::privileged();
    let (program, event) = forks(&lab);
    let mut target = start(&program, ["many", &count.to_string()]);
    let stranger = start(&program, ["many", "0"]);
    let site = sites_of(&lab, &program)[0].pc;
    let pid = target.pid().to_string();
    let options = ["-v", "-o", "trace", "--engine", "bpf-multi", "-p", &pid];
    let recorder = Recorder::start(&lab, [&options[..], &["-e", &event]].concat());
    target.say("go");
    let children = numbers_until_ready(&mut target, "pid ");
    assert_eq!(children.len(), count);
    let is_spared = byte_of(stranger.pid(), &program, site) == NOP;
    assert!(
        children
            .iter()
            .all(|child| byte_of(*child, &program, site) != NOP)
    );
    target.say("again");
    let target = target.finish().success();
    assert!(target.stdout.contains("died 0"), "{target:?}");
    let ended = recorder.finish().success().complains(" 0 lost");
    if is_many {
        assert!(!is_spared, "{ended:?}");
        let reason = "attached in all processes of the files while recording: ";
        assert_eq!(ended.stderr.contains(reason), kernel_holds(), "{ended:?}");
    } else {
        assert!(is_spared || !stayed(&ended), "{ended:?}");
    }
    let recorded = recorded(&lab);
    let count = count as i128;
    let mut expected: Vec<i128> = (0..count).chain(10_000..10_000 + count).collect();
    let is_whole = !ended.stderr.contains("may have run");
    if !is_whole {
        expected.retain(|number| recorded.contains(number));
    }
    assert_eq!(recorded, expected);
    assert_eq!(
        byte_of(stranger.pid(), &program, site),
        NOP,
        "after the end"
    );
    is_whole
}

#[test]
fn of_a_few_children_at_once() {
    // A busy host has no time for them now and then.
    let is_whole = (0..3).any(|_| many_children(8, false));
    assert!(is_whole, "children run without probes each time");
}

#[test]
fn of_three_hundred_children_at_once() {
    assert!(many_children(300, true));
}

/// Two processes, each of which starts others, and one of which starts one in a pid namespace of its own, which maps the program only then.
#[test]
fn of_several_processes() {
    let lab = Lab::privileged();
    need_tool("unshare");
    let (program, event) = forks(&lab);
    let site = sites_of(&lab, &program)[0].pc;
    let stranger = start(&program, ["many", "0"]);
    let mut target = start(&program, ["many", "2"]);
    let path = program.to_str().expect("a path");
    let mut shell = Command::new("sh");
    let script = "read -r line; unshare --pid --fork \"$0\" hit 20000; \"$0\" hit 20001";
    shell.args(["-c", script, path]);
    let mut shell = Process::spawn(shell);
    let pids = format!("{},{}", target.pid(), shell.pid());
    let options = ["-v", "-o", "trace", "--engine", "bpf-multi", "-p", &pids];
    let recorder = Recorder::start(&lab, [&options[..], &["-e", &event]].concat());
    target.say("go");
    numbers_until_ready(&mut target, "pid ");
    shell.say("go");
    shell.finish().success();
    let is_spared = byte_of(stranger.pid(), &program, site) == NOP;
    target.say("again");
    target.finish().success();
    let ended = recorder.finish().success().complains(" 0 lost");
    assert!(is_spared || !stayed(&ended), "{ended:?}");
    let recorded = recorded(&lab);
    assert_eq!(recorded, [0, 1, 10_000, 10_001, 20_000, 20_001]);
}

/// A recorder that is killed while children have links of their own leaves no breakpoint in any of them.
#[test]
fn of_a_killed_recorder() {
    let lab = Lab::privileged();
    let (program, event) = forks(&lab);
    let mut target = start(&program, ["many", "8"]);
    let sites = sites_of(&lab, &program);
    let pid = target.pid().to_string();
    let options = ["-o", "trace", "--engine", "bpf-multi", "-p", &pid];
    let recorder = Recorder::start(&lab, [&options[..], &["-e", &event]].concat());
    target.say("go");
    let mut processes = numbers_until_ready(&mut target, "pid ");
    processes.push(target.pid());
    assert!(
        processes
            .iter()
            .all(|pid| byte_of(*pid, &program, sites[0].pc) != NOP)
    );
    recorder.signal("KILL");
    recorder.finish();
    for pid in processes {
        assert_eq!(byte_of(pid, &program, sites[0].pc), NOP, "a breakpoint");
        assert_eq!(byte_of(pid, &program, sites[0].semaphore), 0, "a semaphore");
    }
    target.say("again");
    assert!(target.finish().success().stdout.contains("died 0"));
}

/// The same at any moment while it starts and loses children.
#[test]
fn of_a_recorder_killed_among_children() {
    let lab = Lab::privileged();
    let (program, event) = forks(&lab);
    for pause in [0, 3, 10, 30, 100, 300] {
        let mut target = start(&program, ["often", "1000"]);
        let pid = target.pid().to_string();
        let options = ["-o", "trace", "--engine", "bpf-multi", "-p", &pid];
        let recorder = Recorder::start(&lab, [&options[..], &["-e", &event]].concat());
        target.say("go");
        thread::sleep(Duration::from_millis(pause));
        recorder.signal("KILL");
        recorder.finish();
        let target = target.finish().success();
        assert!(target.stdout.contains("died 0"), "{target:?}");
    }
    // A breakpoint that stayed would be in a new process, too.
    let later = start(&program, ["many", "0"]);
    let sites = sites_of(&lab, &program);
    assert_eq!(byte_of(later.pid(), &program, sites[0].pc), NOP);
    assert_eq!(byte_of(later.pid(), &program, sites[0].semaphore), 0);
}

/// PostgreSQL's server starts a process for each connection. Those that it had before, which are not recorded, have no breakpoints.
#[test]
fn of_a_server() {
    let lab = Lab::privileged();
    let postgres = Postgres::start();
    let program = Postgres::program();
    let path = program.to_str().expect("a path");
    lab.usdtrec(["buildid-cache", "--add", path]).success();
    let sites = sites_of(&lab, &program);
    let site = sites
        .iter()
        .find(|site| site.event == "sdt_postgresql:query__start");
    let site = site.expect("a site").pc;
    let server = postgres.pid().to_string();
    let others = fs::read_to_string(format!("/proc/{server}/task/{server}/children"));
    let others = others.expect("a server with children");
    let others: Vec<u32> = others
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect();
    assert!(!others.is_empty());
    let options = ["-v", "-o", "trace", "--engine", "bpf-multi", "-p", &server];
    let event = "sdt_postgresql:query__start";
    let recorder = Recorder::start(&lab, [&options[..], &["-e", event]].concat());
    const QUERIES: i128 = 6;
    for number in 0..QUERIES {
        postgres.ask(&format!("SELECT {number}"));
    }
    // They are recorded, too.
    let has_one = |pid: &u32| byte_of(*pid, &program, site) != NOP;
    assert!(others.iter().all(has_one), "{others:?}");
    let said = format!(" children of {server} are recorded");
    recorder.stop().complains(" 0 lost").complains(&said);
    let recorded = lab.events("trace");
    let queries: Vec<_> = recorded.iter().map(|event| event.string(1)).collect();
    let expected: Vec<_> = (0..QUERIES)
        .map(|number| format!("SELECT {number}"))
        .collect();
    assert_eq!(queries, expected);
}

/// What has no effect is refused.
#[test]
fn no_child_inherits() {
    let lab = Lab::privileged();
    lab.usdtrec(["record", "-i", "-e", "a:b"])
        .exits(2)
        .complains("--no-inherit");
    lab.usdtrec(["record", "-i", "-a", "-e", "a:b"])
        .exits(2)
        .complains("--no-inherit");
}
