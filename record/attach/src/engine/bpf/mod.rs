//! The bpf engine: generated programs write whole samples into the ring of their CPU.
//!
//! There are two attach methods, of which the first that works is used: one uprobe_multi link for each program and file, or one event of
//! the uprobe PMU for each site with the program attached.

mod aggregate;
mod attach;
pub(super) mod bpf_engine;
mod condition;
mod contract;
mod control;
pub(super) mod counting;
mod drain;
pub(super) mod kernel_objects;
mod nonresident;
mod objects;
mod open;
mod part;
pub(super) mod part_planter;
mod plan;
pub(super) mod processes;
mod program;
pub(super) mod samples;
mod slots;
mod spans;
#[cfg(test)]
mod tests;
pub(super) mod thread_contexts;
mod wait_sums;

pub use self::counting::{Counted, Counting};
pub use self::part_planter::{
    FileLinks, LatePart, LateSettings, PartPlanter, SwitchResult, UnitSwitcher,
};
pub use self::processes::hold::HeldProcesses;
pub use self::processes::hold::work::MAX_HOLD;
pub use self::processes::mapping_hold::NewMapping;
pub use self::processes::watched_files::{FileCall, WatchedFiles};
pub use self::samples::StringFinding;
pub use self::samples::stack_size::StackUse;
pub use self::thread_contexts::{ModuleBlock, VariableLocation, VariableLocations};
pub use self::wait_sums::events::WaitEvent;
