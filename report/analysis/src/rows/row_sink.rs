//! What takes the rows of a trace.

use std::io;

use usdtrec_format::{LeastParts, NoTimeParts, NoWaits, TimeParts};

use crate::rows::hit_row::RowHit;
use crate::spans::spent_time::SpentTime;

/// What a hit is to the spans of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSide {
    /// Its event begins and ends no span, or the hit has no value by which spans are matched.
    Apart,
    /// It begins or ends a span that the sink gets, too.
    OfSpan,
    /// It ends a span whose begin is not known.
    NoBegin,
}

/// What became of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanFate {
    /// It ended.
    Ended,
    /// It has no end: a span around it ended without it, or the next one began.
    Unfinished,
    /// It was open when a pause of its probes began, in which hits were not recorded.
    Paused,
    /// It is open at the end of the trace.
    Open,
}

impl SpanFate {
    /// The fate in a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Unfinished => "unfinished",
            Self::Paused => "paused",
            Self::Open => "open",
        }
    }
}

/// A span.
#[derive(Clone, Copy, Debug)]
pub struct SpanRow<'a> {
    /// Index of its pair of probes.
    pub pair: usize,
    /// How it ended.
    pub fate: SpanFate,
    /// The hit that begins it.
    pub begin: RowHit<'a>,
    /// The hit that ends it.
    pub end: Option<SpanClose<'a>>,
    /// Of an unfinished one, when it ended at the latest; of a paused one, when the pause began, ns.
    pub until: Option<u64>,
}

impl<'a> SpanRow<'a> {
    /// The hit that it is shown as: the one that ends it, or without one the begin.
    #[must_use]
    pub fn last(&self) -> RowHit<'a> {
        self.end.map_or(self.begin, |end| end.hit)
    }

    /// What it was spent on; else why that is not known.
    pub fn parts(&self) -> Result<TimeParts, NoTimeParts> {
        match (self.end, self.begin.row.process.thread_waits) {
            (Some(end), _) => end.spent.whole,
            (None, Err(NoWaits::NotRecorded)) => Err(NoTimeParts::NotRecorded),
            (None, _) => Err(NoTimeParts::OneSide),
        }
    }

    /// When it ended, or at the latest, or when it was last known to be open, ns; `None` if it was open at the end of the trace.
    pub fn end_time(&self) -> Option<u64> {
        self.end.map(|end| end.hit.row.time).or(self.until)
    }
}

/// How a span ended.
#[derive(Clone, Copy, Debug)]
pub struct SpanClose<'a> {
    /// The hit that ends the span.
    pub hit: RowHit<'a>,
    /// ns.
    pub duration: u64,
    /// What of the duration is in no span of the same pair within this one, ns.
    pub own: u64,
    /// What the duration was spent on.
    pub spent: SpentTime,
}

/// Takes rows, one after the other.
pub trait RowSink {
    /// Takes an event. Events come in the order of time.
    fn event(&mut self, hit: RowHit<'_>, side: RowSide) -> io::Result<()>;

    /// Takes a span. Spans come in the order of the hits that end them; those without an end come when that is known, and at the end of the
    /// trace those that are open, in the order of their begins. Those that pauses ended come with these, or in a stream after the next hit of their key.
    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()>;
}

/// Hands rows to a sink, and counts them.
pub(crate) struct CountedRows<'a> {
    pub(crate) sink: &'a mut dyn RowSink,
    /// Rows that the sink took.
    pub(crate) rows: u64,
    /// Spans that ended and are shorter, or have less of a part of their time.
    pub(crate) shorter: u64,
    /// The duration of the shortest spans that it takes, ns. If it is more than 0, spans without an end are left out, too.
    pub(crate) least: u64,
    /// The same of the parts of their time.
    pub(crate) least_parts: LeastParts,
}

impl<'a> CountedRows<'a> {
    /// Counts from 0.
    pub(crate) fn new(sink: &'a mut dyn RowSink, least: u64, least_parts: LeastParts) -> Self {
        Self {
            sink,
            rows: 0,
            shorter: 0,
            least,
            least_parts,
        }
    }
}

impl RowSink for CountedRows<'_> {
    fn event(&mut self, hit: RowHit<'_>, side: RowSide) -> io::Result<()> {
        self.rows += 1;
        self.sink.event(hit, side)
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        let is_short = self.least > 0 && span.end.is_none_or(|end| end.duration < self.least);
        if is_short || !self.least_parts.has(span.parts()) {
            self.shorter += u64::from(span.end.is_some());
            return Ok(());
        }
        self.rows += 1;
        self.sink.span(span)
    }
}
