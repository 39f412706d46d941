//! The key of a group: what the hits of one group have in common, as the program writes it.
//!
//! First is what is known of the thread and the stack, as far as it is a key ([`KeyLayout`](super::thread_keys)). The raw part ([`RawLayout`](usdtrec_format::RawLayout))
//! follows, whose `common_type` says of which event it is, with the arguments that are keys; addresses of strings are 0. After it is room for the strings.
//!
//! All that is not written is 0, so that equal hits have equal keys. If no key is an argument, it ends after the first word of the raw part: the rest would be 0.
//!
//! A program makes it in a slot, which has room for all of the raw part. There, the numbers of the hit follow it, and a word for the number of a bucket.
//! If a key is the stack, that is found in the words after these ([`stack_layout`](super::stack_layout)).
//!
//! Before Linux 5.12 (arm64: 5.18) a program can add to a word, but neither learn what was there nor exchange it. It is not preempted there:
//! `__uprobe_perf_func` disables preemption from Linux 5.7 to 5.19, and a program does not begin within another one. So the CPU is part of the key: no two
//! programs change the numbers of one group at a time, and those of all CPUs are added up outside.

use usdtrec_format::TimePart;
use usdtrec_kernel::bpf::features::trials::fetches_and_exchanges;
use usdtrec_kernel::host::cpus;
use usdtrec_kernel::{BpfRefusal, KernelError};

use super::number_layout::Measured;
use super::number_layout::NumberLayout;
use super::stack_layout::StackLayout;
use super::thread_keys::KeyLayout;
use crate::aggregation::{AggregateKey, Aggregation, SpanNumber};
use crate::chosen;
use crate::error::RecordError;
use crate::plan::call_graph::CallGraph;

/// Size of what the raw part begins with, bytes.
const FIRST_WORD: u32 = 8;

/// Maximum size of a key, bytes. Older kernels refuse maps whose keys have more than 512.
const MAX_BYTES: usize = 2048;
/// Size of a raw part with its strings if no probe is known when the recording begins, bytes.
const BYTES: usize = 456;
/// Maximum number of measured arguments.
const MAX_MEASURED: usize = 8;

/// Offset of the key in a slot, after the number of programs that have it or try to take it.
pub(super) const KEY: i16 = 8;
/// Slots of a row: programs on one CPU that are preempted at a time. Hits beyond are counted in no group.
pub(super) const SLOTS: u32 = 4;
/// Maximum size of all slots, bytes. More CPUs share rows.
const MAX_SLOT_BYTES: u32 = 4 << 20;

/// How programs group hits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct Grouping {
    pub aggregation: Aggregation,
    /// Where a key has what is known of the thread, and the raw part.
    pub key: KeyLayout,
    /// How stacks are found; `None` if they are no key.
    pub stacks: Option<StackLayout>,
    /// Size of a key, bytes, a multiple of 8.
    pub bytes: u32,
    /// Room for a key in a slot, with all of the raw part, bytes, a multiple of 8.
    pub room: u32,
    /// Number of rows of slots, a power of two: CPUs use different ones.
    pub rows: u32,
    /// Where a group has its numbers.
    pub numbers: NumberLayout,
}

impl Grouping {
    /// How hits of these events are grouped, and those of events that are added if their keys are not longer and their numbers not wider; `None` if
    /// they are only counted.
    ///
    /// # Errors
    /// [`BpfRefusal::LongKeys`], [`BpfRefusal::TooManyMeasured`].
    pub(in crate::engine::bpf) fn new(
        aggregation: &Aggregation,
        graph: Option<CallGraph>,
        events: &EventNeeds<'_>,
    ) -> Result<Option<Self>, RecordError> {
        if aggregation.by.is_empty() && aggregation.measured.is_empty() {
            return Ok(None);
        }
        if aggregation.measured.len() > MAX_MEASURED {
            return Err(KernelError::NoBpf(BpfRefusal::TooManyMeasured).into());
        }
        if aggregation.has_cgroup() {
            chosen::hierarchy()?;
        }
        let key = KeyLayout::new(&aggregation.by, !fetches_and_exchanges());
        let raw = events.longest_raw.unwrap_or(BYTES);
        let room = (key.raw as usize + raw).min(MAX_BYTES) as u32;
        let is_argument = |key: &AggregateKey| matches!(key, AggregateKey::Argument(_));
        let bytes = match aggregation.by.iter().any(is_argument) {
            true => room,
            false => key.raw + FIRST_WORD,
        };
        let numbers = NumberLayout::new(aggregation, &events.measured);
        let graph = graph.filter(|_| aggregation.has_stack());
        let mut all = Self {
            aggregation: aggregation.clone(),
            key,
            stacks: graph.map(StackLayout::new),
            bytes,
            room,
            rows: 1,
            numbers,
        };
        all.check(events)?;
        let last = cpus::possible().unwrap_or_default().last().copied();
        all.rows = all.rows_for(last.map_or(1, |last| last.saturating_add(1)));
        Ok(Some(all))
    }

    /// The rows for so many CPUs.
    fn rows_for(&self, cpus: u32) -> u32 {
        if self.is_of_cpu() {
            return cpus.next_power_of_two();
        }
        let most = MAX_SLOT_BYTES / (SLOTS * self.slot_bytes());
        let most = 1 << most.max(1).ilog2();
        cpus.min(most).next_power_of_two()
    }

    /// Checks that keys of these events are not too long, and their numbers not too wide.
    ///
    /// # Errors
    /// [`BpfRefusal::LongKeys`], [`BpfRefusal::WideNumbers`].
    pub(in crate::engine::bpf) fn check(&self, events: &EventNeeds<'_>) -> Result<(), RecordError> {
        let room = (self.room - self.key.raw) as usize;
        if events.longest_raw.is_some_and(|bytes| bytes > room) {
            return Err(KernelError::NoBpf(BpfRefusal::LongKeys).into());
        }
        let mut measured = events.measured.iter();
        match measured.all(|measured| self.numbers.fits(measured)) {
            true => Ok(()),
            false => Err(KernelError::NoBpf(BpfRefusal::WideNumbers).into()),
        }
    }

    /// Whether each CPU has groups of its own, and a row with one slot: programs cannot fetch and exchange words, and are not preempted.
    pub(super) const fn is_of_cpu(&self) -> bool {
        self.key.cpu.is_some()
    }

    /// Number of slots of a row.
    pub(super) const fn slots_of_row(&self) -> u32 {
        if self.is_of_cpu() { 1 } else { SLOTS }
    }

    /// Offset in a slot of the number of a measured argument.
    pub(in crate::engine::bpf) const fn number_at(&self, place: usize) -> i16 {
        KEY + self.room as i16 + 8 * place as i16
    }

    /// Offset in a slot of the word for the number of a bucket.
    pub(super) fn bucket_at(&self) -> i16 {
        self.number_at(self.numbers.len() as usize)
    }

    /// Offset in a slot of the stack.
    pub(super) fn stack_at(&self) -> i16 {
        self.bucket_at() + 8
    }

    /// Size of a slot, bytes.
    pub(in crate::engine::bpf) fn slot_bytes(&self) -> u32 {
        self.stack_at() as u32 + self.stacks.map_or(0, StackLayout::bytes)
    }

    /// Whether keys have arguments.
    pub(in crate::engine::bpf) const fn has_arguments(&self) -> bool {
        self.bytes == self.room
    }

    /// The place of the duration of spans among the numbers.
    pub(in crate::engine::bpf) fn duration_place(&self) -> Option<usize> {
        self.place_of(SpanNumber::Duration)
    }

    /// The place of the first part of the time of spans among the numbers. The others follow it, in the order of [`TimePart::ALL`].
    pub(in crate::engine::bpf) fn parts_place(&self) -> Option<usize> {
        self.place_of(SpanNumber::Part(TimePart::OnCpu))
    }

    fn place_of(&self, number: SpanNumber) -> Option<usize> {
        let mut measured = self.aggregation.measured.iter();
        measured.position(|measured| measured.of_span == Some(number))
    }
}

/// What events need of keys and numbers.
#[derive(Clone, Debug, Default)]
pub(in crate::engine::bpf) struct EventNeeds<'a> {
    /// Size of the longest raw part with its strings, bytes, a multiple of 8; `None` if there are no events.
    pub(super) longest_raw: Option<usize>,
    /// The measured arguments of each event.
    pub(super) measured: Vec<&'a [Measured]>,
}
