//! The programs at the kernel's tracepoints that add up how long threads wait.
//!
//! From the switch out of a thread to its switch in:
//!
//! | how it left | until it is woken | from then on |
//! |---|---|---|
//! | preempted, or able to run | runnable | runnable |
//! | unable to run, with `in_iowait` | iowait | runnable |
//! | unable to run otherwise | blocked | runnable |
//!
//! A thread that is preempted when it has already said that it will sleep can run: the first argument of `sched_switch` says so, its state does not. Any bit of the
//! state is a reason for not running: a frozen thread, and one that waits for a lock in a kernel with real-time locks, have none of the lowest eight.
//!
//! A waking may be a little earlier than the switch out: another CPU wakes the thread while it is on its way. So the switch in forgets it, not the switch out.

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::features::Tracepoint;
use usdtrec_kernel::bpf::features::members::load_member;
use usdtrec_kernel::bpf::insn::{Assembler, Code, Helper, If, Label, Map, Op, Reg, Width};
use usdtrec_kernel::bpf::preemption::{self, Preemption};

use super::element::{self, KEY, LEFT, STATE, WOKEN, sum, sums_of_current};
use super::events::WrittenWaits;
use crate::engine::bpf::processes::follow::leave;

/// [`Tracepoint::arguments`] of a kernel that passes the state of the thread that leaves. Others may have changed it since.
const WITH_STATE: usize = 5;

/// Offsets of the arguments of the tracepoints, bytes.
const TASK: i16 = 0;
const OLD_ID: i16 = 8;
const IS_PREEMPTED: i16 = 0;
const PREVIOUS: i16 = 8;
const NEXT: i16 = 16;
const PREVIOUS_STATE: i16 = 24;

/// Where the kernel has what the programs need of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskMembers {
    /// `task_struct.pid`: offset, bytes.
    pub(super) thread: u32,
    /// `task_struct.__state`, before Linux 5.14 `state`; `None` if it is an argument.
    pub(super) state: Option<u32>,
    /// `task_struct.in_iowait`, a bit field: offset of its byte, and its bit there.
    pub(super) iowait: (u32, i32),
    /// How preemption is disabled: while a program is preempted, the kernel does not run it for other threads of the CPU.
    pub(super) preemption: Option<Preemption>,
}

impl TaskMembers {
    /// `None` if this kernel does not describe one of them.
    pub(super) fn find(btf: &Btf, preemption: Option<Preemption>) -> Option<Self> {
        let member = |name| btf.member("task_struct", &[name]);
        let is_passed = Tracepoint::Switch.arguments(btf) == Some(WITH_STATE);
        let state = match is_passed {
            true => None,
            false => Some(member("__state").or_else(|| member("state"))?),
        };
        let iowait = btf.member_bits("task_struct", &["in_iowait"])?;
        Some(Self {
            thread: member("pid")?,
            state,
            iowait: (iowait / 8, 1 << (iowait % 8)),
            preemption,
        })
    }
}

/// [`Tracepoint::Switch`]. `written`: which waits have events; `None` if none have.
pub(super) fn switched(members: TaskMembers, written: Option<WrittenWaits>) -> Option<Code> {
    let mut asm = Assembler::default();
    let [arrives, has_arrived, out] = [(); 3].map(|()| asm.label());
    begin(&mut asm);
    // sums = find_sums(ctx->prev, arrives); if (sums->LEFT) miss(sums);
    find_sums(&mut asm, members, PREVIOUS, arrives);
    asm.load(Width::Double, Reg::R1, Reg::R7, LEFT);
    asm.jump_if(If::Equal, Reg::R1, 0, has_arrived);
    element::miss(&mut asm, Reg::R7);
    asm.place(has_arrived);
    // sums->LEFT = now; sums->STATE = load_reason();
    asm.store(Width::Double, Reg::R7, LEFT, Reg::R8);
    load_reason(&mut asm, members);
    asm.store(Width::Double, Reg::R7, STATE, Reg::R1);
    // arrives: sums = find_sums(ctx->next, out); arrive(sums); write(sums);
    asm.place(arrives);
    find_sums(&mut asm, members, NEXT, out);
    arrive(&mut asm, out);
    if let Some(written) = written {
        written.write(&mut asm, NEXT);
    }
    asm.place(out);
    leave(asm)
}

/// [`Tracepoint::Waking`].
pub(super) fn waking(members: TaskMembers) -> Option<Code> {
    let mut asm = Assembler::default();
    let out = asm.label();
    begin(&mut asm);
    // sums = find_sums(ctx->task, out); sums->WOKEN = now;
    find_sums(&mut asm, members, TASK, out);
    asm.store(Width::Double, Reg::R7, WOKEN, Reg::R8);
    asm.place(out);
    leave(asm)
}

/// `R6` = the context, `R8` = 0: the time is not known yet.
fn begin(asm: &mut Assembler) {
    // ctx = r1; now = 0;
    asm.copy(Reg::R6, Reg::R1);
    asm.set(Reg::R8, 0);
}

/// `R7` = the element of the task in an argument, `R8` = the time; jumps to `none` if the thread has no element.
fn find_sums(asm: &mut Assembler, members: TaskMembers, argument: i16, none: Label) {
    let has_time = asm.label();
    // KEY = task->pid; if (!WaitGate[KEY & (GATE_COUNTS - 1)]) goto none;
    load_thread(asm, members, argument);
    element::find_count(asm);
    asm.load(Width::Word, Reg::R1, Reg::R1, 0);
    asm.jump_if(If::Equal, Reg::R1, 0, none);
    // if (!now) now = bpf_ktime_get_ns();
    asm.jump_if(If::NotEqual, Reg::R8, 0, has_time);
    asm.call(Helper::KtimeNs);
    asm.copy(Reg::R8, Reg::R0);
    asm.place(has_time);
    // sums = bpf_map_lookup_elem(&WaitSums, &KEY); if (!sums) goto none;
    asm.call_map(Helper::MapLookup, Map::WaitSums, KEY);
    asm.jump_if(If::Equal, Reg::R0, 0, none);
    asm.copy(Reg::R7, Reg::R0);
}

/// Stores the id of the task in an argument.
fn load_thread(asm: &mut Assembler, members: TaskMembers, argument: i16) {
    // KEY = ((struct task_struct *)ctx[argument])->pid;
    asm.load(Width::Double, Reg::R3, Reg::R6, argument);
    load_member(asm, Width::Word, members.thread);
    asm.store(Width::Word, Reg::R10, KEY, Reg::R3);
}

/// `R1` = the offset of the sum for what the thread that leaves its CPU is now.
fn load_reason(asm: &mut Assembler, members: TaskMembers) {
    let known = asm.label();
    // r1 = RUNNABLE; if (ctx->preempt) goto known;
    asm.set(Reg::R1, sum::RUNNABLE.into());
    asm.load(Width::Double, Reg::R2, Reg::R6, IS_PREEMPTED);
    asm.jump_if(If::NotEqual, Reg::R2, 0, known);
    // r3 = members.state ? ctx->prev->__state : ctx->prev_state; if (!r3) goto known;
    match members.state {
        None => asm.load(Width::Double, Reg::R3, Reg::R6, PREVIOUS_STATE),
        Some(state) => {
            asm.load(Width::Double, Reg::R3, Reg::R6, PREVIOUS);
            load_member(asm, Width::Word, state);
        }
    }
    asm.jump_if(If::Equal, Reg::R3, 0, known);
    // r1 = ctx->prev->in_iowait ? IOWAIT : BLOCKED;
    asm.set(Reg::R1, sum::BLOCKED.into());
    let (byte, bit) = members.iowait;
    asm.load(Width::Double, Reg::R3, Reg::R6, PREVIOUS);
    load_member(asm, Width::Byte, byte);
    asm.op_value(Op::And, Reg::R3, bit);
    asm.jump_if(If::Equal, Reg::R3, 0, known);
    asm.set(Reg::R1, sum::IOWAIT.into());
    asm.place(known);
}

/// Adds the wait that ends, of the element `R7` at the time `R8`; jumps to `out` if it is not known when it began. `R1` = when it began, `R3` = from when on the
/// thread could run.
fn arrive(asm: &mut Assembler, out: Label) {
    let [has_left, could_not_run, in_io, runnable] = [(); 4].map(|()| asm.label());
    // woken = sums->WOKEN; sums->WOKEN = 0; left = sums->LEFT; sums->LEFT = 0; if (!left) { miss(sums); goto out; }
    asm.load(Width::Double, Reg::R3, Reg::R7, WOKEN);
    asm.store_value(Width::Double, Reg::R7, WOKEN, 0);
    asm.load(Width::Double, Reg::R1, Reg::R7, LEFT);
    asm.store_value(Width::Double, Reg::R7, LEFT, 0);
    asm.jump_if(If::NotEqual, Reg::R1, 0, has_left);
    element::miss(asm, Reg::R7);
    asm.jump(out);
    asm.place(has_left);
    // Clocks of CPUs may differ by little.
    // if (now < left) goto out;
    asm.jump_if_reg(If::Below, Reg::R8, Reg::R1, out);
    // if (sums->STATE == RUNNABLE) { woken = left; goto runnable; }
    asm.load(Width::Double, Reg::R2, Reg::R7, STATE);
    let runs = sum::RUNNABLE.into();
    asm.jump_if(If::NotEqual, Reg::R2, runs, could_not_run);
    asm.copy(Reg::R3, Reg::R1);
    asm.jump(runnable);
    // could_not_run: woken = limit_waking(woken); if (sums->STATE == IOWAIT) goto in_io;
    asm.place(could_not_run);
    limit_waking(asm);
    asm.jump_if(If::Equal, Reg::R2, sum::IOWAIT.into(), in_io);
    // sums->BLOCKED += woken - left; goto runnable; in_io: sums->IOWAIT += woken - left;
    add(asm, sum::BLOCKED, Reg::R3, Reg::R1);
    asm.jump(runnable);
    asm.place(in_io);
    add(asm, sum::IOWAIT, Reg::R3, Reg::R1);
    // runnable: sums->RUNNABLE += now - woken;
    asm.place(runnable);
    add(asm, sum::RUNNABLE, Reg::R8, Reg::R3);
}

/// `R3` = the time of the waking in it, but not before the switch out in `R1`, and not after the switch in in `R8`; the latter if there was no waking.
fn limit_waking(asm: &mut Assembler) {
    let [was_woken, has_left, is_over] = [(); 3].map(|()| asm.label());
    // if (!woken) woken = now; if (woken < left) woken = left; if (woken > now) woken = now;
    asm.jump_if(If::NotEqual, Reg::R3, 0, was_woken);
    asm.copy(Reg::R3, Reg::R8);
    asm.place(was_woken);
    asm.jump_if_reg(If::AtLeast, Reg::R3, Reg::R1, has_left);
    asm.copy(Reg::R3, Reg::R1);
    asm.place(has_left);
    asm.jump_if_reg(If::AtMost, Reg::R3, Reg::R8, is_over);
    asm.copy(Reg::R3, Reg::R8);
    asm.place(is_over);
}

/// Adds `to - from` to a sum of the element `R7`. `R4` and `R5` are lost.
fn add(asm: &mut Assembler, sum: i16, to: Reg, from: Reg) {
    // sums->sum += to - from;
    asm.copy(Reg::R4, to);
    asm.op(Op::Sub, Reg::R4, from);
    asm.load(Width::Double, Reg::R5, Reg::R7, sum);
    asm.op(Op::Add, Reg::R5, Reg::R4);
    asm.store(Width::Double, Reg::R7, sum, Reg::R5);
}

/// Which thread is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forgotten {
    /// That of the task in the first argument, which begins: the end of an earlier one with its id may have been missed.
    Task,
    /// The same, which ends.
    EndedTask,
    /// That with the id which the current task had before it executed a program, if it has another one now: it is another thread's soon.
    OldId,
}

/// [`Tracepoint::NewTask`], [`Tracepoint::Exit`], [`Tracepoint::Exec`].
pub(super) fn forgets(members: TaskMembers, forgotten: Forgotten) -> Option<Code> {
    let mut asm = Assembler::default();
    let out = asm.label();
    // New tasks are told of with interrupts disabled.
    let preemption = members.preemption.filter(|_| forgotten != Forgotten::Task);
    // ctx = r1; bpf_preempt_disable(); KEY = ctx->task->pid;
    asm.copy(Reg::R6, Reg::R1);
    preemption::disable(&mut asm, preemption);
    load_thread(&mut asm, members, TASK);
    if forgotten == Forgotten::OldId {
        // if ((u32)ctx->old_pid == ctx->task->pid) goto out; KEY = ctx->old_pid;
        asm.load(Width::Double, Reg::R1, Reg::R6, OLD_ID);
        asm.cut_to_32(Reg::R1);
        asm.jump_if_reg(If::Equal, Reg::R1, Reg::R3, out);
        asm.store(Width::Word, Reg::R10, KEY, Reg::R1);
    }
    // forget(KEY); out: bpf_preempt_enable(); return 0;
    element::forget(&mut asm);
    asm.place(out);
    preemption::enable(&mut asm, preemption);
    leave(asm)
}

/// A program to run once: adds the current thread. Its result is the thread's id, or -1.
pub(super) fn adds_current() -> Option<Code> {
    let mut asm = Assembler::default();
    let none = asm.label();
    // sums_of_current(none); return KEY; none: return -1;
    sums_of_current(&mut asm, None, none);
    asm.load(Width::Word, Reg::R0, Reg::R10, KEY);
    asm.exit();
    asm.place(none);
    asm.exit_with(-1);
    asm.finish()
}

/// A program to run once: forgets the current thread.
pub(super) fn forgets_current() -> Option<Code> {
    let mut asm = Assembler::default();
    // KEY = (u32)bpf_get_current_pid_tgid(); forget(KEY); return 0;
    asm.call(Helper::PidTgid);
    asm.store(Width::Word, Reg::R10, KEY, Reg::R0);
    element::forget(&mut asm);
    leave(asm)
}
