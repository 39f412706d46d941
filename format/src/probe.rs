//! Probes of a binary, and their sites.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::arch::Arch;
use crate::build_id::BuildId;

/// An ELF file and its probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// Absolute path.
    pub path: PathBuf,
    /// GNU build-id, if the file has one.
    pub build_id: Option<BuildId>,
    /// Architecture; `None` if it is not one of those known ([`Arch::from_elf`]).
    pub arch: Option<Arch>,
    /// Probes in the order of their first note.
    pub probes: Vec<Probe>,
}

/// A probe: provider and name, with all its sites in one binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Provider, as written in the note.
    pub provider: String,
    /// Name, as written in the note.
    pub name: String,
    /// Sites, in the order of the notes. Empty only if an index knows nothing but the name, because
    /// the file no longer exists.
    pub sites: Vec<Site>,
}

impl Probe {
    /// perf's event name: `sdt_PROVIDER:NAME`, both as written.
    #[must_use]
    pub fn event(&self) -> String {
        format!("sdt_{}:{}", self.provider, self.name)
    }
}

/// A location of a probe. Addresses are link-time virtual addresses, adjusted for prelink
/// (by the difference of `.stapsdt.base` in the note and in the section table).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Address of the nop.
    pub pc: u64,
    /// Address of `.stapsdt.base` as written in the note.
    pub base: u64,
    /// Address of the semaphore; 0 if there is none.
    pub semaphore: u64,
    /// File offset of the nop; `None` if no segment's file content holds it.
    pub offset: Option<u64>,
    /// File offset of the semaphore; `None` if there is none or no segment's file content holds it.
    pub semaphore_offset: Option<u64>,
    /// Argument string as written.
    pub args: String,
}
