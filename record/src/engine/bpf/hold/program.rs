//! The programs on `fork` and `execve`, and the work of a held task.

use super::super::context::instruction_pointer;
use super::super::control;
use super::super::insn::{Assembler, Code, Helper, If, Label, Map, Op, Reg, Width};
use super::super::members::Members;
use super::super::program::{FOLLOWED, NAMED};
use super::kernel::Kernel;

/// How long a process is held at most, ns.
const LONGEST: i32 = 2_000_000_000;

/// Stack slots: a process id of 4 bytes, a 4-byte value, the 8-byte key of a piece of work, and an empty one.
const KEY: i16 = -4;
const VALUE: i16 = -8;
const WORK: i16 = -16;
const EMPTY: i16 = -40;

/// Offsets in the map's values: since when the process is held, and where in its program it was when it began (0 later).
const SINCE: i16 = 8;
const AT: i16 = 16;
/// Each process has two pieces of work, which schedule each other: one cannot while it runs.
const OTHER: i32 = 1;

/// `sched_process_fork(parent, child)`: a child of one who is in the map comes into it, and is held.
pub(super) fn forked(kernel: Kernel) -> Option<Code> {
    let mut asm = Assembler::default();
    let (out, work) = (asm.label(), asm.label());
    asm.load(Width::Double, Reg::R7, Reg::R1, 8);
    is_tracked(&mut asm, out);
    read(&mut asm, Reg::R7, kernel.members.tgid, (4, VALUE), out);
    asm.load(Width::Word, Reg::R1, Reg::R10, VALUE);
    asm.load(Width::Word, Reg::R2, Reg::R10, KEY);
    // A thread.
    asm.jump_if_reg(If::Equal, Reg::R1, Reg::R2, out);
    asm.store(Width::Word, Reg::R10, KEY, Reg::R1);
    track(&mut asm);
    hold(&mut asm, kernel, (out, work));
    finish(asm, kernel, (out, work))
}

/// `sched_process_exec(task, old_pid, binprm)`: a thread other than the first that executes a program becomes the first; the kernel no
/// longer knows it as the one with the probes. One that runs in real time could keep us from all processors while its children wait: it is held
/// before it has any.
pub(super) fn executed(kernel: Kernel) -> Option<Code> {
    /// Priorities below run in real time (include/linux/sched/prio.h).
    const MAX_RT_PRIO: i32 = 100;
    let mut asm = Assembler::default();
    let (out, work) = (asm.label(), asm.label());
    let (other, held) = (asm.label(), asm.label());
    asm.load(Width::Double, Reg::R7, Reg::R1, 0);
    asm.load(Width::Double, Reg::R8, Reg::R1, 8);
    is_tracked(&mut asm, out);
    asm.load(Width::Word, Reg::R1, Reg::R0, 0);
    asm.jump_if(If::Equal, Reg::R1, FOLLOWED.cast_signed(), out);
    asm.cut_to_32(Reg::R8);
    asm.load(Width::Word, Reg::R1, Reg::R10, KEY);
    asm.jump_if_reg(If::NotEqual, Reg::R1, Reg::R8, other);
    let priority = kernel.members.priority;
    read(&mut asm, Reg::R7, priority, (4, VALUE), out);
    asm.load(Width::Word, Reg::R1, Reg::R10, VALUE);
    asm.op_value(Op::ShiftLeft, Reg::R1, 32);
    asm.op_value(Op::ShiftRightSigned, Reg::R1, 32);
    asm.jump_if(If::AtLeastSigned, Reg::R1, MAX_RT_PRIO, out);
    asm.jump(held);
    asm.place(other);
    track(&mut asm);
    asm.place(held);
    hold(&mut asm, kernel, (out, work));
    finish(asm, kernel, (out, work))
}

/// `sched_process_exit(task)`: when the first thread of a named process ends before the others, what the kernel plants in that process
/// alone goes on where it is, but does not come to files that are mapped later.
pub(super) fn left(kernel: Kernel) -> Option<Code> {
    /// `SIGNAL_GROUP_EXIT` (include/linux/sched/signal.h): all threads end.
    const GROUP_EXIT: i32 = 4;
    let Members {
        signal,
        live,
        flags,
        ..
    } = kernel.members;
    let mut asm = Assembler::default();
    let out = asm.label();
    asm.load(Width::Double, Reg::R7, Reg::R1, 0);
    is_tracked(&mut asm, out);
    asm.load(Width::Word, Reg::R1, Reg::R0, 0);
    asm.jump_if(If::NotEqual, Reg::R1, NAMED.cast_signed(), out);
    asm.call(Helper::PidTgid);
    asm.copy(Reg::R1, Reg::R0);
    asm.cut_to_32(Reg::R1);
    asm.op_value(Op::ShiftRight, Reg::R0, 32);
    asm.jump_if_reg(If::NotEqual, Reg::R0, Reg::R1, out);
    read(&mut asm, Reg::R7, signal, (8, WORK), out);
    asm.load(Width::Double, Reg::R8, Reg::R10, WORK);
    read(&mut asm, Reg::R8, live, (4, VALUE), out);
    asm.load(Width::Word, Reg::R1, Reg::R10, VALUE);
    asm.jump_if(If::Equal, Reg::R1, 0, out);
    read(&mut asm, Reg::R8, flags, (4, VALUE), out);
    asm.load(Width::Word, Reg::R1, Reg::R10, VALUE);
    asm.op_value(Op::And, Reg::R1, GROUP_EXIT);
    asm.jump_if(If::NotEqual, Reg::R1, 0, out);
    count(&mut asm, control::CALLS);
    released(&mut asm, out);
    call(&mut asm, out);
    asm.place(out);
    asm.set(Reg::R0, 0);
    asm.exit();
    asm.finish()
}

/// Reads `size` bytes at `from + offset` of the kernel into a slot.
fn read(asm: &mut Assembler, from: Reg, offset: u32, (size, slot): (i64, i16), out: Label) {
    asm.copy(Reg::R3, from);
    asm.op_value(Op::Add, Reg::R3, offset.cast_signed());
    asm.copy(Reg::R1, Reg::R10);
    asm.op_value(Op::Add, Reg::R1, slot.into());
    asm.set(Reg::R2, size);
    asm.call(Helper::ReadKernel);
    asm.jump_if(If::NotEqual, Reg::R0, 0, out);
}

/// Wakes who plants.
fn call(asm: &mut Assembler, out: Label) {
    asm.set_map(Reg::R1, Map::Calls);
    asm.set(Reg::R2, 8);
    asm.set(Reg::R3, 0);
    asm.call(Helper::RingReserve);
    // It is full of calls, of which we take the first only.
    asm.jump_if(If::Equal, Reg::R0, 0, out);
    asm.copy(Reg::R1, Reg::R0);
    asm.store_value(Width::Double, Reg::R1, 0, 0);
    asm.set(Reg::R2, 0);
    asm.call(Helper::RingSubmit);
}

/// Gives the task that runs it work, which counts a call. The result is 0, or a negative error number.
pub(super) fn trial(kernel: Kernel) -> Option<Code> {
    let mut asm = Assembler::default();
    let (out, work, missed) = (asm.label(), asm.label(), asm.label());
    asm.store_value(Width::Double, Reg::R10, WORK, 0);
    asm.set(Reg::R9, (-libc::ENOMEM).into());
    find_work(&mut asm, false, missed);
    asm.call(Helper::CurrentTaskBtf);
    asm.copy(Reg::R1, Reg::R0);
    schedule(&mut asm, kernel, (work, out));
    asm.jump(out);
    asm.place(missed);
    asm.copy(Reg::R0, Reg::R9);
    asm.place(out);
    asm.exit();
    asm.function(work);
    count(&mut asm, control::CALLS);
    asm.set(Reg::R0, 0);
    asm.exit();
    asm.finish()
}

/// The current process's id into its slot; leaves if it is not recorded.
fn is_tracked(asm: &mut Assembler, out: Label) {
    asm.call(Helper::PidTgid);
    asm.op_value(Op::ShiftRight, Reg::R0, 32);
    asm.store(Width::Word, Reg::R10, KEY, Reg::R0);
    map_call(asm, Helper::MapLookup, Map::Tracked, KEY);
    asm.jump_if(If::Equal, Reg::R0, 0, out);
}

/// Records the process of the id in its slot as one without probes of its own.
fn track(asm: &mut Assembler) {
    asm.store_value(Width::Word, Reg::R10, VALUE, FOLLOWED.cast_signed());
    asm.copy(Reg::R3, Reg::R10);
    asm.op_value(Op::Add, Reg::R3, VALUE.into());
    asm.set(Reg::R4, 0);
    map_call(asm, Helper::MapUpdate, Map::Tracked, KEY);
}

/// Holds the task in `R7`, whose process id is in its slot, and calls us.
fn hold(asm: &mut Assembler, kernel: Kernel, (out, work): (Label, Label)) {
    let (missed, wake) = (asm.label(), asm.label());
    // We do it the other way round: let nobody go, then look whether there was a call.
    count(asm, control::CALLS);
    released(asm, out);
    asm.load(Width::Word, Reg::R1, Reg::R10, KEY);
    asm.store(Width::Double, Reg::R10, WORK, Reg::R1);
    find_work(asm, false, missed);
    asm.call(Helper::KtimeNs);
    asm.store(Width::Double, Reg::R8, SINCE, Reg::R0);
    asm.copy(Reg::R1, Reg::R7);
    asm.call(Helper::TaskPtRegs);
    asm.load(Width::Double, Reg::R0, Reg::R0, instruction_pointer());
    asm.store(Width::Double, Reg::R8, AT, Reg::R0);
    asm.copy(Reg::R1, Reg::R7);
    schedule(asm, kernel, (work, missed));
    asm.jump(wake);
    asm.place(missed);
    count(asm, control::MISSED);
    asm.place(wake);
    call(asm, out);
}

/// Ends the program, after which comes the function that a held task runs.
fn finish(mut asm: Assembler, kernel: Kernel, (out, work): (Label, Label)) -> Option<Code> {
    asm.place(out);
    asm.set(Reg::R0, 0);
    asm.exit();
    asm.function(work);
    wait(&mut asm, kernel, work);
    asm.finish()
}

/// The work of a held task: `R2` is its key, `R3` its value.
fn wait(asm: &mut Assembler, kernel: Kernel, work: Label) {
    let (out, missed, longer, began) = (asm.label(), asm.label(), asm.label(), asm.label());
    asm.copy(Reg::R7, Reg::R3);
    asm.load(Width::Double, Reg::R1, Reg::R2, 0);
    asm.set(Reg::R2, i64::from(OTHER) << 32);
    asm.op(Op::Xor, Reg::R1, Reg::R2);
    asm.store(Width::Double, Reg::R10, WORK, Reg::R1);
    asm.call(Helper::CurrentTaskBtf);
    asm.copy(Reg::R9, Reg::R0);
    // Whether it has run already: the work came too late.
    asm.load(Width::Double, Reg::R6, Reg::R7, AT);
    asm.jump_if(If::Equal, Reg::R6, 0, began);
    asm.copy(Reg::R1, Reg::R9);
    asm.call(Helper::TaskPtRegs);
    asm.load(Width::Double, Reg::R1, Reg::R0, instruction_pointer());
    asm.jump_if_reg(If::Equal, Reg::R1, Reg::R6, began);
    count(asm, control::MISSED);
    asm.place(began);
    released(asm, out);
    asm.call(Helper::KtimeNs);
    asm.load(Width::Double, Reg::R6, Reg::R7, SINCE);
    asm.copy(Reg::R1, Reg::R0);
    asm.op(Op::Sub, Reg::R1, Reg::R6);
    asm.jump_if(If::Below, Reg::R1, LONGEST, longer);
    // Nor is any other held any more.
    asm.set_map_value(Reg::R1, Map::Control, control::RELEASED);
    asm.store_value(Width::Double, Reg::R1, 0, 1);
    asm.jump(missed);
    asm.place(longer);
    find_work(asm, true, missed);
    asm.store(Width::Double, Reg::R8, SINCE, Reg::R6);
    asm.copy(Reg::R1, Reg::R9);
    schedule(asm, kernel, (work, missed));
    asm.jump(out);
    asm.place(missed);
    count(asm, control::MISSED);
    asm.place(out);
    asm.set(Reg::R0, 0);
    asm.exit();
}

/// Leaves if nobody is held.
fn released(asm: &mut Assembler, out: Label) {
    asm.set_map_value(Reg::R1, Map::Control, control::RELEASED);
    asm.load(Width::Double, Reg::R1, Reg::R1, 0);
    asm.jump_if(If::NotEqual, Reg::R1, 0, out);
}

fn count(asm: &mut Assembler, word: u32) {
    asm.set_map_value(Reg::R1, Map::Control, word);
    asm.set(Reg::R2, 1);
    asm.atomic_add(Reg::R1, 0, Reg::R2);
}

/// `R8`: the value of the key in its slot, one that is there or a new one.
fn find_work(asm: &mut Assembler, may_be_there: bool, missed: Label) {
    let found = asm.label();
    if may_be_there {
        map_call(asm, Helper::MapLookup, Map::Held, WORK);
        asm.copy(Reg::R8, Reg::R0);
        asm.jump_if(If::NotEqual, Reg::R0, 0, found);
    }
    for word in 0..3 {
        asm.store_value(Width::Double, Reg::R10, EMPTY + 8 * word, 0);
    }
    asm.copy(Reg::R3, Reg::R10);
    asm.op_value(Op::Add, Reg::R3, EMPTY.into());
    asm.set(Reg::R4, 0);
    map_call(asm, Helper::MapUpdate, Map::Held, WORK);
    map_call(asm, Helper::MapLookup, Map::Held, WORK);
    asm.copy(Reg::R8, Reg::R0);
    asm.jump_if(If::Equal, Reg::R0, 0, missed);
    asm.place(found);
}

/// Gives the task in `R1` the work of the value in `R8`.
fn schedule(asm: &mut Assembler, kernel: Kernel, (work, missed): (Label, Label)) {
    asm.copy(Reg::R2, Reg::R8);
    asm.set_map(Reg::R3, Map::Held);
    asm.set_function(Reg::R4, work);
    asm.set(Reg::R5, 0);
    asm.call_kernel(kernel.schedule);
    asm.cut_to_32(Reg::R0);
    asm.jump_if(If::NotEqual, Reg::R0, 0, missed);
}

fn map_call(asm: &mut Assembler, helper: Helper, map: Map, key: i16) {
    asm.set_map(Reg::R1, map);
    asm.copy(Reg::R2, Reg::R10);
    asm.op_value(Op::Add, Reg::R2, key.into());
    asm.call(helper);
}
