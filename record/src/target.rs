//! Who is recorded: everything, processes, threads, or a command.

use procfs::process::Process;

use crate::RecordError;
use crate::engine::Watch;

/// Who is recorded.
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

/// Whose hits count, where the kernel asks a program of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    /// Everybody's.
    All,
    /// Those of these processes and of the children that they start later.
    Processes(Vec<u32>),
    /// Those of these threads.
    Threads(Vec<u32>),
}

impl Target {
    /// Whose hits count.
    pub(crate) fn filter(&self) -> Filter {
        match self {
            Self::All => Filter::All,
            Self::Processes(pids) => Filter::Processes(pids.clone()),
            Self::Command(pid) => Filter::Processes(vec![*pid]),
            Self::Threads(tids) => Filter::Threads(tids.clone()),
        }
    }

    /// What the kernel is asked to watch on these CPUs.
    ///
    /// # Errors
    /// [`RecordError::Target`] names a process or thread that does not exist.
    pub(crate) fn watch(&self, cpus: Vec<u32>) -> Result<Watch, RecordError> {
        let (tids, inherit) = match self {
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
        Ok(Watch {
            tids,
            cpus,
            inherit,
            enable_on_exec: matches!(self, Self::Command(_)),
        })
    }
}

/// A process as the kernel's calls take it.
fn thread(tid: u32) -> Result<i32, RecordError> {
    let missing = || RecordError::Target(format!("there is no process or thread {tid}"));
    let id = i32::try_from(tid).map_err(|_| missing())?;
    std::fs::metadata(format!("/proc/{tid}")).map_err(|_| missing())?;
    Ok(id)
}

fn threads_of(pid: u32) -> Result<Vec<i32>, RecordError> {
    let process = thread(pid).map(Process::new)?;
    let tasks = process.and_then(|process| process.tasks());
    let tasks = tasks.map_err(|_| RecordError::Target(format!("process {pid} has ended")))?;
    Ok(tasks.flatten().map(|task| task.tid).collect())
}
