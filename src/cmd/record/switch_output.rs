//! The files of `--switch-output`: `PATH.1`, `PATH.2`, …

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use usdtrec_record::TraceFiles;

use crate::cli::RecordArgs;
use crate::mutex::locked;
use crate::output;

/// Number of files that are kept, or of triggers whose files are, also named in the help.
pub(super) const KEEP: u64 = 20;

/// The files that are written one after another. The oldest are removed, but for those around triggers.
pub(super) struct SwitchOutputFiles {
    path: PathBuf,
    named: NumberedFiles,
    kept: KeptNumbers,
}

impl SwitchOutputFiles {
    /// The files that options ask for, whose names are in `named`.
    pub(super) fn new(args: &RecordArgs, named: &NumberedFiles) -> Self {
        Self {
            path: args.output.clone(),
            named: named.clone(),
            kept: KeptNumbers {
                newest: newest(args),
                triggers: args.ring.keep.unwrap_or(KEEP),
                ..KeptNumbers::default()
            },
        }
    }
}

/// How many of the newest files are kept: with triggers the one before the last, too, since one may fire in the last.
fn newest(args: &RecordArgs) -> Option<u64> {
    let least = if args.ring.trigger.is_empty() { 1 } else { 2 };
    args.switch_max_files.map(|newest| newest.max(least))
}

impl TraceFiles for SwitchOutputFiles {
    fn next(&mut self) -> io::Result<File> {
        for old in self.kept.begin_next() {
            let old = output::numbered(&self.path, old);
            self.named.forget(&old);
            output::remove(&old)?;
        }
        let next = output::numbered(&self.path, self.kept.number);
        let file = output::create(&next)?;
        self.named.add(next);
        Ok(file)
    }

    fn note_trigger(&mut self) {
        self.kept.note_trigger();
    }
}

/// The numbers of the files that are kept.
#[derive(Debug, Default)]
struct KeptNumbers {
    /// How many of the newest are kept; `None` for all.
    newest: Option<u64>,
    /// Of how many triggers the files are kept.
    triggers: u64,
    /// Number of the newest.
    number: u64,
    there: Vec<u64>,
    /// The files in which triggers fired, the newest last.
    fired: VecDeque<u64>,
}

impl KeptNumbers {
    /// Begins the next file. Returns the numbers of those that are to be removed.
    fn begin_next(&mut self) -> Vec<u64> {
        self.number += 1;
        self.there.push(self.number);
        let Self {
            newest,
            number,
            there,
            fired,
            ..
        } = self;
        let Some(first) = newest.and_then(|newest| number.checked_sub(newest)) else {
            return Vec::new();
        };
        let is_around = |file: u64| fired.iter().any(|fired| fired.abs_diff(file) <= 1);
        there
            .extract_if(.., |file| *file <= first && !is_around(*file))
            .collect()
    }

    /// A trigger fired in the newest file.
    fn note_trigger(&mut self) {
        if self.fired.back() != Some(&self.number) {
            self.fired.push_back(self.number);
        }
        while self.fired.len() as u64 > self.triggers {
            self.fired.pop_front();
        }
    }
}

/// Paths of several numbered files that are kept, the newest last, shared with the thread that creates them.
#[derive(Clone, Default)]
pub(super) struct NumberedFiles(Arc<Mutex<Vec<PathBuf>>>);

impl NumberedFiles {
    /// Adds a file.
    pub(super) fn add(&self, path: PathBuf) {
        locked(&self.0).push(path);
    }

    /// Forgets a file.
    pub(super) fn forget(&self, path: &Path) {
        locked(&self.0).retain(|known| known != path);
    }

    /// The path of the newest; `None` without `--switch-output`.
    pub(super) fn last(&self) -> Option<PathBuf> {
        locked(&self.0).last().cloned()
    }

    /// All files, the newest first.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        locked(&self.0).iter().rev().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files up to this number.
    fn write_to(kept: &mut KeptNumbers, number: u64) {
        while kept.number < number {
            kept.begin_next();
        }
    }

    #[test]
    fn the_newest_files_and_those_around_triggers_are_kept() {
        let mut kept = KeptNumbers {
            newest: Some(2),
            triggers: 2,
            ..KeptNumbers::default()
        };
        write_to(&mut kept, 4);
        assert_eq!(kept.there, [3, 4]);
        kept.note_trigger();
        kept.note_trigger();
        write_to(&mut kept, 9);
        assert_eq!(kept.there, [3, 4, 5, 8, 9]);
        kept.note_trigger();
        write_to(&mut kept, 14);
        kept.note_trigger();
        // The files of the first trigger go with the next file.
        assert_eq!(kept.begin_next(), [3, 4, 5]);
        write_to(&mut kept, 20);
        assert_eq!(kept.there, [8, 9, 10, 13, 14, 15, 19, 20]);
    }

    #[test]
    fn all_files_are_kept_without_a_number() {
        let mut kept = KeptNumbers::default();
        write_to(&mut kept, 5);
        assert_eq!(kept.there, [1, 2, 3, 4, 5]);
    }
}
