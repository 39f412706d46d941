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

impl Engine {
    /// The engine with programs, if that is attached.
    const fn bpf(&self) -> Option<&BpfEngine> {
        match self {
            Self::Bpf(bpf) => Some(bpf),
            Self::Perf(_) => None,
        }
    }

    /// The same, to change it.
    const fn bpf_mut(&mut self) -> Option<&mut BpfEngine> {
        match self {
            Self::Bpf(bpf) => Some(bpf),
            Self::Perf(_) => None,
        }
    }

    /// What detaches units of the probes that a recording with a budget began with, and attaches them again; `None` if there were none.
    ///
    /// # Errors
    /// The error of duplicating descriptors.
    pub fn unit_switcher(&self) -> io::Result<Option<UnitSwitcher>> {
        self.bpf().map_or(Ok(None), |bpf| bpf.unit_switcher())
    }

    /// The links of the file of a probe; `None` if they are not in all processes of it, or are events.
    pub fn file_links(&self, probe: usize, file: &Arc<ObjectFile>) -> Option<FileLinks> {
        self.bpf()?.file_links(probe, file)
    }

    /// Takes what watches who maps files with probes; or why there is nothing. `None` if probes are in chosen processes only, or with perf events.
    pub fn take_watched_files(&mut self) -> Option<io::Result<WatchedFiles>> {
        self.bpf_mut()?.take_watched_files()
    }

    /// Makes room for what is kept of threads, if there is none: removes what is kept of those that have ended.
    pub fn forget_ended_threads(&mut self) {
        if let Self::Bpf(bpf) = self {
            bpf.forget_ended_threads();
        }
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

    /// The formats of the samples' raw parts, of what was attached since the recording had so many probes, for stock perf.
    pub fn formats(&self, since: usize) -> Vec<TracepointFormat> {
        self.bpf().map_or_else(Vec::new, |bpf| bpf.formats(since))
    }

    /// The attach methods of programs that do not work here, with the errors.
    pub fn skipped(&self) -> &[SkippedMethod] {
        self.bpf().map_or(&[], |bpf| bpf.skipped())
    }

    /// Why hits may be missing or duplicated without being counted as lost; `None` if counts are exact.
    pub const fn inexact(&self) -> Option<InexactCounts> {
        match self {
            Self::Bpf(_) => None,
            Self::Perf(perf) => perf.inexact(),
        }
    }

    /// The groups of hits that programs have counted.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub fn hit_groups(&self) -> io::Result<Vec<HitGroup>> {
        self.bpf().map_or(Ok(Vec::new()), |bpf| bpf.hit_groups())
    }

    /// Whether they can be read. Nothing is taken from them.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub fn check_hit_groups(&self) -> io::Result<()> {
        self.bpf().map_or(Ok(()), |bpf| bpf.check_hit_groups())
    }

    /// What was counted of spans at the sites that begin and end them, where spans are aggregated.
    pub fn span_sites(&self) -> Vec<SpanSite> {
        self.bpf().map_or_else(Vec::new, |bpf| bpf.span_sites())
    }

    /// Whether hits are counted by events of single CPUs, which the kernel closes when the CPU goes off line.
    pub const fn counts_by_cpu(&self) -> bool {
        match self {
            Self::Bpf(_) => false,
            Self::Perf(_) => true,
        }
    }

    /// Whether probes are attached to the recorded processes and their children only.
    pub fn spares_strangers(&self) -> bool {
        self.bpf().is_some_and(|bpf| bpf.is_apart())
    }

    /// Whether hits outside of the recorder's pid namespace are not recorded.
    pub const fn is_in_namespace(&self) -> bool {
        match self {
            Self::Bpf(bpf) => bpf.is_in_namespace(),
            Self::Perf(_) => false,
        }
    }

    /// The processes that are held until the probes are attached to them; `None` if none are.
    pub fn held(&self) -> Option<&Arc<HeldProcesses>> {
        self.bpf().and_then(|bpf| bpf.held())
    }

    /// Where processes have their thread contexts; `None` if these are not read.
    pub fn variable_locations(&self) -> Option<&VariableLocations> {
        self.bpf().and_then(|bpf| bpf.variable_locations())
    }

    /// Size of each ring for samples, bytes.
    pub fn ring_bytes(&self) -> usize {
        match self {
            Self::Bpf(bpf) => bpf.ring_bytes(),
            Self::Perf(perf) => perf.ring_bytes(),
        }
    }

    /// Size that each ring should have, bytes, if the kernel had no memory for it.
    pub fn unavailable_ring_bytes(&self) -> Option<usize> {
        self.bpf().and_then(|bpf| bpf.unavailable_ring_bytes())
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

    /// Detaches for good the probes that were added when there were so many.
    pub fn detach(&mut self, before: usize) {
        if let Self::Bpf(bpf) = self {
            bpf.detach(before);
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
        self.bpf().map(|bpf| bpf.descriptor())
    }

    /// The descriptors of the rings of perf events, which become readable with many records.
    pub(super) fn event_rings(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let rings = match self {
            Self::Bpf(_) => None,
            Self::Perf(perf) => Some(perf.rings()),
        };
        rings.into_iter().flat_map(Rings::readable)
    }

    /// Readable when recorded processes have mapped files which are not known; `None` if they are not held then.
    pub fn new_mappings(&self) -> Option<BorrowedFd<'_>> {
        self.bpf().and_then(|bpf| bpf.new_mappings())
    }

    /// Whether they are held then.
    pub fn holds_mappings(&self) -> bool {
        self.new_mappings().is_some()
    }

    /// Takes such mappings since the last time.
    pub fn take_new_mappings(&mut self) -> Vec<NewMapping> {
        self.bpf_mut()
            .map_or_else(Vec::new, |bpf| bpf.take_new_mappings())
    }

    /// The probes of the files up to this mapping are attached. The files are known from now on.
    pub fn answer(&mut self, mapping: &NewMapping) {
        if let Self::Bpf(bpf) = self {
            bpf.answer(mapping);
        }
    }

    /// Holds no process any more that maps a file.
    pub fn end_holding(&mut self) {
        if let Self::Bpf(bpf) = self {
            bpf.end_holding();
        }
    }

    /// The largest share of a ring of the programs that is taken, 0 to 1.
    pub fn fullest_ring(&self) -> f64 {
        self.bpf().map_or(0.0, |bpf| bpf.fullest_ring())
    }

    /// Takes what the stacks of sample ids have needed, for the size of the next ones.
    pub fn learn_stacks(&mut self, used: impl Iterator<Item = (u64, StackUse)>) {
        if let Self::Bpf(bpf) = self {
            bpf.learn_stacks(used);
        }
    }

    /// Takes what hits have shown of arguments since the last time, for readers.
    pub fn take_string_findings(&mut self) -> Vec<StringFinding> {
        self.bpf_mut()
            .map_or_else(Vec::new, |bpf| bpf.take_string_findings())
    }

    /// Another file begins, into which all facts are written again.
    pub fn repeat_strings(&mut self) {
        if let Self::Bpf(bpf) = self {
            bpf.repeat_strings();
        }
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
