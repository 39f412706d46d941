//! Attached programs: what the recorder asks of them while they run, and their end.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use usdtrec_format::perf::{Attr, TracepointFormat};
use usdtrec_format::trace::ShortfallKind;

use super::super::events::event::{IdCount, SpanSite};
use super::super::options::{AttachMethod, NonResident};
use super::super::outcome::{
    EngineCounts, EngineOutcome, InKernel, Scope, SkippedMethod, SlowSpanCounts,
};
use super::super::release::{Descriptors, Release};
use super::aggregate::group_decoder::GroupDecoder;
use super::attach::unit_links::Attachment;
use super::nonresident::Touch;
use super::objects::Objects;
use super::part::Parts;
use super::processes::children::Children;
use super::processes::executables::Executables;
use super::processes::hold::work::HeldProcesses;
use super::processes::mapping_hold::MappingHold;
use super::processes::mapping_hold::NewMapping;
use super::program::spec::Common;
use super::samples::StringFinding;
use super::samples::stack_size::StackUse;
use super::thread_contexts::VariableLocations;
use super::wait_sums::WaitSums;
use super::wait_sums::events::{WaitEvent, WaitEvents};
use crate::aggregation::HitGroup;

/// Probes that are attached with programs. Dropping it detaches all of them.
#[derive(Debug)]
pub struct BpfEngine {
    /// If probes are attached to the recorded processes only: what attaches them to the processes that these start.
    pub(super) children: Option<Children>,
    pub(super) parts: Parts,
    pub(super) objects: Objects,
    /// Settings of all programs.
    pub(super) common: Common,
    /// Whether processes outside of the recorder's pid namespace are not recorded.
    pub(super) in_namespace: bool,
    /// Size that each ring should have, bytes. They are smaller if the kernel has no memory.
    pub(super) wanted_ring_bytes: usize,
    /// Samples that are passed on together.
    pub(super) batch: Vec<u8>,
    /// Probes of files that are being removed while recording.
    pub(super) releases: Vec<Release>,
}

impl BpfEngine {
    /// The formats of the samples of what was attached since the recording had so many probes, for stock perf.
    pub fn formats(&self, since: usize) -> Vec<TracepointFormat> {
        self.parts.formats(since)
    }

    /// The event of waits; `None` if there is none. `metadata` is the attr of the session's other events.
    pub fn wait_event(&self, metadata: &Attr) -> Option<WaitEvent> {
        let waits = self.objects.wait_events();
        waits.map(|waits| waits.event(metadata))
    }

    /// Number of samples of waits so far.
    pub fn waits(&self) -> u64 {
        self.objects.wait_events().map_or(0, WaitEvents::made)
    }

    /// The attach method.
    pub fn attach_method(&self) -> AttachMethod {
        // A recording may begin without probes.
        let mut parts = self.parts.iter();
        let part = parts.find(|part| part.samples.ids() > 0);
        let part = part.unwrap_or(&self.parts.first);
        part.attachment.attach_method
    }

    /// What is open in the kernel for the probes.
    pub fn in_kernel(&self) -> InKernel<'_> {
        let attachment = &self.parts.first.attachment;
        let parts = || self.parts.iter().map(|part| &part.attachment);
        InKernel::Programs {
            programs: parts().map(Attachment::programs).sum(),
            nonresident: match attachment.touch {
                Touch::Never => NonResident::Never,
                Touch::Always => NonResident::Always,
                Touch::Look(_) => NonResident::Auto,
            },
            not_faulted_in: attachment.not_faulted_in.as_ref(),
            links: parts().map(Attachment::links).sum::<usize>()
                + self.children.as_ref().map_or(0, Children::links),
            scope: self.scope(),
        }
    }

    /// The attach methods that were tried before the one in use, and why they do not work.
    pub fn skipped(&self) -> &[SkippedMethod] {
        &self.parts.first.attachment.skipped
    }

    /// Size of each ring, bytes.
    pub fn ring_bytes(&self) -> usize {
        self.objects.rings.bytes()
    }

    /// Size that each ring should have, bytes, if the kernel had no memory for it.
    pub fn unavailable_ring_bytes(&self) -> Option<usize> {
        let wanted = self.wanted_ring_bytes;
        (wanted > self.ring_bytes()).then_some(wanted)
    }

    /// The largest share of a ring that is taken, 0 to 1.
    pub fn fullest_ring(&self) -> f64 {
        self.objects.rings.fullest() as f64 / 256.0
    }

    /// Enables the programs. Processes are held from the first time on; parts that are added later do not begin that again, since it may have
    /// ended with the recording.
    pub fn enable(&self) {
        let is_first = !self.objects.control.has_looked();
        self.objects.control.set_looked();
        self.parts.set_enabled(true);
        if is_first {
            self.objects.begin_holding();
        }
    }

    /// Readable when recorded processes have mapped files which are not known; `None` if they are not held then.
    pub fn new_mappings(&self) -> Option<BorrowedFd<'_>> {
        self.objects.mapping_hold.as_ref().map(AsFd::as_fd)
    }

    /// Takes such mappings since the last time.
    pub fn take_new_mappings(&mut self) -> Vec<NewMapping> {
        let hold = self.objects.mapping_hold.as_mut();
        hold.map(MappingHold::take).unwrap_or_default()
    }

    /// The probes of the files up to this mapping are attached. The files are known from now on.
    pub fn answer(&mut self, mapping: &NewMapping) {
        if let Some(hold) = &self.objects.mapping_hold {
            hold.answer(mapping, &self.objects.control);
        }
    }

    /// Holds no process any more that maps a file.
    pub fn end_holding(&mut self) {
        self.objects.end_holding();
    }

    /// Disables the programs.
    pub fn disable(&mut self) {
        self.parts.set_enabled(false);
        self.objects.end_holding();
    }

    /// The processes that the sites are attached to.
    fn scope(&self) -> Scope<'_> {
        match (
            &self.children,
            &self.parts.first.attachment.processes,
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
    pub fn spares_strangers(&self) -> bool {
        let children = self.children.as_ref();
        children.is_some_and(|children| children.reason().is_none())
    }

    /// Whether processes outside of the recorder's pid namespace are not recorded.
    pub const fn is_in_namespace(&self) -> bool {
        self.in_namespace
    }

    /// The processes that are held until the sites are attached to them; `None` if none are.
    pub fn held(&self) -> Option<&Arc<HeldProcesses>> {
        self.children.as_ref().map(Children::held)
    }

    /// What was counted besides hits and losses; `unfinished` hits had not ended in time.
    pub(super) fn outcome(&self, unfinished: u64) -> EngineOutcome {
        let objects = &self.objects;
        let samples = || self.parts.iter().map(|part| &part.samples);
        let children = self.children.as_ref();
        let mut counts = EngineCounts::default();
        for part in self.parts.iter() {
            part.control.add_counts(&mut counts);
            counts.add(ShortfallKind::UnknownWaits, part.samples.without_waits);
        }
        let missed_mappings = objects.mapping_hold.as_ref().map_or(0, MappingHold::missed);
        let missed_children = objects.tracked.missed() + children.map_or(0, Children::failed);
        let missed_switches = objects.wait_sums.as_ref().map_or(0, WaitSums::missed);
        let left_out = objects
            .executables
            .as_ref()
            .map_or(0, Executables::left_out);
        counts.add(ShortfallKind::ReplacedPrograms, left_out);
        counts.add(ShortfallKind::Unfinished, unfinished);
        counts.add(ShortfallKind::UnheldMappings, missed_mappings);
        counts.add(ShortfallKind::UnattachedChildren, missed_children);
        counts.add(ShortfallKind::MissedSwitches, missed_switches);
        EngineOutcome {
            counts,
            waits: self.waits(),
            without_stack: samples().map(|samples| samples.without_stack).sum(),
            planted_everywhere: children.and_then(Children::reason),
            spans: self.span_counts(),
            may_lack_strings: samples().any(|samples| samples.lacks_strings),
        }
    }

    /// What programs have counted of spans that they match; `None` if they match none.
    pub fn span_counts(&self) -> Option<SlowSpanCounts> {
        if self.objects.hit_groups.is_some() {
            return None;
        }
        let mut groups = self.parts.iter().flat_map(|part| &part.samples.groups);
        if !groups.any(|group| group.role.is_some()) {
            return None;
        }
        let counts = self.parts.iter().map(|part| part.control.span_counts());
        Some(counts.fold(SlowSpanCounts::default(), SlowSpanCounts::plus))
    }

    /// Makes room for what programs keep of threads, if there is none: removes what is kept of those that have ended.
    pub fn forget_ended_threads(&mut self) {
        if let Some(spans) = &mut self.objects.spans {
            // A recorder without capabilities cannot. Programs remove what they keep themselves then, which only takes longer.
            let _ = spans.forget_ended_threads();
        }
    }

    /// Where processes have their thread contexts; `None` if these are not read.
    pub fn variable_locations(&self) -> Option<&VariableLocations> {
        let contexts = self.objects.thread_contexts.as_ref()?;
        Some(&contexts.locations)
    }

    /// Takes the descriptors that keep the probes attached.
    pub fn take_descriptors(&mut self) -> Descriptors {
        let mut descriptors = Descriptors::default();
        for part in self.parts.iter_mut() {
            descriptors.append(part.attachment.take_descriptors());
        }
        if let Some(children) = &mut self.children {
            descriptors.links.append(&mut children.end());
        }
        descriptors
    }

    /// The descriptor that becomes readable when a ring has records.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.objects.rings.as_fd()
    }

    /// Takes what the stacks of sample ids have needed since the last time, for the size of the next ones.
    pub fn learn_stacks(&mut self, used: impl Iterator<Item = (u64, StackUse)>) {
        let is_crowded = self.is_crowded();
        self.parts.learn_stacks(used, is_crowded);
    }

    /// Takes what hits have shown of arguments since the last time, for readers.
    pub fn take_string_findings(&mut self) -> Vec<StringFinding> {
        self.parts.take_string_findings()
    }

    /// Another file begins, into which all facts are written again.
    pub fn repeat_strings(&mut self) {
        for part in self.parts.iter_mut() {
            part.samples.repeat_strings();
        }
    }

    /// Reads the maps of the groups of hits and takes nothing from them: the extremes since the last reading stay for the next one.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub fn check_hit_groups(&self) -> io::Result<()> {
        let Some(maps) = &self.objects.hit_groups else {
            return Ok(());
        };
        maps.read(|_| ())?;
        maps.read_durations(|_, _| ())
    }

    /// The groups of hits that programs have counted.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub fn hit_groups(&self) -> io::Result<Vec<HitGroup>> {
        let Some(maps) = &self.objects.hit_groups else {
            return Ok(Vec::new());
        };
        let events = self.parts.iter().flat_map(|part| &part.samples.groups);
        let mut decoder = GroupDecoder::new(maps, events);
        let mut groups: Vec<HitGroup> = Vec::new();
        let mut of_spans = HashMap::new();
        maps.read(|element| {
            let number = element.number;
            let Some(group) = decoder.decode(element) else {
                return;
            };
            if let Some(number) = number.filter(|_| group.probe.is_span) {
                of_spans.insert(number, groups.len());
            }
            groups.push(group);
        })?;
        maps.read_durations(|number, bucket| {
            let group = of_spans.get(&number).and_then(|at| groups.get_mut(*at));
            // Durations come last.
            if let Some(Some(durations)) = group.and_then(|group| group.numbers.last_mut()) {
                durations.buckets.push(bucket);
            }
        })?;
        Ok(groups)
    }

    /// What was counted of spans at the sites that begin and end them.
    pub fn span_sites(&self) -> Vec<SpanSite> {
        self.parts.spans()
    }

    /// The count of each sample id.
    pub fn counts(&self) -> Vec<IdCount> {
        self.parts.counts()
    }
}

impl Drop for BpfEngine {
    fn drop(&mut self) {
        self.take_descriptors().close();
    }
}
