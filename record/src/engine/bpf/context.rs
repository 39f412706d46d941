//! The context of a uprobe's program: the user's registers as the kernel saved them (`struct pt_regs`). A 32-bit program's
//! registers are zero-extended.

use usdtrec_format::{Arch, Register};

/// Offset of the instruction pointer.
pub(super) fn instruction_pointer() -> i16 {
    offset(KERNEL, Register::PROGRAM_COUNTER).unwrap_or(0)
}

/// Offset of a register in the context; `None` if it is not there (`%xmm0`), or if this machine does not run such programs.
pub(crate) fn register_offset(arch: Arch, register: Register) -> Option<i16> {
    runs_here(arch).then(|| offset(arch, register)).flatten()
}

/// Whether programs of an architecture run here and code for their probes can be made.
pub(crate) fn runs_here(arch: Arch) -> bool {
    Arch::host() == Some(KERNEL) && arch.kernel() == KERNEL
}

/// The kernels that code is made for.
const KERNEL: Arch = Arch::X86_64;

fn offset(arch: Arch, register: Register) -> Option<i16> {
    i16::try_from(arch.pt_regs_offset(register)?).ok()
}
