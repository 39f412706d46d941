//! A recorder that is killed: nothing of it stays in the kernel or the program, and all that was written stays readable.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use crate::common::{Event, Lab, Perf, Recorder, Ticker, alone_in_tracefs, uprobe_events};

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

#[test]
fn killed_recorder_leaves_nothing() {
    let Some(lab) = Lab::privileged() else { return };
    let Some(mut target) = Ticker::start(&lab) else {
        return;
    };
    let _alone = alone_in_tracefs();
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &target.event("tick")]);
    let printed = target.hit("fire 100");
    let site = wait_for_events(&lab, "trace", 100)[0].ip;
    assert_ne!(byte_of(target.pid(), site), NOP, "the breakpoint is there");
    assert_ne!(target.semaphores().0, 0);
    recorder.signal("KILL");
    let killed = recorder.finish();
    assert_eq!(killed.status.code(), None, "ended by a signal");
    assert_eq!(target.semaphores().0, 0);
    assert_eq!(byte_of(target.pid(), site), NOP, "the breakpoint is gone");
    assert_eq!(uprobe_events(), "");
    target.hit("fire 5");
    let recorded: Vec<_> = lab
        .events("trace")
        .iter()
        .map(|event| (event.integer(1), event.integer(2)))
        .collect();
    assert_eq!(recorded, printed);
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
