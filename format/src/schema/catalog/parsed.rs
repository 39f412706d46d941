//! The result of parsing a schema file, and what is known of the file besides.

use crate::schema::{ProbeSchema, Problem};

/// The result of parsing a schema file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The valid probes, in the order of the text.
    pub probes: Vec<ProbeSchema>,
    /// Errors, and notes about what was omitted or guessed, in the order of the text.
    pub problems: Vec<Problem>,
}

/// Additional information for tapsets, which need not name the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints<'a> {
    /// Provider of probes for which the text names none.
    pub provider: Option<&'a str>,
    /// File name, without directories.
    pub file: Option<&'a str>,
}
