//! The programs that hold a thread by work, and that work.

use usdtrec_kernel::bpf::insn::{
    Assembler, Code, FunctionKind, Helper, If, Label, Map, Op, Reg, Width,
};

use super::kernel::WorkKernel;
use super::program::{self, Labels, NOW, THREAD, TOKEN_AT};
use crate::engine::bpf::control;
use crate::engine::bpf::processes::hold::work::{
    self, HELD_TOKEN, HeldThread, MAX_RT_PRIO, NUMBER, WORK,
};

/// Stack slots besides those of [`work`] and [`program`]: the token, and the start time of the thread.
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
    asm.set_map_value(Reg::R1, Map::Control, control::MAPPINGS);
    asm.set(Reg::R2, 1);
    asm.atomic_fetch_add(Reg::R1, 0, Reg::R2);
    asm.op_value(Op::Add, Reg::R2, 1);
    asm.store(Width::Double, Reg::R10, TOKEN, Reg::R2);
    asm.store(Width::Double, Reg::R9, TOKEN_AT, Reg::R2);
    asm.load(Width::Word, Reg::R1, Reg::R9, THREAD);
    asm.store(Width::Double, Reg::R10, WORK, Reg::R1);
}

/// `R7`: the thread. Goes on if it is not real-time.
fn is_not_real_time(asm: &mut Assembler, kernel: WorkKernel, unheld: Label) {
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
    held_thread(kernel, work).set(asm);
    asm.copy(Reg::R1, Reg::R7);
    work::schedule(asm, kernel.schedule, work, failed);
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

/// The work of a held thread: it goes on when its token is answered.
fn wait(asm: &mut Assembler, kernel: WorkKernel, work: Label) {
    held_thread(kernel, work).wait(asm, |asm, over| {
        asm.load_control(control::ANSWERED);
        asm.load(Width::Double, Reg::R2, Reg::R10, TOKEN);
        asm.jump_if_reg(If::AtLeast, Reg::R1, Reg::R2, over);
    });
}
