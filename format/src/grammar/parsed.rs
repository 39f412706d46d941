//! Result of parsing.

/// Result of parsing a part of an operand; the error is a message.
pub(super) type Parsed<T> = Result<T, String>;
