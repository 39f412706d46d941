//! The file that a recording makes, its closing lines, and how reading it ends.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::thread::available_parallelism;
use std::time::Instant;

use crate::common::{
    Build, Lab, Recorder, Ticker, compressing_threads, need_tool, run, test, wait_until,
};

/// Records `first` (two hits) with more options.
#[track_caller]
fn record(lab: &Lab, options: &[&str]) -> crate::common::Finished {
    let program = Build::USUAL.make(lab, "first.c", "first");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_shapes:first@{program}");
    let mut arguments = vec!["record", "-e", &event];
    arguments.extend(options);
    arguments.extend(["--", program]);
    lab.usdtrec(arguments).success()
}

#[test]
fn old_file_is_kept_and_no_other_user_may_read() {
    let lab = Lab::privileged();
    fs::write(lab.file("usdtrec.data"), "older").expect("a file");
    record(&lab, &[]);
    assert_eq!(lab.events("usdtrec.data").len(), 2);
    assert_eq!(
        fs::read(lab.file("usdtrec.data.old")).expect("the old file"),
        b"older"
    );
    let mode = fs::metadata(lab.file("usdtrec.data"))
        .expect("the trace")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// As with perf, a link is renamed and what it leads to is left alone.
#[test]
fn nothing_is_written_through_a_link() {
    let lab = Lab::privileged();
    let (trace, old) = (lab.file("usdtrec.data"), lab.file("usdtrec.data.old"));
    let victim = lab.file("victim");
    let content = vec![b'v'; 300_000];
    fs::write(&victim, &content).expect("a file");
    fs::create_dir(lab.file("directory")).expect("a directory");
    // An older `.old` is a link, too: that is replaced.
    symlink(&victim, &old).expect("a link");
    for target in ["victim", "nowhere", "directory", "/dev/null"] {
        let target = lab.path().join(target);
        symlink(&target, &trace).expect("a link");
        // root's own link to a device would be written through.
        lchown(&trace, Some(65534), None).expect("a link of another user");
        record(&lab, &[]);
        assert_eq!(lab.events("usdtrec.data").len(), 2);
        assert!(fs::symlink_metadata(&trace).expect("the trace").is_file());
        assert_eq!(fs::read_link(&old).expect("the old link"), target);
        fs::remove_file(&trace).expect("the trace");
    }
    assert_eq!(fs::read(&victim).expect("a file"), content);
    assert!(!lab.file("nowhere").exists());
}

/// What cannot be kept as `.old` stays where it is.
#[test]
fn an_old_directory_is_not_replaced() {
    let lab = Lab::privileged();
    fs::write(lab.file("usdtrec.data"), "older").expect("a file");
    fs::create_dir(lab.file("usdtrec.data.old")).expect("a directory");
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_shapes:first@{program}");
    lab.usdtrec(["record", "-e", &event, "--", program])
        .exits(1)
        .complains("usdtrec.data.old")
        .complains("move that directory away");
    assert_eq!(
        fs::read(lab.file("usdtrec.data")).expect("the old file"),
        b"older"
    );
}

/// Devices are written as they are; a FIFO only if no other user could read the trace there.
#[test]
fn devices_are_written_and_a_fifo_of_another_user_is_not() {
    let lab = Lab::privileged();
    symlink("/dev/null", lab.file("null")).expect("a link");
    for device in ["/dev/null", "null"] {
        record(&lab, &["-o", device]);
    }
    assert!(lab.file("null").is_symlink());
    assert!(!lab.file("null.old").exists());
    let fifo = lab.file("fifo");
    run(lab.at_home(Path::new("mkfifo"), ["fifo"])).success();
    chown(&fifo, Some(65534), None).expect("a FIFO of another user");
    lab.usdtrec([
        "trace",
        "-o",
        "fifo",
        "-e",
        "sdt_shapes:first",
        "--",
        "first",
    ])
    .exits(1)
    .complains("FIFO of user 65534");
    assert!(!lab.file("fifo.old").exists());
}

#[test]
fn closing_lines() {
    let lab = Lab::privileged();
    let recorded = record(&lab, &[]);
    recorded
        .complains("2 events")
        .complains("0 lost")
        .complains("usdtrec.data");
    let quiet = record(&lab, &["-q"]);
    quiet.silent();
    let verbose = record(&lab, &["-v"]);
    verbose.complains("sdt_shapes:first");
}

/// The exit status is the command's, as with perf.
#[test]
fn exit_status_of_the_command() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_shapes:first@{program}");
    let script = format!("{program}; exit 7");
    lab.usdtrec(["record", "-e", &event, "--", "sh", "-c", &script])
        .exits(7);
    assert_eq!(lab.events("usdtrec.data").len(), 2);
}

#[test]
fn file_that_cannot_be_made() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_shapes:first@{program}");
    for (file, complaint) in [("nowhere/trace", "nowhere/trace"), (".", "directory")] {
        let options = ["record", "-o", file, "-e", &event, "--", program];
        let failed = lab.usdtrec(options).exits(1).complains(complaint);
        assert_eq!(failed.stdout, "", "the command did not run");
    }
}

#[test]
fn duration_ends_it() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let begin = Instant::now();
    let options = [
        "-a",
        "--duration",
        "700ms",
        "-o",
        "trace",
        "-e",
        &target.event("tick"),
    ];
    let recorder = Recorder::start(&lab, options);
    target.hit("fire 4");
    recorder.finish().success();
    assert!(begin.elapsed().as_millis() >= 700);
    assert_eq!(lab.events("trace").len(), 4);
}

/// Compressed by default and at any level, or not: the same events.
#[test]
fn compression_levels() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let traces = [("-z0", "plain"), ("-z", "usual"), ("-z19", "small")];
    // Without the records of other processes, of which recordings that start one after the other have different ones.
    let pid = target.pid().to_string();
    let recorders = traces.map(|(level, trace)| {
        Recorder::start(&lab, [level, "-p", &pid, "-o", trace, "-e", &event])
    });
    target.hit("fire 2000");
    recorders
        .into_iter()
        .for_each(|recorder| drop(recorder.stop()));
    let text = |(_, trace): &(&str, &str)| lab.usdtrec(["script", "-i", trace]).success().stdout;
    let scripts: Vec<String> = traces.iter().map(text).collect();
    assert_eq!(scripts[0].lines().count(), 2000);
    // Each recorder has its own events, with their own times: the arguments are the same.
    let arguments = |script: &str| -> Vec<String> {
        script
            .lines()
            .map(|line| line.split_once("arg1=").expect("arguments").1.to_owned())
            .collect()
    };
    assert_eq!(arguments(&scripts[0]), arguments(&scripts[1]));
    assert_eq!(arguments(&scripts[0]), arguments(&scripts[2]));
    let size = |(_, trace): &(&str, &str)| fs::metadata(lab.file(trace)).expect("the trace").len();
    let sizes: Vec<u64> = traces.iter().map(size).collect();
    assert!(
        sizes[1] * 2 < sizes[0] && sizes[2] < sizes[0],
        "bytes: {sizes:?}"
    );
}

/// Helpers are started when records wait, and compress to the same events. perf's `--threads` changes nothing.
#[test]
fn threads_that_compress() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    let cpus = available_parallelism().expect("a number").get();
    let traces = [
        ("-z0", "plain", 0..=0),
        ("--threads", "threads", 1.min(cpus - 1)..=7),
        ("--threads=cpu", "of_perf", 1.min(cpus - 1)..=7),
    ];
    let start = |option: &str, trace: &str| {
        Recorder::start(&lab, [option, "-m", "32M", "-a", "-o", trace, "-e", &event])
    };
    let recorders = traces
        .clone()
        .map(|(option, trace, _)| start(option, trace));
    // All hits are in one pass over the rings.
    recorders
        .iter()
        .for_each(|recorder| recorder.signal("STOP"));
    target.hit("fire 60000");
    recorders
        .iter()
        .for_each(|recorder| recorder.signal("CONT"));
    for (recorder, (option, trace, expected)) in recorders.into_iter().zip(traces.clone()) {
        let is_written = || fs::metadata(lab.file(trace)).is_ok_and(|file| file.len() > 100_000);
        wait_until("the pass is written", is_written);
        // A thread takes its name when it first runs.
        let are_expected = || expected.contains(&compressing_threads(recorder.pid()));
        wait_until(&format!("{option}: {expected:?} helpers"), are_expected);
        recorder.stop().complains("60000 events, 0 lost");
    }
    let arguments = |trace: &str| {
        lab.usdtrec(["script", "-F", "args", "-i", trace])
            .success()
            .stdout
    };
    let plain = arguments("plain");
    assert_eq!(plain.lines().count(), 60_000);
    for (_, trace, _) in &traces[1..] {
        assert!(arguments(trace) == plain, "{trace}");
    }
}

/// A short string does not take the room of the longest that is read.
#[test]
fn short_strings_take_little_of_the_ring() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    target.run_on(0);
    let event = target.event("tick");
    let recorder = Recorder::start(&lab, ["-m", "1M", "-a", "-o", "trace", "-e", &event]);
    recorder.signal("STOP");
    // With room for strings of 256 bytes each, 2900 have room.
    target.hit("fire 5000");
    recorder.signal("CONT");
    recorder.stop().complains("5000 events, 0 lost");
    let text = lab
        .usdtrec(["script", "-F", "args", "-i", "trace"])
        .success()
        .stdout;
    assert_eq!(text.matches("\"ticker text\"").count(), 5000);
}

/// A reader that goes away is a normal end, without a word.
#[test]
fn closed_pipe() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let recorder = Recorder::start(&lab, ["-a", "-e", &target.event("tick")]);
    target.hit("fire 30000");
    recorder.stop();
    for format in ["text", "json", "csv"] {
        let pipe = format!(
            "set -o pipefail; {} script --format {format} | head -1",
            env!("CARGO_BIN_EXE_usdtrec")
        );
        let head = run(lab.at_home(Path::new("bash"), ["-c", &pipe]))
            .success()
            .silent();
        assert_eq!(head.stdout.lines().count(), 1);
    }
}

/// On a terminal lines are as long as it is wide; elsewhere each can be searched for as a whole.
#[test]
fn lines_are_folded_on_a_terminal_only() {
    let lab = Lab::new();
    let program = "/usr/bin/python3.11";
    need_tool("script");
    need_tool(program);
    for arguments in [
        vec!["list", "-v", "--file", program],
        vec!["schema", "show", "-v", "python:*"],
    ] {
        let piped = lab.usdtrec(&arguments).success().stdout;
        assert!(piped.lines().any(|line| line.chars().count() > 80));
        let command = format!(
            "stty cols 80; {} {}",
            env!("CARGO_BIN_EXE_usdtrec"),
            arguments.join(" ").replace('*', "\\*")
        );
        let terminal = lab.at_home(Path::new("script"), ["-qec", &command, "/dev/null"]);
        let shown = run(terminal).success().stdout.replace('\r', "");
        for line in shown.lines() {
            let is_word = line.trim().split(' ').count() == 1;
            assert!(line.chars().count() <= 80 || is_word, "{line}");
        }
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&shown), words(&piped));
    }
}

/// A FIFO is written as a pipe is; who reads it may never come, stop reading, or go.
#[test]
fn a_fifo_is_written_front_to_back_and_need_not_be_read() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    run(lab.at_home(Path::new("mkfifo"), ["fifo"])).success();
    // The records of the other processes of a busy host may fill it.
    let pid = target.pid().to_string();
    let options = ["record", "-p", &pid, "-o", "fifo", "-e", &event];
    lab.usdtrec(options)
        .exits(1)
        .complains("is a FIFO without a reader");
    // Without waiting for the recorder, which does not wait for it.
    let open = || {
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        options.open(lab.file("fifo")).expect("a FIFO")
    };
    let reader = open();
    let recorder = Recorder::start(&lab, &options[1..]);
    target.hit("fire 7");
    // It reads nothing: what is written stays in the FIFO.
    recorder.stop().complains("7 events, 0 lost");
    let mut bytes = Vec::new();
    { &reader }.read_to_end(&mut bytes).expect("a stream");
    fs::write(lab.file("stream"), bytes).expect("a file");
    assert_eq!(lab.events("stream").len(), 7);
    drop(reader);
    let reader = open();
    let recorder = Recorder::start(&lab, &options[1..]);
    drop(reader);
    // As a reader of standard output that goes away.
    recorder.finish().success();
    assert!(!lab.file("fifo.old").exists());
}

/// What fails before the probes are attached leaves the file of an earlier run, and its `.old`.
#[test]
fn a_failed_stat_or_trace_leaves_the_older_file() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let program = program.to_str().expect("a path");
    let misspelt = format!("sdt_shapes:firts@{program}");
    fs::write(lab.file("out"), "older").expect("a file");
    for verb in ["stat", "trace"] {
        for _ in 0..2 {
            lab.usdtrec([verb, "-o", "out", "-e", &misspelt, "--", program])
                .exits(1);
            assert_eq!(fs::read(lab.file("out")).expect("the file"), b"older");
            assert!(!lab.file("out.old").exists(), "{verb}");
        }
    }
    let event = format!("sdt_shapes:first@{program}");
    for verb in ["stat", "trace"] {
        fs::write(lab.file("out"), "older").expect("a file");
        lab.usdtrec([verb, "-o", "out", "-e", &event, "--", program])
            .success();
        assert_eq!(fs::read(lab.file("out.old")).expect("the file"), b"older");
        let shown = fs::read_to_string(lab.file("out")).expect("the output");
        assert!(shown.contains("shapes:first"), "{verb}: {shown}");
    }
}

/// The name of no program, also as an interpreter or without the right to run it, makes no trace and moves none.
#[test]
fn a_command_that_cannot_start_leaves_the_old_trace() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let event = format!("sdt_shapes:first@{}", program.display());
    fs::write(lab.file("orphan"), "#!/nonexistent\n").expect("a file");
    fs::set_permissions(lab.file("orphan"), fs::Permissions::from_mode(0o755)).expect("a mode");
    fs::create_dir(lab.file("d")).expect("a directory");
    for output in ["old", "d/old", "old.1", "-"] {
        let path = output.strip_suffix(".1").unwrap_or(output);
        if output != "-" {
            fs::write(lab.file(output), "older").expect("a file");
        }
        let switch: &[&str] = match output {
            "old.1" => &["--switch-output=10s"],
            _ => &[],
        };
        for command in ["/nonexistent", "./orphan", "./old", "no-such-program"] {
            if command == "./old" && output == "-" {
                continue;
            }
            let head = ["record", "-e", &event, "-o", path];
            let failed = lab.usdtrec([&head[..], switch, &["--", command]].concat());
            let failed = failed.exits(1).complains("cannot run");
            assert_eq!(failed.stdout, "", "{command}");
        }
        if output != "-" {
            assert_eq!(fs::read(lab.file(output)).expect("the file"), b"older");
            assert!(!lab.file(&format!("{output}.old")).exists(), "{output}");
        }
    }
    lab.usdtrec(["record", "-e", &event, "-z", "0", "--", "./first"])
        .exits(1)
        .complains("did you mean -z=0?");
    assert!(!lab.file("usdtrec.data").exists());
}
