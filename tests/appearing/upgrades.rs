//! A program that is started again and again while its file is replaced, as package managers do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use usdtrec_testing::is_deep;

use super::{OwnHits, PLANTED, Recorded, program, waiting_recorder};
use crate::common::{Lab, Process, copy_program, test};

/// The shell starts the program, which hits a few times, until the file `stop` is there.
const LOOP: &str = "while [ ! -e stop ]; do ./app inode 3 </dev/null || exit 1; done";

#[test]
fn each_version_is_recorded_from_its_planting_on() {
    let versions = if is_deep() { 20 } else { 6 };
    let lab = Lab::privileged();
    let program = program(&lab, "-DPROVIDER=appearing_upgrades");
    let mut recorder = waiting_recorder(&lab, "appearing_upgrades:hit", &[]);
    copy_program(&program, lab.file("app"));
    let load = Process::spawn(lab.at_home(Path::new("sh"), ["-c", LOOP]));
    recorder.until_error_line(PLANTED);
    for _ in 1..versions {
        copy_program(&program, lab.file("new"));
        fs::rename(lab.file("new"), lab.file("app")).expect("the new version");
        recorder.until_error_line(PLANTED);
    }
    fs::write(lab.file("stop"), "").expect("a file");
    let printed = load.finish().success().stdout;
    recorder.signal("INT");
    let said = recorder.finish().success().stderr;
    assert!(
        said.contains(&format!("followed: {versions} files")),
        "{said}"
    );
    let own: Vec<OwnHits> = printed.lines().map(OwnHits::parse).collect();
    let recorded = Recorded::from_lab(&lab);
    // When each version was planted, at the latest.
    let mut planted: BTreeMap<u64, u64> = BTreeMap::new();
    for gap in &recorded.gaps {
        let first = own.iter().find(|run| run.pid == gap.pid).expect("a run");
        let time = gap
            .time
            .map_or(u64::MAX - first.start, |time| time.as_nanos() as u64);
        planted.insert(first.first, first.start + time);
    }
    assert_eq!(planted.len(), versions);
    let mut times: BTreeSet<(u64, u64)> = recorded
        .events
        .iter()
        .map(|hit| (u64::from(hit.pid), hit.integer(3) as u64))
        .collect();
    assert_eq!(times.len(), recorded.events.len());
    for run in &own {
        for time in &run.times {
            let is_recorded = times.remove(&(run.pid, *time));
            assert!(
                is_recorded || *time <= planted[&run.first],
                "a hit after the planting is missing: {run:?}"
            );
        }
    }
    assert!(times.is_empty(), "hits that were none: {times:?}");
}
