//! What processes lack whose semaphores were incremented late, or not at all.

use std::collections::BTreeMap;
use std::path::PathBuf;

use usdtrec_format::scaled::duration;
use usdtrec_format::trace::ShortfallKind;

use super::counted_files::CountedFiles;
use crate::shortfalls::{FoundShortfall, Shortfalls};

/// Maximum number of processes of a file that are named.
const NAMED: usize = 6;

/// A process that ran for a while before its semaphores were incremented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    pid: u32,
    /// Time from the mapping of the file's code until its semaphores were incremented, ns. The program began to run in this time.
    ns: u64,
}

/// The gaps of a recording, by the index of the file.
#[derive(Debug, Default)]
pub(super) struct Gaps(BTreeMap<usize, FileGaps>);

#[derive(Debug, Default)]
struct FileGaps {
    /// The longest ones, the longest first.
    longest: Vec<Gap>,
    late: u64,
    /// Processes that ended, or could not be read, before.
    unreached: u64,
}

impl Gaps {
    /// Adds a process that ran with the file for `ns` before.
    pub(super) fn add(&mut self, file: usize, pid: u32, ns: u64) {
        let gaps = self.0.entry(file).or_default();
        gaps.late += 1;
        let at = gaps.longest.partition_point(|known| known.ns >= ns);
        gaps.longest.insert(at, Gap { pid, ns });
        gaps.longest.truncate(NAMED);
    }

    /// Counts a process whose semaphores were not incremented.
    pub(super) fn add_unreached(&mut self, file: usize) {
        self.0.entry(file).or_default().unreached += 1;
    }

    /// Reports them.
    pub(super) fn report(self, files: &CountedFiles, shortfalls: &Shortfalls) {
        for (file, gaps) in self.0 {
            if let Some(file) = files.get(file) {
                gaps.report(&file.path, shortfalls);
            }
        }
    }
}

impl FileGaps {
    fn report(self, path: &std::path::Path, shortfalls: &Shortfalls) {
        let add = |kind, pid: Option<u32>, processes, found: &str, effect: &str| {
            shortfalls.add(FoundShortfall {
                kind,
                path: PathBuf::from(path),
                pid: pid.and_then(|pid| pid.try_into().ok()),
                processes,
                found: found.to_owned(),
                effect: effect.to_owned(),
                remedy: "no hits of a program that record starts itself (-- CMD) are missing; those of a library may be"
                    .to_owned(),
                ..FoundShortfall::default()
            });
        };
        if !self.longest.is_empty() {
            let found = self.words();
            let effect = "hits in this time are missing, and not counted as lost";
            for gap in &self.longest {
                add(ShortfallKind::Gap, Some(gap.pid), 1, &found, effect);
            }
            let more = self.late - self.longest.len() as u64;
            add(ShortfallKind::Gap, None, more, &found, effect);
        }
        if self.unreached > 0 {
            let found = "ended, or could not be read, before the semaphores were incremented, which the kernel cannot do in this file";
            let effect = "hits there are missing, and not counted as lost";
            add(
                ShortfallKind::Semaphore,
                None,
                self.unreached,
                found,
                effect,
            );
        }
    }

    fn words(&self) -> String {
        let gaps = self.longest.iter().map(|gap| duration(gap.ns as f64));
        let gaps: Vec<String> = gaps.collect();
        format!(
            "the kernel cannot increment the semaphores of this file in processes that start or load it, so the recorder did, {} after its code was mapped",
            gaps.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gaps_are_named() {
        let mut gaps = FileGaps::default();
        let shortfalls = Shortfalls::default();
        let mut all = Gaps::default();
        for ns in [3, 1, 9, 2, 7, 5, 8] {
            all.add(0, ns as u32, ns * 1_000_000);
        }
        all.add_unreached(0);
        std::mem::swap(&mut gaps, all.0.get_mut(&0).unwrap());
        gaps.report(std::path::Path::new("/f"), &shortfalls);
        let reported = shortfalls.all();
        let [gap, unreached] = &*reported else {
            panic!("{reported:?}")
        };
        assert_eq!((gap.kind, gap.processes), (ShortfallKind::Gap, 7));
        assert_eq!(gap.pids, [9, 8, 7, 5, 3, 2]);
        assert!(gap.found.contains("9ms, 8ms"), "{}", gap.found);
        assert_eq!(unreached.processes, 1);
    }
}
