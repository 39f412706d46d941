//! The context of a uprobe's program: the user's registers as the kernel saved them (`struct pt_regs`,
//! `arch/x86/include/asm/ptrace.h`). A 32-bit program's registers are zero-extended.

use usdtrec_format::{Arch, Register};

/// Offset of the instruction pointer.
pub(super) const IP: i16 = 128;

/// Offset of a register in the context; `None` if it is not there (`%xmm0`), or if this machine does not run such programs.
pub(crate) fn register_offset(arch: Arch, register: Register) -> Option<i16> {
    if !runs_here(arch) {
        return None;
    }
    // By perf's register numbers: ax bx cx dx si di bp sp ip, then flags and segments, then r8 to r15.
    const LOW: [i16; 9] = [80, 40, 88, 96, 104, 112, 32, 152, IP];
    const R8: u8 = 16;
    const HIGH: [i16; 8] = [72, 64, 56, 48, 24, 16, 8, 0];
    let number = arch.perf_register(register)?;
    let (table, at) = match number.checked_sub(R8) {
        Some(high) => (HIGH.as_slice(), high),
        None => (LOW.as_slice(), number),
    };
    table.get(usize::from(at)).copied()
}

/// Whether programs of an architecture run here and their registers are known.
pub(crate) fn runs_here(arch: Arch) -> bool {
    cfg!(target_arch = "x86_64") && matches!(arch, Arch::X86_64 | Arch::I386)
}
