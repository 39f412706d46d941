//! The probes of a recording in parts: those that it began with, and those of files that appeared later. Each part has its own programs,
//! counts, sample ids and numbers of events; rings and the maps of processes are shared.

use std::sync::Arc;

use usdtrec_format::perf::TracepointFormat;

use super::super::events::event::{IdCount, SpanSite};
use super::attach::unit_links::Attachment;
use super::control::Control;
use super::plan::Group;
use super::samples::stack_size::StackUse;
use super::samples::{Samples, StringFinding};
use crate::engine::numbers::u64_at;

/// Probes that were attached at once. Dropping them detaches them.
#[derive(Debug)]
pub struct Part {
    pub(super) attachment: Attachment,
    /// Their counts, and whether they are enabled. That of the first part also has what is about the whole recording.
    pub(super) control: Arc<Control>,
    pub(super) samples: Samples,
    /// Number of probes that the recording had before them.
    pub(super) probes_before: usize,
    /// Whether they are detached for good: only their counts are needed.
    pub(super) is_detached: bool,
}

/// All parts of a recording.
#[derive(Debug)]
pub(super) struct Parts {
    /// The part that the recording began with.
    pub(super) first: Part,
    /// In the order of their sample ids.
    late: Vec<Part>,
}

impl Part {
    /// What was counted of the spans of each sample id that is of one.
    fn spans(&self) -> impl Iterator<Item = SpanSite> {
        let spans = self.samples.spans(&self.control);
        spans.map(|site| SpanSite {
            probe: self.probes_before + site.probe,
            ..site
        })
    }

    /// The count of each sample id.
    fn counts(&self) -> impl Iterator<Item = IdCount> {
        let counts = self.samples.counts(&self.control);
        counts.map(|count| IdCount {
            probe: self.probes_before + count.probe,
            ..count
        })
    }
}

impl Parts {
    pub(super) const fn new(first: Part) -> Self {
        Self {
            first,
            late: Vec::new(),
        }
    }

    /// Adds a part, whose ids are greater than those of the first.
    pub(super) fn add(&mut self, part: Part) {
        let after = self.after(part.samples.first_id());
        self.late.insert(after, part);
    }

    /// Removes the parts that were added since there were so many probes.
    pub(super) fn take_since(&mut self, before: usize) -> Vec<Part> {
        self.late
            .extract_if(.., |part| part.probes_before >= before)
            .collect()
    }

    /// The later part whose probes follow so many others.
    pub(super) fn late_mut(&mut self, before: usize) -> Option<&mut Part> {
        self.late
            .iter_mut()
            .find(|part| part.probes_before == before)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.first).chain(&self.late)
    }

    /// All of them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        std::iter::once(&mut self.first).chain(&mut self.late)
    }

    /// Number of later parts that begin with this sample id or before it.
    fn after(&self, id: u64) -> usize {
        let late = &self.late;
        late.partition_point(|part| part.samples.first_id() <= id)
    }

    /// The part that a sample id is of, if any has it.
    fn of_id(&mut self, id: u64) -> &mut Part {
        match self.after(id) {
            0 => &mut self.first,
            after => &mut self.late[after - 1],
        }
    }

    /// Sets whether hits are recorded from now on.
    pub(super) fn set_enabled(&self, enabled: bool) {
        for part in self.iter().filter(|part| !part.is_detached) {
            part.control.set_enabled(enabled);
        }
    }

    /// The formats of the samples of parts that were added since there were so many probes, for stock perf.
    pub(super) fn formats(&self, since: usize) -> Vec<TracepointFormat> {
        let parts = self.iter().filter(|part| part.probes_before >= since);
        let groups = parts.flat_map(|part| &part.samples.groups);
        groups.map(Group::format).collect()
    }

    /// The count of each sample id.
    pub(super) fn counts(&self) -> Vec<IdCount> {
        self.iter().flat_map(Part::counts).collect()
    }

    /// What was counted of the spans of each sample id that is of one.
    pub(super) fn spans(&self) -> Vec<SpanSite> {
        self.iter().flat_map(Part::spans).collect()
    }

    /// Appends a record of a ring in the form of the trace, and counts it.
    pub(super) fn append(&mut self, record: &[u8], out: &mut Vec<u8>) {
        let Some(id) = u64_at(record, 8) else {
            return;
        };
        let part = self.of_id(id);
        part.samples.append(record, &part.control, out);
    }

    /// Takes what the stacks of sample ids have needed since the last time.
    pub(super) fn learn_stacks(
        &mut self,
        used: impl IntoIterator<Item = (u64, StackUse)>,
        is_crowded: bool,
    ) {
        for (id, used) in used {
            let part = self.of_id(id);
            let samples = &mut part.samples;
            samples.learn_stack(id, used, is_crowded, &part.control);
        }
    }

    /// At the end of a pass: chooses the sizes of stacks by what those of this pass have needed.
    pub(super) fn choose_stack_sizes(&mut self, is_crowded: bool) {
        for part in self.iter_mut() {
            part.samples.choose_stack_sizes(is_crowded, &part.control);
        }
    }

    /// Takes the facts to be written for readers since the last time.
    pub(super) fn take_string_findings(&mut self) -> Vec<StringFinding> {
        let parts = self.iter_mut();
        parts
            .flat_map(|part| part.samples.take_string_findings())
            .collect()
    }
}
