//! What is wrong in a file.

/// Something wrong in a file, which cost the records behind or in it and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// File offset.
    pub offset: u64,
    /// What is wrong and what it cost, in words.
    pub message: String,
    /// Whether records of the trace may be missing by it. `false` for what costs none, as the rest of a flush that a kill cut
    /// off: everything committed before it is there.
    pub lost: bool,
}

impl Damage {
    /// Damage that costs records.
    pub(crate) fn lost(offset: u64, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            lost: true,
        }
    }

    /// Damage that costs no records.
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
