//! A process that is looked into: what it maps, what was found, and what of that was reported.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Instant;

use usdtrec_format::trace::ShortfallKind;
use usdtrec_kernel::host::named_process::NamedProcess;

use super::expected::ExpectedFiles;
use super::fault_words::{FaultWords, words};
use super::look::{FaultKey, SiteFault};
use crate::shortfalls::{FoundShortfall, Shortfalls};

/// A process that maps files with probes.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) since: Instant,
    pub(super) next: Instant,
    pub(super) same_build: Vec<usize>,
    pub(super) other_build: Vec<usize>,
    /// The process of which it is a copy, as far as is known.
    pub(super) parent: Option<i32>,
    /// Whether it maps an attached file, and not only a copy of one.
    pub(super) is_sure: bool,
    /// Whether it was read.
    pub(super) is_read: bool,
    pub(super) has_hit: bool,
    /// What the last look found and none before.
    pub(super) suspected: Vec<SiteFault>,
    pub(super) reported: HashSet<FaultKey>,
    /// `None` if too many are open.
    pub(super) process: Option<NamedProcess>,
    /// Where it maps code of files.
    pub(super) bases: BTreeSet<FileBase>,
    /// Whether it was looked at since the last of them came.
    pub(super) is_settled: bool,
}

/// A file of which a process maps code, and where its begin would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileBase {
    pub(super) file: usize,
    pub(super) base: u64,
}

impl Watched {
    pub(super) fn new(process: Option<NamedProcess>) -> Self {
        let now = Instant::now();
        Self {
            since: now,
            next: now,
            same_build: Vec::new(),
            other_build: Vec::new(),
            parent: None,
            is_sure: false,
            is_read: false,
            has_hit: false,
            suspected: Vec::new(),
            reported: HashSet::new(),
            process,
            bases: BTreeSet::new(),
            is_settled: false,
        }
    }

    /// The number of addresses at which a file was mapped.
    pub(super) fn copies(&self, file: usize) -> usize {
        self.bases.iter().filter(|at| at.file == file).count()
    }

    /// Takes what a look found, and gives what the one before it found, too, and was not reported.
    pub(super) fn confirmed(&mut self, faults: Vec<SiteFault>) -> Vec<SiteFault> {
        let new = faults
            .into_iter()
            .filter(|fault| !self.reported.contains(&fault.key()));
        let earlier: HashSet<FaultKey> = self.suspected.iter().map(SiteFault::key).collect();
        let was_found = |fault: &SiteFault| earlier.contains(&fault.key());
        let (certain, suspected) = new.partition(was_found);
        self.suspected = suspected;
        certain
    }

    /// Reports what was found in it and not reported before.
    pub(super) fn report(
        &mut self,
        pid: i32,
        faults: &[SiteFault],
        files: &ExpectedFiles,
        shortfalls: &Shortfalls,
    ) {
        let mut numbers: HashMap<(ShortfallKind, usize), u64> = HashMap::new();
        for FaultKey { kind, file, .. } in &self.reported {
            *numbers.entry((*kind, *file)).or_default() += 1;
        }
        for fault in faults {
            let FaultKey { kind, file, .. } = fault.key();
            if !self.reported.insert(fault.key()) {
                continue;
            }
            let number = numbers.entry((kind, file)).or_default();
            let before = *number;
            *number += 1;
            let Some(expected) = files.0.get(file) else {
                continue;
            };
            let event = expected
                .sites
                .get(fault.site)
                .map(|site| site.event.clone());
            let FaultWords {
                found,
                effect,
                remedy,
            } = words(&fault.fault);
            shortfalls.add(FoundShortfall {
                kind,
                path: expected.path.clone(),
                pid: Some(pid),
                processes: u64::from(before == 0),
                events: event.into_iter().collect(),
                sites: before + 1,
                found,
                effect: effect.to_owned(),
                remedy: remedy.to_owned(),
                ..FoundShortfall::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::look::Fault;

    #[test]
    fn very_many_faults_of_a_process_are_compared() {
        let fault = |site| SiteFault {
            file: 0,
            site,
            fault: Fault::MovedCode { address: 1 },
        };
        let faults = || (0..50_000).map(fault).collect::<Vec<_>>();
        let mut watched = Watched::new(None);
        assert!(watched.confirmed(faults()).is_empty());
        let certain = watched.confirmed(faults());
        assert_eq!(certain.len(), 50_000);
        let shortfalls = Shortfalls::default();
        watched.report(1, &certain, &ExpectedFiles::default(), &shortfalls);
        assert_eq!(watched.reported.len(), 50_000);
        assert!(watched.confirmed(faults()).is_empty());
        assert!(watched.suspected.is_empty());
    }
}
