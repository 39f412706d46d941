//! Callers by frame pointers: each points to the caller's frame pointer and the return address.
//!
//! A read of user memory takes several times as long as what is done with a frame. So a piece of the stack is read at once, to the room of the
//! addresses that are still to be written. A frame takes at least as much of the stack as its address takes of the room, so most frames of
//! the piece are read before they are overwritten; a frame that was overwritten is read again.
//!
//! A read of user memory takes about 50 ns, of eight bytes as of hundreds. So up to 512 bytes of stack are read at
//! once, but not beyond a page. A chain has room for at least 64 frames, because the piece needs it.

use usdtrec_format::Arch;
use usdtrec_format::perf::ChainCut;
use usdtrec_kernel::bpf::insn::{FunctionKind, Helper, If, Label, Op, Reg, Width};

use super::super::contract::{CHAIN, EndSize, FrameFunction};
use super::super::slots::{STACK_END, WORD};
use super::builder::Program;
use super::stack::PAGE;
use crate::plan::frame::ReturnAddress;

/// Bytes of stack that are read at once, at most: several frames of usual size.
const PIECE: i32 = 512;
/// Until the chain is complete its first word is the offset of the piece in the end of the record, less its address.
const PIECE_OFFSET: i16 = 0;
/// Until the chain is complete its second word is the last offset at which a frame is in the piece.
const LAST_FRAME: i16 = 8;
/// Bytes of a frame of 64 bits.
const FRAME: i32 = 16;

/// Where a chain ends.
#[derive(Clone, Copy)]
struct ChainEnds {
    /// There is no caller.
    whole: Label,
    /// There is no room.
    limit: Label,
    /// Memory cannot be read.
    unreadable: Label,
    /// The next frame is not above the last.
    no_frame: Label,
    /// After the chain.
    done: Label,
}

impl Program<'_> {
    /// Follows the frame pointers to as many frames as there is room for, that of the hit included, and writes the chain at `R8`.
    pub(in crate::engine::bpf) fn follow_frame_pointers(&mut self) {
        let arch = self.spec.arch;
        let register = arch.frame_pointer().unwrap_or_else(|| arch.stack_pointer());
        let offset = self.register(register);
        let framed = self.asm.label();
        let largest = self.ends.iter().max().copied().unwrap_or(0);
        let end = EndSize::InSlot { largest };
        // r9 = PT_REGS_FP(ctx);
        self.asm.load(Width::Double, Reg::R9, Reg::R6, offset);
        let ends = self.chain_ends();
        self.put_return_address(ends, framed);
        self.asm.place(framed);
        if !self.common.functions_take_memory {
            self.walk(arch, ends, end);
            self.asm.place(ends.done);
            return;
        }
        self.call_frame_functions(largest, ends.done);
        let limit = (ends.limit, None);
        let whole = (ends.whole, Some(0));
        let unreadable = (ends.unreadable, Some(ChainCut::Unreadable.marks()));
        match self.spec.return_address {
            None => {}
            Some(ReturnAddress::Register(_)) => self.end_chain(&[limit, whole], end),
            Some(ReturnAddress::Stack(_)) => self.end_chain(&[limit, unreadable, whole], end),
        }
        self.asm.place(ends.done);
    }

    fn chain_ends(&mut self) -> ChainEnds {
        let asm = &mut self.asm;
        ChainEnds {
            whole: asm.label(),
            limit: asm.label(),
            unreadable: asm.label(),
            no_frame: asm.label(),
            done: asm.label(),
        }
    }

    /// Calls the function for the size that the end of the record has, with the end, the frame pointer and the number of callers.
    fn call_frame_functions(&mut self, largest: usize, done: Label) {
        let arch = self.spec.arch;
        let mut sizes = self.ends.clone();
        sizes.retain(|bytes| *bytes > 0);
        for (index, bytes) in sizes.iter().copied().enumerate() {
            let end = EndSize::Known {
                bytes,
                is_largest: bytes == largest,
            };
            let function = self.frame_function(arch, end);
            let other = self.asm.label();
            let asm = &mut self.asm;
            // if (STACK_END == bytes) { frame_function(end, r9, r6); goto done; }
            if index + 1 < sizes.len() {
                asm.load(Width::Double, Reg::R1, Reg::R10, STACK_END);
                asm.jump_if(If::NotEqual, Reg::R1, bytes as i32, other);
            }
            asm.copy(Reg::R1, Reg::R8);
            asm.copy(Reg::R2, Reg::R9);
            asm.copy(Reg::R3, Reg::R6);
            asm.call_function(function);
            asm.jump(done);
            asm.place(other);
        }
    }

    /// The function for these ends, which is written later.
    fn frame_function(&mut self, arch: Arch, end: EndSize) -> Label {
        let known = self.frame_functions.iter();
        let mut known = known.filter(|known| known.arch == arch && known.end == end);
        if let Some(known) = known.next() {
            return known.label;
        }
        let label = self.asm.label();
        let function = FrameFunction { arch, end, label };
        self.frame_functions.push(function);
        label
    }

    /// Writes the functions that follow frame pointers.
    pub(super) fn write_frame_functions(&mut self) {
        for FrameFunction { arch, end, label } in std::mem::take(&mut self.frame_functions) {
            let EndSize::Known { bytes, .. } = end else {
                continue;
            };
            let kind = FunctionKind::WithMemory {
                bytes: bytes as u32,
            };
            self.asm.function(label, kind);
            let ends = self.chain_ends();
            let first = self.asm.label();
            let asm = &mut self.asm;
            // end = r1; r9 = r2; if (!end) goto done;
            asm.copy(Reg::R8, Reg::R1);
            asm.copy(Reg::R9, Reg::R2);
            // The verifier only knows that it may be 0.
            asm.jump_if(If::Equal, Reg::R8, 0, ends.done);
            // r6 = r3 ? 1 : 0;
            asm.set(Reg::R6, 0);
            asm.jump_if(If::Equal, Reg::R3, 0, first);
            asm.set(Reg::R6, 1);
            asm.place(first);
            self.walk(arch, ends, end);
            let asm = &mut self.asm;
            asm.place(ends.done);
            asm.exit_with(0);
        }
    }

    /// Follows the frame pointer in `R9`. `R8` is the end of the record, and `R6` the number of callers, which the verifier knows in each round.
    fn walk(&mut self, arch: Arch, ends: ChainEnds, end: EndSize) {
        let pointer = arch.pointer_size();
        let width = Width::from_bytes(pointer);
        let asm = &mut self.asm;
        let next = asm.label();
        // *(u64 *)(end + PIECE_OFFSET) = 0; *(u64 *)(end + LAST_FRAME) = 0;
        asm.store_value(Width::Double, Reg::R8, PIECE_OFFSET, 0);
        asm.store_value(Width::Double, Reg::R8, LAST_FRAME, 0);
        // next: if (!r9) goto whole; if (r6 >= end_size / 8 - (CHAIN / 8 + 1)) goto limit;
        asm.place(next);
        asm.jump_if(If::Equal, Reg::R9, 0, ends.whole);
        self.end_size(Reg::R1, end);
        let asm = &mut self.asm;
        asm.op_value(Op::ShiftRight, Reg::R1, 3);
        asm.op_value(Op::Add, Reg::R1, -(CHAIN as i32 / 8 + 1));
        asm.jump_if_reg(If::AtLeast, Reg::R6, Reg::R1, ends.limit);
        // r1 = frame(r9); r2 = r1[0]; r1 = remove_authentication(r1[1]); if (!r1) goto whole;
        self.remove_tag_of(arch);
        self.frame(arch, end, ends.unreadable);
        let asm = &mut self.asm;
        asm.load(width, Reg::R2, Reg::R1, 0);
        asm.load(width, Reg::R1, Reg::R1, i16::from(pointer));
        self.remove_authentication(arch);
        let asm = &mut self.asm;
        asm.jump_if(If::Equal, Reg::R1, 0, ends.whole);
        // *(u64 *)(end + CHAIN + 8 * r6++) = r1;
        asm.copy(Reg::R3, Reg::R6);
        asm.op_value(Op::ShiftLeft, Reg::R3, 3);
        asm.op(Op::Add, Reg::R3, Reg::R8);
        asm.store(Width::Double, Reg::R3, CHAIN as i16, Reg::R1);
        asm.op_value(Op::Add, Reg::R6, 1);
        // if (!r2) goto whole; if (r2 <= r9) goto no_frame; r9 = r2; goto next;
        asm.jump_if(If::Equal, Reg::R2, 0, ends.whole);
        asm.jump_if_reg(If::AtMost, Reg::R2, Reg::R9, ends.no_frame);
        asm.copy(Reg::R9, Reg::R2);
        asm.jump(next);
        let marks = |cut: ChainCut| Some(cut.marks());
        let all = [
            (ends.limit, None),
            (ends.unreadable, marks(ChainCut::Unreadable)),
            (ends.no_frame, marks(ChainCut::NoFrame)),
            (ends.whole, Some(0)),
        ];
        self.end_chain(&all, end);
    }

    /// Places these ends, each with the marks of its cut, and writes the marks and the number of callers. No marks: there was no room.
    fn end_chain(&mut self, ends: &[(Label, Option<usize>)], size: EndSize) {
        let written = self.asm.label();
        for (place, marks) in ends {
            // place: r1 = marks; goto written;
            self.asm.place(*place);
            match marks {
                Some(marks) => self.asm.set(Reg::R1, *marks as i64),
                None => self.no_room(size),
            }
            self.asm.jump(written);
        }
        let asm = &mut self.asm;
        // written: end->marks = r1; end->callers = r6;
        asm.place(written);
        asm.store(Width::Double, Reg::R8, 0, Reg::R1);
        asm.store(Width::Double, Reg::R8, 8, Reg::R6);
    }

    /// `R1` = the marks of a chain for which there is no room: another record has more, or none.
    fn no_room(&mut self, size: EndSize) {
        let (limit, no_room) = (ChainCut::Limit.marks(), ChainCut::NoRoom.marks());
        match size {
            EndSize::Known { is_largest, .. } => {
                let marks = if is_largest { limit } else { no_room };
                self.asm.set(Reg::R1, marks as i64);
            }
            EndSize::InSlot { largest } => {
                let asm = &mut self.asm;
                let chosen = asm.label();
                // r1 = STACK_END >= largest ? limit : no_room;
                asm.load(Width::Double, Reg::R2, Reg::R10, STACK_END);
                asm.set(Reg::R1, limit as i64);
                asm.jump_if(If::AtLeast, Reg::R2, largest as i32, chosen);
                asm.set(Reg::R1, no_room as i64);
                asm.place(chosen);
            }
        }
    }

    /// `to` = size of the end of the record, bytes.
    fn end_size(&mut self, to: Reg, end: EndSize) {
        // to = end is in a slot ? STACK_END : bytes;
        match end {
            EndSize::InSlot { .. } => self.asm.load(Width::Double, to, Reg::R10, STACK_END),
            EndSize::Known { bytes, .. } => self.asm.set(to, bytes as i64),
        }
    }

    /// Sets the number of callers, `R6`, which was the hit's context before: 1 in a function without a frame, whose return address is written.
    fn put_return_address(&mut self, ends: ChainEnds, framed: Label) {
        let arch = self.spec.arch;
        match self.spec.return_address {
            None => return self.asm.set(Reg::R6, 0),
            Some(ReturnAddress::Register(register)) => {
                let offset = self.register(register);
                // r1 = remove_authentication(ctx->register); r6 = 0;
                self.asm.load(Width::Double, Reg::R1, Reg::R6, offset);
                self.remove_authentication(arch);
                self.asm.set(Reg::R6, 0);
            }
            Some(ReturnAddress::Stack(above)) => self.read_return_address(above, ends, framed),
        }
        let asm = &mut self.asm;
        // if (!r1) goto whole; if (STACK_END < CHAIN + 2 * 8) goto limit;
        asm.jump_if(If::Equal, Reg::R1, 0, ends.whole);
        asm.load(Width::Double, Reg::R2, Reg::R10, STACK_END);
        // The hit itself has no place in the chain, but counts.
        asm.jump_if(If::Below, Reg::R2, CHAIN as i32 + 2 * 8, ends.limit);
        // *(u64 *)(end + CHAIN) = r1; r6 = 1;
        asm.store(Width::Double, Reg::R8, CHAIN as i16, Reg::R1);
        asm.set(Reg::R6, 1);
    }

    /// `R1` = the return address so many bytes above the stack pointer, `R6` = 0. Jumps if the function has a frame, or the address cannot be read.
    fn read_return_address(&mut self, above: u32, ends: ChainEnds, framed: Label) {
        let arch = self.spec.arch;
        let pointer = arch.pointer_size();
        let offset = self.register(arch.stack_pointer());
        let asm = &mut self.asm;
        // r3 = PT_REGS_SP(ctx) + above; r6 = 0;
        asm.load(Width::Double, Reg::R3, Reg::R6, offset);
        asm.set(Reg::R1, above.into());
        asm.op(Op::Add, Reg::R3, Reg::R1);
        asm.set(Reg::R6, 0);
        // Unwind tables do not say whether a saved frame pointer was set, too.
        // if (r9 == r3 - pointer) goto framed;
        asm.address(Reg::R1, Reg::R3, -i32::from(pointer));
        asm.jump_if_reg(If::Equal, Reg::R9, Reg::R1, framed);
        // if (bpf_probe_read_user(&WORD, pointer, r3)) goto unreadable; r1 = WORD;
        asm.address(Reg::R1, Reg::R10, WORD.into());
        asm.set(Reg::R2, pointer.into());
        asm.call(Helper::ReadUser);
        asm.jump_if(If::NotEqual, Reg::R0, 0, ends.unreadable);
        asm.load(Width::from_bytes(pointer), Reg::R1, Reg::R10, WORD);
    }

    /// Removes the authentication code of a code pointer from `R1`.
    fn remove_authentication(&mut self, arch: Arch) {
        if let Some(bits) = arch.pointer_authentication_bits() {
            let unused = 64 - i32::from(*bits.start());
            // r1 = r1 << unused >> unused;
            self.asm.extend(Reg::R1, unused, false);
        }
    }

    /// `R1` = address of a copy of the frame at `R9`; jumps to `unreadable` if it cannot be read.
    fn frame(&mut self, arch: Arch, end: EndSize, unreadable: Label) {
        let (read, known) = (self.asm.label(), self.asm.label());
        let asm = &mut self.asm;
        // r1 = *(u64 *)(end + PIECE_OFFSET) + r9; if (r1 > *(u64 *)(end + LAST_FRAME)) goto read;
        asm.load(Width::Double, Reg::R1, Reg::R8, PIECE_OFFSET);
        asm.op(Op::Add, Reg::R1, Reg::R9);
        asm.load(Width::Double, Reg::R2, Reg::R8, LAST_FRAME);
        asm.jump_if_reg(If::Above, Reg::R1, Reg::R2, read);
        // It is never above this, which the verifier does not know.
        // if (r1 > end_size - FRAME) goto read; if (r1 >= CHAIN + 8 * r6) goto known;
        self.end_size(Reg::R2, end);
        let asm = &mut self.asm;
        asm.op_value(Op::Add, Reg::R2, -FRAME);
        asm.jump_if_reg(If::Above, Reg::R1, Reg::R2, read);
        self.next_address(Reg::R2);
        let asm = &mut self.asm;
        asm.jump_if_reg(If::AtLeast, Reg::R1, Reg::R2, known);
        // read: r1 = read_piece(r9); known: r1 = end + r1;
        asm.place(read);
        self.read_piece(arch, end, unreadable);
        let asm = &mut self.asm;
        asm.place(known);
        asm.op(Op::Add, Reg::R1, Reg::R8);
    }

    /// Reads the stack from `R9` to the room that is left, but not beyond the page: the next one may not be resident. `R1` = offset of that
    /// room.
    fn read_piece(&mut self, arch: Arch, end: EndSize, unreadable: Label) {
        let frame = 2 * i32::from(arch.pointer_size());
        // r1 = CHAIN + 8 * r6; r2 = max(PAGE - (r9 & (PAGE - 1)), frame); r2 = min(r2, PIECE);
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
        // r2 = min(r2, end_size - r1);
        self.end_size(Reg::R3, end);
        let asm = &mut self.asm;
        asm.op(Op::Sub, Reg::R3, Reg::R1);
        asm.jump_if_reg(If::AtMost, Reg::R2, Reg::R3, fits);
        asm.copy(Reg::R2, Reg::R3);
        asm.place(fits);
        // *(u64 *)(end + PIECE_OFFSET) = r1 - r9; *(u64 *)(end + LAST_FRAME) = r1 + r2 - frame;
        asm.copy(Reg::R3, Reg::R1);
        asm.op(Op::Sub, Reg::R3, Reg::R9);
        asm.store(Width::Double, Reg::R8, PIECE_OFFSET, Reg::R3);
        asm.copy(Reg::R3, Reg::R1);
        asm.op(Op::Add, Reg::R3, Reg::R2);
        asm.op_value(Op::Add, Reg::R3, -frame);
        asm.store(Width::Double, Reg::R8, LAST_FRAME, Reg::R3);
        // if (bpf_probe_read_user(end + r1, r2, r9)) goto unreadable; r1 = CHAIN + 8 * r6;
        asm.op(Op::Add, Reg::R1, Reg::R8);
        asm.copy(Reg::R3, Reg::R9);
        asm.call(Helper::ReadUser);
        asm.jump_if(If::NotEqual, Reg::R0, 0, unreadable);
        self.next_address(Reg::R1);
    }

    /// `to` = offset of the next address in the end of the record.
    fn next_address(&mut self, to: Reg) {
        // to = CHAIN + 8 * r6;
        self.asm.copy(to, Reg::R6);
        self.asm.op_value(Op::ShiftLeft, to, 3);
        self.asm.op_value(Op::Add, to, CHAIN as i32);
    }
}
