//! Programs that count hits by group.
//!
//! A key is too long for the stack of a program. It is written to a slot of a map that the program takes for so long: a program can be preempted, and
//! the next one on this CPU takes another slot.

use usdtrec_format::raw::StringField;
use usdtrec_kernel::bpf::insn::{Assembler, Helper, IS_NEW, If, Label, Map, Op, Reg, Width};

use super::super::contract::rooms;
use super::super::contract::{Cookie, Target};
use super::super::control;
use super::super::program::builder::{Exits, Program};
use super::super::slots;
use super::group_map::ELEMENT_NUMBER;
use super::grouping::{Grouping, KEY};
use super::hit_counts::{HitCounts, HitWord};
use super::thread_keys::KeyLayout;

impl Target {
    /// The key in the slot at `R7`.
    pub(in crate::engine::bpf) const fn key(layout: KeyLayout) -> Self {
        Self {
            base: Reg::R7,
            offset: KEY + layout.raw as i16,
        }
    }
}

impl Program<'_> {
    /// Counts the hit in its group, or at its site if it has no place in one, and ends the program.
    pub(super) fn group_hit(&mut self, grouping: &Grouping, counts: HitCounts, exits: Exits) {
        let (again, full, ungrouped) = (self.asm.label(), self.asm.label(), self.asm.label());
        self.target = Target::key(grouping.key);
        self.room = rooms(self.spec.layout).whole;
        self.longer = None;
        self.begin_reads();
        self.asm.place(again);
        self.take_slot(grouping, ungrouped);
        self.begin_key(grouping);
        self.end_key(grouping);
        self.put_stack(grouping, full);
        self.find_group(grouping, full);
        self.add_numbers(grouping);
        // __sync_fetch_and_add(&group->hits, 1); leave_slot(); goto out;
        self.asm.increment(Reg::R0);
        self.leave_slot();
        self.asm.jump(exits.out);
        // full: leave_slot(); ungrouped: count_hit();
        self.asm.place(full);
        self.leave_slot();
        self.asm.place(ungrouped);
        self.count_hit(counts, exits);
        if !self.absent.is_empty() {
            self.bring_in_and_do_again(again, exits);
        }
        self.target = Target::RECORD;
    }

    /// Writes what is known of the hit to the slot at `R7`. The target is [`Target::key`].
    pub(in crate::engine::bpf) fn begin_key(&mut self, grouping: &Grouping) {
        let asm = &mut self.asm;
        // memset(slot->key, 0, grouping.bytes);
        for word in (0..grouping.bytes).step_by(8) {
            asm.store_value(Width::Double, Reg::R7, KEY + word as i16, 0);
        }
        grouping.key.put_thread(asm, KEY);
        // key->raw.common_type = cookie >> EVENT_AT;
        self.cookie();
        let asm = &mut self.asm;
        asm.op_value(Op::ShiftRight, Reg::R0, Cookie::EVENT_AT as i32);
        self.put(Width::Half, 0, Reg::R0);
        self.arguments();
    }

    /// Makes the key of what [`begin_key`](Self::begin_key) has written: all that is no key is 0 in it.
    pub(in crate::engine::bpf) fn end_key(&mut self, grouping: &Grouping) {
        self.take_numbers(grouping);
        if grouping.has_arguments() {
            for string in self.spec.layout.string_fields() {
                self.forget_address(string);
            }
            self.clear_others();
        }
    }

    /// Removes the address of a string that was read: equal strings have one key, wherever they are.
    fn forget_address(&mut self, StringField { address, string }: StringField) {
        let unread = self.asm.label();
        // if ((s16)string->status >= 0) key->address = 0;
        self.string_length(string, unread);
        self.put_value(Width::from_bytes(address.size), address.offset, 0);
        self.asm.place(unread);
    }

    /// `R7` = a slot of the CPU's row that no other program has; jumps to `none` if there is none.
    fn take_slot(&mut self, grouping: &Grouping, none: Label) {
        let taken = self.asm.label();
        for slot in 0..grouping.slots_of_row() {
            // slot = find_slot(slot, none);
            self.find_slot(grouping, slot, none);
            let asm = &mut self.asm;
            asm.copy(Reg::R7, Reg::R0);
            if grouping.is_of_cpu() {
                return;
            }
            // if (__sync_fetch_and_add(&slot->programs, 1) == 0) goto taken; __sync_fetch_and_add(&slot->programs, -1);
            asm.set(Reg::R1, 1);
            asm.atomic_fetch_add(Reg::R7, 0, Reg::R1);
            asm.jump_if(If::Equal, Reg::R1, 0, taken);
            self.leave_slot();
        }
        self.asm.jump(none);
        self.asm.place(taken);
    }

    /// `R0` = a slot of the CPU's row, whose number is in the slot of keys of arrays; jumps to `none` if there is none.
    fn find_slot(&mut self, grouping: &Grouping, slot: u32, none: Label) {
        let asm = &mut self.asm;
        // KEY = (bpf_get_smp_processor_id() & (rows - 1)) * slots_of_row + slot;
        asm.call(Helper::CpuId);
        asm.op_value(Op::And, Reg::R0, grouping.rows.cast_signed() - 1);
        asm.op_value(Op::Multiply, Reg::R0, grouping.slots_of_row().cast_signed());
        asm.op_value(Op::Add, Reg::R0, slot.cast_signed());
        asm.store(Width::Word, Reg::R10, slots::KEY, Reg::R0);
        // r0 = bpf_map_lookup_elem(&KeySlots, &KEY); if (!r0) goto none;
        asm.call_map(Helper::MapLookup, Map::KeySlots, slots::KEY);
        asm.jump_if(If::Equal, Reg::R0, 0, none);
    }

    /// Leaves the slot at `R7`.
    pub(in crate::engine::bpf) fn leave_slot(&mut self) {
        let grouping = self.common.grouping.as_ref();
        if grouping.is_some_and(Grouping::is_of_cpu) {
            return;
        }
        let asm = &mut self.asm;
        // __sync_fetch_and_add(&slot->programs, -1);
        asm.set(Reg::R1, -1);
        asm.atomic_add(Reg::R7, 0, Reg::R1);
    }

    /// `R0` = the address of the element of the group with the key in the slot; jumps to `full` if the map has no room for it.
    pub(in crate::engine::bpf) fn find_group(&mut self, grouping: &Grouping, full: Label) {
        let asm = &mut self.asm;
        let found = asm.label();
        if let Some(cpu) = grouping.key.cpu {
            // key->cpu = bpf_get_smp_processor_id();
            asm.call(Helper::CpuId);
            asm.store(Width::Word, Reg::R7, KEY + cpu as i16, Reg::R0);
        }
        let lookup = |asm: &mut Assembler| {
            // group = bpf_map_lookup_elem(&HitGroups, key);
            asm.set_map(Reg::R1, Map::HitGroups);
            asm.address(Reg::R2, Reg::R7, KEY.into());
            asm.call(Helper::MapLookup);
        };
        lookup(asm);
        // if (group) goto found; NEW_GROUP = { .hits = 0, .number = next_number() };
        asm.jump_if(If::NotEqual, Reg::R0, 0, found);
        asm.store_value(Width::Double, Reg::R10, slots::NEW_GROUP, 0);
        if !grouping.numbers.is_empty() {
            self.next_number(grouping, full);
            let number = slots::NEW_GROUP + ELEMENT_NUMBER;
            self.asm.store(Width::Double, Reg::R10, number, Reg::R2);
        }
        let asm = &mut self.asm;
        // bpf_map_update_elem(&HitGroups, key, &NEW_GROUP, BPF_NOEXIST);
        asm.set_map(Reg::R1, Map::HitGroups);
        asm.address(Reg::R2, Reg::R7, KEY.into());
        asm.address(Reg::R3, Reg::R10, slots::NEW_GROUP.into());
        asm.set(Reg::R4, IS_NEW);
        asm.call(Helper::MapUpdate);
        // Another CPU may have added it.
        // group = bpf_map_lookup_elem(&HitGroups, key); if (!group) goto full;
        lookup(asm);
        asm.jump_if(If::Equal, Reg::R0, 0, full);
        asm.place(found);
    }

    /// `R2` = a place among the numbers that no other group has; jumps to `none` if there is none.
    fn next_number(&mut self, grouping: &Grouping, none: Label) {
        if !grouping.is_of_cpu() {
            let asm = &mut self.asm;
            // r2 = __sync_fetch_and_add(&FirstControl[GROUPS], 1);
            asm.set_map_value(Reg::R1, Map::FirstControl, control::GROUPS);
            asm.set(Reg::R2, 1);
            return asm.atomic_fetch_add(Reg::R1, 0, Reg::R2);
        }
        // The CPU's slot counts those that it has given: each CPU has one of so many places.
        // slot = find_slot(0, none); r2 = (*(u64 *)slot)++ * rows + KEY;
        self.find_slot(grouping, 0, none);
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R2, Reg::R0, 0);
        asm.address(Reg::R1, Reg::R2, 1);
        asm.store(Width::Double, Reg::R0, 0, Reg::R1);
        asm.op_value(Op::Multiply, Reg::R2, grouping.rows.cast_signed());
        asm.load(Width::Word, Reg::R1, Reg::R10, slots::KEY);
        asm.op(Op::Add, Reg::R2, Reg::R1);
    }
}

impl Program<'_> {
    /// Counts the hit, and ends the program.
    pub(in crate::engine::bpf) fn aggregate(&mut self, counts: HitCounts, exits: Exits) {
        match &self.common.grouping {
            Some(grouping) => self.group_hit(grouping, counts, exits),
            None => self.count_hit(counts, exits),
        }
    }

    /// Counts the hit at its site, and ends the program.
    pub(super) fn count_hit(&mut self, counts: HitCounts, exits: Exits) {
        self.hit_word(counts, HitWord::Ungrouped, exits);
        let asm = &mut self.asm;
        // __sync_fetch_and_add((u64 *)r1, 1); goto out;
        asm.increment(Reg::R1);
        asm.jump(exits.out);
    }

    /// `R1` = the address of a word of the site. `R7` is lost, as what calls lose.
    pub(in crate::engine::bpf) fn hit_word(
        &mut self,
        counts: HitCounts,
        word: HitWord,
        exits: Exits,
    ) {
        let HitCounts {
            first, row, rows, ..
        } = counts;
        // index = cookie & ((1 << INDEX_BITS) - 1); if (index >= ids) goto dropped; r7 = index * id_bytes;
        self.load_index();
        let ids = self.common.ids.cast_signed();
        let asm = &mut self.asm;
        asm.jump_if(If::AtLeast, Reg::R0, ids, exits.dropped);
        asm.copy(Reg::R7, Reg::R0);
        asm.op_value(Op::Multiply, Reg::R7, counts.id_bytes().cast_signed());
        // r1 = &Control[first + 8 * word + r7 + (bpf_get_smp_processor_id() & (rows - 1)) * row];
        asm.call(Helper::CpuId);
        asm.op_value(Op::And, Reg::R0, rows.cast_signed() - 1);
        asm.op_value(Op::Multiply, Reg::R0, row.cast_signed());
        asm.set_map_value(Reg::R1, Map::Control, first + 8 * word as u32);
        asm.op(Op::Add, Reg::R1, Reg::R7);
        asm.op(Op::Add, Reg::R1, Reg::R0);
    }
}
