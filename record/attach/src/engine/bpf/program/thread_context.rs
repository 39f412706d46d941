//! Reading the thread context of a hit ([`ThreadContext`]).
//!
//! The recorder finds out for each process where the thread-local variable is, and stores that in a map
//! ([`VariableLocation`]). A thread has the variable at a fixed distance from its thread pointer, or in a block of
//! memory whose address is in an array, the dynamic thread vector, to which a word beside the thread pointer points.

use usdtrec_format::{ContextStatus, ThreadContext};
use usdtrec_kernel::bpf::insn::{Helper, If, Label, Map, Op, Reg, Width};

use super::super::slots::{DTV, KEY, LOCATION, VALUE};
use super::super::thread_contexts::VariableLocation;
use super::builder::Program;
use super::nonresident_memory::Bytes;

/// Bytes of the record that are read: the ids and `valid`.
const READ: u8 = ThreadContext::STATUS as u8 + 1;

/// What glibc stores for a module whose block a thread does not have yet (`TLS_DTV_UNALLOCATED`).
const UNALLOCATED: i32 = -1;

impl Program<'_> {
    /// Writes the thread context at an offset of the layout.
    pub(super) fn thread_context(&mut self, at: u16) {
        let asm = &mut self.asm;
        let [none, unreadable, end] = [(); 3].map(|()| asm.label());
        // raw->context = { .status = NoVariable };
        self.without_context(at, ContextStatus::NoVariable);
        let asm = &mut self.asm;
        // KEY = bpf_get_current_pid_tgid() >> 32;
        asm.store_process(KEY);
        // LOCATION = bpf_map_lookup_elem(&ThreadContexts, &KEY); if (!LOCATION) goto end;
        asm.call_map(Helper::MapLookup, Map::ThreadContexts, KEY);
        asm.jump_if(If::Equal, Reg::R0, 0, end);
        asm.store(Width::Double, Reg::R10, LOCATION, Reg::R0);
        // r9 = variable(LOCATION); r9 = *(u64 *)r9; if (!r9) goto none;
        self.variable(none, unreadable);
        self.word(unreadable);
        self.asm.jump_if(If::Equal, Reg::R9, 0, none);
        // bpf_probe_read_user(&raw->context, READ, r9); /* an error: goto unreadable */
        self.memory(READ, at, unreadable);
        // raw->context.status = (u8)raw->context.status == 1 ? Valid : Invalid; goto end;
        self.asm.set(Reg::R2, ContextStatus::Valid as i64);
        self.get(Width::Byte, Reg::R1, at + ThreadContext::STATUS);
        let valid = self.asm.label();
        self.asm.jump_if(If::Equal, Reg::R1, 1, valid);
        self.asm.set(Reg::R2, ContextStatus::Invalid as i64);
        self.asm.place(valid);
        self.put(Width::Word, at + ThreadContext::STATUS, Reg::R2);
        self.asm.jump(end);
        // none: raw->context = { .status = NoRequest }; goto end;
        self.asm.place(none);
        self.without_context(at, ContextStatus::NoRequest);
        self.asm.jump(end);
        // unreadable: raw->context = { .status = Unreadable };
        self.asm.place(unreadable);
        self.without_context(at, ContextStatus::Unreadable);
        self.asm.place(end);
    }

    /// `R9` = the address of the variable of the thread.
    fn variable(&mut self, none: Label, unreadable: Label) {
        // r9 = thread_base(); if (!LOCATION->ENTRY) goto is_fixed;
        self.thread_base(unreadable);
        let is_fixed = self.asm.label();
        self.load_word(VariableLocation::ENTRY);
        self.asm.jump_if(If::Equal, Reg::R1, 0, is_fixed);
        // DTV = *(u64 *)(r9 + LOCATION->VECTOR);
        self.load_word(VariableLocation::VECTOR);
        self.asm.op(Op::Add, Reg::R9, Reg::R1);
        self.word(unreadable);
        self.asm.store(Width::Double, Reg::R10, DTV, Reg::R9);
        // if (*(u64 *)(DTV + LOCATION->LENGTH) < LOCATION->MODULE) goto none;
        self.load_word(VariableLocation::LENGTH);
        self.asm.op(Op::Add, Reg::R9, Reg::R1);
        self.word(unreadable);
        // A vector that is too short is that of a thread which has not used the variable.
        self.load_word(VariableLocation::MODULE);
        self.asm.jump_if_reg(If::Below, Reg::R9, Reg::R1, none);
        // r9 = *(u64 *)(DTV + LOCATION->ENTRY); if (r9 == UNALLOCATED || r9 == 0) goto none;
        self.load_word(VariableLocation::ENTRY);
        self.asm.load(Width::Double, Reg::R9, Reg::R10, DTV);
        self.asm.op(Op::Add, Reg::R9, Reg::R1);
        self.word(unreadable);
        self.asm.jump_if(If::Equal, Reg::R9, UNALLOCATED, none);
        self.asm.jump_if(If::Equal, Reg::R9, 0, none);
        // is_fixed: r9 += LOCATION->OFFSET;
        self.asm.place(is_fixed);
        self.load_word(VariableLocation::OFFSET);
        self.asm.op(Op::Add, Reg::R9, Reg::R1);
    }

    /// `R1` = a word of the location of the variable.
    fn load_word(&mut self, word: i16) {
        let asm = &mut self.asm;
        // r1 = *(u64 *)((char *)LOCATION + word);
        asm.load(Width::Double, Reg::R1, Reg::R10, LOCATION);
        asm.load(Width::Double, Reg::R1, Reg::R1, word);
    }

    /// `R9` = the word at the address in `R9`.
    fn word(&mut self, unreadable: Label) {
        self.remove_tag();
        let read = self.asm.label();
        let asm = &mut self.asm;
        // if (bpf_probe_read_user(&VALUE, 8, r9)) bring_in_or_fail(8, unreadable); r9 = VALUE;
        asm.address(Reg::R1, Reg::R10, VALUE.into());
        asm.set(Reg::R2, 8);
        asm.copy(Reg::R3, Reg::R9);
        asm.call(Helper::ReadUser);
        asm.jump_if(If::Equal, Reg::R0, 0, read);
        self.bring_in_or_fail(Bytes::Number(8), unreadable);
        self.asm.place(read);
        self.asm.load(Width::Double, Reg::R9, Reg::R10, VALUE);
    }

    /// Writes that there is no context, and why.
    fn without_context(&mut self, at: u16, status: ContextStatus) {
        // memset(&raw->context, 0, STATUS); raw->context.status = status;
        for id in (0..ThreadContext::STATUS).step_by(8) {
            self.put_value(Width::Double, at + id, 0);
        }
        let at = at + ThreadContext::STATUS;
        self.put_value(Width::Word, at, status as i32);
    }
}
