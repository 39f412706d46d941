//! The key of a group: what the hits of one group have in common, as the program writes it.
//!
//! First is what is known of the thread and the stack, as far as it is a key ([`KeyLayout`]). The raw part ([`RawLayout`](usdtrec_format::RawLayout))
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

use usdtrec_kernel::bpf::features::trials::fetches_and_exchanges;
use usdtrec_kernel::bpf::insn::{Assembler, Helper, Op, Reg, Width};
use usdtrec_kernel::host::cpus;
use usdtrec_kernel::{BpfRefusal, KernelError};

use super::number_layout::Measured;
use super::number_layout::NumberLayout;
use super::stack_layout::StackLayout;
use crate::aggregation::{AggregateKey, Aggregation};
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
        let mut measured = self.aggregation.measured.iter();
        measured.position(|measured| measured.is_duration)
    }

    /// Writes what is known of the thread to the key that begins at an offset from `R7`.
    pub(super) fn put_thread(&self, asm: &mut Assembler, start: i16) {
        let at = |offset: u32| start + offset as i16;
        if let Some(pid) = self.key.pid {
            asm.thread_and_process();
            asm.op_value(Op::ShiftRight, Reg::R0, 32);
            asm.store(Width::Word, Reg::R7, at(pid), Reg::R0);
        }
        if let Some(tid) = self.key.tid {
            asm.thread_and_process();
            asm.store(Width::Word, Reg::R7, at(tid), Reg::R0);
        }
        if let Some(uid) = self.key.uid {
            asm.call(Helper::UidGid);
            asm.store(Width::Word, Reg::R7, at(uid), Reg::R0);
        }
        if let Some(comm) = self.key.comm {
            asm.address(Reg::R1, Reg::R7, at(comm).into());
            asm.set(Reg::R2, COMM_BYTES.into());
            asm.call(Helper::Comm);
        }
        if let Some(cgroup) = self.key.cgroup {
            asm.call(Helper::CgroupId);
            asm.store(Width::Double, Reg::R7, at(cgroup), Reg::R0);
        }
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

/// Size of the name of a thread, bytes.
pub(super) const COMM_BYTES: u32 = 16;

/// Offsets in a key, bytes; `None` for what is no key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::bpf) struct KeyLayout {
    /// The name of the thread, 16 bytes.
    pub(super) comm: Option<u32>,
    /// The id of the control group (version 2), 8 bytes.
    pub(super) cgroup: Option<u32>,
    /// The number of the stack, 8 bytes.
    pub(super) stack: Option<u32>,
    /// The process, 4 bytes.
    pub(super) pid: Option<u32>,
    /// The thread, 4 bytes.
    pub(super) tid: Option<u32>,
    /// The user, 4 bytes.
    pub(super) uid: Option<u32>,
    /// The CPU, 4 bytes, if the programs of each have groups of their own.
    pub(super) cpu: Option<u32>,
    /// The raw part.
    pub(super) raw: u32,
}

impl KeyLayout {
    /// The layout of keys of these kinds.
    pub(in crate::engine::bpf) fn new(by: &[AggregateKey], is_of_cpu: bool) -> Self {
        let mut end = 0;
        let mut place_if = |is_there: bool, bytes: u32| {
            let at = is_there.then_some(end);
            end += if is_there { bytes } else { 0 };
            at
        };
        let mut place =
            |bytes: u32, is_it: fn(&AggregateKey) -> bool| place_if(by.iter().any(is_it), bytes);
        let about_group: fn(&AggregateKey) -> bool =
            |key| matches!(key, AggregateKey::Container | AggregateKey::Unit);
        let all = Self {
            comm: place(COMM_BYTES, |key| *key == AggregateKey::Comm),
            cgroup: place(8, about_group),
            stack: place(8, |key| *key == AggregateKey::Stack),
            pid: place(4, |key| *key == AggregateKey::Pid),
            tid: place(4, |key| *key == AggregateKey::Tid),
            uid: place(4, |key| *key == AggregateKey::Uid),
            cpu: place_if(is_of_cpu, 4),
            raw: 0,
        };
        Self {
            raw: end.next_multiple_of(8),
            ..all
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_a_key_takes_room() {
        assert_eq!(KeyLayout::new(&[], false).raw, 0);
        let argument = AggregateKey::Argument("a".to_owned());
        assert_eq!(
            KeyLayout::new(std::slice::from_ref(&argument), false),
            KeyLayout::default()
        );
        let by = [
            argument,
            AggregateKey::Pid,
            AggregateKey::Unit,
            AggregateKey::Comm,
            AggregateKey::Container,
        ];
        let layout = KeyLayout::new(&by, false);
        assert_eq!((layout.comm, layout.cgroup), (Some(0), Some(16)));
        assert_eq!((layout.pid, layout.tid, layout.raw), (Some(24), None, 32));
        let of_cpu = KeyLayout::new(&by, true);
        assert_eq!(
            (of_cpu.pid, of_cpu.cpu, of_cpu.raw),
            (Some(24), Some(28), 32)
        );
    }
}
