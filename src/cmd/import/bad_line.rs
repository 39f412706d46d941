//! Lines that cannot be imported.

/// Why a line is none that can be imported.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadLine {
    #[error("expected JSON: {0}")]
    Json(String),
    #[error("expected at most 1 MiB")]
    TooLong,
    #[error("expected a newline at the end of the printf, as separate events have")]
    NoEnd,
    #[error("expected {what}, found {found:?}")]
    Field { what: &'static str, found: String },
    #[error("expected at most 100 arguments")]
    TooManyArguments,
    #[error("expected at most 4096 probes with different arguments")]
    TooManyShapes,
}

impl BadLine {
    /// Something else was found; long texts are cut.
    pub(super) fn field(what: &'static str, found: &str) -> Self {
        const MAX_CHARACTERS: usize = 60;
        Self::Field {
            what,
            found: found.chars().take(MAX_CHARACTERS).collect(),
        }
    }
}
