//! `record --budget`: hot probes are paused, and rare ones lose nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use usdtrec_format::perf::Records;
use usdtrec_format::trace::{BlockReader, Pause, Trace};

use crate::common::{Build, Event, Finished, Lab, Process, Recorder, events_named, test};

/// testdata/targets/busy.c, which prints what it did.
struct Busy {
    process: Process,
    path: PathBuf,
}

/// What a `run` or `fork` printed.
#[derive(Clone, Copy, Debug)]
struct Ran {
    rounds: u64,
    /// Rounds in which the span's probe was enabled.
    checked: u64,
    /// Number of the last rare hit.
    rare: i128,
}

impl Busy {
    fn start(lab: &Lab, build: Build) -> Self {
        let path = build.make(lab, "busy.c", "busy");
        let mut process = Process::spawn(lab.at_home(&path, [""; 0]));
        process.line();
        Self { process, path }
    }

    fn pid(&self) -> String {
        self.process.pid().to_string()
    }

    /// Begins to record it; `who` is of whom.
    fn record(&self, lab: &Lab, provider: &str, who: &[&str]) -> Recorder {
        let event = format!("sdt_{provider}:*@{}", self.path.display());
        self.record_event(lab, &event, &[&["--budget", "2%"], who].concat())
    }

    fn record_event(&self, lab: &Lab, event: &str, options: &[&str]) -> Recorder {
        let usual = ["-m", "64M", "-o", "trace", "-e", event];
        Recorder::start(lab, [&usual, options].concat())
    }

    /// What a recorder of an event without a budget says of the thread, while there are many hits. A host that is busy needs longer to measure what one costs.
    fn said_without_budget(&mut self, lab: &Lab, event: &str, options: &[&str]) -> Vec<String> {
        let event = format!("sdt_busy:{event}@{}", self.path.display());
        let pid = self.pid();
        let thread = format!(" of the time of thread {pid} (busy)");
        // With callers: a thread that waits for a CPU has few hits.
        let options = [&["--no-inherit", "-g", "-p", &pid], options].concat();
        for ms in [12_000, 60_000] {
            let recorder = self.record_event(lab, &event, &options);
            self.process.say(&format!("run {ms}"));
            self.ran();
            let said = recorder.stop().stderr;
            let lines = said.lines().filter(|line| line.contains(&thread));
            let lines: Vec<String> = lines.map(str::to_owned).collect();
            if !lines.is_empty() {
                return lines;
            }
        }
        panic!("no line has {thread:?}");
    }

    #[track_caller]
    fn ran(&mut self) -> Ran {
        let line = self.process.line().expect("a line");
        let numbers = line.split(' ').skip(1);
        let numbers: Vec<u64> = numbers.map(|word| word.parse().expect(&line)).collect();
        Ran {
            rounds: numbers[0],
            checked: numbers[1],
            rare: numbers[2].into(),
        }
    }

    /// Nothing of a recorder is left in the program.
    #[track_caller]
    fn is_clean(&mut self, sites: &BTreeSet<u64>) {
        let said = |process: &mut Process| {
            process.say("look");
            process.line().expect("a line")
        };
        let is_over = crate::common::within(Duration::from_secs(60), || {
            said(&mut self.process) == "semaphores 0 0 0 0"
        });
        assert!(is_over, "{}", said(&mut self.process));
        for site in sites {
            assert_eq!(byte_of(self.process.pid(), *site), NOP, "{site:#x}");
        }
    }
}

/// x86's `nop`.
const NOP: u8 = 0x90;

fn byte_of(pid: u32, address: u64) -> u8 {
    use std::os::unix::fs::FileExt as _;
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).expect("our own child");
    let mut byte = [0];
    memory.read_exact_at(&mut byte, address).expect("code");
    byte[0]
}

/// The pauses of a trace by their numbers, as the last record of each says, with the events that they are of.
fn pauses(file: &Path) -> BTreeMap<u64, (Pause, BTreeSet<String>)> {
    let trace = Trace::open(file).expect("a trace");
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    let info = trace.info();
    let id_type = info.events[0].attr.id_type();
    let mut reader = BlockReader::new();
    let mut found = BTreeMap::new();
    for block in trace.blocks().iter().filter(|block| block.metadata) {
        let records = reader.read(&trace, block).expect("a block");
        for record in Records::new(records) {
            if let Some(pause) = Pause::parse(&record, id_type) {
                let events = info.events.iter();
                let events =
                    events.filter(|event| event.ids.iter().any(|id| pause.ids.contains(id)));
                let events = events.map(|event| event.name.clone()).collect();
                found.insert(pause.number, (pause, events));
            }
        }
    }
    found
}

/// No event is within a pause of its probe, and both ends of a span are in the same pauses. Returns the number of pauses.
#[track_caller]
fn check_pauses(file: &Path, events: &[Event]) -> usize {
    let pauses = pauses(file);
    for (pause, of) in pauses.values() {
        assert!(pause.to_ns.is_none_or(|to| pause.from_ns < to), "{pause:?}");
        let is_end = |name: &str| of.iter().any(|event| event.ends_with(name));
        assert_eq!(is_end(":work__start"), is_end(":work__done"), "{of:?}");
        assert!(!is_end(":rare"), "{of:?}");
        let inside = events.iter().find(|event| {
            let is_after = pause.from_ns <= event.time_ns;
            of.contains(&event.event) && is_after && pause.to_ns.is_none_or(|to| event.time_ns < to)
        });
        assert!(inside.is_none(), "{inside:?} in {pause:?}");
    }
    pauses.len()
}

/// Numbers of an event's hits.
fn numbers(events: &[Event], name: &str) -> BTreeSet<i128> {
    let named = events_named(events, name);
    named.iter().map(|event| event.integer(1)).collect()
}

/// Records `run 3000`, and checks what came of it.
#[track_caller]
fn hot_probes_are_paused(provider: &str, build: Build, who: impl Fn(&Busy) -> Vec<String>) {
    let lab = Lab::privileged();
    let mut busy = Busy::start(&lab, build);
    let who = who(&busy);
    let who: Vec<&str> = who.iter().map(String::as_str).collect();
    let recorder = busy.record(&lab, provider, &who);
    busy.process.say("run 3000");
    let ran = busy.ran();
    let ended = recorder.stop();
    let said = &ended.stderr;
    let unit = format!("sdt_{provider}:work__start");
    for text in [
        "--budget 2%: ",
        " paused ",
        " hits a second take about ",
        &unit,
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
    // No site is said to be without its probe.
    assert!(
        !said.contains("breakpoint") && !said.contains("semaphore"),
        "{said}"
    );
    let events = lab.events("trace");
    let rare: Vec<i128> = events_named(&events, "rare")
        .iter()
        .map(|event| event.integer(1))
        .collect();
    assert_eq!(rare, (1..=ran.rare).collect::<Vec<_>>(), "{said}");
    let pauses = check_pauses(&lab.file("trace"), &events);
    assert!(pauses >= 2, "{pauses}: {said}");
    assert!(ran.checked < ran.rounds * 3 / 4, "{ran:?} {said}");
    let (starts, dones) = (
        numbers(&events, "work__start"),
        numbers(&events, "work__done"),
    );
    assert!(
        !starts.is_empty() && starts.len() as u64 <= ran.checked + pauses as u64,
        "{ran:?}"
    );
    let single = starts.symmetric_difference(&dones).count();
    assert!(
        single <= 2 * pauses + lost(&ended),
        "{single} of {}, {pauses} pauses",
        starts.len()
    );
    busy.is_clean(&events.iter().map(|event| event.ip).collect());
}

/// Number of hits that were lost because a ring was full.
fn lost(ended: &Finished) -> usize {
    let before = ended.stderr.split(" lost").next().expect("text");
    let number = before.rsplit(' ').next().expect("a word");
    number.parse().expect("a number")
}

/// Once, of the one that takes the most, with the option if that can be used.
#[test]
fn a_hot_probe_is_named_once_without_a_budget() {
    let lab = Lab::privileged();
    let mut busy = Busy::start(&lab, Build::USUAL);
    let hint = "; with --budget 2% it is detached for a part of the time";
    let said = busy.said_without_budget(&lab, "hot", &[]);
    let [remark] = &said[..] else {
        panic!("{said:?}");
    };
    assert!(remark.starts_with("usdtrec: sdt_busy:hot: "), "{remark}");
    assert!(remark.ends_with(hint), "{remark}");
    let said = busy.said_without_budget(&lab, "hot", &["--engine", "bpf-perf"]);
    let [remark] = &said[..] else {
        panic!("{said:?}");
    };
    assert!(remark.ends_with("(busy)"), "{remark}");
}

#[test]
fn in_named_processes_alone() {
    hot_probes_are_paused("busy", Build::USUAL, |busy| {
        vec!["--no-inherit".to_owned(), "-p".to_owned(), busy.pid()]
    });
}

#[test]
fn in_named_processes_with_their_children() {
    hot_probes_are_paused("busy", Build::USUAL, |busy| {
        vec!["-p".to_owned(), busy.pid()]
    });
}

#[test]
fn in_all_processes() {
    let build = Build {
        compiler: "gcc",
        options: &["-O2", "-DPROVIDER=busier"],
    };
    hot_probes_are_paused("busier", build, |_| vec!["-a".to_owned()]);
}

/// A child has links of the attached units at once, and those of the paused ones when they come back.
#[test]
fn a_child_that_begins_in_a_pause() {
    let lab = Lab::privileged();
    let mut busy = Busy::start(&lab, Build::USUAL);
    let recorder = busy.record(&lab, "busy", &["-p", &busy.pid()]);
    busy.process.say("run 1500\nfork 9000");
    busy.ran();
    let child = busy.ran();
    let said = recorder.stop().stderr;
    let events = lab.events("trace");
    check_pauses(&lab.file("trace"), &events);
    let pid = busy.process.pid();
    let of_child: Vec<Event> = events
        .iter()
        .filter(|event| event.pid != pid)
        .cloned()
        .collect();
    if !said.contains("may have run without probes") {
        let rare = numbers(&of_child, "rare");
        assert_eq!(rare, (1_000_001..=child.rare).collect(), "{said}");
    }
    assert!(!numbers(&of_child, "hot").is_empty(), "{said}");
    assert!(child.checked < child.rounds, "{child:?} {said}");
    busy.is_clean(&events.iter().map(|event| event.ip).collect());
}

/// In the middle of pauses and windows.
#[track_caller]
fn ends_by(signal: &str, who: &[&str]) {
    let lab = Lab::privileged();
    for after in [700, 1100] {
        let mut busy = Busy::start(&lab, Build::USUAL);
        let pid = busy.pid();
        let recorder = busy.record(&lab, "busy", &[who, &["-p", &pid]].concat());
        busy.process.say("run 2000");
        sleep(Duration::from_millis(after));
        recorder.signal(signal);
        let ended = recorder.finish();
        assert_eq!(
            ended.status.code(),
            (signal != "KILL").then_some(0),
            "{ended:?}"
        );
        busy.ran();
        let events = lab.events("trace");
        check_pauses(&lab.file("trace"), &events);
        busy.is_clean(&events.iter().map(|event| event.ip).collect());
    }
}

#[test]
fn a_killed_recorder_leaves_nothing() {
    ends_by("KILL", &["--no-inherit"]);
    ends_by("KILL", &[]);
}

#[test]
fn a_recorder_that_is_ended_in_a_pause_leaves_nothing() {
    ends_by("TERM", &["--no-inherit"]);
    ends_by("TERM", &[]);
}

/// Each file has the pauses that last when it begins.
#[test]
fn files_begin_with_the_pauses_that_last() {
    let lab = Lab::privileged();
    let mut busy = Busy::start(&lab, Build::USUAL);
    let recorder = busy.record(&lab, "busy", &["--switch-output=500ms", "-p", &busy.pid()]);
    busy.process.say("run 3000");
    let ran = busy.ran();
    let said = recorder.stop().stderr;
    let mut rare = BTreeSet::new();
    let mut before: BTreeMap<u64, Pause> = BTreeMap::new();
    let mut carried = 0;
    for number in 1.. {
        let name = format!("trace.{number}");
        let file = lab.file(&name);
        if !file.exists() {
            break;
        }
        let events = lab.events(&name);
        check_pauses(&file, &events);
        rare.extend(numbers(&events, "rare"));
        let pauses = pauses(&file);
        let open = before.values().filter(|pause| pause.to_ns.is_none());
        for pause in open {
            let again = pauses.get(&pause.number);
            assert!(
                again.is_some_and(|(again, _)| again.from_ns == pause.from_ns),
                "{pause:?} in {name}"
            );
            carried += 1;
        }
        before = pauses
            .into_iter()
            .map(|(number, (pause, _))| (number, pause))
            .collect();
    }
    assert_eq!(rare, (1..=ran.rare).collect(), "{said}");
    assert!(carried > 0, "{said}");
}

/// A file of the last moments has the pauses that touch them.
#[test]
fn a_window_has_its_pauses() {
    let lab = Lab::privileged();
    let mut busy = Busy::start(&lab, Build::USUAL);
    let recorder = busy.record(&lab, "busy", &["--ring", "1s", "-p", &busy.pid()]);
    busy.process.say("run 3500");
    sleep(Duration::from_millis(2800));
    recorder.signal("USR2");
    busy.ran();
    let said = recorder.stop();
    let files = std::fs::read_dir(lab.path()).expect("a folder").flatten();
    let files: Vec<PathBuf> = files
        .map(|file| file.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("trace."))
        })
        .collect();
    let [file] = &files[..] else {
        panic!("one file, not {files:?}: {}", said.stderr);
    };
    let events = lab.events(file.to_str().expect("a path"));
    assert!(check_pauses(file, &events) > 0);
    let first = events.first().expect("an event").time_ns;
    // What ended long before the window is not kept.
    for (pause, _) in pauses(file).values() {
        let is_near = pause.to_ns.is_none_or(|to| to + 3_000_000_000 > first);
        assert!(is_near, "{pause:?}");
    }
}

#[test]
fn what_a_budget_does_not_go_with_is_refused() {
    let lab = Lab::new();
    let refused = [
        (
            &["--budget", "0%"][..],
            "--budget: expected a part of each thread's time",
        ),
        (
            &["--budget", "101%"],
            "--budget: expected a part of each thread's time",
        ),
        (
            &["--budget", "2"],
            "--budget: expected a part of each thread's time",
        ),
        (
            &["--budget", "2%", "--engine", "perf"],
            "--budget needs the bpf engine",
        ),
        (
            &["--budget", "2%", "--engine", "bpf-perf"],
            "--budget needs the bpf engine",
        ),
        (
            &["--budget", "2%", "--no-follow"],
            "--budget cannot be used with --no-follow",
        ),
        (
            &["--budget", "2%", "--min", "1ms"],
            "--budget cannot be used with --min",
        ),
    ];
    for (options, text) in refused {
        let ended = lab.usdtrec([&["record", "-e", "sdt_a:b"], options].concat());
        ended.exits(2).complains(text);
    }
    lab.usdtrec(["stat", "--budget", "2%"])
        .exits(2)
        .complains("--budget");
}
