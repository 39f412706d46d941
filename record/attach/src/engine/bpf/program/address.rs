//! Addresses that values are read at.

use usdtrec_format::{Arch, Register};
use usdtrec_kernel::bpf::insn::{Helper, If, Label, Op, Reg, Width};

use super::super::context::{instruction_pointer, register_offset};
use super::builder::Program;
use super::slots::{DESCRIPTORS, WORD};
use crate::plan::capture::MIN_POINTER;
use crate::plan::read::Address;

impl Program<'_> {
    /// `R9` = the address.
    pub(in crate::engine::bpf) fn address(&mut self, address: &Address, unreadable: Label) {
        if address.thread {
            self.thread_base(unreadable);
        } else {
            self.asm.set(Reg::R9, 0);
        }
        if let Some(base) = address.base {
            let offset = self.register(base);
            self.asm.load(Width::Double, Reg::R1, Reg::R6, offset);
            self.asm.op(Op::Add, Reg::R9, Reg::R1);
        }
        if let Some((index, scale)) = address.index {
            let offset = self.register(index);
            self.asm.load(Width::Double, Reg::R1, Reg::R6, offset);
            let shift = scale.max(1).ilog2() as i32;
            self.asm.op_value(Op::ShiftLeft, Reg::R1, shift);
            self.asm.op(Op::Add, Reg::R9, Reg::R1);
        }
        self.asm.add(Reg::R9, address.offset, Reg::R1);
        if self.spec.arch.pointer_size() == 4 {
            self.asm.cut_to_32(Reg::R9);
        }
    }

    /// Jumps if no string can be at `R9`, of which the tag is removed: it is not the address of a mapping of user space.
    pub(in crate::engine::bpf) fn check_address(&mut self, nowhere: Label) {
        self.remove_tag();
        let asm = &mut self.asm;
        asm.jump_if(If::Below, Reg::R9, MIN_POINTER as i32, nowhere);
        asm.copy(Reg::R1, Reg::R9);
        let bits = self.spec.arch.address_bits();
        asm.op_value(Op::ShiftRight, Reg::R1, bits.into());
        asm.jump_if(If::NotEqual, Reg::R1, 0, nowhere);
    }

    /// Removes the tag from the address in `R9`: the helpers take tags from those programs only that pass them to the kernel, too
    /// (Documentation/arch/arm64/tagged-address-abi.rst).
    pub(in crate::engine::bpf) fn remove_tag(&mut self) {
        self.remove_tag_of(self.spec.arch);
    }

    /// The same, in code for any program of an architecture.
    pub(in crate::engine::bpf) fn remove_tag_of(&mut self, arch: Arch) {
        if arch.ignores_top_byte() {
            self.asm.extend(Reg::R9, 8, false);
        }
    }

    /// `R9` = the base of the thread-local storage.
    pub(super) fn thread_base(&mut self, unreadable: Label) {
        let is_64_bit = self.spec.arch.pointer_size() == 8;
        let base = self.common.thread_base;
        if let Some(base) = base.filter(|_| is_64_bit) {
            self.read_task(base.pointer, WORD, 8, unreadable);
            return self.asm.load(Width::Double, Reg::R9, Reg::R10, WORD);
        }
        let Some(descriptors) = base.and_then(|base| base.descriptors) else {
            self.asm.set(Reg::R1, 1);
            return self.asm.jump(unreadable);
        };
        self.read_task(descriptors, DESCRIPTORS, 24, unreadable);
        let asm = &mut self.asm;
        for other in [DESCRIPTORS + 8, DESCRIPTORS + 16] {
            // The segment register is not readable here. With a single descriptor it can only select that one.
            asm.load(Width::Double, Reg::R2, Reg::R10, other);
            asm.jump_if(If::NotEqual, Reg::R2, 0, unreadable);
        }
        asm.load(Width::Double, Reg::R9, Reg::R10, DESCRIPTORS);
        asm.jump_if(If::Equal, Reg::R9, 0, unreadable);
        // Bits 16 to 39 and 56 to 63.
        asm.copy(Reg::R1, Reg::R9);
        asm.op_value(Op::ShiftRight, Reg::R1, 56);
        asm.op_value(Op::ShiftLeft, Reg::R1, 24);
        asm.op_value(Op::ShiftLeft, Reg::R9, 24);
        asm.op_value(Op::ShiftRight, Reg::R9, 40);
        asm.op(Op::Or, Reg::R9, Reg::R1);
    }

    /// Copies `size` bytes of `task_struct` at `from` to the stack. Sets `R1` to 1: if a caller jumps to `unreadable`, there is no
    /// thread-local storage.
    fn read_task(&mut self, from: u32, to: i16, size: i64, unreadable: Label) {
        let asm = &mut self.asm;
        asm.call(Helper::CurrentTask);
        asm.address(Reg::R3, Reg::R0, from.cast_signed());
        asm.address(Reg::R1, Reg::R10, to.into());
        asm.set(Reg::R2, size);
        asm.call(Helper::ReadKernel);
        asm.set(Reg::R1, 1);
        asm.jump_if(If::NotEqual, Reg::R0, 0, unreadable);
    }

    /// Offset of a register in the context. The plan has checked that the register is there.
    pub(in crate::engine::bpf) fn register(&self, register: Register) -> i16 {
        let arch = self.spec.arch;
        register_offset(arch, register).unwrap_or_else(|| instruction_pointer(arch))
    }
}
