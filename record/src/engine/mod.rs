//! Engines: ways of planting probes and getting their hits.

mod attach;
mod event;
mod group;
mod ring;
mod tracefs;

pub(crate) use attach::{Attached, Planted, Watch};
pub use group::{GUARD_VERB, guard};
