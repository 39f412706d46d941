//! The events of a trace that are selected: in the order of time, in any order, or while they are written.

pub mod files;
pub mod fold;
pub mod no_events;
pub mod notices;
pub mod order;
pub mod outcome;
pub mod selection;
pub mod site_samples;
pub mod stream;
pub(crate) mod stream_queue;
