//! The rows of a window of samples.

use crate::rows::hit_row::HitTable;
use crate::spans::matcher::Segment;
use crate::spans::nesting::Nesting;
use crate::spans::spent_time::SpentTime;

/// What a span that began in a window has of its begin: the index of the hit; `None` if the span is not selected.
pub(crate) type BegunHit = Option<usize>;

/// What happens in a window, in order. Hits are indices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowItem {
    /// A span that began in the window ends.
    Ended {
        pair: u32,
        begin: usize,
        end: usize,
        /// ns.
        own: u64,
        spent: SpentTime,
    },
    /// A span that began in the window has no end: one around it ends.
    Unfinished {
        pair: u32,
        begin: usize,
        /// When that one ends, ns.
        until: u64,
    },
    /// A hit ends a span that may have begun before the window. Its segment is the next one with an end.
    Pending { end: usize },
    /// A hit, after the spans that it ends.
    Event {
        hit: usize,
        /// Whether it surely begins or ends a span.
        of_span: bool,
    },
}

impl RowItem {
    /// When it happens, ns.
    pub(crate) fn time(self, hits: &HitTable) -> Option<u64> {
        let hit = match self {
            Self::Unfinished { until, .. } => return Some(until),
            Self::Ended { end, .. } | Self::Pending { end } => end,
            Self::Event { hit, .. } => hit,
        };
        hits.hit(hit).map(|hit| hit.row.time)
    }
}

/// The rows of a window.
#[derive(Debug, Default)]
pub(crate) struct WindowRows {
    pub(crate) hits: HitTable,
    pub(crate) items: Vec<RowItem>,
    /// What is matched across windows: those with an end in their order, then the others.
    pub(crate) segments: Vec<Segment<BegunHit>>,
    /// Of each pair, whether spans that ended in the window are within each other.
    pub(crate) nesting: Vec<Nesting>,
    /// Samples that belong to no event of the trace.
    pub(crate) unknown: u64,
}

impl WindowRows {
    /// Empties it; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.hits.clear();
        self.items.clear();
        self.segments.clear();
        self.nesting.clear();
        self.unknown = 0;
    }
}
