//! Threads inside the program of a probe: the kernel removes no probe while a sleepable program runs.

use std::fmt;
use std::fs;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use usdtrec_kernel::host::process::Process;

/// A kernel function between a breakpoint and a program (kernel/events/uprobes.c).
const ENTRY: &str = "uprobe_notify_resume";

/// Maximum time of the search: reading `/proc/PID/stack` waits for a process in the middle of `execve(2)`.
const SEARCH_TIME: Duration = Duration::from_secs(3);

/// A thread that sleeps inside a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InProgram {
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// The thread's name.
    pub comm: String,
}

impl fmt::Display for InProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {} tid {} ({})", self.pid, self.tid, self.comm)
    }
}

/// Threads of the host that sleep inside a probe of any tracer, as far as permissions (`/proc/PID/stack`, CAP_SYS_ADMIN) and time allow.
pub fn in_programs() -> Vec<InProgram> {
    let (sender, found) = channel();
    // A search that hangs is abandoned; its thread does not keep the process from exiting. Without a thread nothing is found.
    let _ = thread::Builder::new().spawn(move || search(&sender));
    let deadline = Instant::now() + SEARCH_TIME;
    let next = || {
        let left = deadline.saturating_duration_since(Instant::now());
        found.recv_timeout(left).ok()
    };
    std::iter::from_fn(next).collect()
}

/// Sends each thread when it is found.
fn search(found: &Sender<InProgram>) {
    for process in Process::all().into_iter().flatten() {
        for tid in process.threads().unwrap_or_default() {
            let pid = process.pid;
            let stack = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stack"));
            if !stack.is_ok_and(|stack| stack.contains(ENTRY)) {
                continue;
            }
            let comm = process.thread_stat(tid).map(|stat| stat.comm);
            let comm = String::from_utf8_lossy(&comm.unwrap_or_default()).into_owned();
            if found.send(InProgram { pid, tid, comm }).is_err() {
                return;
            }
        }
    }
}
