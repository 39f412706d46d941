//! Names of processes and threads in a timeline.

use foldhash::HashMap;

use crate::analysis::rows::hit_row::HitRow;
use crate::trace::process::names::{EscapedName, NameId};
use crate::trace::session::TraceSession;

/// What threads of a timeline were called last.
#[derive(Debug, Default)]
pub(crate) struct ThreadNames {
    threads: HashMap<i32, SeenThread>,
    processes: HashMap<i32, Option<NameId>>,
}

/// A thread that has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeenThread {
    pid: i32,
    comm: Option<NameId>,
}

/// What a row says of names that was not known before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewNames<'s> {
    /// The name of the process.
    pub(crate) process: Option<&'s str>,
    /// The name of the thread.
    pub(crate) thread: Option<&'s str>,
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
        };
        if self.threads.get(&row.tid) == Some(&seen) {
            return None;
        }
        self.threads.insert(row.tid, seen);
        let of_process = session.processes().comm(row.pid, row.time).name;
        let known = self.processes.insert(row.pid, of_process);
        let is_new = known.is_none_or(|known| known != of_process);
        Some(NewNames {
            process: of_process.filter(|_| is_new).map(|id| name(session, id)),
            thread: row.comm.map(|id| name(session, id)),
        })
    }
}

/// The path of a control group as the kernel has it.
pub(crate) fn cgroup(session: &TraceSession, id: NameId) -> &str {
    let path = session.processes().cgroup_path(id);
    path.map_or("", EscapedName::unescaped)
}

/// The text of a name as the kernel has it.
pub(crate) fn name(session: &TraceSession, id: NameId) -> &str {
    let name = session.processes().name(id);
    name.map_or("", EscapedName::unescaped)
}
