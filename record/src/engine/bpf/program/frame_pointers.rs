//! Callers by frame pointers: each points to the caller's frame pointer and the return address.
//!
//! A read of user memory takes several times as long as what is done with a frame. So a piece of the stack is read at once, to the room of the
//! addresses that are still to be written. A frame takes at least as much of the stack as its address takes of the room, so frames of the piece
//! are read before they are overwritten; one that is not any more is read again.

use usdtrec_format::perf::ChainCut;

use super::super::insn::{Helper, If, Label, Op, Reg, Width};
use super::builder::Program;
use super::slots::{STACK_END, WORD};
use super::stack::{CHAIN, PAGE};
use crate::plan::ReturnAddress;

/// Bytes of stack that are read at once, at most: several frames of usual size.
const PIECE: i32 = 512;
/// Until the chain is complete its first word is the offset of the piece in the end of the record, less its address.
const PIECE_OFFSET: i16 = 0;
/// Until the chain is complete its second word is the last offset at which a frame is in the piece.
const LAST_FRAME: i16 = 8;
/// Bytes of a frame of 64 bits.
const FRAME: i32 = 16;

/// Where a program goes on that cannot write the return address of a function without a frame.
struct ReturnEnds {
    /// The function has a frame.
    framed: Label,
    /// There is no room.
    limit: Label,
    /// The address cannot be read.
    unreadable: Label,
    /// It is 0: there is no caller.
    whole: Label,
}

impl Program<'_> {
    /// Follows the frame pointers to as many frames as there is room for, that of the hit included, and writes the chain at `R8`. `R6` is the
    /// number of callers, which the verifier knows in each round; `R9` is the frame pointer.
    pub(super) fn follow_frame_pointers(&mut self) {
        let arch = self.spec.arch;
        let pointer = arch.pointer_size();
        let width = Width::of(pointer);
        let register = arch.frame_pointer().unwrap_or_else(|| arch.stack_pointer());
        let offset = self.register(register);
        let asm = &mut self.asm;
        let (next, end, whole) = (asm.label(), asm.label(), asm.label());
        let (limit, unreadable, no_frame) = (asm.label(), asm.label(), asm.label());
        asm.load(Width::Double, Reg::R9, Reg::R6, offset);
        asm.store_value(Width::Double, Reg::R8, PIECE_OFFSET, 0);
        asm.store_value(Width::Double, Reg::R8, LAST_FRAME, 0);
        let ends = ReturnEnds {
            framed: next,
            limit,
            unreadable,
            whole,
        };
        self.put_return_address(ends);
        let asm = &mut self.asm;
        asm.place(next);
        asm.jump_if(If::Equal, Reg::R9, 0, whole);
        asm.load(Width::Double, Reg::R1, Reg::R10, STACK_END);
        asm.op_value(Op::ShiftRight, Reg::R1, 3);
        asm.op_value(Op::Add, Reg::R1, -(CHAIN as i32 / 8 + 1));
        asm.jump_if_reg(If::AtLeast, Reg::R6, Reg::R1, limit);
        self.remove_tag();
        self.frame(unreadable);
        let asm = &mut self.asm;
        asm.load(width, Reg::R2, Reg::R1, 0);
        asm.load(width, Reg::R1, Reg::R1, i16::from(pointer));
        self.remove_authentication();
        let asm = &mut self.asm;
        asm.jump_if(If::Equal, Reg::R1, 0, whole);
        asm.copy(Reg::R3, Reg::R6);
        asm.op_value(Op::ShiftLeft, Reg::R3, 3);
        asm.op(Op::Add, Reg::R3, Reg::R8);
        asm.store(Width::Double, Reg::R3, CHAIN as i16, Reg::R1);
        asm.op_value(Op::Add, Reg::R6, 1);
        asm.jump_if(If::Equal, Reg::R2, 0, whole);
        asm.jump_if_reg(If::AtMost, Reg::R2, Reg::R9, no_frame);
        asm.copy(Reg::R9, Reg::R2);
        asm.jump(next);
        asm.place(limit);
        let most = self.ends.iter().max().map_or(0, |end| *end) as i32;
        asm.load(Width::Double, Reg::R2, Reg::R10, STACK_END);
        asm.set(Reg::R1, ChainCut::Limit.marks() as i64);
        asm.jump_if(If::AtLeast, Reg::R2, most, end);
        asm.set(Reg::R1, ChainCut::NoRoom.marks() as i64);
        asm.jump(end);
        for (place, cut) in [
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

    /// Sets the number of callers, `R6`, which was the hit's context before: 1 in a function without a frame, whose return address is written.
    fn put_return_address(&mut self, ends: ReturnEnds) {
        match self.spec.return_address {
            None => return self.asm.set(Reg::R6, 0),
            Some(ReturnAddress::Register(register)) => {
                let offset = self.register(register);
                self.asm.load(Width::Double, Reg::R1, Reg::R6, offset);
                self.remove_authentication();
                self.asm.set(Reg::R6, 0);
            }
            Some(ReturnAddress::Stack(above)) => self.read_return_address(above, &ends),
        }
        let asm = &mut self.asm;
        asm.jump_if(If::Equal, Reg::R1, 0, ends.whole);
        asm.load(Width::Double, Reg::R2, Reg::R10, STACK_END);
        // The hit itself has no place in the chain, but counts.
        asm.jump_if(If::Below, Reg::R2, CHAIN as i32 + 2 * 8, ends.limit);
        asm.store(Width::Double, Reg::R8, CHAIN as i16, Reg::R1);
        asm.set(Reg::R6, 1);
    }

    /// `R1` = the return address so many bytes above the stack pointer, `R6` = 0. Jumps if the function has a frame, or the address cannot be read.
    fn read_return_address(&mut self, above: u32, ends: &ReturnEnds) {
        let arch = self.spec.arch;
        let pointer = arch.pointer_size();
        let offset = self.register(arch.stack_pointer());
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R3, Reg::R6, offset);
        asm.set(Reg::R1, above.into());
        asm.op(Op::Add, Reg::R3, Reg::R1);
        asm.set(Reg::R6, 0);
        // Unwind tables do not say whether a saved frame pointer was set, too.
        asm.copy(Reg::R1, Reg::R3);
        asm.op_value(Op::Add, Reg::R1, -i32::from(pointer));
        asm.jump_if_reg(If::Equal, Reg::R9, Reg::R1, ends.framed);
        asm.copy(Reg::R1, Reg::R10);
        asm.op_value(Op::Add, Reg::R1, WORD.into());
        asm.set(Reg::R2, pointer.into());
        asm.call(Helper::ReadUser);
        asm.jump_if(If::NotEqual, Reg::R0, 0, ends.unreadable);
        asm.load(Width::of(pointer), Reg::R1, Reg::R10, WORD);
    }

    /// Removes the authentication code of a code pointer from `R1`.
    fn remove_authentication(&mut self) {
        if let Some(bits) = self.spec.arch.pointer_authentication_bits() {
            let unused = 64 - i32::from(*bits.start());
            self.asm.op_value(Op::ShiftLeft, Reg::R1, unused);
            self.asm.op_value(Op::ShiftRight, Reg::R1, unused);
        }
    }

    /// `R1` = address of a copy of the frame at `R9`; jumps to `unreadable` if it cannot be read.
    fn frame(&mut self, unreadable: Label) {
        let (read, known) = (self.asm.label(), self.asm.label());
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R1, Reg::R8, PIECE_OFFSET);
        asm.op(Op::Add, Reg::R1, Reg::R9);
        asm.load(Width::Double, Reg::R2, Reg::R8, LAST_FRAME);
        asm.jump_if_reg(If::Above, Reg::R1, Reg::R2, read);
        // It is never above this, which the verifier does not know.
        asm.load(Width::Double, Reg::R2, Reg::R10, STACK_END);
        asm.op_value(Op::Add, Reg::R2, -FRAME);
        asm.jump_if_reg(If::Above, Reg::R1, Reg::R2, read);
        self.next_address(Reg::R2);
        let asm = &mut self.asm;
        asm.jump_if_reg(If::AtLeast, Reg::R1, Reg::R2, known);
        asm.place(read);
        self.read_piece(unreadable);
        let asm = &mut self.asm;
        asm.place(known);
        asm.op(Op::Add, Reg::R1, Reg::R8);
    }

    /// Reads the stack from `R9` to the room that is left, but not beyond the page: the next one may not be resident. `R1` = offset of that
    /// room.
    fn read_piece(&mut self, unreadable: Label) {
        let frame = 2 * i32::from(self.spec.arch.pointer_size());
        self.next_address(Reg::R1);
        let asm = &mut self.asm;
        let (fits, short, long) = (asm.label(), asm.label(), asm.label());
        asm.copy(Reg::R3, Reg::R9);
        asm.op_value(Op::And, Reg::R3, PAGE - 1);
        asm.set(Reg::R2, i64::from(PAGE));
        asm.op(Op::Sub, Reg::R2, Reg::R3);
        asm.jump_if(If::AtLeast, Reg::R2, frame, long);
        asm.set(Reg::R2, i64::from(frame));
        asm.place(long);
        asm.jump_if(If::AtMost, Reg::R2, PIECE, short);
        asm.set(Reg::R2, i64::from(PIECE));
        asm.place(short);
        asm.load(Width::Double, Reg::R3, Reg::R10, STACK_END);
        asm.op(Op::Sub, Reg::R3, Reg::R1);
        asm.jump_if_reg(If::AtMost, Reg::R2, Reg::R3, fits);
        asm.copy(Reg::R2, Reg::R3);
        asm.place(fits);
        asm.copy(Reg::R3, Reg::R1);
        asm.op(Op::Sub, Reg::R3, Reg::R9);
        asm.store(Width::Double, Reg::R8, PIECE_OFFSET, Reg::R3);
        asm.copy(Reg::R3, Reg::R1);
        asm.op(Op::Add, Reg::R3, Reg::R2);
        asm.op_value(Op::Add, Reg::R3, -frame);
        asm.store(Width::Double, Reg::R8, LAST_FRAME, Reg::R3);
        asm.op(Op::Add, Reg::R1, Reg::R8);
        asm.copy(Reg::R3, Reg::R9);
        asm.call(Helper::ReadUser);
        asm.jump_if(If::NotEqual, Reg::R0, 0, unreadable);
        self.next_address(Reg::R1);
    }

    /// `to` = offset of the next address in the end of the record.
    fn next_address(&mut self, to: Reg) {
        self.asm.copy(to, Reg::R6);
        self.asm.op_value(Op::ShiftLeft, to, 3);
        self.asm.op_value(Op::Add, to, CHAIN as i32);
    }
}
