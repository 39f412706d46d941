//! Engines: ways of planting probes and getting their hits.

mod attach;
mod bpf;
mod choice;
mod event;
mod fetch;
mod group;
mod inside;
mod owner;
mod plant;
mod processes;
mod refusal;
mod release;
mod ring;
mod rings;
mod tracefs;

pub(crate) use attach::{Attached, Planted, Wanted, Watch};
pub(crate) use bpf::stopped_processes;
pub use bpf::{NonResident, STOPPED_VERB, StoppedProcess, guard_stopped};
pub use choice::Engine;
pub(crate) use group::abandoned_groups;
pub use group::{GUARD_VERB, guard};
pub use inside::InProgram;
pub(crate) use inside::in_programs;
pub(crate) use release::Release;
pub use release::{RELEASE_VERB, release};
