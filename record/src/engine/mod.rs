//! Engines: attaching probes and capturing their hits.

mod attach;
mod bpf;
mod choice;
mod closers;
mod event;
mod fetch;
mod group;
mod inside;
mod keeper;
mod owner;
mod plant;
mod planter;
mod processes;
mod refusal;
mod release;
mod ring;
mod rings;
mod samples;
mod tracefs;
mod watch;

pub(crate) use attach::{Attached, Planted, Wanted};
pub(crate) use bpf::stopped_processes;
pub use bpf::{NonResident, STOPPED_VERB, StoppedProcess, guard_stopped};
pub use choice::Engine;
pub use closers::{RELEASE_VERB, release};
pub(crate) use group::abandoned_groups;
pub use group::{GUARD_VERB, guard};
pub use inside::InProgram;
pub(crate) use inside::in_programs;
pub(crate) use keeper::missing as missing_keeper;
pub(crate) use release::Release;
pub(crate) use watch::Watch;
