//! Which processes hit the most probes.

use foldhash::HashMap;

use super::summary::{Process, Sums};
use crate::session::Session;

/// A process with its samples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Busy {
    pub(super) comm: String,
    pub(super) pid: i32,
    pub(super) count: u64,
    /// How many probes it hit.
    pub(super) probes: usize,
}

/// All processes of these sums, settled before, the busiest first.
pub(super) fn busiest(session: &Session, sums: &[Sums]) -> Vec<Busy> {
    let mut found: HashMap<Process, (u64, usize)> = HashMap::default();
    for sums in sums {
        for (&process, &count) in &sums.processes {
            let entry = found.entry(process).or_default();
            entry.0 += count;
            entry.1 += 1;
        }
    }
    let mut all: Vec<Busy> = found
        .into_iter()
        .map(|((pid, name), (count, probes))| Busy {
            comm: session.processes().name_or_number(name, pid).into_owned(),
            pid,
            count,
            probes,
        })
        .collect();
    all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.pid.cmp(&b.pid)));
    all
}
