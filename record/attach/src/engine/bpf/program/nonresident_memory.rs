//! Memory that is not resident.
//!
//! Nothing waits while a record is reserved, because later records wait with it: reads do not fault. If one fails, the program discards
//! the record, brings the memory in as far as [`Touch`] allows, and starts again with the reservation ([`Program::bring_in_or_fail`]): with whole room
//! for the strings, so that the verifier has only one record to follow for each read that may have failed.
//!
//! Each read is tried again at most once. Filters are evaluated before the reservation. So reads of resident memory
//! cost no additional instruction, and a page fault delays only the thread that caused it.

use usdtrec_kernel::bpf::insn::{If, Label, Op, Reg, Width};
use usdtrec_kernel::bpf::preemption;

use super::super::contract::Target;
use super::super::nonresident::Touch;
use super::super::slots::{
    ABSENT, ABSENT_BYTES, IDS, NOT_MAPPED, READS, SPAN_EXCLUDED, STACK_SIZE,
};
use super::builder::{Exits, Program};

/// Maximum number of reads of a program for which memory is faulted in.
const MAX_READS: u8 = 63;

/// Number of bytes to fault in.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::bpf) enum Bytes {
    /// A constant.
    Number(i32),
    /// The value of `R2`.
    InR2,
}

impl Program<'_> {
    /// Stores that no read has been tried again yet.
    pub(in crate::engine::bpf) fn begin_reads(&mut self) {
        // READS = 0; NOT_MAPPED = 0;
        self.asm.store_value(Width::Double, Reg::R10, READS, 0);
        self.asm.store_value(Width::Double, Reg::R10, NOT_MAPPED, 0);
    }

    /// After a read at `R9` that failed: faults in `bytes` bytes and starts again. If this has been done already, or is not allowed,
    /// jumps to `gone`, with 1 in `R1` if nothing is mapped there, or 0 if the memory is not resident.
    ///
    /// Reads are retried in their order, each at most once. So the number of restarts is bounded, and the verifier
    /// need not consider each set of reads that may have failed.
    pub(in crate::engine::bpf) fn bring_in_or_fail(&mut self, bytes: Bytes, gone: Label) {
        if self.common.touch == Touch::Never || self.reads == MAX_READS {
            // r1 = 0; goto gone;
            self.asm.set(Reg::R1, 0);
            self.asm.jump(gone);
            return;
        }
        let read = i32::from(self.reads);
        let asm = &mut self.asm;
        // The record with whole room has the same reads as the short one.
        if self.absent.len() <= self.reads.into() {
            self.absent.push(asm.label());
        }
        let absent = self.absent[usize::from(self.reads)];
        self.reads += 1;
        let tried = asm.label();
        // ABSENT_BYTES = bytes; ABSENT = r9; if (READS <= read) goto absent;
        match bytes {
            Bytes::Number(bytes) => {
                asm.store_value(Width::Double, Reg::R10, ABSENT_BYTES, bytes);
            }
            Bytes::InR2 => asm.store(Width::Double, Reg::R10, ABSENT_BYTES, Reg::R2),
        }
        asm.store(Width::Double, Reg::R10, ABSENT, Reg::R9);
        asm.load(Width::Double, Reg::R1, Reg::R10, READS);
        asm.jump_if(If::Above, Reg::R1, read, tried);
        asm.jump(absent);
        // tried: r1 = NOT_MAPPED >> read & 1; goto gone;
        asm.place(tried);
        asm.load(Width::Double, Reg::R1, Reg::R10, NOT_MAPPED);
        asm.op_value(Op::ShiftRight, Reg::R1, read);
        asm.op_value(Op::And, Reg::R1, 1);
        asm.jump(gone);
    }

    /// Of each read: discards the record, or leaves the slot of the key, that values are written to (an element of the map of spans stays), faults in the memory that could not be read, and continues at
    /// `again`.
    ///
    /// The number of the read is a constant here. If it came from before the call, kernels before 6.5 could not follow it over the call, would
    /// take each number of each register for one that matters, and exceed the limit of verified instructions.
    pub(in crate::engine::bpf) fn bring_in_and_do_again(&mut self, again: Label, exits: Exits) {
        self.brings_in = true;
        let has_record = self.target == Target::RECORD;
        let is_in = self.asm.label();
        for (read, absent) in (0..).zip(std::mem::take(&mut self.absent)) {
            // absent: leave_element(), bpf_ringbuf_discard(record, 0) or leave_slot();
            self.asm.place(absent);
            match has_record {
                _ if self.in_span => self.leave_element(),
                true => self.discard(),
                false => self.leave_slot(),
            }
            // NOT_MAPPED |= bring_in(ABSENT, ABSENT_BYTES) << read; READS = read + 1; goto is_in;
            self.bring_in_for(read);
            self.asm.jump(is_in);
        }
        // is_in: keep_cookie_again(); if (!Control[ENABLED]) goto out;
        // if (has_record && !in_span) find_ring(); goto again;
        self.asm.place(is_in);
        self.keep_again();
        // This may have taken long.
        self.is_enabled(exits.out);
        if has_record && !self.in_span {
            self.find_ring(exits.dropped);
        }
        self.asm.jump(again);
    }

    /// The slots of numbers of one byte that are needed after memory was brought in.
    fn kept_slots(&self) -> Vec<i16> {
        let size = (self.ends.len() > 1).then_some(STACK_SIZE);
        let is_filtered = self.in_span && self.spec.condition.is_some();
        let excluded = is_filtered.then_some(SPAN_EXCLUDED);
        size.into_iter().chain(excluded).collect()
    }

    /// Faults in the memory for a read, by its number.
    ///
    /// This may sleep, so preemption is enabled, and the stack may be that of other threads: what is needed afterwards is in registers meanwhile.
    fn bring_in_for(&mut self, read: i32) {
        const BITS: i32 = 8;
        const BYTE: i32 = 0xff;
        let kept = self.kept_slots();
        let asm = &mut self.asm;
        // r9 = ABSENT; r8 = NOT_MAPPED; r7 = ABSENT_BYTES; for (each kept slot) r7 = r7 << BITS | slot;
        asm.load(Width::Double, Reg::R9, Reg::R10, ABSENT);
        asm.load(Width::Double, Reg::R8, Reg::R10, NOT_MAPPED);
        asm.load(Width::Double, Reg::R7, Reg::R10, ABSENT_BYTES);
        for &slot in &kept {
            asm.op_value(Op::ShiftLeft, Reg::R7, BITS);
            asm.load(Width::Double, Reg::R1, Reg::R10, slot);
            asm.op(Op::Or, Reg::R7, Reg::R1);
        }
        // bpf_preempt_enable(); r8 |= bring_in(r9, r7 >> BITS * kept) << read; bpf_preempt_disable();
        preemption::enable(asm, self.common.preemption);
        asm.copy(Reg::R1, Reg::R9);
        asm.copy(Reg::R2, Reg::R7);
        if !kept.is_empty() {
            asm.op_value(Op::ShiftRight, Reg::R2, BITS * kept.len() as i32);
        }
        asm.call_function(self.bring_in);
        asm.op_value(Op::ShiftLeft, Reg::R0, read);
        asm.op(Op::Or, Reg::R8, Reg::R0);
        preemption::disable(asm, self.common.preemption);
        // NOT_MAPPED = r8; for (each kept slot, the last first) { slot = r7 & BYTE; r7 >>= BITS; } READS = read + 1;
        asm.store(Width::Double, Reg::R10, NOT_MAPPED, Reg::R8);
        for &slot in kept.iter().rev() {
            asm.copy(Reg::R1, Reg::R7);
            asm.op_value(Op::And, Reg::R1, BYTE);
            asm.store(Width::Double, Reg::R10, slot, Reg::R1);
            asm.op_value(Op::ShiftRight, Reg::R7, BITS);
        }
        asm.store_value(Width::Double, Reg::R10, READS, read + 1);
    }

    /// Before a record is reserved: faults in `bytes` bytes at `R9`, after a read there failed. `R8` = 1 if nothing is mapped there, else 0. Of the stack
    /// only the cookie and the ids are what they were.
    pub(in crate::engine::bpf) fn bring_in(&mut self, bytes: i32) {
        self.brings_in = true;
        let asm = &mut self.asm;
        // bpf_preempt_enable(); r8 = bring_in(r9, bytes); bpf_preempt_disable();
        preemption::enable(asm, self.common.preemption);
        asm.copy(Reg::R1, Reg::R9);
        asm.set(Reg::R2, bytes.into());
        asm.call_function(self.bring_in);
        asm.copy(Reg::R8, Reg::R0);
        preemption::disable(asm, self.common.preemption);
        self.keep_again();
    }

    /// Stores the cookie and the ids anew, if they were in their slots.
    fn keep_again(&mut self) {
        if std::mem::take(&mut self.keeps_cookie) {
            self.keep_cookie();
        }
        if let Some(namespace) = self.common.namespace {
            // The task is in it still.
            let inside = self.asm.label();
            namespace.use_ids(&mut self.asm, IDS, inside);
            self.asm.place(inside);
        }
    }
}
