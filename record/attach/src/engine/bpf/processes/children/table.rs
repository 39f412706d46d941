//! The processes with links of their own.

use std::collections::HashMap;
use std::mem::take;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::bpf::attach::links::UnitLink;
use crate::engine::outcome::EverywhereReason;
use crate::engine::release::{Descriptors, Release};

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

/// How long links accumulate before they are closed together: closing takes one or two processes, and a grace period.
const GATHER_TIME: Duration = Duration::from_millis(100);

/// Links to close, and links that are being closed.
#[derive(Debug, Default)]
pub(super) struct Ended {
    links: Vec<OwnedFd>,
    /// When the first of them was added.
    since: Option<Instant>,
    release: Option<Release>,
}

impl Ended {
    /// Adds links.
    pub(super) fn add(&mut self, links: Vec<OwnedFd>) {
        if !links.is_empty() {
            self.since.get_or_insert_with(Instant::now);
            self.links.extend(links);
        }
    }

    /// Number of links that are not closed yet.
    pub(super) fn len(&self) -> usize {
        self.links.len() + self.release.as_ref().map_or(0, Release::left)
    }

    /// Whether links are being closed.
    pub(super) const fn is_closing(&self) -> bool {
        self.release.is_some()
    }

    /// Time until the next step; `None` without links.
    pub(super) fn due(&self) -> Option<Duration> {
        if self.release.is_some() {
            return Some(GATHER_TIME);
        }
        let since = self.since?;
        Some(GATHER_TIME.saturating_sub(since.elapsed()))
    }

    /// Starts closing the accumulated links, after the previous ones are closed.
    pub(super) fn go_on(&mut self) {
        if let Some(release) = &mut self.release {
            if !release.wait(Duration::ZERO) {
                return;
            }
            self.release = None;
        }
        if self.due().is_some_and(|due| due.is_zero()) {
            self.since = None;
            self.release = Some(close(take(&mut self.links)));
        }
    }

    /// Takes those that are not being closed.
    pub(super) fn take(&mut self) -> Vec<OwnedFd> {
        self.since = None;
        take(&mut self.links)
    }
}

/// Starts closing links.
pub(super) fn close(links: Vec<OwnedFd>) -> Release {
    Release::start(Descriptors {
        links,
        events: Vec::new(),
    })
}

/// Maximum budget.
const MAX_BUDGET: Duration = Duration::from_millis(500);

/// Part of the elapsed time that is added to the budget.
const PART: u32 = 20;

/// Time for which processes may be held: half a second, and a twentieth of the elapsed time. Times are those of `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub(super) struct Budget {
    left: Duration,
    /// When it was last spent.
    last: Duration,
}

impl Budget {
    pub(super) const fn new(now: Duration) -> Self {
        Self {
            left: MAX_BUDGET,
            last: now,
        }
    }

    /// Spends the time from `since` to `now`, except for time that was spent for another process that was held at the same time. Returns
    /// whether the budget was sufficient.
    pub(super) fn spend(&mut self, since: Duration, now: Duration) -> bool {
        let since = since.max(self.last);
        let earned = now.saturating_sub(self.last) / PART;
        let spent = now.saturating_sub(since);
        let had = (self.left + earned).min(MAX_BUDGET);
        self.left = had.saturating_sub(spent);
        self.last = now.max(self.last);
        spent <= had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn half_a_second_and_a_twentieth() {
        let mut budget = Budget::new(at(1000));
        assert!(budget.spend(at(1000), at(1300)));
        assert!(!budget.spend(at(1300), at(1600)));
        // Nothing is left; 2 s add 100 ms.
        assert!(budget.spend(at(3500), at(3600)));
        assert!(!budget.spend(at(3600), at(3650)));
        // The budget never exceeds half a second.
        assert!(budget.spend(at(90_000), at(90_500)));
        assert!(!budget.spend(at(90_500), at(90_600)));
    }

    #[test]
    fn several_are_held_at_once() {
        let mut budget = Budget::new(at(0));
        for until in [100, 200, 300, 400, 500] {
            assert!(budget.spend(at(0), at(until)));
        }
        assert!(!budget.spend(at(0), at(600)));
    }
}
