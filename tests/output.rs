//! The file that a recording makes, its closing lines, and how reading it ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use crate::common::{Build, Lab, Recorder, Ticker, run};

/// Records `first` (two hits) with more options.
#[track_caller]
fn record(lab: &Lab, options: &[&str]) -> Option<crate::common::Finished> {
    let program = Build::USUAL.make(lab, "first.c", "first")?;
    let program = program.to_str().expect("a path");
    let event = format!("sdt_shapes:first@{program}");
    let mut arguments = vec!["record", "-e", &event];
    arguments.extend(options);
    arguments.extend(["--", program]);
    Some(lab.usdtrec(arguments).success())
}

#[test]
fn old_file_is_kept_and_nobody_else_may_read() {
    let Some(lab) = Lab::privileged() else { return };
    fs::write(lab.file("usdtrec.data"), "older").expect("a file");
    if record(&lab, &[]).is_none() {
        return;
    }
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

#[test]
fn closing_lines() {
    let Some(lab) = Lab::privileged() else { return };
    let Some(recorded) = record(&lab, &[]) else {
        return;
    };
    recorded
        .complains("2 events")
        .complains("0 lost")
        .complains("usdtrec.data");
    if let Some(quiet) = record(&lab, &["-q"]) {
        quiet.silent();
    }
    if let Some(verbose) = record(&lab, &["-v"]) {
        verbose.complains("sdt_shapes:first");
    }
}

/// The exit status is the command's, as with perf.
#[test]
fn exit_status_of_the_command() {
    let Some(lab) = Lab::privileged() else { return };
    let Some(program) = Build::USUAL.make(&lab, "first.c", "first") else {
        return;
    };
    let program = program.to_str().expect("a path");
    let event = format!("sdt_shapes:first@{program}");
    let script = format!("{program}; exit 7");
    lab.usdtrec(["record", "-e", &event, "--", "sh", "-c", &script])
        .exits(7);
    assert_eq!(lab.events("usdtrec.data").len(), 2);
}

#[test]
fn file_that_cannot_be_made() {
    let Some(lab) = Lab::privileged() else { return };
    let Some(program) = Build::USUAL.make(&lab, "first.c", "first") else {
        return;
    };
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
    let Some(lab) = Lab::privileged() else { return };
    let Some(mut target) = Ticker::start(&lab) else {
        return;
    };
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
    let Some(lab) = Lab::privileged() else { return };
    let Some(mut target) = Ticker::start(&lab) else {
        return;
    };
    let event = target.event("tick");
    let traces = [("-z0", "plain"), ("-z", "usual"), ("-z19", "small")];
    let recorders = traces
        .map(|(level, trace)| Recorder::start(&lab, [level, "-a", "-o", trace, "-e", &event]));
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

/// A reader that goes away is a normal end, without a word.
#[test]
fn closed_pipe() {
    let Some(lab) = Lab::privileged() else { return };
    let Some(mut target) = Ticker::start(&lab) else {
        return;
    };
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
