//! Processes that others leave to the first process of a pid namespace: there is nobody else to wait for them (`pid_namespaces(7)`).

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use super::process::Process;

/// Interval of looking for those that have ended. Whoever waits for a process of its own does so sooner.
const INTERVAL: Duration = Duration::from_secs(10);

/// The name of helpers, which are executed as `/proc/self/exe`: some are waited for later.
const HELPER: &str = "exe";

/// Waits for processes that have ended and that nobody else waits for. Does nothing in other than the first process.
#[derive(Debug)]
pub struct Orphans {
    is_first: bool,
    looked: Instant,
    /// Those that had ended at the last look.
    ended: Vec<i32>,
}

impl Orphans {
    /// Looks at those of this process from now on.
    pub fn begin() -> Self {
        Self {
            is_first: getpid().is_init(),
            looked: Instant::now(),
            ended: Vec::new(),
        }
    }

    /// Waits for those that had ended at the last look, too. Looks once in a while.
    pub fn reap(&mut self) {
        if !self.is_first || self.looked.elapsed() < INTERVAL {
            return;
        }
        self.looked = Instant::now();
        let ended = ended_children();
        let (old, new) = ended.into_iter().partition(|pid| self.ended.contains(pid));
        for pid in Vec::into_iter(old).filter_map(Pid::from_raw) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        self.ended = new;
    }
}

/// The children of this process that have ended, other than helpers of ours.
fn ended_children() -> Vec<i32> {
    let own = Process::open(getpid().as_raw_pid());
    let threads = own.and_then(|own| own.threads()).unwrap_or_default();
    let children = threads.into_iter().flat_map(|tid| {
        let list = fs::read_to_string(format!("/proc/self/task/{tid}/children"));
        let list = list.unwrap_or_default();
        let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
        pids.collect::<Vec<i32>>()
    });
    let has_ended = |&pid: &i32| {
        let stat = Process::open(pid).and_then(|process| process.stat());
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        stat.is_ok_and(|stat| stat.state == b'Z' && stat.num_threads <= 1)
            && name.trim_end() != HELPER
    };
    children.filter(has_ended).collect()
}
