//! Which processes hit the most probes.

use std::cmp::Ordering;

use usdtrec_trace::session::TraceSession;

use crate::summary::counts::{ProbeSums, Process};

/// Processes that are named, the busiest.
const MAX_PROCESSES: usize = 256;

/// A process with its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyProcess {
    /// Name of the process.
    pub comm: String,
    /// Its id.
    pub pid: i32,
    /// Number of its samples.
    pub count: u64,
    /// Number of probes that it hit.
    pub probes: usize,
}

/// The busiest processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BusiestProcesses {
    /// The first of them, the busiest first.
    pub first: Vec<BusyProcess>,
    /// Number of all of them.
    pub all: usize,
}

/// A process, and what it did.
#[derive(Clone, Copy)]
struct Hits {
    process: Process,
    probes: u32,
    count: u64,
}

/// All processes of these sums, settled before.
pub(crate) fn busiest(session: &TraceSession, sums: &[ProbeSums]) -> BusiestProcesses {
    let mut found: Vec<Hits> =
        Vec::with_capacity(sums.iter().map(|sums| sums.processes.len()).sum());
    for sums in sums {
        found.extend(sums.processes.iter().map(|(&process, &count)| Hits {
            process,
            probes: 1,
            count,
        }));
    }
    found.sort_unstable_by_key(|hits| hits.process);
    found.dedup_by(|next, first| {
        let is_same = next.process == first.process;
        if is_same {
            first.probes += next.probes;
            first.count += next.count;
        }
        is_same
    });
    let all = found.len();
    let order = |a: &Hits, b: &Hits| busier(session, a, b);
    if all > MAX_PROCESSES {
        found.select_nth_unstable_by(MAX_PROCESSES, order);
        found.truncate(MAX_PROCESSES);
    }
    found.sort_unstable_by(order);
    let busy = |hits: &Hits| BusyProcess {
        comm: comm(session, hits.process).into_owned(),
        pid: hits.process.pid,
        count: hits.count,
        probes: hits.probes as usize,
    };
    BusiestProcesses {
        first: found.iter().map(busy).collect(),
        all,
    }
}

/// Which of two comes first; equals are ordered by who they are.
fn busier(session: &TraceSession, a: &Hits, b: &Hits) -> Ordering {
    let who = |hits: &Hits| (hits.process.pid, hits.process.number);
    let by_count = b.count.cmp(&a.count);
    let by_process = by_count.then_with(|| who(a).cmp(&who(b)));
    by_process.then_with(|| comm(session, a.process).cmp(&comm(session, b.process)))
}

fn comm(session: &TraceSession, process: Process) -> std::borrow::Cow<'_, str> {
    let processes = session.processes();
    processes.name_or_number(process.name, process.pid)
}
