//! The programs on new mappings of files, and the work of threads that they hold.
//!
//! The first runs at each change of mappings on the host, so what it does for other processes is short: the system call, and for a file one look-up.
//! `R8` are the words of a file that is watched.

use usdtrec_kernel::bpf::insn::{
    Assembler, Code, FunctionKind, Helper, If, Label, Map, Op, Reg, Width,
};
use usdtrec_kernel::bpf::preemption;

use super::kernel::{
    ATTACHED, EXECUTED, FILE_BYTES, FIRST_UNIT, HEAD_BYTES, IDLE, LAST_UNIT, LEARNED, LEARNING,
    MAX_FILES, READER_BYTES, SPACE_BYTES, STATE,
};
use super::kernel::{HoldKernel, WatchKernel};
use crate::engine::bpf::control;
use crate::engine::bpf::processes::hold::work::{
    self, HeldThread, MAX_HOLD_NS, MAX_RT_PRIO, NUMBER, WORK,
};

/// Parts of files are compared in units of 4096 bytes, as `mmap2` has them.
pub(super) const UNIT_SHIFT: i32 = 12;
/// Number of bits of `PROT_EXEC` and those below it.
const PROTECTION_BITS: i32 = 3;

/// Stack slots, below those of [`work`]: the address of the inode; the number of the file; the time; the ids of the thread; its start time; the
/// addresses of its memory and of the inode, and the process; a reader.
const INODE: i16 = -72;
const INDEX: i16 = -80;
const NOW: i16 = -88;
const IDS: i16 = -96;
const STARTED: i16 = -104;
const SPACE: i16 = STARTED - SPACE_BYTES as i16;
const READER: i16 = SPACE - READER_BYTES as i16;
/// The first unit of the file that is mapped, and the one after the last.
const FROM: i16 = CALL - 8;
const END: i16 = CALL - 16;
/// A call of the recorder: number of the file, time, ids, whether the thread is held.
const CALL: i16 = READER - CALL_BYTES as i16;
/// Size of a call, bytes.
pub(super) const CALL_BYTES: usize = 32;
/// When a held thread was started, which distinguishes it from a later one with the same id.
const OF_THREAD: i16 = NUMBER;
/// Bits of a thread's id, and one that distinguishes its two pieces of work, before the number of the file in the key of the work.
const FILE_SHIFT: i32 = 33;
const NS_OF_MS: i32 = 1_000_000;

/// `mmap_lock_released(mm, write)`, with which `mmap` ends.
pub(super) fn mapped(kernel: &WatchKernel) -> Option<Code> {
    program(kernel, |asm, labels| {
        find_mapped(asm, kernel, labels);
        find_file(asm, kernel, labels.out);
        // if (prot & PROT_EXEC) goto executes;
        asm.jump_if(If::NotEqual, Reg::R7, 0, labels.executes);
        note_reader(asm, labels.out)
    })
}

/// `sched_process_exec(task, old_pid, binprm)`.
pub(super) fn executed(kernel: &WatchKernel) -> Option<Code> {
    program(kernel, |asm, labels| {
        // r8 = ctx->binprm; bpf_preempt_disable(); INODE = r8->file->f_inode; /* a null pointer: goto out */
        asm.load(Width::Double, Reg::R8, Reg::R1, 16);
        preemption::disable(asm, kernel.common.preemption);
        asm.follow(Reg::R8, kernel.common.executable, labels.out);
        asm.follow(Reg::R8, kernel.common.inode, labels.out);
        asm.store(Width::Double, Reg::R10, INODE, Reg::R8);
        find_file(asm, kernel, labels.out);
        Some(())
    })
}

/// Labels of a program.
#[derive(Clone, Copy)]
struct Labels {
    /// A file is executed that is watched.
    executes: Label,
    /// The end of the program, with preemption disabled.
    out: Label,
}

/// A program that finds a file that is watched, and continues, or jumps, where it is executed.
fn program(
    kernel: &WatchKernel,
    find: impl FnOnce(&mut Assembler, Labels) -> Option<()>,
) -> Option<Code> {
    let mut asm = Assembler::default();
    let (executes, out, work) = (asm.label(), asm.label(), asm.label());
    find(&mut asm, Labels { executes, out })?;
    // executes: note_executed(); if (words->STATE != IDLE) goto out; call_recorder();
    asm.place(executes);
    note_executed(&mut asm);
    asm.load(Width::Double, Reg::R1, Reg::R8, STATE);
    asm.jump_if(If::NotEqual, Reg::R1, IDLE, out);
    call_recorder(&mut asm, kernel, work);
    // out: bpf_preempt_enable(); return 0;
    asm.place(out);
    preemption::enable(&mut asm, kernel.common.preemption);
    asm.exit_with(0);
    if let Some(hold) = kernel.hold {
        asm.function(work, FunctionKind::Static);
        wait(&mut asm, hold, work);
    }
    asm.finish()
}

/// Continues if `mmap` has mapped a file so that the kernel attaches probes there: the address of its inode and the units of the file are in their slots,
/// and `R7` is not 0 if it is executed. Until then neither the stack is used nor preemption disabled.
fn find_mapped(asm: &mut Assembler, kernel: &WatchKernel, labels: Labels) {
    let (strange, writes, found) = (asm.label(), asm.label(), asm.label());
    // if (ctx->write) goto writes; strange: return 0;
    asm.load(Width::Double, Reg::R6, Reg::R1, 8);
    asm.jump_if(If::NotEqual, Reg::R6, 0, writes);
    asm.place(strange);
    asm.exit_with(0);
    // writes: task = bpf_get_current_task_btf(); regs = bpf_task_pt_regs(task);
    asm.place(writes);
    asm.call(Helper::CurrentTaskBtf);
    asm.copy(Reg::R6, Reg::R0);
    asm.copy(Reg::R1, Reg::R0);
    asm.call(Helper::TaskPtRegs);
    for call in kernel.unlocked.calls {
        let other = asm.label();
        // if (regs->number != call.number) goto other;
        asm.load(Width::Word, Reg::R1, Reg::R0, call.number_at);
        asm.jump_if(If::NotEqual, Reg::R1, call.number, other);
        // flags = regs->flags; prot = regs->protection; fd = regs->descriptor;
        asm.load(Width::Word, Reg::R2, Reg::R0, call.flags_at);
        asm.load(Width::Word, Reg::R3, Reg::R0, call.protection_at);
        asm.load(Width::Word, Reg::R9, Reg::R0, call.descriptor_at);
        // length = regs->length; offset = call.is_in_pages ? regs->offset : regs->offset >> UNIT_SHIFT; goto found;
        asm.load(Width::Double, Reg::R7, Reg::R0, call.length_at);
        asm.load(Width::Double, Reg::R8, Reg::R0, call.offset_at);
        if !call.is_in_pages {
            asm.op_value(Op::ShiftRight, Reg::R8, UNIT_SHIFT);
        }
        asm.jump(found);
        asm.place(other);
    }
    asm.jump(strange);
    // found: if (flags & (MAP_SHARED | MAP_ANONYMOUS)) goto strange; if (prot & PROT_WRITE) goto strange;
    asm.place(found);
    asm.op_value(Op::And, Reg::R2, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    asm.jump_if(If::NotEqual, Reg::R2, 0, strange);
    asm.copy(Reg::R2, Reg::R3);
    asm.op_value(Op::And, Reg::R2, libc::PROT_WRITE);
    asm.jump_if(If::NotEqual, Reg::R2, 0, strange);
    // The end, and in the lowest bits whether it is executed.
    // r7 = ((length + (1 << UNIT_SHIFT) - 1 >> UNIT_SHIFT) + offset) << PROTECTION_BITS | (prot & PROT_EXEC);
    asm.op_value(Op::Add, Reg::R7, (1 << UNIT_SHIFT) - 1);
    asm.op_value(Op::ShiftRight, Reg::R7, UNIT_SHIFT);
    asm.op(Op::Add, Reg::R7, Reg::R8);
    asm.op_value(Op::ShiftLeft, Reg::R7, PROTECTION_BITS);
    asm.op_value(Op::And, Reg::R3, libc::PROT_EXEC);
    asm.op(Op::Or, Reg::R7, Reg::R3);
    // bpf_preempt_disable(); FROM = offset; END = r7 >> PROTECTION_BITS; r7 &= PROT_EXEC;
    preemption::disable(asm, kernel.common.preemption);
    asm.store(Width::Double, Reg::R10, FROM, Reg::R8);
    asm.copy(Reg::R1, Reg::R7);
    asm.op_value(Op::ShiftRight, Reg::R1, PROTECTION_BITS);
    asm.store(Width::Double, Reg::R10, END, Reg::R1);
    asm.op_value(Op::And, Reg::R7, libc::PROT_EXEC);
    // r6 = &task->files->fdt->fd[fd]; /* a null pointer: goto out */
    let [files, table, array] = kernel.common.descriptors;
    for offset in [files, table, array] {
        asm.follow(Reg::R6, offset, labels.out);
    }
    asm.op_value(Op::Multiply, Reg::R9, 8);
    asm.op(Op::Add, Reg::R6, Reg::R9);
    // r8 = bpf_rdonly_cast((char *)r6 - offsetof(struct vm_area_struct, vm_file), struct vm_area_struct);
    asm.address(Reg::R1, Reg::R6, -kernel.file.offset.cast_signed());
    asm.set(Reg::R2, kernel.file.structure.into());
    asm.call_kernel(kernel.file.cast);
    asm.copy(Reg::R8, Reg::R0);
    // INODE = r8->vm_file->f_inode; /* a null pointer: goto out */
    asm.follow(Reg::R8, kernel.file.offset, labels.out);
    asm.follow(Reg::R8, kernel.common.inode, labels.out);
    asm.store(Width::Double, Reg::R10, INODE, Reg::R8);
}

/// `R8`: the words of the file whose inode is in its slot. Continues if it is watched; the slots have its number, the time, the thread, and its memory.
fn find_file(asm: &mut Assembler, kernel: &WatchKernel, out: Label) {
    let known = asm.label();
    // number = bpf_map_lookup_elem(&WatchedInodes, &INODE); if (!number) { learn(); goto out; }
    asm.call_map(Helper::MapLookup, Map::WatchedInodes, INODE);
    asm.jump_if(If::NotEqual, Reg::R0, 0, known);
    learn(asm, out);
    asm.jump(out);
    asm.place(known);
    // INDEX = *number; words = find_words(INDEX);
    asm.load(Width::Word, Reg::R9, Reg::R0, 0);
    asm.store(Width::Double, Reg::R10, INDEX, Reg::R9);
    find_words(asm, out);
    // NOW = bpf_ktime_get_ns(); IDS = bpf_get_current_pid_tgid();
    asm.call(Helper::KtimeNs);
    asm.store(Width::Double, Reg::R10, NOW, Reg::R0);
    asm.call(Helper::PidTgid);
    asm.store(Width::Double, Reg::R10, IDS, Reg::R0);
    // SPACE = { bpf_get_current_task_btf()->mm, INODE, IDS >> 32 };
    asm.call(Helper::CurrentTaskBtf);
    asm.load(Width::Double, Reg::R1, Reg::R0, kernel.memory);
    asm.store(Width::Double, Reg::R10, SPACE, Reg::R1);
    asm.load(Width::Double, Reg::R1, Reg::R10, INODE);
    asm.store(Width::Double, Reg::R10, SPACE + 8, Reg::R1);
    asm.load(Width::Double, Reg::R1, Reg::R10, IDS);
    asm.op_value(Op::ShiftRight, Reg::R1, 32);
    asm.store(Width::Double, Reg::R10, SPACE + 16, Reg::R1);
}

/// `R8`: the words of the file whose number is in `R9`.
fn find_words(asm: &mut Assembler, missing: Label) {
    // if (r9 >= MAX_FILES) goto missing; r8 = &WatchedFiles[HEAD_BYTES + r9 * FILE_BYTES];
    asm.jump_if(If::AtLeast, Reg::R9, MAX_FILES as i32, missing);
    asm.op_value(Op::Multiply, Reg::R9, FILE_BYTES as i32);
    asm.set_map_value(Reg::R8, Map::WatchedFiles, HEAD_BYTES as u32);
    asm.op(Op::Add, Reg::R8, Reg::R9);
}

/// The recorder's thread maps a file so that its inode becomes known.
fn learn(asm: &mut Assembler, out: Label) {
    // r8 = WatchedFiles[LEARNING]; if (!r8 || (u32)bpf_get_current_pid_tgid() != (u32)r8) goto out;
    asm.set_map_value(Reg::R9, Map::WatchedFiles, 0);
    asm.load(Width::Double, Reg::R8, Reg::R9, LEARNING);
    asm.jump_if(If::Equal, Reg::R8, 0, out);
    asm.call(Helper::PidTgid);
    asm.cut_to_32(Reg::R0);
    asm.copy(Reg::R1, Reg::R8);
    asm.cut_to_32(Reg::R1);
    asm.jump_if_reg(If::NotEqual, Reg::R0, Reg::R1, out);
    // INDEX = r8 >> 32; if (bpf_map_update_elem(&WatchedInodes, &INODE, &INDEX, BPF_ANY)) goto out;
    asm.op_value(Op::ShiftRight, Reg::R8, 32);
    asm.store(Width::Double, Reg::R10, INDEX, Reg::R8);
    asm.update_map(Map::WatchedInodes, INODE, INDEX);
    asm.jump_if(If::NotEqual, Reg::R0, 0, out);
    // WatchedFiles[LEARNED] = 1;
    asm.store_value(Width::Double, Reg::R9, LEARNED, 1);
}

/// A mapping without the right to execute: notes who reads the file while it has breakpoints, if it maps sites of it.
fn note_reader(asm: &mut Assembler, out: Label) -> Option<()> {
    // if (words->STATE != ATTACHED || FROM > words->LAST_UNIT || END <= words->FIRST_UNIT) goto out;
    asm.load(Width::Double, Reg::R1, Reg::R8, STATE);
    asm.jump_if(If::NotEqual, Reg::R1, ATTACHED, out);
    asm.load(Width::Double, Reg::R1, Reg::R10, FROM);
    asm.load(Width::Double, Reg::R2, Reg::R8, LAST_UNIT);
    asm.jump_if_reg(If::Above, Reg::R1, Reg::R2, out);
    asm.load(Width::Double, Reg::R1, Reg::R10, END);
    asm.load(Width::Double, Reg::R2, Reg::R8, FIRST_UNIT);
    asm.jump_if_reg(If::AtMost, Reg::R1, Reg::R2, out);
    // if (IDS >> 32 == own) goto out;
    asm.load(Width::Double, Reg::R9, Reg::R10, IDS);
    asm.op_value(Op::ShiftRight, Reg::R9, 32);
    let own = i32::try_from(std::process::id()).ok()?;
    asm.jump_if(If::Equal, Reg::R9, own, out);
    // A program that executes the file may read it, too.
    // if (bpf_map_lookup_elem(&Executing, &SPACE)) goto out;
    asm.call_map(Helper::MapLookup, Map::Executing, SPACE);
    asm.jump_if(If::NotEqual, Reg::R0, 0, out);
    // READER = { NOW, IDS, INDEX }; bpf_get_current_comm(READER + 24, 16);
    for (at, slot) in [NOW, IDS, INDEX].into_iter().enumerate() {
        asm.load(Width::Double, Reg::R1, Reg::R10, slot);
        asm.store(Width::Double, Reg::R10, READER + 8 * at as i16, Reg::R1);
    }
    asm.address(Reg::R1, Reg::R10, (READER + 24).into());
    asm.set(Reg::R2, 16);
    asm.call(Helper::Comm);
    // bpf_map_update_elem(&Readers, &SPACE, &READER, BPF_ANY); goto out;
    asm.update_map(Map::Readers, SPACE, READER);
    asm.jump(out);
    Some(())
}

/// A mapping with the right to execute. Loaders map a file as readers do first.
fn note_executed(asm: &mut Assembler) {
    // words->EXECUTED = NOW; READER = 1; bpf_map_update_elem(&Executing, &SPACE, &READER, BPF_ANY);
    asm.load(Width::Double, Reg::R1, Reg::R10, NOW);
    asm.store(Width::Double, Reg::R8, EXECUTED, Reg::R1);
    asm.store_value(Width::Word, Reg::R10, READER, 1);
    asm.update_map(Map::Executing, SPACE, READER);
    // bpf_map_delete_elem(&Readers, &SPACE);
    asm.call_map(Helper::MapDelete, Map::Readers, SPACE);
}

/// The file has no probes: holds the thread where that is possible, and calls the recorder.
fn call_recorder(asm: &mut Assembler, kernel: &WatchKernel, work: Label) {
    let call = asm.label();
    // CALL = { INDEX, NOW, IDS, 0 }; hold(call);
    for (at, slot) in [INDEX, NOW, IDS].into_iter().enumerate() {
        asm.load(Width::Double, Reg::R1, Reg::R10, slot);
        asm.store(Width::Double, Reg::R10, CALL + 8 * at as i16, Reg::R1);
    }
    asm.store_value(Width::Double, Reg::R10, CALL + 24, 0);
    if let Some(kernel) = kernel.hold {
        hold(asm, kernel, work, call);
    }
    // call: bpf_ringbuf_output(&Calls, &CALL, CALL_BYTES, 0);
    asm.place(call);
    asm.set_map(Reg::R1, Map::Calls);
    asm.address(Reg::R2, Reg::R10, CALL.into());
    asm.set(Reg::R3, CALL_BYTES as i64);
    asm.set(Reg::R4, 0);
    asm.call(Helper::RingOutput);
}

/// Queues the work of the thread, unless it waits for this file already: of a file several mappings may be executable.
fn hold(asm: &mut Assembler, kernel: HoldKernel, work: Label, unheld: Label) {
    let (new, held, failed) = (asm.label(), asm.label(), asm.label());
    recorder_runs(asm, unheld);
    // task = bpf_get_current_task_btf(); if ((s32)task->prio < MAX_RT_PRIO) goto unheld;
    asm.call(Helper::CurrentTaskBtf);
    asm.copy(Reg::R7, Reg::R0);
    asm.address(Reg::R3, Reg::R7, kernel.priority);
    asm.load(Width::Word, Reg::R1, Reg::R3, 0);
    asm.extend(Reg::R1, 32, true);
    asm.jump_if(If::BelowSigned, Reg::R1, MAX_RT_PRIO, unheld);
    // STARTED = task->start_boottime; WORK = (u32)IDS | INDEX << FILE_SHIFT;
    asm.address(Reg::R3, Reg::R7, kernel.started);
    asm.load(Width::Double, Reg::R3, Reg::R3, 0);
    asm.store(Width::Double, Reg::R10, STARTED, Reg::R3);
    asm.load(Width::Double, Reg::R2, Reg::R10, INDEX);
    asm.op_value(Op::ShiftLeft, Reg::R2, FILE_SHIFT);
    asm.load(Width::Word, Reg::R1, Reg::R10, IDS);
    asm.op(Op::Or, Reg::R1, Reg::R2);
    asm.store(Width::Double, Reg::R10, WORK, Reg::R1);
    // value = bpf_map_lookup_elem(&Held, &WORK); if (!value) goto new; if (value->OF_THREAD == STARTED) goto held;
    asm.call_map(Helper::MapLookup, Map::Held, WORK);
    asm.jump_if(If::Equal, Reg::R0, 0, new);
    asm.load(Width::Double, Reg::R1, Reg::R0, OF_THREAD);
    asm.load(Width::Double, Reg::R2, Reg::R10, STARTED);
    // Else it is left of another thread, which was killed.
    asm.jump_if_reg(If::Equal, Reg::R1, Reg::R2, held);
    // new: value = work::find(unheld); value->SINCE = NOW; value->NUMBER = STARTED; value->HELD_TOKEN = INDEX;
    asm.place(new);
    work::find(asm, false, unheld);
    held_thread(kernel, work).set(asm);
    // if (bpf_task_work_schedule_resume(task, value, &Held, work)) goto failed;
    asm.copy(Reg::R1, Reg::R7);
    work::schedule(asm, kernel.schedule, work, failed);
    // held: CALL[3] = 1; goto unheld;
    asm.place(held);
    asm.store_value(Width::Double, Reg::R10, CALL + 24, 1);
    asm.jump(unheld);
    // failed: bpf_map_delete_elem(&Held, &WORK);
    asm.place(failed);
    asm.call_map(Helper::MapDelete, Map::Held, WORK);
}

/// Continues if the recorder runs, and holds threads.
fn recorder_runs(asm: &mut Assembler, unheld: Label) {
    // if (!Control[HOLDING]) goto unheld;
    asm.load_control(control::HOLDING);
    asm.jump_if(If::Equal, Reg::R1, 0, unheld);
    // if ((s64)(NOW - Control[LOOKED] * NS_OF_MS) > MAX_HOLD_NS) goto unheld;
    asm.load_control(control::LOOKED);
    asm.op_value(Op::Multiply, Reg::R1, NS_OF_MS);
    asm.load(Width::Double, Reg::R2, Reg::R10, NOW);
    asm.op(Op::Sub, Reg::R2, Reg::R1);
    asm.jump_if(If::AboveSigned, Reg::R2, MAX_HOLD_NS, unheld);
}

/// The stack slots of a held thread, and its work.
const fn held_thread(kernel: HoldKernel, work: Label) -> HeldThread {
    HeldThread {
        now: NOW,
        started: STARTED,
        token: INDEX,
        schedule: kernel.schedule,
        work,
    }
}

/// The work of a held thread. It waits until its file has probes.
fn wait(asm: &mut Assembler, kernel: HoldKernel, work: Label) {
    held_thread(kernel, work).wait(asm, |asm, over| {
        // words = find_words(INDEX); if (words->STATE != IDLE) goto over;
        asm.load(Width::Double, Reg::R9, Reg::R10, INDEX);
        find_words(asm, over);
        asm.load(Width::Double, Reg::R1, Reg::R8, STATE);
        asm.jump_if(If::NotEqual, Reg::R1, IDLE, over);
    });
}
