//! The bpf engine: generated programs write whole samples into the ring of their CPU.
//!
//! There are two attach methods, of which the first that works is used: one uprobe_multi link for each program and file, or one event of
//! the uprobe PMU for each site with the program attached.

mod attach;
mod attach_method;
mod attacher;
mod attachment;
mod btf;
mod children;
mod compact;
mod condition;
mod context;
mod control;
mod counting;
mod cpu_rings;
mod drain;
mod follow;
mod habit;
mod hold;
mod insn;
mod kept;
mod kernel;
mod links;
mod members;
mod nonresident;
mod objects;
mod open;
mod options;
mod plan;
mod preemption;
mod program;
mod ringbuf;
mod samples;
mod scope;
mod site_event;
mod site_programs;
mod sized;
mod skipped;
mod spared;
mod stack_rates;
mod stack_size;
mod stopped;
mod stopped_map;
mod sys;
#[cfg(test)]
mod tests;
mod text_lengths;
mod trials;
mod with_stack;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use usdtrec_format::perf::{EventAttr, TracepointFormat};

use self::attachment::Attachment;
use self::children::Children;
use self::nonresident::Touch;
use self::objects::Objects;
use self::samples::Samples;
use super::event::IdCount;
use super::guard_process::GuardDeath;
use super::release::Descriptors;
use crate::probe::PlannedProbe;

pub use self::attach_method::AttachMethod;
pub use self::children::EverywhereReason;
pub(crate) use self::counting::{Counted, Counting};
pub(crate) use self::hold::HeldProcesses;
pub use self::kept::StoppedProcess;
pub(crate) use self::kept::{Repair, stopped_processes};
pub use self::nonresident::NonResident;
pub(crate) use self::open::OpenBpf;
pub(crate) use self::options::BpfOptions;
use self::plan::Group;
pub(crate) use self::samples::TextFinding;
pub use self::scope::Scope;
pub use self::skipped::{NotFaultedIn, SkippedMethod};
pub(crate) use self::stack_size::StackUse;
pub use self::stopped::{STOPPED_VERB, guard_stopped};
pub(crate) use self::sys::uprobes_of_links;
pub(super) use self::sys::{UprobeEvent, open_uprobe};

/// Probes that are attached with programs. Dropping it detaches all of them.
#[derive(Debug)]
pub(crate) struct Bpf {
    /// If probes are attached to the recorded processes only: what attaches them to the processes that these start.
    children: Option<Children>,
    attachment: Attachment,
    objects: Objects,
    samples: Samples,
    /// The attr of each group; empty once they are taken.
    attrs: Vec<EventAttr>,
    /// Samples that are passed on together.
    batch: Vec<u8>,
}

impl Bpf {
    /// The attr of each probe, with the sample ids of its sites in their order. Taken once.
    pub(crate) fn take_attrs(&mut self) -> Vec<EventAttr> {
        std::mem::take(&mut self.attrs)
    }

    /// The probes, each with its layout.
    pub(crate) fn probes(&self) -> impl Iterator<Item = &PlannedProbe> {
        self.samples.groups.iter().map(|group| &group.probe)
    }

    /// The formats of their samples, for stock perf.
    pub(crate) fn formats(&self) -> Vec<TracepointFormat> {
        self.samples.groups.iter().map(Group::format).collect()
    }

    /// The attach method.
    pub(crate) fn attach_method(&self) -> AttachMethod {
        self.attachment.attach_method
    }

    /// Number of loaded programs.
    pub(crate) fn programs(&self) -> usize {
        self.attachment.programs()
    }

    /// Number of links or events that are open in the kernel.
    pub(crate) fn links(&self) -> usize {
        self.attachment.links() + self.children.as_ref().map_or(0, Children::links)
    }

    /// Whether memory that is not resident is brought in.
    pub(crate) fn nonresident(&self) -> NonResident {
        match self.attachment.touch {
            Touch::Never => NonResident::Never,
            Touch::Always => NonResident::Always,
            Touch::Look(_) => NonResident::Auto,
        }
    }

    /// Why memory that is not resident is not brought in although this was requested.
    pub(crate) const fn not_faulted_in(&self) -> Option<&NotFaultedIn> {
        self.attachment.not_faulted_in.as_ref()
    }

    /// The attach methods that were tried before the one in use, and why they do not work.
    pub(crate) fn skipped(&self) -> &[SkippedMethod] {
        &self.attachment.skipped
    }

    /// Size of each ring, bytes.
    pub(crate) fn ring_bytes(&self) -> usize {
        self.objects.rings.bytes()
    }

    /// The largest share of a ring that is taken, 0 to 1.
    pub(crate) fn fullest_ring(&self) -> f64 {
        self.objects.rings.fullest() as f64 / 256.0
    }

    /// Enables the programs.
    pub(crate) fn enable(&self) {
        self.objects.control.set_looked();
        self.objects.control.set_enabled(true);
    }

    /// Disables the programs, and continues stopped processes.
    pub(crate) fn disable(&mut self) {
        self.objects.control.set_enabled(false);
        self.objects.let_go();
    }

    /// The processes that the sites are attached to.
    pub(crate) fn scope(&self) -> Scope<'_> {
        match (
            &self.children,
            &self.attachment.processes,
            &self.objects.tracked.not_held,
        ) {
            (Some(children), ..) => match children.reason() {
                None => Scope::RecordedAndChildren,
                Some(reason) => Scope::AllAfterAll(reason),
            },
            (None, Some(_), _) => Scope::Recorded,
            (None, None, Some(error)) => Scope::AllWithoutHold(error),
            (None, None, None) => Scope::All,
        }
    }

    /// Whether the sites are attached to the named processes and to those that these start only.
    pub(crate) fn is_apart(&self) -> bool {
        let children = self.children.as_ref();
        children.is_some_and(|children| children.reason().is_none())
    }

    /// The processes that are held until the sites are attached to them; `None` if none are.
    pub(crate) fn held(&self) -> Option<&Arc<HeldProcesses>> {
        self.children.as_ref().map(Children::held)
    }

    /// Why the sites were attached to all processes of the files after all; `None` if they were not.
    pub(crate) fn planted_everywhere(&self) -> Option<EverywhereReason> {
        self.children.as_ref()?.reason()
    }

    /// Number of processes that may have run before they had probes.
    pub(crate) fn missed(&self) -> u64 {
        let unfollowed = self.objects.tracked.missed();
        unfollowed
            + self.objects.control.missed()
            + self.children.as_ref().map_or(0, Children::failed)
    }

    /// Takes the descriptors that keep the probes attached.
    pub(crate) fn take_descriptors(&mut self) -> Descriptors {
        let mut descriptors = self.attachment.take_descriptors();
        if let Some(children) = &mut self.children {
            descriptors.links.append(&mut children.end());
        }
        descriptors
    }

    /// The descriptor that becomes readable when a ring has records.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.objects.rings.as_fd()
    }

    /// Starts another guard of stopped processes if it was killed. Returns that it was.
    pub(crate) fn replace_guard(&mut self) -> Option<GuardDeath> {
        let Objects {
            stopped, control, ..
        } = &mut self.objects;
        stopped.as_mut()?.replace_guard(control)
    }

    /// How often processes were not stopped although the ring was full, because it was not drained for long.
    pub(crate) fn suspensions(&self) -> u64 {
        self.objects.control.suspensions()
    }

    /// Hits of which no stack was taken, because of the rate.
    pub(crate) const fn without_stack(&self) -> u64 {
        self.samples.without_stack
    }

    /// Whether memory at an address that may be of a text could not be read at a hit.
    pub(crate) const fn lacks_texts(&self) -> bool {
        self.samples.lacks_texts
    }

    /// Lost hits that a filter could not judge, because the memory that it reads was not resident.
    pub(crate) fn unjudged(&self) -> u64 {
        self.objects.control.unjudged()
    }

    /// Takes what the stacks of sample ids have needed since the last time, for the size of the next ones.
    pub(crate) fn learn_stacks(&mut self, used: impl Iterator<Item = (u64, StackUse)>) {
        let is_crowded = self.is_crowded();
        let control = &self.objects.control;
        self.samples.learn_stacks(used, is_crowded, control);
    }

    /// Takes what hits have shown of arguments since the last time, for readers.
    pub(crate) fn take_texts(&mut self) -> Vec<TextFinding> {
        self.samples.take_texts()
    }

    /// Another file begins, whose readers have to be told all that holds.
    pub(crate) fn repeat_texts(&mut self) {
        self.samples.repeat_texts();
    }

    /// The count of each sample id.
    pub(crate) fn counts(&self) -> impl Iterator<Item = IdCount> {
        self.samples.counts(&self.objects.control)
    }
}
