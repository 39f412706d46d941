//! Why events that a stream adds are ignored.

use super::limits::LimitExceeded;

/// Why events that were added in the middle of a stream are ignored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddedEventsFault {
    /// The records are too long.
    #[error("expected at most {max} bytes of attrs, names and definitions")]
    TooLong {
        /// The most, bytes.
        max: usize,
    },
    /// What describes them is cut or damaged.
    #[error("what describes them is cut or damaged: hits of these events cannot be decoded")]
    Damaged,
    /// There is more than a trace has.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// An attr samples other fields than the recorder of this trace does.
    #[error("an attr samples other fields than those of the former events")]
    Attr,
    /// Another event has one of the sample ids.
    #[error("another event has the sample id {id}")]
    TakenId {
        /// The sample id.
        id: u64,
    },
    /// Definitions of events that the trace has are not repeated.
    #[error("the definitions of former events are missing or differ")]
    FormerEvents,
    /// A site has a sample id that is not one of the events that were added.
    #[error("a site has the sample id {id}, which is not one of theirs")]
    ForeignId {
        /// The sample id.
        id: u64,
    },
}
