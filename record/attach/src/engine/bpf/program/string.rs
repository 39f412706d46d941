//! Strings.

use usdtrec_format::{RawArgument, RawField, RawLength, RawString, StringStatus};
use usdtrec_kernel::bpf::insn::{Helper, If, Label, Map, Op, Reg, Width};

use super::super::control;
use super::super::slots::{HABITS, NOW};
use super::builder::Program;
use super::nonresident_memory::Bytes;

/// Number of unreadable addresses in a row after which an argument that is only tried as a string …
const UNREADABLE: i32 = 32;
/// … is not read for this long, ns: each attempt costs microseconds.
const PAUSE_NS: i32 = 50_000_000;
impl Program<'_> {
    /// Stores the address of the words of the site's strings. `R0` is the index of the sample id.
    pub(super) fn habits(&mut self) {
        let asm = &mut self.asm;
        let known = asm.label();
        // if (index >= ids) index = 0; HABITS = &Control[strings_at + index * strings * STRING];
        asm.jump_if(If::Below, Reg::R0, self.common.ids.cast_signed(), known);
        asm.set(Reg::R0, 0);
        asm.place(known);
        asm.op_value(
            Op::Multiply,
            Reg::R0,
            (self.common.strings * control::STRING).cast_signed(),
        );
        let at = control::strings_at(self.common.ids);
        asm.set_map_value(Reg::R1, Map::Control, at);
        asm.op(Op::Add, Reg::R1, Reg::R0);
        asm.store(Width::Double, Reg::R10, HABITS, Reg::R1);
    }

    /// Index of a string among the strings of the layout.
    pub(in crate::engine::bpf) fn index(&self, string: RawString) -> usize {
        let mut strings = self.spec.layout.strings();
        strings.position(|known| known == string).unwrap_or(0)
    }

    /// Reads the string at `R9`.
    pub(super) fn string(&mut self, field: RawField) {
        let Some(string) = field.string else { return };
        let index = self.index(string);
        let status = string.status;
        let habit = (index as i16) * control::STRING as i16;
        let (nowhere, skipped) = (self.asm.label(), self.asm.label());
        let (read, done) = (self.asm.label(), self.asm.label());
        self.check_address(nowhere);
        let asm = &mut self.asm;
        if !string.known {
            // if (HABITS[string].until > NOW) goto skipped;
            asm.load(Width::Double, Reg::R1, Reg::R10, HABITS);
            asm.load(Width::Double, Reg::R1, Reg::R1, habit + 8);
            asm.load(Width::Double, Reg::R2, Reg::R10, NOW);
            asm.jump_if_reg(If::Above, Reg::R1, Reg::R2, skipped);
        }
        let room = (self.room.each as i32).min(i32::from(self.spec.layout.string_limit) + 2);
        // r0 = bpf_probe_read_user_str(raw + room_at, room, r9); if ((s64)r0 >= 0) goto read;
        self.read_user(Helper::ReadUserStr, room, self.room_at(index));
        self.asm.jump_if(If::AtLeastSigned, Reg::R0, 0, read);
        if string.known {
            let gone = self.asm.label();
            // bring_in_or_fail(room, gone); gone: string->status = r1 ? FAULT : NOT_RESIDENT; goto done;
            self.bring_in_or_fail(Bytes::Number(room), gone);
            self.asm.place(gone);
            self.gone(status);
            self.asm.jump(done);
        } else {
            // The argument may be no string at all, so no memory is faulted in for it.
            self.unreadable_again(habit, nowhere);
        }
        // nowhere: string->status = -EFAULT; goto done;
        self.asm.place(nowhere);
        self.status(status, libc::EFAULT);
        self.asm.jump(done);
        if !string.known {
            // The verifier refuses code that cannot be reached.
            // skipped: string->status = -EAGAIN; goto done;
            self.asm.place(skipped);
            self.status(status, libc::EAGAIN);
            self.asm.jump(done);
        }
        // read: if ((s64)r0 >= room) goto longer; string->status = r0;
        self.asm.place(read);
        if let Some(longer) = self.longer {
            // It may be cut.
            self.asm.jump_if(If::AtLeastSigned, Reg::R0, room, longer);
        }
        self.put(Width::Half, status, Reg::R0);
        if !string.known {
            self.readable(habit, done);
        }
        self.asm.place(done);
    }

    /// Counts an unreadable string. After many in a row, none is read for a while.
    fn unreadable_again(&mut self, habit: i16, done: Label) {
        let asm = &mut self.asm;
        // if (++HABITS[string].unreadable < UNREADABLE) goto done;
        asm.load(Width::Double, Reg::R1, Reg::R10, HABITS);
        asm.load(Width::Double, Reg::R2, Reg::R1, habit);
        asm.op_value(Op::Add, Reg::R2, 1);
        asm.store(Width::Double, Reg::R1, habit, Reg::R2);
        asm.jump_if(If::Below, Reg::R2, UNREADABLE, done);
        // HABITS[string].until = NOW + PAUSE_NS;
        asm.load(Width::Double, Reg::R2, Reg::R10, NOW);
        asm.op_value(Op::Add, Reg::R2, PAUSE_NS);
        asm.store(Width::Double, Reg::R1, habit + 8, Reg::R2);
    }

    /// Resets the count of unreadable strings. All CPUs share the words, so they are written only if they change.
    fn readable(&mut self, habit: i16, done: Label) {
        let asm = &mut self.asm;
        // if (!HABITS[string].unreadable) goto done; HABITS[string].unreadable = 0;
        asm.load(Width::Double, Reg::R1, Reg::R10, HABITS);
        asm.load(Width::Double, Reg::R2, Reg::R1, habit);
        asm.jump_if(If::Equal, Reg::R2, 0, done);
        asm.store_value(Width::Double, Reg::R1, habit, 0);
    }

    /// Stores why a string was not read.
    pub(super) fn status(&mut self, status: u16, error: i32) {
        // string->status = -error;
        self.put_value(Width::Half, status, -error);
    }

    /// Stores why a string was not read: `R1` is 1 if nothing is mapped there, 0 if it is not resident.
    pub(super) fn gone(&mut self, status: u16) {
        const NOT_RESIDENT: i64 = StringStatus::NotResident.word(0, 0) as i64;
        const FAULT: i64 = StringStatus::Fault.word(0, 0) as i64;
        let asm = &mut self.asm;
        // string->status = NOT_RESIDENT + r1 * (FAULT - NOT_RESIDENT);
        asm.copy(Reg::R2, Reg::R1);
        asm.op_value(Op::Multiply, Reg::R2, (FAULT - NOT_RESIDENT) as i32);
        asm.op_value(Op::Add, Reg::R2, NOT_RESIDENT as i32);
        self.put(Width::Half, status, Reg::R2);
    }
}

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
        // r2 = min(length, limit + 1); string->status = r2 + 1; if (!r2) goto done;
        self.length(length, limit + 1, negative);
        let asm = &mut self.asm;
        asm.copy(Reg::R1, Reg::R2);
        asm.op_value(Op::Add, Reg::R1, 1);
        self.put(Width::Half, status, Reg::R1);
        // Zero bytes can be at any address.
        self.asm.jump_if(If::Equal, Reg::R2, 0, done);
        // r9 = raw->field; if (r9 < MIN_POINTER || r9 >> address_bits) goto nowhere;
        self.get(Width::from_bytes(field.size), Reg::R9, field.offset);
        self.check_address(nowhere);
        let to = self.room_at(self.index(string));
        let room = limit.min(self.room.each as i32);
        // r2 = min(length, limit); if (r2 > room) goto longer;
        self.length(length, limit, negative);
        if let Some(longer) = self.longer {
            self.asm.jump_if(If::Above, Reg::R2, room, longer);
        }
        // if (!bpf_probe_read_user(raw + to, r2, r9)) goto done;
        self.address_in_target(Reg::R1, to);
        let asm = &mut self.asm;
        asm.copy(Reg::R3, Reg::R9);
        asm.call(Helper::ReadUser);
        asm.jump_if(If::Equal, Reg::R0, 0, done);
        let gone = self.asm.label();
        // r2 = min(length, room); bring_in_or_fail(r2, gone);
        self.length(length, room, negative);
        self.bring_in_or_fail(Bytes::InR2, gone);
        self.asm.place(gone);
        // gone: string->status = r1 ? FAULT : NOT_RESIDENT; goto done;
        self.gone(status);
        self.asm.jump(done);
        // nowhere: string->status = -EFAULT;
        self.asm.place(nowhere);
        self.status(status, libc::EFAULT);
        if let RawLength::Field { signed: true, .. } = length {
            // goto done; negative: string->status = -EINVAL;
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
        // r2 = raw->length; if (signed && (s64)r2 < 0) goto negative;
        self.get(Width::from_bytes(size), Reg::R2, offset);
        let asm = &mut self.asm;
        let fits = asm.label();
        if signed {
            let unused = 64 - 8 * i32::from(size);
            asm.extend(Reg::R2, unused, true);
            asm.jump_if(If::BelowSigned, Reg::R2, 0, negative);
        }
        // if (r2 > most) r2 = most;
        asm.jump_if(If::AtMost, Reg::R2, most, fits);
        asm.set(Reg::R2, most.into());
        asm.place(fits);
    }

    /// `R1` = the length of a string; jumps if it could not be read.
    pub(in crate::engine::bpf) fn string_length(&mut self, string: RawString, unread: Label) {
        const STATUS_BITS: i32 = 16;
        // r1 = (s16)string->status; if ((s64)r1 < 0) goto unread;
        self.get(Width::Half, Reg::R1, string.status);
        self.asm.extend(Reg::R1, 64 - STATUS_BITS, true);
        self.asm.jump_if(If::BelowSigned, Reg::R1, 0, unread);
    }

    /// Jumps if the field with this bit could not be read.
    pub(in crate::engine::bpf) fn if_unreadable(&mut self, bit: u8, to: Label) {
        let asm = &mut self.asm;
        // if (unread >> bit & 1) goto to;
        asm.copy(Reg::R1, Reg::R8);
        asm.op_value(Op::ShiftRight, Reg::R1, bit.into());
        asm.op_value(Op::And, Reg::R1, 1);
        asm.jump_if(If::NotEqual, Reg::R1, 0, to);
    }
}
