//! What is recorded: all processes, some processes, threads, or a command.

use usdtrec_kernel::host::process::Process;
use usdtrec_kernel::host::{capabilities, cpus};

use crate::engine::{PerfTarget, TaskFilter};
use crate::error::UsageError;
use crate::error::{RecordError, TargetError};

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every process of the host.
    All,
    /// These processes, with their later threads and children.
    Processes(Vec<u32>),
    /// These threads alone.
    Threads(Vec<u32>),
    /// A held command's process, with its later threads and children, from its first instruction.
    Command(u32),
}

impl Target {
    /// Whose hits are recorded; without `inherit`, not those of children.
    pub fn filter(&self, inherit: bool) -> TaskFilter {
        let processes = if inherit {
            TaskFilter::Processes
        } else {
            TaskFilter::ProcessesAlone
        };
        match self {
            Self::All => TaskFilter::All,
            Self::Processes(pids) => processes(pids.clone()),
            Self::Command(pid) => processes(vec![*pid]),
            Self::Threads(tids) => TaskFilter::Threads(tids.clone()),
        }
    }

    /// The threads to open events for on these CPUs; without `inherit`, no later threads and children.
    ///
    /// # Errors
    /// [`RecordError::Target`] if a process or thread does not exist.
    pub fn perf_target(&self, cpus: Vec<u32>, inherit: bool) -> Result<PerfTarget, RecordError> {
        let (tids, can_inherit) = match self {
            Self::All => (vec![-1], false),
            Self::Processes(pids) => {
                let threads = pids
                    .iter()
                    .map(|&pid| threads_of(pid))
                    .collect::<Result<Vec<_>, _>>()?;
                (threads.concat(), true)
            }
            Self::Command(pid) => (vec![thread(*pid)?], true),
            Self::Threads(tids) => (
                tids.iter()
                    .map(|&tid| thread(tid))
                    .collect::<Result<_, _>>()?,
                false,
            ),
        };
        Ok(PerfTarget {
            tids,
            cpus,
            inherit: inherit && can_inherit,
            enable_on_exec: matches!(self, Self::Command(_)),
        })
    }
}

impl TaskFilter {
    /// The processes that probes may be attached to exclusively, because hits of other processes are never recorded. `None` if there is no
    /// such limit.
    pub fn processes_alone(&self) -> Option<Vec<u32>> {
        match self {
            Self::All | Self::Processes(_) => None,
            Self::ProcessesAlone(_) | Self::Threads(_) => self.named_processes(),
        }
    }

    /// The named processes, or those of the named threads. `None` for all processes, if there are too many to attach to each, or if the
    /// first thread of one has ended.
    pub fn named_processes(&self) -> Option<Vec<u32>> {
        /// Attaching to more processes one by one takes longer than attaching to all processes costs.
        const MAX_LISTED_PROCESSES: usize = 64;
        let mut pids = match self {
            Self::All => return None,
            Self::Processes(pids) | Self::ProcessesAlone(pids) => pids.clone(),
            Self::Threads(tids) => {
                let process = |tid: &u32| {
                    let status = Process::open(i32::try_from(*tid).ok()?).ok()?.status();
                    u32::try_from(status.ok()?.tgid).ok()
                };
                tids.iter().map(process).collect::<Option<Vec<u32>>>()?
            }
        };
        pids.sort_unstable();
        pids.dedup();
        (pids.len() <= MAX_LISTED_PROCESSES && !pids.iter().any(|pid| has_no_first(*pid)))
            .then_some(pids)
    }

    /// The processes that were named, if those that they start may be held: one that runs in real time could keep us from all processors
    /// meanwhile. `None` if there are too many, with their children: a hit in one of them visits the links of all.
    pub fn held_processes(&self) -> Option<Vec<u32>> {
        const MAX_LINKED_PROCESSES: usize = 16;
        let pids = self.named_processes()?;
        (pids.len() <= MAX_LINKED_PROCESSES && !pids.iter().any(|pid| runs_in_real_time(*pid)))
            .then_some(pids)
    }
}

/// Whether the first thread of a process has ended, by which the kernel knows it.
fn has_no_first(pid: u32) -> bool {
    let process = i32::try_from(pid).ok().map(Process::open);
    let stat = process.and_then(|process| process.ok()?.stat().ok());
    stat.is_some_and(|stat| stat.has_ended())
}

/// Whether a thread of a process runs in real time.
fn runs_in_real_time(pid: u32) -> bool {
    /// `SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE` (include/uapi/linux/sched.h).
    const REAL_TIME: [u32; 3] = [1, 2, 6];
    let process = i32::try_from(pid).ok().map(Process::open);
    let Some(Ok(process)) = process else {
        return false;
    };
    let mut threads = process.threads().unwrap_or_default().into_iter();
    threads.any(|tid| {
        let stat = process.thread_stat(tid);
        stat.is_ok_and(|stat| REAL_TIME.contains(&stat.policy))
    })
}

/// A process as the kernel's calls take it.
fn thread(tid: u32) -> Result<i32, RecordError> {
    let missing = TargetError::Missing(tid);
    match i32::try_from(tid) {
        Ok(id) if std::fs::metadata(format!("/proc/{tid}")).is_ok() => Ok(id),
        _ => Err(missing.into()),
    }
}

fn threads_of(pid: u32) -> Result<Vec<i32>, RecordError> {
    let process = thread(pid).map(Process::open)?;
    let threads = process.and_then(|process| process.threads());
    Ok(threads.map_err(|_| TargetError::Ended(pid))?)
}

/// Checks that an engine can work: uprobe_multi links need `CAP_BPF` and `CAP_PERFMON`, events of the uprobe PMU `CAP_SYS_ADMIN`.
///
/// # Errors
/// [`KernelError::Privilege`](usdtrec_kernel::KernelError::Privilege).
pub fn check_privilege() -> Result<(), RecordError> {
    Ok(capabilities::check_recording()?)
}

/// Parses a CPU list; the result is sorted and without repeats.
///
/// # Errors
/// [`UsageError::CpuList`] with the part that is no CPU number or range, or a range of more than 65,536 CPUs.
pub fn parse_cpus(list: &str) -> Result<Vec<u32>, RecordError> {
    Ok(cpus::parse(list).map_err(UsageError::from)?)
}
