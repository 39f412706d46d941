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
    #[error("expected a newline at the end of the line, which may be cut")]
    NoNewline,
    #[error("expected {what}, found {found:?}")]
    Field { what: &'static str, found: String },
    #[error("expected at most 100 arguments")]
    TooManyArguments,
    #[error("expected at most 4096 probes with different arguments")]
    TooManyShapes,
    #[error("expected at most 64 levels of structures, arrays and options")]
    TooDeep,
    #[error(
        "expected a time after that of the line before, as times without a date or a time zone are not known otherwise, \
         found {0:?}: print the trace with babeltrace2 --clock-seconds"
    )]
    Backwards(String),
}

impl BadLine {
    /// Something else was found; long texts are cut.
    pub(super) fn field(what: &'static str, found: &str) -> Self {
        const MOST: usize = 60;
        Self::Field {
            what,
            found: found.chars().take(MOST).collect(),
        }
    }

    /// The same for bytes, which may not be UTF-8.
    pub(super) fn bytes(what: &'static str, found: &[u8]) -> Self {
        const MOST: usize = 240;
        let found = found.get(..MOST).unwrap_or(found);
        Self::field(what, &String::from_utf8_lossy(found))
    }

    /// Whether all further lines are wrong, too.
    pub(super) const fn ends_import(&self) -> bool {
        matches!(self, Self::Backwards(_))
    }
}
