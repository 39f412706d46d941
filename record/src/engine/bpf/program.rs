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

use usdtrec_format::{Arch, RawArgument, RawField, RawLayout, RawString, Register};

use super::context::{IP, register_offset};
use super::control;
use super::insn::{Assembler, Code, Helper, If, Label, Map, Op, Reg, Width};
use crate::plan::capture::{Address, Capture, LEAST_POINTER, Read, Source};
use crate::plan::condition::Condition;

/// Offset of the raw part in a record.
pub(in crate::engine) const RAW: usize = 52;

/// Bits of a cookie that are the sample's id.
pub(super) const ID_BITS: u32 = 48;

/// Stack slots, from the stack's end.
const KEY: i16 = -4;
const TOUCHED: i16 = -8;
const WORD: i16 = -16;
const NOW: i16 = -24;
const HABITS: i16 = -32;

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
    /// Bytes that the place of the breakpoint is behind the probe's nop.
    pub(super) behind: u8,
}

/// What all programs of a session have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Common {
    /// Whether the programs may sleep, and so read memory that is not resident.
    pub(super) sleepable: bool,
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
    pub(super) thread_base: Option<u32>,
}

/// When to stop the process that hits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// When so many bytes of the ring are filled.
    pub(super) at: u32,
    /// Never this process: ours.
    pub(super) except: u32,
}

/// Whose hits count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Who {
    /// Everybody's.
    #[default]
    All,
    /// Those of the processes in the map.
    Processes,
    /// Those of the threads in the map.
    Threads,
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
    let mut program = Program { asm, spec, common };
    program.asm.copy(Reg::R6, Reg::R1);
    program.gate(out);
    if let Some(condition) = spec.condition {
        let passed = program.asm.label();
        program.condition(condition, passed, out);
        program.asm.place(passed);
    }
    program.reserve(dropped);
    program.head();
    program.arguments();
    program.submit();
    program.asm.place(out);
    program.asm.set(Reg::R0, 0);
    program.asm.exit();
    program.asm.place(dropped);
    program.count_loss(out);
    program.asm.finish()
}

/// A program being put together.
pub(super) struct Program<'a> {
    pub(super) asm: Assembler,
    pub(super) spec: &'a Spec<'a>,
    pub(super) common: &'a Common,
}

impl Program<'_> {
    /// Leaves if the hit does not count.
    fn gate(&mut self, out: Label) {
        let asm = &mut self.asm;
        asm.set_map_value(Reg::R1, Map::Control, control::ENABLED);
        asm.load(Width::Double, Reg::R1, Reg::R1, 0);
        asm.jump_if(If::Equal, Reg::R1, 0, out);
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
        if self.common.who == Who::Processes {
            asm.op_value(Op::ShiftRight, Reg::R0, 32);
        }
        asm.store(Width::Word, Reg::R10, KEY, Reg::R0);
        asm.set_map(Reg::R1, Map::Tracked);
        asm.copy(Reg::R2, Reg::R10);
        asm.op_value(Op::Add, Reg::R2, KEY.into());
        asm.call(Helper::MapLookup);
        asm.jump_if(If::Equal, Reg::R0, 0, out);
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
        asm.load(Width::Double, Reg::R1, Reg::R6, IP);
        asm.add(Reg::R1, -i64::from(self.spec.behind), Reg::R2);
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
        self.asm.store_value(Width::of(field.size), Reg::R7, to, 0);
        self.asm.set(Reg::R1, 1 << bit);
        self.asm.op(Op::Or, Reg::R8, Reg::R1);
        if let Some(string) = field.string {
            self.status(at(string.status), libc::EFAULT);
        }
        self.asm.place(done);
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
        let is_near_ip = address.base == Some(Register::PROGRAM_COUNTER);
        let behind = if is_near_ip { self.spec.behind } else { 0 };
        let offset = address.offset.wrapping_sub(behind.into());
        self.asm.add(Reg::R9, offset, Reg::R1);
        if self.spec.arch.pointer_size() == 4 {
            self.asm.cut_to_32(Reg::R9);
        }
    }

    /// `R9` = the base of the thread's storage.
    fn thread_base(&mut self, unreadable: Label) {
        let at = self.common.thread_base.unwrap_or(0);
        let asm = &mut self.asm;
        asm.call(Helper::CurrentTask);
        asm.copy(Reg::R3, Reg::R0);
        asm.op_value(Op::Add, Reg::R3, at.cast_signed());
        asm.copy(Reg::R1, Reg::R10);
        asm.op_value(Op::Add, Reg::R1, WORD.into());
        asm.set(Reg::R2, 8);
        asm.call(Helper::ReadKernel);
        asm.jump_if(If::NotEqual, Reg::R0, 0, unreadable);
        asm.load(Width::Double, Reg::R9, Reg::R10, WORD);
    }

    /// Reads `size` bytes at `R9` into the record.
    fn memory(&mut self, size: u8, to: i16, unreadable: Label) {
        let done = self.asm.label();
        let helpers: &[Helper] = if self.common.sleepable {
            &[Helper::ReadUser, Helper::CopyFromUser]
        } else {
            &[Helper::ReadUser]
        };
        for &helper in helpers {
            self.read_user(helper, size.into(), to.into());
            self.asm.jump_if(If::Equal, Reg::R0, 0, done);
        }
        self.asm.jump(unreadable);
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
        self.try_string(to, read);
        if !string.known {
            self.unreadable_again(habit, nowhere);
        }
        let status = at(string.status);
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

    /// Reads the string at `R9`; if it can, jumps with its length in `R0`.
    fn try_string(&mut self, to: i32, read: Label) {
        let room = i32::from(self.spec.layout.string_limit) + 2;
        self.read_user(Helper::ReadUserStr, room, to);
        self.asm.jump_if(If::AtLeastSigned, Reg::R0, 0, read);
        if !self.common.sleepable {
            return;
        }
        let nowhere = self.asm.label();
        // What is not resident comes when it is touched; a string crosses into one page, two if it is as long as one.
        self.touch(0);
        self.asm.jump_if(If::NotEqual, Reg::R0, 0, nowhere);
        if room > 4096 {
            self.touch(2048);
        }
        self.touch(room - 1);
        self.read_user(Helper::ReadUserStr, room, to);
        self.asm.jump_if(If::AtLeastSigned, Reg::R0, 0, read);
        self.asm.place(nowhere);
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

    /// Reads a byte `distance` from `R9`, so that it becomes resident; `R0` is 0 if it can.
    pub(super) fn touch(&mut self, distance: i32) {
        let asm = &mut self.asm;
        asm.copy(Reg::R1, Reg::R10);
        asm.op_value(Op::Add, Reg::R1, TOUCHED.into());
        asm.set(Reg::R2, 1);
        asm.copy(Reg::R3, Reg::R9);
        asm.op_value(Op::Add, Reg::R3, distance);
        asm.call(Helper::CopyFromUser);
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
            self.stop(stop);
            self.asm.place(enough);
        }
    }

    /// Stops the process, unless it is ours.
    fn stop(&mut self, stop: Stop) {
        let asm = &mut self.asm;
        let ours = asm.label();
        asm.call(Helper::PidTgid);
        asm.op_value(Op::ShiftRight, Reg::R0, 32);
        asm.store(Width::Word, Reg::R10, KEY, Reg::R0);
        asm.jump_if(If::Equal, Reg::R0, stop.except.cast_signed(), ours);
        // To this thread, so that it stops itself, and its process with it: another may wait for a CPU. The signal first:
        // once the process is in the map, it can be continued.
        asm.set(Reg::R1, libc::SIGSTOP.into());
        asm.call(Helper::SendSignalThread);
        asm.set_map(Reg::R1, Map::Stopped);
        for key_and_value in [Reg::R2, Reg::R3] {
            asm.copy(key_and_value, Reg::R10);
            asm.op_value(Op::Add, key_and_value, KEY.into());
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
        if let Some(stop) = self.common.stop {
            self.stop(stop);
        }
        self.asm.jump(out);
    }

    /// Offset of a register, which the plan has found to be there.
    pub(super) fn register(&self, register: Register) -> i16 {
        register_offset(self.spec.arch, register).unwrap_or(IP)
    }
}

/// Offset in the record of an offset in the raw part.
pub(super) const fn at(offset: u16) -> i16 {
    RAW as i16 + offset.cast_signed()
}
