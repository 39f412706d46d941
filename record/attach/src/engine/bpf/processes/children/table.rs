//! The processes with links of their own.

use std::collections::HashMap;
use std::mem::take;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::everywhere::EverywhereReason;
use crate::engine::bpf::attach::links::UnitLink;

/// The links of processes. The end of the recording takes them even if the thread that adds them does not answer.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// By process id.
    own: HashMap<u32, Vec<UnitLink>>,
    /// Links of all processes, and links that are closed at the end.
    others: Vec<UnitLink>,
    reason: Option<EverywhereReason>,
    failed: u64,
    has_ended: bool,
}

impl Table {
    /// Notes that hits do not count any more.
    pub(super) fn end(&self) {
        self.entries().has_ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.entries().has_ended
    }

    /// Adds links of a process.
    pub(super) fn add(&self, pid: u32, links: Vec<UnitLink>) {
        self.entries().own.entry(pid).or_default().extend(links);
    }

    /// Number of processes with links.
    pub(super) fn processes(&self) -> usize {
        self.entries().own.len()
    }

    /// Takes the links of a process; empty if it has no entry.
    pub(super) fn take(&self, pid: u32) -> Vec<OwnedFd> {
        let links = self.entries().own.remove(&pid).unwrap_or_default();
        links.into_iter().map(|link| link.link).collect()
    }

    /// Takes the links of a unit, in all processes.
    pub(super) fn take_unit(&self, unit: usize) -> Vec<OwnedFd> {
        let mut entries = self.entries();
        let Entries { own, others, .. } = &mut *entries;
        let all = own.values_mut().chain(std::iter::once(others));
        let of_unit = all.flat_map(|links| links.extract_if(.., |link| link.unit == Some(unit)));
        of_unit.map(|link| link.link).collect()
    }

    /// Adds links that are closed at the end.
    pub(super) fn leave(&self, links: Vec<UnitLink>) {
        self.entries().others.extend(links);
    }

    /// Takes all links.
    pub(super) fn take_all(&self) -> Vec<OwnedFd> {
        let mut entries = self.entries();
        let mut links = take(&mut entries.others);
        links.extend(take(&mut entries.own).into_values().flatten());
        links.into_iter().map(|link| link.link).collect()
    }

    /// Stores why probes are attached to all processes of the files.
    pub(super) fn set_reason(&self, reason: EverywhereReason) {
        self.entries().reason = Some(reason);
    }

    pub(super) fn reason(&self) -> Option<EverywhereReason> {
        self.entries().reason
    }

    /// Counts that probes may be missing in a process.
    pub(super) fn count_failure(&self) {
        self.entries().failed += 1;
    }

    pub(super) fn failed(&self) -> u64 {
        self.entries().failed
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Each change is complete before the lock is released.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
