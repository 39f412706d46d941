//! The samples of the trace, made from the records of the rings.

pub(super) mod compact;
pub(super) mod stack_size;
pub(super) mod string_history;
pub(super) mod with_stack;

use std::io;
use std::ops::Range;

use usdtrec_format::perf::{Attr, EventAttr, SampleType};
use usdtrec_format::trace::StringArgument;
use usdtrec_format::{RawArgument, RawLayout, ThreadWaits};
use usdtrec_kernel::host::cpus;

use self::compact::Evidence;
use self::stack_size::{StackSize, StackUse};
use self::string_history::{StringHistory, StringLengths};
use super::super::events::event::{Count, IdCount, SpanSite};
use super::super::options::EngineOptions;
use super::aggregate::hit_counts::{CountedIds, HitCounts, HitWord};
use super::contract::{END_SIZE, PROCESS, RAW};
use super::control::{self, Control};
use super::plan::{Group, Ids};
use super::program::stack::EndKind;
use crate::engine::numbers::{bytes_at, u32_at, u64_at};

/// Offset of the time in a sample, after the record's header, the id, the address and the thread.
const TIME: usize = 8 + 3 * 8;

/// The events, the sample ids of their sites, and what their samples have shown so far.
#[derive(Debug)]
pub(super) struct Samples {
    pub(super) groups: Vec<Group>,
    /// The smallest ids.
    first: Ids,
    /// One for each sample id.
    ids: Vec<IdState>,
    /// Evidence about the strings of each sample id, `strings` each.
    histories: Vec<StringHistory>,
    /// Maximum number of strings of a site.
    strings: usize,
    /// What the hit at hand has shown, by the string's index.
    news: Vec<(usize, bool)>,
    /// Facts to be written for readers.
    findings: Vec<StringFinding>,
    /// A sample without its stack.
    sample: Vec<u8>,
    /// Whether memory at an address that may be of a string could not be read at a hit.
    pub(super) lacks_strings: bool,
    /// Number of hits of which no stack was taken, because of the rate.
    pub(super) without_stack: u64,
    /// Number of hits of threads for whose waits there was no room.
    pub(super) without_waits: u64,
    /// Where programs count hits instead of recording them; `None` if they record them.
    hit_counts: Option<HitCounts>,
}

/// State of a sample id.
#[derive(Clone, Copy, Debug)]
struct IdState {
    /// Index of its group.
    group: usize,
    /// Number of hits received.
    received: u64,
    /// Time of the first one.
    first: u64,
    /// How long the strings are.
    lengths: StringLengths,
    /// How large the stacks are.
    stack: StackSize,
    /// What they have needed in this pass.
    used: StackUse,
}

impl Samples {
    /// No samples yet. The ids are those of the sites of all groups, in their order, from those of `first` on.
    pub(super) fn new(groups: Vec<Group>, first: Ids, options: &EngineOptions) -> Self {
        let of_groups = groups.iter().enumerate().flat_map(|(index, group)| {
            let state = IdState {
                group: index,
                received: 0,
                first: 0,
                lengths: StringLengths::default(),
                stack: StackSize::new(group.sizes.as_ref()),
                used: StackUse::default(),
            };
            group.probe.sites.iter().map(move |_| state)
        });
        let ids: Vec<IdState> = of_groups.collect();
        let strings = groups.iter().map(|group| group.layout.strings().count());
        let strings = strings.max().unwrap_or(0);
        let hit_counts = options.aggregation.as_ref().map(|_| {
            let words = control::words_end(ids.len() as u32, strings as u32);
            let cpus = cpus::possible().map_or(1, |possible| possible.len());
            let each = match options.slow_spans {
                Some(_) => HitWord::ALL,
                None => 1,
            };
            let counted = CountedIds {
                ids: ids.len() as u32,
                each,
            };
            HitCounts::new(words, counted, cpus)
        });
        Self {
            hit_counts,
            histories: vec![StringHistory::default(); ids.len() * strings],
            first,
            ids,
            strings,
            groups,
            news: Vec::new(),
            findings: Vec::new(),
            sample: Vec::new(),
            lacks_strings: false,
            without_stack: 0,
            without_waits: 0,
        }
    }

    /// The smallest sample id.
    pub(super) const fn first_id(&self) -> u64 {
        self.first.sample
    }

    /// The first ids that none of these has.
    pub(super) fn next_ids(&self) -> Ids {
        Ids {
            sample: self.first.sample + self.ids.len() as u64,
            event: self.first.event + self.groups.len() as u32,
        }
    }

    /// Number of sample ids.
    pub(super) fn ids(&self) -> usize {
        self.ids.len()
    }

    /// Maximum number of strings of a site.
    pub(super) fn strings(&self) -> usize {
        self.strings
    }

    /// Where programs count hits; `None` if they record them.
    pub(super) const fn hit_counts(&self) -> Option<HitCounts> {
        self.hit_counts
    }

    /// The words that their programs share with the recorder.
    pub(super) fn new_control(&self) -> io::Result<Control> {
        Control::new(self.ids() as u32, self.strings() as u32, self.hit_counts)
    }

    /// The group of the sample id with this index.
    pub(super) fn group_of(&self, index: usize) -> Option<&Group> {
        self.groups.get(self.ids.get(index)?.group)
    }

    /// The attrs of all groups, for the trace.
    pub(super) fn attrs(&self, metadata: &Attr) -> Vec<EventAttr> {
        let groups = self.groups.iter().enumerate();
        let attrs = groups.map(|(index, group)| {
            let mut attr = Attr {
                kind: Attr::TRACEPOINT,
                config: group.layout.id.into(),
                sample_period: 1,
                sample_type: metadata.sample_type | SampleType::RAW,
                sample_regs_user: 0,
                sample_stack_user: 0,
                ..metadata.clone()
            };
            if let Some(graph) = group.graph {
                graph.sample(group.arch(), &mut attr);
            }
            EventAttr {
                attr,
                name: group.probe.event(),
                ids: self.ids_of(index),
            }
        });
        attrs.collect()
    }

    /// The sample ids of a group.
    fn ids_of(&self, group: usize) -> Vec<u64> {
        let ids = self.indexes_of(group);
        ids.map(|index| self.first.sample + index as u64).collect()
    }

    /// The indexes of the sample ids of a group. They are in the order of the groups.
    fn indexes_of(&self, group: usize) -> Range<usize> {
        let begin = self.ids.partition_point(|state| state.group < group);
        let end = self.ids.partition_point(|state| state.group <= group);
        begin..end
    }

    /// The count of each sample id.
    pub(super) fn counts(&self, control: &Control) -> impl Iterator<Item = IdCount> {
        let ids = (self.first.sample..).zip(&self.ids).enumerate();
        ids.map(|(index, (id, state))| {
            let lost = control.lost(index);
            let count = Count {
                hits: state.received + control.counted(index) + lost,
                lost: Some(lost),
            };
            IdCount {
                probe: state.group,
                id,
                count,
            }
        })
    }

    /// What was counted of the spans of each sample id that is of one.
    pub(super) fn spans(&self, control: &Control) -> impl Iterator<Item = SpanSite> {
        self.ids.iter().enumerate().filter_map(|(index, state)| {
            let role = self.groups.get(state.group)?.role.as_ref()?;
            Some(SpanSite {
                probe: state.group,
                name: role.name.clone(),
                counts: control.spans_of(index),
            })
        })
    }

    /// Appends a record of a ring in the form of the trace, and counts it. Appends nothing if its id or size is unknown, as no program of
    /// ours writes it.
    pub(super) fn append(&mut self, record: &[u8], control: &Control, out: &mut Vec<u8>) {
        let (Some(id), Some(kind)) = (u64_at(record, 8), bytes_at(record, RAW)) else {
            return;
        };
        let index = id.wrapping_sub(self.first.sample) as usize;
        let group = u32::from(u16::from_ne_bytes(kind)).wrapping_sub(self.first.event);
        let word_at = self.long_strings_at(index);
        let (Some(state), Some(group)) = (self.ids.get_mut(index), self.groups.get(group as usize))
        else {
            return;
        };
        let histories = self.histories.get_mut(index * self.strings..);
        let evidence = Evidence {
            histories: histories.unwrap_or_default(),
            news: &mut self.news,
            lacks_strings: &mut self.lacks_strings,
        };
        let is_whole = if let Some(kind) = group.end {
            let taken = Taken {
                kind,
                evidence,
                used: &mut state.used,
                sample: &mut self.sample,
            };
            let has_stack = taken.put(record, group, out);
            self.without_stack += u64::from(has_stack == Some(false));
            has_stack.is_some()
        } else if group.layout.string_limit == 0 {
            out.extend_from_slice(record);
            true
        } else {
            compact::compact(record, group.shape(0), evidence, out)
        };
        if !is_whole {
            return;
        }
        if state.received == 0 {
            state.first = u64_at(record, TIME).unwrap_or(0);
        }
        state.received += 1;
        self.without_waits += u64::from(lacks_waits(record, &group.layout));
        if let Some(is_long) = compact::is_long(record, &group.layout, group.rooms)
            && let Some(are_long) = state.lengths.count(is_long)
        {
            control.store(word_at, are_long.into());
        }
        if !self.news.is_empty() {
            self.tell(index);
        }
    }

    /// Takes what the stacks of a sample id have needed since the last time, and whether the rings are crowded.
    pub(super) fn learn_stack(
        &mut self,
        id: u64,
        used: StackUse,
        is_crowded: bool,
        control: &Control,
    ) {
        let index = id.wrapping_sub(self.first.sample) as usize;
        if let Some(state) = self.ids.get_mut(index) {
            state.used = used;
        }
        self.choose_stack_size(index, is_crowded, control);
    }

    /// At the end of a pass: chooses the sizes of stacks by what those of this pass have needed.
    pub(super) fn choose_stack_sizes(&mut self, is_crowded: bool, control: &Control) {
        if self.groups.iter().all(|group| group.sizes.is_none()) {
            return;
        }
        for index in 0..self.ids.len() {
            self.choose_stack_size(index, is_crowded, control);
        }
    }

    fn choose_stack_size(&mut self, index: usize, is_crowded: bool, control: &Control) {
        let size_at = self.stack_size_at(index);
        let Some(state) = self.ids.get_mut(index) else {
            return;
        };
        let used = std::mem::take(&mut state.used);
        let group = self.groups.get(state.group);
        let sizes = group.and_then(|group| group.sizes.as_ref());
        if let Some(sizes) = sizes.filter(|_| !used.is_empty()) {
            let before = state.stack.word();
            let lost = control.lost(index);
            state.stack.learn(used, lost, is_crowded, sizes);
            if state.stack.word() != before {
                control.store(size_at, state.stack.word());
            }
        }
    }

    /// Writes the sizes that stacks begin with.
    pub(super) fn set_stack_sizes(&self, control: &Control) {
        for (index, state) in self.ids.iter().enumerate() {
            control.store(self.stack_size_at(index), state.stack.word());
        }
    }

    /// Offset of the word with the size of the stacks of the sample id with this index.
    fn stack_size_at(&self, index: usize) -> u32 {
        self.word_at(index, control::stack_sizes_at)
    }

    /// Offset of the word that says whether the strings of the sample id with this index are long.
    fn long_strings_at(&self, index: usize) -> u32 {
        self.word_at(index, control::long_strings_at)
    }

    /// Offset of the word of the sample id with this index in a list that begins at `first`.
    fn word_at(&self, index: usize, first: impl Fn(u32, u32) -> u32) -> u32 {
        let first = first(self.ids.len() as u32, self.strings as u32);
        first.wrapping_add((index as u32).wrapping_mul(8))
    }
}

/// What hits have shown of an argument, for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringFinding {
    /// Which argument is a string, or is none.
    pub string: StringArgument,
    /// Time of the first hit for which it holds.
    pub since: u64,
}

impl Samples {
    /// Takes the facts to be written for readers since the last time.
    pub(super) fn take_string_findings(&mut self) -> Vec<StringFinding> {
        std::mem::take(&mut self.findings)
    }

    /// Another file begins, into which all facts are written again.
    pub(super) fn repeat_strings(&mut self) {
        let told = self.histories.iter().enumerate();
        let told = told.filter(|(_, history)| history.is_told());
        let findings = told.filter_map(|(at, _)| {
            let (index, string) = (at / self.strings, at % self.strings);
            self.finding(index, string, true)
        });
        self.findings = findings.collect();
    }

    /// Notes what the hit at hand has shown. The argument of one site of a probe is that of its others.
    fn tell(&mut self, index: usize) {
        for (string, news) in std::mem::take(&mut self.news) {
            self.findings.extend(self.finding(index, string, news));
            let group = self.ids.get(index).map(|state| state.group);
            let others = group.map(|group| self.indexes_of(group));
            for other in others.into_iter().flatten() {
                if news
                    && let Some(history) = self.histories.get_mut(other * self.strings + string)
                    && let Some(news) = history.adopt()
                {
                    self.findings.extend(self.finding(other, string, news));
                }
            }
        }
    }

    fn finding(&self, index: usize, string: usize, is_string: bool) -> Option<StringFinding> {
        let state = self.ids.get(index)?;
        let arguments = self.groups.get(state.group)?.layout.arguments.iter();
        let has_string = |argument: &RawArgument| match argument {
            RawArgument::Field(field) => field.string.is_some(),
            _ => false,
        };
        let mut strings = (0..)
            .zip(arguments)
            .filter(|(_, argument)| has_string(argument));
        let (argument, _) = strings.nth(string)?;
        let string = StringArgument {
            site: self.first.sample + index as u64,
            argument,
            is_string,
            address: None,
        };
        Some(StringFinding {
            string,
            since: state.first,
        })
    }
}

/// Whether a record has no waits because there was no room for its thread. The recorder's own threads get none.
fn lacks_waits(record: &[u8], layout: &RawLayout) -> bool {
    let waits = |at| ThreadWaits::decode(record.get(RAW..)?, at);
    layout.thread_waits.is_some_and(|at| waits(at).is_none())
        && u32_at(record, PROCESS) != Some(std::process::id())
}

/// Takes a record of the ring that has the callers, or what they are found from.
struct Taken<'a> {
    kind: EndKind,
    evidence: Evidence<'a>,
    used: &'a mut StackUse,
    /// For the sample without it.
    sample: &'a mut Vec<u8>,
}

impl Taken<'_> {
    /// Appends the sample. Returns whether it has a stack. Appends nothing, and returns `None`, if the record is not as long as it says.
    fn put(self, record: &[u8], group: &Group, out: &mut Vec<u8>) -> Option<bool> {
        let size = u32_at(record, END_SIZE)? as usize;
        let (record, end) = record.split_at_checked(record.len().checked_sub(size)?)?;
        self.sample.clear();
        if !compact::compact(record, group.shape(size), self.evidence, self.sample) {
            return None;
        }
        with_stack::put(self.sample, end, self.kind, out)?;
        if self.kind == EndKind::Chain && size > 0 {
            with_stack::count_frames(end, self.used);
        }
        Some(size > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_without_room_are_counted_but_not_those_of_the_recorder() {
        let layout = |thread_waits| RawLayout {
            id: 1,
            size: 36,
            missing: None,
            string_limit: 0,
            arguments: Vec::new(),
            listed: false,
            thread_context: None,
            thread_waits,
        };
        let record = |process: u32, word: u64| {
            let mut record = vec![0; RAW + 36];
            record[PROCESS..PROCESS + 4].copy_from_slice(&process.to_ne_bytes());
            for at in (RAW + 8..RAW + 32).step_by(8) {
                record[at..at + 8].copy_from_slice(&word.to_ne_bytes());
            }
            record
        };
        let lacks = |process, word, at| lacks_waits(&record(process, word), &layout(at));
        assert!(lacks(1, ThreadWaits::UNKNOWN, Some(8)));
        assert!(!lacks(1, 7, Some(8)));
        assert!(!lacks(1, ThreadWaits::UNKNOWN, None));
        assert!(!lacks(std::process::id(), ThreadWaits::UNKNOWN, Some(8)));
    }
}
