//! Damage in a trace.

/// A damaged part of a trace. The rest of the trace can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// File offset.
    pub offset: u64,
    /// What is damaged, and what is lost.
    pub message: String,
    /// Whether records may be lost. `false`, for example, for an unfinished flush of a killed recorder, before which everything was
    /// committed.
    pub lost: bool,
}

impl Damage {
    /// Damage by which records may be lost.
    pub(crate) fn lost(offset: u64, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            lost: true,
        }
    }

    /// Damage by which no records are lost.
    pub(crate) fn harmless(offset: u64, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            lost: false,
        }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.message)
    }
}

impl std::error::Error for Damage {}
