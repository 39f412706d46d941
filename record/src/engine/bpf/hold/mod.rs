//! Holding a process that begins until probes are planted in it (Linux 6.18).
//!
//! Where probes are planted in single processes, one that such a process starts has no links of its own. Programs on `fork` and
//! `execve` give it work that it does before it returns to its program for the first time: it looks whether it is let go, and if not, gives
//! itself the same work again. Between two looks the kernel may run others; signals come afterwards, so nobody sees it, and a parent
//! waits in `vfork` only. We are called ([`Calls`]) and let it go when it has links of its own, or everybody when probes are in all processes of the
//! files: nobody is held any more then.
//!
//! The hold ends, too, after two seconds, which is counted, and when we are killed: the kernel schedules no work of a map that no process has open.

mod calls;
mod kernel;
mod program;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::btf::Btf;
use super::control::Control;
use super::insn::{Code, Map};
use super::members::Members;
use super::sys::{self, ProgramKind};

pub(super) use self::calls::{Call, Calls};
use self::kernel::Kernel;

/// Most processes held at a time, twice.
const MOST: u32 = 16_384;

/// The maps of the hold, and the programs on `fork`, `execve` and `exit`.
#[derive(Debug)]
pub(super) struct Hold {
    /// Those who began; `None` once somebody takes them.
    calls: Option<Calls>,
    _links: Vec<OwnedFd>,
}

impl Hold {
    /// Begins to follow processes, in the map `tracked`; none is held until `control` says so.
    pub(super) fn new(
        control: &Control,
        tracked: BorrowedFd<'_>,
        members: Members,
        btf: &Btf,
    ) -> io::Result<Self> {
        let kernel = Kernel::find(members, btf)
            .ok_or_else(|| io::Error::other("there is no task work for programs (Linux 6.18)"))?;
        let calls = Calls::new(sys::create_works(MOST)?, tracked.try_clone_to_owned()?)?;
        control.set_released(true);
        let load = |kind, attach, code| load((kind, attach), code, &calls, control);
        let trial = load(ProgramKind::RawTracepoint, 0, program::trial(kernel))?;
        try_out(&trial, control)?;
        let mut links = Vec::new();
        for (attach, code) in [
            (kernel.fork, program::forked(kernel)),
            (kernel.exec, program::executed(kernel)),
            (kernel.exit, program::left(kernel)),
        ] {
            let program = load(ProgramKind::Tracing, attach, code)?;
            links.push(sys::link_tracepoint(program.as_fd(), None)?);
        }
        Ok(Self {
            calls: Some(calls),
            _links: links,
        })
    }

    /// The calls, once.
    pub(super) const fn take_calls(&mut self) -> Option<Calls> {
        self.calls.take()
    }
}

/// Loads a program, for a tracepoint's type in the kernel's BTF.
fn load(
    (kind, attach_kind): (ProgramKind, u32),
    code: Option<Code>,
    calls: &Calls,
    control: &Control,
) -> io::Result<OwnedFd> {
    let code = code.ok_or_else(|| io::Error::other("a program too long"))?;
    let words = code.with_maps(|map| {
        let map = match map {
            Map::Held => calls.works(),
            Map::Calls => calls.as_fd(),
            Map::Control => control.as_fd(),
            _ => calls.tracked(),
        };
        map.as_raw_fd()
    });
    let expected_attach = match kind {
        ProgramKind::Tracing => sys::TRACE_RAW_TP,
        _ => 0,
    };
    let program = sys::Program {
        kind,
        words: &words,
        functions: &code.functions,
        flags: 0,
        expected_attach,
        attach_kind,
    };
    sys::load(&program).map_err(|refusal| io::Error::new(refusal.error.kind(), refusal.to_string()))
}

/// Gives ourselves work, which is to be done before the system call returns. Linux 7.3 has no memory for it on processors without `cmpxchg16b`.
fn try_out(trial: &OwnedFd, control: &Control) -> io::Result<()> {
    let result = sys::run(trial.as_fd())?;
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    if control.take_calls() == 0 {
        return Err(io::Error::other("task work comes too late"));
    }
    Ok(())
}
