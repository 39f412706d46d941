//! Reading the rows of a trace.

use std::io;
use std::ops::ControlFlow;

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanRow};
use usdtrec_analysis::rows::row_walk::{RowQuestion, RowWalk};
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::session::TraceSession;

use crate::rows::row_event::{RowContext, RowEvent};
use crate::rows::row_span::RowSpan;

/// Reads the selected events and spans of a trace.
#[derive(Debug)]
pub struct RowReader<'s> {
    session: &'s TraceSession,
    walk: RowWalk<'s>,
}

/// An event or a span.
#[derive(Clone, Copy, Debug)]
pub enum TraceRow<'r> {
    /// An event. Events come in the order of time.
    Event(RowEvent<'r>),
    /// A span. Spans come when they end, before the event that ends them. One that did not end comes when that is known: when one around it
    /// ends, or at the end of the trace.
    Span(RowSpan<'r>),
}

/// Hands rows to a function.
struct EachRow<'r, F> {
    context: RowContext<'r>,
    pairs: &'r [Pair],
    each: F,
    is_ended: bool,
}

impl<'s> RowReader<'s> {
    /// A reader of a trace; nothing is read yet.
    ///
    /// # Errors
    /// [`ReportError::Question`] if the trace does not have what is requested.
    pub fn new(
        session: &'s TraceSession,
        selection: &EventSelection,
        question: &RowQuestion,
    ) -> Result<Self, ReportError> {
        Ok(Self {
            session,
            walk: RowWalk::new(session, selection, question)?,
        })
    }

    /// Names of the kinds of spans that rows may have.
    pub fn span_names(&self) -> impl Iterator<Item = &str> {
        self.walk.pairs.iter().map(|pair| &*pair.name)
    }

    /// Calls `each` with each row until it breaks, on this thread. Gives what is wrong with the trace; after a break, what was known of it when the trace was opened.
    ///
    /// # Errors
    /// The error of reading, if the trace cannot be read on. Damage of a part of it is among the notices.
    pub fn read(
        &self,
        each: impl FnMut(TraceRow<'_>) -> ControlFlow<()>,
    ) -> Result<Notices, ReportError> {
        let mut notices = Notices::new(self.session);
        let mut sink = EachRow {
            context: RowContext::new(self.session),
            pairs: &self.walk.pairs,
            each,
            is_ended: false,
        };
        let walked = self.walk.run(&mut sink, &mut notices);
        match sink.is_ended {
            true => Ok(Notices::new(self.session)),
            false => walked.map(|_| notices),
        }
    }
}

impl<F: FnMut(TraceRow<'_>) -> ControlFlow<()>> EachRow<'_, F> {
    /// The error ends the walk.
    fn note(&mut self, flow: ControlFlow<()>) -> io::Result<()> {
        self.is_ended |= flow.is_break();
        match flow {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}

impl<F: FnMut(TraceRow<'_>) -> ControlFlow<()>> RowSink for EachRow<'_, F> {
    fn event(&mut self, hit: RowHit<'_>, side: RowSide) -> io::Result<()> {
        let Some(mut event) = RowEvent::new(&self.context, hit) else {
            return Ok(());
        };
        event.has_no_begin = side == RowSide::NoBegin;
        let flow = (self.each)(TraceRow::Event(event));
        self.note(flow)
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        let pair = self.pairs.get(span.pair);
        let begin = RowEvent::new(&self.context, span.begin);
        let (Some(pair), Some(begin)) = (pair, begin) else {
            return Ok(());
        };
        let flow = (self.each)(TraceRow::Span(RowSpan {
            name: &pair.name,
            row: &span,
            begin,
            end: span
                .end
                .and_then(|close| RowEvent::new(&self.context, close.hit)),
        }));
        self.note(flow)
    }
}
