//! The engine that is attached. What the rest of the recorder needs of an engine is here, with one `match` each.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::perf::TracepointFormat;

use super::bpf::bpf_engine::BpfEngine;
use super::bpf::{
    FileLinks, HeldProcesses, NewMapping, StackUse, StringFinding, UnitSwitcher, VariableLocations,
    WatchedFiles,
};
use super::events::event::IdCount;
use super::events::event::SpanSite;
use super::events::rings::Rings;
use super::guard_process::GuardDeath;
use super::options::AttachMethod;
use super::outcome::EngineOutcome;
use super::outcome::InKernel;
use super::outcome::InexactCounts;
use super::outcome::SkippedMethod;
use super::outcome::UsedEngine;
use super::perf::PerfEngine;
use super::release::{Descriptors, Release};
use crate::aggregation::HitGroup;
use crate::error::RecordError;
use crate::select::probe::PlannedProbe;

/// An engine with attached probes. Dropping it detaches them.
#[derive(Debug)]
pub enum Engine {
    /// Programs.
    Bpf(Box<BpfEngine>),
    /// Perf events.
    Perf(Box<PerfEngine>),
}

/// What only programs have, with what it is of perf events.
macro_rules! of_programs {
    ($($(#[$doc:meta])* fn $name:ident(&self $(, $argument:ident: $kind:ty)*) -> $result:ty = $none:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name(&self $(, $argument: $kind)*) -> $result {
            match self {
                Self::Bpf(bpf) => bpf.$name($($argument),*),
                Self::Perf(_) => $none,
            }
        }
    )*};
    ($($(#[$doc:meta])* fn $name:ident(&mut self $(, $argument:ident: $kind:ty)*) -> $result:ty = $none:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self $(, $argument: $kind)*) -> $result {
            match self {
                Self::Bpf(bpf) => bpf.$name($($argument),*),
                Self::Perf(_) => $none,
            }
        }
    )*};
}

impl Engine {
    of_programs! {
        /// What detaches units of the probes that a recording with a budget began with, and attaches them again; `None` if there were none.
        ///
        /// # Errors
        /// The error of duplicating descriptors.
        fn unit_switcher(&self) -> io::Result<Option<UnitSwitcher>> = Ok(None);

        /// The links of the file of a probe; `None` if they are not in all processes of it, or are events.
        fn file_links(&self, probe: usize, file: &Arc<ObjectFile>) -> Option<FileLinks> = None;

        /// The formats of the samples' raw parts, of what was attached since the recording had so many probes, for stock perf.
        fn formats(&self, since: usize) -> Vec<TracepointFormat> = Vec::new();

        /// The attach methods of programs that do not work here, with the errors.
        fn skipped(&self) -> &[SkippedMethod] = &[];

        /// The groups of hits that programs have counted.
        ///
        /// # Errors
        /// The error of bpf(2).
        fn hit_groups(&self) -> io::Result<Vec<HitGroup>> = Ok(Vec::new());

        /// Whether they can be read. Nothing is taken from them.
        ///
        /// # Errors
        /// The error of bpf(2).
        fn check_hit_groups(&self) -> io::Result<()> = Ok(());

        /// What was counted of spans at the sites that begin and end them, where spans are aggregated.
        fn span_sites(&self) -> Vec<SpanSite> = Vec::new();

        /// Whether probes are attached to the recorded processes and their children only.
        fn spares_strangers(&self) -> bool = false;

        /// Whether hits outside of the recorder's pid namespace are not recorded.
        fn is_in_namespace(&self) -> bool = false;

        /// The processes that are held until the probes are attached to them; `None` if none are.
        fn held(&self) -> Option<&Arc<HeldProcesses>> = None;

        /// Where processes have their thread contexts; `None` if these are not read.
        fn variable_locations(&self) -> Option<&VariableLocations> = None;

        /// Size that each ring should have, bytes, if the kernel had no memory for it.
        fn unavailable_ring_bytes(&self) -> Option<usize> = None;

        /// Readable when recorded processes have mapped files which are not known; `None` if they are not held then.
        fn new_mappings(&self) -> Option<BorrowedFd<'_>> = None;

        /// Number of samples of waits so far.
        fn waits(&self) -> u64 = 0;

        /// The largest share of a ring of the programs that is taken, 0 to 1.
        fn fullest_ring(&self) -> f64 = 0.0;
    }

    of_programs! {
        /// Takes what watches who maps files with probes; or why there is nothing. `None` if probes are in chosen processes only, or with perf events.
        fn take_watched_files(&mut self) -> Option<io::Result<WatchedFiles>> = None;

        /// Makes room for what is kept of threads, if there is none: removes what is kept of those that have ended.
        fn forget_ended_threads(&mut self) -> () = ();

        /// Detaches for good the probes that were added when there were so many.
        fn detach(&mut self, before: usize) -> () = ();

        /// Takes such mappings since the last time.
        fn take_new_mappings(&mut self) -> Vec<NewMapping> = Vec::new();

        /// The probes of the files up to this mapping are attached. The files are known from now on.
        fn answer(&mut self, mapping: &NewMapping) -> () = ();

        /// Holds no process any more that maps a file.
        fn end_holding(&mut self) -> () = ();

        /// Takes what the stacks of sample ids have needed, for the size of the next ones.
        fn learn_stacks(&mut self, used: impl Iterator<Item = (u64, StackUse)>) -> () = ();

        /// Takes what hits have shown of arguments since the last time, for readers.
        fn take_string_findings(&mut self) -> Vec<StringFinding> = Vec::new();

        /// Another file begins, into which all facts are written again.
        fn repeat_strings(&mut self) -> () = ();
    }

    /// Whether probes can be added while recording.
    pub const fn follows(&self) -> bool {
        matches!(self, Self::Bpf(_))
    }

    /// The engine, and the attach method.
    pub fn used(&self) -> UsedEngine {
        match self {
            Self::Bpf(bpf) => UsedEngine::Bpf(bpf.attach_method()),
            Self::Perf(perf) => perf.used(),
        }
    }

    /// What is open in the kernel for the probes.
    pub fn in_kernel(&self) -> InKernel<'_> {
        match self {
            Self::Bpf(bpf) => bpf.in_kernel(),
            Self::Perf(perf) => perf.in_kernel(),
        }
    }

    /// Why hits may be missing or duplicated without being counted as lost; `None` if counts are exact.
    pub const fn inexact(&self) -> Option<InexactCounts> {
        match self {
            Self::Bpf(_) => None,
            Self::Perf(perf) => perf.inexact(),
        }
    }

    /// Whether hits are counted by events of single CPUs, which the kernel closes when the CPU goes off line.
    pub const fn counts_by_cpu(&self) -> bool {
        match self {
            Self::Bpf(_) => false,
            Self::Perf(_) => true,
        }
    }

    /// Size of each ring for samples, bytes.
    pub fn ring_bytes(&self) -> usize {
        match self {
            Self::Bpf(bpf) => bpf.ring_bytes(),
            Self::Perf(perf) => perf.ring_bytes(),
        }
    }

    /// Enables the probes. The kernel itself enables perf events of a command, at its `execve(2)`.
    pub fn enable(&self) -> io::Result<()> {
        match self {
            Self::Bpf(bpf) => {
                bpf.enable();
                Ok(())
            }
            Self::Perf(perf) => perf.enable(),
        }
    }

    /// Disables the probes; the rings keep their records.
    pub fn disable(&mut self) -> io::Result<()> {
        match self {
            Self::Bpf(bpf) => {
                bpf.disable();
                Ok(())
            }
            Self::Perf(perf) => perf.disable(),
        }
    }

    /// One pass over the rings. Returns whether it left many records in them. `sink` returns what the stacks that it was given have
    /// needed.
    pub fn drain(&mut self, sink: impl FnMut(&[u8]) -> Vec<(u64, StackUse)>) -> bool {
        match self {
            Self::Bpf(bpf) => bpf.drain(sink),
            Self::Perf(perf) => {
                perf.drain(sink);
                false
            }
        }
    }

    /// The last pass, after [`disable`](Self::disable). With `release`, waits until the last program has ended, which it reports, but not
    /// longer than programs usually run.
    pub fn end(&mut self, release: Option<&mut Release>, sink: impl FnMut(&[u8])) -> EngineOutcome {
        match self {
            Self::Bpf(bpf) => bpf.end(release, sink),
            Self::Perf(perf) => perf.end(sink),
        }
    }

    /// The count of each sample id.
    pub fn counts(&self) -> io::Result<Vec<IdCount>> {
        match self {
            Self::Bpf(bpf) => Ok(bpf.counts()),
            Self::Perf(perf) => perf.counts(),
        }
    }

    /// The descriptor of the rings of the programs, which becomes readable with the first record; `None` with perf events.
    pub fn program_rings(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Bpf(bpf) => Some(bpf.descriptor()),
            Self::Perf(_) => None,
        }
    }

    /// The descriptors of the rings of perf events, which become readable with many records.
    pub(super) fn event_rings(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let rings = match self {
            Self::Bpf(_) => None,
            Self::Perf(perf) => Some(perf.rings()),
        };
        rings.into_iter().flat_map(Rings::readable)
    }

    /// Whether they are held then.
    pub fn holds_mappings(&self) -> bool {
        self.new_mappings().is_some()
    }

    /// Records on a CPU that has come on line. The rings of programs include it already.
    pub(super) fn follow_to(
        &mut self,
        cpu: u32,
        probes: &[Arc<PlannedProbe>],
    ) -> Result<(), RecordError> {
        match self {
            Self::Bpf(_) => Ok(()),
            Self::Perf(perf) => perf.follow_to(cpu, probes),
        }
    }

    /// Starts another guard if it was killed. Returns that it was.
    pub fn replace_guard(&mut self) -> Option<GuardDeath> {
        match self {
            Self::Bpf(_) => None,
            Self::Perf(perf) => perf.replace_guard(),
        }
    }

    /// Leaves what outlives its descriptors to the guard, because the kernel may not let it be removed now.
    pub fn leave_to_guard(&mut self) {
        match self {
            Self::Bpf(_) => {}
            Self::Perf(perf) => perf.leave_to_guard(),
        }
    }

    /// Starts removing the probes, if that is fast and reports when the last program has ended. Then it is started before the last records
    /// are read.
    pub fn release_first(&mut self) -> Option<Release> {
        match self {
            Self::Bpf(bpf) if bpf.attach_method() == AttachMethod::Multi => Some(self.release()),
            Self::Bpf(_) | Self::Perf(_) => None,
        }
    }

    /// Starts removing the probes, by passing all descriptors to a helper.
    pub fn release(&mut self) -> Release {
        Release::start(self.take_descriptors())
    }

    /// Takes the descriptors that keep the probes attached.
    fn take_descriptors(&mut self) -> Descriptors {
        match self {
            Self::Bpf(bpf) => bpf.take_descriptors(),
            Self::Perf(perf) => perf.take_descriptors(),
        }
    }
}
