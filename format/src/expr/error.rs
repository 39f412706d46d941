//! What is wrong with an expression, and where.

use std::fmt;

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Offset in the text, bytes.
    pub at: usize,
    /// What was expected and what was found.
    pub message: String,
}

impl ExprError {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at + 1, self.message)
    }
}

impl std::error::Error for ExprError {}
