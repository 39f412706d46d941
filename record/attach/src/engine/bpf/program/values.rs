//! Values of arguments.

use usdtrec_format::{Arch, RawArgument, RawField, Register};
use usdtrec_kernel::bpf::insn::{Helper, If, Label, Op, Reg, Width};

use super::super::contract::{Target, instruction_pointer, register_offset};
use super::super::slots::{DESCRIPTORS, WORD};
use super::builder::Program;
use super::nonresident_memory::Bytes;
use crate::plan::capture::{Capture, MIN_POINTER};
use crate::plan::read::{Address, Read, Source};

impl Program<'_> {
    /// Writes all values, and the bits of those that could not be read.
    pub(in crate::engine::bpf) fn arguments(&mut self) {
        self.reads = 0;
        self.writes_values = true;
        if self.spec.layout.missing.is_some() {
            // unread = 0;
            self.asm.set(Reg::R8, 0);
        }
        if let Some(at) = self.spec.layout.thread_context {
            self.thread_context(at);
        }
        if let Some(at) = self.spec.layout.thread_waits {
            self.thread_waits(at);
        }
        let (captures, arguments) = (self.spec.captures, &self.spec.layout.arguments);
        for (capture, argument) in captures.iter().zip(arguments) {
            if let (Capture::Value(read), RawArgument::Field(field)) = (capture, argument) {
                self.value(read, *field);
            }
        }
        self.sized();
        if let Some(missing) = self.spec.layout.missing {
            // raw->missing = unread;
            self.put(Width::Word, missing, Reg::R8);
        }
    }

    /// `R9` = a value, or its address if it is in memory. Returns whether it is.
    pub(in crate::engine::bpf) fn value_or_address(
        &mut self,
        read: &Read,
        unreadable: Label,
    ) -> bool {
        match &read.source {
            &Source::Register { register, from } => {
                let offset = self.register(register) + i16::from(from);
                // r9 = *(uN *)((char *)ctx + offset);
                self.asm
                    .load(Width::from_bytes(read.size), Reg::R9, Reg::R6, offset);
            }
            Source::Number(number) => self.asm.set(Reg::R9, number.cast_signed()),
            Source::Computed(chain) => self.chain(chain, unreadable),
            Source::Address(address) => self.address(address, unreadable),
            Source::Memory(address) => self.address(address, unreadable),
        }
        matches!(read.source, Source::Memory(_))
    }

    /// Writes a value, and the string that it points to.
    fn value(&mut self, read: &Read, field: RawField) {
        let unreadable = self.asm.label();
        let width = Width::from_bytes(field.size);
        if self.value_or_address(read, unreadable) {
            // bpf_probe_read_user(&raw->field, read.size, r9); r9 = raw->field; /* an error: goto unreadable */
            self.memory(read.size, field.offset, unreadable);
            self.get(Width::from_bytes(read.size), Reg::R9, field.offset);
        }
        // raw->field = read.signed ? (sN)r9 : r9;
        if read.signed && read.size < field.size {
            self.extend(read.size, true);
        }
        self.put(width, field.offset, Reg::R9);
        if field.string.is_some_and(|string| string.length.is_none()) {
            self.string(field);
        }
        let Some(bit) = field.fault else {
            self.asm.place(unreadable);
            return;
        };
        let done = self.asm.label();
        self.asm.jump(done);
        self.asm.place(unreadable);
        if let Some(string) = field.string {
            self.gone(string.status);
        }
        // `RawField::NOT_RESIDENT` or 0.
        // raw->field = NOT_RESIDENT - r1; unread |= 1 << bit;
        let asm = &mut self.asm;
        asm.set(Reg::R2, RawField::NOT_RESIDENT.cast_signed());
        asm.op(Op::Sub, Reg::R2, Reg::R1);
        self.put(width, field.offset, Reg::R2);
        let asm = &mut self.asm;
        asm.set(Reg::R1, 1 << bit);
        asm.op(Op::Or, Reg::R8, Reg::R1);
        asm.place(done);
    }

    /// Reads `size` bytes at `R9` to an offset of the layout.
    pub(super) fn memory(&mut self, size: u8, to: u16, unreadable: Label) {
        let done = self.asm.label();
        // if (bpf_probe_read_user(raw + to, size, r9)) bring_in_or_fail(size, unreadable);
        self.read_user(Helper::ReadUser, size.into(), to.into());
        self.asm.jump_if(If::Equal, Reg::R0, 0, done);
        self.bring_in_or_fail(Bytes::Number(size.into()), unreadable);
        self.asm.place(done);
    }

    /// Reads `size` bytes at `R9` to an offset of the layout, or of the strings after it.
    pub(super) fn read_user(&mut self, helper: Helper, size: i32, to: i32) {
        // r0 = helper(raw + to, size, r9); /* bpf_probe_read_user or bpf_probe_read_user_str */
        self.remove_tag();
        self.address_in_target(Reg::R1, to);
        let asm = &mut self.asm;
        asm.set(Reg::R2, size.into());
        asm.copy(Reg::R3, Reg::R9);
        asm.call(helper);
    }

    /// `to` = the word at an offset of the layout, zero-extended.
    pub(in crate::engine::bpf) fn get(&mut self, width: Width, to: Reg, offset: u16) {
        let Target { base, .. } = self.target;
        // to = *(uN *)(raw + offset);
        self.asm.load(width, to, base, self.target.at(offset));
    }

    /// Writes a register at an offset of the layout.
    pub(in crate::engine::bpf) fn put(&mut self, width: Width, offset: u16, from: Reg) {
        let Target { base, .. } = self.target;
        // *(uN *)(raw + offset) = from;
        self.asm.store(width, base, self.target.at(offset), from);
    }

    /// Writes a number at an offset of the layout.
    pub(in crate::engine::bpf) fn put_value(&mut self, width: Width, offset: u16, value: i32) {
        let Target { base, .. } = self.target;
        // *(uN *)(raw + offset) = value;
        self.asm
            .store_value(width, base, self.target.at(offset), value);
    }

    /// `to` = the address of an offset of the layout, or of the strings after it.
    pub(super) fn address_in_target(&mut self, to: Reg, offset: i32) {
        let Target {
            base,
            offset: start,
        } = self.target;
        // to = raw + offset;
        self.asm.address(to, base, i32::from(start) + offset);
    }

    /// Offset of the room for a string, by the string's index.
    pub(in crate::engine::bpf) fn room_at(&self, index: usize) -> i32 {
        (usize::from(self.spec.layout.size) + index * self.room.each) as i32
    }
}

impl Program<'_> {
    /// `R9` = the address.
    pub(super) fn address(&mut self, address: &Address, unreadable: Label) {
        // r9 = (address.thread ? thread_base : 0) + ctx->base + ctx->index * scale + address.offset;
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
            // r9 = (u32)r9;
            self.asm.cut_to_32(Reg::R9);
        }
    }

    /// Jumps if no string can be at `R9`, of which the tag is removed: it is not the address of a mapping of user space.
    pub(super) fn check_address(&mut self, nowhere: Label) {
        // if (r9 < MIN_POINTER || r9 >> address_bits) goto nowhere;
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
    pub(super) fn remove_tag_of(&mut self, arch: Arch) {
        if arch.ignores_top_byte() {
            // r9 = r9 << 8 >> 8;
            self.asm.extend(Reg::R9, 8, false);
        }
    }

    /// `R9` = the base of the thread-local storage.
    pub(super) fn thread_base(&mut self, unreadable: Label) {
        let is_64_bit = self.spec.arch.pointer_size() == 8;
        let base = self.common.thread_base;
        if let Some(base) = base.filter(|_| is_64_bit) {
            // if (bpf_probe_read_kernel(&WORD, 8, task + base.pointer)) goto unreadable; r9 = WORD;
            self.read_task(base.pointer, WORD, 8, unreadable);
            return self.asm.load(Width::Double, Reg::R9, Reg::R10, WORD);
        }
        let Some(descriptors) = base.and_then(|base| base.descriptors) else {
            // r1 = 1; goto unreadable;
            self.asm.set(Reg::R1, 1);
            return self.asm.jump(unreadable);
        };
        // if (bpf_probe_read_kernel(&DESCRIPTORS, 24, task + descriptors)) goto unreadable;
        self.read_task(descriptors, DESCRIPTORS, 24, unreadable);
        let asm = &mut self.asm;
        // if (DESCRIPTORS[1] || DESCRIPTORS[2]) goto unreadable;
        for other in [DESCRIPTORS + 8, DESCRIPTORS + 16] {
            // The segment register is not readable here. With a single descriptor it can only select that one.
            asm.load(Width::Double, Reg::R2, Reg::R10, other);
            asm.jump_if(If::NotEqual, Reg::R2, 0, unreadable);
        }
        // r9 = DESCRIPTORS[0]; if (!r9) goto unreadable;
        asm.load(Width::Double, Reg::R9, Reg::R10, DESCRIPTORS);
        asm.jump_if(If::Equal, Reg::R9, 0, unreadable);
        // Bits 16 to 39 and 56 to 63.
        // r9 = r9 << 24 >> 40 | r9 >> 56 << 24;
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
        // r0 = bpf_probe_read_kernel(&to, size, (char *)bpf_get_current_task() + from);
        asm.call(Helper::CurrentTask);
        asm.address(Reg::R3, Reg::R0, from.cast_signed());
        asm.address(Reg::R1, Reg::R10, to.into());
        asm.set(Reg::R2, size);
        asm.call(Helper::ReadKernel);
        // r1 = 1; if (r0) goto unreadable;
        asm.set(Reg::R1, 1);
        asm.jump_if(If::NotEqual, Reg::R0, 0, unreadable);
    }

    /// Offset of a register in the context. The plan has checked that the register is there.
    pub(super) fn register(&self, register: Register) -> i16 {
        let arch = self.spec.arch;
        register_offset(arch, register).unwrap_or_else(|| instruction_pointer(arch))
    }
}
