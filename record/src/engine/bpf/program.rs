//! The program of a site: from what is captured to straight-line bytecode that writes a whole `PERF_RECORD_SAMPLE` into
//! the ring.
//!
//! | offset in the record | bytes | |
//! |---|---|---|
//! | 0 | 8 | record header: type 9, misc 2 (user), size |
//! | 8 | 8 | `IDENTIFIER`: the lower 48 bits of the cookie |
//! | 16 | 8 | `IP` |
//! | 24 | 4 + 4 | process, thread |
//! | 32 | 8 | time, ns of `CLOCK_MONOTONIC` |
//! | 40 | 8 | CPU |
//! | 48 | 4 | size of the raw part |
//! | 52 | | raw part ([`RawLayout`]); its `common_type` is the upper 16 bits of the cookie |
//! | behind it | | room for the strings, [`string_room`] bytes each |
//!
//! Registers: `R6` context, `R7` record, `R8` bits of what could not be read, `R9` an address.
//!
//! While a record is reserved nothing waits, as records behind it wait with it: reads do not fault. Where one fails, the record is
//! discarded, the memory is brought in as far as [`Touch`] allows, and all is done again from reserving on ([`Program::absent`]).

use usdtrec_format::{Arch, RawArgument, RawField, RawLayout, RawString, Register, StringStatus};

use super::context::{instruction_pointer, register_offset};
use super::control;
use super::insn::{Assembler, Code, Helper, If, Label, Map, Op, Reg, Width};
use super::nonresident::{Functions, Touch};
use crate::plan::capture::{Capture, LEAST_POINTER};
use crate::plan::condition::Condition;
use crate::plan::read::{Address, Read, Source};

/// Offset of the raw part in a record.
pub(in crate::engine) const RAW: usize = 52;

/// Bits of a cookie that are the sample's id.
pub(super) const ID_BITS: u32 = 48;

/// Stack slots, from the stack's end.
const KEY: i16 = -4;
const WORD: i16 = -16;
const NOW: i16 = -24;
const HABITS: i16 = -32;
/// In the place of texts, which filters read when they have the address.
const DESCRIPTORS: i16 = -80;
/// Address and bytes of what is to be brought in; the first is used by filters, too.
const ABSENT: i16 = -40;
const ABSENT_BYTES: i16 = WORD;
/// How many of the reads that may fail have been seen to: those of which none is tried again.
const READS: i16 = -48;
/// A bit for each of them: set if nothing is mapped there.
const NOT_MAPPED: i16 = -56;

/// Most reads of a program for which memory is brought in.
const MOST_READS: u8 = 63;

/// What is no text of its own accord is not tried for ever: after so many unreadable addresses in a row …
const UNREADABLE: i32 = 32;
/// … none is read for so long. Each costs microseconds.
const PAUSE_NS: i32 = 50_000_000;
/// Bits of a user address (x86-64, Documentation/arch/x86/x86_64/mm.rst).
pub(super) const ADDRESS_BITS: i32 = 47;

/// A site as its program sees it.
#[derive(Clone, Debug)]
pub(super) struct Spec<'a> {
    /// Architecture of the traced program.
    pub(super) arch: Arch,
    /// What is captured of each operand.
    pub(super) captures: &'a [Capture],
    /// Where it goes.
    pub(super) layout: &'a RawLayout,
    /// Which hits count; `None` for all.
    pub(super) condition: Option<&'a Condition>,
}

/// What all programs of a session have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Common {
    /// How memory is brought in that is not resident.
    pub(super) touch: Touch,
    /// CPUs recorded, as ranges of first and last; `None` for all.
    pub(super) cpus: Option<Vec<(u32, u32)>>,
    /// Whose hits count.
    pub(super) who: Who,
    /// Smallest sample id, which counts in the first of the words of losses.
    pub(super) first_id: u64,
    /// Number of sample ids.
    pub(super) ids: u32,
    /// Most strings of a site.
    pub(super) strings: u32,
    /// When to stop the process that hits; `None` loses hits instead.
    pub(super) stop: Option<Stop>,
    /// Where `task_struct` holds the base of thread-local storage.
    pub(super) thread_base: Option<ThreadBase>,
}

/// Offsets in `task_struct`, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadBase {
    /// `thread.fsbase`: the base of a 64-bit program.
    pub(super) fs: u32,
    /// `thread.tls_array`: the three descriptors of a 32-bit program, of which C libraries use the first
    /// (`struct desc_struct`, `arch/x86/include/asm/desc_defs.h`).
    pub(super) descriptors: u32,
}

/// When to stop the process that hits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// When so many bytes of the ring are filled.
    pub(super) at: u32,
}

/// How many bytes are to be brought in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bytes {
    Number(i32),
    /// As many as `R2` says.
    InR2,
}

/// Whose hits count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Who {
    /// Everybody's.
    #[default]
    All,
    /// Those of the processes in the map.
    Processes,
    /// Of these, those of the processes that were named, which have probes of their own.
    Named,
    /// Of these, those of the processes that they started.
    Followed,
    /// Those of the threads in the map.
    Threads,
}

/// What the map holds for a process that was named.
pub(super) const NAMED: u32 = 1;
/// What the map holds for a process that a recorded one started.
pub(super) const FOLLOWED: u32 = 2;

impl Who {
    /// What the map must hold for the process; `None` if that does not matter.
    const fn kind(self) -> Option<u32> {
        match self {
            Self::All | Self::Processes | Self::Threads => None,
            Self::Named => Some(NAMED),
            Self::Followed => Some(FOLLOWED),
        }
    }
}

/// Bytes of a record in the ring.
pub(super) fn record_size(layout: &RawLayout) -> usize {
    RAW + usize::from(layout.size) + layout.strings().count() * string_room(layout)
}

/// Bytes for each string in the ring: one more than the limit tells a longer one, and the NUL.
pub(super) fn string_room(layout: &RawLayout) -> usize {
    (usize::from(layout.string_limit) + 2).next_multiple_of(8)
}

/// Offset in the record of the room for a string.
pub(super) fn string_at(layout: &RawLayout, index: usize) -> i32 {
    (RAW + usize::from(layout.size) + index * string_room(layout)) as i32
}

/// The program. `None` if it is too long.
pub(super) fn generate(spec: &Spec<'_>, common: &Common) -> Option<Code> {
    let mut asm = Assembler::default();
    let (out, dropped) = (asm.label(), asm.label());
    let (again, absent, bring_in) = (asm.label(), asm.label(), asm.label());
    let mut program = Program {
        asm,
        spec,
        common,
        absent,
        bring_in,
        brings_in: false,
        reads: 0,
        is_reserved: false,
    };
    program.asm.copy(Reg::R6, Reg::R1);
    program.gate(out);
    if let Some(condition) = spec.condition {
        let passed = program.asm.label();
        program.condition(condition, passed, out);
        program.asm.place(passed);
    }
    program.asm.store_value(Width::Double, Reg::R10, READS, 0);
    program
        .asm
        .store_value(Width::Double, Reg::R10, NOT_MAPPED, 0);
    program.asm.place(again);
    program.reserve(dropped);
    program.head();
    program.arguments();
    program.submit();
    program.asm.place(out);
    program.asm.set(Reg::R0, 0);
    program.asm.exit();
    program.asm.place(dropped);
    program.count_loss(out);
    if program.reads > 0 {
        program.bring_in_and_do_again(again, out);
    }
    let (touch, brings_in) = (common.touch, program.brings_in);
    let mut asm = program.asm;
    if brings_in {
        let mut functions = Functions {
            asm: &mut asm,
            touch,
        };
        functions.write(bring_in);
    }
    asm.finish()
}

/// A program being put together.
pub(super) struct Program<'a> {
    pub(super) asm: Assembler,
    pub(super) spec: &'a Spec<'a>,
    pub(super) common: &'a Common,
    /// Where what could not be read is brought in.
    absent: Label,
    /// The function that brings memory in.
    bring_in: Label,
    /// Whether it is called.
    brings_in: bool,
    /// Reads so far for which memory is brought in.
    reads: u8,
    /// Whether what is being written runs while a record is reserved.
    is_reserved: bool,
}

impl Program<'_> {
    /// Leaves if no hits count any more.
    fn is_enabled(&mut self, out: Label) {
        let asm = &mut self.asm;
        asm.set_map_value(Reg::R1, Map::Control, control::ENABLED);
        asm.load(Width::Double, Reg::R1, Reg::R1, 0);
        asm.jump_if(If::Equal, Reg::R1, 0, out);
    }

    /// Leaves if the hit does not count.
    fn gate(&mut self, out: Label) {
        self.is_enabled(out);
        let asm = &mut self.asm;
        if let Some(cpus) = &self.common.cpus {
            let counts = asm.label();
            asm.call(Helper::CpuId);
            for &(first, last) in cpus {
                let beyond = asm.label();
                asm.jump_if(If::Below, Reg::R0, first.cast_signed(), beyond);
                asm.jump_if(
                    If::Below,
                    Reg::R0,
                    last.cast_signed().saturating_add(1),
                    counts,
                );
                asm.place(beyond);
            }
            asm.jump(out);
            asm.place(counts);
        }
        if self.common.who == Who::All {
            return;
        }
        asm.call(Helper::PidTgid);
        if self.common.who != Who::Threads {
            asm.op_value(Op::ShiftRight, Reg::R0, 32);
        }
        asm.store(Width::Word, Reg::R10, KEY, Reg::R0);
        asm.set_map(Reg::R1, Map::Tracked);
        asm.copy(Reg::R2, Reg::R10);
        asm.op_value(Op::Add, Reg::R2, KEY.into());
        asm.call(Helper::MapLookup);
        asm.jump_if(If::Equal, Reg::R0, 0, out);
        if let Some(kind) = self.common.who.kind() {
            asm.load(Width::Word, Reg::R1, Reg::R0, 0);
            asm.jump_if(If::NotEqual, Reg::R1, kind.cast_signed(), out);
        }
    }

    /// Makes room in the ring: `R7`.
    fn reserve(&mut self, dropped: Label) {
        let asm = &mut self.asm;
        asm.set_map(Reg::R1, Map::Ring);
        asm.set(Reg::R2, record_size(self.spec.layout) as i64);
        asm.set(Reg::R3, 0);
        asm.call(Helper::RingReserve);
        asm.jump_if(If::Equal, Reg::R0, 0, dropped);
        asm.copy(Reg::R7, Reg::R0);
        self.is_reserved = true;
    }

    /// After a read at `R9` that failed: brings `bytes` of memory in and does all again, or, if that has been done or is not to be,
    /// jumps to `gone` with 1 in `R1` if nothing is mapped there, 0 if it is not resident.
    ///
    /// Reads are seen to in their order, each at most once. So the number of times that all is done again is bounded, and the kernel
    /// need not look at each set of reads that may have failed.
    pub(super) fn absent(&mut self, bytes: Bytes, gone: Label) {
        if self.common.touch == Touch::Never || self.reads == MOST_READS {
            self.asm.set(Reg::R1, 0);
            self.asm.jump(gone);
            return;
        }
        let read = i32::from(self.reads);
        self.reads += 1;
        let asm = &mut self.asm;
        let tried = asm.label();
        match bytes {
            Bytes::Number(bytes) => {
                asm.store_value(Width::Double, Reg::R10, ABSENT_BYTES, bytes);
            }
            Bytes::InR2 => asm.store(Width::Double, Reg::R10, ABSENT_BYTES, Reg::R2),
        }
        asm.store(Width::Double, Reg::R10, ABSENT, Reg::R9);
        asm.load(Width::Double, Reg::R1, Reg::R10, READS);
        asm.jump_if(If::Above, Reg::R1, read, tried);
        asm.store_value(Width::Double, Reg::R10, READS, read + 1);
        asm.jump(self.absent);
        asm.place(tried);
        asm.load(Width::Double, Reg::R1, Reg::R10, NOT_MAPPED);
        asm.op_value(Op::ShiftRight, Reg::R1, read);
        asm.op_value(Op::And, Reg::R1, 1);
        asm.jump(gone);
    }

    /// Discards the record, brings in what could not be read, and goes on at `again`.
    fn bring_in_and_do_again(&mut self, again: Label, out: Label) {
        self.brings_in = true;
        self.asm.place(self.absent);
        let asm = &mut self.asm;
        asm.copy(Reg::R1, Reg::R7);
        // A reader that waits here is woken: the kernel wakes it for the record that it waits for, and for none behind that.
        asm.set(Reg::R2, 0);
        asm.call(Helper::RingDiscard);
        asm.load(Width::Double, Reg::R1, Reg::R10, ABSENT);
        asm.load(Width::Double, Reg::R2, Reg::R10, ABSENT_BYTES);
        asm.call_function(self.bring_in);
        asm.load(Width::Double, Reg::R1, Reg::R10, READS);
        asm.op_value(Op::Add, Reg::R1, -1);
        asm.op(Op::ShiftLeft, Reg::R0, Reg::R1);
        asm.load(Width::Double, Reg::R1, Reg::R10, NOT_MAPPED);
        asm.op(Op::Or, Reg::R1, Reg::R0);
        asm.store(Width::Double, Reg::R10, NOT_MAPPED, Reg::R1);
        // That may have taken long.
        self.is_enabled(out);
        self.asm.jump(again);
    }

    /// Before a record is reserved: brings in `bytes` at `R9`, after a read there that failed.
    pub(super) fn bring_in(&mut self, bytes: i32) {
        self.brings_in = true;
        self.asm.copy(Reg::R1, Reg::R9);
        self.asm.set(Reg::R2, bytes.into());
        self.asm.call_function(self.bring_in);
    }

    /// Whether a record is reserved here.
    pub(super) const fn is_reserved(&self) -> bool {
        self.is_reserved
    }

    /// Everything before the fields. The time is taken when the place in the ring is: order by time is order in the ring.
    fn head(&mut self) {
        const SAMPLE: u64 = 9;
        const USER: u64 = 2;
        let size = record_size(self.spec.layout) as u64;
        let header = SAMPLE | USER << 32 | size << 48;
        let asm = &mut self.asm;
        asm.call(Helper::KtimeNs);
        asm.store(Width::Double, Reg::R7, 32, Reg::R0);
        asm.store(Width::Double, Reg::R10, NOW, Reg::R0);
        asm.set(Reg::R1, header.cast_signed());
        asm.store(Width::Double, Reg::R7, 0, Reg::R1);
        asm.load(Width::Double, Reg::R1, Reg::R6, instruction_pointer());
        asm.store(Width::Double, Reg::R7, 16, Reg::R1);
        asm.call(Helper::PidTgid);
        asm.store(Width::Word, Reg::R7, 28, Reg::R0);
        asm.store(Width::Word, Reg::R7, RAW as i16 + 4, Reg::R0);
        asm.op_value(Op::ShiftRight, Reg::R0, 32);
        asm.store(Width::Word, Reg::R7, 24, Reg::R0);
        asm.call(Helper::CpuId);
        asm.store(Width::Word, Reg::R7, 40, Reg::R0);
        asm.store_value(Width::Word, Reg::R7, 44, 0);
        asm.copy(Reg::R1, Reg::R6);
        asm.call(Helper::AttachCookie);
        asm.copy(Reg::R1, Reg::R0);
        asm.op_value(Op::ShiftRight, Reg::R1, ID_BITS as i32);
        asm.store(Width::Word, Reg::R7, RAW as i16, Reg::R1);
        asm.op_value(Op::ShiftLeft, Reg::R0, 64 - ID_BITS as i32);
        asm.op_value(Op::ShiftRight, Reg::R0, 64 - ID_BITS as i32);
        asm.store(Width::Double, Reg::R7, 8, Reg::R0);
        asm.store_value(Width::Word, Reg::R7, 48, self.spec.layout.size.into());
        if self.spec.layout.strings().any(|string| !string.known) {
            self.habits();
        }
    }

    /// The address of the words of the site's strings, from the id in `R0`.
    fn habits(&mut self) {
        let asm = &mut self.asm;
        let known = asm.label();
        asm.set(Reg::R1, self.common.first_id.cast_signed());
        asm.op(Op::Sub, Reg::R0, Reg::R1);
        asm.jump_if(If::Below, Reg::R0, self.common.ids.cast_signed(), known);
        asm.set(Reg::R0, 0);
        asm.place(known);
        asm.multiply(
            Reg::R0,
            (self.common.strings * control::STRING).cast_signed(),
        );
        let at = control::strings_at(self.common.ids);
        asm.set_map_value(Reg::R1, Map::Control, at);
        asm.op(Op::Add, Reg::R1, Reg::R0);
        asm.store(Width::Double, Reg::R10, HABITS, Reg::R1);
    }

    fn arguments(&mut self) {
        if self.spec.layout.missing.is_some() {
            self.asm.set(Reg::R8, 0);
        }
        let (captures, arguments) = (self.spec.captures, &self.spec.layout.arguments);
        for (capture, argument) in captures.iter().zip(arguments) {
            if let (Capture::Value(read), RawArgument::Field(field)) = (capture, argument) {
                self.value(read, *field);
            }
        }
        self.sized();
        if let Some(missing) = self.spec.layout.missing {
            self.asm.store(Width::Word, Reg::R7, at(missing), Reg::R8);
        }
    }

    /// Writes one value, and the text that it points to.
    fn value(&mut self, read: &Read, field: RawField) {
        let unreadable = self.asm.label();
        let to = at(field.offset);
        match &read.source {
            &Source::Register { register, from } => {
                let offset = self.register(register) + i16::from(from);
                self.asm
                    .load(Width::of(read.size), Reg::R9, Reg::R6, offset);
            }
            Source::Number(number) => self.asm.set(Reg::R9, number.cast_signed()),
            Source::Computed(chain) => self.chain(chain, unreadable),
            Source::Address(address) => self.address(address, unreadable),
            Source::Memory(address) => {
                self.address(address, unreadable);
                self.memory(read.size, to, unreadable);
                self.asm.load(Width::of(read.size), Reg::R9, Reg::R7, to);
            }
        }
        if read.signed && read.size < field.size {
            let unused = 64 - 8 * i32::from(read.size);
            self.asm.op_value(Op::ShiftLeft, Reg::R9, unused);
            self.asm.op_value(Op::ShiftRightSigned, Reg::R9, unused);
        }
        self.asm.store(Width::of(field.size), Reg::R7, to, Reg::R9);
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
            self.gone(at(string.status));
        }
        // `RawField::NOT_RESIDENT` or 0.
        let asm = &mut self.asm;
        asm.set(Reg::R2, RawField::NOT_RESIDENT.cast_signed());
        asm.op(Op::Sub, Reg::R2, Reg::R1);
        asm.store(Width::of(field.size), Reg::R7, to, Reg::R2);
        asm.set(Reg::R1, 1 << bit);
        asm.op(Op::Or, Reg::R8, Reg::R1);
        asm.place(done);
    }

    /// `R9` = the address.
    pub(super) fn address(&mut self, address: &Address, unreadable: Label) {
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

    /// `R9` = the base of the thread's storage.
    fn thread_base(&mut self, unreadable: Label) {
        let Some(base) = self.common.thread_base else {
            self.asm.set(Reg::R1, 1);
            return self.asm.jump(unreadable);
        };
        if self.spec.arch.pointer_size() == 8 {
            self.read_task(base.fs, WORD, 8, unreadable);
            return self.asm.load(Width::Double, Reg::R9, Reg::R10, WORD);
        }
        self.read_task(base.descriptors, DESCRIPTORS, 24, unreadable);
        let asm = &mut self.asm;
        for other in [DESCRIPTORS + 8, DESCRIPTORS + 16] {
            // The segment register is not to be had: only where there is one descriptor it must be that one's.
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

    /// Reads `size` bytes of `task_struct` at `from` to the stack. `R1` is 1 afterwards: what the callers find there then is no storage.
    fn read_task(&mut self, from: u32, to: i16, size: i64, unreadable: Label) {
        let asm = &mut self.asm;
        asm.call(Helper::CurrentTask);
        asm.copy(Reg::R3, Reg::R0);
        asm.op_value(Op::Add, Reg::R3, from.cast_signed());
        asm.copy(Reg::R1, Reg::R10);
        asm.op_value(Op::Add, Reg::R1, to.into());
        asm.set(Reg::R2, size);
        asm.call(Helper::ReadKernel);
        asm.set(Reg::R1, 1);
        asm.jump_if(If::NotEqual, Reg::R0, 0, unreadable);
    }

    /// Reads `size` bytes at `R9` into the record.
    fn memory(&mut self, size: u8, to: i16, unreadable: Label) {
        let done = self.asm.label();
        self.read_user(Helper::ReadUser, size.into(), to.into());
        self.asm.jump_if(If::Equal, Reg::R0, 0, done);
        self.absent(Bytes::Number(size.into()), unreadable);
        self.asm.place(done);
    }

    /// Which of the strings one is.
    pub(super) fn index(&self, string: RawString) -> usize {
        let mut strings = self.spec.layout.strings();
        strings.position(|known| known == string).unwrap_or(0)
    }

    /// Reads the string at `R9`.
    fn string(&mut self, field: RawField) {
        let Some(string) = field.string else { return };
        let index = self.index(string);
        let to = string_at(self.spec.layout, index);
        let habit = (index as i16) * control::STRING as i16;
        let (nowhere, skipped) = (self.asm.label(), self.asm.label());
        let (read, done) = (self.asm.label(), self.asm.label());
        let asm = &mut self.asm;
        asm.jump_if(If::Below, Reg::R9, LEAST_POINTER as i32, nowhere);
        asm.copy(Reg::R1, Reg::R9);
        asm.op_value(Op::ShiftRight, Reg::R1, ADDRESS_BITS);
        asm.jump_if(If::NotEqual, Reg::R1, 0, nowhere);
        if !string.known {
            asm.load(Width::Double, Reg::R1, Reg::R10, HABITS);
            asm.load(Width::Double, Reg::R1, Reg::R1, habit + 8);
            asm.load(Width::Double, Reg::R2, Reg::R10, NOW);
            asm.jump_if_reg(If::Above, Reg::R1, Reg::R2, skipped);
        }
        let room = i32::from(self.spec.layout.string_limit) + 2;
        self.read_user(Helper::ReadUserStr, room, to);
        self.asm.jump_if(If::AtLeastSigned, Reg::R0, 0, read);
        let status = at(string.status);
        if string.known {
            let gone = self.asm.label();
            self.absent(Bytes::Number(room), gone);
            self.asm.place(gone);
            self.gone(status);
            self.asm.jump(done);
        } else {
            // What may be no text at all is not brought in.
            self.unreadable_again(habit, nowhere);
        }
        self.asm.place(nowhere);
        self.status(status, libc::EFAULT);
        self.asm.jump(done);
        if !string.known {
            // Without a way to it the kernel would refuse the program.
            self.asm.place(skipped);
            self.status(status, libc::EAGAIN);
            self.asm.jump(done);
        }
        self.asm.place(read);
        self.asm.store(Width::Half, Reg::R7, status, Reg::R0);
        if !string.known {
            self.readable(habit, done);
        }
        self.asm.place(done);
    }

    /// Counts an unreadable string; after many in a row, none is read for a while.
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

    /// Forgets unreadable strings. The words are of all CPUs: they are written only to change them.
    fn readable(&mut self, habit: i16, done: Label) {
        let asm = &mut self.asm;
        asm.load(Width::Double, Reg::R1, Reg::R10, HABITS);
        asm.load(Width::Double, Reg::R2, Reg::R1, habit);
        asm.jump_if(If::Equal, Reg::R2, 0, done);
        asm.store_value(Width::Double, Reg::R1, habit, 0);
    }

    /// Says why a string was not read.
    pub(super) fn status(&mut self, status: i16, error: i32) {
        self.asm.store_value(Width::Half, Reg::R7, status, -error);
    }

    /// Says why a string was not read: `R1` is 1 if nothing is mapped there, 0 if it is not resident.
    pub(super) fn gone(&mut self, status: i16) {
        const NOT_RESIDENT: i64 = StringStatus::NotResident.word(0, 0) as i64;
        const FAULT: i64 = StringStatus::Fault.word(0, 0) as i64;
        let asm = &mut self.asm;
        asm.copy(Reg::R2, Reg::R1);
        asm.multiply(Reg::R2, (FAULT - NOT_RESIDENT) as i32);
        asm.op_value(Op::Add, Reg::R2, NOT_RESIDENT as i32);
        asm.store(Width::Half, Reg::R7, status, Reg::R2);
    }

    /// Reads `size` bytes at `R9` into the record.
    fn read_user(&mut self, helper: Helper, size: i32, to: i32) {
        let asm = &mut self.asm;
        asm.copy(Reg::R1, Reg::R7);
        asm.op_value(Op::Add, Reg::R1, to);
        asm.set(Reg::R2, size.into());
        asm.copy(Reg::R3, Reg::R9);
        asm.call(helper);
    }

    /// Hands the record over; the reader is woken if it has read all before it.
    fn submit(&mut self) {
        let asm = &mut self.asm;
        asm.copy(Reg::R1, Reg::R7);
        asm.set(Reg::R2, 0);
        asm.call(Helper::RingSubmit);
        if let Some(stop) = self.common.stop {
            const AVAILABLE: i64 = 0;
            let enough = self.asm.label();
            self.asm.set_map(Reg::R1, Map::Ring);
            self.asm.set(Reg::R2, AVAILABLE);
            self.asm.call(Helper::RingQuery);
            self.asm
                .jump_if(If::Below, Reg::R0, stop.at.cast_signed(), enough);
            self.stop();
            self.asm.place(enough);
        }
    }

    /// Stops the process, if that is allowed and it is not spared.
    fn stop(&mut self) {
        let asm = &mut self.asm;
        let ours = asm.label();
        asm.set_map_value(Reg::R1, Map::Control, control::STOPPING);
        asm.load(Width::Double, Reg::R1, Reg::R1, 0);
        asm.jump_if(If::Equal, Reg::R1, 0, ours);
        asm.call(Helper::PidTgid);
        asm.op_value(Op::ShiftRight, Reg::R0, 32);
        asm.store(Width::Word, Reg::R10, KEY, Reg::R0);
        asm.set_map(Reg::R1, Map::Spared);
        asm.copy(Reg::R2, Reg::R10);
        asm.op_value(Op::Add, Reg::R2, KEY.into());
        asm.call(Helper::MapLookup);
        asm.jump_if(If::NotEqual, Reg::R0, 0, ours);
        // To this thread, so that it stops itself, and its process with it: another may wait for a CPU. The signal first:
        // once the process is in the map, it can be continued.
        asm.set(Reg::R1, libc::SIGSTOP.into());
        asm.call(Helper::SendSignalThread);
        // When that was tells the process from a later one of the same id.
        asm.call(Helper::BootNs);
        asm.store(Width::Double, Reg::R10, WORD, Reg::R0);
        asm.set_map(Reg::R1, Map::Stopped);
        for (register, slot) in [(Reg::R2, KEY), (Reg::R3, WORD)] {
            asm.copy(register, Reg::R10);
            asm.op_value(Op::Add, register, slot.into());
        }
        asm.set(Reg::R4, 0);
        asm.call(Helper::MapUpdate);
        asm.place(ours);
    }

    /// Counts a hit that found no room.
    fn count_loss(&mut self, out: Label) {
        let asm = &mut self.asm;
        asm.copy(Reg::R1, Reg::R6);
        asm.call(Helper::AttachCookie);
        asm.op_value(Op::ShiftLeft, Reg::R0, 64 - ID_BITS as i32);
        asm.op_value(Op::ShiftRight, Reg::R0, 64 - ID_BITS as i32);
        asm.set(Reg::R1, self.common.first_id.cast_signed());
        asm.op(Op::Sub, Reg::R0, Reg::R1);
        asm.jump_if(If::AtLeast, Reg::R0, self.common.ids.cast_signed(), out);
        asm.op_value(Op::ShiftLeft, Reg::R0, 3);
        asm.set_map_value(Reg::R1, Map::Control, control::LOSSES);
        asm.op(Op::Add, Reg::R1, Reg::R0);
        asm.set(Reg::R2, 1);
        asm.atomic_add(Reg::R1, 0, Reg::R2);
        if self.common.stop.is_some() {
            self.stop();
        }
        self.asm.jump(out);
    }

    /// Offset of a register, which the plan has found to be there.
    pub(super) fn register(&self, register: Register) -> i16 {
        register_offset(self.spec.arch, register).unwrap_or_else(instruction_pointer)
    }
}

/// Offset in the record of an offset in the raw part.
pub(super) const fn at(offset: u16) -> i16 {
    RAW as i16 + offset.cast_signed()
}
