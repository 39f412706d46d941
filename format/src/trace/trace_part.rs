//! A file of a trace that is made of several.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::id_map::IdMap;
use super::time_range::TimeRange;

/// One of the files that make a trace together ([`Trace::join`](super::Trace::join)).
#[derive(Clone, Debug)]
pub struct TracePart {
    pub(crate) path: PathBuf,
    /// Its bytes in the concatenation of all files.
    pub(crate) bytes: Range<u64>,
    pub(crate) time: Option<TimeRange>,
    pub(crate) begin: PartBegin,
    /// `None` if all its ids mean the same as in other files.
    pub(crate) ids: Option<Arc<IdMap>>,
    pub(crate) probes: ProbeDifference,
}

/// How a file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartBegin {
    /// It is the first one.
    First,
    /// Where the file before it ends: one recorder wrote both, and lost nothing between them.
    Continued,
    /// After a time in which nothing was recorded: from the end of the file before it to its own begin, ns of the trace's clock.
    After(TimeRange),
    /// Later than the file before it. Files of stock perf do not say when recording began and ended.
    Later,
}

/// Which probes a file has that not all files before it have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeDifference {
    /// Events that the files before it have, and this one has not.
    pub lacking: Vec<String>,
    /// Events that this file has, and none before it.
    pub added: Vec<String>,
}

impl TracePart {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes in the concatenation of all files, which offsets of blocks and of damage count in.
    #[must_use]
    pub fn bytes(&self) -> Range<u64> {
        self.bytes.clone()
    }

    /// From the begin to the end of its recording, ns of the trace's clock; in files of stock perf, from its first to its last sample. `None` if the
    /// file has neither.
    #[must_use]
    pub const fn time(&self) -> Option<TimeRange> {
        self.time
    }

    /// What a sample id of the file is in the trace.
    #[must_use]
    pub fn sample_id(&self, id: u64) -> u64 {
        self.ids.as_ref().map_or(id, |ids| ids.get(id))
    }

    /// How it begins.
    #[must_use]
    pub const fn begin(&self) -> PartBegin {
        self.begin
    }

    /// The time before it in which nothing was recorded, if there is any.
    #[must_use]
    pub const fn gap(&self) -> Option<TimeRange> {
        match self.begin {
            PartBegin::After(gap) => Some(gap),
            PartBegin::First | PartBegin::Continued | PartBegin::Later => None,
        }
    }

    /// Which probes it has that not all files before it have; nothing where a recorder added them while recording.
    #[must_use]
    pub const fn probes(&self) -> &ProbeDifference {
        &self.probes
    }
}
