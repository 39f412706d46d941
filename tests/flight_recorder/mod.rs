//! Recordings of which the last seconds wait in memory (`record --ring`), and what has them written to files.

mod bars;
mod content;
mod faults;
mod fires;
mod programs;
mod switched;

use std::fs;
use std::path::{Path, PathBuf};

use usdtrec_format::perf::Records;
use usdtrec_format::trace::{BlockReader, FiredTrigger, Trace};

use crate::common::{Event, Lab, Recorder};

/// The files of a window, `NAME.DATE-AND-TIME`, the oldest first.
fn files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let prefix = format!("{name}.");
    let entries = fs::read_dir(folder).expect("the folder").flatten();
    let named = entries.filter(|entry| {
        let found = entry.file_name();
        found
            .to_str()
            .is_some_and(|found| found.starts_with(&prefix))
    });
    let mut files: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Has a recorder write its file; its path.
#[track_caller]
fn dump(lab: &Lab, recorder: &Recorder) -> PathBuf {
    let pid = recorder.pid().to_string();
    let dumped = lab.usdtrec(["dump", "-p", &pid]).success();
    let path = PathBuf::from(dumped.stdout.trim_end());
    assert!(path.is_absolute() && path.exists(), "{}", path.display());
    path
}

/// The events of a file.
#[track_caller]
fn events(lab: &Lab, file: &Path) -> Vec<Event> {
    lab.events(file.to_str().expect("a path"))
}

/// The first arguments of events.
fn counters(events: &[Event]) -> Vec<i128> {
    events.iter().map(|event| event.integer(1)).collect()
}

/// The number of events of a file, in which nothing is damaged.
fn samples(file: &Path) -> u64 {
    let trace = Trace::open(file).expect("a trace");
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    let samples = trace.blocks().iter().filter_map(|block| block.samples);
    samples.map(u64::from).sum()
}

/// What fired, as the file says.
fn fired(file: &Path) -> FiredTrigger {
    let trace = Trace::open(file).expect("a trace");
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    let id_type = trace.info().events[0].attr.id_type();
    let mut reader = BlockReader::new();
    let mut found = Vec::new();
    for block in trace.blocks().iter().filter(|block| block.metadata) {
        let records = reader.read(&trace, block).expect("a block");
        found.extend(
            Records::new(records).filter_map(|record| FiredTrigger::parse(&record, id_type)),
        );
    }
    let [fired] = &found[..] else {
        panic!("one trigger, not {found:?}");
    };
    fired.clone()
}
