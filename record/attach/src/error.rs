//! Errors of recording.

use std::io;
use std::path::PathBuf;

use usdtrec_buildid_cache::elf::ElfError;
use usdtrec_buildid_cache::{BuildError, CacheError};
use usdtrec_format::escape::shown;
use usdtrec_format::expr::ExprError;
use usdtrec_format::spans::SpanNameError;
use usdtrec_format::trace::WriteError;
use usdtrec_kernel::separate_process::was_killed;
use usdtrec_kernel::{CpuListError, ErrorMeaning, KernelError, in_brackets};

use crate::chosen::ChoiceError;
use crate::file_change::FileChange;
use crate::plan::condition::ConditionError;
use crate::select::refusal::NoProbe;
use crate::select::refusal::{Refusal, lines};

/// Error of a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A parameter is invalid, or the engine does not support it.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// Processes cannot be chosen.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// A pattern selects no probe.
    #[error(transparent)]
    NoProbe(#[from] NoProbe),
    /// The build-id of a pattern is not that of one build.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A file name of a pattern was not found.
    #[error(transparent)]
    Find(CacheError),
    /// The file of a pattern cannot be opened.
    #[error("{}: {error}", shown(.path))]
    File {
        /// The file.
        path: PathBuf,
        /// Error of opening it.
        error: ElfError,
    },
    /// The file of a pattern cannot be opened below the root directory of a process.
    #[error(
        "{}: {error}, seen from process {pid}{}",
        shown(.path),
        if *.is_outside { "; there is a file of this path outside of its root" } else { "" }
    )]
    FileOfProcess {
        /// The file.
        path: PathBuf,
        /// The first traced process.
        pid: u32,
        /// Error of opening the file.
        error: ElfError,
        /// Whether the recorder itself can open a file of this path.
        is_outside: bool,
    },
    /// Nothing of what a pattern selects can be attached.
    #[error("{}", lines(.0))]
    Refused(Vec<Refusal>),
    /// No probe was given.
    #[error("no probe to record")]
    Nothing,
    /// The kernel refuses or lacks something.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// There is nothing to record on.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The command could not be run.
    #[error("cannot run {command:?}")]
    Command {
        /// The command.
        command: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// tracefs cannot be opened where it is usually mounted, and cannot be mounted for the recorder alone.
    #[error(
        "following new threads and children needs tracefs, which can neither be opened nor mounted"
    )]
    NoTracefs(#[source] io::Error),
    /// The kernel refused to attach a probe.
    #[error(
        "cannot attach {event} in {} at offset {offset:#x}{}",
        shown(.path),
        in_brackets(.meaning.as_ref())
    )]
    Attach {
        /// Event of the probe.
        event: String,
        /// The file.
        path: PathBuf,
        /// File offset of the site.
        offset: u64,
        /// What the error means here, if that is known.
        meaning: Option<ErrorMeaning>,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// Perf events are not opened while recording.
    #[error("the perf engine does not follow files that appear while recording")]
    NotFollowed,
    /// Something needs capabilities as long as it is recorded.
    #[error("the recorder cannot drop its capabilities: {0}")]
    KeepsCapabilities(&'static str),
    /// The capabilities could not be dropped.
    #[error("cannot drop the capabilities")]
    Capabilities(#[source] io::Error),
    /// Neither engine can be used.
    #[error("no engine can be used: bpf: {}; perf: {}", with_source(.bpf), with_source(.perf))]
    NoEngine {
        /// Why not the bpf engine.
        bpf: Box<RecordError>,
        /// Why not the perf engine.
        perf: Box<RecordError>,
    },
    /// Recording was ended before it began.
    #[error(transparent)]
    Interrupted(#[from] Interruption),
    /// The trace file could not be created.
    #[error("cannot create the trace file")]
    Output(#[source] io::Error),
    /// Other processes changed files while they were written.
    #[error("{}", lines(.0))]
    Changed(Vec<FileChange>),
    /// Writing the trace failed.
    #[error("the trace ends early; everything written before is complete")]
    Write(#[from] WriteError),
    /// Writing the trace failed, and the events have been counted since.
    #[error(
        "the trace ends early; everything written before is complete, but {missing} of {hits} hits are not in the trace"
    )]
    Incomplete {
        /// Hits up to the end of the recording that are in no file.
        missing: u64,
        /// Hits up to the end of the recording.
        hits: u64,
        /// Why writing failed.
        #[source]
        source: WriteError,
    },
}

/// There is nothing to record on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// A process or thread does not exist.
    #[error("there is no process or thread {0}")]
    Missing(u32),
    /// The processes have too many children.
    #[error("the processes have {found} children, expected at most {most}")]
    TooManyChildren {
        /// Number of children.
        found: usize,
        /// Maximum number.
        most: usize,
    },
    /// A process ended before its threads were read.
    #[error("process {0} has ended")]
    Ended(u32),
    /// All processes or threads ended before their events were opened.
    #[error("the processes or threads to be recorded have all ended")]
    AllEnded,
    /// No CPU is left.
    #[error("there is no CPU to record on")]
    NoCpu,
}

/// Why recording ended before it began.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Interruption {
    /// A signal arrived.
    #[error("a signal ended it before recording began: there is no trace{}", removing(.0.as_ref()))]
    Signal(Option<Removal>),
    /// The process that attaches probes was killed.
    #[error("{0}: there is no trace")]
    Killed(io::Error),
}

impl Interruption {
    /// Ends attaching if the error means that the process that made the call was killed.
    pub fn check(error: &io::Error) -> Result<(), Self> {
        if !was_killed(error) {
            return Ok(());
        }
        Err(Self::Killed(io::Error::new(
            error.kind(),
            error.to_string(),
        )))
    }
}

/// Probe links and events that a process continues removing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The process.
    pub pid: u32,
    /// Number of those that are left.
    pub left: usize,
    /// Number of all of them.
    pub total: usize,
}

fn removing(removal: Option<&Removal>) -> String {
    removal.map_or_else(String::new, |Removal { pid, left, total }| {
        format!("; process {pid} continues removing {left} of {total} probe links and events")
    })
}

/// An error with the first line of its cause.
pub fn with_source(error: &RecordError) -> String {
    match std::error::Error::source(error).map(ToString::to_string) {
        Some(source) => format!("{error}: {}", source.lines().next().unwrap_or_default()),
        None => error.to_string(),
    }
}

/// Why spans cannot be matched while recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpanFault {
    /// A name means no span of the probes.
    #[error("{}", no_span(.0))]
    Name(SpanNameError),
    /// Begin and end are matched by strings, by several arguments, or need not nest.
    #[error(
        "span {0}: while recording, begin and end can be matched only by the thread, the process or one integer"
    )]
    Key(String),
    /// Too many arguments of begin and end must be equal.
    #[error("span {span}: begin and end have more than {most} strings and ids in common")]
    ManyAgreed {
        /// The span.
        span: String,
        /// Maximum number.
        most: u32,
    },
    /// Records are too long to be kept, or have no value that is to be compared.
    #[error(
        "span {0}: its records are too long to be kept until it ends, or a value that begin and end have in common is not in them"
    )]
    LongRecords(String),
    /// An event is of several spans.
    #[error("{event} belongs to several of the spans: expected one of them")]
    SeveralSpans {
        /// The event.
        event: String,
    },
    /// Callers are recorded.
    #[error("callers cannot be recorded for begin and end of spans")]
    Callers,
    /// A filter would leave out one of the two hits.
    #[error(
        "span {0}: with a filter of its begin or end, the remaining hits would be matched wrongly: filter only by the duration (span > TIME)"
    )]
    Filter(String),
    /// There are no programs.
    #[error("matching spans needs the bpf engine")]
    Engine,
}

/// Which spans there are.
fn no_span(error: &SpanNameError) -> String {
    match error {
        SpanNameError::NoSpan { known, .. } if known.is_empty() => {
            format!(
                "{error}: the names of the probes form no spans; START..DONE makes one of any two probes"
            )
        }
        SpanNameError::NoSpan { known, .. } => {
            format!("{error}; there are: {}", known.join(", "))
        }
        error => error.to_string(),
    }
}

/// A parameter is invalid, or the engine does not support it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsageError {
    /// A part of a CPU list is no number and no range of at most 65,536 CPUs.
    #[error(transparent)]
    CpuList(#[from] CpuListError),
    /// A CPU to be recorded is not on line.
    #[error("CPU {cpu} is not on line (on line: {online:?})")]
    Offline {
        /// The CPU.
        cpu: u32,
        /// The CPUs that are.
        online: Vec<u32>,
    },
    /// The command has no words.
    #[error("expected a command to run, found an empty one")]
    EmptyCommand,
    /// A filter names an argument or a word that the probe does not have.
    #[error("filter of {event}: {error}")]
    FilterName {
        /// Event of the probe.
        event: String,
        /// The error, with its offset in the filter.
        error: ExprError,
    },
    /// No probe has an argument that hits are to be grouped by, or whose numbers are to be added up.
    #[error("no probe has an argument {name}; they have: {known}")]
    GroupArgument {
        /// Its name.
        name: String,
        /// The names of the arguments of the probes.
        known: String,
    },
    /// The numbers of an argument are to be added up, and all probes that have it begin or end spans.
    #[error(
        "{name} is an argument of the begin or end of spans, whose durations are added up: expected an argument of another probe"
    )]
    MeasuredOfSpans {
        /// Its name.
        name: String,
    },
    /// Spans are to be grouped by an argument that no begin has.
    #[error(
        "{name} is an argument of what ends spans: expected one of what begins them, by which programs in the kernel group spans"
    )]
    KeyOfEnds {
        /// Its name.
        name: String,
    },
    /// The numbers of an argument are to be aggregated, and programs cannot add it up.
    #[error(
        "{argument} of {event} is {found}: expected an integer, which programs in the kernel can add up"
    )]
    NoNumber {
        /// Event of the probe.
        event: String,
        /// Name of the argument.
        argument: String,
        /// What it is.
        found: NoNumber,
    },
    /// Spans of which only slow ones are to be recorded cannot be matched.
    #[error(transparent)]
    Span(#[from] SpanFault),
    /// A filter cannot be evaluated at a site.
    #[error("filter of {event}: {error}")]
    Filter {
        /// Event of the probe.
        event: String,
        /// The error.
        error: ConditionError,
    },
    /// A filter reads memory, which perf events do not sample.
    #[error("filter of {event}: a filter that reads strings or other memory needs the bpf engine")]
    FilterReadsMemory {
        /// Event of the probe.
        event: String,
    },
    /// A filter is of the user of the process, whom perf events do not sample.
    #[error("filter of {event}: a filter of uid needs the bpf engine")]
    FilterOfUser {
        /// Event of the probe.
        event: String,
    },
    /// No recorded probe can fire a trigger.
    #[error("trigger {trigger}: no recorded probe has this name: record it, too")]
    Trigger {
        /// The trigger.
        trigger: String,
    },
    /// A filter is false or without a value at all sites.
    #[error(
        "the filter can never match: at every site its arguments are unavailable, constant, or of another type"
    )]
    FilterNeverTrue,
    /// An argument list cannot be evaluated at a site.
    #[error("arguments of {event}: {}", .error.message())]
    Arguments {
        /// Event of the probe.
        event: String,
        /// The error.
        error: ConditionError,
    },
    /// An argument list computes a value, and there are no programs.
    #[error("arguments of {event}: computing {argument} at the hit needs the bpf engine")]
    ComputedArgument {
        /// Event of the probe.
        event: String,
        /// The argument, `NAME=EXPRESSION`.
        argument: String,
    },
    /// There are more events than sample formats have numbers.
    #[error("expected at most {most} events at once, found more")]
    TooManyEvents {
        /// The maximum.
        most: u16,
    },
    /// Events of the uprobe PMU cannot be inherited.
    #[error("events of the uprobe PMU cannot follow threads and children")]
    PmuInherit,
    /// The kernel follows frame pointers to fewer frames.
    #[error(
        "the kernel finds at most {most} frames (kernel.perf_event_max_stack): ask for fewer, or use the bpf engine"
    )]
    MaxStack {
        /// The maximum number of frames.
        most: u16,
    },
    /// Arguments are decoded from the copies of stacks, which are written, and not unwound while recording.
    #[error(
        "{probe} has arguments on the stack, so copies of stacks are recorded, whose frames cannot be limited: \
         use the bpf engine or frame pointers"
    )]
    LimitOfCopies {
        /// The probe.
        probe: String,
    },
    /// Only programs can do it.
    #[error("{0} needs the bpf engine")]
    NeedsBpf(ProgramFeature),
    /// A process that the recorder starts was started otherwise.
    #[error("{verb} is started by the recorder: {expected}")]
    Helper {
        /// Its first argument.
        verb: &'static str,
        /// What it expects.
        expected: HelperInput,
    },
    /// A group of tracefs events has no name of a recorder.
    #[error("{0:?} is not a group of a recorder's tracefs events")]
    Group(String),
}

/// What an argument is instead of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoNumber {
    /// A string.
    #[error("a string")]
    String,
    /// A floating-point number.
    #[error("a floating-point number")]
    Float,
}

/// What a process that the recorder starts expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelperInput {
    /// The process that closes links.
    #[error("expected a list of descriptors on standard input")]
    Descriptors,
}

/// What programs can do, and perf events cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramFeature {
    /// Taking the stacks of some hits only.
    #[error("limiting the rate of stacks")]
    StackRate,
    /// Choosing processes by control group or executable.
    #[error("choosing processes by control group or executable")]
    ProcessChoice,
    /// Reading thread contexts.
    #[error("reading thread contexts")]
    ThreadContext,
    /// Adding up how long threads wait.
    #[error("recording how long threads wait")]
    OffCpu,
    /// A choice of the memory that is faulted in.
    #[error("reading memory that is not resident")]
    NonResident,
}
