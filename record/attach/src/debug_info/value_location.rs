//! Locations of values, in DWARF's terms.

use gimli::Register as DwarfRegister;
use usdtrec_format::{Arch, Location, Operand, Register};

/// A location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueLocation {
    /// In the low bytes of a register.
    Register(DwarfRegister),
    /// In memory, at a register's content plus bytes.
    Memory(DwarfRegister, i64),
    /// In memory, at a link-time address.
    Address(u64),
}

impl ValueLocation {
    /// The location of an operand, with the addresses of symbols; `None` if no variable can be there: constants, indexed memory, addresses
    /// of symbols, thread-local storage.
    pub(super) fn from_operand(
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

fn number(arch: Arch, register: Register) -> Option<DwarfRegister> {
    arch.dwarf_register(register).map(DwarfRegister)
}
