//! Losses: what the program hit is what was recorded plus what is told to be lost.

use std::process::Command;

use crate::common::{Build, Lab, Process, Recorder};

/// The number before a word of the recorder's closing lines: `412338 events`.
#[track_caller]
fn number_before(text: &str, word: &str) -> u64 {
    let mut last = None;
    for part in text.split([' ', ',']) {
        if part.trim_end_matches([']', ')']) == word {
            break;
        }
        last = part.parse().ok().or(last.filter(|_| part.is_empty()));
    }
    last.unwrap_or_else(|| panic!("no number before {word:?} in:\n{text}"))
}

/// Hits as fast as two threads can, into rings of one page.
#[test]
fn every_hit_is_recorded_or_told_to_be_lost() {
    let Some(lab) = Lab::privileged() else { return };
    let Some(program) = Build::USUAL.make(&lab, "hot.c", "hot") else {
        return;
    };
    let mut command = Command::new(&program);
    command.args(["300000", "2"]);
    let mut hot = Process::spawn(command);
    let event = format!("sdt_hot:req@{}", program.display());
    let recorder = Recorder::start(&lab, ["-m", "1", "-a", "-o", "trace", "-e", &event]);
    hot.say("go");
    let printed = hot.finish().success().stdout;
    let told = recorder.stop().stderr;
    let hits: u64 = printed
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .expect("a count");
    let last_line = told
        .lines()
        .rfind(|line| line.contains("events"))
        .expect("a closing line");
    let (recorded, lost) = (
        number_before(last_line, "events"),
        number_before(last_line, "lost"),
    );
    assert_eq!(hits, 600_000);
    assert!(lost > 0, "a ring of one page must overflow: {told}");
    assert_eq!(recorded + lost, hits, "{told}");
    assert_eq!(lab.events("trace").len() as u64, recorded);
    let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    assert!(
        report.contains(&lost.to_string()),
        "the report tells the loss:\n{report}"
    );
}

/// A stream has both what the rings noticed and what was counted: the same losses, which count once.
#[test]
fn losses_of_a_stream_count_once() {
    let Some(lab) = Lab::privileged() else { return };
    let Some(program) = Build::USUAL.make(&lab, "hot.c", "hot") else {
        return;
    };
    for engine in ["perf", "bpf"] {
        let mut command = Command::new("sh");
        let script = format!(
            "\"$0\" record --engine {engine} -m 1 -o - -e 'sdt_hot:req@{0}' -- {0} 300000 2 > stream",
            program.display()
        );
        command
            .args(["-c", &script])
            .arg(lab.command([""; 0]).get_program());
        command
            .current_dir(lab.path())
            .env("PERF_BUILDID_DIR", lab.cache());
        let mut recorder = Process::spawn(command);
        recorder.say("go");
        let told = recorder.finish().success().stderr;
        let last_line = told
            .lines()
            .rfind(|line| line.contains("events"))
            .expect("a closing line");
        let lost = number_before(last_line, "lost");
        assert!(lost > 0, "a ring of one page must overflow: {told}");
        let report = lab.usdtrec(["report", "-i", "stream", "--format", "json"]);
        let report: serde_json::Value =
            serde_json::from_str(&report.success().stdout).expect("a report");
        assert_eq!(report["lost"], lost, "{engine}: {told}");
        assert_eq!(report["events"], 600_000 - lost, "{engine}");
    }
}
