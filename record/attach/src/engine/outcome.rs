//! What an engine counts besides the hits and losses of each probe.

use super::bpf::EverywhereReason;

/// What an engine has counted and noted by the end of a recording, besides the hits and losses of each probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineOutcome {
    /// Number of hits whose programs were still waiting for memory when the recording ended. They are not in the trace.
    pub unfinished: u64,
    /// Number of hits of which no stack was taken, because of [`CallGraph::rate`](crate::plan::call_graph::CallGraph::rate).
    pub without_stack: u64,
    /// How often the least or greatest number of a group could not be raised, because too many CPUs did so at a time.
    pub unraised: u64,
    /// Number of lost hits that a filter could not judge, because the memory that it reads was not resident.
    pub unjudged: u64,
    /// Number of processes that recorded ones started and that may have run before they had probes. Their first hits are not in the trace
    /// and not counted as lost.
    pub missed_processes: u64,
    /// Number of mappings of new files whose processes were not held until the probes of these were attached, although
    /// [`no_gap`](super::options::EngineOptions::no_gap) asked for it.
    pub unheld_mappings: u64,
    /// Why probes were attached to all processes of the files, after they had been attached to the recorded processes and their children
    /// only; `None` if they were not.
    pub planted_everywhere: Option<EverywhereReason>,
    /// What was counted of spans, where programs match them and record slow ones only; `None` if they do not.
    pub spans: Option<SlowSpanCounts>,
    /// Whether strings that arguments point to may be missing in samples, which a reader finds in files.
    pub may_lack_strings: bool,
}

/// What programs have counted of spans of which they record slow ones only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowSpanCounts {
    /// Spans that were shorter than those that are recorded.
    pub short: u64,
    /// Begins that were not kept, because too many spans were open at once.
    pub full: u64,
    /// Begins that were not kept, because too many spans of one thread were open.
    pub deep: u64,
    /// Ends without a begin.
    pub unmatched: u64,
    /// Ends that are equal to an older begin of their thread than the one that they take.
    pub older: u64,
}

impl SlowSpanCounts {
    /// The sums of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            short: self.short + other.short,
            full: self.full + other.full,
            deep: self.deep + other.deep,
            unmatched: self.unmatched + other.unmatched,
            older: self.older + other.older,
        }
    }
}
