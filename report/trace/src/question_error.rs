//! Questions that cannot be answered.

use usdtrec_format::expr::ExprError;

use crate::field_error::FieldError;

/// Why a question cannot be answered: it cannot be understood, or the trace does not have what it is about.
///
/// `known` are the names that there are, escaped and separated by commas; of many, only the first few.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// No event has the name.
    #[error("the trace has no event {event}; it has: {known}")]
    NoEvent {
        /// The name or pattern.
        event: String,
        /// The trace's events.
        known: String,
    },
    /// No span has the name.
    #[error("the trace has no span {span:?}; {}; START..DONE makes one of any two probes", spans(.known))]
    NoSpan {
        /// The name.
        span: String,
        /// The spans that are found by the names of probes; may be empty.
        known: String,
    },
    /// The arguments of an enclosing span are requested, and a thread has several such spans at once.
    #[error(
        "threads have several spans {span} at once, matched by {key}: it is not known which of them a hit is in"
    )]
    NotOfThread {
        /// Name of the spans.
        span: String,
        /// The argument that they are matched by.
        key: String,
    },
    /// Holders of locks are requested, and the trace does not have the probes at which a lock is waited for, acquired and released.
    #[error(
        "no lock has events for all of waiting, acquiring and releasing it, as schemas say: {}",
        or(.known, "the trace has no event of locks")
    )]
    NoLocks {
        /// The events of locks that the trace has; may be empty.
        known: String,
    },
    /// No event that is selected ends a span.
    #[error("none of the selected events ends a span")]
    NoSpanEnds,
    /// A name is neither that of an argument nor that of another key.
    #[error(
        "there is no {name:?}: expected the name of an argument ({}), arg1, arg2, …, args.NAME or PROBE.NAME, or to group by event, comm, \
         pid, tid, cpu, {}, dso, sym, srcline, caller, stack, or a name and :shape: without its numbers and quoted strings",
        or(.known, "this trace has none"),
        .of_process.join(", ")
    )]
    NoKey {
        /// The name.
        name: String,
        /// The arguments of the trace; may be empty.
        known: String,
        /// The fields about a process.
        of_process: Vec<&'static str>,
    },
    /// A field about processes is asked for, and the trace does not have it of any process.
    #[error("{what} needs {needs}")]
    NotOfProcess {
        /// The field.
        what: &'static str,
        /// What it needs, and where that comes from.
        needs: &'static str,
    },
    /// Stacks are asked for, and no event that is selected was recorded with them.
    #[error("no selected event was recorded with stacks: {what} needs them")]
    NoStacks {
        /// What needs them: a key.
        what: String,
    },
    /// Stacks of the functions of scripts are asked for, and no event says which functions are called and return.
    #[error(
        "{what} needs the calls and returns of the script's functions, and the trace has no such events"
    )]
    NoScriptCalls {
        /// What needs them: a key.
        what: String,
    },
    /// The sum of an argument on a stack is no weight.
    #[error(
        "the sum of {name} cannot be the weight of stacks: on some it is negative, no number, or beyond 64 bits"
    )]
    NoWeight {
        /// The argument.
        name: String,
    },
    /// Groups are to be sorted by a figure that they do not have.
    #[error("order: expected {expected}, found {found:?}")]
    Order {
        /// Names of those that they have.
        expected: String,
        /// The name that was given.
        found: String,
    },
    /// The time of spans and the sum of an argument are requested as the weight of stacks.
    #[error(
        "stacks are weighted by the time of spans or the sum of an argument: expected one of them"
    )]
    SeveralWeights,
    /// There are too many different stacks to be compared.
    #[error(
        "there are too many different stacks to be compared: choose fewer events, or a part of the traces"
    )]
    TooManyStacks,
    /// No stack has weight.
    #[error("no stack of the selected events has weight")]
    NoStackWeight,
    /// The weights of all stacks together do not fit into 63 bits.
    #[error(
        "the stacks of the selected events weigh more than 9223372036854775807 together, the most that a flame graph can draw"
    )]
    TooMuchStackWeight,
    /// No event that is selected has the argument.
    #[error(
        "no selected event has an argument {name:?}; arguments are: {}{}",
        or(.known, "none"),
        or_fields(.fields)
    )]
    NoArgument {
        /// The name.
        name: String,
        /// The arguments of these events; may be empty.
        known: String,
        /// Names of fields, if the name could be that of a field, too.
        fields: Vec<&'static str>,
    },
    /// A field of perf's that is not shown.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A template has no spans, and no event that is selected has an argument of this name.
    #[error(
        "{{span}}: templates have no spans, and no selected event has an argument of this name"
    )]
    SpanInTemplate,
    /// A field of events is requested of the lines of spans.
    #[error(
        "{field} is a field of events: lines of spans have comm, tid, pid, cpu, time, tod, event, span, args and args.NAME"
    )]
    FieldOfEvents {
        /// The field.
        field: &'static str,
    },
    /// Arguments are to be left out of stacks or hashed in them.
    #[error(
        "stacks have functions and no arguments that could be left out or hashed; functions of scripts keep their names"
    )]
    RedactedStacks,
    /// A histogram of a key that is not an argument.
    #[error("{name} is not an argument: it has no distribution of numbers")]
    HistogramOfKey {
        /// The key.
        name: String,
    },
    /// A heat map of a key that is not an argument.
    #[error("{name} is not an argument")]
    HeatMapOfKey {
        /// The key.
        name: String,
    },
    /// The value to add up is not an argument.
    #[error("{name}: expected the name of an argument, whose values are added up")]
    ValueOfKey {
        /// The key.
        name: String,
    },
    /// An event that begins or ends a span does not have the key by which they are matched.
    #[error(
        "{event} has no argument {name:?}: the events that begin and end a span must have the key; all events have tid and pid"
    )]
    NoSpanKey {
        /// The event.
        event: String,
        /// The key.
        name: String,
    },
    /// The event that begins or ends a span does not have the argument by which spans are grouped.
    #[error("{name}: the event that {} the span has no argument {argument:?}", if *.of_end { "ends" } else { "begins" })]
    NoGroupArgument {
        /// The key: an event's name, and the argument's.
        name: String,
        /// Whether the event is that which ends the span.
        of_end: bool,
        /// The argument.
        argument: String,
    },
    /// A filter cannot be understood, or no event has its names.
    #[error("filter {text:?}: {error}")]
    Filter {
        /// The filter.
        text: String,
        /// The error, and its position.
        error: ExprError,
    },
    /// A filter reads memory of the traced program, which a trace does not have.
    #[error("filter {text:?}: memory of the traced program can be read only while recording")]
    FilterReadsMemory {
        /// The filter.
        text: String,
    },
    /// Intervals are too short for the length of the trace.
    #[error("{intervals} intervals are more than {most}")]
    TooManyIntervals {
        /// Requested number.
        intervals: u64,
        /// Maximum number.
        most: u64,
    },
    /// Spans are in too many groups to be compared.
    #[error(
        "more than {most} groups of spans in {slices} slices: choose keys with fewer values, such as the shape of a string (query:shape)"
    )]
    TooManySpanGroups {
        /// Maximum number.
        most: usize,
        /// In how many slices of time.
        slices: usize,
    },
    /// A part of a stream is requested in percent.
    #[error("the length of a stream is not known before its end: give times, FROM,TO")]
    PartOfStream,
    /// A part of two recordings is requested by times.
    #[error("the clocks of two recordings differ: expected a part of each, such as 10%-20%")]
    TwoClocks,
    /// Times since another line are requested beside spans, with only some of the events.
    #[error("with spans, times since another line need all events, but only some are selected")]
    TimesBesideSpans,
    /// The trace's clock cannot be converted to the time of day.
    #[error("the trace has no times of day, which tod needs")]
    NoTimeOfDay,
    /// A part of the trace is requested by times of day, and its clock cannot be converted.
    #[error(
        "the trace has no times of day: expected times of its clock, or a part of it such as 10%-20%"
    )]
    NoDays,
}

impl QuestionError {
    /// No event that is selected has an argument of this name; see [`NoArgument`](Self::NoArgument).
    pub fn no_argument(name: &str, known: String, fields: &[&'static str]) -> Self {
        Self::NoArgument {
            name: name.to_owned(),
            known,
            fields: fields.to_vec(),
        }
    }
}

fn or<'a>(names: &'a str, none: &'a str) -> &'a str {
    if names.is_empty() { none } else { names }
}

fn spans(known: &str) -> String {
    match known {
        "" => "the names of its probes form no spans".to_owned(),
        known => format!("it has: {known}"),
    }
}

fn or_fields(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        names => format!("; fields are: {}", names.join(", ")),
    }
}
