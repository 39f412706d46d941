//! Strings.

use usdtrec_format::{RawField, RawString, StringStatus};
use usdtrec_kernel::bpf::insn::{Helper, If, Label, Map, Op, Reg, Width};

use super::super::control;
use super::builder::Program;
use super::nonresident_memory::Bytes;
use super::slots::{HABITS, NOW};

/// Number of unreadable addresses in a row after which an argument that is only tried as a string …
const UNREADABLE: i32 = 32;
/// … is not read for this long, ns: each attempt costs microseconds.
const PAUSE_NS: i32 = 50_000_000;
impl Program<'_> {
    /// Stores the address of the words of the site's strings. `R0` is the index of the sample id.
    pub(in crate::engine::bpf) fn habits(&mut self) {
        let asm = &mut self.asm;
        let known = asm.label();
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
    pub(in crate::engine::bpf) fn string(&mut self, field: RawField) {
        let Some(string) = field.string else { return };
        let index = self.index(string);
        let status = string.status;
        let habit = (index as i16) * control::STRING as i16;
        let (nowhere, skipped) = (self.asm.label(), self.asm.label());
        let (read, done) = (self.asm.label(), self.asm.label());
        self.check_address(nowhere);
        let asm = &mut self.asm;
        if !string.known {
            asm.load(Width::Double, Reg::R1, Reg::R10, HABITS);
            asm.load(Width::Double, Reg::R1, Reg::R1, habit + 8);
            asm.load(Width::Double, Reg::R2, Reg::R10, NOW);
            asm.jump_if_reg(If::Above, Reg::R1, Reg::R2, skipped);
        }
        let room = (self.room.each as i32).min(i32::from(self.spec.layout.string_limit) + 2);
        self.read_user(Helper::ReadUserStr, room, self.room_at(index));
        self.asm.jump_if(If::AtLeastSigned, Reg::R0, 0, read);
        if string.known {
            let gone = self.asm.label();
            self.bring_in_or_fail(Bytes::Number(room), gone);
            self.asm.place(gone);
            self.gone(status);
            self.asm.jump(done);
        } else {
            // The argument may be no string at all, so no memory is brought in for it.
            self.unreadable_again(habit, nowhere);
        }
        self.asm.place(nowhere);
        self.status(status, libc::EFAULT);
        self.asm.jump(done);
        if !string.known {
            // The verifier refuses code that cannot be reached.
            self.asm.place(skipped);
            self.status(status, libc::EAGAIN);
            self.asm.jump(done);
        }
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
        asm.load(Width::Double, Reg::R1, Reg::R10, HABITS);
        asm.load(Width::Double, Reg::R2, Reg::R1, habit);
        asm.op_value(Op::Add, Reg::R2, 1);
        asm.store(Width::Double, Reg::R1, habit, Reg::R2);
        asm.jump_if(If::Below, Reg::R2, UNREADABLE, done);
        asm.load(Width::Double, Reg::R2, Reg::R10, NOW);
        asm.op_value(Op::Add, Reg::R2, PAUSE_NS);
        asm.store(Width::Double, Reg::R1, habit + 8, Reg::R2);
    }

    /// Resets the count of unreadable strings. All CPUs share the words, so they are written only if they change.
    fn readable(&mut self, habit: i16, done: Label) {
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R1, Reg::R10, HABITS);
        asm.load(Width::Double, Reg::R2, Reg::R1, habit);
        asm.jump_if(If::Equal, Reg::R2, 0, done);
        asm.store_value(Width::Double, Reg::R1, habit, 0);
    }

    /// Stores why a string was not read.
    pub(in crate::engine::bpf) fn status(&mut self, status: u16, error: i32) {
        self.put_value(Width::Half, status, -error);
    }

    /// Stores why a string was not read: `R1` is 1 if nothing is mapped there, 0 if it is not resident.
    pub(in crate::engine::bpf) fn gone(&mut self, status: u16) {
        const NOT_RESIDENT: i64 = StringStatus::NotResident.word(0, 0) as i64;
        const FAULT: i64 = StringStatus::Fault.word(0, 0) as i64;
        let asm = &mut self.asm;
        asm.copy(Reg::R2, Reg::R1);
        asm.op_value(Op::Multiply, Reg::R2, (FAULT - NOT_RESIDENT) as i32);
        asm.op_value(Op::Add, Reg::R2, NOT_RESIDENT as i32);
        self.put(Width::Half, status, Reg::R2);
    }
}
