//! What takes the rows of a trace.

use std::io;

use crate::rows::hit_row::RowHit;

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

impl SpanRow<'_> {
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
}

/// Takes rows, one after the other.
pub trait RowSink {
    /// Takes an event. Events come in the order of time.
    fn event(&mut self, hit: RowHit<'_>, side: RowSide) -> io::Result<()>;

    /// Takes a span. Spans come in the order of the hits that end them; those without an end come when that is known, and at the end of the
    /// trace those that are open, in the order of their begins. Those that pauses ended come with these, or in a stream after the next hit of their key.
    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()>;
}
