//! The result of parsing a schema file.

use crate::schema::{ProbeSchema, Problem};

/// The result of parsing a schema file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The valid probes, in the order of the text.
    pub probes: Vec<ProbeSchema>,
    /// Errors, and notes about what was omitted or guessed, in the order of the text.
    pub problems: Vec<Problem>,
}
