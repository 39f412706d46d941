//! Traces through pipes: ours and stock perf's, read while they are written.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{Build, Finished, Lab, Perf, Process, Recorder, Ticker, need_tool, run, test};

/// A shell in the lab; `$0` is the binary under test.
fn shell(lab: &Lab, script: &str) -> Process {
    let arguments = ["-c", script, env!("CARGO_BIN_EXE_usdtrec")];
    Process::spawn(lab.at_home(Path::new("sh"), arguments))
}

/// The counter that a hit of the ticker passes as its first argument.
#[track_caller]
fn counter(line: &str) -> usize {
    let value = line
        .split(" arg1=")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no arg1 in {line}"))
}

/// What is hit is printed while the recording goes on, by each engine.
#[test]
fn events_are_printed_while_they_are_recorded() {
    for engine in ["perf", "bpf"] {
        let lab = Lab::privileged();
        let mut target = Ticker::start(&lab);
        let (pid, event) = (target.pid(), target.event("tick"));
        let script = format!(
            "\"$0\" record --engine {engine} -p {pid} -o - -e {event} | \"$0\" script -i -"
        );
        let mut reader = shell(&lab, &script);
        reader.until_error_line("[ usdtrec record:");
        for count in [3, 1, 200] {
            target.hit(&format!("fire {count}"));
            for expected in 0..count {
                let line = reader.line().expect("the recording goes on");
                assert!(line.contains("sdt_ticker:tick: ("), "{line}");
                assert_eq!(counter(&line), expected, "{engine}: {line}");
            }
        }
        target.hit("fire 5");
        drop(target);
        let ended = reader.finish().success();
        let last = ended.stdout.lines().rev().take(5).map(counter);
        assert_eq!(last.collect::<Vec<_>>(), [4, 3, 2, 1, 0], "{engine}");
        assert!(
            ended.stderr.contains("209 events, 0 lost"),
            "{}",
            ended.stderr
        );
    }
}

/// Records hits of the ticker into a stored stream.
#[track_caller]
fn stored(lab: &Lab, engine: &str, more: &str) -> usize {
    let mut target = Ticker::start(lab);
    let (pid, event) = (target.pid(), target.event("tick"));
    let script =
        format!("\"$0\" record --engine {engine} {more} -p {pid} -o - -e {event} > stream");
    let mut recorder = shell(lab, &script);
    recorder.until_error_line("[ usdtrec record:");
    let commands = ["fire 40", "thread 30", "fork 20"];
    let hits = commands.map(|command| target.hit(command).len());
    drop(target);
    recorder.finish().success();
    hits.iter().sum()
}

/// Runs a command of a shell.
fn sh(lab: &Lab, script: &str) -> Finished {
    shell(lab, script).finish()
}

/// Stock perf reads our stream, stored or from a pipe; and ours gives the same whichever way it comes.
#[test]
fn streams_are_read_by_all_in_every_way() {
    for (engine, more) in [("perf", ""), ("perf", "-z0"), ("bpf", "")] {
        let lab = Lab::privileged();
        let perf = Perf::new(&lab);
        let hits = stored(&lab, engine, more);
        let fields = "comm,tid,cpu,time,event";
        let ours = lab
            .usdtrec(["script", "-i", "stream", "--ns", "-F", fields])
            .success()
            .silent()
            .stdout;
        assert_eq!(ours.lines().count(), hits, "{engine} {more}");
        let piped = sh(
            &lab,
            &format!("cat stream | \"$0\" script -i - --ns -F {fields}"),
        );
        assert_eq!(piped.success().silent().stdout, ours, "{engine} {more}");
        let mut theirs = perf.command(["script", "-i", "-", "--ns", "-F", fields]);
        theirs.stdin(File::open(lab.file("stream")).expect("our stream"));
        theirs.stdout(Stdio::piped()).stderr(Stdio::piped());
        let theirs = theirs.output().expect("perf is installed");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&theirs.stderr), "", "{engine} {more}");
        let theirs = text(&theirs.stdout);
        let trimmed = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.trim().to_owned()).collect()
        };
        assert_eq!(trimmed(&theirs), trimmed(&ours), "{engine} {more}");
        let json = |script: &str| sh(&lab, script).success().silent().stdout;
        let whole = json("\"$0\" script -i stream --format json");
        assert_eq!(json("cat stream | \"$0\" script -i - --format json"), whole);
        assert_eq!(json("\"$0\" script -i - --format json < stream"), whole);
        for options in [
            "--reltime -F +tod",
            "--deltatime -F +tod",
            "--format '{comm} {deltatime} {arg1:>6} {args}'",
        ] {
            let whole = json(&format!("\"$0\" script -i stream {options}"));
            let piped = json(&format!("cat stream | \"$0\" script -i - {options}"));
            assert_eq!(whole.lines().count(), hits, "{options}");
            assert_eq!(piped, whole, "{engine} {more}");
        }
        let refused = sh(&lab, "cat stream | \"$0\" script -i - --no-inline");
        drop(refused.complains("leaving out inlined functions needs them"));
        let report = sh(&lab, "cat stream | \"$0\" report -i - --format json").success();
        assert!(
            report.stdout.contains(&format!("\"events\":{hits},")),
            "{}",
            report.stdout
        );
    }
}

/// A stream that breaks off gives what arrived, and says where it ends; bytes that are none are refused.
#[test]
fn cut_streams_are_reported() {
    let lab = Lab::privileged();
    let hits = stored(&lab, "perf", "-z0");
    let length = fs::metadata(lab.file("stream")).expect("our stream").len();
    let cut = sh(
        &lab,
        &format!("head -c {} stream | \"$0\" script -i -", length - 100),
    )
    .success();
    let shown = cut.stdout.lines().count();
    assert!(shown > hits / 2 && shown <= hits, "{shown} of {hits}");
    assert!(
        cut.stderr.contains("ends inside a record"),
        "{}",
        cut.stderr
    );
    sh(&lab, "echo hello | \"$0\" script -i -")
        .exits(1)
        .complains("hello");
    sh(&lab, "\"$0\" script -i - < /dev/null")
        .exits(1)
        .complains("end of the stream");
    sh(&lab, "cat stream | \"$0\" script -i - --time 10%-20%")
        .exits(1)
        .complains("FROM,TO");
    sh(&lab, "cat stream | \"$0\" script -i - -e no:such")
        .exits(1)
        .complains("sdt_ticker:tick");
    let selected = sh(&lab, "cat stream | \"$0\" script -i - --comm worker").success();
    assert_eq!(selected.stdout.lines().count(), 30);
}

/// What stock perf writes into a pipe is printed while it records.
#[test]
fn a_pipe_of_stock_perf_is_read_live() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = Build::USUAL.make(&lab, "stocked.c", "stocked");
    let probes = perf.plant(&program, "stocked", &["step"]);
    let mut target = Process::spawn(lab.at_home(&program, [""; 0]));
    let pid = target.pid();
    let script = format!(
        "unshare --mount perf record -q -B -e sdt_stocked:step -p {pid} -o - | \"$0\" script -i -"
    );
    let mut reader = shell(&lab, &script);
    // perf does not say when it is ready, CPU by CPU: some of the first hits may be missed.
    let mut at = None;
    while at.is_none() {
        target.say("50");
        while target.line().as_deref() != Some("done") {}
        at = reader.line_within(Duration::from_millis(300));
    }
    target.say("50");
    while target.line().as_deref() != Some("done") {}
    target.finish().success();
    let shown = reader.finish().success();
    let counters: Vec<i64> = shown.stdout.lines().map(counter_of_step).collect();
    assert!(counters.is_sorted(), "{counters:?}");
    let first = counters[counters.len() - 50];
    let expected: Vec<i64> = (first..first + 50).collect();
    assert_eq!(counters[counters.len() - 50..], expected);
    drop(probes);
}

/// The number of the hit in a line of `stocked`.
fn counter_of_step(line: &str) -> i64 {
    let value = line
        .split(" arg1=")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let value: Option<i64> = value.and_then(|value| value.parse().ok());
    -value.unwrap_or_else(|| panic!("no arg1 in {line}"))
}

/// A trace does not go to a terminal, and one pipe holds one trace.
#[test]
fn what_makes_no_sense_is_refused() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let event = format!("sdt_shapes:first@{}", program.display());
    lab.usdtrec(["record", "-e", &event, "-o", "-", "--switch-output", "-a"])
        .exits(2)
        .complains("--switch-output");
    need_tool("script");
    let usdtrec = env!("CARGO_BIN_EXE_usdtrec");
    let command = format!("{usdtrec} record -e {event} -a -o -");
    let on_terminal = run(lab.at_home(
        Path::new("script"),
        ["-q", "-e", "-c", &command, "/dev/null"],
    ));
    let said = on_terminal.exits(2).stdout;
    assert!(
        said.contains("terminal") && said.contains("script -i -"),
        "{said}"
    );
}

/// A device keeps nothing: as standard output it is a mistake, by its name it is said.
#[test]
fn devices_keep_no_trace() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let event = format!("sdt_shapes:first@{}", program.display());
    const IS_DEVICE: &str = "expected a pipe or a file";
    for (output, expected) in [
        (">/dev/null", IS_DEVICE),
        (">/dev/full", IS_DEVICE),
        (">/dev/zero", IS_DEVICE),
        (">&-", "standard output is closed"),
    ] {
        let line = format!("\"$0\" record -a --duration 1ms -o - -e {event} {output}");
        let words = ["-c", &line, env!("CARGO_BIN_EXE_usdtrec")];
        run(lab.at_home(Path::new("sh"), words))
            .exits(2)
            .complains(expected);
    }
    let record = ["record", "-a", "--duration", "1ms", "-e", &event, "-o"];
    let device = |device| lab.usdtrec(record.iter().copied().chain([device]));
    device("/dev/null")
        .success()
        .complains("/dev/null is a device: nothing of the trace is kept");
    device("/dev/full").exits(1).complains("No space left");
    for (option, zero) in [
        ("--switch-output", "0"),
        ("--switch-output", "0K"),
        ("--max-size", "0"),
    ] {
        lab.usdtrec(
            record
                .iter()
                .copied()
                .chain(["trace", &format!("{option}={zero}")]),
        )
        .exits(2)
        .complains("more than 0");
    }
}

/// The command's own output does not get into the stream.
#[test]
fn the_command_writes_elsewhere() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let event = format!("sdt_shapes:first@{}", program.display());
    let script = format!(
        "\"$0\" record -q -e {event} -o - -- sh -c 'echo said; exec {}' | \"$0\" script -i -",
        program.display()
    );
    let shown = sh(&lab, &script).success().complains("said");
    assert_eq!(shown.stdout.lines().count(), 2, "{}", shown.stdout);
}

/// When the reader goes away, the recorder ends, and nothing is left.
#[test]
fn a_reader_that_leaves_ends_the_recording() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let script = format!(
        "{{ \"$0\" record -a -o - -e {event}; echo status $? >&2; }} | \"$0\" script -i - | head -n 5"
    );
    let mut recorder = shell(&lab, &script);
    recorder.until_error_line("[ usdtrec record:");
    // Each learns at its next write that its reader is gone.
    let ended = (0..1000).any(|_| {
        target.hit("fire 10");
        let line = recorder.error_line_within(Duration::from_millis(100));
        line.is_some_and(|line| line.contains("status 0"))
    });
    assert!(ended, "the recorder goes on");
    recorder.finish();
    assert_eq!(target.semaphores().0, 0);
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
    target.hit("fire 2");
    recorder.stop();
    assert_eq!(lab.events("trace").len(), 2);
}
