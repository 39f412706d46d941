//! Recording: selection of probes ([`select()`]), capture plans ([`plan`]), attaching probes and draining their hits into a trace file
//! ([`Session`]).
//!
//! No probe outlives the recorder for long. Perf events and BPF links end with their descriptors, even if the recorder is killed; at a
//! normal end a helper process closes them ([`release`]). A guard process removes tracefs events.

mod budget;
mod command;
mod leftovers;
mod output;
mod recording;
mod triggers;
mod window;

pub use command::{HeldCommand, RunningCommand, Workload};
pub use leftovers::{Leftovers, LeftoversError, leftovers};
pub use output::files::{Destination, LiveDestination, Switch, TraceFiles};
pub use output::sync::{SYNC_VERB, sync_file};
pub use output::watched_file::WatchedFile;
pub use recording::Recording;
pub use recording::ending::{CommandEnd, Ending, Notice};
pub use recording::following::{Completion, FollowedFiles, Following};
pub use recording::outcome::{
    BudgetEvent, End, EndedProcess, Finished, HitTotals, HotProbe, Outcome, PausePlanned,
    PausedProbes, ProbeHits, Progress, ThreadShare, TriggerEvent,
};
pub use recording::session::{Options, Session};
pub use recording::watched_files::keeper::{SPARED, SPARED_ALONE};
/// Size of a memory page on this machine, bytes.
pub use rustix::param::page_size;
pub use triggers::command::{CommandFault, TriggerCommand};
pub use triggers::pace::{Trigger, TriggerOptions, TriggerSubject};
pub use triggers::requests::{DumpError, Dumped, RunningRecorder, RunningRecorders};
pub use usdtrec_attach::aggregation::{
    AggregateKey, AggregateValue, Aggregation, BucketCount, CountedStack, GroupedProbe, HitGroup,
    MeasuredArgument, NoGroupName, NumberEnds, NumberTotals, SpanHitCounts, SpanHits, SpanNumber,
};
pub use usdtrec_attach::budget::{Budget, HitCosts};
pub use usdtrec_attach::callbacks::{Caution, Planting};
pub use usdtrec_attach::chosen::{ChoiceError, GroupName, GroupOwner, GroupRemark, ProcessChoice};
pub use usdtrec_attach::engine::SlowSpans;
pub use usdtrec_attach::engine::{
    AbandonedGroup, AttachMethod, COUNTERS, Engine, EngineChoice, EngineCounts, EngineOptions,
    EngineOutcome, EverywhereReason, GUARD_VERB, GapHold, GuardDeath, InKernel, InProgram,
    InexactCounts, NonResident, NotBetter, NotFaultedIn, RELEASE_VERB, Scope, SkippedMethod,
    SlowSpanCounts, UsedEngine, guard, missing_keeper, release,
};
pub use usdtrec_attach::error::{HelperInput, NoNumber, ProgramFeature, SpanFault, UsageError};
pub use usdtrec_attach::error::{Interruption, RecordError, Removal, TargetError};
pub use usdtrec_attach::places::{Account, Places, account_of};
pub use usdtrec_attach::plan::call_graph::{CallGraph, CallGraphMethod};
pub use usdtrec_attach::select::probe::PlannedSite;
pub use usdtrec_attach::select::probe::{PlannedProbe, RefusedProbe};
pub use usdtrec_attach::select::program::Program;
pub use usdtrec_attach::select::refusal::{NoProbe, Searched};
pub use usdtrec_attach::select::refusal::{Refusal, RefusalReason};
pub use usdtrec_attach::select::shared_instruction::SharedInstruction;
pub use usdtrec_attach::select::{EventSelector, Request, Selection, select};
pub use usdtrec_attach::target::Target;
pub use usdtrec_attach::target::{check_privilege, parse_cpus};
pub use usdtrec_attach::{FileChange, debug_info, plan};
pub use usdtrec_kernel::host::capabilities::has_admin;
pub use usdtrec_kernel::host::capabilities::without as without_capabilities;
pub use usdtrec_kernel::host::descendants::descendants;
pub use usdtrec_kernel::host::identity::serve_files;
pub use usdtrec_kernel::host::inherited::{
    handle_signals, is_ignored, settle as settle_signals, was_closed,
};
pub use usdtrec_kernel::host::kernel_version::{KernelVersion, profiler_panic};
pub use usdtrec_kernel::host::limits::raise_open_files;
pub use usdtrec_kernel::host::memory::share_heaps;
pub use usdtrec_kernel::host::page_reading::NotCached;
pub use usdtrec_kernel::nop5::{Nop5Danger, TRIAL_VERB, TrialError, TrialFaults, trial};
pub use usdtrec_kernel::signals::Signals;
pub use usdtrec_kernel::{BpfRefusal, CpuListError, ErrorMeaning, KernelError, KernelOperation};
pub use usdtrec_watch::left_breakpoints::{BreakpointOwner, LeftBehind, LeftBreakpoint};
pub use usdtrec_watch::makers::MakerFiles;
pub use usdtrec_watch::semaphores::RaisedProcess;
pub use usdtrec_watch::stacks::{CutCause, CutStacks, FileElsewhere};
pub use usdtrec_watch::verify::{RunningSites, SiteNote, TRAPPED};
pub use window::files::{
    NewWindowFile, ShortenedWindow, WindowFileTime, WindowFiles, WindowLimits, WrittenWindow,
};
