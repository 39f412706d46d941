//! How long threads wait: maps, the programs that add up ([`programs`]), and the proof that they do.
//!
//! A thread gets an element with its first hit, on which it is on a CPU, and loses it with its end. At a switch elements are looked up and changed, never
//! added or removed: the kernel holds the lock of the CPU's run queue there. The elements have their memory from the start, for the same reason.
//!
//! Each switch of the host runs a program. Most threads have no element; the *gate*, an array of counts by the low bits of thread ids, says so
//! without a lookup, which would take 50 ns.
//!
//! Waits may have events, too ([`events`]).

pub(super) mod element;
pub(super) mod events;
mod programs;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use usdtrec_kernel::bpf::features::{RunningKernel, Tracepoint};
use usdtrec_kernel::bpf::insn::{Code, Map};
use usdtrec_kernel::bpf::sys::{self, MapKind, ProgramKind};

use self::element::{ELEMENT_WORDS, GATE_BYTES, sum};
use self::events::{EventSettings, WaitEvents, WrittenWaits};
use self::programs::{
    Forgotten, TaskMembers, adds_current, forgets, forgets_current, switched, waking,
};
use super::kernel_objects::TracepointProgram;
use super::processes::follow::missing;

/// Maximum number of threads with sums at a time: 8 MB of the kernel's memory.
const MAX_THREADS: u32 = 65_536;

/// Number of times that the recorder sleeps until its programs have seen that, and for how long.
const TRIALS: usize = 20;
const TRIAL: Duration = Duration::from_millis(1);

/// The maps, and the programs that keep them right.
#[derive(Debug)]
pub(super) struct WaitSums {
    sums: OwnedFd,
    gate: OwnedFd,
    /// Those at switches and wakings.
    adding: [TracepointProgram; 2],
    /// Those that remove elements.
    _forgetting: Vec<TracepointProgram>,
    /// `None` if waits have no events.
    pub(super) events: Option<WaitEvents>,
}

impl WaitSums {
    /// Creates the maps, attaches the programs, and checks that they run.
    ///
    /// # Errors
    /// The kernel does not describe its structures, or refuses something; or the programs do not run.
    pub(super) fn new(
        kernel: RunningKernel<'_>,
        events: Option<EventSettings<'_>>,
    ) -> io::Result<Self> {
        Self::with_room(kernel, events, MAX_THREADS)
    }

    /// The same, for so many threads at a time.
    fn with_room(
        kernel: RunningKernel<'_>,
        settings: Option<EventSettings<'_>>,
        threads: u32,
    ) -> io::Result<Self> {
        let btf = kernel.btf.ok_or_else(missing)?;
        let members = TaskMembers::find(btf, kernel.preemption).ok_or_else(missing)?;
        let sums = sys::create_map_of::<u32, [u64; ELEMENT_WORDS]>(MapKind::Hash, threads)?;
        let gate = sys::create_array(GATE_BYTES, 1)?;
        let written = settings.map(|settings| WrittenWaits::new(settings.least));
        let events = settings.as_ref().map(WaitEvents::new).transpose()?;
        let of_map = |map| match (map, &events) {
            (Map::Rings, Some(events)) => events.rings(),
            (Map::Control, Some(events)) => events.control(),
            _ => of_map(map, &sums, &gate),
        };
        let attach = |tracepoint: Tracepoint, code| {
            let id = tracepoint.id(btf).ok_or_else(missing)?;
            TracepointProgram::attach(id, code, of_map)
        };
        // Before an element is there it must be certain that it goes.
        let forgetting = [
            (Tracepoint::NewTask, Forgotten::Task),
            (Tracepoint::Exit, Forgotten::EndedTask),
            (Tracepoint::Exec, Forgotten::OldId),
        ];
        let forgetting = forgetting.map(|(at, what)| attach(at, forgets(members, what)));
        let forgetting = forgetting.into_iter().collect::<io::Result<Vec<_>>>()?;
        let adding = [
            attach(Tracepoint::Switch, switched(members, written))?,
            attach(Tracepoint::Waking, waking(members))?,
        ];
        let made = Self {
            adding,
            _forgetting: forgetting,
            sums,
            gate,
            events,
        };
        made.verify()?;
        Ok(made)
    }

    /// Checks on this thread that the programs run: it sleeps until it has been blocked, and then runnable, which only the program at wakings can tell.
    fn verify(&self) -> io::Result<()> {
        let thread = self.run(adds_current())?;
        let thread = u32::try_from(thread).map_err(|_| not_running())?;
        let has_waited = (0..TRIALS).any(|_| {
            std::thread::sleep(TRIAL);
            let element = sys::read::<_, [u64; ELEMENT_WORDS]>(self.sums.as_fd(), thread);
            element.is_ok_and(|element| sum::IN_SLEEP.iter().all(|at| element[*at] > 0))
        });
        self.run(forgets_current())?;
        if has_waited {
            Ok(())
        } else {
            Err(not_running())
        }
    }

    /// Runs a program once, on this thread.
    fn run(&self, code: Option<Code>) -> io::Result<i32> {
        let code = code.ok_or_else(missing)?;
        let code = code.with_maps(|map| of_map(map, &self.sums, &self.gate));
        let program = sys::load(ProgramKind::Run, &code)?;
        sys::run(program.as_fd())
    }

    /// The map of the sums, for programs.
    pub(super) fn sums(&self) -> BorrowedFd<'_> {
        self.sums.as_fd()
    }

    /// The gate, for programs.
    pub(super) fn gate(&self) -> BorrowedFd<'_> {
        self.gate.as_fd()
    }

    /// How often the kernel has not run a program at a switch or waking.
    pub(super) fn missed(&self) -> u64 {
        let programs = self.adding.iter();
        let missed = programs.map(|adding| sys::recursion_misses(adding.program.as_fd()));
        missed.filter_map(Result::ok).sum()
    }
}

fn of_map<'m>(map: Map, sums: &'m OwnedFd, gate: &'m OwnedFd) -> BorrowedFd<'m> {
    match map {
        Map::WaitSums => sums.as_fd(),
        _ => gate.as_fd(),
    }
}

fn not_running() -> io::Error {
    io::Error::other("the programs are attached, and the kernel does not run them")
}
