//! Engines: ways of planting probes and getting their hits.

mod attach;
mod event;
mod ring;

pub(crate) use attach::{Attached, Planted, Watch};
pub(crate) use event::Count;
