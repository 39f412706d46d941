//! The context of a program on a uprobe: the user registers as the kernel saved them (`struct pt_regs`; on arm64 `struct
//! user_pt_regs`, with which it begins). Registers of a 32-bit program are
//! zero-extended.

use usdtrec_format::{Arch, Register, Uprobes};

/// Offset of the instruction pointer of a program of this architecture.
pub(super) fn instruction_pointer(arch: Arch) -> i16 {
    register_offset(arch, Register::PROGRAM_COUNTER).unwrap_or(0)
}

/// Offset of the instruction pointer in the registers of any program on this machine.
pub(super) fn own_instruction_pointer() -> i16 {
    Arch::host().map_or(0, instruction_pointer)
}

/// Offset of a register in the context; `None` if it is not there (`%xmm0`).
pub(super) fn register_offset(arch: Arch, register: Register) -> Option<i16> {
    i16::try_from(arch.pt_regs_offset(register)?).ok()
}

/// Whether programs of an architecture run on this machine and can be traced by BPF programs.
pub(super) fn runs_here(arch: Arch) -> bool {
    Arch::host().is_some_and(|host| arch.uprobes_on(host) == Uprobes::Programs)
}
