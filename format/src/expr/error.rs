//! Errors of expressions, with positions.

use std::fmt;

/// Error of parsing or binding an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Offset in the text, bytes.
    pub at: usize,
    /// Message.
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
