//! Stock `perf` (package `linux-perf`) on files of ours.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::process::Command;

use support::{info, process, sample};
use usdtrec_format::trace::{Compression, Loss, TraceWriter};

const SAMPLES: u64 = 20_000;

/// Whether `perf` is there. Says so loudly if not, and fails where CI has to have it.
fn have_perf() -> bool {
    if Command::new("perf").arg("--version").output().is_ok() {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "`perf` is not installed (Debian: apt install linux-perf)"
    );
    eprintln!("SKIPPED: `perf` is not installed (Debian: apt install linux-perf)");
    false
}

/// Runs perf on a file; it must succeed without a word on standard error.
fn perf(file: &Path, arguments: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new("perf")
        .args(arguments)
        .arg("-i")
        .arg(file)
        .env("HOME", home.path())
        .env("PERF_BUILDID_DIR", home.path())
        .env("PAGER", "cat")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "perf {arguments:?}: {errors}");
    assert_eq!(errors, "", "perf {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn write(path: &Path, compression: Compression, losses: Option<&[Loss]>) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = TraceWriter::create(file, &info(), compression).unwrap();
    let mut records = Vec::new();
    process(&mut records);
    writer.push(&records);
    for round in 0..20 {
        records.clear();
        let first = round * SAMPLES / 20;
        // Each CPU's ring is in order, one after the other.
        for cpu in 0..2 {
            (first..first + SAMPLES / 20)
                .filter(|number| number % 2 == cpu)
                .for_each(|number| sample(number, &mut records));
        }
        writer.push(&records);
        writer.flush().unwrap();
    }
    if let Some(losses) = losses {
        writer.finish(losses).unwrap();
    }
}

fn check_script(file: &Path) {
    let script = perf(
        file,
        &[
            "script",
            "--ns",
            "-F",
            "comm,tid,cpu,time,event,ip,sym,uregs",
        ],
    );
    let lines: Vec<&str> = script.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len() as u64, SAMPLES);
    for (number, line) in lines.iter().enumerate() {
        let number = number as u64;
        let time = support::time(number);
        let event = support::EVENTS[usize::from(number % 3 == 2)].0;
        let comm = ["app", "app-worker"][number as usize % 2];
        let time = format!("{}.{:09}:", time / 1_000_000_000, time % 1_000_000_000);
        for part in [comm, event, &time, &format!("AX:{number:#x}")] {
            assert!(
                line.contains(part),
                "{part} is not in line {number}: {line}"
            );
        }
    }
}

#[test]
fn perf_reads_every_event_in_order() {
    if !have_perf() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.data");
    for compression in [Compression::None, Compression::Zstd(1)] {
        for losses in [None, Some([].as_slice())] {
            write(&file, compression, losses);
            check_script(&file);
            perf(&file, &["report", "--stdio"]);
            perf(&file, &["report", "--header-only"]);
            perf(&file, &["evlist", "-v"]);
            perf(&file, &["buildid-list"]);
        }
    }
}
