//! What a histogram or a heat map is of.

use usdtrec_format::TimePart;
use usdtrec_trace::form::Form;

use crate::stats::keys::key::Key;
use crate::stats::keys::value::KeyValue;

/// What the numbers are of.
#[derive(Clone, Debug)]
pub enum MeasuredSubject {
    /// An argument of a probe.
    Argument {
        /// The probe's event.
        event: String,
        /// As it was requested.
        name: String,
        /// How its values are shown.
        form: Form,
    },
    /// The durations of spans, ns.
    Spans(SpanGroup),
}

/// The spans of a pair of probes, or some of them.
#[derive(Clone, Debug)]
pub struct SpanGroup {
    /// Name of the span.
    pub span: String,
    /// The keys of the groups, as requested.
    pub by: Vec<String>,
    /// Which part of their time is measured; `None` for their duration.
    pub measured: Option<TimePart>,
    /// Which of them.
    pub part: SpanPart,
}

/// Which of the spans of a pair.
#[derive(Clone, Debug)]
pub enum SpanPart {
    /// All of them.
    All,
    /// The group with these values of keys.
    Group {
        /// The keys.
        keys: Vec<Key>,
        /// The value of each key.
        values: Vec<KeyValue>,
    },
    /// The rest: everything in groups that are not shown, with their number if it is known.
    Others {
        /// Number of these groups.
        groups: Option<usize>,
    },
}

/// How the numbers of a histogram are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// One bucket a value.
    Values,
    /// Buckets of one width.
    Linear,
    /// Buckets that are powers of two.
    Log2,
    /// The most frequent strings.
    Strings,
}
