//! What the hits of an event are to spans that programs match.

use usdtrec_format::{RawField, RawString};

/// Maximum number of arguments that are compared.
pub(super) const MAX_MARKS: u32 = 4;

/// What the hits of an event are to spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct SpanRole {
    /// Name of the span.
    pub name: String,
    /// Number of the span: the first event that begins it.
    pub number: u32,
    /// Whether they begin it; else they end it.
    pub begins: bool,
    /// Which task is part of the key.
    pub task: SpanTask,
    /// The argument whose value is part of the key.
    pub value: Option<KeyValue>,
    /// The arguments that begin and end have in common and that are compared.
    pub agreed: Vec<MarkField>,
    /// Whether they must agree; else it is counted how many ends are equal to an older begin than the newest, which they take.
    pub must_agree: bool,
    /// Whether open begins of a key are given up where a later one cannot be kept, as statements that fail have no end; else only the later one is not kept.
    pub gives_up: bool,
    /// The places of the arguments by which they are matched.
    pub places: Vec<usize>,
    /// Where spans are aggregated: the fields that are no keys of groups.
    pub others: Vec<RawField>,
}

/// Which task is part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) enum SpanTask {
    Thread,
    Process,
    /// Begin and end may be in different processes.
    Any,
}

/// An argument whose value is part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct KeyValue {
    /// Its place among the arguments that are captured.
    pub place: usize,
    /// Size of its numbers, bytes.
    pub bytes: u8,
    pub signed: bool,
}

impl SpanRole {
    /// Whether the thread alone is the key, so that there are no more keys than threads.
    pub(super) fn is_of_thread(&self) -> bool {
        self.task == SpanTask::Thread && self.value.is_none()
    }

    /// Whether programs of several threads may want an element.
    pub(super) fn is_shared(&self) -> bool {
        self.task != SpanTask::Thread
    }
}

/// Where an argument is that must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) enum MarkField {
    /// A number of so many bytes.
    Number {
        field: RawField,
        bytes: u8,
        signed: bool,
    },
    /// A string.
    String(RawString),
    /// A string that is not read.
    Unknown,
}
