//! The outcome of reading the samples of a trace.

use usdtrec_format::trace::Damage;

/// The outcome of reading the samples of a trace.
#[derive(Debug, Default)]
pub struct ReadOutcome {
    /// Blocks that could not be read.
    pub(crate) damage: Vec<Damage>,
    /// Whether samples were shown before all earlier ones were known.
    pub(crate) forced: bool,
    /// Samples that belong to no event of the trace.
    pub unknown: u64,
}
