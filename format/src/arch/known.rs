//! The known architectures, and the identity of their registers.

use serde::{Deserialize, Serialize};

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

/// How the 64-bit kernel of an architecture can trace its programs with probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uprobes {
    /// It plants no breakpoint in them, in some cases without an error.
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
