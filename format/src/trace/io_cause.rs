//! An error of the system or of zstd that can be compared.

use std::fmt;
use std::io;

/// Kind and message of an [`io::Error`], which itself can be neither copied nor compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoCause {
    /// The kind.
    pub kind: io::ErrorKind,
    /// The message of the system, or of the library that returned the error.
    pub message: String,
}

impl From<&io::Error> for IoCause {
    fn from(error: &io::Error) -> Self {
        Self {
            kind: error.kind(),
            message: error.to_string(),
        }
    }
}

impl From<io::Error> for IoCause {
    fn from(error: io::Error) -> Self {
        Self::from(&error)
    }
}

impl fmt::Display for IoCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for IoCause {}
