//! Strings and bytes with a known length: exactly this many bytes are read, including NULs.

use usdtrec_format::{RawArgument, RawField, RawLength, RawString};
use usdtrec_kernel::bpf::insn::{Helper, If, Label, Op, Reg, Width};

use super::program::{Bytes, Program};

impl Program<'_> {
    /// Reads all of them. To be called after all fields are written, because lengths are among them.
    pub(super) fn sized(&mut self) {
        for argument in &self.spec.layout.arguments {
            if let RawArgument::Field(field) = argument
                && let Some(string) = field.string
                && let Some(length) = string.length
            {
                self.read_sized(*field, string, length);
            }
        }
    }

    /// Reads `length` bytes at the address in the field. The status is their number plus one; the limit plus one means that the string is
    /// longer.
    fn read_sized(&mut self, field: RawField, string: RawString, length: RawLength) {
        let (nowhere, negative) = (self.asm.label(), self.asm.label());
        let done = self.asm.label();
        let status = string.status;
        let limit = i32::from(self.spec.layout.string_limit);
        if let Some(bit) = field.fault {
            // The status is written already.
            self.if_unreadable(bit, done);
        }
        if let RawLength::Field {
            fault: Some(bit), ..
        } = length
        {
            self.if_unreadable(bit, nowhere);
        }
        self.length(length, limit + 1, negative);
        let asm = &mut self.asm;
        asm.copy(Reg::R1, Reg::R2);
        asm.op_value(Op::Add, Reg::R1, 1);
        self.put(Width::Half, status, Reg::R1);
        // Zero bytes can be at any address.
        self.asm.jump_if(If::Equal, Reg::R2, 0, done);
        self.get(Width::from_bytes(field.size), Reg::R9, field.offset);
        self.check_address(nowhere);
        let to = self.room_at(self.index(string));
        let room = limit.min(self.room.each as i32);
        self.length(length, limit, negative);
        if let Some(longer) = self.longer {
            self.asm.jump_if(If::Above, Reg::R2, room, longer);
        }
        self.address_in_target(Reg::R1, to);
        let asm = &mut self.asm;
        asm.copy(Reg::R3, Reg::R9);
        asm.call(Helper::ReadUser);
        asm.jump_if(If::Equal, Reg::R0, 0, done);
        let gone = self.asm.label();
        self.length(length, room, negative);
        self.bring_in_or_fail(Bytes::InR2, gone);
        self.asm.place(gone);
        self.gone(status);
        self.asm.jump(done);
        self.asm.place(nowhere);
        self.status(status, libc::EFAULT);
        if let RawLength::Field { signed: true, .. } = length {
            self.asm.jump(done);
            self.asm.place(negative);
            self.status(status, libc::EINVAL);
        }
        self.asm.place(done);
    }

    /// `R2` = the length, at most `most`.
    fn length(&mut self, length: RawLength, most: i32, negative: Label) {
        let (offset, size, signed) = match length {
            RawLength::Fixed(bytes) => {
                return self.asm.set(Reg::R2, i64::from(bytes).min(most.into()));
            }
            RawLength::Field {
                offset,
                size,
                signed,
                ..
            } => (offset, size, signed),
        };
        self.get(Width::from_bytes(size), Reg::R2, offset);
        let asm = &mut self.asm;
        let fits = asm.label();
        if signed {
            let unused = 64 - 8 * i32::from(size);
            asm.extend(Reg::R2, unused, true);
            asm.jump_if(If::BelowSigned, Reg::R2, 0, negative);
        }
        asm.jump_if(If::AtMost, Reg::R2, most, fits);
        asm.set(Reg::R2, most.into());
        asm.place(fits);
    }

    /// `R1` = the length of a string; jumps if it could not be read.
    pub(super) fn string_length(&mut self, string: RawString, unread: Label) {
        const STATUS_BITS: i32 = 16;
        self.get(Width::Half, Reg::R1, string.status);
        self.asm.extend(Reg::R1, 64 - STATUS_BITS, true);
        self.asm.jump_if(If::BelowSigned, Reg::R1, 0, unread);
    }

    /// Jumps if the field with this bit could not be read.
    pub(super) fn if_unreadable(&mut self, bit: u8, to: Label) {
        let asm = &mut self.asm;
        asm.copy(Reg::R1, Reg::R8);
        asm.op_value(Op::ShiftRight, Reg::R1, bit.into());
        asm.op_value(Op::And, Reg::R1, 1);
        asm.jump_if(If::NotEqual, Reg::R1, 0, to);
    }
}
