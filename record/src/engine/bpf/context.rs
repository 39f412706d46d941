//! The context of a program on a uprobe: the user registers as the kernel saved them (`struct pt_regs`). Registers of a 32-bit program are
//! zero-extended.

use usdtrec_format::{Arch, Register};

/// Offset of the instruction pointer.
pub(super) fn instruction_pointer() -> i16 {
    offset(KERNEL, Register::PROGRAM_COUNTER).unwrap_or(0)
}

/// Offset of a register in the context; `None` if it is not there (`%xmm0`), or if this machine does not run such programs.
pub(crate) fn register_offset(arch: Arch, register: Register) -> Option<i16> {
    runs_here(arch).then(|| offset(arch, register)).flatten()
}

/// Whether programs of an architecture run on this machine and can be traced by BPF programs.
pub(crate) fn runs_here(arch: Arch) -> bool {
    Arch::host() == Some(KERNEL) && arch.kernel() == KERNEL
}

/// Architectures of the kernels that programs are generated for.
const KERNEL: Arch = Arch::X86_64;

fn offset(arch: Arch, register: Register) -> Option<i16> {
    i16::try_from(arch.pt_regs_offset(register)?).ok()
}
