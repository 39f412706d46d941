//! Engines: ways of planting probes and getting their hits.

mod attach;
mod event;
mod ring;
mod tracefs;

pub(crate) use attach::{Attached, Planted, Watch};
pub use tracefs::{GUARD_VERB, guard};
