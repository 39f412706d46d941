//! What unwinding has to know of an architecture.

use usdtrec_format::{Arch, Register};

/// Columns of unwind tables that are followed: the general registers of all machines and the program counter.
pub(crate) const COLUMNS: usize = 33;

/// An architecture as unwind tables have it. Registers are columns: DWARF's numbers.
pub(crate) struct Machine {
    pub(crate) arch: Arch,
    /// The column of the program counter. On x86-64 it is no register, but the return address.
    pub(crate) ip: u16,
    /// The column of the stack pointer.
    pub(crate) sp: u16,
    /// The column of the frame pointer.
    pub(crate) fp: u16,
    /// A bit for each column that a function leaves as it was, unless its table says otherwise.
    pub(crate) kept: u64,
    /// Code that calls `rt_sigreturn`. The C library gives its address to the kernel as that where signal handlers return to. Debuggers recognize it
    /// by its bytes, too.
    pub(crate) signal_return: &'static [u8],
    /// Where the kernel saves the registers that a signal interrupts, in bytes from the stack pointer of the code above.
    pub(crate) saved: &'static [SavedRegister],
    /// Where the kernel saves the address and the size of the signal stack (`uc_stack`), in bytes from the same stack pointer.
    pub(crate) signal_stack: u16,
}

/// A register in the frame of a signal.
pub(crate) struct SavedRegister {
    pub(crate) column: u16,
    pub(crate) offset: u16,
}

const fn saved(column: u16, offset: u16) -> SavedRegister {
    SavedRegister { column, offset }
}

/// System V ABI, AMD64 supplement, 3.2.1 and 3.6.2. `struct ucontext` begins at the stack pointer, its registers at byte 40
/// (`arch/x86/include/uapi/asm/sigcontext.h`).
static X86_64: Machine = Machine {
    arch: Arch::X86_64,
    ip: 16,
    sp: 7,
    fp: 6,
    kept: 1 << 3 | 1 << 6 | 0xf << 12,
    // mov $15, %rax; syscall
    signal_return: &[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05],
    saved: &[
        saved(8, 40),
        saved(9, 48),
        saved(10, 56),
        saved(11, 64),
        saved(12, 72),
        saved(13, 80),
        saved(14, 88),
        saved(15, 96),
        saved(5, 104),
        saved(4, 112),
        saved(6, 120),
        saved(3, 128),
        saved(1, 136),
        saved(0, 144),
        saved(2, 152),
        saved(7, 160),
        saved(16, 168),
    ],
    signal_stack: 16,
};

/// `x0` in `struct rt_sigframe` of `arch/arm64/kernel/signal.c`: after a `siginfo` of 128 bytes, 176 bytes of `struct ucontext` and the fault
/// address.
const X0: u16 = 128 + 176 + 8;

/// Procedure Call Standard for the Arm 64-bit Architecture, 6.1.1.
static AARCH64: Machine = Machine {
    arch: Arch::Aarch64,
    ip: 32,
    sp: 31,
    fp: 29,
    kept: 0x7ff << 19,
    // mov x8, #139; svc #0
    signal_return: &[0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4],
    saved: &[
        saved(19, X0 + 8 * 19),
        saved(20, X0 + 8 * 20),
        saved(21, X0 + 8 * 21),
        saved(22, X0 + 8 * 22),
        saved(23, X0 + 8 * 23),
        saved(24, X0 + 8 * 24),
        saved(25, X0 + 8 * 25),
        saved(26, X0 + 8 * 26),
        saved(27, X0 + 8 * 27),
        saved(28, X0 + 8 * 28),
        saved(29, X0 + 8 * 29),
        saved(30, X0 + 8 * 30),
        saved(31, X0 + 8 * 31),
        saved(32, X0 + 8 * 32),
    ],
    signal_stack: 128 + 16,
};

impl Machine {
    /// `None` if stacks of the architecture are not unwound.
    pub(crate) const fn for_arch(arch: Arch) -> Option<&'static Self> {
        match arch {
            Arch::X86_64 => Some(&X86_64),
            Arch::Aarch64 => Some(&AARCH64),
            _ => None,
        }
    }

    /// A code address without its authentication code
    /// (`Documentation/arch/arm64/pointer-authentication.rst`).
    pub(crate) fn code_address(&self, word: u64) -> u64 {
        match self.arch.pointer_authentication_bits() {
            Some(bits) => word & ((1 << bits.start()) - 1),
            None => word,
        }
    }
}

/// The column of a register in unwind tables: its number in DWARF. `None` if stacks of the architecture are not unwound, or unwinding does not need
/// the register.
#[must_use]
pub fn column(arch: Arch, register: Register) -> Option<u16> {
    let machine = Machine::for_arch(arch)?;
    let number = match register {
        Register::PROGRAM_COUNTER => machine.ip,
        register => arch.dwarf_register(register)?,
    };
    (usize::from(number) < COLUMNS && arch.register_bytes(register) == 8).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_tables_of_registers() {
        for machine in [&X86_64, &AARCH64] {
            let Machine { arch, sp, ip, .. } = *machine;
            assert_eq!(column(arch, arch.stack_pointer()), Some(sp));
            assert_eq!(column(arch, Register::PROGRAM_COUNTER), Some(ip));
            let frame = column(arch, arch.frame_pointer().unwrap()).unwrap();
            assert_eq!(machine.fp, frame);
            assert_ne!(machine.kept & 1 << frame, 0);
            assert_eq!(machine.kept & (1 << sp | 1 << ip), 0);
            // They are in the order of the kernel's structure, without gaps.
            for pair in machine.saved.windows(2) {
                assert_eq!(pair[0].offset + 8, pair[1].offset);
            }
        }
        assert_eq!(column(Arch::X86_64, Register(200)), None);
        assert_eq!(column(Arch::I386, Register::PROGRAM_COUNTER), None);
    }

    #[test]
    fn an_authentication_code_is_no_part_of_an_address() {
        let address = 0x0000_aaaa_bbbb_cccc;
        assert_eq!(AARCH64.code_address(0x7f << 48 | address), address);
        assert_eq!(X86_64.code_address(u64::MAX), u64::MAX);
    }
}
