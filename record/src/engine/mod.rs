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

mod attach_and_remove;
mod attached;
mod bpf;
mod choice;
mod closers;
mod dispatch;
mod event;
mod group;
mod guard_process;
mod in_kernel;
mod inexact;
mod inside;
mod keeper;
mod open;
mod opened;
mod options;
mod outcome;
mod owner;
mod perf;
mod planter;
mod pmu;
mod process_events;
mod processes;
mod refusal;
mod release;
mod ring;
mod rings;
mod task_filter;
mod tracefs;
mod used;
mod watch;

pub(crate) use attach_and_remove::attach_and_remove;
pub(crate) use attached::Attached;
pub use bpf::{
    AttachMethod, EverywhereReason, NonResident, NotFaultedIn, STOPPED_VERB, Scope, SkippedMethod,
    StoppedProcess, guard_stopped,
};
pub(crate) use bpf::{
    Counted, Counting, HeldProcesses, Repair, StackUse, TextFinding, stopped_processes,
    uprobes_of_links,
};
pub use choice::EngineChoice;
pub use closers::{RELEASE_VERB, release};
pub(crate) use event::IdCount;
pub(crate) use group::abandoned_groups;
pub use group::{AbandonedGroup, GUARD_VERB, guard};
pub use guard_process::{GuardDeath, GuardTask};
pub use in_kernel::InKernel;
pub use inexact::InexactCounts;
pub use inside::InProgram;
pub(crate) use inside::in_programs;
pub(crate) use keeper::missing as missing_keeper;
pub(crate) use opened::ProbeAttr;
pub(crate) use options::AttachRequest;
pub use options::EngineOptions;
pub use outcome::EngineOutcome;
pub(crate) use owner::Owner;
pub(crate) use pmu::UprobePmu;
pub(crate) use process_events::{ProcessEvent, ProcessEvents, TimedEvent};
pub(crate) use release::Release;
pub(crate) use task_filter::TaskFilter;
pub(crate) use tracefs::Tracefs;
pub use used::{NotBetter, UsedEngine};
pub(crate) use watch::Watch;
