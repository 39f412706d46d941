//! The priority of the thread that held processes wait for.

use rustix::process::{getpriority_process, setpriority_process};

/// The highest priority (setpriority(2)).
const HIGHEST: i32 = -20;

/// Raises the priority of this thread and of processes that it starts: held processes use the CPU while they wait for it. Does nothing
/// without permission.
#[derive(Debug)]
pub(super) struct Hurry {
    before: Option<i32>,
}

impl Hurry {
    pub(super) fn begin() -> Self {
        // For setpriority(2), 0 is this thread.
        let before = getpriority_process(None).ok();
        let before = before.filter(|_| setpriority_process(None, HIGHEST).is_ok());
        Self { before }
    }

    /// Runs a job that no process waits for, at normal priority.
    pub(super) fn at_leisure<T>(&self, job: impl FnOnce() -> T) -> T {
        if let Some(before) = self.before {
            // If this fails, the job runs at high priority, too.
            let _ = setpriority_process(None, before);
        }
        let done = job();
        if self.before.is_some() {
            let _ = setpriority_process(None, HIGHEST);
        }
        done
    }
}
