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

mod calls;
mod held;
mod kernel;
mod program;
pub(in crate::engine::bpf) mod work;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::features::members::Members;
use usdtrec_kernel::bpf::insn::{Code, Map};
use usdtrec_kernel::bpf::sys::{self, ProgramKind};

use super::super::control::Control;

pub(in crate::engine::bpf) use self::calls::{Call, Calls};
pub use self::held::HeldProcesses;
use self::kernel::Kernel;

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
    pub(in crate::engine::bpf) fn new(
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
            let code = code.ok_or_else(|| io::Error::other("a program too long"))?;
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
    pub(in crate::engine::bpf) const fn take_new_task(&mut self) -> Option<OwnedFd> {
        self.new_task.take()
    }

    /// Takes the calls.
    pub(in crate::engine::bpf) const fn take_calls(&mut self) -> Option<Calls> {
        self.calls.take()
    }
}
