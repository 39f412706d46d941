//! Holding a thread that maps a file with code that is not known yet, until the probes of the file are attached (`--no-gap`). The
//! [invariants](super) are one level up.
//!
//! Programs on `execve` and `mmap`, run when the kernel has written the record of the mapping, look up the file of the descriptor or of the
//! executable in a map of known files. If it is not there, they hold the thread until the recorder has answered, before it returns to user mode:
//! before the loader goes on, and long before constructors. So nothing of the file has run, unless another thread of the process guesses the
//! address. There are two ways to hold it: in the kernel ([`by_work`], Linux 6.18), which nobody notices, and before by stopping its process
//! ([`by_stop`]), which others can see.
//!
//! Each such mapping has a token, the number of those so far, and the recorder answers in their order. Then the file is known, and no thread is
//! held for it any more.
//!
//! A breakpoint in the loader (`r_debug.r_brk`) is not needed. It would not be hit by mappings without the loader, and would have to be found
//! and planted in each loader. Memory that `mprotect` makes executable later is not seen: compilers at run time do that all the time, loaders
//! do not. Its gap is reported as without `--no-gap`.

mod by_stop;
mod by_work;
pub(super) mod kernel;
mod maps;
mod new_mapping;
mod program;
mod stop_program;
mod work_program;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use self::by_stop::StopHold;
use self::by_work::WorkHold;
use self::kernel::{Kernel, StopKernel, WorkKernel};
use self::maps::MappingMaps;
use self::new_mapping::FILE_BYTES;
pub(crate) use self::new_mapping::NewMapping;
use super::follow::missing;
pub(crate) use super::hold::work::MAX_HOLD;
use crate::engine::bpf::control::Control;
use crate::engine::bpf::kernel::RunningKernel;
use crate::engine::bpf::rings::ringbuf::Ring;
use crate::engine::bpf::sys::{self, MapKind, MapShape};
use crate::engine::gap_hold::GapHold;
use crate::engine::guard_process::GuardDeath;
use crate::recording::attach_callbacks::Caution;

/// Size of the ring of mappings, bytes: more than 1,000.
const RING: usize = 64 << 10;
/// Maximum number of known files; of more, those that were not mapped for the longest time are forgotten.
const MAX_KNOWN_FILES: u32 = 16_384;
/// What is asked of a hold.
#[derive(Clone, Copy)]
pub(in crate::engine::bpf) struct HoldRequest<'a> {
    /// How.
    pub(in crate::engine::bpf) how: GapHold,
    /// Called with what the user should know of it.
    pub(in crate::engine::bpf) say: &'a dyn Fn(&Caution),
}

/// The maps of the hold, and the programs on new mappings.
#[derive(Debug)]
pub(in crate::engine::bpf) struct MappingHold {
    way: HoldMethod,
    mappings: Ring,
    known: OwnedFd,
}

/// How threads are held.
#[derive(Debug)]
enum HoldMethod {
    Work(WorkHold),
    Stop(StopHold),
}

impl MappingHold {
    /// Prepares to hold processes of the map `tracked`. None is held before `control` allows it.
    ///
    /// # Errors
    /// The kernel has no such work or does not describe its structures, processes may not be stopped, or an error of bpf(2).
    pub(in crate::engine::bpf) fn new(
        request: HoldRequest<'_>,
        control: &Control,
        tracked: BorrowedFd<'_>,
        running: RunningKernel<'_>,
    ) -> io::Result<Self> {
        let mappings = Ring::new(RING, rustix::param::page_size(), None)?;
        let known = sys::create_map(
            MapKind::LruHash,
            MapShape {
                key_size: FILE_BYTES as u32,
                value_size: 4,
                entries: MAX_KNOWN_FILES,
            },
        )?;
        let maps = MappingMaps {
            control,
            tracked,
            mappings: mappings.as_fd(),
            known: known.as_fd(),
        };
        let way = HoldMethod::prepare(request, maps, running)?;
        Ok(Self {
            way,
            mappings,
            known,
        })
    }

    /// Takes the mappings that have arrived.
    pub(in crate::engine::bpf) fn take(&mut self) -> Vec<NewMapping> {
        let mut mappings = Vec::new();
        self.mappings.drain_arrived(|record| {
            mappings.extend(NewMapping::parse(record));
        });
        if let HoldMethod::Stop(stop) = &mut self.way {
            stop.add(&mut mappings);
        }
        mappings
    }

    /// Whether the thread of a mapping that is not answered has not run since.
    pub(in crate::engine::bpf) fn is_held(&self, mapping: &NewMapping) -> bool {
        match &self.way {
            HoldMethod::Work(_) => mapping.is_held,
            HoldMethod::Stop(stop) => mapping.is_held && stop.is_held(mapping),
        }
    }

    /// The probes of the files up to this mapping are attached. No process is held any more that maps its file.
    pub(in crate::engine::bpf) fn answer(&mut self, mapping: &NewMapping, control: &Control) {
        // Without that the next process is held, too.
        let _ = sys::insert_bytes(self.known.as_fd(), &mapping.file);
        match &mut self.way {
            HoldMethod::Work(_) => control.set_answered(mapping.token),
            HoldMethod::Stop(stop) => stop.answer(mapping, control),
        }
    }

    /// Lets go the processes whose mappings are answered.
    pub(in crate::engine::bpf) fn go_on(&mut self) {
        if let HoldMethod::Stop(stop) = &mut self.way {
            stop.go_on(self.mappings.filled() > 0);
        }
    }

    /// Lets go all processes. `control` allows no hold any more.
    pub(in crate::engine::bpf) fn let_go(&mut self, control: &Control) {
        let _: Vec<NewMapping> = self.take();
        if let HoldMethod::Stop(stop) = &mut self.way {
            stop.let_go(control);
        }
    }

    /// Starts another guard of stopped processes if it was killed. Returns that it was.
    pub(in crate::engine::bpf) fn replace_guard(
        &mut self,
        control: &Control,
    ) -> Option<GuardDeath> {
        match &mut self.way {
            HoldMethod::Work(_) => None,
            HoldMethod::Stop(stop) => stop.replace_guard(control),
        }
    }

    /// Number of executed programs that the program on `execve` was not run for: it may be preempted, and is not run for another thread on the
    /// CPU meanwhile. That on `mmap` is not counted: most of its runs are for other processes and system calls.
    pub(in crate::engine::bpf) fn missed(&self) -> u64 {
        let executed = match &self.way {
            HoldMethod::Work(work) => &work.executed,
            HoldMethod::Stop(stop) => &stop.executed,
        };
        sys::recursion_misses(executed.program.as_fd()).unwrap_or(0)
    }
}

impl AsFd for MappingHold {
    /// Readable when mappings have arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.mappings.as_fd()
    }
}

impl HoldMethod {
    /// The way that is asked for, or the best one. It is said which it is.
    fn prepare(
        request: HoldRequest<'_>,
        maps: MappingMaps<'_>,
        running: RunningKernel<'_>,
    ) -> io::Result<Self> {
        let btf = running.btf.ok_or_else(missing)?;
        let common = Kernel::find(btf, running.preemption)?;
        let by_work = || WorkHold::new(WorkKernel::find(btf, common)?, maps);
        let because = match request.how {
            GapHold::ByStop => None,
            how => match by_work() {
                Ok(work) => {
                    (request.say)(&Caution::HeldInKernel);
                    return Ok(Self::Work(work));
                }
                Err(error) if how == GapHold::InKernel => return Err(error),
                Err(error) => Some(error),
            },
        };
        let kernel = StopKernel::find(btf, common)?;
        let (stop, only_executed) = StopHold::new(kernel, maps, request.say)?;
        (request.say)(&Caution::StoppedAtMappings {
            because,
            only_executed,
        });
        Ok(Self::Stop(stop))
    }
}
