//! Numbers that are aggregated.

/// A number that is added up in each group: an argument of the hits, or the duration of the spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredArgument {
    /// Its name, or `arg1`, `arg2`, ….
    pub name: String,
    /// Whether its numbers are counted by bucket, too.
    pub has_histogram: bool,
    /// Whether it is the duration of spans, ns, and no argument.
    pub is_duration: bool,
}

impl MeasuredArgument {
    /// The duration of spans, with a histogram.
    #[must_use]
    pub fn duration() -> Self {
        Self {
            name: "span".to_owned(),
            has_histogram: true,
            is_duration: true,
        }
    }
}
