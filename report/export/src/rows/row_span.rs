//! A span of a trace.

use usdtrec_analysis::rows::row_sink::SpanFate;

use crate::rows::row_event::RowEvent;

/// A span.
#[derive(Clone, Copy, Debug)]
pub struct RowSpan<'r> {
    pub(crate) name: &'r str,
    pub(crate) fate: SpanFate,
    pub(crate) begin: RowEvent<'r>,
    pub(crate) end: Option<RowSpanEnd<'r>>,
}

/// How a span ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowSpanEnd<'r> {
    pub(crate) event: RowEvent<'r>,
    pub(crate) duration: u64,
    pub(crate) own: u64,
}

impl<'r> RowSpan<'r> {
    /// Its name, as `report --span` prints it: `postgresql:query`.
    #[must_use]
    pub const fn name(&self) -> &'r str {
        self.name
    }

    /// Whether it ended.
    #[must_use]
    pub const fn fate(&self) -> SpanFate {
        self.fate
    }

    /// The event that begins it, with its arguments, thread and stack.
    #[must_use]
    pub const fn begin(&self) -> RowEvent<'r> {
        self.begin
    }

    /// The event that ends it; `None` if it did not end.
    #[must_use]
    pub fn end(&self) -> Option<RowEvent<'r>> {
        Some(self.end?.event)
    }

    /// Length, ns; `None` if it did not end.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        Some(self.end?.duration)
    }

    /// Time in it and in no span of the same name within it, ns; `None` if it did not end.
    #[must_use]
    pub fn self_ns(&self) -> Option<u64> {
        Some(self.end?.own)
    }
}
