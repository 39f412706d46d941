//! Values of arguments.

use usdtrec_format::{RawArgument, RawField};
use usdtrec_kernel::bpf::insn::{Helper, If, Label, Op, Reg, Width};

use super::builder::Program;
use super::nonresident_memory::Bytes;
use super::target::Target;
use crate::plan::capture::Capture;
use crate::plan::read::{Read, Source};

impl Program<'_> {
    /// Writes all values, and the bits of those that could not be read.
    pub(in crate::engine::bpf) fn arguments(&mut self) {
        self.reads = 0;
        self.writes_values = true;
        if self.spec.layout.missing.is_some() {
            self.asm.set(Reg::R8, 0);
        }
        if let Some(at) = self.spec.layout.thread_context {
            self.thread_context(at);
        }
        let (captures, arguments) = (self.spec.captures, &self.spec.layout.arguments);
        for (capture, argument) in captures.iter().zip(arguments) {
            if let (Capture::Value(read), RawArgument::Field(field)) = (capture, argument) {
                self.value(read, *field);
            }
        }
        self.sized();
        if let Some(missing) = self.spec.layout.missing {
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
            self.memory(read.size, field.offset, unreadable);
            self.get(Width::from_bytes(read.size), Reg::R9, field.offset);
        }
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
        self.read_user(Helper::ReadUser, size.into(), to.into());
        self.asm.jump_if(If::Equal, Reg::R0, 0, done);
        self.bring_in_or_fail(Bytes::Number(size.into()), unreadable);
        self.asm.place(done);
    }

    /// Reads `size` bytes at `R9` to an offset of the layout, or of the strings after it.
    pub(in crate::engine::bpf) fn read_user(&mut self, helper: Helper, size: i32, to: i32) {
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
        self.asm.load(width, to, base, self.target.at(offset));
    }

    /// Writes a register at an offset of the layout.
    pub(in crate::engine::bpf) fn put(&mut self, width: Width, offset: u16, from: Reg) {
        let Target { base, .. } = self.target;
        self.asm.store(width, base, self.target.at(offset), from);
    }

    /// Writes a number at an offset of the layout.
    pub(in crate::engine::bpf) fn put_value(&mut self, width: Width, offset: u16, value: i32) {
        let Target { base, .. } = self.target;
        self.asm
            .store_value(width, base, self.target.at(offset), value);
    }

    /// `to` = the address of an offset of the layout, or of the strings after it.
    pub(in crate::engine::bpf) fn address_in_target(&mut self, to: Reg, offset: i32) {
        let Target {
            base,
            offset: start,
        } = self.target;
        self.asm.address(to, base, i32::from(start) + offset);
    }

    /// Offset of the room for a string, by the string's index.
    pub(in crate::engine::bpf) fn room_at(&self, index: usize) -> i32 {
        (usize::from(self.spec.layout.size) + index * self.room.each) as i32
    }
}
