//! What is shown while it is captured: `trace`, `top`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{
    Build, Finished, Lab, Process, Recorder, Ticker, events_of_recorder, need_tool, test,
    uprobe_events, wait_until,
};
use crate::held_children::{RAN_BEFORE, until_fast_enough};

/// A running `usdtrec trace`.
struct Tracer(Process);

impl Tracer {
    /// Starts it and waits until every probe is planted.
    fn start(lab: &Lab, arguments: &[&str]) -> Self {
        let mut command = lab.command(["trace"]);
        command.args(arguments);
        let mut process = Process::spawn(command);
        process.until_error_line("[ usdtrec trace:");
        Self(process)
    }

    /// Ends it as Ctrl-C does.
    #[track_caller]
    fn stop(self) -> Finished {
        self.0.signal("INT");
        self.0.finish().success()
    }
}

/// A shell in the lab; `$0` is the binary under test.
fn shell(lab: &Lab, script: &str) -> Process {
    let arguments = ["-c", script, env!("CARGO_BIN_EXE_usdtrec")];
    Process::spawn(lab.at_home(Path::new("sh"), arguments))
}

/// What follows a word of a line, up to the next blank.
#[track_caller]
fn number(line: &str, word: &str) -> u64 {
    let behind = line.split(word).nth(1).unwrap_or_default();
    let digits = behind.split(|letter: char| !letter.is_ascii_digit()).next();
    digits
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_else(|| panic!("no number behind {word:?} in {line}"))
}

/// The hits that a program says it made.
fn hits(said: &str) -> u64 {
    number(said, "hits ")
}

/// Waits until no tracefs event of a recorder is there.
#[track_caller]
fn nothing_is_left(recorder: u32) {
    let deadline = Instant::now() + Duration::from_secs(240);
    while !events_of_recorder(recorder).is_empty() {
        assert!(Instant::now() < deadline, "{}", uprobe_events());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Hits are shown soon after they are made, whatever the engine.
#[test]
fn hits_are_shown_as_they_come() {
    for engine in ["bpf", "perf"] {
        let lab = Lab::privileged();
        let mut target = Ticker::start(&lab);
        let (pid, event) = (target.pid().to_string(), target.event("tick"));
        let arguments = ["--engine", engine, "-p", &pid, "-e", &event];
        let mut tracer = Tracer::start(&lab, &arguments);
        for _ in 0..3 {
            for (counter, tid) in target.hit("fire 2") {
                let line = tracer.0.line().expect("the tracer goes on");
                assert!(line.contains("sdt_ticker:tick: arg1="), "{line}");
                let passed = format!("arg1={counter} arg2={tid} ");
                assert!(line.contains(&passed), "{engine}: {passed} in {line}");
            }
        }
        let passed = target.hit("fire 200").len();
        let recorder = tracer.0.pid();
        let ended = tracer.stop();
        assert_eq!(ended.stdout.lines().count(), 6 + passed, "{engine}");
        assert!(
            ended.stderr.contains("206 events, 0 lost"),
            "{}",
            ended.stderr
        );
        assert_eq!(target.semaphores().0, 0);
        nothing_is_left(recorder);
    }
}

/// Hits of two threads on several CPUs come in the order of time, none of them missing.
#[test]
fn two_threads_are_in_the_order_of_time() {
    for engine in ["bpf", "perf"] {
        let lab = Lab::privileged();
        let program = Build::USUAL.make(&lab, "hot.c", "hot");
        let event = format!("sdt_hot:req@{}", program.display());
        let script = format!(
            "echo go | \"$0\" trace --engine {engine} -m 64M -e {event} \
             --format '{{time:.9}} {{tid}} {{arg1}}' -o lines -- {} 20000 2",
            program.display()
        );
        let ended = shell(&lab, &script).finish().success();
        assert_eq!(
            hits(&ended.stdout),
            40_000,
            "the command has its own output"
        );
        let lines = fs::read_to_string(lab.file("lines")).expect("what was traced");
        let mut threads: Vec<(&str, u64)> = Vec::new();
        let mut last = "";
        for line in lines.lines() {
            let mut words = line.split(' ');
            let (time, tid) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            // Of one length, so that their order is that of their letters.
            assert_eq!(time.len(), last.len().max(time.len()), "{line}");
            assert!(time >= last, "{engine}: {time} behind {last}");
            last = time;
            let counter: u64 = words.next().and_then(|word| word.parse().ok()).expect(line);
            match threads.iter_mut().find(|thread| thread.0 == tid) {
                Some(thread) => {
                    thread.1 += 1;
                    assert_eq!(counter, thread.1, "{engine}: thread {tid}");
                }
                None => {
                    assert_eq!(counter, 0, "{engine}: thread {tid}");
                    threads.push((tid, 0));
                }
            }
        }
        let counts: Vec<u64> = threads.iter().map(|thread| thread.1 + 1).collect();
        assert_eq!(counts, [20_000, 20_000], "{engine}: {}", ended.stderr);
    }
}

/// The lines are those of `script`, in each of its formats.
#[test]
fn lines_are_those_of_script() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let (pid, event) = (target.pid().to_string(), target.event("tick"));
    // Times are not those of the other one's probe.
    let ways: [&[&str]; 4] = [
        &["-F", "comm,tid,pid,ip,event,args"],
        &["--format", "json", "-F", "comm,tid,event,args"],
        &["--format", "csv", "-F", "comm,tid,args.arg3"],
        &["--format", "{comm:>8} {arg1} {arg3:?}"],
    ];
    let common = ["-p", pid.as_str(), "-e", event.as_str()];
    let recorder = Recorder::start(&lab, [&common[..], &["-o", "trace"]].concat());
    let tracers = ways.map(|way| Tracer::start(&lab, &[&common[..], way].concat()));
    for command in ["fire 3", "thread 4", "fork 2", "exec 5"] {
        target.hit(command);
    }
    let traced = tracers.map(|tracer| tracer.stop().stdout);
    recorder.stop();
    for (way, traced) in ways.iter().zip(traced) {
        let script = [&["script", "-i", "trace"][..], way].concat();
        let scripted = lab.usdtrec(script).success().stdout;
        assert!(scripted.contains("ticker text"), "{scripted}");
        assert_eq!(traced, scripted);
    }
}

/// Losses are reported while they happen, and all of them.
#[test]
fn losses_are_reported_when_they_happen() {
    for engine in ["bpf", "perf"] {
        let lab = Lab::privileged();
        let program = Build::USUAL.make(&lab, "hot.c", "hot");
        let mut hot = Process::spawn(lab.at_home(&program, ["300000", "2"]));
        let (pid, event) = (
            hot.pid().to_string(),
            format!("sdt_hot:req@{}", program.display()),
        );
        let arguments = [
            "--engine",
            engine,
            "-m",
            "1",
            "-p",
            &pid,
            "-e",
            &event,
            "-F",
            "args.arg1",
        ];
        let mut tracer = Tracer::start(&lab, &arguments);
        hot.say("go");
        let first = tracer.0.until_error_line("were lost");
        assert!(first.contains("of sdt_hot:req"), "{first}");
        let passed = hits(&hot.finish().success().stdout);
        let ended = tracer.0.finish().success();
        let told = ended.stderr.lines();
        let told = told.filter(|line| line.contains("were lost"));
        let lost: u64 = told.map(|line| number(line, "usdtrec: ")).sum();
        let shown = ended.stdout.lines().count() as u64;
        assert!(lost > 0 && shown > 0, "{lost} lost, {shown} shown");
        assert_eq!(shown + lost, passed, "{engine}: {}", ended.stderr);
    }
}

/// When its output is closed, it ends although nothing more is hit, and nothing is left.
#[test]
fn a_closed_pipe_is_a_normal_end() {
    for engine in ["bpf", "perf"] {
        let lab = Lab::privileged();
        let mut target = Ticker::start(&lab);
        let (pid, event) = (target.pid(), target.event("tick"));
        let script = format!(
            "{{ sh -c 'echo pid $$ >&2; exec \"$0\" trace --engine {engine} -p {pid} -e {event}' \"$0\"; \
             echo status $? >&2; }} | head -n 3"
        );
        let mut tracer = shell(&lab, &script);
        let recorder = number(&tracer.until_error_line("pid "), "pid ");
        tracer.until_error_line("[ usdtrec trace:");
        target.hit("fire 3");
        tracer.until_error_line("status 0");
        assert_eq!(tracer.finish().stdout.lines().count(), 3);
        wait_until("the removal of the probes", || target.semaphores().0 == 0);
        nothing_is_left(u32::try_from(recorder).expect("a process id"));
    }
}

/// It ends with the command and with its status; the command's own output is elsewhere.
#[test]
fn it_ends_with_the_command() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", program.display());
    let command = format!("echo said; {} 20; exit 7", program.display());
    let arguments = [
        "trace", "-q", "-e", &event, "-F", "args", "--", "sh", "-c", &command,
    ];
    let ended = lab.usdtrec(arguments).exits(7).complains("said");
    assert_eq!(ended.stdout.lines().count(), 20, "{}", ended.stdout);
    assert!(
        ended
            .stdout
            .lines()
            .all(|line| line.contains("ticker text")),
        "{}",
        ended.stdout
    );
}

/// Who ends the tracing does not end the command.
#[test]
fn the_command_outlives_the_tracing() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", program.display());
    // It is not to hold what we read to the end.
    let command = format!(
        "exec >out 2>&1; echo $$ >pid; {} 1; while [ ! -e enough ]; do sleep 0.05; done; touch finished",
        program.display()
    );
    let arguments = ["-e", &event, "--", "sh", "-c", &command];
    let mut tracer = Tracer::start(&lab, &arguments);
    assert!(tracer.0.line().is_some());
    tracer.stop();
    let pid = fs::read_to_string(lab.file("pid")).expect("the command's id");
    assert!(Path::new("/proc").join(pid.trim()).exists());
    fs::write(lab.file("enough"), "").expect("a file in the lab");
    let deadline = Instant::now() + Duration::from_secs(240);
    while !lab.file("finished").exists() {
        assert!(Instant::now() < deadline, "the command ended too early");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A requested probe that does not exist is an error.
#[test]
fn an_unknown_probe_is_an_error() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let (pid, event) = (target.pid().to_string(), target.event("tick"));
    lab.usdtrec(["trace", "-p", &pid, "-e", &event, "-F", "args.url"])
        .exits(1)
        .complains("arguments are: arg1, arg2, arg3");
    assert_eq!(target.semaphores().0, 0);
}

/// The words of a probe's lines in all tables.
fn rows<'t>(tables: &'t str, probe: &str) -> Vec<Vec<&'t str>> {
    let lines = tables.lines().filter(|line| line.starts_with(probe));
    lines
        .map(|line| line.split_whitespace().collect())
        .collect()
}

/// The tables of `top` count what the program passed, each hit in one of them.
#[test]
fn top_counts_each_hit_once() {
    for engine in ["bpf", "perf"] {
        until_fast_enough(|| top_counts_all(engine));
    }
}

/// Compares the tables with what the program passed. Returns `false` if `top` reports that it was too slow: then hits may be missing.
fn top_counts_all(engine: &str) -> bool {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let (pid, event) = (target.pid().to_string(), target.event("*"));
    let mut command = lab.command(["top", "--engine", engine, "-d", "200ms"]);
    command.args(["-p", &pid, "-e", &event]);
    let mut top = Process::spawn(command);
    top.until_error_line("[ usdtrec top:");
    let mut passed = 0;
    for command in ["fire 3", "thread 40", "fork 500", "fire 6"] {
        passed += target.hit(command).len() as u64;
        while !top.line().expect("tables").starts_with("ticker:tick") {}
    }
    target.tell("guarded 7");
    top.signal("INT");
    let recorder = top.pid();
    let ended = top.finish().success();
    if ended.stderr.contains(RAN_BEFORE) {
        return false;
    }
    for (probe, count) in [("ticker:tick", passed), ("ticker:guarded", 7)] {
        let rows = rows(&ended.stdout, probe);
        let sum: u64 = rows.iter().map(|row| row[1].parse::<u64>().unwrap()).sum();
        assert_eq!(sum, count, "{engine}: {ended:?}");
        let last = rows.last().unwrap();
        assert_eq!(last[3], count.to_string(), "{engine}: {}", ended.stdout);
        assert_eq!(*last.last().unwrap(), "0", "{engine}: {}", ended.stdout);
    }
    assert!(rows(&ended.stdout, "ticker:tick").len() >= 4);
    assert!(ended.stdout.contains("ticker (1)"), "{}", ended.stdout);
    assert_eq!(target.semaphores().0, 0);
    nothing_is_left(recorder);
    true
}

/// What is in the tables and what is lost is all that was hit.
#[test]
fn top_shows_losses() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    let event = format!("sdt_hot:req@{}", program.display());
    let script = format!(
        "echo go | \"$0\" top -d 100ms -m 1 -e {event} -- {} 100000 2",
        program.display()
    );
    let ended = shell(&lab, &script).finish().success();
    let rows = rows(&ended.stdout, "hot:req");
    let last = rows.last().unwrap();
    let (total, lost) = (last[3], last.last().unwrap());
    let sum = total.parse::<u64>().unwrap() + lost.parse::<u64>().unwrap();
    assert_eq!(sum, 200_000, "{}", ended.stdout);
    assert_ne!(*lost, "0", "a ring of one page must overflow");
}

/// So many tables, at the pace that is asked for, and the command lives on.
#[test]
fn top_ends_after_so_many_tables() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let begin = Instant::now();
    let arguments = ["top", "-a", "-n", "3", "-d", "400ms", "-e", &event];
    let ended = lab.usdtrec(arguments).success();
    assert!(begin.elapsed() >= Duration::from_millis(1200));
    let headings = ended
        .stdout
        .lines()
        .filter(|line| line.starts_with("Probe "));
    assert_eq!(headings.count(), 3, "{}", ended.stdout);
    assert!(ended.stdout.contains("1 probe without events"));
    assert_eq!(target.semaphores().0, 0);
}

/// On a terminal there is one table in place of the other, and in the end the terminal is as it was, also after Ctrl-C.
#[test]
fn top_gives_the_terminal_back() {
    let lab = Lab::privileged();
    need_tool("script");
    let mut target = Ticker::start(&lab);
    // In place of the shell, which would take Ctrl-C, too, and some of them die of it.
    let command = format!(
        "exec {} top -d 100ms -p {} -e {}",
        env!("CARGO_BIN_EXE_usdtrec"),
        target.pid(),
        target.event("tick")
    );
    let arguments = ["-q", "-e", "-c", &command, "/dev/null"];
    let mut terminal = Process::spawn(lab.at_home(Path::new("script"), arguments));
    let mut seen = 0;
    for _ in 0..300 {
        target.hit("fire 1");
        let line = terminal.line().expect("the tables go on");
        seen += usize::from(line.contains("ticker:tick"));
        if seen == 3 {
            break;
        }
    }
    assert_eq!(seen, 3, "tables with the probe");
    // Ctrl-C, as the terminal takes it.
    terminal.say("\x03");
    let shown = terminal.finish().success().stdout;
    assert_eq!(shown.matches("\x1b[?1049h").count(), 1, "{shown:?}");
    let (_, after) = shown.rsplit_once("\x1b[?1049l").expect("it is left");
    assert!(
        after.contains("ticker:tick"),
        "the last table stays: {after:?}"
    );
    assert!(!after.contains("\x1b[2J") && shown.contains("\x1b[?25h"));
    assert_eq!(target.semaphores().0, 0);
}
