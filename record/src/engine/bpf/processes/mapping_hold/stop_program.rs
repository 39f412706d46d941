//! The programs that stop a process, and one that sees what signals it gets then.

use usdtrec_kernel::bpf::insn::{Assembler, Code, Helper, If, Label, Map, Op, Reg, Width};
use usdtrec_kernel::bpf::preemption;

use super::kernel::{StopKernel, Unlocked};
use super::program::{self, KEY, Labels, NOW};
use crate::engine::bpf::lossless::stopped_map::FIRST_NOTED;

/// The stack slot of a value of the map of stopped processes.
const VALUE: i16 = -16;

/// Offsets of the arguments of `ksys_mmap_pgoff`, and of its result.
const PROTECTION: i16 = 16;
const FLAGS: i16 = 24;
const DESCRIPTOR: i16 = 32;
const RESULT: i16 = 48;
/// Offsets of arguments of `signal_generate`.
const SIGNAL: i16 = 0;
const SIGNAL_INFO: i16 = 8;
const SIGNAL_TASK: i16 = 16;
const SIGNAL_RESULT: i16 = 32;

/// `SEND_SIG_PRIV`: the kernel sends the signal, as for a program (include/linux/sched/signal.h).
const BY_KERNEL: i32 = 1;
/// `TRACE_SIGNAL_IGNORED` (include/trace/events/signal.h).
const IGNORED: i32 = 1;
/// `BPF_NOEXIST`.
const NOEXIST: i64 = 1;
/// The first process of the system.
const INIT: i32 = 1;

/// `ksys_mmap_pgoff` has returned: stops the process if it has mapped code of a file that is not known. The record of the mapping has been written.
pub(super) fn mapped(kernel: StopKernel) -> Option<Code> {
    program(kernel, |asm, out| {
        let (leaves, goes_on) = (asm.label(), asm.label());
        asm.load(Width::Double, Reg::R2, Reg::R1, PROTECTION);
        asm.load(Width::Double, Reg::R3, Reg::R1, FLAGS);
        asm.load(Width::Double, Reg::R9, Reg::R1, DESCRIPTOR);
        asm.load(Width::Double, Reg::R4, Reg::R1, RESULT);
        // An error number.
        asm.jump_if(If::BelowSigned, Reg::R4, 0, leaves);
        asm.op_value(Op::And, Reg::R3, libc::MAP_ANONYMOUS);
        asm.jump_if(If::NotEqual, Reg::R3, 0, leaves);
        program::is_file_of_code(asm, leaves);
        asm.jump(goes_on);
        asm.place(leaves);
        asm.exit_with(0);
        asm.place(goes_on);
        preemption::disable(asm, kernel.common.preemption);
        program::is_recorded(asm, out)?;
        asm.call(Helper::CurrentTask);
        asm.copy(Reg::R8, Reg::R0);
        program::find_opened(asm, kernel.common, out);
        Some(())
    })
}

/// The same at `mmap_lock_released(mm, write)`.
pub(super) fn unlocked(kernel: StopKernel, unlocked: Unlocked) -> Option<Code> {
    program(kernel, |asm, out| {
        program::find_unlocked(asm, kernel.common, unlocked, out)
    })
}

/// `sched_process_exec(task, old_pid, binprm)`: stops the process if it executes a file that is not known.
pub(super) fn executed(kernel: StopKernel) -> Option<Code> {
    program(kernel, |asm, out| {
        program::find_executed(asm, kernel.common, out)
    })
}

/// A program that stops the process if a file is not known. `find` disables preemption, finds the inode (`R8`), or jumps to the end.
fn program(
    kernel: StopKernel,
    find: impl FnOnce(&mut Assembler, Label) -> Option<()>,
) -> Option<Code> {
    let mut asm = Assembler::default();
    let labels = Labels::new(&mut asm);
    find(&mut asm, labels.out)?;
    program::begin_record(&mut asm, kernel.common, labels);
    program::recorder_runs(&mut asm, labels.unheld);
    may_be_stopped(&mut asm, kernel, labels.unheld);
    stop(&mut asm, kernel, labels.unheld);
    program::submit_held(&mut asm, labels);
    program::end(&mut asm, kernel.common, labels);
    asm.finish()
}

/// Goes on unless the process is the first one, or one that is never stopped, or a tracer would be told of the stop.
fn may_be_stopped(asm: &mut Assembler, kernel: StopKernel, unheld: Label) {
    asm.load(Width::Word, Reg::R1, Reg::R10, KEY);
    asm.jump_if(If::Equal, Reg::R1, INIT, unheld);
    asm.call_map(Helper::MapLookup, Map::Exempt, KEY);
    asm.jump_if(If::NotEqual, Reg::R0, 0, unheld);
    asm.call(Helper::CurrentTask);
    asm.copy(Reg::R8, Reg::R0);
    program::read(asm, kernel.traced, NOW, 4, unheld);
    asm.load(Width::Word, Reg::R1, Reg::R10, NOW);
    asm.jump_if(If::NotEqual, Reg::R1, 0, unheld);
}

/// Stops the process, and adds it to the map. The signal comes first: a process in the map may be continued at any time. It is sent to this
/// thread, which cannot return to user mode before it has stopped. While preemption is disabled the kernel sends it by an interrupt of this
/// CPU (Linux 6.14), which comes at once.
fn stop(asm: &mut Assembler, kernel: StopKernel, unheld: Label) {
    let (added, send) = (asm.label(), Helper::SendSignalThread);
    preemption::enable(asm, kernel.common.preemption);
    asm.set(Reg::R1, libc::SIGSTOP.into());
    asm.call(send);
    asm.copy(Reg::R8, Reg::R0);
    // The stack may be another run's since.
    preemption::disable(asm, kernel.common.preemption);
    asm.jump_if(If::NotEqual, Reg::R8, 0, unheld);
    asm.store_process(KEY);
    asm.call(Helper::BootNs);
    asm.store(Width::Double, Reg::R10, VALUE, Reg::R0);
    asm.address(Reg::R3, Reg::R10, VALUE.into());
    // The time of the first stop stays, if another thread has stopped the process just now.
    asm.set(Reg::R4, NOEXIST);
    asm.call_map(Helper::MapUpdate, Map::Stopped, KEY);
    asm.jump_if(If::Equal, Reg::R0, 0, added);
    // Before Linux 6.4 the upper half is undefined.
    asm.extend(Reg::R0, 32, true);
    asm.jump_if(If::Equal, Reg::R0, -libc::EEXIST, added);
    // Nobody would continue it: the signal is taken back.
    asm.set(Reg::R1, libc::SIGCONT.into());
    asm.call(send);
    asm.jump(unheld);
    asm.place(added);
}

/// `signal_generate(sig, info, task, group, result)`: a process that is stopped gets a signal that stops or continues processes. `SIGCONT` has
/// continued it, and after `SIGSTOP` it is to stay stopped: it is removed from the map. Other signals are noted there.
pub(super) fn signalled(kernel: StopKernel) -> Option<Code> {
    let mut asm = Assembler::default();
    let (leaves, out, sent) = (asm.label(), asm.label(), asm.label());
    let notes = asm.label();
    asm.load(Width::Double, Reg::R7, Reg::R1, SIGNAL);
    asm.cut_to_32(Reg::R7);
    // These have the numbers from one to the other, without others.
    asm.jump_if(If::Below, Reg::R7, libc::SIGCONT, leaves);
    asm.jump_if(If::Above, Reg::R7, libc::SIGTTOU, leaves);
    asm.load(Width::Double, Reg::R6, Reg::R1, SIGNAL_INFO);
    asm.load(Width::Double, Reg::R8, Reg::R1, SIGNAL_TASK);
    asm.load(Width::Double, Reg::R9, Reg::R1, SIGNAL_RESULT);
    asm.cut_to_32(Reg::R9);
    // It continues processes that ignore it, too.
    asm.jump_if(If::Equal, Reg::R7, libc::SIGCONT, sent);
    asm.jump_if(If::Equal, Reg::R9, IGNORED, leaves);
    asm.jump_if(If::NotEqual, Reg::R7, libc::SIGSTOP, sent);
    // A program's, probably ours.
    asm.jump_if(If::Equal, Reg::R6, BY_KERNEL, leaves);
    asm.place(sent);
    preemption::disable(&mut asm, kernel.common.preemption);
    program::read(&mut asm, kernel.process, KEY, 4, out);
    asm.call_map(Helper::MapLookup, Map::Stopped, KEY);
    asm.jump_if(If::Equal, Reg::R0, 0, out);
    asm.jump_if(If::Above, Reg::R7, libc::SIGSTOP, notes);
    asm.call_map(Helper::MapDelete, Map::Stopped, KEY);
    asm.jump(out);
    asm.place(notes);
    asm.op_value(Op::Add, Reg::R7, FIRST_NOTED.cast_signed() - libc::SIGTSTP);
    asm.set(Reg::R1, 1);
    asm.op(Op::ShiftLeft, Reg::R1, Reg::R7);
    asm.load(Width::Double, Reg::R2, Reg::R0, 0);
    asm.op(Op::Or, Reg::R2, Reg::R1);
    asm.store(Width::Double, Reg::R0, 0, Reg::R2);
    asm.place(out);
    preemption::enable(&mut asm, kernel.common.preemption);
    asm.place(leaves);
    asm.exit_with(0);
    asm.finish()
}
