//! Names of processes and threads in a timeline, and the control groups of processes.

use foldhash::HashMap;
use usdtrec_analysis::rows::hit_row::HitRow;
use usdtrec_trace::process::names::{EscapedName, NameId};
use usdtrec_trace::session::TraceSession;

/// What threads of a timeline were called last.
#[derive(Debug, Default)]
pub(crate) struct ThreadNames {
    threads: HashMap<i32, SeenThread>,
    processes: HashMap<i32, SeenProcess>,
}

/// A thread that has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeenThread {
    pid: i32,
    comm: Option<NameId>,
    cgroup: Option<NameId>,
}

/// What was last known of a process that has a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SeenProcess {
    name: Option<NameId>,
    cgroup: Option<NameId>,
}

/// What a row says of names that was not known before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewNames<'s> {
    /// The name of the process.
    pub(crate) process: Option<&'s str>,
    /// The name of the thread.
    pub(crate) thread: Option<&'s str>,
    /// The path of the control group of the process.
    pub(crate) cgroup: Option<&'s str>,
}

impl ThreadNames {
    /// Takes a hit; `None` if its thread and process are called as before.
    pub(crate) fn see<'s>(
        &mut self,
        session: &'s TraceSession,
        row: &HitRow,
    ) -> Option<NewNames<'s>> {
        let seen = SeenThread {
            pid: row.pid,
            comm: row.comm,
            cgroup: row.process.recorded.path(),
        };
        if self.threads.get(&row.tid) == Some(&seen) {
            return None;
        }
        self.threads.insert(row.tid, seen);
        let process = SeenProcess {
            name: session.processes().comm(row.pid, row.time).name,
            cgroup: row.process.recorded.path(),
        };
        let known = self.processes.insert(row.pid, process).unwrap_or_default();
        let new = |now: Option<NameId>, before| now.filter(|_| now != before);
        Some(NewNames {
            process: new(process.name, known.name).map(|id| name(session, id)),
            thread: row.comm.map(|id| name(session, id)),
            cgroup: new(process.cgroup, known.cgroup)
                .and_then(|id| session.processes().recorded_name(id))
                .map(EscapedName::unescaped),
        })
    }
}

/// The text of a name as the kernel has it.
pub(crate) fn name(session: &TraceSession, id: NameId) -> &str {
    let name = session.processes().name(id);
    name.map_or("", EscapedName::unescaped)
}
