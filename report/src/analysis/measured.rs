//! What a histogram or a heat map is of.

use crate::stats::keys::key::Key;
use crate::stats::keys::value::KeyValue;
use crate::trace::form::Form;

/// What the numbers are of.
#[derive(Clone, Debug)]
pub(crate) enum MeasuredSubject {
    /// An argument of a probe.
    Argument {
        /// The probe's event.
        event: String,
        /// As it was requested.
        name: String,
        form: Form,
    },
    /// The durations of spans, ns.
    Spans(SpanGroup),
}

/// The spans of a pair of probes, or some of them.
#[derive(Clone, Debug)]
pub(crate) struct SpanGroup {
    /// Name of the span.
    pub(crate) span: String,
    /// The keys of the groups, as requested.
    pub(crate) by: Vec<String>,
    pub(crate) part: SpanPart,
}

/// Which of the spans of a pair.
#[derive(Clone, Debug)]
pub(crate) enum SpanPart {
    All,
    /// The group with these values of keys.
    Group {
        keys: Vec<Key>,
        values: Vec<KeyValue>,
    },
    /// The rest: everything in groups that are not shown, with their number if it is known.
    Others {
        groups: Option<usize>,
    },
}

/// How the numbers of a histogram are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Division {
    /// One bucket a value.
    Values,
    /// Buckets of one width.
    Linear,
    /// Buckets that are powers of two.
    Log2,
    /// The most frequent texts.
    Texts,
}
