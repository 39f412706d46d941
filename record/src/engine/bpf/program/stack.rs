//! What the callers of a hit are found from, at the end of a record. Nothing of it faults: a stack page that is not resident ends the copy.
//!
//! By frame pointers ([`CallGraphMethod::FramePointers`]): a word with the reason of a cut ([`ChainCut::marks`], 0 for none), the number of
//! callers, and room for the return addresses. From a copy: as perf's `REGS_USER` and `STACK_USER`, with room for all bytes.

use usdtrec_format::Arch;
use usdtrec_format::perf::ChainCut;

use super::super::insn::{Helper, If, Op, Reg, Width};
use super::builder::Program;
use super::slots::{DESCRIPTORS, WORD};
use crate::plan::call_graph::{CallGraph, CallGraphMethod, registers};

/// Bytes after which memory may be of another page, on all machines: a page, or a part of one.
const PAGE: i32 = 4096;
/// A frame: the caller's frame pointer and the return address. Nothing else is in the slot any more.
const FRAME: i16 = DESCRIPTORS;
/// `PERF_SAMPLE_REGS_ABI_32`, `PERF_SAMPLE_REGS_ABI_64`.
const ABI: [i32; 2] = [1, 2];

/// Bytes of the end of a record.
pub(in crate::engine::bpf) fn stack_bytes(graph: CallGraph, arch: Arch) -> usize {
    match graph.method {
        CallGraphMethod::FramePointers => 16 + 8 * usize::from(graph.frames),
        CallGraphMethod::Copy { bytes } => match registers(arch).len() {
            0 => 16,
            registers => 8 + 8 * registers + 8 + bytes as usize + 8,
        },
    }
}

impl Program<'_> {
    /// Writes the end of the record. All of the rest is written; `R6`, `R8` and `R9` are not needed after it.
    pub(super) fn stack(&mut self) {
        let Some(graph) = self.spec.graph else {
            return;
        };
        let start = self.room.record - stack_bytes(graph, self.spec.arch);
        self.asm.copy(Reg::R8, Reg::R7);
        self.asm.op_value(Op::Add, Reg::R8, start as i32);
        match graph.method {
            CallGraphMethod::FramePointers => self.frames(graph.frames),
            CallGraphMethod::Copy { bytes } => self.copy(bytes as i32),
        }
    }

    /// Follows the frame pointers to at most `most` frames, that of the hit included. `R6` is the number of callers, which the
    /// verifier knows in each round.
    fn frames(&mut self, most: u16) {
        let arch = self.spec.arch;
        let pointer = arch.pointer_size();
        let width = Width::of(pointer);
        let register = arch.frame_pointer().unwrap_or_else(|| arch.stack_pointer());
        let offset = self.register(register);
        let asm = &mut self.asm;
        let (next, end) = (asm.label(), asm.label());
        let (limit, unreadable, no_frame) = (asm.label(), asm.label(), asm.label());
        let whole = asm.label();
        asm.load(Width::Double, Reg::R9, Reg::R6, offset);
        asm.set(Reg::R6, 0);
        asm.place(next);
        asm.jump_if(If::Equal, Reg::R9, 0, whole);
        asm.jump_if(If::AtLeast, Reg::R6, i32::from(most) - 1, limit);
        self.remove_tag();
        let asm = &mut self.asm;
        asm.copy(Reg::R1, Reg::R10);
        asm.op_value(Op::Add, Reg::R1, FRAME.into());
        asm.set(Reg::R2, 2 * i64::from(pointer));
        asm.copy(Reg::R3, Reg::R9);
        asm.call(Helper::ReadUser);
        asm.jump_if(If::NotEqual, Reg::R0, 0, unreadable);
        asm.load(width, Reg::R1, Reg::R10, FRAME + i16::from(pointer));
        if let Some(bits) = arch.pointer_authentication_bits() {
            let unused = 64 - i32::from(*bits.start());
            asm.op_value(Op::ShiftLeft, Reg::R1, unused);
            asm.op_value(Op::ShiftRight, Reg::R1, unused);
        }
        asm.jump_if(If::Equal, Reg::R1, 0, whole);
        asm.copy(Reg::R2, Reg::R6);
        asm.op_value(Op::ShiftLeft, Reg::R2, 3);
        asm.op(Op::Add, Reg::R2, Reg::R8);
        asm.store(Width::Double, Reg::R2, 16, Reg::R1);
        asm.op_value(Op::Add, Reg::R6, 1);
        asm.load(width, Reg::R1, Reg::R10, FRAME);
        asm.jump_if(If::Equal, Reg::R1, 0, whole);
        asm.jump_if_reg(If::AtMost, Reg::R1, Reg::R9, no_frame);
        asm.copy(Reg::R9, Reg::R1);
        asm.jump(next);
        for (place, cut) in [
            (limit, ChainCut::Limit),
            (unreadable, ChainCut::Unreadable),
            (no_frame, ChainCut::NoFrame),
        ] {
            asm.place(place);
            asm.set(Reg::R1, cut.marks() as i64);
            asm.jump(end);
        }
        asm.place(whole);
        asm.set(Reg::R1, 0);
        asm.place(end);
        asm.store(Width::Double, Reg::R8, 0, Reg::R1);
        asm.store(Width::Double, Reg::R8, 8, Reg::R6);
    }

    /// Copies the registers and `bytes` bytes from the stack pointer upwards, or as many as are resident.
    fn copy(&mut self, bytes: i32) {
        let arch = self.spec.arch;
        let registers = registers(arch);
        if registers.is_empty() {
            self.asm.store_value(Width::Double, Reg::R8, 0, ABI[0]);
            self.asm.store_value(Width::Double, Reg::R8, 8, 0);
            return;
        }
        self.asm.store_value(Width::Double, Reg::R8, 0, ABI[1]);
        let mut at = 8;
        for register in registers {
            let offset = self.register(register);
            self.asm.load(Width::Double, Reg::R1, Reg::R6, offset);
            self.asm.store(Width::Double, Reg::R8, at, Reg::R1);
            at += 8;
        }
        self.asm.store_value(Width::Double, Reg::R8, at, bytes);
        let sp = self.register(arch.stack_pointer());
        self.asm.load(Width::Double, Reg::R9, Reg::R6, sp);
        self.remove_tag();
        let asm = &mut self.asm;
        asm.copy(Reg::R6, Reg::R8);
        asm.op_value(Op::Add, Reg::R6, i32::from(at) + 8);
        asm.op_value(Op::Add, Reg::R8, i32::from(at) + 8 + bytes);
        let copied = asm.label();
        asm.copy(Reg::R1, Reg::R6);
        asm.set(Reg::R2, bytes.into());
        asm.store(Width::Double, Reg::R10, WORD, Reg::R2);
        asm.copy(Reg::R3, Reg::R9);
        asm.call(Helper::ReadUser);
        asm.jump_if(If::Equal, Reg::R0, 0, copied);
        // A page is missing: up to the end of a page, the last one first.
        for pages in (0..=bytes / PAGE).rev() {
            let beyond = asm.label();
            asm.copy(Reg::R1, Reg::R9);
            asm.op_value(Op::And, Reg::R1, PAGE - 1);
            asm.set(Reg::R2, i64::from(PAGE * (pages + 1)));
            asm.op(Op::Sub, Reg::R2, Reg::R1);
            asm.jump_if(If::AtLeast, Reg::R2, bytes, beyond);
            asm.store(Width::Double, Reg::R10, WORD, Reg::R2);
            asm.copy(Reg::R1, Reg::R6);
            asm.copy(Reg::R3, Reg::R9);
            asm.call(Helper::ReadUser);
            asm.jump_if(If::Equal, Reg::R0, 0, copied);
            asm.place(beyond);
        }
        asm.store_value(Width::Double, Reg::R10, WORD, 0);
        asm.place(copied);
        asm.load(Width::Double, Reg::R1, Reg::R10, WORD);
        asm.store(Width::Double, Reg::R8, 0, Reg::R1);
    }
}
