//! A recorder that is killed: nothing of it stays in the kernel or the program, and all that was written stays readable.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Event, Lab, Perf, Process, Recorder, Ticker, need_tool, uprobe_events};

/// x86's `nop`.
const NOP: u8 = 0x90;

/// The byte at an address of a process.
fn byte_of(pid: u32, address: u64) -> u8 {
    let mut memory = File::open(format!("/proc/{pid}/mem")).expect("our own child");
    let mut byte = [0];
    memory.seek(SeekFrom::Start(address)).expect("any address");
    memory.read_exact(&mut byte).expect("mapped code");
    byte[0]
}

/// Waits until the file holds so many events, while it is being written.
fn wait_for_events(lab: &Lab, trace: &str, count: usize) -> Vec<Event> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let events = lab.events(trace);
        if events.len() >= count || Instant::now() > deadline {
            assert_eq!(
                events.len(),
                count,
                "events in the file while it is being written"
            );
            return events;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The lines of tracefs' list that name a program of this lab.
fn events_left(lab: &Lab) -> Vec<String> {
    let path = lab.path().to_str().expect("a path in UTF-8");
    let lines = uprobe_events();
    lines
        .lines()
        .filter(|line| line.contains(path))
        .map(str::to_owned)
        .collect()
}

/// Processes that run the binary under test as anything else than its main process.
fn helpers_of(recorder: u32) -> Vec<String> {
    let group = format!("usdtrec_{recorder}");
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .map(|words| String::from_utf8_lossy(&words).replace('\0', " "))
        .filter(|words| words.split(' ').any(|word| word == group))
        .collect()
}

/// Waits until a list is empty.
#[track_caller]
fn wait_until_none(list: impl Fn() -> Vec<String>) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline && !list().is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(list(), [""; 0]);
}

#[track_caller]
fn killed_recorder_leaves_nothing(who: impl Fn(&Ticker) -> Vec<String>) {
    let Some(lab) = Lab::privileged() else { return };
    let Some(mut target) = Ticker::start(&lab) else {
        return;
    };
    let mut options = who(&target);
    options.extend([
        "-o".to_owned(),
        "trace".to_owned(),
        "-e".to_owned(),
        target.event("tick"),
    ]);
    let recorder = Recorder::start(&lab, options);
    let recorder_pid = recorder.pid();
    let printed = target.hit("fire 100");
    let site = wait_for_events(&lab, "trace", 100)[0].ip;
    assert_ne!(byte_of(target.pid(), site), NOP, "the breakpoint is there");
    assert_ne!(target.semaphores().0, 0);
    recorder.signal("KILL");
    let killed = recorder.finish();
    assert_eq!(killed.status.code(), None, "ended by a signal");
    assert_eq!(target.semaphores().0, 0);
    assert_eq!(byte_of(target.pid(), site), NOP, "the breakpoint is gone");
    wait_until_none(|| events_left(&lab));
    wait_until_none(|| helpers_of(recorder_pid));
    target.hit("fire 5");
    target.hit("thread 5");
    target.hit("fork 5");
    let recorded: Vec<_> = lab
        .events("trace")
        .iter()
        .map(|event| (event.integer(1), event.integer(2)))
        .collect();
    assert_eq!(recorded, printed);
}

#[test]
fn killed_recorder_of_all_processes_leaves_nothing() {
    killed_recorder_leaves_nothing(|_| vec!["-a".to_owned()]);
}

#[test]
fn killed_recorder_of_one_process_leaves_nothing() {
    killed_recorder_leaves_nothing(|target| vec!["-p".to_owned(), target.pid().to_string()]);
}

/// Stock perf reads the file of a killed recorder like any other.
#[test]
fn stock_perf_reads_the_file_of_a_killed_recorder() {
    let Some(lab) = Lab::privileged() else { return };
    let Some(perf) = Perf::new(&lab) else { return };
    let Some(mut target) = Ticker::start(&lab) else {
        return;
    };
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &target.event("tick")]);
    target.hit("fire 100");
    wait_for_events(&lab, "trace", 100);
    recorder.signal("KILL");
    recorder.finish();
    let script = perf
        .run(["script", "-i", "trace", "-F", "comm,event"])
        .success()
        .silent();
    assert_eq!(script.stdout.lines().count(), 100);
}

/// SIGTERM and SIGHUP end a recording like Ctrl-C does.
#[test]
fn other_signals_end_it_in_order() {
    for signal in ["TERM", "HUP"] {
        let Some(lab) = Lab::privileged() else { return };
        let Some(mut target) = Ticker::start(&lab) else {
            return;
        };
        let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &target.event("tick")]);
        let printed = target.hit("fire 20");
        recorder.signal(signal);
        recorder.finish().complains("20 events");
        assert_eq!(
            lab.events("trace").len(),
            printed.len(),
            "after SIG{signal}"
        );
        assert_eq!(target.semaphores().0, 0);
    }
}

/// A terminal that is closed ends the recording in order, although nothing can be said any more.
#[test]
fn vanished_terminal_ends_it_in_order() {
    let Some(lab) = Lab::privileged() else { return };
    if !need_tool("script") {
        return;
    }
    let Some(mut target) = Ticker::start(&lab) else {
        return;
    };
    let event = target.event("tick");
    let command = format!(
        "exec {} record -a -o trace -e {event}",
        env!("CARGO_BIN_EXE_usdtrec")
    );
    let mut terminal = Process::spawn(lab.at_home(
        Path::new("script"),
        ["-q", "-f", "-c", &command, "/dev/null"],
    ));
    while !terminal
        .line()
        .expect("the recorder says when it is ready")
        .contains("[ usdtrec record:")
    {}
    let printed = target.hit("fire 20");
    terminal.signal("KILL");
    let deadline = Instant::now() + Duration::from_secs(60);
    while target.semaphores().0 != 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(target.semaphores().0, 0, "the recorder ended");
    let report = || {
        lab.usdtrec(["report", "-i", "trace", "--format", "json"])
            .success()
            .stdout
    };
    while !report().contains("\"lost_exact\":true") && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(
        report().contains("\"lost_exact\":true"),
        "it wrote the end of the trace"
    );
    assert_eq!(lab.events("trace").len(), printed.len());
}
