//! Where a value is, in DWARF's words.

use gimli::{Register as DwarfRegister, X86, X86_64};
use usdtrec_format::{Arch, Location, Operand, Register};

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the low bytes of a register.
    Register(DwarfRegister),
    /// In memory, at a register's content plus bytes.
    Memory(DwarfRegister, i64),
}

impl Place {
    /// An operand's place; `None` where variables are not looked for: constants, globals, indexed memory.
    pub(super) fn of(operand: &Operand, arch: Arch) -> Option<Self> {
        match operand.location {
            Location::Register {
                register,
                shift: 0,
                pair: false,
                ..
            } => Some(Self::Register(number(arch, register)?)),
            Location::RegisterDeref { register, offset } => {
                Some(Self::Memory(number(arch, register)?, offset))
            }
            _ => None,
        }
    }
}

/// DWARF's number of a register; `None` for architectures that are not recorded on.
fn number(arch: Arch, register: Register) -> Option<DwarfRegister> {
    let name = arch.register_name(register);
    match arch {
        Arch::X86_64 => X86_64::name_to_register(name),
        Arch::I386 => X86::name_to_register(name),
        _ => None,
    }
}
