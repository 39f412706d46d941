//! What a line of the input is.

use super::event::ImportedEvent;

/// A line.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// An event.
    Event(ImportedEvent<'a>),
    /// So many events were lost.
    Lost(u64),
    /// It is not known how many events were lost.
    LostSome,
    /// A map, histogram or statistics.
    Aggregate,
    /// Neither an event nor an error.
    Other,
}
