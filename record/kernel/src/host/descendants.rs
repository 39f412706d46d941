//! The processes that processes have started, and those that these have.

use std::collections::{HashMap, HashSet};

use super::process::Process;

/// Maximum number of processes whose parent is read.
const MAX_PROCESSES: usize = 1 << 17;

/// The running children of processes, and theirs, in ascending order; without these processes, the recorder, and the processes that have started
/// it (`sudo`).
#[must_use]
pub fn descendants(pids: &[u32]) -> Vec<u32> {
    let parents: HashMap<u32, u32> = running().collect();
    let own: HashSet<u32> = ancestors(std::process::id(), &parents).collect();
    let is_descendant = |pid: &u32| {
        let mut starters = ancestors(*pid, &parents);
        !own.contains(pid) && !pids.contains(pid) && starters.any(|pid| pids.contains(&pid))
    };
    let mut found: Vec<u32> = parents.keys().copied().filter(is_descendant).collect();
    found.sort_unstable();
    found
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

#[cfg(test)]
mod tests {
    use super::*;

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
