//! Recording: which probes ([`select()`]), what a hit hands over ([`plan`]), planting them and draining
//! their hits into a trace file ([`Session`]).
//!
//! Nothing planted outlives the process: perf events end with their descriptors, however we end, and a guard
//! process takes away tracefs events.

mod build_ids;
mod command;
mod cpus;
pub mod debug_info;
mod engine;
mod error;
mod files;
mod host;
mod losses;
mod metadata;
pub mod plan;
mod privilege;
mod recording;
mod refusal;
mod select;
mod session;
mod sieve;
mod signals;
mod sync;
mod target;
mod writer;

pub use command::{HeldCommand, RunningCommand};
pub use cpus::parse as parse_cpus;
pub use engine::{Engine, GUARD_VERB, STOPPED_VERB, guard, guard_stopped};
pub use error::RecordError;
pub use files::{Destination, Switch};
pub use losses::ProbeLoss;
pub use privilege::check as check_privilege;
pub use recording::{End, Outcome, Progress, Recording, Released};
pub use refusal::Refusal;
/// Bytes of a memory page of this machine.
pub use rustix::param::page_size;
pub use select::{PlannedProbe, Request, Selection, Wanted, select};
pub use session::{Options, Session};
pub use signals::Signals;
pub use target::Target;
