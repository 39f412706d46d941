//! How far a recording is, and what came of it.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use usdtrec_attach::FileChange;
use usdtrec_attach::aggregation::{HitGroup, SpanHits};
use usdtrec_attach::engine::{EngineOutcome, GuardDeath};
use usdtrec_attach::error::RecordError;
use usdtrec_format::trace::{FiredTrigger, Shortfall, Totals};
use usdtrec_watch::makers::MakerFiles;
use usdtrec_watch::stacks::{CutStacks, FileElsewhere};

use crate::recording::ending::Ending;
use crate::recording::following::FollowedFiles;
use crate::triggers::command::CommandFault;
use crate::window::files::WrittenWindow;

/// A recording that has ended. The trace is complete; what is open in the kernel and the command may not have ended.
#[derive(Debug)]
pub struct Finished {
    /// The outcome; [`RecordError::Incomplete`] if writing failed: everything flushed before is complete.
    pub outcome: Result<Outcome, RecordError>,
    /// Files in stacks that are not those at their paths; known where copies of stacks were unwound.
    pub elsewhere: Vec<FileElsewhere>,
    /// Where programs with recorded stacks name the code that they made at run time.
    pub maker_files: MakerFiles,
    /// The attached probes, and the command.
    pub ending: Ending,
}

/// The outcome of a recording.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Totals of all files: their samples are hits, without those of waits ([`EngineOutcome::waits`]).
    pub totals: Totals,
    /// Duration from start to end.
    pub elapsed: Duration,
    /// Losses by probe, the largest first.
    pub losses: Vec<ProbeHits>,
    /// What was aggregated in the kernel; `None` if hits were recorded.
    pub counted: Option<HitTotals>,
    /// Number of hits that the kernel counted and that are neither in the trace nor among the losses.
    pub unaccounted: u64,
    /// Events of probes without hits, by name.
    pub silent: Vec<String>,
    /// What the engine has counted besides.
    pub engine: EngineOutcome,
    /// Stacks that are cut because more was needed than was copied, by event, the most first.
    pub cut_stacks: Vec<CutStacks>,
    /// CPUs that went off line or came on line while recording. Process records of those CPUs are missing from then on; if all processes
    /// are recorded, only until the recorder noticed the CPU.
    pub changed_cpus: Vec<u32>,
    /// Whether hits on those CPUs are missing without being counted, as with perf events.
    pub cpus_uncounted: bool,
    /// Files that processes first mapped while recording.
    pub followed: FollowedFiles,
    /// What was found not to work in recorded processes, so that hits are missing without being counted.
    pub shortfalls: Vec<Shortfall>,
    /// Files that have another name now.
    pub changes: Vec<FileChange>,
    /// Why the recording ended.
    pub end: End,
    /// Events of triggers since the last [`Progress`].
    pub triggered: Vec<TriggerEvent>,
    /// Number of triggers that have no file of their own: they fired before the file of another one was written, or too soon after it.
    pub without_file: u64,
    /// Whether there was a budget.
    pub has_budget: bool,
    /// The probes that were paused to keep to it.
    pub paused: Vec<PausedProbes>,
    /// Events of the budget since the last [`Progress`].
    pub budget: Vec<BudgetEvent>,
    /// How the [named](crate::Options::named) processes ended, if the recording ended with them.
    pub ended: Vec<EndedProcess>,
}

/// A process that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedProcess {
    /// Its process id.
    pub pid: u32,
    /// Its status; `None` if it is not known.
    pub status: Option<ExitStatus>,
}

/// What was aggregated in the kernel from the start to a moment.
#[derive(Clone, Debug)]
pub struct HitTotals {
    /// Time since the start.
    pub elapsed: Duration,
    /// All hits are before this time, ns of the trace's clock. In a pipe, what is known of processes up to it has been written when a mark of this
    /// time is settled ([`put_time_mark`](usdtrec_format::trace::put_time_mark)), if a key is the stack.
    pub time: u64,
    /// The hits of each probe of no span that are in no group. A probe may be several of one name.
    pub hits: Vec<ProbeHits>,
    /// The groups of hits, and of spans, in no order.
    pub groups: Vec<HitGroup>,
    /// What was counted of spans besides, by name.
    pub spans: Vec<SpanHits>,
}

impl HitTotals {
    /// Number of hits of probes of no span that are counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        let ungrouped = self.hits.iter().map(|probe| probe.hits - probe.lost);
        let groups = self.groups.iter().filter(|group| !group.probe.is_span);
        let grouped = groups.map(|group| group.count);
        ungrouped.chain(grouped).sum()
    }

    /// Number of spans that are counted.
    #[must_use]
    pub fn span_count(&self) -> u64 {
        let spans = self.spans.iter().map(|span| &span.counts);
        spans
            .map(|counts| counts.ended.saturating_sub(counts.short))
            .sum()
    }
}

/// An event of a trigger.
#[derive(Clone, Debug)]
pub enum TriggerEvent {
    /// A file is complete.
    Written(WrittenWindow),
    /// The file that is written says what fired.
    Noted(FiredTrigger),
    /// A file could not be written, or not be brought to the disk. Recording continues.
    NotWritten {
        /// What fired.
        fired: FiredTrigger,
        /// The error.
        error: Arc<RecordError>,
    },
    /// A command did not do its work.
    Command(Arc<CommandFault>),
    /// Requests cannot be received.
    NoRequests(Arc<io::Error>),
    /// No recorded probe can fire a trigger so far: it waits for a file that appears.
    Idle {
        /// The trigger.
        trigger: String,
    },
    /// Ends of a span took the newest begin of their thread, and an older one has the same number.
    Overlap {
        /// Name of the span.
        span: String,
        /// Number of such ends.
        ends: u64,
    },
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A signal.
    Signal,
    /// The duration is over.
    Time,
    /// The maximum size is reached.
    Size,
    /// The command, or all recorded processes or threads, have ended.
    Gone,
    /// The reader of the output closed it.
    Unread,
    /// A trigger fired that ends it.
    Triggered,
}

/// Progress of a running session.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Totals of all files so far.
    pub totals: Totals,
    /// What was aggregated in the kernel so far, when the interval of the aggregation has passed.
    pub counted: Option<HitTotals>,
    /// What was found not to work so far.
    pub shortfalls: Arc<[Shortfall]>,
    /// What others did to the files that are written, so far.
    pub changes: Vec<FileChange>,
    /// Guard processes that were killed so far, the same only once.
    pub guard_deaths: Vec<GuardDeath>,
    /// Events of triggers since the last one.
    pub triggered: Vec<TriggerEvent>,
    /// Events of the budget since the last one.
    pub budget: Vec<BudgetEvent>,
    /// Whether [`hit_costs`](crate::Options::hit_costs) are needed from now on.
    pub needs_hit_costs: bool,
    /// A probe that takes much of a thread's time; once in a recording without a budget.
    pub hot_probe: Option<HotProbe>,
}

/// What hits take of a thread's time.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadShare {
    /// Hits a second.
    pub rate: f64,
    /// The thread's id.
    pub thread: i32,
    /// Its name; empty if it has ended.
    pub thread_name: String,
    /// The share of its time, 1 for all.
    pub share: f64,
}

/// A probe that takes more than 5 % of a thread's time.
#[derive(Clone, Debug, PartialEq)]
pub struct HotProbe {
    /// Its event.
    pub event: String,
    /// What it takes of the thread; the rate is of that thread.
    pub takes: ThreadShare,
    /// Whether it is attached by links that a [budget](crate::EngineOptions::budget) can close.
    pub can_pause: bool,
}

/// An event of the budget.
#[derive(Clone, Debug, PartialEq)]
pub enum BudgetEvent {
    /// Probes are paused for the first time, or stay detached from now on.
    Paused(PausePlanned),
    /// Probes could not be attached again for the first time. It is tried again.
    NotAttached {
        /// Their events.
        events: Vec<String>,
        /// The kernel's error.
        reason: String,
    },
}

/// Probes are paused for the first time, or stay detached from now on, to keep to the budget.
#[derive(Clone, Debug, PartialEq)]
pub struct PausePlanned {
    /// Their events.
    pub events: Vec<String>,
    /// What they took of the thread of whose time they took the largest share; the rate is of all threads, while they were attached.
    pub takes: ThreadShare,
    /// Part of the time in which they are recorded from now on; 0 if they stay detached to the end, because detaching and attaching them
    /// once a minute would cost more than a quarter of the budget.
    pub recorded: f64,
}

/// Probes that were paused.
#[derive(Clone, Debug, PartialEq)]
pub struct PausedProbes {
    /// Their events.
    pub events: Vec<String>,
    /// Number of pauses.
    pub pauses: u64,
    /// Part of the recording in which they were recorded, 0 to 1.
    pub recorded: f64,
}

/// Hits of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeHits {
    /// Event name.
    pub event: String,
    /// Hits that found no room in the ring, or that a filter could not evaluate.
    pub lost: u64,
    /// All hits.
    pub hits: u64,
}
