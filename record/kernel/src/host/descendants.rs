//! The processes that processes have started, and those that these have.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use super::process::Process;

/// Maximum number of processes whose parent is read.
const MAX_PROCESSES: usize = 1 << 17;

/// The running children of processes, and theirs, in ascending order; without these processes, the recorder, and the processes that have started
/// it (`sudo`).
#[must_use]
pub fn descendants(pids: &[u32]) -> Vec<u32> {
    let parents: HashMap<u32, u32> = running().collect();
    let own: HashSet<u32> = ancestors(std::process::id(), &parents).collect();
    let found = below(pids, &parents);
    found.into_iter().filter(|pid| !own.contains(pid)).collect()
}

/// The processes that these have started, and so on, in ascending order. Any user may have a chain of very many.
fn below(pids: &[u32], parents: &HashMap<u32, u32>) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (pid, parent) in parents {
        children.entry(*parent).or_default().push(*pid);
    }
    let mut found: BTreeSet<u32> = pids.iter().copied().collect();
    let mut next: Vec<u32> = pids.to_vec();
    while let Some(pid) = next.pop() {
        let new = children.remove(&pid).unwrap_or_default();
        next.extend(new.into_iter().filter(|pid| found.insert(*pid)));
    }
    for pid in pids {
        found.remove(pid);
    }
    found.into_iter().collect()
}

/// Each process that has a thread, with its parent.
fn running() -> impl Iterator<Item = (u32, u32)> {
    let all = Process::all().into_iter().flatten().take(MAX_PROCESSES);
    all.filter_map(|process| {
        let stat = process.stat().ok()?;
        // The first thread may have ended before others.
        let runs = !stat.has_ended() || stat.num_threads > 1;
        let (pid, parent) = (process.pid.try_into().ok()?, stat.ppid.try_into().ok()?);
        runs.then_some((pid, parent))
    })
}

/// A process, its parent, and so on. Parents are read one after the other, so they may make a circle.
fn ancestors(pid: u32, parents: &HashMap<u32, u32>) -> impl Iterator<Item = u32> {
    let parent = |pid: &u32| parents.get(pid).copied();
    std::iter::successors(Some(pid), parent).take(parents.len() + 1)
}

/// Interval of looking for those that have ended. Whoever waits for a process of its own does so sooner.
const INTERVAL: Duration = Duration::from_secs(10);

/// The name of helpers, which are executed as `/proc/self/exe`: some are waited for later.
const HELPER: &str = "exe";

/// Waits for processes that have ended and that nobody else waits for. Does nothing in other than the first process.
#[derive(Debug)]
pub struct Orphans {
    is_first: bool,
    looked: Instant,
    /// Processes that had ended at the last look.
    ended: Vec<i32>,
}

impl Orphans {
    /// Looks at those of this process from now on.
    pub fn begin() -> Self {
        Self {
            is_first: getpid().is_init(),
            looked: Instant::now(),
            ended: Vec::new(),
        }
    }

    /// Waits for those that had ended at the last look, too. Looks once in a while.
    pub fn reap(&mut self) {
        if !self.is_first || self.looked.elapsed() < INTERVAL {
            return;
        }
        self.looked = Instant::now();
        let ended = ended_children();
        let (old, new) = ended.into_iter().partition(|pid| self.ended.contains(pid));
        for pid in Vec::into_iter(old).filter_map(Pid::from_raw) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        self.ended = new;
    }
}

/// The children of this process that have ended, other than helpers of ours.
fn ended_children() -> Vec<i32> {
    let own = Process::open(getpid().as_raw_pid());
    let threads = own.and_then(|own| own.threads()).unwrap_or_default();
    let children = threads.into_iter().flat_map(|tid| {
        let list = fs::read_to_string(format!("/proc/self/task/{tid}/children"));
        let list = list.unwrap_or_default();
        let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
        pids.collect::<Vec<i32>>()
    });
    let has_ended = |&pid: &i32| {
        let stat = Process::open(pid).and_then(|process| process.stat());
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        stat.is_ok_and(|stat| stat.state == b'Z' && stat.num_threads <= 1)
            && name.trim_end() != HELPER
    };
    children.filter(has_ended).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_long_chain_of_processes_is_followed() {
        let number = 100_000;
        let chain: HashMap<u32, u32> = (2..=number).map(|pid| (pid, pid - 1)).collect();
        assert_eq!(below(&[1], &chain).len(), number as usize - 1);
        assert_eq!(
            below(&[number - 1, 5], &chain).len(),
            number as usize - 7 + 1
        );
        let circle = HashMap::from([(3, 2), (2, 3), (4, 3)]);
        assert_eq!(below(&[3], &circle), [2, 4]);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let parents = HashMap::from([(3, 2), (2, 3)]);
        assert_eq!(ancestors(3, &parents).collect::<Vec<_>>(), [3, 2, 3]);
        assert_eq!(ancestors(5, &parents).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn the_recorder_is_not_its_parents_child() {
        let own = std::process::id();
        let parents: HashMap<u32, u32> = running().collect();
        assert!(!descendants(&[parents[&own]]).contains(&own));
    }
}
