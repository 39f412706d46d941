//! The programs of begins and of ends.
//!
//! Registers are those of other programs: `R7` is the record that is written, in an element of the map. While an end looks for its begin, `R9` is
//! the element of level 0, and `R8` a level.

use usdtrec_kernel::bpf::insn::{Helper, If, Label, Map, Op, Reg, Width};

use super::super::aggregate::hit_counts::HitWord;
use super::super::contract::Target;
use super::super::contract::rooms;
use super::super::control;
use super::super::program::builder::{Exits, Program};
use super::super::slots;
use super::entry::{BEYOND, DEPTH, FRAMES, IS_OF_THREAD, LEVELS, OWNED, SpanMemory};
use super::key::LEVEL;
use super::role::SpanRole;
use crate::plan::condition::Condition;

/// `BPF_NOEXIST`.
const IS_NEW: i64 = 1;
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
            asm.load(Width::Double, Reg::R3, Reg::R10, slots::SPAN_EXCLUDED);
            asm.jump_if(If::NotEqual, Reg::R3, 0, excluded);
        }
    }

    /// `R1` = the time of a begin: that of the hit, or one at which no span is slow if the filter excludes it.
    fn time_of_begin(&mut self) {
        let (excluded, known) = (self.asm.label(), self.asm.label());
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
        self.begin_reads();
        self.asm.place(again);
        self.span_key(role, unkeyed);
        self.find_element(Sought::lowest(memory, role), full);
        self.asm
            .store(Width::Double, Reg::R10, slots::SPAN_ELEMENT, Reg::R0);
        self.take_element(role, full);
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R1, Reg::R0, DEPTH);
        asm.jump_if(If::AtLeast, Reg::R1, LEVELS.cast_signed(), deep);
        asm.store(Width::Double, Reg::R10, slots::SPAN_LEVEL, Reg::R1);
        asm.copy(Reg::R7, Reg::R0);
        asm.jump_if(If::Equal, Reg::R1, 0, lowest);
        asm.store(Width::Word, Reg::R10, LEVEL, Reg::R1);
        self.find_element(Sought::above(role), full_level);
        let asm = &mut self.asm;
        asm.copy(Reg::R7, Reg::R0);
        asm.place(lowest);
        asm.op_value(Op::Add, Reg::R7, memory.begin_at().cast_signed());
        self.write_record(memory, role);
        self.load_frame(memory);
        self.time_of_begin();
        let asm = &mut self.asm;
        asm.store(Width::Double, Reg::R9, FRAMES as i16, Reg::R1);
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
        asm.load(Width::Double, Reg::R9, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_LEVEL);
        asm.op_value(Op::Add, Reg::R1, 1);
        asm.store(Width::Double, Reg::R9, DEPTH, Reg::R1);
        self.leave_element();
        self.count_span(HitWord::Begun, exits);
        self.asm.place(deep);
        match self.common.hit_counts.filter(|_| role.gives_up) {
            Some(counts) => self.give_up(memory, role, counts, exits),
            None => {
                let asm = &mut self.asm;
                asm.load(Width::Double, Reg::R1, Reg::R0, BEYOND);
                asm.op_value(Op::Add, Reg::R1, 1);
                asm.store(Width::Double, Reg::R0, BEYOND, Reg::R1);
                self.leave_element();
                self.count_span(HitWord::Deep, exits);
            }
        }
        self.asm.place(full_level);
        self.leave_element();
        self.asm.place(full);
        self.count_span(HitWord::Full, exits);
        self.asm.place(unkeyed);
        self.count_span(HitWord::Unkeyed, exits);
        if !self.absent.is_empty() {
            self.bring_in_and_do_again(again, exits);
        }
    }

    /// Finds the begin of an end, and records both if the span was slow.
    fn end_span(&mut self, memory: SpanMemory, role: &SpanRole, exits: Exits) {
        let (again, found) = (self.asm.label(), self.asm.label());
        let (unmatched, shallow) = (self.asm.label(), self.asm.label());
        let (slow, removal) = (self.asm.label(), self.asm.label());
        let (unfound, unkeyed) = (self.asm.label(), self.asm.label());
        self.begin_reads();
        self.asm.place(again);
        self.span_key(role, unkeyed);
        let asm = &mut self.asm;
        asm.call_map(Helper::MapLookup, Map::Spans, slots::SPAN_KEY);
        asm.jump_if(If::Equal, Reg::R0, 0, unmatched);
        asm.store(Width::Double, Reg::R10, slots::SPAN_ELEMENT, Reg::R0);
        self.take_element(role, unmatched);
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R1, Reg::R0, BEYOND);
        asm.jump_if(If::Equal, Reg::R1, 0, shallow);
        // The newest one is of those that have no record.
        asm.op_value(Op::Add, Reg::R1, -1);
        asm.store(Width::Double, Reg::R0, BEYOND, Reg::R1);
        self.leave_element();
        self.count_span(HitWord::DeepEnd, exits);
        let asm = &mut self.asm;
        asm.place(shallow);
        asm.load(Width::Double, Reg::R1, Reg::R0, DEPTH);
        asm.jump_if(If::Equal, Reg::R1, 0, unfound);
        if role.must_agree && !role.agreed.is_empty() {
            self.write_end(memory, role);
            self.newest_level();
            self.find_equal(memory, role, found);
            self.newest_level();
            self.find_compatible(memory, role, found);
            self.asm.jump(unfound);
        } else {
            self.newest_begin(memory, role, exits);
        }
        self.asm.place(found);
        self.duration(memory);
        let short = self.asm.label();
        self.jump_if_excluded(short);
        let asm = &mut self.asm;
        asm.set(Reg::R2, memory.least.cast_signed());
        asm.jump_if_reg(If::AtLeastSigned, Reg::R1, Reg::R2, slow);
        asm.place(short);
        self.then_remove(After::Short, removal);
        self.asm.place(slow);
        match &self.common.grouping {
            Some(grouping) => self.add_span(memory, role, grouping, removal),
            None => self.put_span(memory, role, removal),
        }
        self.asm.place(removal);
        match self.common.hit_counts {
            Some(counts) => {
                self.store_unfinished();
                self.remove_levels(memory, role);
                self.count_ended(counts, exits);
            }
            None => {
                self.remove_levels(memory, role);
                let short = self.asm.label();
                let asm = &mut self.asm;
                asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_AFTER);
                asm.jump_if(If::Equal, Reg::R1, After::Lost as i32, exits.dropped);
                asm.jump_if(If::Equal, Reg::R1, After::Short as i32, short);
                asm.jump(exits.out);
                asm.place(short);
                self.count_span(HitWord::Short, exits);
            }
        }
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

    /// `R8` = the level of the newest open begin, `R9` = the element of level 0; an end that is equal to an older begin is counted.
    fn newest_begin(&mut self, memory: SpanMemory, role: &SpanRole, exits: Exits) {
        if role.agreed.is_empty() {
            let asm = &mut self.asm;
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
        self.asm
            .load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_MARKS);
        self.asm.jump_if(If::Equal, Reg::R1, 0, done);
        self.newest_level();
        self.find_equal(memory, role, equal);
        self.asm.jump(done);
        self.asm.place(equal);
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R1, Reg::R9, DEPTH);
        asm.op_value(Op::Add, Reg::R1, -1);
        asm.jump_if_reg(If::Equal, Reg::R1, Reg::R8, done);
        match self.common.hit_counts {
            Some(counts) => {
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
        self.asm.count(counted);
        self.asm.jump(exits.out);
    }

    /// Puts the records of begin and end into the ring.
    fn put_span(&mut self, memory: SpanMemory, role: &SpanRole, removal: Label) {
        let lost = self.asm.label();
        if role.agreed.is_empty() {
            self.write_end(memory, role);
        }
        self.find_ring(lost);
        self.put_begin(memory, lost);
        self.put_end(memory, lost);
        self.then_remove(After::Recorded, removal);
        self.asm.place(lost);
        self.then_remove(After::Lost, removal);
    }

    /// `R0` = the element of the key, which is added if there is none; jumps to `full` if there is no room.
    fn find_element(&mut self, sought: Sought, full: Label) {
        let asm = &mut self.asm;
        let found = asm.label();
        asm.call_map(Helper::MapLookup, Map::Spans, slots::SPAN_KEY);
        asm.jump_if(If::NotEqual, Reg::R0, 0, found);
        asm.set_map(Reg::R1, Map::Spans);
        asm.address(Reg::R2, Reg::R10, slots::SPAN_KEY.into());
        asm.set_map_value(Reg::R3, Map::SpanZeros, 0);
        asm.set(Reg::R4, IS_NEW);
        asm.call(Helper::MapUpdate);
        asm.call_map(Helper::MapLookup, Map::Spans, slots::SPAN_KEY);
        asm.jump_if(If::Equal, Reg::R0, 0, full);
        if sought.is_of_thread {
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
        asm.load(Width::Double, Reg::R7, Reg::R10, slots::SPAN_ELEMENT);
        asm.op_value(Op::Add, Reg::R7, memory.end_at().cast_signed());
        self.write_record(memory, role);
    }

    /// `R8` = the newest level, `R9` = the element of level 0.
    fn newest_level(&mut self) {
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R9, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R8, Reg::R9, DEPTH);
        asm.op_value(Op::Add, Reg::R8, -1);
    }

    /// `R9` = the element of level 0 plus the offset of its level.
    fn load_frame(&mut self, memory: SpanMemory) {
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R9, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_LEVEL);
        asm.op_value(Op::And, Reg::R1, LEVELS.cast_signed() - 1);
        asm.op_value(Op::Multiply, Reg::R1, memory.frame().cast_signed());
        asm.op(Op::Add, Reg::R9, Reg::R1);
    }

    /// `to` = the element of level 0 at `R9` plus the offset of level `R8`.
    fn frame_of_level(&mut self, memory: SpanMemory, to: Reg) {
        let asm = &mut self.asm;
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
            self.asm.jump_if(If::BelowSigned, Reg::R8, 0, none);
            self.frame_of_level(memory, Reg::R2);
            let asm = &mut self.asm;
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
            self.asm.jump_if(If::BelowSigned, Reg::R8, 0, none);
            self.frame_of_level(memory, Reg::R2);
            let asm = &mut self.asm;
            asm.load(Width::Double, Reg::R3, Reg::R2, FRAMES as i16 + 8);
            asm.load(Width::Double, Reg::R4, Reg::R10, slots::SPAN_MARKS);
            asm.op(Op::And, Reg::R3, Reg::R4);
            asm.jump_if(If::Equal, Reg::R3, all, other);
            for number in 0..role.agreed.len() as i16 {
                let same = asm.label();
                asm.copy(Reg::R4, Reg::R3);
                asm.op_value(Op::And, Reg::R4, 1 << number);
                asm.jump_if(If::Equal, Reg::R4, 0, same);
                let word = 8 * (number + 1);
                asm.load(Width::Double, Reg::R4, Reg::R2, FRAMES as i16 + 8 + word);
                asm.load(Width::Double, Reg::R5, Reg::R10, slots::SPAN_MARKS + word);
                asm.jump_if_reg(If::NotEqual, Reg::R4, Reg::R5, other);
                asm.place(same);
            }
            asm.jump(found);
            asm.place(other);
            asm.op_value(Op::Add, Reg::R8, -1);
        }
        self.asm.place(none);
    }

    /// `R1` = how long the span of level `R8` lasted, ns. The level is stored in its slot. What is to be done with spans that end begins here.
    fn duration(&mut self, memory: SpanMemory) {
        let asm = &mut self.asm;
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
        asm.load(Width::Double, Reg::R7, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::SPAN_LEVEL);
        asm.jump_if(If::Equal, Reg::R1, 0, lowest);
        asm.store(Width::Word, Reg::R10, LEVEL, Reg::R1);
        asm.call_map(Helper::MapLookup, Map::Spans, slots::SPAN_KEY);
        asm.jump_if(If::Equal, Reg::R0, 0, lost);
        asm.copy(Reg::R7, Reg::R0);
        asm.place(lowest);
        asm.op_value(Op::Add, Reg::R7, memory.begin_at().cast_signed());
    }

    /// Puts the record of the begin into the ring.
    fn put_begin(&mut self, memory: SpanMemory, lost: Label) {
        self.load_begin(memory, lost);
        let asm = &mut self.asm;
        asm.load(Width::Half, Reg::R3, Reg::R7, SIZE);
        asm.jump_if(If::Above, Reg::R3, memory.begin.cast_signed(), lost);
        asm.copy(Reg::R2, Reg::R7);
        self.put_record(lost);
    }

    /// Puts the record of the end into the ring.
    fn put_end(&mut self, memory: SpanMemory, lost: Label) {
        let bytes = self.room.record;
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R2, Reg::R10, slots::SPAN_ELEMENT);
        asm.op_value(Op::Add, Reg::R2, memory.end_at().cast_signed());
        asm.set(Reg::R3, bytes as i64);
        self.put_record(lost);
    }

    /// Puts the `R3` bytes at `R2` into the ring; jumps to `lost` if they have no room.
    fn put_record(&mut self, lost: Label) {
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R1, Reg::R10, slots::RING);
        asm.set(Reg::R4, 0);
        asm.call(Helper::RingOutput);
        asm.jump_if(If::NotEqual, Reg::R0, 0, lost);
    }

    /// Removes the begin, and then does what `after` says.
    pub(super) fn then_remove(&mut self, after: After, removal: Label) {
        let asm = &mut self.asm;
        asm.store_value(Width::Double, Reg::R10, slots::SPAN_AFTER, after as i32);
        asm.jump(removal);
    }

    /// Removes the level of the begin, and those above, from the map. The element of level 0 of a thread stays as long as there is room for such ones.
    pub(super) fn remove_levels(&mut self, memory: SpanMemory, role: &SpanRole) {
        let (done, kept) = (self.asm.label(), self.asm.label());
        let removed = self.asm.label();
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R9, Reg::R10, slots::SPAN_ELEMENT);
        asm.load(Width::Double, Reg::R8, Reg::R9, DEPTH);
        asm.load(Width::Double, Reg::R7, Reg::R10, slots::SPAN_LEVEL);
        asm.jump_if(If::AtMost, Reg::R8, 1, done);
        for level in (1..LEVELS.cast_signed()).rev() {
            let other = asm.label();
            asm.jump_if(If::AtMost, Reg::R8, level, other);
            asm.jump_if(If::Above, Reg::R7, level, done);
            asm.store_value(Width::Word, Reg::R10, LEVEL, level);
            asm.call_map(Helper::MapDelete, Map::Spans, slots::SPAN_KEY);
            asm.place(other);
        }
        asm.place(done);
        asm.store(Width::Double, Reg::R9, DEPTH, Reg::R7);
        asm.jump_if(If::NotEqual, Reg::R7, 0, kept);
        if role.is_of_thread() {
            asm.set_map_value(Reg::R1, Map::SpanZeros, memory.room_at());
            asm.load(Width::Double, Reg::R1, Reg::R1, 0);
            asm.jump_if(If::AtLeastSigned, Reg::R1, 0, removed);
        }
        // The program still has it: another one must not take what is removed.
        asm.store_value(Width::Word, Reg::R10, LEVEL, 0);
        asm.call_map(Helper::MapDelete, Map::Spans, slots::SPAN_KEY);
        if role.is_of_thread() {
            self.asm.jump_if(If::NotEqual, Reg::R0, 0, removed);
            self.add_to_room(memory.room_at(), 1);
        }
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
