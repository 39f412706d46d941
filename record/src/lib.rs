//! Recording: selection of probes ([`select()`]), capture plans ([`plan`]), attaching probes and draining their hits into a trace file
//! ([`Session`]).
//!
//! No probe outlives the recorder for long. Perf events and BPF links end with their descriptors, even if the recorder is killed; at a
//! normal end a helper process closes them ([`release`]). A guard process removes tracefs events.

mod aggregation;
mod batch;
mod budget;
mod cgroups;
mod chosen;
mod clocks;
mod command;
pub mod debug_info;
mod engine;
mod error;
mod host;
mod kernel_error;
mod known_thread;
mod left_breakpoints;
mod leftovers;
mod makers;
mod nop5;
mod output;
mod places;
pub mod plan;
mod recording;
mod select;
mod semaphores;
mod slow_spans;
mod stacks;
mod stage;
mod thread_contexts;
mod triggers;
mod usage_error;
mod verify;
mod window;

pub use aggregation::{
    AggregateKey, AggregateValue, Aggregation, BucketCount, CountedStack, GroupedProbe, HitGroup,
    MeasuredArgument, NoGroupName, NumberEnds, NumberTotals, SpanHitCounts, SpanHits,
};
pub use budget::{Budget, HitCosts};
pub use chosen::{ChoiceError, GroupName, GroupOwner, GroupRemark, ProcessChoice};
pub use command::{HeldCommand, RunningCommand, Workload};
pub use engine::{
    AbandonedGroup, AttachMethod, EngineChoice, EngineOptions, EngineOutcome, EverywhereReason,
    GUARD_VERB, GapHold, GuardDeath, InKernel, InProgram, InexactCounts, NonResident, NotBetter,
    NotFaultedIn, RELEASE_VERB, Scope, SkippedMethod, SlowSpanCounts, UsedEngine, guard, release,
};
pub use error::{Interruption, RecordError, Removal, TargetError};
pub use host::capabilities::without as without_capabilities;
pub use host::cpus::parse as parse_cpus;
pub use host::descendants::descendants;
pub use host::inherited::{handle_signals, is_ignored, settle as settle_signals, was_closed};
pub use host::limits::raise_open_files;
pub use host::page_reading::NotCached;
pub use host::privilege::{check as check_privilege, has_admin};
pub use host::profiler_panic::{KernelVersion, profiler_panic};
pub use host::served_files::serve_files;
pub use kernel_error::{BpfObject, BpfRefusal, ErrorMeaning, KernelOperation};
pub use left_breakpoints::{BreakpointOwner, LeftBehind, LeftBreakpoint};
pub use leftovers::{Leftovers, LeftoversError, leftovers};
pub use makers::MakerFiles;
pub use nop5::{Nop5Danger, TRIAL_VERB, TrialError, TrialFaults, trial};
pub use output::files::{Destination, LiveDestination, Switch, TraceFiles};
pub use output::sync::{SYNC_VERB, sync_file};
pub use output::watched_file::{FileChange, WatchedFile};
pub use places::{Account, Places};
pub use plan::call_graph::{CallGraph, CallGraphMethod};
pub use recording::attach_callbacks::{Caution, Planting};
pub use recording::ending::{Ending, Notice};
pub use recording::following::{Completion, FollowedFiles, Following};
pub use recording::losses::ProbeHits;
pub use recording::session::{Options, Session};
pub use recording::signals::Signals;
pub use recording::target::Target;
pub use recording::{
    BudgetEvent, End, EndedProcess, Finished, HitTotals, HotProbe, Outcome, PausePlanned,
    PausedProbes, Progress, Recording, SPARED, SPARED_ALONE, ThreadShare, TriggerEvent,
};
/// Size of a memory page on this machine, bytes.
pub use rustix::param::page_size;
pub use select::no_probe::{NoProbe, Searched};
pub use select::planned_site::PlannedSite;
pub use select::probe::{PlannedProbe, RefusedProbe};
pub use select::program::Program;
pub use select::refusal::{Refusal, RefusalReason};
pub use select::shared_instruction::SharedInstruction;
pub use select::{EventSelector, Request, Selection, select};
pub use semaphores::RaisedProcess;
pub use slow_spans::SlowSpans;
pub use stacks::{CutCause, CutStacks, FileElsewhere};
pub use triggers::{
    CommandFault, DumpError, Dumped, RunningRecorder, RunningRecorders, Trigger, TriggerCommand,
    TriggerOptions, TriggerSubject,
};
pub use usage_error::{HelperInput, NoNumber, ProgramFeature, SpanFault, UsageError};
pub use verify::{SiteNote, TRAPPED, notes_of_sites};
pub use window::{
    NewWindowFile, ShortenedWindow, WindowFileTime, WindowFiles, WindowLimits, WrittenWindow,
};
