//! What programs do with spans that are aggregated.
//!
//! The element of a begin has the key of its group in a slot. The end writes the duration there, and adds it to the numbers of the group.

use usdtrec_format::ThreadWaits;
use usdtrec_kernel::bpf::insn::{Helper, If, Label, Op, Reg, Width};

use super::super::aggregate::grouping::Grouping;
use super::super::aggregate::hit_counts::{HitCounts, HitWord};
use super::super::control;
use super::super::program::builder::{Exits, Program};
use super::super::slots;
use super::super::wait_sums::element::sums_of_current;
use super::entry::{DEPTH, SpanMemory};
use super::program::After;
use super::role::{SpanRole, SpanTask};

/// Slot of the duration, or of the number of unfinished spans. The marks of the hit are not needed any more.
const NUMBER: i16 = slots::SPAN_MARKS;

/// `ThreadWaits::UNKNOWN`, sign-extended.
const UNKNOWN: i32 = -1;

/// Whether begin and end are of one thread.
fn has_parts(role: &SpanRole) -> bool {
    role.task == SpanTask::Thread
}

/// Offsets of the waits among the numbers in a slot, after the time on CPUs, and of their sums in what is kept of a thread.
fn waits(grouping: &Grouping, place: usize) -> Vec<(i16, i16)> {
    let waits = 0..ThreadWaits::NAMES.len();
    let offset = |wait| (grouping.number_at(place + 1 + wait), 8 * wait as i16);
    waits.map(offset).collect()
}

impl Program<'_> {
    /// Writes the time, the key and the marks of the hit to the slot at `R7`.
    pub(super) fn write_key(&mut self, memory: SpanMemory, role: &SpanRole, grouping: &Grouping) {
        let asm = &mut self.asm;
        // NOW = bpf_ktime_get_ns();
        asm.call(Helper::KtimeNs);
        asm.store(Width::Double, Reg::R10, slots::NOW, Reg::R0);
        if !grouping.has_arguments() {
            self.clear_strings(&role.agreed);
        }
        self.begin_key(grouping);
        if memory.marks > 0 {
            self.marks(&role.agreed, memory.marks);
        }
        if role.begins {
            self.end_key(grouping);
            self.store_waits(role, grouping);
        }
    }

    /// Stores how long the thread has waited so far, with the numbers of the begin at `R7`.
    fn store_waits(&mut self, role: &SpanRole, grouping: &Grouping) {
        let Some(place) = grouping.parts_place().filter(|_| has_parts(role)) else {
            return;
        };
        let (unknown, stored) = (self.asm.label(), self.asm.label());
        let asm = &mut self.asm;
        // sums = bpf_map_lookup_elem(&wait_sums, &tid); if (!sums) goto unknown;
        sums_of_current(asm, self.common.recorder, unknown);
        // begin->number[…] = sums->…;
        for (number, sum) in waits(grouping, place) {
            asm.load(Width::Double, Reg::R1, Reg::R0, sum);
            asm.store(Width::Double, Reg::R7, number, Reg::R1);
        }
        asm.jump(stored);
        // unknown: Control[UNKNOWN_WAITS]++; begin->number[…] = -1;
        asm.place(unknown);
        asm.count(control::UNKNOWN_WAITS);
        for (number, _) in waits(grouping, place) {
            asm.store_value(Width::Double, Reg::R7, number, UNKNOWN);
        }
        asm.place(stored);
    }

    /// Makes what [`store_waits`](Self::store_waits) has stored at `R7` the parts of the span, or unknown.
    fn parts(&mut self, role: &SpanRole, grouping: &Grouping) {
        let Some(place) = grouping.parts_place().filter(|_| has_parts(role)) else {
            return;
        };
        let (unknown, known) = (self.asm.label(), self.asm.label());
        let on_cpu = grouping.number_at(place);
        let asm = &mut self.asm;
        // if (begin->number[runnable] == -1) goto unknown;
        asm.load(Width::Double, Reg::R1, Reg::R7, on_cpu + 8);
        asm.jump_if(If::Equal, Reg::R1, UNKNOWN, unknown);
        // sums = bpf_map_lookup_elem(&wait_sums, &tid); if (!sums) goto unknown;
        sums_of_current(asm, self.common.recorder, unknown);
        // begin->number[…] = sums->… - begin->number[…]; waited += begin->number[…];
        asm.set(Reg::R3, 0);
        for (number, sum) in waits(grouping, place) {
            asm.load(Width::Double, Reg::R1, Reg::R0, sum);
            asm.load(Width::Double, Reg::R2, Reg::R7, number);
            asm.op(Op::Sub, Reg::R1, Reg::R2);
            asm.store(Width::Double, Reg::R7, number, Reg::R1);
            asm.op(Op::Add, Reg::R3, Reg::R1);
        }
        // begin->number[oncpu] = duration - waited; if (waited <= duration) goto known;
        asm.load(Width::Double, Reg::R1, Reg::R10, NUMBER);
        asm.copy(Reg::R2, Reg::R1);
        asm.op(Op::Sub, Reg::R2, Reg::R3);
        asm.store(Width::Double, Reg::R7, on_cpu, Reg::R2);
        asm.jump_if_reg(If::AtMost, Reg::R3, Reg::R1, known);
        // unknown: begin->number[…] = -1;
        asm.place(unknown);
        asm.store_value(Width::Double, Reg::R7, on_cpu, UNKNOWN);
        for (number, _) in waits(grouping, place) {
            asm.store_value(Width::Double, Reg::R7, number, UNKNOWN);
        }
        asm.place(known);
    }

    /// Adds the span of the level in its slot, whose duration is in `R1`, to its group. What is to be done then is in its slot.
    pub(super) fn add_span(
        &mut self,
        memory: SpanMemory,
        role: &SpanRole,
        grouping: &Grouping,
        removal: Label,
    ) {
        let full = self.asm.label();
        // NUMBER = duration;
        self.asm.store(Width::Double, Reg::R10, NUMBER, Reg::R1);
        self.load_begin(memory, full);
        let asm = &mut self.asm;
        if let Some(place) = grouping.duration_place() {
            // slot->numbers[place] = NUMBER;
            asm.load(Width::Double, Reg::R1, Reg::R10, NUMBER);
            asm.store(Width::Double, Reg::R7, grouping.number_at(place), Reg::R1);
        }
        self.parts(role, grouping);
        self.find_group(grouping, full);
        self.add_numbers(grouping);
        // __sync_fetch_and_add(&group->hits, 1); SPAN_AFTER = Recorded; goto removal;
        self.asm.increment(Reg::R0);
        self.then_remove(After::Recorded, removal);
        // full: SPAN_AFTER = Ungrouped; goto removal;
        self.asm.place(full);
        self.then_remove(After::Ungrouped, removal);
    }

    /// Stores how many spans began within the one of the level in its slot, and have not ended.
    pub(super) fn store_unfinished(&mut self) {
        let asm = &mut self.asm;
        // r9 = SPAN_ELEMENT; NUMBER = r9->DEPTH - SPAN_LEVEL - 1;
        asm.load(Width::Double, Reg::R9, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R1, Reg::R9, DEPTH);
        asm.load(Width::Double, Reg::R2, Reg::R10, slots::SPAN_LEVEL);
        asm.op(Op::Sub, Reg::R1, Reg::R2);
        asm.op_value(Op::Sub, Reg::R1, 1);
        asm.store(Width::Double, Reg::R10, NUMBER, Reg::R1);
    }

    /// Counts the span that ended, and those within it that have not, and ends the program.
    pub(super) fn count_ended(&mut self, counts: HitCounts, exits: Exits) {
        let (all, ungrouped) = (self.asm.label(), self.asm.label());
        // __sync_fetch_and_add(hit_word(Ended), 1); if (!NUMBER) goto all;
        self.hit_word(counts, HitWord::Ended, exits);
        let asm = &mut self.asm;
        asm.increment(Reg::R1);
        asm.load(Width::Double, Reg::R1, Reg::R10, NUMBER);
        asm.jump_if(If::Equal, Reg::R1, 0, all);
        // __sync_fetch_and_add(hit_word(Unfinished), NUMBER);
        self.hit_word(counts, HitWord::Unfinished, exits);
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R2, Reg::R10, NUMBER);
        asm.atomic_add(Reg::R1, 0, Reg::R2);
        // all: if (SPAN_AFTER == Ungrouped) goto ungrouped; if (SPAN_AFTER != Short) goto out;
        asm.place(all);
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_AFTER);
        asm.jump_if(If::Equal, Reg::R1, After::Ungrouped as i32, ungrouped);
        asm.jump_if(If::NotEqual, Reg::R1, After::Short as i32, exits.out);
        // count_span(Short); ungrouped: count_span(UngroupedEnd);
        self.count_span(HitWord::Short, exits);
        self.asm.place(ungrouped);
        self.count_span(HitWord::UngroupedEnd, exits);
    }

    /// Gives up all open spans of the key, counts the begin in `word` as one that is not kept, and ends the program.
    pub(super) fn give_up(
        &mut self,
        memory: SpanMemory,
        role: &SpanRole,
        counts: HitCounts,
        word: HitWord,
        exits: Exits,
    ) {
        let asm = &mut self.asm;
        // NUMBER = SPAN_ELEMENT->DEPTH; SPAN_LEVEL = 0; remove_levels();
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R1, Reg::R1, DEPTH);
        asm.store(Width::Double, Reg::R10, NUMBER, Reg::R1);
        asm.store_value(Width::Double, Reg::R10, slots::SPAN_LEVEL, 0);
        self.remove_levels(memory, role);
        // __sync_fetch_and_add(hit_word(Unfinished), NUMBER); count_span(word);
        self.hit_word(counts, HitWord::Unfinished, exits);
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R2, Reg::R10, NUMBER);
        asm.atomic_add(Reg::R1, 0, Reg::R2);
        self.count_span(word, exits);
    }
}
