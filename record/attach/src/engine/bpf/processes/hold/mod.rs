//! Holding a new process until probes are attached to it (Linux 6.18). The [invariants](super) are one level up.
//!
//! If probes are attached to single processes, a process that such a process starts has no links of its own. Programs on `fork` and
//! `execve` queue work for it, which it runs before it first returns to user mode: the work checks whether the process is released, and if
//! not, queues itself again. In between the kernel may run other threads. Signals are delivered afterwards, so other processes do not
//! notice, and a parent waits only in `vfork`. The recorder is called ([`Calls`]) and releases the process when it has links of its own, or
//! all processes when probes are attached to all processes of the files; then no process is held any more.
//!
//! The work is `bpf_task_work_schedule_resume` (Linux 6.18). The recorder writes the token of a hold into the map of recorded processes, and
//! the child compares it with its own. The child's instruction pointer shows whether its work ran too late.
//!
//! Whether the kernel can allocate such work is tested on the recorder's own process: 7.1 and later cannot on processors without
//! `cmpxchg16b`. If it cannot, `-p` and `-- CMD` attach to all processes of the file from the start, and each hit of
//! another process costs the trap and a map lookup, about half a microsecond.
//!
//! Other ways to hold a child have side effects. With SIGSTOP the parent gets SIGCHLD with CLD_STOPPED, whose handler
//! may wait for ever, and shells return from a wait with WUNTRACED. The cgroup freezer moves processes between groups.
//! Inherited perf events would need no hold, but the kernel takes a tenth of a second to remove each, and their filter
//! visits the recorded processes at each hit, too.

mod program;
pub(in crate::engine::bpf) mod work;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::features::members::Members;
use usdtrec_kernel::bpf::insn::{Code, Map};
use usdtrec_kernel::bpf::rings::Ring;
use usdtrec_kernel::bpf::sys::{self, ProgramKind};

use self::program::Kernel;
use super::super::control::Control;
use crate::engine::numbers::{u32_at, u64_at};

pub use self::work::HeldProcesses;

/// Twice the maximum number of processes that are held at a time.
const MAX_MAP_ENTRIES: u32 = 16_384;

/// The maps of the hold, and the programs on new tasks, `execve` and `exit`.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Hold {
    /// The calls; `None` after they were taken.
    calls: Option<Calls>,
    /// The program on new tasks; `None` after it was taken.
    new_task: Option<OwnedFd>,
    _links: Vec<OwnedFd>,
}

impl Hold {
    /// Starts following processes in the map `tracked`. Processes are held only while `control` allows it.
    pub(super) fn new(
        control: &Control,
        tracked: BorrowedFd<'_>,
        members: Members,
        btf: &Btf,
    ) -> io::Result<Self> {
        let kernel = Kernel::find(members, btf).ok_or_else(work::no_work)?;
        let works = sys::create_works(MAX_MAP_ENTRIES)?;
        let calls = Calls::new(HeldProcesses::new(works, tracked.try_clone_to_owned()?))?;
        control.set_released(true);
        let load = |kind, code: Option<Code>| {
            let code = code.ok_or_else(|| io::Error::other("the program is too long"))?;
            let code = code.with_maps(|map| match map {
                Map::Held => calls.works(),
                Map::Calls => calls.as_fd(),
                Map::Control => control.as_fd(),
                _ => calls.tracked(),
            });
            io::Result::Ok(sys::load(kind, &code)?)
        };
        work::try_out(kernel.schedule, calls.works(), control)?;
        let mut links = Vec::new();
        let mut new_task = None;
        for (tracepoint, code) in [
            (kernel.new_task, program::on_wakeup_new(kernel)),
            (kernel.fork, program::on_fork(kernel)),
            (kernel.exec, program::on_exec(kernel)),
            (kernel.exit, program::on_exit(kernel)),
        ] {
            let program = load(ProgramKind::Tracepoint(tracepoint), code)?;
            links.push(sys::link_tracepoint(program.as_fd())?);
            new_task.get_or_insert(program);
        }
        Ok(Self {
            calls: Some(calls),
            new_task,
            _links: links,
        })
    }

    /// Takes the program on new tasks.
    pub(super) const fn take_new_task(&mut self) -> Option<OwnedFd> {
        self.new_task.take()
    }

    /// Takes the calls.
    pub(super) const fn take_calls(&mut self) -> Option<Calls> {
        self.calls.take()
    }
}

/// Size of the ring of calls, bytes: more than 2,000 calls.
const RING: usize = 64 << 10;

/// Maximum number of processes that are checked.
const MAX_CHECKED_PROCESSES: usize = 1 << 16;

/// The ring of calls, and who is held.
#[derive(Debug)]
pub(super) struct Calls {
    ring: Ring,
    held: Arc<HeldProcesses>,
}

/// A process that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Process id.
    pub pid: u32,
    /// A token that distinguishes it from others with the same id. `None`: probes must be attached to all processes of the files.
    pub token: Option<u32>,
    /// Since when it is held, time of `CLOCK_MONOTONIC`.
    pub since: Duration,
}

impl Calls {
    fn new(held: HeldProcesses) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new(RING, rustix::param::page_size(), None)?,
            held: Arc::new(held),
        })
    }

    fn works(&self) -> BorrowedFd<'_> {
        self.held.works()
    }

    fn tracked(&self) -> BorrowedFd<'_> {
        self.held.tracked()
    }

    /// The processes that are held.
    pub(super) const fn held(&self) -> &Arc<HeldProcesses> {
        &self.held
    }

    /// Takes the calls that have arrived.
    pub(super) fn take(&mut self) -> Vec<Call> {
        let mut calls = Vec::new();
        self.ring.drain_arrived(|record| {
            calls.extend(parse(record));
        });
        calls
    }

    /// Whether a process that called is held, and still has its id.
    pub(super) fn is_held(&self, pid: u32, token: u32) -> bool {
        self.held.token(pid) == Some(token.into())
    }

    /// Releases a process that has links of its own now. Returns `false` if it has ended.
    pub(super) fn let_go(&self, pid: u32, token: u32) -> bool {
        sys::change(self.tracked(), pid, token).is_ok()
    }

    /// Whether all recorded processes have links of their own or are held.
    pub(super) fn knows_all(&self) -> bool {
        // Key 0 is no process: the key after a missing one is the first. Others are added and removed meanwhile.
        let mut last = 0;
        for _ in 0..MAX_CHECKED_PROCESSES {
            let Ok(pid) = sys::next_key(self.tracked(), last) else {
                return true;
            };
            if !self.held.has_links(pid) && self.held.token(pid).is_none() {
                return false;
            }
            last = pid;
        }
        false
    }
}

/// A record of the ring: process id, token, time in ns.
fn parse(record: &[u8]) -> Option<Call> {
    Some(Call {
        pid: u32_at(record, 0)?,
        token: Some(u32_at(record, 4)?).filter(|token| *token != 0),
        since: Duration::from_nanos(u64_at(record, 8)?),
    })
}

impl AsFd for Calls {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
