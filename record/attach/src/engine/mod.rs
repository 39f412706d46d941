//! Engines: attaching probes and capturing their hits.
//!
//! There are two engines, one plan, one file. The bpf engine's program writes a complete perf sample, with the values
//! in the RAW part of an invented tracepoint whose format is in the file: stock perf prints the arguments by name,
//! including strings. The perf engine's samples have registers and stack, and are decoded by the reader; stock perf
//! shows no arguments of them.
//!
//! A probe whose sites have their arguments in different forms is several events. Stock perf lists them under the names
//! that `perf probe` would give them (`NAME`, `NAME_1`); `report` and `script` merge them.
//!
//! Files of the bpf engine need one link per file and not one per probe, and links are removed in milliseconds. Perf
//! events take a tenth of a second each.

mod attached;
mod bpf;
mod choice;
mod counters;
mod dispatch;
mod events;
mod gap_hold;
mod guard_process;
mod in_kernel;
mod late_planter;
mod open;
mod opened;
mod options;
mod outcome;
mod perf;
mod perf_target;
mod release;
mod task_filter;
mod used_engine;

pub use attached::Attached;
pub use bpf::{AttachMethod, EverywhereReason, NonResident, NotFaultedIn, Scope, SkippedMethod};
pub use bpf::{
    Counted, Counting, FileCall, FileLinks, HeldProcesses, LatePart, LateSettings, MAX_HOLD,
    ModuleBlock, NewMapping, PartPlanter, StackUse, StringFinding, SwitchResult, UnitSwitcher,
    VariableLocation, VariableLocations, WatchedFiles,
};
pub use choice::EngineChoice;
pub use counters::{COUNTERS, Counter};
pub use dispatch::Engine;
pub use events::event::IdCount;
pub use events::pmu::UprobePmu;
pub use events::process_events::{ProcessEvent, ProcessEvents, TimedEvent};
pub use gap_hold::GapHold;
pub use guard_process::GuardDeath;
pub use in_kernel::InKernel;
pub use late_planter::AddedProbes;
pub use opened::ProbeAttr;
pub use options::AttachRequest;
pub use options::EngineOptions;
pub use outcome::{EngineOutcome, SlowSpanCounts};
pub use perf::inexact::InexactCounts;
pub use perf::owner::Owner;
pub use perf::tracefs::Tracefs;
pub use perf::tracefs_group::abandoned_groups;
pub use perf::tracefs_group::{AbandonedGroup, GUARD_VERB, guard};
pub use perf_target::PerfTarget;
pub use release::Release;
pub use release::attach_and_remove::attach_and_remove;
pub use release::helper::{RELEASE_VERB, release};
pub use release::in_program::InProgram;
pub use release::in_program::in_programs;
pub use release::kernel_references::missing as missing_keeper;
pub use task_filter::TaskFilter;
pub use used_engine::{NotBetter, UsedEngine};
