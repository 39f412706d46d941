//! Spans of which only the slow ones are recorded.

/// Spans of which only the slow ones are recorded, each by the hit that begins it and the hit that ends it. Hits of other probes are not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowSpans {
    /// `START..DONE`, or names of those that are found by the names of probes, with globs.
    pub spans: Vec<String>,
    /// Keys by which begins and ends are matched; empty: what is known of them.
    pub key: Vec<String>,
    /// Duration of the shortest ones that are recorded, ns.
    pub least: u64,
    /// Whether it is an error if programs cannot match them. If not, all hits of spans that they cannot match are recorded.
    pub is_required: bool,
}
