//! The programs of begins and of ends.
//!
//! Registers are those of other programs: `R7` is the record that is written, in an element of the map. While an end looks for its begin, `R9` is
//! the element of level 0, and `R8` a level.

use usdtrec_kernel::bpf::insn::{Helper, IS_NEW, If, Label, Map, Op, Reg, Width};

use super::super::aggregate::hit_counts::{HitCounts, HitWord};
use super::super::contract::Target;
use super::super::contract::rooms;
use super::super::control;
use super::super::program::builder::{Exits, Program};
use super::super::slots;
use super::entry::{BEYOND, DEPTH, FRAMES, IS_OF_THREAD, LEVELS, OWNED, SpanMemory};
use super::key::LEVEL;
use super::role::SpanRole;
use crate::plan::condition::Condition;

/// Offset of the size in the header of a record.
const SIZE: i16 = 6;

/// What comes after the begin of an ended span was removed from the map.
#[derive(Clone, Copy)]
#[repr(i32)]
pub(super) enum After {
    /// Nothing.
    Recorded,
    /// It is counted as one that was too short.
    Short,
    /// It is counted as lost.
    Lost,
    /// It is counted as one whose group has no room.
    Ungrouped,
}

impl Program<'_> {
    /// Writes what a hit is to a span, and ends the program.
    pub(in crate::engine::bpf) fn span(
        &mut self,
        memory: SpanMemory,
        role: &SpanRole,
        exits: Exits,
    ) {
        self.room = rooms(self.spec.layout).whole;
        self.longer = None;
        if let Some(condition) = self.spec.condition {
            self.note_excluded(condition);
        }
        self.in_span = true;
        if let Some(grouping) = &self.common.grouping {
            self.target = Target::key(grouping.key);
        }
        match role.begins {
            true => self.begin_span(memory, role, exits),
            false => self.end_span(memory, role, exits),
        }
        self.in_span = false;
        self.target = Target::RECORD;
    }

    /// Notes whether the filter excludes the hit. It is matched all the same: else an end would take the begin of another span.
    fn note_excluded(&mut self, condition: &Condition) {
        let (excluded, noted) = (self.asm.label(), self.asm.label());
        // SPAN_EXCLUDED = condition ? 0 : 1;
        if *condition != Condition::Never {
            self.filter(condition, excluded);
            self.asm
                .store_value(Width::Double, Reg::R10, slots::SPAN_EXCLUDED, 0);
            self.asm.jump(noted);
            self.asm.place(excluded);
        }
        self.asm
            .store_value(Width::Double, Reg::R10, slots::SPAN_EXCLUDED, 1);
        self.asm.place(noted);
    }

    /// Jumps to `excluded` if the filter excludes the hit. `R3` is lost.
    fn jump_if_excluded(&mut self, excluded: Label) {
        if self.spec.condition.is_some() {
            let asm = &mut self.asm;
            // if (SPAN_EXCLUDED) goto excluded;
            asm.load(Width::Double, Reg::R3, Reg::R10, slots::SPAN_EXCLUDED);
            asm.jump_if(If::NotEqual, Reg::R3, 0, excluded);
        }
    }

    /// `R1` = the time of a begin: that of the hit, or one at which no span is slow if the filter excludes it.
    fn time_of_begin(&mut self) {
        let (excluded, known) = (self.asm.label(), self.asm.label());
        // r1 = SPAN_EXCLUDED ? S64_MAX : NOW;
        self.jump_if_excluded(excluded);
        self.asm.load(Width::Double, Reg::R1, Reg::R10, slots::NOW);
        if self.spec.condition.is_some() {
            self.asm.jump(known);
            self.asm.place(excluded);
            self.asm.set(Reg::R1, i64::MAX);
        }
        self.asm.place(known);
    }

    /// Keeps the record of a begin.
    fn begin_span(&mut self, memory: SpanMemory, role: &SpanRole, exits: Exits) {
        let (again, full, deep) = (self.asm.label(), self.asm.label(), self.asm.label());
        let (lowest, full_level) = (self.asm.label(), self.asm.label());
        let unkeyed = self.asm.label();
        let gives_up = self.gives_up(role).is_some();
        self.begin_reads();
        self.asm.place(again);
        // span_key(unkeyed); SPAN_ELEMENT = find_element(full); take_element(SPAN_ELEMENT, full);
        self.span_key(role, unkeyed);
        self.find_element(Sought::lowest(memory, role), full);
        self.asm
            .store(Width::Double, Reg::R10, slots::SPAN_ELEMENT, Reg::R0);
        self.take_element(role, full);
        let asm = &mut self.asm;
        // element = SPAN_ELEMENT; if (element->DEPTH >= LEVELS) goto deep;
        asm.load(Width::Double, Reg::R1, Reg::R0, DEPTH);
        asm.jump_if(If::AtLeast, Reg::R1, LEVELS.cast_signed(), deep);
        if !gives_up {
            // One that began before has had no room: those above it are not kept, either.
            // if (element->BEYOND) goto full_level;
            asm.load(Width::Double, Reg::R2, Reg::R0, BEYOND);
            asm.jump_if(If::NotEqual, Reg::R2, 0, full_level);
        }
        // SPAN_LEVEL = element->DEPTH; r7 = element;
        asm.store(Width::Double, Reg::R10, slots::SPAN_LEVEL, Reg::R1);
        asm.copy(Reg::R7, Reg::R0);
        // if (SPAN_LEVEL) { SPAN_KEY.level = SPAN_LEVEL; r7 = find_element(full_level); }
        asm.jump_if(If::Equal, Reg::R1, 0, lowest);
        asm.store(Width::Word, Reg::R10, LEVEL, Reg::R1);
        self.find_element(Sought::above(role), full_level);
        let asm = &mut self.asm;
        asm.copy(Reg::R7, Reg::R0);
        // lowest: r7 += memory.begin_at(); write_record(r7);
        asm.place(lowest);
        asm.op_value(Op::Add, Reg::R7, memory.begin_at().cast_signed());
        self.write_record(memory, role);
        // r9 = SPAN_ELEMENT + SPAN_LEVEL * memory.frame(); *(u64 *)(r9 + FRAMES) = SPAN_EXCLUDED ? S64_MAX : NOW;
        self.load_frame(memory);
        self.time_of_begin();
        let asm = &mut self.asm;
        asm.store(Width::Double, Reg::R9, FRAMES as i16, Reg::R1);
        // memcpy(r9 + FRAMES + 8, SPAN_MARKS, 8 * (memory.marks + 1));
        if memory.marks > 0 {
            for word in 0..=memory.marks as i16 {
                asm.load(
                    Width::Double,
                    Reg::R1,
                    Reg::R10,
                    slots::SPAN_MARKS + 8 * word,
                );
                asm.store(
                    Width::Double,
                    Reg::R9,
                    FRAMES as i16 + 8 + 8 * word,
                    Reg::R1,
                );
            }
        }
        // SPAN_ELEMENT->DEPTH = SPAN_LEVEL + 1; leave_element(); count_span(Begun);
        asm.load(Width::Double, Reg::R9, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_LEVEL);
        asm.op_value(Op::Add, Reg::R1, 1);
        asm.store(Width::Double, Reg::R9, DEPTH, Reg::R1);
        self.leave_element();
        self.count_span(HitWord::Begun, exits);
        self.asm.place(deep);
        self.begin_too_deep(memory, role, exits);
        self.asm.place(full_level);
        self.begin_not_kept(memory, role, HitWord::Full, exits);
        // full: count_span(Full); unkeyed: count_span(Unkeyed);
        self.asm.place(full);
        self.count_span(HitWord::Full, exits);
        self.asm.place(unkeyed);
        self.count_span(HitWord::Unkeyed, exits);
        if !self.absent.is_empty() {
            self.bring_in_and_do_again(again, exits);
        }
    }

    /// Where begins that are given up are counted, if they are.
    fn gives_up(&self, role: &SpanRole) -> Option<HitCounts> {
        self.common.hit_counts.filter(|_| role.gives_up)
    }

    /// A begin above as many open spans of its key as are kept: ends the program.
    fn begin_too_deep(&mut self, memory: SpanMemory, role: &SpanRole, exits: Exits) {
        self.begin_not_kept(memory, role, HitWord::Deep, exits);
    }

    /// Makes sure that the end of a begin above open ones of its key takes none of them, counts it, and ends the program.
    fn begin_not_kept(&mut self, memory: SpanMemory, role: &SpanRole, word: HitWord, exits: Exits) {
        match self.gives_up(role) {
            // It may have no end: then those of later begins would never be matched again.
            Some(counts) => self.give_up(memory, role, counts, word, exits),
            None => self.begin_beyond(word, exits),
        }
    }

    /// Notes that the next end of the key is that of a begin which is not kept, counts the begin, and ends the program.
    fn begin_beyond(&mut self, word: HitWord, exits: Exits) {
        let asm = &mut self.asm;
        // SPAN_ELEMENT->BEYOND++; leave_element(); count_span(word);
        asm.load(Width::Double, Reg::R2, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R1, Reg::R2, BEYOND);
        asm.op_value(Op::Add, Reg::R1, 1);
        asm.store(Width::Double, Reg::R2, BEYOND, Reg::R1);
        self.leave_element();
        self.count_span(word, exits);
    }

    /// Finds the begin of an end, and records both if the span was slow.
    fn end_span(&mut self, memory: SpanMemory, role: &SpanRole, exits: Exits) {
        let (again, found) = (self.asm.label(), self.asm.label());
        let (unmatched, shallow) = (self.asm.label(), self.asm.label());
        let (slow, removal) = (self.asm.label(), self.asm.label());
        let (unfound, unkeyed) = (self.asm.label(), self.asm.label());
        self.begin_reads();
        self.asm.place(again);
        // span_key(unkeyed); SPAN_ELEMENT = bpf_map_lookup_elem(&Spans, &SPAN_KEY); if (!SPAN_ELEMENT) goto unmatched;
        self.span_key(role, unkeyed);
        let asm = &mut self.asm;
        asm.call_map(Helper::MapLookup, Map::Spans, slots::SPAN_KEY);
        asm.jump_if(If::Equal, Reg::R0, 0, unmatched);
        asm.store(Width::Double, Reg::R10, slots::SPAN_ELEMENT, Reg::R0);
        // take_element(SPAN_ELEMENT, unmatched); if (!element->BEYOND) goto shallow;
        self.take_element(role, unmatched);
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R1, Reg::R0, BEYOND);
        asm.jump_if(If::Equal, Reg::R1, 0, shallow);
        // The newest one is of those that have no record.
        // element->BEYOND--; leave_element(); count_span(DeepEnd);
        asm.op_value(Op::Add, Reg::R1, -1);
        asm.store(Width::Double, Reg::R0, BEYOND, Reg::R1);
        self.leave_element();
        self.count_span(HitWord::DeepEnd, exits);
        let asm = &mut self.asm;
        // shallow: if (!element->DEPTH) goto unfound;
        asm.place(shallow);
        asm.load(Width::Double, Reg::R1, Reg::R0, DEPTH);
        asm.jump_if(If::Equal, Reg::R1, 0, unfound);
        if role.must_agree && !role.agreed.is_empty() {
            // write_end(); if (find_equal() || find_compatible()) goto found; goto unfound;
            self.write_end(memory, role);
            self.newest_level();
            self.find_equal(memory, role, found);
            self.newest_level();
            self.find_compatible(memory, role, found);
            self.asm.jump(unfound);
        } else {
            self.newest_begin(memory, role, exits);
        }
        // found: r1 = duration(); if (SPAN_EXCLUDED) goto short; if ((s64)r1 >= memory.least) goto slow;
        self.asm.place(found);
        self.duration(memory);
        let short = self.asm.label();
        self.jump_if_excluded(short);
        let asm = &mut self.asm;
        asm.set(Reg::R2, memory.least.cast_signed());
        asm.jump_if_reg(If::AtLeastSigned, Reg::R1, Reg::R2, slow);
        // short: SPAN_AFTER = Short; goto removal; slow: add_span() or put_span();
        asm.place(short);
        self.then_remove(After::Short, removal);
        self.asm.place(slow);
        match &self.common.grouping {
            Some(grouping) => self.add_span(memory, role, grouping, removal),
            None => self.put_span(memory, role, removal),
        }
        self.asm.place(removal);
        self.end_removal(memory, role, exits);
        // unfound: leave_element(); unmatched: count_span(Unmatched); unkeyed: count_span(Unkeyed);
        self.asm.place(unfound);
        self.leave_element();
        self.asm.place(unmatched);
        self.count_span(HitWord::Unmatched, exits);
        self.asm.place(unkeyed);
        self.count_span(HitWord::Unkeyed, exits);
        if !self.absent.is_empty() {
            self.bring_in_and_do_again(again, exits);
        }
    }

    /// Removes the begin of an end, counts the end, and ends the program.
    fn end_removal(&mut self, memory: SpanMemory, role: &SpanRole, exits: Exits) {
        if let Some(counts) = self.common.hit_counts {
            self.store_unfinished();
            self.remove_levels(memory, role);
            return self.count_ended(counts, exits);
        }
        self.remove_levels(memory, role);
        let short = self.asm.label();
        let asm = &mut self.asm;
        // if (SPAN_AFTER == Lost) goto dropped; if (SPAN_AFTER == Short) goto short; goto out;
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_AFTER);
        asm.jump_if(If::Equal, Reg::R1, After::Lost as i32, exits.dropped);
        asm.jump_if(If::Equal, Reg::R1, After::Short as i32, short);
        asm.jump(exits.out);
        // short: count_span(Short);
        asm.place(short);
        self.count_span(HitWord::Short, exits);
    }

    /// `R8` = the level of the newest open begin, `R9` = the element of level 0; an end that is equal to an older begin is counted.
    fn newest_begin(&mut self, memory: SpanMemory, role: &SpanRole, exits: Exits) {
        if role.agreed.is_empty() {
            let asm = &mut self.asm;
            // NOW = bpf_ktime_get_ns();
            asm.call(Helper::KtimeNs);
            asm.store(Width::Double, Reg::R10, slots::NOW, Reg::R0);
        } else {
            self.write_end(memory, role);
            self.count_older(memory, role, exits);
        }
        self.newest_level();
    }

    /// Counts an end whose value is known and is that of an older begin, and of no newer one.
    fn count_older(&mut self, memory: SpanMemory, role: &SpanRole, exits: Exits) {
        let (equal, done) = (self.asm.label(), self.asm.label());
        // if (!SPAN_MARKS[0]) goto done; if (find_equal()) goto equal; goto done;
        self.asm
            .load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_MARKS);
        self.asm.jump_if(If::Equal, Reg::R1, 0, done);
        self.newest_level();
        self.find_equal(memory, role, equal);
        self.asm.jump(done);
        // equal: if (r9->DEPTH - 1 == r8) goto done;
        self.asm.place(equal);
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R1, Reg::R9, DEPTH);
        asm.op_value(Op::Add, Reg::R1, -1);
        asm.jump_if_reg(If::Equal, Reg::R1, Reg::R8, done);
        match self.common.hit_counts {
            Some(counts) => {
                // __sync_fetch_and_add(hit_word(Older), 1);
                self.hit_word(counts, HitWord::Older, exits);
                self.asm.increment(Reg::R1);
            }
            None => self.asm.count(control::OLDER_ENDS),
        }
        self.asm.place(done);
    }

    /// Counts a hit, and ends the program.
    pub(super) fn count_span(&mut self, word: HitWord, exits: Exits) {
        if let Some(counts) = self.common.hit_counts {
            // __sync_fetch_and_add(hit_word(word), 1); goto out;
            self.hit_word(counts, word, exits);
            self.asm.increment(Reg::R1);
            return self.asm.jump(exits.out);
        }
        let counted = match word {
            HitWord::Short => control::SHORT_SPANS,
            HitWord::Full => control::FULL_SPANS,
            HitWord::Deep => control::DEEP_SPANS,
            HitWord::Unmatched => control::UNMATCHED_ENDS,
            HitWord::Unkeyed => return self.asm.jump(exits.dropped),
            _ => return self.asm.jump(exits.out),
        };
        // __sync_fetch_and_add(&Control[counted], 1); goto out;
        self.asm.count(counted);
        self.asm.jump(exits.out);
    }

    /// Puts the records of begin and end into the ring.
    fn put_span(&mut self, memory: SpanMemory, role: &SpanRole, removal: Label) {
        let lost = self.asm.label();
        if role.agreed.is_empty() {
            self.write_end(memory, role);
        }
        // find_ring(lost); put_begin(lost); put_end(lost); SPAN_AFTER = Recorded; goto removal;
        self.find_ring(lost);
        self.put_begin(memory, lost);
        self.put_end(memory, lost);
        self.then_remove(After::Recorded, removal);
        // lost: SPAN_AFTER = Lost; goto removal;
        self.asm.place(lost);
        self.then_remove(After::Lost, removal);
    }

    /// `R0` = the element of the key, which is added if there is none; jumps to `full` if there is no room.
    fn find_element(&mut self, sought: Sought, full: Label) {
        let asm = &mut self.asm;
        let found = asm.label();
        // r0 = bpf_map_lookup_elem(&Spans, &SPAN_KEY); if (r0) goto found;
        asm.call_map(Helper::MapLookup, Map::Spans, slots::SPAN_KEY);
        asm.jump_if(If::NotEqual, Reg::R0, 0, found);
        // bpf_map_update_elem(&Spans, &SPAN_KEY, SpanZeros, BPF_NOEXIST);
        asm.set_map_value(Reg::R3, Map::SpanZeros, 0);
        asm.set(Reg::R4, IS_NEW);
        asm.call_map(Helper::MapUpdate, Map::Spans, slots::SPAN_KEY);
        // r0 = bpf_map_lookup_elem(&Spans, &SPAN_KEY); if (!r0) goto full;
        asm.call_map(Helper::MapLookup, Map::Spans, slots::SPAN_KEY);
        asm.jump_if(If::Equal, Reg::R0, 0, full);
        if sought.is_of_thread {
            // r0->OWNED = IS_OF_THREAD;
            asm.store_value(Width::Double, Reg::R0, OWNED, IS_OF_THREAD);
        }
        if let Some(room) = sought.room {
            self.add_to_room(room, -1);
        }
        self.asm.place(found);
    }

    /// Adds to the room for elements that stay. `R1` and `R2` are lost.
    fn add_to_room(&mut self, room: u32, number: i64) {
        let asm = &mut self.asm;
        // __sync_fetch_and_add(&SpanZeros[room], number);
        asm.set_map_value(Reg::R1, Map::SpanZeros, room);
        asm.set(Reg::R2, number);
        asm.atomic_add(Reg::R1, 0, Reg::R2);
    }

    /// Writes the record of the hit at `R7`, and its marks.
    fn write_record(&mut self, memory: SpanMemory, role: &SpanRole) {
        if let Some(grouping) = &self.common.grouping {
            return self.write_key(memory, role, grouping);
        }
        let asm = &mut self.asm;
        // CPU = bpf_get_smp_processor_id();
        asm.call(Helper::CpuId);
        asm.store(Width::Word, Reg::R10, slots::CPU, Reg::R0);
        self.clear_strings(&role.agreed);
        self.head();
        self.arguments();
        if memory.marks > 0 {
            self.marks(&role.agreed, memory.marks);
        }
    }

    /// Writes the record of an end into the element of level 0.
    fn write_end(&mut self, memory: SpanMemory, role: &SpanRole) {
        let asm = &mut self.asm;
        // r7 = SPAN_ELEMENT + memory.end_at();
        asm.load(Width::Double, Reg::R7, Reg::R10, slots::SPAN_ELEMENT);
        asm.op_value(Op::Add, Reg::R7, memory.end_at().cast_signed());
        self.write_record(memory, role);
    }

    /// `R8` = the newest level, `R9` = the element of level 0.
    fn newest_level(&mut self) {
        let asm = &mut self.asm;
        // r9 = SPAN_ELEMENT; r8 = r9->DEPTH - 1;
        asm.load(Width::Double, Reg::R9, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R8, Reg::R9, DEPTH);
        asm.op_value(Op::Add, Reg::R8, -1);
    }

    /// `R9` = the element of level 0 plus the offset of its level.
    fn load_frame(&mut self, memory: SpanMemory) {
        let asm = &mut self.asm;
        // r9 = SPAN_ELEMENT + (SPAN_LEVEL & (LEVELS - 1)) * memory.frame();
        asm.load(Width::Double, Reg::R9, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_LEVEL);
        asm.op_value(Op::And, Reg::R1, LEVELS.cast_signed() - 1);
        asm.op_value(Op::Multiply, Reg::R1, memory.frame().cast_signed());
        asm.op(Op::Add, Reg::R9, Reg::R1);
    }

    /// `to` = the element of level 0 at `R9` plus the offset of level `R8`.
    fn frame_of_level(&mut self, memory: SpanMemory, to: Reg) {
        let asm = &mut self.asm;
        // to = r9 + (r8 & (LEVELS - 1)) * memory.frame();
        asm.copy(Reg::R1, Reg::R8);
        asm.op_value(Op::And, Reg::R1, LEVELS.cast_signed() - 1);
        asm.op_value(Op::Multiply, Reg::R1, memory.frame().cast_signed());
        asm.copy(to, Reg::R9);
        asm.op(Op::Add, to, Reg::R1);
    }

    /// Jumps to `found` with the newest level in `R8` whose arguments are those of the end.
    fn find_equal(&mut self, memory: SpanMemory, role: &SpanRole, found: Label) {
        let none = self.asm.label();
        for _ in 0..LEVELS {
            let other = self.asm.label();
            // if ((s64)r8 < 0) goto none; r2 = frame_of_level(r8);
            self.asm.jump_if(If::BelowSigned, Reg::R8, 0, none);
            self.frame_of_level(memory, Reg::R2);
            let asm = &mut self.asm;
            // if (!memcmp(r2 + FRAMES + 8, SPAN_MARKS, 8 * (agreed.len() + 1))) goto found;
            for word in 0..=role.agreed.len() as i16 {
                asm.load(
                    Width::Double,
                    Reg::R3,
                    Reg::R2,
                    FRAMES as i16 + 8 + 8 * word,
                );
                asm.load(
                    Width::Double,
                    Reg::R4,
                    Reg::R10,
                    slots::SPAN_MARKS + 8 * word,
                );
                asm.jump_if_reg(If::NotEqual, Reg::R3, Reg::R4, other);
            }
            asm.jump(found);
            // other: r8--;
            asm.place(other);
            asm.op_value(Op::Add, Reg::R8, -1);
        }
        self.asm.place(none);
    }

    /// Jumps to `found` with the newest level in `R8` without a known difference, of those of which an argument is not known on one of both sides.
    fn find_compatible(&mut self, memory: SpanMemory, role: &SpanRole, found: Label) {
        let none = self.asm.label();
        let all = (1 << role.agreed.len()) - 1;
        for _ in 0..LEVELS {
            let other = self.asm.label();
            // if ((s64)r8 < 0) goto none; r2 = frame_of_level(r8);
            self.asm.jump_if(If::BelowSigned, Reg::R8, 0, none);
            self.frame_of_level(memory, Reg::R2);
            let asm = &mut self.asm;
            // known = *(u64 *)(r2 + FRAMES + 8) & SPAN_MARKS[0]; if (known == all) goto other;
            asm.load(Width::Double, Reg::R3, Reg::R2, FRAMES as i16 + 8);
            asm.load(Width::Double, Reg::R4, Reg::R10, slots::SPAN_MARKS);
            asm.op(Op::And, Reg::R3, Reg::R4);
            asm.jump_if(If::Equal, Reg::R3, all, other);
            for number in 0..role.agreed.len() as i16 {
                let same = asm.label();
                // if (known & 1 << number && *(u64 *)(r2 + FRAMES + 8 + word) != SPAN_MARKS[number + 1]) goto other;
                asm.copy(Reg::R4, Reg::R3);
                asm.op_value(Op::And, Reg::R4, 1 << number);
                asm.jump_if(If::Equal, Reg::R4, 0, same);
                let word = 8 * (number + 1);
                asm.load(Width::Double, Reg::R4, Reg::R2, FRAMES as i16 + 8 + word);
                asm.load(Width::Double, Reg::R5, Reg::R10, slots::SPAN_MARKS + word);
                asm.jump_if_reg(If::NotEqual, Reg::R4, Reg::R5, other);
                asm.place(same);
            }
            // goto found; other: r8--;
            asm.jump(found);
            asm.place(other);
            asm.op_value(Op::Add, Reg::R8, -1);
        }
        self.asm.place(none);
    }

    /// `R1` = how long the span of level `R8` lasted, ns. The level is stored in its slot. What is to be done with spans that end begins here.
    fn duration(&mut self, memory: SpanMemory) {
        let asm = &mut self.asm;
        // SPAN_LEVEL = r8 & (LEVELS - 1); r1 = NOW - *(u64 *)(frame_of_level(r8) + FRAMES);
        asm.op_value(Op::And, Reg::R8, LEVELS.cast_signed() - 1);
        asm.store(Width::Double, Reg::R10, slots::SPAN_LEVEL, Reg::R8);
        self.frame_of_level(memory, Reg::R2);
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R2, Reg::R2, FRAMES as i16);
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::NOW);
        asm.op(Op::Sub, Reg::R1, Reg::R2);
    }

    /// `R7` = the record of the begin.
    pub(super) fn load_begin(&mut self, memory: SpanMemory, lost: Label) {
        let lowest = self.asm.label();
        let asm = &mut self.asm;
        // r7 = SPAN_ELEMENT; if (!SPAN_LEVEL) goto lowest;
        asm.load(Width::Double, Reg::R7, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_LEVEL);
        asm.jump_if(If::Equal, Reg::R1, 0, lowest);
        // SPAN_KEY.level = SPAN_LEVEL; r7 = bpf_map_lookup_elem(&Spans, &SPAN_KEY); if (!r7) goto lost;
        asm.store(Width::Word, Reg::R10, LEVEL, Reg::R1);
        asm.call_map(Helper::MapLookup, Map::Spans, slots::SPAN_KEY);
        asm.jump_if(If::Equal, Reg::R0, 0, lost);
        asm.copy(Reg::R7, Reg::R0);
        // lowest: r7 += memory.begin_at();
        asm.place(lowest);
        asm.op_value(Op::Add, Reg::R7, memory.begin_at().cast_signed());
    }

    /// Puts the record of the begin into the ring.
    fn put_begin(&mut self, memory: SpanMemory, lost: Label) {
        self.load_begin(memory, lost);
        let asm = &mut self.asm;
        // r3 = *(u16 *)(r7 + SIZE); if (r3 > memory.begin) goto lost; put_record(r7, r3);
        asm.load(Width::Half, Reg::R3, Reg::R7, SIZE);
        asm.jump_if(If::Above, Reg::R3, memory.begin.cast_signed(), lost);
        asm.copy(Reg::R2, Reg::R7);
        self.put_record(lost);
    }

    /// Puts the record of the end into the ring.
    fn put_end(&mut self, memory: SpanMemory, lost: Label) {
        let bytes = self.room.record;
        let asm = &mut self.asm;
        // put_record(SPAN_ELEMENT + memory.end_at(), room.record);
        asm.load(Width::Double, Reg::R2, Reg::R10, slots::SPAN_ELEMENT);
        asm.op_value(Op::Add, Reg::R2, memory.end_at().cast_signed());
        asm.set(Reg::R3, bytes as i64);
        self.put_record(lost);
    }

    /// Puts the `R3` bytes at `R2` into the ring; jumps to `lost` if they have no room.
    fn put_record(&mut self, lost: Label) {
        let asm = &mut self.asm;
        // if (bpf_ringbuf_output(RING, r2, r3, 0)) goto lost;
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::RING);
        asm.set(Reg::R4, 0);
        asm.call(Helper::RingOutput);
        asm.jump_if(If::NotEqual, Reg::R0, 0, lost);
    }

    /// Removes the begin, and then does what `after` says.
    pub(super) fn then_remove(&mut self, after: After, removal: Label) {
        let asm = &mut self.asm;
        // SPAN_AFTER = after; goto removal;
        asm.store_value(Width::Double, Reg::R10, slots::SPAN_AFTER, after as i32);
        asm.jump(removal);
    }

    /// Removes the level of the begin, and those above, from the map. The element of level 0 of a thread stays as long as there is room for such ones.
    pub(super) fn remove_levels(&mut self, memory: SpanMemory, role: &SpanRole) {
        let (done, kept) = (self.asm.label(), self.asm.label());
        let removed = self.asm.label();
        let asm = &mut self.asm;
        // r9 = SPAN_ELEMENT; r8 = r9->DEPTH; r7 = SPAN_LEVEL; if (r8 <= 1) goto done;
        asm.load(Width::Double, Reg::R9, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R8, Reg::R9, DEPTH);
        asm.load(Width::Double, Reg::R7, Reg::R10, slots::SPAN_LEVEL);
        asm.jump_if(If::AtMost, Reg::R8, 1, done);
        for level in (1..LEVELS.cast_signed()).rev() {
            let other = asm.label();
            // if (r8 <= level) goto other; if (r7 > level) goto done;
            asm.jump_if(If::AtMost, Reg::R8, level, other);
            asm.jump_if(If::Above, Reg::R7, level, done);
            // SPAN_KEY.level = level; bpf_map_delete_elem(&Spans, &SPAN_KEY);
            asm.store_value(Width::Word, Reg::R10, LEVEL, level);
            asm.call_map(Helper::MapDelete, Map::Spans, slots::SPAN_KEY);
            asm.place(other);
        }
        // done: r9->DEPTH = r7; if (r7) goto kept;
        asm.place(done);
        asm.store(Width::Double, Reg::R9, DEPTH, Reg::R7);
        asm.jump_if(If::NotEqual, Reg::R7, 0, kept);
        if role.is_of_thread() {
            // if ((s64)SpanZeros[room] >= 0) goto removed;
            asm.set_map_value(Reg::R1, Map::SpanZeros, memory.room_at());
            asm.load(Width::Double, Reg::R1, Reg::R1, 0);
            asm.jump_if(If::AtLeastSigned, Reg::R1, 0, removed);
        }
        // The program still has it: another one must not take what is removed.
        // SPAN_KEY.level = 0; r0 = bpf_map_delete_elem(&Spans, &SPAN_KEY);
        asm.store_value(Width::Word, Reg::R10, LEVEL, 0);
        asm.call_map(Helper::MapDelete, Map::Spans, slots::SPAN_KEY);
        if role.is_of_thread() {
            // if (r0) goto removed; __sync_fetch_and_add(&SpanZeros[room], 1);
            self.asm.jump_if(If::NotEqual, Reg::R0, 0, removed);
            self.add_to_room(memory.room_at(), 1);
        }
        // goto removed; kept: leave_element();
        self.asm.jump(removed);
        self.asm.place(kept);
        self.leave_element();
        self.asm.place(removed);
    }
}

/// The element of a key that is sought, or added.
#[derive(Clone, Copy)]
struct Sought {
    /// Whether it is of a thread alone.
    is_of_thread: bool,
    /// The word with the room from which it is taken.
    room: Option<u32>,
}

impl Sought {
    /// The element of level 0.
    fn lowest(memory: SpanMemory, role: &SpanRole) -> Self {
        Self {
            is_of_thread: role.is_of_thread(),
            room: role.is_of_thread().then(|| memory.room_at()),
        }
    }

    /// The element of another level.
    fn above(role: &SpanRole) -> Self {
        Self {
            is_of_thread: role.is_of_thread(),
            room: None,
        }
    }
}
