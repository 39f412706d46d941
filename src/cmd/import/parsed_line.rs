//! What a line of the input is.

use super::event::ImportedEvent;

/// A line.
#[derive(Debug)]
pub(super) enum ParsedLine<'a> {
    /// An event.
    Event(ImportedEvent<'a>),
    /// So many events were lost.
    Lost(u64),
    /// A map, histogram or statistics.
    Aggregate,
    /// Neither an event nor an error.
    Other,
}
