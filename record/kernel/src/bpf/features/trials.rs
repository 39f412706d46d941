//! What this kernel's programs can do, by loading one that does it.

use std::sync::OnceLock;

use super::super::insn::{Assembler, FunctionKind, Helper, If, Reg, Width};
use super::super::preemption::{self, Preemption};
use super::super::sys::{self, ProgramKind};
use super::members::IdMembers;

/// Whether programs can ask which site was hit (`bpf_get_attach_cookie`, Linux 5.15).
pub fn has_cookies() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| has(Helper::AttachCookie))
}

/// Whether programs can follow pointers from the task of a hit by their types (`bpf_get_current_task_btf`, Linux 5.11).
pub fn has_task_types() -> bool {
    has(Helper::CurrentTaskBtf)
}

/// Whether programs can load the ids and the user of the current task by their types (Linux 5.11), the latter in a global function, also
/// while preemption is disabled, if it has to be (Linux 6.15).
pub fn loads_ids(members: IdMembers, preemption: Option<Preemption>) -> bool {
    let mut asm = Assembler::default();
    let user = asm.label();
    // bpf_preempt_disable(); task = bpf_get_current_task_btf(); r1 = task->tgid; r1 = task->pid;
    preemption::disable(&mut asm, preemption);
    asm.call(Helper::CurrentTaskBtf);
    for member in [members.process, members.thread] {
        asm.load(Width::Word, Reg::R1, Reg::R0, member);
    }
    // user(); bpf_preempt_enable(); return 0;
    asm.call_function(user);
    preemption::enable(&mut asm, preemption);
    asm.exit_with(0);
    members.user_function(&mut asm, user);
    asm.finish()
        .is_some_and(|code| sys::load(ProgramKind::Uprobe, &code).is_ok())
}

/// Whether programs can ask for the user registers of a task (`bpf_task_pt_regs`, Linux 5.15).
pub fn has_task_registers() -> bool {
    has(Helper::TaskPtRegs)
}

/// Whether programs can call a helper, whose argument, if it has one, is a number or the context.
fn has(helper: Helper) -> bool {
    let mut asm = Assembler::default();
    // helper(helper == bpf_get_current_ancestor_cgroup_id ? 1 : ctx); return 0;
    if helper == Helper::AncestorCgroupId {
        asm.set(Reg::R1, 1);
    }
    asm.call(helper);
    asm.exit_with(0);
    let Some(code) = asm.finish() else {
        return true;
    };
    // 5.10 says `invalid func unknown#174`, and `unknown func bpf_…#174` of other types of programs. Another reason comes again with the programs themselves.
    match sys::load(ProgramKind::Uprobe, &code) {
        Ok(_) => true,
        Err(refusal) => !refusal.reason.is_some_and(|reason| {
            ["unknown#", "unknown func"]
                .iter()
                .any(|text| reason.contains(text))
        }),
    }
}

/// Whether programs can read a word that they add to, and change one only if it is what they expect, each in one step (Linux 5.12, on arm64 5.18).
pub fn fetches_and_exchanges() -> bool {
    static HAS_BOTH: OnceLock<bool> = OnceLock::new();
    *HAS_BOTH.get_or_init(|| {
        const WORD: i16 = -8;
        let mut asm = Assembler::default();
        // u64 WORD = 0; r1 = __sync_fetch_and_add(&WORD, 1); cmpxchg(&WORD, 0, r1); return 0;
        asm.store_value(Width::Double, Reg::R10, WORD, 0);
        asm.set(Reg::R1, 1);
        asm.atomic_fetch_add(Reg::R10, WORD, Reg::R1);
        asm.set(Reg::R0, 0);
        asm.compare_exchange(Reg::R10, WORD, Reg::R1);
        asm.exit_with(0);
        asm.finish()
            .is_some_and(|code| sys::load(ProgramKind::Uprobe, &code).is_ok())
    })
}

/// Whether programs can ask for the control groups above that of a hit (`bpf_get_current_ancestor_cgroup_id`, Linux 5.15 for tracing programs).
pub fn has_ancestors() -> bool {
    has(Helper::AncestorCgroupId)
}

/// Whether global functions may have an address as an argument (Linux 5.12), and be called while preemption is disabled, if it has to be
/// (Linux 6.15).
pub fn functions_take_memory(preemption: Option<Preemption>) -> bool {
    static TAKE: OnceLock<bool> = OnceLock::new();
    *TAKE.get_or_init(|| {
        const MEMORY: i16 = -8;
        let mut asm = Assembler::default();
        let (function, end) = (asm.label(), asm.label());
        // bpf_preempt_disable(); u64 MEMORY = 0; function(&MEMORY, 0, 0); bpf_preempt_enable(); return 0;
        preemption::disable(&mut asm, preemption);
        asm.store_value(Width::Double, Reg::R10, MEMORY, 0);
        asm.address(Reg::R1, Reg::R10, MEMORY.into());
        asm.set(Reg::R2, 0);
        asm.set(Reg::R3, 0);
        asm.call_function(function);
        preemption::enable(&mut asm, preemption);
        asm.exit_with(0);
        // function(u64 *memory, u64 a, u64 b) { if (memory) *memory = a; return 0; }
        asm.function(function, FunctionKind::WithMemory { bytes: 8 });
        asm.jump_if(If::Equal, Reg::R1, 0, end);
        asm.store(Width::Double, Reg::R1, 0, Reg::R2);
        asm.place(end);
        asm.exit_with(0);
        asm.finish()
            .is_some_and(|code| sys::load(ProgramKind::Uprobe, &code).is_ok())
    })
}
