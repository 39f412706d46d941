//! Pids that several processes had, one after the other.

use foldhash::HashMap;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::site_samples::SiteSamples;
use usdtrec_trace::process::comm::ProcessNumber;
use usdtrec_trace::process::names::NameId;
use usdtrec_trace::session::resolver::Resolver;

/// Pids that are noted: as many as there are pids on a host (`PID_MAX_LIMIT`).
const MAX_PIDS: usize = 1 << 22;

/// Processes that a key of pids adds up, as they had one pid and one name. One a thread, merged at the end.
#[derive(Debug, Default)]
pub(crate) struct ReusedPids {
    /// For each pid and name, the process that had both; `None` if there were several.
    processes: HashMap<NamedPid, Option<ProcessNumber>>,
    /// The pid of the last sample, and its process.
    last: Option<(NamedPid, ProcessNumber)>,
}

/// A pid, and the name of a process that had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NamedPid {
    pid: i32,
    name: Option<NameId>,
}

impl ReusedPids {
    /// Notes the processes of samples.
    pub(crate) fn add(&mut self, resolver: &mut Resolver<'_>, samples: SiteSamples<'_>) {
        for sample in samples.samples() {
            let comm = resolver.comm(sample.pid, sample.time);
            let of = NamedPid {
                pid: sample.pid,
                name: comm.name,
            };
            if self.last != Some((of, comm.process)) {
                self.last = Some((of, comm.process));
                self.note(of, Some(comm.process));
            }
        }
    }

    fn note(&mut self, of: NamedPid, process: Option<ProcessNumber>) {
        if let Some(known) = self.processes.get_mut(&of) {
            if *known != process {
                *known = None;
            }
        } else if self.processes.len() < MAX_PIDS {
            self.processes.insert(of, process);
        }
    }

    /// Notes how many pids several processes of one name had.
    pub(crate) fn count(all: impl Iterator<Item = Self>, notices: &mut Notices) {
        let merge = |mut one: Self, other: Self| {
            for (of, process) in other.processes {
                one.note(of, process);
            }
            one
        };
        let all = all.reduce(merge).unwrap_or_default();
        let several = all.processes.values().filter(|process| process.is_none());
        notices.reused_pids = several.count() as u64;
    }
}
