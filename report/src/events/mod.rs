//! The events of a trace that are selected: in the order of time, in any order, or while they are written.

pub(crate) mod fold;
pub(crate) mod no_events;
pub(crate) mod notices;
pub(crate) mod order;
pub(crate) mod outcome;
pub(crate) mod selection;
pub(crate) mod stream;
