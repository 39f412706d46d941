//! A million stacks of twenty frames at five thousand addresses: what they take in the file, and the tree of callers.

use std::fs;
use std::path::Path;

use crate::ROUNDS;
use crate::common::{Build, Lab};
use crate::table::{head, median, row};
use crate::timed::run;
use crate::whole::WholeRecording;

const HITS: u64 = 1_000_000;

/// Measures and prints.
pub(crate) fn compare(lab: &Lab) {
    let program = Build::USUAL.make(lab, "wide.c", "wide");
    let plain = record(lab, &program, "plain", &[]);
    let stacks = record(lab, &program, "stacks", &["-g"]);
    println!("{HITS} hits below about twenty frames, 1000 stacks of 5000 functions; `-m 1G`.\n");
    head(&["", "bytes per event"]);
    let bytes = |size: u64| format!("{:.1}", size as f64 / HITS as f64);
    row(&["without stacks".to_owned(), bytes(plain)]);
    row(&["with stacks".to_owned(), bytes(stacks)]);
    row(&["difference".to_owned(), bytes(stacks.saturating_sub(plain))]);
    println!();
    head(&["Question", "seconds", "peak memory"]);
    let questions: [&[&str]; 4] = [
        &["report", "-g"],
        &["export", "--to", "folded", "-o", "-"],
        &["report", "--sort", "sym"],
        &["report", "--sort", "caller"],
    ];
    for question in questions {
        let taken: Vec<_> = (0..ROUNDS)
            .map(|_| {
                let mut command = lab.command(question);
                command.arg("-i").arg(lab.file("stacks"));
                run(command)
            })
            .collect();
        let seconds: Vec<f64> = taken.iter().map(|taken| taken.seconds).collect();
        let memory = taken.iter().map(|taken| taken.memory).max().unwrap_or(0);
        row(&[
            format!("`{}`", question.join(" ")),
            format!("{:.2}", median(&seconds)),
            format!("{} MiB", memory >> 20),
        ]);
    }
    println!();
}

/// Records all hits; gives the size of the file.
fn record(lab: &Lab, program: &Path, name: &str, options: &[&str]) -> u64 {
    let event = format!("sdt_wide:hit@{}", program.display());
    let count = HITS.to_string();
    let recording = WholeRecording {
        file: name,
        event: &event,
        options,
        command: &[program.to_str().expect("a path in UTF-8"), &count],
    };
    assert_eq!(recording.make(lab), HITS);
    fs::metadata(lab.file(name)).expect("a file").len()
}
