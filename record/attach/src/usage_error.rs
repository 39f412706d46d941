//! Errors of the caller's parameters.

use usdtrec_format::expr::ExprError;
use usdtrec_format::spans::SpanNameError;
use usdtrec_kernel::CpuListError;

use crate::plan::ConditionError;

/// Why spans cannot be matched while recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpanFault {
    /// A name means no span of the probes.
    #[error("{}", no_span(.0))]
    Name(SpanNameError),
    /// Begin and end are matched by strings, by several arguments, or need not nest.
    #[error(
        "span {0}: its begin and end are matched by something else than the thread, the process or one integer, which only readers of traces do"
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
    #[error("{event} is of several of the spans: expected one of them")]
    SeveralSpans {
        /// The event.
        event: String,
    },
    /// Callers are recorded.
    #[error("spans are recorded without the callers of their begin and end")]
    Callers,
    /// A filter would leave out one of the two hits.
    #[error(
        "span {0}: a filter of its begin or end leaves out hits without which others are matched: filter by the duration only (span > TIME)"
    )]
    Filter(String),
    /// There are no programs.
    #[error("spans are matched by programs: expected the bpf engine")]
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
        "{name} is an argument of the begin or end of spans, of which durations are added up: expected an argument of another probe"
    )]
    MeasuredOfSpans {
        /// Its name.
        name: String,
    },
    /// The numbers of an argument are to be aggregated, and it is none that programs can add up.
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
    #[error("arguments of {event}: {argument} is computed at the hit, which needs the bpf engine")]
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
        "{probe} has arguments on the stack, so copies of stacks are recorded, of which a reader finds all frames: \
         for a limit of frames, use the bpf engine or frame pointers"
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
    #[error("{0:?} is no group of a recorder's events")]
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
    #[error("its standard input is a list of descriptors")]
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
    /// A choice of the memory that is brought in.
    #[error("reading memory that is not resident")]
    NonResident,
}
