//! Damage in a trace.

use super::damage_kind::DamageKind;

/// A damaged part of a trace. The rest of the trace can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// File offset.
    pub offset: u64,
    /// What is damaged, and what is lost.
    pub kind: DamageKind,
}

impl Damage {
    /// Damage at a file offset.
    #[must_use]
    pub const fn new(offset: u64, kind: DamageKind) -> Self {
        Self { offset, kind }
    }

    /// Whether records may be lost. `false`, for example, for an unfinished flush of a killed recorder, before which everything was
    /// committed.
    #[must_use]
    pub const fn loses_records(&self) -> bool {
        self.kind.loses_records()
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.kind)
    }
}

impl std::error::Error for Damage {}
