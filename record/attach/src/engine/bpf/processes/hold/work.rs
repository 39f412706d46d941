//! Work that a held task runs before it returns to user mode, again and again (`bpf_task_work_schedule_resume`, Linux 6.18).
//!
//! Each held task has two pieces of work in a map, which queue each other, because a running one cannot queue itself.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use usdtrec_format::Btf;
use usdtrec_kernel::bpf::insn::{
    Assembler, Code, FunctionKind, Helper, If, Label, Map, Op, Reg, Width,
};
use usdtrec_kernel::bpf::sys::{self, ProgramKind};

use crate::engine::bpf::contract::LINKED;
use crate::engine::bpf::control::{self, Control};

/// Stack slots: the 8-byte keys of two pieces of work, and an empty piece of work.
pub(in crate::engine::bpf::processes) const WORK: i16 = -16;
pub(super) const RUNNING: i16 = -24;
const EMPTY: i16 = -64;

/// Offsets in the map's values: since when the process is held; a number of the program; the token of the hold.
pub(super) const SINCE: i16 = 8;
pub(in crate::engine::bpf::processes) const NUMBER: i16 = 16;
pub(in crate::engine::bpf::processes) const HELD_TOKEN: i16 = 24;
/// Size of a value, words.
const WORDS: i16 = 4;
/// Bit of the upper half of the key of the second piece of work.
const OTHER: i32 = 1;
/// Lower priorities are real-time (include/linux/sched/prio.h). A held task of such a priority could keep the recorder from its CPU.
pub(in crate::engine::bpf::processes) const MAX_RT_PRIO: i32 = 100;

/// Maximum time for which a task is held.
pub const MAX_HOLD: Duration = Duration::from_secs(2);
/// The same as an operand, ns: the kernel extends its sign.
pub(in crate::engine::bpf::processes) const MAX_HOLD_NS: i32 = MAX_HOLD.as_nanos() as i32;
const _: () = assert!(MAX_HOLD.as_nanos() <= i32::MAX as u128);

/// The function of the kernel that queues work; `None` if there is none.
pub(in crate::engine::bpf::processes) fn schedule_function(btf: &Btf) -> Option<u32> {
    // Until Linux 6.19 the function had a last argument, which the verifier fills in.
    let plain = btf.function("bpf_task_work_schedule_resume");
    let plain = plain.filter(|function| function.arguments == 4);
    let schedule = plain.or_else(|| {
        let function = btf.function("bpf_task_work_schedule_resume_impl");
        function.filter(|function| function.arguments == 5)
    })?;
    Some(schedule.kind)
}

/// Error on a kernel without such a function.
pub(in crate::engine::bpf::processes) fn no_work() -> io::Error {
    io::Error::other("task work of BPF programs needs Linux 6.18")
}

/// Queues work for this process, which must run before the system call returns. Linux 7.1 and later cannot allocate it on processors without
/// `cmpxchg16b`.
pub(in crate::engine::bpf::processes) fn try_out(
    schedule: u32,
    works: BorrowedFd<'_>,
    control: &Control,
) -> io::Result<()> {
    let code = trial(schedule).ok_or_else(|| io::Error::other("the program is too long"))?;
    let code = code.with_maps(|map| match map {
        Map::Held => works,
        _ => control.as_fd(),
    });
    let trial = sys::load(ProgramKind::Run, &code)?;
    let result = sys::run(trial.as_fd())?;
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    if control.take_calls() == 0 {
        return Err(io::Error::other("task work runs too late"));
    }
    Ok(())
}

/// Queues work for the task that runs this, and counts a call. The result is 0, or a negative error number.
fn trial(function: u32) -> Option<Code> {
    let mut asm = Assembler::default();
    let (out, work, missed) = (asm.label(), asm.label(), asm.label());
    // WORK = 0; r9 = -ENOMEM; value = find(missed);
    asm.store_value(Width::Double, Reg::R10, WORK, 0);
    asm.set(Reg::R9, (-libc::ENOMEM).into());
    find(&mut asm, false, missed);
    // r0 = bpf_task_work_schedule_resume(bpf_get_current_task_btf(), value, &Held, work); goto out;
    asm.call(Helper::CurrentTaskBtf);
    asm.copy(Reg::R1, Reg::R0);
    schedule(&mut asm, function, work, out);
    asm.jump(out);
    // missed: r0 = r9; out: return r0;
    asm.place(missed);
    asm.copy(Reg::R0, Reg::R9);
    asm.place(out);
    asm.exit();
    // work: Control[CALLS]++; return 0;
    asm.function(work, FunctionKind::Static);
    asm.count(control::CALLS);
    asm.exit_with(0);
    asm.finish()
}

/// The beginning of a piece of work, whose key is in `R2` and whose value is in `R3`: `R7` = the value; the keys of both pieces are in their
/// slots.
pub(super) fn begin(asm: &mut Assembler) {
    // value = r3; RUNNING = *(u64 *)r2; WORK = RUNNING ^ (u64)OTHER << 32;
    asm.copy(Reg::R7, Reg::R3);
    asm.load(Width::Double, Reg::R1, Reg::R2, 0);
    asm.store(Width::Double, Reg::R10, RUNNING, Reg::R1);
    other(asm);
}

/// Copies 8-byte stack slots to offsets of the value in `R8`.
pub(in crate::engine::bpf) fn set(asm: &mut Assembler, slots: &[(i16, i16)]) {
    for (slot, at) in slots {
        // *(u64 *)(value + at) = slot;
        asm.load(Width::Double, Reg::R1, Reg::R10, *slot);
        asm.store(Width::Double, Reg::R8, *at, Reg::R1);
    }
}

/// Stores the key of the other piece of work of the process in its slot; `R1` has the key of the one in `RUNNING`.
pub(super) fn other(asm: &mut Assembler) {
    // WORK = r1 ^ (u64)OTHER << 32;
    asm.set(Reg::R2, i64::from(OTHER) << 32);
    asm.op(Op::Xor, Reg::R1, Reg::R2);
    asm.store(Width::Double, Reg::R10, WORK, Reg::R1);
}

/// Removes both pieces of work of a process from the map.
pub(super) fn forget(asm: &mut Assembler) {
    // bpf_map_delete_elem(&Held, &RUNNING); bpf_map_delete_elem(&Held, &WORK);
    for key in [RUNNING, WORK] {
        asm.call_map(Helper::MapDelete, Map::Held, key);
    }
}

/// `R8`: the value of the key in its slot, existing or new.
pub(in crate::engine::bpf::processes) fn find(
    asm: &mut Assembler,
    may_be_there: bool,
    missed: Label,
) {
    let found = asm.label();
    if may_be_there {
        // value = bpf_map_lookup_elem(&Held, &WORK); if (value) goto found;
        asm.call_map(Helper::MapLookup, Map::Held, WORK);
        asm.copy(Reg::R8, Reg::R0);
        asm.jump_if(If::NotEqual, Reg::R0, 0, found);
    }
    // EMPTY = { 0 }; bpf_map_update_elem(&Held, &WORK, &EMPTY, BPF_ANY);
    for word in 0..WORDS {
        asm.store_value(Width::Double, Reg::R10, EMPTY + 8 * word, 0);
    }
    asm.update_map(Map::Held, WORK, EMPTY);
    // value = bpf_map_lookup_elem(&Held, &WORK); if (!value) goto missed;
    asm.call_map(Helper::MapLookup, Map::Held, WORK);
    asm.copy(Reg::R8, Reg::R0);
    asm.jump_if(If::Equal, Reg::R0, 0, missed);
    asm.place(found);
}

/// Queues the work in the value `R8` for the task in `R1`.
pub(in crate::engine::bpf::processes) fn schedule(
    asm: &mut Assembler,
    function: u32,
    work: Label,
    missed: Label,
) {
    // r0 = bpf_task_work_schedule_resume(task, value, &Held, work, 0); if ((u32)r0) goto missed;
    asm.copy(Reg::R2, Reg::R8);
    asm.set_map(Reg::R3, Map::Held);
    asm.set_function(Reg::R4, work);
    asm.set(Reg::R5, 0);
    asm.call_kernel(function);
    asm.cut_to_32(Reg::R0);
    asm.jump_if(If::NotEqual, Reg::R0, 0, missed);
}

/// A thread that is held at a mapping: the stack slots with the time since which it is held, its start time and its token; the function that queues work, and
/// the work.
#[derive(Clone, Copy)]
pub(in crate::engine::bpf::processes) struct HeldThread {
    pub now: i16,
    pub started: i16,
    pub token: i16,
    pub schedule: u32,
    pub work: Label,
}

impl HeldThread {
    /// Stores what the value in `R8` has of the thread.
    pub(in crate::engine::bpf) fn set(self, asm: &mut Assembler) {
        set(asm, &self.slots());
    }

    /// Writes the work: `R2` is its key, `R3` its value. It queues itself until `go_on` jumps to its label, no thread is held any more, or the thread has
    /// been held for too long, which is counted.
    pub(in crate::engine::bpf) fn wait(
        self,
        asm: &mut Assembler,
        go_on: impl FnOnce(&mut Assembler, Label),
    ) {
        let (late, over) = (asm.label(), asm.label());
        // begin(); now = value->SINCE; started = value->NUMBER; token = value->HELD_TOKEN;
        begin(asm);
        for (slot, at) in self.slots() {
            asm.load(Width::Double, Reg::R1, Reg::R7, at);
            asm.store(Width::Double, Reg::R10, slot, Reg::R1);
        }
        // if (!Control[HOLDING]) goto over;
        asm.load_control(control::HOLDING);
        asm.jump_if(If::Equal, Reg::R1, 0, over);
        go_on(asm, over);
        // if (bpf_ktime_get_ns() - now >= MAX_HOLD_NS) goto late;
        asm.call(Helper::KtimeNs);
        asm.load(Width::Double, Reg::R1, Reg::R10, self.now);
        asm.op(Op::Sub, Reg::R0, Reg::R1);
        asm.jump_if(If::AtLeast, Reg::R0, MAX_HOLD_NS, late);
        // value = find(late); value->SINCE = now; value->NUMBER = started; value->HELD_TOKEN = token;
        find(asm, true, late);
        self.set(asm);
        // if (bpf_task_work_schedule_resume(bpf_get_current_task_btf(), value, &Held, work)) goto late; return 0;
        asm.call(Helper::CurrentTaskBtf);
        asm.copy(Reg::R1, Reg::R0);
        schedule(asm, self.schedule, self.work, late);
        asm.exit_with(0);
        // late: Control[UNHELD]++; over: forget(); return 0;
        asm.place(late);
        asm.count(control::UNHELD);
        asm.place(over);
        forget(asm);
        asm.exit_with(0);
    }

    fn slots(self) -> [(i16, i16); 3] {
        [
            (self.now, SINCE),
            (self.started, NUMBER),
            (self.token, HELD_TOKEN),
        ]
    }
}

/// The map of held processes, and the map of recorded processes.
#[derive(Debug)]
pub struct HeldProcesses {
    works: OwnedFd,
    tracked: OwnedFd,
}

impl HeldProcesses {
    pub(super) const fn new(works: OwnedFd, tracked: OwnedFd) -> Self {
        Self { works, tracked }
    }

    pub(super) fn works(&self) -> BorrowedFd<'_> {
        self.works.as_fd()
    }

    pub(super) fn tracked(&self) -> BorrowedFd<'_> {
        self.tracked.as_fd()
    }

    /// Whether a process is held: it executes nothing, and has no links of its own yet.
    pub fn has(&self, pid: i32) -> bool {
        u32::try_from(pid).is_ok_and(|pid| !self.has_links(pid) && self.token(pid).is_some())
    }

    /// Whether a process has links of its own.
    pub(super) fn has_links(&self, pid: u32) -> bool {
        sys::read::<_, u32>(self.tracked(), pid).is_ok_and(|value| value == LINKED)
    }

    /// The token of a process that is held, or was until now.
    pub(super) fn token(&self, pid: u32) -> Option<u64> {
        let [.., token] = sys::read::<u64, [u64; 4]>(self.works(), pid.into()).ok()?;
        Some(token)
    }
}
