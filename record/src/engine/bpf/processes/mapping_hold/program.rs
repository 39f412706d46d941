//! The programs on new mappings, and the work of a held thread.

use super::kernel::Kernel;
use crate::engine::bpf::control;
use crate::engine::bpf::insn::{
    Assembler, Code, FunctionKind, Helper, If, Label, Map, Op, Reg, Width,
};
use crate::engine::bpf::preemption;
use crate::engine::bpf::processes::hold::work::{
    self, HELD_TOKEN, MAX_HOLD_NS, MAX_RT_PRIO, NUMBER, SINCE, WORK,
};

/// Stack slots besides those of [`work`]: a 4-byte process id, the token, a time, the start time of the thread, and the 16-byte key of the
/// file.
const KEY: i16 = -4;
const TOKEN: i16 = -32;
const NOW: i16 = -72;
const STARTED: i16 = -80;
const FILE: i16 = -96;

/// When a held thread was started, which distinguishes it from a later one with the same id.
const OF_THREAD: i16 = NUMBER;

/// Offsets in a record, bytes: token, time, ids of thread and process, key of the file, and whether the thread is held.
pub(super) const TOKEN_AT: i16 = 0;
pub(super) const TIME: i16 = 8;
pub(super) const THREAD: i16 = 16;
pub(super) const FILE_AT: i16 = 24;
pub(super) const IS_HELD: i16 = 40;
/// Size of a record, bytes.
pub(super) const CALL_BYTES: i32 = 48;

/// `PROT_EXEC`.
const EXECUTABLE: i32 = 4;
const NS_OF_MS: i32 = 1_000_000;

/// Labels of a program.
#[derive(Clone, Copy)]
struct Labels {
    /// The end of the program.
    out: Label,
    /// The thread is not held, which is counted.
    unheld: Label,
    /// The record in `R9` is submitted.
    submit: Label,
    /// The function that a held thread runs.
    work: Label,
}

/// `mmap_lock_released(mm, write)`: holds the thread if it maps code of a file that is not known by `mmap`. The record of the mapping has been
/// written.
pub(super) fn mapped(kernel: Kernel) -> Option<Code> {
    program(kernel, |asm, out| {
        asm.load(Width::Double, Reg::R6, Reg::R1, 8);
        let writes = asm.label();
        asm.jump_if(If::NotEqual, Reg::R6, 0, writes);
        asm.exit_with(0);
        asm.place(writes);
        preemption::disable(asm, kernel.preemption);
        is_recorded(asm, out)?;
        asm.call(Helper::CurrentTaskBtf);
        asm.copy(Reg::R7, Reg::R0);
        asm.copy(Reg::R1, Reg::R0);
        asm.call(Helper::TaskPtRegs);
        find_descriptor(asm, kernel, out);
        asm.copy(Reg::R8, Reg::R7);
        for offset in kernel.descriptors {
            follow(asm, offset, out);
        }
        asm.op_value(Op::Multiply, Reg::R9, 8);
        asm.op(Op::Add, Reg::R8, Reg::R9);
        follow(asm, 0, out);
        follow(asm, kernel.inode, out);
        Some(())
    })
}

/// `sched_process_exec(task, old_pid, binprm)`: holds the thread if it executes a file that is not known.
pub(super) fn executed(kernel: Kernel) -> Option<Code> {
    program(kernel, |asm, out| {
        asm.load(Width::Double, Reg::R8, Reg::R1, 16);
        preemption::disable(asm, kernel.preemption);
        is_recorded(asm, out)?;
        follow(asm, kernel.executable, out);
        follow(asm, kernel.inode, out);
        Some(())
    })
}

/// A program that holds the thread if a file is not known. `find` disables preemption, finds the inode (`R8`), or jumps to the end.
fn program(kernel: Kernel, find: impl FnOnce(&mut Assembler, Label) -> Option<()>) -> Option<Code> {
    let mut asm = Assembler::default();
    let labels = Labels {
        out: asm.label(),
        unheld: asm.label(),
        submit: asm.label(),
        work: asm.label(),
    };
    let Labels {
        out,
        unheld,
        submit,
        work,
    } = labels;
    find(&mut asm, out)?;
    find_file(&mut asm, kernel, out);
    asm.call_map(Helper::MapLookup, Map::KnownFiles, FILE);
    asm.jump_if(If::NotEqual, Reg::R0, 0, out);
    let full = asm.label();
    begin_record(&mut asm, full);
    may_be_held(&mut asm, kernel, unheld);
    hold(&mut asm, kernel, labels);
    asm.place(unheld);
    asm.count(control::UNHELD);
    asm.place(submit);
    asm.copy(Reg::R1, Reg::R9);
    asm.set(Reg::R2, 0);
    asm.call(Helper::RingSubmit);
    asm.jump(out);
    asm.place(full);
    asm.count(control::UNHELD);
    asm.place(out);
    preemption::enable(&mut asm, kernel.preemption);
    asm.exit_with(0);
    asm.function(work, FunctionKind::Static);
    wait(&mut asm, kernel, work);
    asm.finish()
}

/// Goes on for recorded processes only, and while threads are held. The recorder, which may be a child of one, would wait for itself.
fn is_recorded(asm: &mut Assembler, out: Label) -> Option<()> {
    asm.load_control(control::HOLDING);
    asm.jump_if(If::Equal, Reg::R1, 0, out);
    let own = i32::try_from(std::process::id()).ok()?;
    asm.store_process(KEY);
    asm.jump_if(If::Equal, Reg::R0, own, out);
    asm.call_map(Helper::MapLookup, Map::Tracked, KEY);
    asm.jump_if(If::Equal, Reg::R0, 0, out);
    Some(())
}

/// `R9`: the descriptor that the system call with the registers in `R0` maps; goes on if it is a mapping with code of a file.
fn find_descriptor(asm: &mut Assembler, kernel: Kernel, out: Label) {
    let found = asm.label();
    for call in kernel.calls {
        let other = asm.label();
        asm.load(Width::Word, Reg::R1, Reg::R0, call.number_at);
        asm.jump_if(If::NotEqual, Reg::R1, call.number, other);
        asm.load(Width::Word, Reg::R2, Reg::R0, call.protection_at);
        asm.load(Width::Word, Reg::R9, Reg::R0, call.descriptor_at);
        asm.jump(found);
        asm.place(other);
    }
    asm.jump(out);
    asm.place(found);
    asm.op_value(Op::And, Reg::R2, EXECUTABLE);
    asm.jump_if(If::Equal, Reg::R2, 0, out);
    // -1 is memory of no file.
    asm.extend(Reg::R9, 32, true);
    asm.jump_if(If::BelowSigned, Reg::R9, 0, out);
}

/// `R8` = the pointer in kernel memory at `R8 + offset`.
fn follow(asm: &mut Assembler, offset: u32, out: Label) {
    read(asm, offset, NOW, 8, out);
    asm.load(Width::Double, Reg::R8, Reg::R10, NOW);
    asm.jump_if(If::Equal, Reg::R8, 0, out);
}

/// Reads kernel memory at `R8 + offset` to a slot.
fn read(asm: &mut Assembler, offset: u32, slot: i16, bytes: i64, out: Label) {
    asm.address(Reg::R3, Reg::R8, offset.cast_signed());
    asm.address(Reg::R1, Reg::R10, slot.into());
    asm.set(Reg::R2, bytes);
    asm.call(Helper::ReadKernel);
    asm.jump_if(If::NotEqual, Reg::R0, 0, out);
}

/// Stores the key of the inode in `R8` in its slot.
fn find_file(asm: &mut Assembler, kernel: Kernel, out: Label) {
    read(asm, kernel.number, FILE, 8, out);
    read(asm, kernel.generation, FILE + 12, 4, out);
    follow(asm, kernel.file_system, out);
    read(asm, kernel.device, FILE + 8, 4, out);
}

/// `R9`: a reserved record of the mapping. Its token is taken afterwards, so that each token has a record.
fn begin_record(asm: &mut Assembler, full: Label) {
    asm.set_map(Reg::R1, Map::Calls);
    asm.set(Reg::R2, CALL_BYTES.into());
    asm.set(Reg::R3, 0);
    asm.call(Helper::RingReserve);
    asm.jump_if(If::Equal, Reg::R0, 0, full);
    asm.copy(Reg::R9, Reg::R0);
    asm.set_map_value(Reg::R1, Map::Control, control::MAPPINGS);
    asm.set(Reg::R2, 1);
    asm.atomic_fetch_add(Reg::R1, 0, Reg::R2);
    asm.op_value(Op::Add, Reg::R2, 1);
    asm.store(Width::Double, Reg::R10, TOKEN, Reg::R2);
    asm.store(Width::Double, Reg::R9, TOKEN_AT, Reg::R2);
    asm.call(Helper::KtimeNs);
    asm.store(Width::Double, Reg::R10, NOW, Reg::R0);
    asm.store(Width::Double, Reg::R9, TIME, Reg::R0);
    asm.call(Helper::PidTgid);
    asm.store(Width::Double, Reg::R9, THREAD, Reg::R0);
    asm.cut_to_32(Reg::R0);
    asm.store(Width::Double, Reg::R10, WORK, Reg::R0);
    for at in [0, 8] {
        asm.load(Width::Double, Reg::R1, Reg::R10, FILE + at);
        asm.store(Width::Double, Reg::R9, FILE_AT + at, Reg::R1);
    }
    asm.store_value(Width::Double, Reg::R9, IS_HELD, 0);
}

/// `R7`: the thread. Goes on if the recorder runs and the thread is not real-time.
fn may_be_held(asm: &mut Assembler, kernel: Kernel, unheld: Label) {
    asm.load_control(control::LOOKED);
    asm.op_value(Op::Multiply, Reg::R1, NS_OF_MS);
    asm.load(Width::Double, Reg::R2, Reg::R10, NOW);
    asm.op(Op::Sub, Reg::R2, Reg::R1);
    asm.jump_if(If::AboveSigned, Reg::R2, MAX_HOLD_NS, unheld);
    asm.call(Helper::CurrentTaskBtf);
    asm.copy(Reg::R7, Reg::R0);
    asm.address(Reg::R3, Reg::R7, kernel.priority.cast_signed());
    asm.load(Width::Word, Reg::R1, Reg::R3, 0);
    asm.extend(Reg::R1, 32, true);
    asm.jump_if(If::BelowSigned, Reg::R1, MAX_RT_PRIO, unheld);
}

/// Queues the work of the thread in `R7`, or, if it waits already, changes its token: `execve` has several mappings. Then jumps to `submit`.
fn hold(asm: &mut Assembler, kernel: Kernel, labels: Labels) {
    let (new, held) = (asm.label(), asm.label());
    let failed = asm.label();
    asm.address(Reg::R3, Reg::R7, kernel.started.cast_signed());
    asm.load(Width::Double, Reg::R3, Reg::R3, 0);
    asm.store(Width::Double, Reg::R10, STARTED, Reg::R3);
    asm.call_map(Helper::MapLookup, Map::Held, WORK);
    asm.jump_if(If::Equal, Reg::R0, 0, new);
    asm.copy(Reg::R8, Reg::R0);
    asm.load(Width::Double, Reg::R1, Reg::R8, OF_THREAD);
    asm.load(Width::Double, Reg::R2, Reg::R10, STARTED);
    // It is left of another thread, which was killed.
    asm.jump_if_reg(If::NotEqual, Reg::R1, Reg::R2, new);
    work::set(asm, &[(TOKEN, HELD_TOKEN)]);
    asm.jump(held);
    asm.place(new);
    work::find(asm, false, labels.unheld);
    work::set(
        asm,
        &[(NOW, SINCE), (STARTED, OF_THREAD), (TOKEN, HELD_TOKEN)],
    );
    asm.copy(Reg::R1, Reg::R7);
    work::schedule(asm, kernel.schedule, labels.work, failed);
    asm.place(held);
    asm.store_value(Width::Double, Reg::R9, IS_HELD, 1);
    asm.jump(labels.submit);
    asm.place(failed);
    asm.call_map(Helper::MapDelete, Map::Held, WORK);
}

/// The work of a held thread: `R2` is its key, `R3` its value.
fn wait(asm: &mut Assembler, kernel: Kernel, work: Label) {
    let (late, over) = (asm.label(), asm.label());
    work::begin(asm);
    for (at, slot) in [(SINCE, NOW), (OF_THREAD, STARTED), (HELD_TOKEN, TOKEN)] {
        asm.load(Width::Double, Reg::R1, Reg::R7, at);
        asm.store(Width::Double, Reg::R10, slot, Reg::R1);
    }
    asm.load_control(control::HOLDING);
    asm.jump_if(If::Equal, Reg::R1, 0, over);
    asm.load_control(control::ANSWERED);
    asm.load(Width::Double, Reg::R2, Reg::R10, TOKEN);
    asm.jump_if_reg(If::AtLeast, Reg::R1, Reg::R2, over);
    asm.call(Helper::KtimeNs);
    asm.load(Width::Double, Reg::R1, Reg::R10, NOW);
    asm.op(Op::Sub, Reg::R0, Reg::R1);
    asm.jump_if(If::AtLeast, Reg::R0, MAX_HOLD_NS, late);
    work::find(asm, true, late);
    work::set(
        asm,
        &[(NOW, SINCE), (STARTED, OF_THREAD), (TOKEN, HELD_TOKEN)],
    );
    asm.call(Helper::CurrentTaskBtf);
    asm.copy(Reg::R1, Reg::R0);
    work::schedule(asm, kernel.schedule, work, late);
    asm.exit_with(0);
    asm.place(late);
    asm.count(control::UNHELD);
    asm.place(over);
    work::forget(asm);
    asm.exit_with(0);
}
