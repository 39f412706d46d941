//! What programs on new mappings have in common: they find the file, and write a record if it is not known.
//!
//! Registers: `R8` is the file's inode, then unused, `R9` the record.

use usdtrec_kernel::bpf::insn::{
    Assembler, Code, FunctionKind, Helper, If, Label, Map, Op, Reg, Width,
};
use usdtrec_kernel::bpf::preemption;

use super::super::hold::work::{
    self, HELD_TOKEN, HeldThread, MAX_HOLD_NS, MAX_RT_PRIO, NUMBER, WORK,
};
use super::kernel::{Kernel, MmapCall, Unlocked, WorkKernel};
use super::program;
use crate::engine::bpf::control;

/// Stack slots, apart from those of [`work`](crate::engine::bpf::processes::hold::work): a 4-byte process id, a time, and the 16-byte key of the
/// file.
pub(super) const KEY: i16 = -4;
pub(super) const NOW: i16 = -72;
pub(super) const FILE: i16 = -96;

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
pub(super) struct Labels {
    /// The end of the program.
    pub(super) out: Label,
    /// The thread is not held, which is counted. There is a record.
    pub(super) unheld: Label,
    /// The record is submitted.
    submit: Label,
    /// There is no room for a record.
    full: Label,
}

impl Labels {
    pub(super) fn new(asm: &mut Assembler) -> Self {
        Self {
            out: asm.label(),
            unheld: asm.label(),
            submit: asm.label(),
            full: asm.label(),
        }
    }
}

/// Continues for recorded processes only, and while threads are held. The recorder, which may be a child of one, would wait for itself.
pub(super) fn is_recorded(asm: &mut Assembler, out: Label) -> Option<()> {
    // if (!Control[HOLDING]) goto out;
    asm.load_control(control::HOLDING);
    asm.jump_if(If::Equal, Reg::R1, 0, out);
    let own = i32::try_from(std::process::id()).ok()?;
    // KEY = bpf_get_current_pid_tgid() >> 32; if (KEY == own || !bpf_map_lookup_elem(&Tracked, &KEY)) goto out;
    asm.store_process(KEY);
    asm.jump_if(If::Equal, Reg::R0, own, out);
    asm.call_map(Helper::MapLookup, Map::Tracked, KEY);
    asm.jump_if(If::Equal, Reg::R0, 0, out);
    Some(())
}

/// `R8`: the inode of the program that `sched_process_exec` with the arguments at `R1` is about. Disables preemption.
pub(super) fn find_executed(asm: &mut Assembler, kernel: Kernel, out: Label) -> Option<()> {
    // r8 = ctx->binprm; bpf_preempt_disable(); is_recorded(out); r8 = r8->file->f_inode;
    asm.load(Width::Double, Reg::R8, Reg::R1, 16);
    preemption::disable(asm, kernel.preemption);
    is_recorded(asm, out)?;
    follow(asm, kernel.executable, out);
    follow(asm, kernel.inode, out);
    Some(())
}

/// `R8`: the inode of the file that `mmap` has mapped, at `mmap_lock_released` with the arguments at `R1`. Disables preemption.
pub(super) fn find_unlocked(
    asm: &mut Assembler,
    kernel: Kernel,
    unlocked: Unlocked,
    out: Label,
) -> Option<()> {
    // if (!ctx->write) return 0;
    asm.load(Width::Double, Reg::R6, Reg::R1, 8);
    let writes = asm.label();
    asm.jump_if(If::NotEqual, Reg::R6, 0, writes);
    asm.exit_with(0);
    // writes: bpf_preempt_disable(); is_recorded(out);
    asm.place(writes);
    preemption::disable(asm, kernel.preemption);
    is_recorded(asm, out)?;
    // task = bpf_get_current_task_btf(); regs = bpf_task_pt_regs(task); r9 = find_descriptor(regs, out);
    asm.call(Helper::CurrentTaskBtf);
    asm.copy(Reg::R7, Reg::R0);
    asm.copy(Reg::R1, Reg::R0);
    asm.call(Helper::TaskPtRegs);
    find_descriptor(asm, unlocked.calls, out);
    // r8 = find_opened(task, r9, out);
    asm.copy(Reg::R8, Reg::R7);
    find_opened(asm, kernel, out);
    Some(())
}

/// `R9`: the descriptor that the system call with the registers in `R0` maps; continues if it is a mapping with code of a file.
fn find_descriptor(asm: &mut Assembler, calls: [MmapCall; 2], out: Label) {
    let found = asm.label();
    for call in calls {
        let other = asm.label();
        // if (regs->number == call.number) { r2 = regs->protection; r9 = regs->descriptor; goto found; }
        asm.load(Width::Word, Reg::R1, Reg::R0, call.number_at);
        asm.jump_if(If::NotEqual, Reg::R1, call.number, other);
        asm.load(Width::Word, Reg::R2, Reg::R0, call.protection_at);
        asm.load(Width::Word, Reg::R9, Reg::R0, call.descriptor_at);
        asm.jump(found);
        asm.place(other);
    }
    // goto out; found: is_file_of_code(r2, r9, out);
    asm.jump(out);
    asm.place(found);
    is_file_of_code(asm, out);
}

/// `R8`: the inode of the descriptor in `R9` of the task in `R8`.
fn find_opened(asm: &mut Assembler, kernel: Kernel, out: Label) {
    // r8 = task->files->fdt->fd[r9]->f_inode; /* an error or a null pointer: goto out */
    for offset in kernel.descriptors {
        follow(asm, offset, out);
    }
    asm.op_value(Op::Multiply, Reg::R9, 8);
    asm.op(Op::Add, Reg::R8, Reg::R9);
    follow(asm, 0, out);
    follow(asm, kernel.inode, out);
}

/// Continues if `R9` is a descriptor, and the protection in `R2` that of code.
fn is_file_of_code(asm: &mut Assembler, out: Label) {
    // if (!(r2 & EXECUTABLE)) goto out;
    asm.op_value(Op::And, Reg::R2, EXECUTABLE);
    asm.jump_if(If::Equal, Reg::R2, 0, out);
    // -1 is memory of no file.
    // if ((s32)r9 < 0) goto out;
    asm.extend(Reg::R9, 32, true);
    asm.jump_if(If::BelowSigned, Reg::R9, 0, out);
}

/// `R8` = the pointer in kernel memory at `R8 + offset`.
fn follow(asm: &mut Assembler, offset: u32, out: Label) {
    // if (bpf_probe_read_kernel(&NOW, 8, r8 + offset)) goto out; r8 = NOW; if (!r8) goto out;
    read(asm, offset, NOW, 8, out);
    asm.load(Width::Double, Reg::R8, Reg::R10, NOW);
    asm.jump_if(If::Equal, Reg::R8, 0, out);
}

/// Reads kernel memory at `R8 + offset` to a slot.
fn read(asm: &mut Assembler, offset: u32, slot: i16, bytes: i64, out: Label) {
    // if (bpf_probe_read_kernel(&slot, bytes, r8 + offset)) goto out;
    asm.address(Reg::R3, Reg::R8, offset.cast_signed());
    asm.address(Reg::R1, Reg::R10, slot.into());
    asm.set(Reg::R2, bytes);
    asm.call(Helper::ReadKernel);
    asm.jump_if(If::NotEqual, Reg::R0, 0, out);
}

/// Continues with a record of the mapping in `R9` if the file with the inode in `R8` is not known.
pub(super) fn begin_record(asm: &mut Assembler, kernel: Kernel, labels: Labels) {
    let Labels { out, full, .. } = labels;
    // FILE = { inode->i_ino, inode->i_sb->s_dev, inode->i_generation }; /* an error: goto out */
    read(asm, kernel.number, FILE, 8, out);
    read(asm, kernel.generation, FILE + 12, 4, out);
    follow(asm, kernel.file_system, out);
    read(asm, kernel.device, FILE + 8, 4, out);
    // if (bpf_map_lookup_elem(&KnownFiles, &FILE)) goto out;
    asm.call_map(Helper::MapLookup, Map::KnownFiles, FILE);
    asm.jump_if(If::NotEqual, Reg::R0, 0, out);
    // record = bpf_ringbuf_reserve(&Calls, CALL_BYTES, 0); if (!record) goto full;
    asm.set_map(Reg::R1, Map::Calls);
    asm.set(Reg::R2, CALL_BYTES.into());
    asm.set(Reg::R3, 0);
    asm.call(Helper::RingReserve);
    asm.jump_if(If::Equal, Reg::R0, 0, full);
    asm.copy(Reg::R9, Reg::R0);
    // record->TIME = NOW = bpf_ktime_get_ns(); record->THREAD = bpf_get_current_pid_tgid();
    asm.call(Helper::KtimeNs);
    asm.store(Width::Double, Reg::R10, NOW, Reg::R0);
    asm.store(Width::Double, Reg::R9, TIME, Reg::R0);
    asm.call(Helper::PidTgid);
    asm.store(Width::Double, Reg::R9, THREAD, Reg::R0);
    // record->FILE_AT = FILE; record->IS_HELD = 0;
    for at in [0, 8] {
        asm.load(Width::Double, Reg::R1, Reg::R10, FILE + at);
        asm.store(Width::Double, Reg::R9, FILE_AT + at, Reg::R1);
    }
    asm.store_value(Width::Double, Reg::R9, IS_HELD, 0);
}

/// Continues if the recorder runs.
pub(super) fn recorder_runs(asm: &mut Assembler, unheld: Label) {
    // if ((s64)(NOW - Control[LOOKED] * NS_OF_MS) > MAX_HOLD_NS) goto unheld;
    asm.load_control(control::LOOKED);
    asm.op_value(Op::Multiply, Reg::R1, NS_OF_MS);
    asm.load(Width::Double, Reg::R2, Reg::R10, NOW);
    asm.op(Op::Sub, Reg::R2, Reg::R1);
    asm.jump_if(If::AboveSigned, Reg::R2, MAX_HOLD_NS, unheld);
}

/// The thread is held: submits the record that says so.
pub(super) fn submit_held(asm: &mut Assembler, labels: Labels) {
    // record->IS_HELD = 1; goto submit;
    asm.store_value(Width::Double, Reg::R9, IS_HELD, 1);
    asm.jump(labels.submit);
}

/// The end of the program.
pub(super) fn end(asm: &mut Assembler, kernel: Kernel, labels: Labels) {
    // unheld: Control[UNHELD]++; submit: bpf_ringbuf_submit(record, 0); goto out;
    asm.place(labels.unheld);
    asm.count(control::UNHELD);
    asm.place(labels.submit);
    asm.copy(Reg::R1, Reg::R9);
    asm.set(Reg::R2, 0);
    asm.call(Helper::RingSubmit);
    asm.jump(labels.out);
    // full: Control[UNHELD]++; out: bpf_preempt_enable(); return 0;
    asm.place(labels.full);
    asm.count(control::UNHELD);
    asm.place(labels.out);
    preemption::enable(asm, kernel.preemption);
    asm.exit_with(0);
}

/// Stack slots besides those of [`work`](crate::engine::bpf::processes::hold::work) and those above: the token, and the start time of the thread.
const TOKEN: i16 = -32;
const STARTED: i16 = -80;

/// When a held thread was started, which distinguishes it from a later one with the same id.
const OF_THREAD: i16 = NUMBER;

/// `mmap_lock_released(mm, write)`: holds the thread if it maps code of a file that is not known by `mmap`. The record of the mapping has been
/// written.
pub(super) fn mapped(kernel: WorkKernel) -> Option<Code> {
    program(kernel, |asm, out| {
        program::find_unlocked(asm, kernel.common, kernel.unlocked, out)
    })
}

/// `sched_process_exec(task, old_pid, binprm)`: holds the thread if it executes a file that is not known.
pub(super) fn executed(kernel: WorkKernel) -> Option<Code> {
    program(kernel, |asm, out| {
        program::find_executed(asm, kernel.common, out)
    })
}

/// A program that holds the thread if a file is not known. `find` disables preemption, finds the inode (`R8`), or jumps to the end.
fn program(
    kernel: WorkKernel,
    find: impl FnOnce(&mut Assembler, Label) -> Option<()>,
) -> Option<Code> {
    let mut asm = Assembler::default();
    let (labels, work) = (Labels::new(&mut asm), asm.label());
    find(&mut asm, labels.out)?;
    program::begin_record(&mut asm, kernel.common, labels);
    take_token(&mut asm);
    program::recorder_runs(&mut asm, labels.unheld);
    is_not_real_time(&mut asm, kernel, labels.unheld);
    hold(&mut asm, kernel, labels, work);
    program::end(&mut asm, kernel.common, labels);
    asm.function(work, FunctionKind::Static);
    wait(&mut asm, kernel, work);
    asm.finish()
}

/// Stores the token of the record in `R9`, and the key of the thread's work. The token is taken after the record was reserved, so that each token
/// has a record.
fn take_token(asm: &mut Assembler) {
    // record->TOKEN_AT = TOKEN = __sync_fetch_and_add(&Control[MAPPINGS], 1) + 1;
    asm.set_map_value(Reg::R1, Map::Control, control::MAPPINGS);
    asm.set(Reg::R2, 1);
    asm.atomic_fetch_add(Reg::R1, 0, Reg::R2);
    asm.op_value(Op::Add, Reg::R2, 1);
    asm.store(Width::Double, Reg::R10, TOKEN, Reg::R2);
    asm.store(Width::Double, Reg::R9, TOKEN_AT, Reg::R2);
    // WORK = (u32)record->THREAD;
    asm.load(Width::Word, Reg::R1, Reg::R9, THREAD);
    asm.store(Width::Double, Reg::R10, WORK, Reg::R1);
}

/// `R7`: the thread. Continues if it is not real-time.
fn is_not_real_time(asm: &mut Assembler, kernel: WorkKernel, unheld: Label) {
    // task = bpf_get_current_task_btf(); if ((s32)task->prio < MAX_RT_PRIO) goto unheld;
    asm.call(Helper::CurrentTaskBtf);
    asm.copy(Reg::R7, Reg::R0);
    asm.address(Reg::R3, Reg::R7, kernel.priority.cast_signed());
    asm.load(Width::Word, Reg::R1, Reg::R3, 0);
    asm.extend(Reg::R1, 32, true);
    asm.jump_if(If::BelowSigned, Reg::R1, MAX_RT_PRIO, unheld);
}

/// Queues the work of the thread in `R7`, or, if it waits already, changes its token: `execve` has several mappings. Then submits the record.
fn hold(asm: &mut Assembler, kernel: WorkKernel, labels: Labels, work: Label) {
    let (new, held) = (asm.label(), asm.label());
    let failed = asm.label();
    // STARTED = task->start_boottime; value = bpf_map_lookup_elem(&Held, &WORK); if (!value) goto new;
    asm.address(Reg::R3, Reg::R7, kernel.started.cast_signed());
    asm.load(Width::Double, Reg::R3, Reg::R3, 0);
    asm.store(Width::Double, Reg::R10, STARTED, Reg::R3);
    asm.call_map(Helper::MapLookup, Map::Held, WORK);
    asm.jump_if(If::Equal, Reg::R0, 0, new);
    // if (value->OF_THREAD != STARTED) goto new; value->HELD_TOKEN = TOKEN; goto held;
    asm.copy(Reg::R8, Reg::R0);
    asm.load(Width::Double, Reg::R1, Reg::R8, OF_THREAD);
    asm.load(Width::Double, Reg::R2, Reg::R10, STARTED);
    // It is left of another thread, which was killed.
    asm.jump_if_reg(If::NotEqual, Reg::R1, Reg::R2, new);
    work::set(asm, &[(TOKEN, HELD_TOKEN)]);
    asm.jump(held);
    // new: value = work::find(unheld); value->SINCE = NOW; value->NUMBER = STARTED; value->HELD_TOKEN = TOKEN;
    asm.place(new);
    work::find(asm, false, labels.unheld);
    held_thread(kernel, work).set(asm);
    // if (bpf_task_work_schedule_resume(task, value, &Held, work)) goto failed;
    asm.copy(Reg::R1, Reg::R7);
    work::schedule(asm, kernel.schedule, work, failed);
    // held: submit_held(); failed: bpf_map_delete_elem(&Held, &WORK);
    asm.place(held);
    program::submit_held(asm, labels);
    asm.place(failed);
    asm.call_map(Helper::MapDelete, Map::Held, WORK);
}

/// The stack slots of a held thread, and its work.
const fn held_thread(kernel: WorkKernel, work: Label) -> HeldThread {
    HeldThread {
        now: NOW,
        started: STARTED,
        token: TOKEN,
        schedule: kernel.schedule,
        work,
    }
}

/// The work of a held thread: it continues when its token is answered.
fn wait(asm: &mut Assembler, kernel: WorkKernel, work: Label) {
    held_thread(kernel, work).wait(asm, |asm, over| {
        // if (Control[ANSWERED] >= TOKEN) goto over;
        asm.load_control(control::ANSWERED);
        asm.load(Width::Double, Reg::R2, Reg::R10, TOKEN);
        asm.jump_if_reg(If::AtLeast, Reg::R1, Reg::R2, over);
    });
}
