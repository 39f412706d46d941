//! Recording: selection of probes ([`select()`]), capture plans ([`plan`]), attaching probes and draining their hits into a trace file
//! ([`Session`]).
//!
//! No probe outlives the recorder for long. Perf events and BPF links end with their descriptors, even if the recorder is killed; at a
//! normal end a helper process closes them ([`release`]). A guard process removes tracefs events.

mod appeared;
mod argument_list;
mod build_ids;
mod cgroups;
mod clocks;
mod command;
mod cpus;
pub mod debug_info;
mod ending;
mod engine;
mod error;
mod event_names;
mod exec_stop;
mod files;
mod filter;
mod host;
mod kernel_error;
mod left_breakpoints;
mod leftovers;
mod limits;
mod losses;
mod makers;
mod metadata;
mod moment;
mod no_probe;
mod nop5;
mod outlet;
mod pagemap;
pub mod plan;
mod planned_site;
mod planting;
mod privilege;
mod probe;
mod probe_info;
mod process;
mod program;
mod recording;
mod refusal;
mod run_directory;
mod runnable;
mod sample_head;
mod select;
mod semaphores;
mod session;
mod shortfalls;
mod signals;
mod snapshot;
mod stacks;
mod start;
mod sync;
mod target;
mod threads;
mod trace_clock;
mod usage_error;
mod user_filter;
mod verify;
mod wall_quality;
mod watched_file;
mod writer;

pub use appeared::{Appeared, AppearedFiles, Remedy};
pub use command::{HeldCommand, RunningCommand};
pub use cpus::parse as parse_cpus;
pub use ending::{Ending, Notice};
pub use engine::{
    AbandonedGroup, AttachMethod, EngineChoice, EngineOptions, EngineOutcome, EverywhereReason,
    GUARD_VERB, GuardDeath, GuardTask, InKernel, InProgram, InexactCounts, NonResident, NotBetter,
    NotFaultedIn, RELEASE_VERB, STOPPED_VERB, Scope, SkippedMethod, StoppedProcess, UsedEngine,
    guard, guard_stopped, release,
};
pub use error::{Interruption, RecordError, Removal, TargetError};
pub use files::{Destination, LiveDestination, Switch};
pub use kernel_error::{BpfObject, BpfRefusal, ErrorMeaning, KernelOperation};
pub use left_breakpoints::{BreakpointOwner, LeftBehind, LeftBreakpoint};
pub use leftovers::{Leftovers, LeftoversError, leftovers};
pub use limits::raise_open_files;
pub use losses::ProbeLoss;
pub use makers::MakerFiles;
pub use moment::{Moment, Waited};
pub use no_probe::{NoProbe, Searched};
pub use nop5::{Nop5Danger, TRIAL_VERB, TrialError, TrialFaults, trial};
pub use plan::call_graph::{CallGraph, CallGraphMethod};
pub use planned_site::PlannedSite;
pub use planting::{Caution, Planting};
pub use privilege::{check as check_privilege, has_admin};
pub use probe::{PlannedProbe, RefusedProbe};
pub use program::Program;
pub use recording::{End, Finished, Outcome, Progress, Recording};
pub use refusal::{Refusal, RefusalReason};
/// Size of a memory page on this machine, bytes.
pub use rustix::param::page_size;
pub use select::{EventSelector, Request, Selection, select};
pub use semaphores::RaisedProcess;
pub use session::{Options, Session};
pub use signals::Signals;
pub use stacks::{CutCause, CutStacks, FileElsewhere};
pub use sync::{SYNC_VERB, sync_file};
pub use target::Target;
pub use threads::Threads;
pub use usage_error::{HelperInput, ProgramFeature, UsageError};
pub use verify::{SiteNote, notes_of_sites};
pub use watched_file::{FileChange, WatchedFile};
