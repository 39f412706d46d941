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
    /// In memory, at a link-time address.
    Address(u64),
}

impl Place {
    /// An operand's place, with the addresses of symbols; `None` where variables are not looked for: constants, indexed
    /// memory, addresses of symbols, thread-local storage.
    pub(super) fn of(
        operand: &Operand,
        arch: Arch,
        address: impl Fn(&str) -> Option<u64>,
    ) -> Option<Self> {
        match &operand.location {
            Location::Register {
                register,
                shift: 0,
                pair: false,
                ..
            } => Some(Self::Register(number(arch, *register)?)),
            Location::RegisterDeref { register, offset } => {
                Some(Self::Memory(number(arch, *register)?, *offset))
            }
            Location::SymbolDeref { symbol, offset, .. } if global(operand) => {
                Some(Self::Address(address(symbol)?.wrapping_add_signed(*offset)))
            }
            _ => None,
        }
    }
}

/// Whether an operand reads memory at a symbol's address.
pub(super) fn global(operand: &Operand) -> bool {
    let Location::SymbolDeref {
        register, reloc, ..
    } = &operand.location
    else {
        return false;
    };
    match reloc {
        // The register helps the machine to reach the symbol.
        Some(reloc) => !reloc.is_thread_local(),
        None => register.is_none_or(|register| register == Register::PROGRAM_COUNTER),
    }
}

/// DWARF's number of a register: as the architecture's ABI has it. That of Arm, PowerPC, Z and RISC-V counts the general
/// registers from 0 on.
fn number(arch: Arch, register: Register) -> Option<DwarfRegister> {
    let name = arch.register_name(register);
    let prefix = match arch {
        Arch::X86_64 => return X86_64::name_to_register(name),
        Arch::I386 => return X86::name_to_register(name),
        Arch::Aarch64 | Arch::Riscv64 => 'x',
        Arch::Arm | Arch::Ppc64le | Arch::S390x => 'r',
    };
    let mut numbers = 0..32_u16;
    let found =
        numbers.find(|number| arch.register(&format!("{prefix}{number}")) == Some(register));
    found.map(DwarfRegister)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_the_numbers_of_their_abi() {
        for (arch, name, expected) in [
            (Arch::X86_64, "rdi", Some(5)),
            (Arch::I386, "esi", Some(6)),
            (Arch::Aarch64, "x0", Some(0)),
            (Arch::Aarch64, "fp", Some(29)),
            (Arch::Aarch64, "sp", Some(31)),
            (Arch::Aarch64, "xzr", None),
            (Arch::Aarch64, "d0", None),
            (Arch::Arm, "r3", Some(3)),
            (Arch::Arm, "fp", Some(11)),
            (Arch::Arm, "sp", Some(13)),
            (Arch::Ppc64le, "r31", Some(31)),
            (Arch::Ppc64le, "ctr", None),
            (Arch::S390x, "r15", Some(15)),
            (Arch::Riscv64, "a0", Some(10)),
            (Arch::Riscv64, "s0", Some(8)),
            (Arch::Riscv64, "t6", Some(31)),
            (Arch::Riscv64, "fa0", None),
        ] {
            let register = arch.register(name).expect(name);
            let found = number(arch, register).map(|number| number.0);
            assert_eq!(found, expected, "{name} of {arch:?}");
        }
    }
}
