//! A recorder that is killed: nothing of it stays in the kernel or the program, and all that was written stays readable.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{
    Event, Lab, Perf, Process, Recorder, Ticker, events_of_recorder, need_tool, test, uprobe_events,
};

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

/// Processes that run the binary under test as anything else than its main process.
fn helpers_of(recorder: u32) -> Vec<String> {
    let group = format!("usdtrec_{recorder}_");
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .map(|words| String::from_utf8_lossy(&words).replace('\0', " "))
        .filter(|words| words.split(' ').any(|word| word.starts_with(&group)))
        .collect()
}

/// Waits until a list is empty.
#[track_caller]
fn wait_until_none(list: impl Fn() -> Vec<String>) {
    // The kernel closes perf events one after the other, also those of other tests that end meanwhile: a tenth of a second each.
    let deadline = Instant::now() + Duration::from_secs(600);
    while Instant::now() < deadline && !list().is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(list(), [""; 0]);
}

#[track_caller]
fn killed_recorder_leaves_nothing(who: impl Fn(&Ticker) -> Vec<String>) {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
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
    wait_until_none(|| events_of_recorder(recorder_pid));
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
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let mut target = Ticker::start(&lab);
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
    // Nor does any verb of ours need to know the events.
    let lines = |options: &[&str]| {
        let printed = lab.usdtrec(options).success().stdout;
        let parse = |line: &str| serde_json::from_str(line).expect(line);
        printed
            .lines()
            .map(parse)
            .collect::<Vec<serde_json::Value>>()
    };
    let script = lines(&["script", "-i", "trace", "--format", "json"]);
    assert_eq!(script.len(), 100);
    assert!(script.iter().all(|line| line["event"] == "sdt_ticker:tick"));
    let report = lines(&["report", "-i", "trace", "--format", "json"]);
    assert_eq!(report[0]["events"], 100, "{report:?}");
    let sorted = lines(&[
        "report", "-i", "trace", "--sort", "comm", "--format", "json",
    ]);
    assert_eq!(sorted[0]["samples"], 100, "{sorted:?}");
}

/// SIGTERM and SIGHUP end a recording like Ctrl-C does.
#[test]
fn other_signals_end_it_in_order() {
    for signal in ["TERM", "HUP"] {
        let lab = Lab::privileged();
        let mut target = Ticker::start(&lab);
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
    let lab = Lab::privileged();
    need_tool("script");
    let mut target = Ticker::start(&lab);
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

/// A recorder that is process 1 of a pid namespace of its own, as in a container. Killing it kills all in there.
fn contained(lab: &Lab, trace: &str, event: &str) -> Process {
    let usdtrec = env!("CARGO_BIN_EXE_usdtrec");
    let mut command = lab.at_home(
        Path::new("unshare"),
        ["--pid", "--fork", "--mount-proc", "--kill-child", usdtrec],
    );
    command.args(["record", "--engine", "perf-tracefs", "-a"]);
    command.args(["-o", trace, "-e", event]);
    let mut process = Process::spawn(command);
    process.until_error_line("[ usdtrec record:");
    process
}

/// The group of a contained recorder, `unshare`'s child. Numbers of namespaces are used again.
fn group_of(contained: &Process) -> String {
    let pid = contained.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("our own child's children");
    let child = children.split_whitespace().next().expect("a child");
    let namespace = fs::read_link(format!("/proc/{child}/ns/pid")).expect("a namespace");
    let namespace = namespace.to_str().expect("pid:[INODE]").to_owned();
    let inode = namespace.trim_start_matches("pid:[").trim_end_matches(']');
    let stat = fs::read_to_string(format!("/proc/{child}/stat")).expect("a process");
    // Field 22 (proc_pid_stat(5)); the name before field 3 is in parentheses.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let start = fields.split_whitespace().nth(19).expect("a start time");
    format!(":usdtrec_1_{start}_{inode}/")
}

/// The events of such a group.
fn events_of(group: &str) -> Vec<String> {
    let events = uprobe_events();
    let of_group = |line: &&str| line.contains(group);
    events.lines().filter(of_group).map(str::to_owned).collect()
}

/// Containers share tracefs, and in each the recorder may be process 1: none takes another's events away while it lives, and the
/// events of those that were killed with their guards are taken away by the next recorder.
#[test]
fn recorders_in_containers_leave_each_other_alone() {
    let lab = Lab::privileged();
    need_tool("unshare");
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let one = contained(&lab, "one", &event);
    let other = contained(&lab, "other", &event);
    let groups = [group_of(&one), group_of(&other)];
    let on_host = ["--engine", "perf-tracefs", "-a", "-e", &event, "-o"];
    let third = Recorder::start(&lab, on_host.iter().chain(&["third"]));
    for group in &groups {
        assert_eq!(events_of(group).len(), 1, "{}", uprobe_events());
    }
    target.hit("fire 5");
    for trace in ["one", "other", "third"] {
        wait_for_events(&lab, trace, 5);
    }
    for process in [one, other] {
        process.signal("KILL");
        process.finish();
    }
    // The kernel closes the events of killed processes one after the other; until then they live.
    wait_until_none(|| {
        Recorder::start(&lab, on_host.iter().chain(&["fourth"])).stop();
        groups.iter().flat_map(|group| events_of(group)).collect()
    });
    target.hit("fire 5");
    wait_for_events(&lab, "third", 10);
    third.stop();
}
