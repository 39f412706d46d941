//! The priority of the thread that others wait for.

use rustix::process::{getpriority_process, setpriority_process};

/// The highest (setpriority(2)).
const HIGHEST: i32 = -20;

/// Runs this thread before others, and the processes that it starts: those that are held take what time they get on the processors, and wait for
/// it. Without the right to do so nothing changes.
#[derive(Debug)]
pub(super) struct Hurry {
    before: Option<i32>,
}

impl Hurry {
    pub(super) fn begin() -> Self {
        // Linux's process 0 is this thread.
        let before = getpriority_process(None).ok();
        let before = before.filter(|_| setpriority_process(None, HIGHEST).is_ok());
        Self { before }
    }

    /// Does what nobody waits for.
    pub(super) fn at_leisure<T>(&self, job: impl FnOnce() -> T) -> T {
        if let Some(before) = self.before {
            // If it fails this is done in a hurry, too.
            let _ = setpriority_process(None, before);
        }
        let done = job();
        if self.before.is_some() {
            let _ = setpriority_process(None, HIGHEST);
        }
        done
    }
}
