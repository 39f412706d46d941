//! Where in a program's code an address is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where an address is, as far as symbols and debugging information say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePlace {
    /// The function, from symbols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionPlace>,
    /// The line, from debugging information (DWARF 5, 6.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLine>,
}

/// A place in a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionPlace {
    /// The function's name, demangled, without parameters.
    pub name: String,
    /// Bytes from its start.
    pub offset: u64,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLine {
    /// Path of the file, as the compiler wrote it; bytes that are not UTF-8 are replaced.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
}

impl CodePlace {
    /// Whether nothing is known.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.function.is_none() && self.source.is_none()
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
