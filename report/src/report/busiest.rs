//! Which processes hit the most probes.

use foldhash::HashMap;

use super::summary::{Process, Sums};
use crate::process::ProcessNumber;
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
    let mut all: Vec<(Busy, ProcessNumber)> = found
        .into_iter()
        .map(|(process, (count, probes))| {
            let comm = session.processes();
            let comm = comm.name_or_number(process.name, process.pid);
            let busy = Busy {
                comm: comm.into_owned(),
                pid: process.pid,
                count,
                probes,
            };
            (busy, process.number)
        })
        .collect();
    all.sort_by(|(a, a_number), (b, b_number)| {
        let of_equals = || (a.pid, a_number, &a.comm).cmp(&(b.pid, b_number, &b.comm));
        b.count.cmp(&a.count).then_with(of_equals)
    });
    all.into_iter().map(|(busy, _)| busy).collect()
}
