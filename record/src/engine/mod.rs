//! Engines: ways of planting probes and getting their hits.

mod attach;
mod bpf;
mod choice;
mod event;
mod fetch;
mod group;
mod plant;
mod processes;
mod refusal;
mod ring;
mod rings;
mod tracefs;

pub(crate) use attach::{Attached, Planted, Wanted, Watch};
pub use bpf::{STOPPED_VERB, guard_stopped};
pub use choice::Engine;
pub use group::{GUARD_VERB, guard};
