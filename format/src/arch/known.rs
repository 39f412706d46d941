//! The known architectures, the identity of their registers, and how operands are written: what one grammar needs to read all of them.

use serde::{Deserialize, Serialize};

crate::listed! {
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
}

/// How the 64-bit kernel of an architecture can trace its programs with probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uprobes {
    /// It inserts no breakpoint in them, in some cases without an error.
    None,
    /// By perf events. Programs were not tried.
    Events,
    /// By perf events and by BPF programs.
    Programs,
}

/// A full-width register of one architecture: an index into its register table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u8);

impl Register {
    /// The program counter (`rip`, `pc`, `nip`): the first register of every table.
    pub const PROGRAM_COUNTER: Self = Self(0);
}

/// The ways in which operands differ between architectures.
pub(crate) struct Syntax {
    /// Prefix of a register's name.
    pub(crate) register_prefix: RegisterPrefix,
    /// Prefix of a constant (`$`, `#`, `i`).
    pub(crate) constant_prefix: Option<&'static str>,
    /// How memory is written.
    pub(crate) memory: MemoryForm,
    /// What a number alone is.
    pub(crate) bare_number: BareNumber,
    /// What a symbol alone is.
    pub(crate) bare_symbol: BareSymbol,
    /// Segment registers with a base of their own that may stand before memory (`%fs:`).
    pub(crate) segments: &'static [&'static str],
    /// Segment registers that may stand before memory and have no meaning there, because their base is 0 (`%ds:`).
    pub(crate) flat_segments: &'static [&'static str],
    /// Whether `base,index` without parentheses is memory (the PowerPC `Z` constraint).
    pub(crate) bare_pair: bool,
}

/// Prefix of a register's name.
pub(crate) enum RegisterPrefix {
    /// Nothing.
    None,
    /// Always `%`.
    Percent,
    /// `%` or nothing.
    OptionalPercent,
}

/// How memory is written.
pub(crate) enum MemoryForm {
    /// `displacement(base,index,scale)`.
    Parentheses,
    /// `[base, displacement]` and `[base, index, extend shift]`.
    Brackets,
}

/// What a number alone is.
pub(crate) enum BareNumber {
    /// A constant.
    Constant,
    /// A register's number.
    Register,
    /// An absolute address, which no known compiler writes.
    Address,
}

/// What a symbol alone is.
pub(crate) enum BareSymbol {
    /// Memory at the symbol.
    Memory,
    /// The symbol's address.
    Address,
    /// Not known: no compiler was seen to write one.
    Unknown,
}
