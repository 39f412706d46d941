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

pub(super) mod attached;
pub(super) mod bpf;
pub(super) mod dispatch;
pub(super) mod events;
pub(super) mod guard_process;
mod numbers;
mod open;
pub(super) mod options;
pub(super) mod outcome;
pub(super) mod perf;
pub(super) mod release;

pub use self::attached::{AddedProbes, Attached};
pub use self::bpf::{
    Counted, Counting, FileCall, FileLinks, HeldProcesses, LatePart, LateSettings, MAX_HOLD,
    ModuleBlock, NewMapping, PartPlanter, StackUse, StringFinding, SwitchResult, UnitSwitcher,
    VariableLocation, VariableLocations, WaitEvent, WatchedFiles,
};
pub use self::dispatch::Engine;
pub use self::events::event::{IdCount, UprobePmu};
pub use self::events::process_events::{ProcessEvent, ProcessEvents, TimedEvent};
pub use self::guard_process::GuardDeath;
pub use self::options::{
    AttachMethod, AttachRequest, EngineChoice, EngineOptions, GapHold, NonResident, PerfTarget,
    SlowSpans, TaskFilter,
};
pub use self::outcome::{
    COUNTERS, Counter, EngineCounts, EngineOutcome, EverywhereReason, InKernel, InexactCounts,
    NotBetter, NotFaultedIn, ProbeAttr, Scope, SkippedMethod, SlowSpanCounts, UsedEngine,
};
pub use self::perf::owner::Owner;
pub use self::perf::tracefs_group::{AbandonedGroup, GUARD_VERB, Tracefs, abandoned_groups, guard};
pub use self::release::helper::{RELEASE_VERB, missing as missing_keeper, release};
pub use self::release::in_program::{InProgram, in_programs};
pub use self::release::{Release, attach_and_remove};
