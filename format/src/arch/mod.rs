//! Machine architectures as data: registers, their names and widths, perf's register numbers.

mod aarch64;
mod arm;
mod i386;
mod ppc64le;
mod riscv64;
mod s390x;
mod syntax;
mod table;
mod x86_64;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

pub(crate) use syntax::{BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax};
pub(crate) use table::{RegisterPart, Table};

/// A machine architecture whose operand grammar and registers are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// 64-bit x86 (`EM_X86_64`).
    #[serde(rename = "x86_64")]
    X86_64,
    /// 32-bit x86 (`EM_386`).
    I386,
    /// 64-bit Arm (`EM_AARCH64`).
    Aarch64,
    /// 32-bit Arm (`EM_ARM`).
    Arm,
    /// 64-bit little-endian PowerPC (`EM_PPC64`, little-endian).
    Ppc64le,
    /// 64-bit IBM Z (`EM_S390`, class 64).
    S390x,
    /// 64-bit RISC-V (`EM_RISCV`, class 64).
    Riscv64,
}

/// A full-width register of one architecture: an index into its register table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u8);

impl Register {
    /// The program counter (`rip`, `pc`, `nip`): the first register of every table.
    pub const PROGRAM_COUNTER: Self = Self(0);
}

/// The tables, in the order of [`Arch`]'s variants.
static TABLES: LazyLock<[Table; 7]> = LazyLock::new(|| {
    [
        &x86_64::X86_64,
        &i386::I386,
        &aarch64::AARCH64,
        &arm::ARM,
        &ppc64le::PPC64LE,
        &s390x::S390X,
        &riscv64::RISCV64,
    ]
    .map(Table::new)
});

impl Arch {
    /// The architecture of an ELF file's header, if it is one of those known here.
    ///
    /// `e_machine` is the ELF header's field (elf.h `EM_*`).
    #[must_use]
    pub const fn from_elf(e_machine: u16, class64: bool, big_endian: bool) -> Option<Self> {
        match (e_machine, class64, big_endian) {
            (62, true, false) => Some(Self::X86_64),
            (3, false, false) => Some(Self::I386),
            (183, true, false) => Some(Self::Aarch64),
            (40, false, false) => Some(Self::Arm),
            (21, true, false) => Some(Self::Ppc64le),
            (22, true, true) => Some(Self::S390x),
            (243, true, false) => Some(Self::Riscv64),
            _ => None,
        }
    }

    /// The name used everywhere: `x86_64`, `i386`, `aarch64`, `arm`, `ppc64le`, `s390x`, `riscv64`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::I386 => "i386",
            Self::Aarch64 => "aarch64",
            Self::Arm => "arm",
            Self::Ppc64le => "ppc64le",
            Self::S390x => "s390x",
            Self::Riscv64 => "riscv64",
        }
    }

    /// Bytes of a pointer: 4 or 8.
    #[must_use]
    pub const fn pointer_size(self) -> u8 {
        match self {
            Self::I386 | Self::Arm => 4,
            _ => 8,
        }
    }

    /// All architectures.
    pub const ALL: [Self; 7] = [
        Self::X86_64,
        Self::I386,
        Self::Aarch64,
        Self::Arm,
        Self::Ppc64le,
        Self::S390x,
        Self::Riscv64,
    ];

    /// The register's name as the JSON form and messages give it, without a prefix (`rax`, `r11`, `x0`).
    #[must_use]
    pub fn register_name(self, register: Register) -> &'static str {
        self.table().info(register).name
    }

    /// The register of this name (without a prefix), or the one that the name is a part of (`rax` for `ah`).
    #[must_use]
    pub fn register(self, name: &str) -> Option<Register> {
        self.table().name(name).map(|part| part.register)
    }

    /// The full width of a register, bytes; 0 for one that the architecture does not have.
    #[must_use]
    pub fn register_bytes(self, register: Register) -> u8 {
        self.table().info(register).bytes
    }

    /// The bit of `PERF_SAMPLE_REGS_USER` that samples this register
    /// (`arch/*/include/uapi/asm/perf_regs.h`); `None` where perf cannot (`%xmm0`).
    ///
    /// For [`Arch::I386`] the numbers are those of x86, which the two share.
    #[must_use]
    pub fn perf_register(self, register: Register) -> Option<u8> {
        self.table().info(register).perf
    }

    /// Whether the register always reads as 0 (`xzr`, riscv's `zero`), so that nothing need capture it.
    #[must_use]
    pub fn reads_as_zero(self, register: Register) -> bool {
        match self {
            Self::Aarch64 => self.register_name(register) == "xzr",
            Self::Riscv64 => self.register_name(register) == "zero",
            _ => false,
        }
    }

    /// The stack pointer.
    #[must_use]
    pub fn stack_pointer(self) -> Register {
        self.table().stack_pointer
    }

    /// The register conventionally used as frame pointer (`rbp`, `ebp`, `x29`, …), if there is one.
    #[must_use]
    pub fn frame_pointer(self) -> Option<Register> {
        Some(self.table().frame_pointer)
    }

    /// The byte sequences that a probe site may begin with (each the architecture's nops).
    #[must_use]
    pub fn nops(self) -> &'static [&'static [u8]] {
        self.table().nops
    }

    /// The architecture's registers and syntax.
    pub(crate) fn table(self) -> &'static Table {
        &TABLES[self as usize]
    }
}
