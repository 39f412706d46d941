//! The priority of the threads that held processes wait for.

use rustix::process::{getpriority_process, setpriority_process};

/// The highest priority (setpriority(2)).
const HIGHEST: i32 = -20;

/// Raises the priority of this thread and of processes that it starts, until it is dropped by this thread: held processes use the CPU while
/// they wait for it. Does nothing without permission.
#[derive(Debug)]
pub struct HighPriority {
    before: Option<i32>,
}

impl HighPriority {
    /// Raises it from now on.
    pub fn begin() -> Self {
        // For setpriority(2), 0 is this thread.
        let before = getpriority_process(None).ok();
        let before = before.filter(|_| setpriority_process(None, HIGHEST).is_ok());
        Self { before }
    }

    /// Runs a job that no process waits for, at normal priority.
    pub fn at_usual_priority<T>(&self, job: impl FnOnce() -> T) -> T {
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

impl Drop for HighPriority {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = setpriority_process(None, before);
        }
    }
}
