//! Arguments whose numbers are aggregated.

/// An argument whose numbers are added up in each group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredArgument {
    /// Its name, or `arg1`, `arg2`, ….
    pub name: String,
    /// Whether its numbers are counted by bucket, too.
    pub has_histogram: bool,
}
