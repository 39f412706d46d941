//! The programs on `fork` and `execve`, and the work of a held task.

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::features::Tracepoint;
use usdtrec_kernel::bpf::features::members::Members;
use usdtrec_kernel::bpf::insn::{
    Assembler, Code, FunctionKind, Helper, If, Label, Map, Op, Reg, Width,
};
use usdtrec_kernel::bpf::preemption;

use super::work::{
    self, HELD_TOKEN, MAX_HOLD_NS, MAX_RT_PRIO, NUMBER, RUNNING, SINCE, WORK, schedule_function,
};
use crate::engine::bpf::contract::own_instruction_pointer;
use crate::engine::bpf::contract::{FIRST_TOKEN, FOLLOWED, LINKED};
use crate::engine::bpf::control;

/// Stack slots besides those of [`work`]: a 4-byte process id, a 4-byte value, an 8-byte token, and a time.
const KEY: i16 = -4;
const VALUE: i16 = -8;
const TOKEN: i16 = -32;
const NOW: i16 = -72;

/// The instruction pointer of a held process at the start; 0 later.
const AT: i16 = NUMBER;
/// Size of a call, bytes.
const CALL_BYTES: i32 = 16;

/// `sched_process_fork(parent, child)`: adds the child of a process in the map, and holds it.
pub(super) fn on_fork(kernel: Kernel) -> Option<Code> {
    hold_child(kernel, Beginning::Fork)
}

/// `sched_wakeup_new(child)`: does the same for a child that the program on `fork` was not run for. Here the work is queued when the child may already
/// run on another CPU, so that it can come too late, which is counted.
pub(super) fn on_wakeup_new(kernel: Kernel) -> Option<Code> {
    hold_child(kernel, Beginning::WakeupNew)
}

/// The tracepoints of a child that begins, in their order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beginning {
    Fork,
    WakeupNew,
}

/// Adds the child of a process in the map, and holds it.
fn hold_child(kernel: Kernel, beginning: Beginning) -> Option<Code> {
    let mut asm = Assembler::default();
    let (out, work, tracked) = (asm.label(), asm.label(), asm.label());
    let argument = match beginning {
        Beginning::Fork => 8,
        Beginning::WakeupNew => 0,
    };
    // child = ctx[argument]; bpf_preempt_disable(); is_tracked(out);
    asm.load(Width::Double, Reg::R7, Reg::R1, argument);
    preemption::disable(&mut asm, kernel.members.preemption);
    is_tracked(&mut asm, out);
    // if (child->tgid == KEY) goto out; KEY = child->tgid;
    read_word(&mut asm, Reg::R7, kernel.members.tgid, out);
    asm.load(Width::Word, Reg::R2, Reg::R10, KEY);
    // A new thread.
    asm.jump_if_reg(If::Equal, Reg::R1, Reg::R2, out);
    asm.store(Width::Word, Reg::R10, KEY, Reg::R1);
    if beginning == Beginning::WakeupNew {
        // if (bpf_map_lookup_elem(&Tracked, &KEY)) goto out;
        asm.call_map(Helper::MapLookup, Map::Tracked, KEY);
        asm.jump_if(If::NotEqual, Reg::R0, 0, out);
    }
    // if (!track()) goto tracked;
    track(&mut asm);
    asm.jump_if(If::Equal, Reg::R0, 0, tracked);
    if beginning == Beginning::WakeupNew {
        // There is no room; on `fork` it was not counted.
        // Control[MISSED]++;
        asm.count(control::MISSED);
    }
    // goto out; tracked: hold(child);
    asm.jump(out);
    asm.place(tracked);
    hold(&mut asm, kernel, Labels { out, work });
    finish(asm, kernel, Labels { out, work })
}

/// `sched_process_exec(task, old_pid, binprm)`: if a thread other than the first executes a program, it becomes the first, and the links of
/// the process do not apply to it any more. Held children of a real-time process could occupy all CPUs, so such a process is held itself
/// before it has any.
pub(super) fn on_exec(kernel: Kernel) -> Option<Code> {
    let mut asm = Assembler::default();
    let (out, work) = (asm.label(), asm.label());
    let (other, held) = (asm.label(), asm.label());
    // task = ctx->task; r8 = ctx->old_pid; bpf_preempt_disable(); tracked = is_tracked(out);
    asm.load(Width::Double, Reg::R7, Reg::R1, 0);
    asm.load(Width::Double, Reg::R8, Reg::R1, 8);
    preemption::disable(&mut asm, kernel.members.preemption);
    is_tracked(&mut asm, out);
    // if (*tracked != LINKED) goto out; if (KEY != (u32)r8) goto other;
    asm.load(Width::Word, Reg::R1, Reg::R0, 0);
    asm.jump_if(If::NotEqual, Reg::R1, LINKED.cast_signed(), out);
    asm.cut_to_32(Reg::R8);
    asm.load(Width::Word, Reg::R1, Reg::R10, KEY);
    asm.jump_if_reg(If::NotEqual, Reg::R1, Reg::R8, other);
    // if (task->prio >= MAX_RT_PRIO) goto out; goto held;
    priority(&mut asm, kernel, out);
    asm.jump_if(If::AtLeastSigned, Reg::R1, MAX_RT_PRIO, out);
    asm.jump(held);
    // other: track(); held: hold(task);
    asm.place(other);
    track(&mut asm);
    asm.place(held);
    hold(&mut asm, kernel, Labels { out, work });
    finish(asm, kernel, Labels { out, work })
}

/// `sched_process_exit(task)`: if the first thread of a process with links ends before the others, the breakpoints of its links stay, but
/// files that are mapped later get none. With the last thread the work of a process is removed.
pub(super) fn on_exit(kernel: Kernel) -> Option<Code> {
    /// `SIGNAL_GROUP_EXIT` (include/linux/sched/signal.h): all threads exit.
    const GROUP_EXIT: i32 = 4;
    let Members {
        signal,
        live,
        flags,
        ..
    } = kernel.members;
    let mut asm = Assembler::default();
    let (out, goes_on) = (asm.label(), asm.label());
    // task = ctx->task; r9 = *is_tracked(out); r8 = task->signal; if (r8->live) goto goes_on;
    asm.load(Width::Double, Reg::R7, Reg::R1, 0);
    is_tracked(&mut asm, out);
    asm.load(Width::Word, Reg::R9, Reg::R0, 0);
    read_pointer(&mut asm, Reg::R8, Reg::R7, signal, out);
    read_word(&mut asm, Reg::R8, live, out);
    asm.jump_if(If::NotEqual, Reg::R1, 0, goes_on);
    // RUNNING = KEY; WORK = RUNNING ^ (u64)OTHER << 32; forget(); goto out;
    asm.load(Width::Word, Reg::R1, Reg::R10, KEY);
    asm.store(Width::Double, Reg::R10, RUNNING, Reg::R1);
    work::other(&mut asm);
    work::forget(&mut asm);
    asm.jump(out);
    // goes_on: if (r9 != LINKED) goto out;
    asm.place(goes_on);
    asm.jump_if(If::NotEqual, Reg::R9, LINKED.cast_signed(), out);
    // ids = bpf_get_current_pid_tgid(); if (ids >> 32 != (u32)ids) goto out;
    asm.call(Helper::PidTgid);
    asm.copy(Reg::R1, Reg::R0);
    asm.cut_to_32(Reg::R1);
    asm.op_value(Op::ShiftRight, Reg::R0, 32);
    asm.jump_if_reg(If::NotEqual, Reg::R0, Reg::R1, out);
    // if (r8->flags & GROUP_EXIT) goto out;
    read_word(&mut asm, Reg::R8, flags, out);
    asm.op_value(Op::And, Reg::R1, GROUP_EXIT);
    asm.jump_if(If::NotEqual, Reg::R1, 0, out);
    // A process that executes a program is held afterwards.
    // if (r8->group_exec_task) goto out;
    read_pointer(&mut asm, Reg::R1, Reg::R8, kernel.exec_task, out);
    asm.jump_if(If::NotEqual, Reg::R1, 0, out);
    // Control[CALLS]++; TOKEN = 0; call(); out: return 0;
    asm.count(control::CALLS);
    asm.store_value(Width::Double, Reg::R10, TOKEN, 0);
    call(&mut asm, out);
    asm.place(out);
    asm.exit_with(0);
    asm.finish()
}

/// `R1`: the priority of the task in `R7`.
fn priority(asm: &mut Assembler, kernel: Kernel, out: Label) {
    // r1 = (s32)task->prio;
    read_word(asm, Reg::R7, kernel.members.priority, out);
    asm.extend(Reg::R1, 32, true);
}

/// Labels of a program that holds tasks.
#[derive(Clone, Copy)]
struct Labels {
    /// The end of the program.
    out: Label,
    /// The function that a held task runs.
    work: Label,
}

/// `R1` = 4 bytes of kernel memory at `from + offset`.
fn read_word(asm: &mut Assembler, from: Reg, offset: u32, out: Label) {
    // if (bpf_probe_read_kernel(&VALUE, 4, from + offset)) goto out; r1 = VALUE;
    asm.address(Reg::R3, from, offset.cast_signed());
    read(asm, VALUE, 4, out);
    asm.load(Width::Word, Reg::R1, Reg::R10, VALUE);
}

/// `to` = the pointer in kernel memory at `from + offset`.
fn read_pointer(asm: &mut Assembler, to: Reg, from: Reg, offset: u32, out: Label) {
    // if (bpf_probe_read_kernel(&WORK, 8, from + offset)) goto out; to = WORK;
    asm.address(Reg::R3, from, offset.cast_signed());
    read(asm, WORK, 8, out);
    asm.load(Width::Double, to, Reg::R10, WORK);
}

/// Reads kernel memory at `R3` to a slot.
fn read(asm: &mut Assembler, slot: i16, bytes: i64, out: Label) {
    // if (bpf_probe_read_kernel(&slot, bytes, r3)) goto out;
    asm.address(Reg::R1, Reg::R10, slot.into());
    asm.set(Reg::R2, bytes);
    asm.call(Helper::ReadKernel);
    asm.jump_if(If::NotEqual, Reg::R0, 0, out);
}

/// Sends a call with the process id and the token, which are in their slots, and the time.
fn call(asm: &mut Assembler, out: Label) {
    // NOW = bpf_ktime_get_ns(); r0 = bpf_ringbuf_reserve(&Calls, CALL_BYTES, 0); if (!r0) goto out;
    asm.call(Helper::KtimeNs);
    asm.store(Width::Double, Reg::R10, NOW, Reg::R0);
    asm.set_map(Reg::R1, Map::Calls);
    asm.set(Reg::R2, CALL_BYTES.into());
    asm.set(Reg::R3, 0);
    asm.call(Helper::RingReserve);
    // The ring is full: the held process continues after two seconds, and is counted.
    asm.jump_if(If::Equal, Reg::R0, 0, out);
    // r1 = r0; r1->pid = KEY; r1->token = TOKEN; r1->time = NOW; bpf_ringbuf_submit(r1, 0);
    asm.copy(Reg::R1, Reg::R0);
    for (slot, at) in [(KEY, 0), (TOKEN, 4)] {
        asm.load(Width::Word, Reg::R2, Reg::R10, slot);
        asm.store(Width::Word, Reg::R1, at, Reg::R2);
    }
    asm.load(Width::Double, Reg::R2, Reg::R10, NOW);
    asm.store(Width::Double, Reg::R1, 8, Reg::R2);
    asm.set(Reg::R2, 0);
    asm.call(Helper::RingSubmit);
}

/// Stores the id of the current process in its slot; returns if it is not recorded.
fn is_tracked(asm: &mut Assembler, out: Label) {
    // KEY = bpf_get_current_pid_tgid() >> 32; r0 = bpf_map_lookup_elem(&Tracked, &KEY); if (!r0) goto out;
    asm.store_process(KEY);
    asm.call_map(Helper::MapLookup, Map::Tracked, KEY);
    asm.jump_if(If::Equal, Reg::R0, 0, out);
}

/// Stores in the map that the process in its slot has no links of its own; `R0` is not 0 if it has no room.
fn track(asm: &mut Assembler) {
    // VALUE = FOLLOWED; bpf_map_update_elem(&Tracked, &KEY, &VALUE, BPF_ANY);
    asm.store_value(Width::Word, Reg::R10, VALUE, FOLLOWED.cast_signed());
    asm.update_map(Map::Tracked, KEY, VALUE);
}

/// Holds the task in `R7`, whose process id is in its slot, and calls the recorder. Its token is the number of such calls so far; 0 if it
/// cannot have links of its own.
fn hold(asm: &mut Assembler, kernel: Kernel, Labels { out, work }: Labels) {
    const TOKENS: i32 = i32::MAX;
    let (missed, usual, wake) = (asm.label(), asm.label(), asm.label());
    // TOKEN = (__sync_fetch_and_add(&Control[CALLS], 1) & TOKENS) + FIRST_TOKEN;
    asm.set_map_value(Reg::R1, Map::Control, control::CALLS);
    asm.set(Reg::R2, 1);
    asm.atomic_fetch_add(Reg::R1, 0, Reg::R2);
    asm.op_value(Op::And, Reg::R2, TOKENS);
    asm.op_value(Op::Add, Reg::R2, FIRST_TOKEN.cast_signed());
    asm.store(Width::Double, Reg::R10, TOKEN, Reg::R2);
    // The recorder does it in reverse order: it first stops releasing, and then reads the map.
    // if (Control[RELEASED]) goto out; if (task->prio < MAX_RT_PRIO) TOKEN = 0;
    released(asm, out);
    priority(asm, kernel, missed);
    asm.jump_if(If::AtLeastSigned, Reg::R1, MAX_RT_PRIO, usual);
    asm.store_value(Width::Double, Reg::R10, TOKEN, 0);
    asm.place(usual);
    // WORK = KEY; value = work::find(missed); value->SINCE = bpf_ktime_get_ns(); value->HELD_TOKEN = TOKEN;
    asm.load(Width::Word, Reg::R1, Reg::R10, KEY);
    asm.store(Width::Double, Reg::R10, WORK, Reg::R1);
    work::find(asm, false, missed);
    asm.call(Helper::KtimeNs);
    asm.store(Width::Double, Reg::R8, SINCE, Reg::R0);
    asm.load(Width::Double, Reg::R1, Reg::R10, TOKEN);
    asm.store(Width::Double, Reg::R8, HELD_TOKEN, Reg::R1);
    // value->AT = PT_REGS_IP(bpf_task_pt_regs(task));
    asm.copy(Reg::R1, Reg::R7);
    asm.call(Helper::TaskPtRegs);
    asm.load(Width::Double, Reg::R0, Reg::R0, own_instruction_pointer());
    asm.store(Width::Double, Reg::R8, AT, Reg::R0);
    // if (bpf_task_work_schedule_resume(task, value, &Held, work)) goto missed; goto wake;
    asm.copy(Reg::R1, Reg::R7);
    work::schedule(asm, kernel.schedule, work, missed);
    asm.jump(wake);
    // missed: Control[MISSED]++; TOKEN = 0; wake: call();
    asm.place(missed);
    asm.count(control::MISSED);
    asm.store_value(Width::Double, Reg::R10, TOKEN, 0);
    asm.place(wake);
    call(asm, out);
}

/// Ends the program. The function that a held task runs follows.
fn finish(mut asm: Assembler, kernel: Kernel, Labels { out, work }: Labels) -> Option<Code> {
    // out: bpf_preempt_enable(); return 0;
    asm.place(out);
    preemption::enable(&mut asm, kernel.members.preemption);
    asm.exit_with(0);
    asm.function(work, FunctionKind::Static);
    wait(&mut asm, kernel, work);
    asm.finish()
}

/// The work of a held task: `R2` is its key, `R3` its value. The task releases itself, so that its entry in the map changes while it runs
/// no instruction in user mode.
fn wait(asm: &mut Assembler, kernel: Kernel, work: Label) {
    let (began, unlinked, longer) = (asm.label(), asm.label(), asm.label());
    let (missed, followed, gone) = (asm.label(), asm.label(), asm.label());
    // value = begin(); TOKEN = value->HELD_TOKEN; task = bpf_get_current_task_btf();
    work::begin(asm);
    asm.load(Width::Double, Reg::R1, Reg::R7, HELD_TOKEN);
    asm.store(Width::Double, Reg::R10, TOKEN, Reg::R1);
    asm.call(Helper::CurrentTaskBtf);
    asm.copy(Reg::R9, Reg::R0);
    // Whether the process has run already, so that the work came too late.
    // if (value->AT && value->AT != PT_REGS_IP(bpf_task_pt_regs(task))) Control[MISSED]++;
    asm.load(Width::Double, Reg::R6, Reg::R7, AT);
    asm.jump_if(If::Equal, Reg::R6, 0, began);
    asm.copy(Reg::R1, Reg::R9);
    asm.call(Helper::TaskPtRegs);
    asm.load(Width::Double, Reg::R1, Reg::R0, own_instruction_pointer());
    asm.jump_if_reg(If::Equal, Reg::R1, Reg::R6, began);
    asm.count(control::MISSED);
    asm.place(began);
    // A process that is exiting is not in the map any more.
    // tracked = is_tracked(gone); if (*tracked == TOKEN) { *tracked = LINKED; goto gone; }
    is_tracked(asm, gone);
    asm.copy(Reg::R6, Reg::R0);
    asm.load(Width::Word, Reg::R1, Reg::R6, 0);
    asm.load(Width::Double, Reg::R2, Reg::R10, TOKEN);
    asm.jump_if_reg(If::NotEqual, Reg::R1, Reg::R2, unlinked);
    asm.store_value(Width::Word, Reg::R6, 0, LINKED.cast_signed());
    asm.jump(gone);
    // unlinked: if (Control[RELEASED]) goto followed;
    asm.place(unlinked);
    released(asm, followed);
    // NOW = value->SINCE; if (bpf_ktime_get_ns() - NOW < MAX_HOLD_NS) goto longer;
    asm.call(Helper::KtimeNs);
    asm.load(Width::Double, Reg::R1, Reg::R7, SINCE);
    asm.store(Width::Double, Reg::R10, NOW, Reg::R1);
    asm.op(Op::Sub, Reg::R0, Reg::R1);
    asm.jump_if(If::Below, Reg::R0, MAX_HOLD_NS, longer);
    // No other process is held any more, either.
    // Control[RELEASED] = 1; goto missed;
    asm.set_map_value(Reg::R1, Map::Control, control::RELEASED);
    asm.store_value(Width::Double, Reg::R1, 0, 1);
    asm.jump(missed);
    // longer: value = work::find(missed); value->SINCE = NOW; value->HELD_TOKEN = TOKEN;
    asm.place(longer);
    work::find(asm, true, missed);
    work::set(asm, &[(NOW, SINCE), (TOKEN, HELD_TOKEN)]);
    // if (bpf_task_work_schedule_resume(task, value, &Held, work)) goto missed; return 0;
    asm.copy(Reg::R1, Reg::R9);
    work::schedule(asm, kernel.schedule, work, missed);
    asm.exit_with(0);
    // missed: Control[MISSED]++; TOKEN = 0; call();
    asm.place(missed);
    asm.count(control::MISSED);
    asm.store_value(Width::Double, Reg::R10, TOKEN, 0);
    call(asm, followed);
    asm.place(followed);
    // A real-time process has links, and was held because of its children.
    // followed: if (*tracked != LINKED) *tracked = FOLLOWED;
    asm.load(Width::Word, Reg::R1, Reg::R6, 0);
    asm.jump_if(If::Equal, Reg::R1, LINKED.cast_signed(), gone);
    asm.store_value(Width::Word, Reg::R6, 0, FOLLOWED.cast_signed());
    // gone: forget(); return 0;
    asm.place(gone);
    work::forget(asm);
    asm.exit_with(0);
}

/// Returns if no process is held.
fn released(asm: &mut Assembler, out: Label) {
    // if (Control[RELEASED]) goto out;
    asm.load_control(control::RELEASED);
    asm.jump_if(If::NotEqual, Reg::R1, 0, out);
}

/// Offsets and functions of the running kernel that the programs need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    pub(super) members: Members,
    /// `signal_struct.group_exec_task`: the thread that executes a program and ends the others.
    pub(super) exec_task: u32,
    /// `bpf_task_work_schedule_resume`.
    pub(super) schedule: u32,
    /// The types of the tracepoints.
    pub(super) fork: u32,
    pub(super) new_task: u32,
    pub(super) exec: u32,
    pub(super) exit: u32,
}

impl Kernel {
    pub(super) fn find(members: Members, btf: &Btf) -> Option<Self> {
        Some(Self {
            members,
            exec_task: btf.member("signal_struct", &["group_exec_task"])?,
            schedule: schedule_function(btf)?,
            fork: Tracepoint::Fork.id(btf)?,
            new_task: Tracepoint::NewTask.id(btf)?,
            exec: Tracepoint::Exec.id(btf)?,
            exit: Tracepoint::Exit.id(btf)?,
        })
    }
}
