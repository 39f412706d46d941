//! Samples with counts of a group, and directories of files, forged.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::NamedTempFile;
use usdtrec_format::perf::{Attr, EventAttr, SampleType};
use usdtrec_format::trace::{Compression, TraceInfo, TraceWriter};

use crate::child;

const MIB: u64 = 1 << 20;

/// Most bytes of a sample.
const RECORD: usize = u16::MAX as usize & !7;

/// The head of a file with a group of so many events, whose samples have the counts of all.
fn info(members: u64) -> TraceInfo {
    let parts = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CPU
        | SampleType::READ;
    let event = |id| EventAttr {
        attr: Attr {
            kind: 1,
            sample_type: parts,
            sample_period: 1,
            // PERF_FORMAT_GROUP and PERF_FORMAT_ID.
            read_format: 0b1100,
            flags: Attr::SAMPLE_ID_ALL,
            ..Attr::default()
        },
        name: format!("event{id}"),
        ids: vec![id],
    };
    TraceInfo {
        machine: "x86_64".to_owned(),
        events: (1..=members).map(event).collect(),
        ..TraceInfo::default()
    }
}

/// A sample of the first event; `count` members are claimed, `counts` are there: count and id of each.
fn sample(time: u64, count: u64, counts: &[(u64, u64)]) -> Vec<u8> {
    let front = [1, 0x1000, 7 | 8 << 32, time, 0, count];
    let members = counts.iter().flat_map(|&(count, id)| [count, id]);
    let words: Vec<u64> = front.into_iter().chain(members).collect();
    let size = (8 + 8 * words.len()) as u64;
    let head = 9 | size << 48;
    let words = [head].into_iter().chain(words);
    words.flat_map(u64::to_le_bytes).collect()
}

fn written(info: &TraceInfo, records: &[u8]) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    let mut writer =
        TraceWriter::create(file.reopen().unwrap(), info, Compression::Zstd(1)).unwrap();
    writer.push(records);
    writer.finish(&[]).unwrap();
    file
}

/// What is shown of a file: event and time of each line.
fn shown(file: &Path) -> Vec<String> {
    let ran = child::run(&["script", "-F", "event,time", "--ns"], file, 400 * MIB);
    ran.assert_well();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    ran.out.lines().map(words).collect()
}

#[test]
fn counts_that_are_not_there_are_not_looked_for() {
    let records = [
        sample(1, 2, &[(1, 1), (1, 2)]),
        // More members than there are bytes, in the record and in the world.
        sample(2, 1 << 40, &[(2, 1), (2, 2)]),
        sample(3, u64::MAX, &[]),
        // Ids of no event, of the event itself twice, and counts that fall and that are as large as can be.
        sample(4, 3, &[(9, 77), (3, 1), (3, 1)]),
        sample(5, 2, &[(2, 1), (u64::MAX, 2)]),
        sample(6, 0, &[]),
        sample(7, 2, &[(4, 1), (0, 2)]),
    ]
    .concat();
    let lines = shown(written(&info(2), &records).path());
    let events_at = |time: u64| -> Vec<&str> {
        let end = format!("0.{time:09}:");
        let lines = lines.iter().filter(|line| line.contains(&end));
        lines.map(|line| line.rsplit_once(' ').unwrap().1).collect()
    };
    // The leader's hit alone, whatever the counts are.
    for time in [1, 4, 5, 6, 7] {
        assert_eq!(events_at(time), ["event1:"], "{lines:?}");
    }
    // Samples that are shorter than they say are none.
    for time in [2, 3] {
        assert_eq!(events_at(time), [""; 0], "{lines:?}");
    }
}

/// In the CPU time that it gets.
fn ends_soon(arguments: &[&str], path: &Path) -> child::Ran {
    child::run(arguments, path, 400 * MIB)
}

/// Links lead out of a directory, FIFOs wait for ever, and what is not called as perf calls it is none of its files.
#[test]
fn directories_hold_more_than_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let records = sample(1, 2, &[(1, 1), (1, 2)]);
    let head = written(&info(2), &records);
    fs::copy(head.path(), path.join("data")).unwrap();
    let shown = |what: &str| {
        let ran = ends_soon(&["script", "-F", "event"], path);
        assert!(!ran.errors.contains("panicked"), "{what}: {}", ran.errors);
        assert_eq!(ran.out.lines().count(), 1, "{what}: {}", ran.errors);
    };
    shown("a header alone");
    let fifo = path.join("data.1");
    let made = Command::new("mkfifo").arg(fifo).status().unwrap();
    assert!(made.success());
    symlink("/dev/zero", path.join("data.2")).unwrap();
    symlink("data", path.join("data.3")).unwrap();
    fs::create_dir(path.join("data.4")).unwrap();
    for name in [
        "data.01",
        "data.+5",
        "data.-1",
        "data.4294967296",
        "data.x",
        "data.",
    ] {
        fs::write(path.join(name), sample(2, 2, &[(9, 1), (9, 2)])).unwrap();
    }
    shown("what is none of its files");
    for cpu in 10..410 {
        File::create(path.join(format!("data.{cpu}"))).unwrap();
    }
    shown("empty files");
}

#[test]
fn what_cannot_be_opened_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("data.0"), sample(2, 2, &[(9, 1), (9, 2)])).unwrap();
    let without = ends_soon(&["script"], path);
    assert!(
        without.errors.contains("without the file \"data\""),
        "{}",
        without.errors
    );
    let made = Command::new("mkfifo")
        .arg(path.join("data"))
        .status()
        .unwrap();
    assert!(made.success());
    let fifo = ends_soon(&["script"], path);
    assert!(
        fifo.errors.contains("without the file \"data\""),
        "{}",
        fifo.errors
    );
    fs::remove_file(path.join("data")).unwrap();
    fs::write(path.join("data"), b"PERFILE2").unwrap();
    let short = ends_soon(&["script"], path);
    assert!(
        !short.status.success() && !short.errors.contains("panicked"),
        "{}",
        short.errors
    );
}
