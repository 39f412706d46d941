//! The walk over a trace that makes rows.

use usdtrec_format::{LeastParts, Missing, Value};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::order::{Window, in_order};
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::pool::Pool;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;

use crate::rows::joined_windows::RowsAcross;
use crate::rows::row_sink::{CountedRows, RowSink};
use crate::rows::row_window::{RowSource, RowWorker};
use crate::rows::window_rows::WindowRows;
use crate::spans::asked_keys::asked_keys;
use crate::spans::options::refuse_parts;
use crate::spans::pair::{Pair, filter_of_pairs};
use crate::spans::pair_pauses::PairPauses;
use crate::spans::role::Role;
use crate::stats::keys::dictionary::Dictionary;

/// Which spans are rows, without events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanRowQuestion {
    /// `START..DONE`, or names of those that are found by the names of probes, with globs.
    pub spans: Vec<String>,
    /// Keys by which begins and ends are matched; empty: what is known of them.
    pub key: Vec<String>,
    /// Duration of the shortest ones, ns; with 0, those without an end are rows, too.
    pub least: u64,
    /// The least times of their parts.
    pub least_parts: LeastParts,
}

impl SpanRowQuestion {
    /// The spans of the events that `of` says.
    ///
    /// # Errors
    /// [`ReportError::Question`] if there are none of a name.
    pub(crate) fn pairs(
        &self,
        session: &TraceSession,
        of: impl Fn(usize) -> bool,
    ) -> Result<Vec<Pair>, ReportError> {
        asked_pairs(&self.spans, session, of)
    }
}

/// The spans that are asked for, of the events that `of` says.
///
/// # Errors
/// [`ReportError::Question`] if there are none of a name.
pub(crate) fn asked_pairs(
    spans: &[String],
    session: &TraceSession,
    of: impl Fn(usize) -> bool,
) -> Result<Vec<Pair>, ReportError> {
    let mut pairs: Vec<Pair> = Vec::new();
    for text in spans {
        for pair in Pair::asked_of(text, session, &of)? {
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    Ok(pairs)
}

/// Which rows are wanted.
#[derive(Clone, Debug, Default)]
pub struct RowQuestion {
    /// Spans: `START..DONE`, or names of those that are found by the names of probes, with globs. Empty: all events, and the spans that are found
    /// by the names of probes. Else these spans alone.
    pub spans: Vec<String>,
    /// Keys by which begins and ends are matched; empty: what is known of them.
    pub key: Vec<String>,
    /// Whether rows have stacks.
    pub stacks: bool,
}

impl From<&SpanRowQuestion> for RowQuestion {
    fn from(question: &SpanRowQuestion) -> Self {
        Self {
            spans: question.spans.clone(),
            key: question.key.clone(),
            stacks: false,
        }
    }
}

/// A walk over the rows of a trace.
#[derive(Debug)]
pub struct RowWalk<'s> {
    session: &'s TraceSession,
    source: RowSource,
    /// The pairs of probes that begin and end spans.
    pub pairs: Vec<Pair>,
    /// Spans that are shorter, and those without an end, are left out if it is more than 0, ns.
    least: u64,
    /// The least times of their parts.
    least_parts: LeastParts,
}

impl<'s> RowWalk<'s> {
    /// # Errors
    /// [`ReportError::Question`] if the trace does not have what is requested.
    pub fn new(
        session: &'s TraceSession,
        selection: &EventSelection,
        question: &RowQuestion,
    ) -> Result<Self, ReportError> {
        let mut pairs = asked_pairs(&question.spans, session, |_| true)?;
        let filter = if question.spans.is_empty() {
            let filter = SampleFilter::new(selection, session)?;
            pairs = Pair::find(session, |event| filter.event(event));
            filter
        } else {
            filter_of_pairs(&pairs, selection, session)?
        };
        let roles = Role::from_pairs(&pairs, session.events().events.len());
        let of_pair = |event: usize| roles.get(event).is_some_and(|roles| !roles.is_empty());
        let rows = Rows::new(session, of_pair);
        Ok(Self {
            session,
            source: RowSource {
                filter,
                keys: asked_keys(&question.key, &pairs, session, &rows)?,
                roles,
                rows,
                dictionary: Dictionary::hashing(),
                events: question.spans.is_empty(),
                stacks: question.stacks,
                unknown: Value::Missing(Missing::Operand("site not known".to_owned())),
            },
            pairs,
            least: 0,
            least_parts: LeastParts::default(),
        })
    }

    /// Leaves out spans of less than this duration, and those without an end, ns; with 0, none. The same of those with less of a part.
    ///
    /// # Errors
    /// [`ReportError::Question`] if a part is asked for, and the trace does not say how long threads have waited.
    pub fn at_least(self, least: u64, least_parts: LeastParts) -> Result<Self, ReportError> {
        refuse_parts(self.session, least_parts.first())?;
        Ok(Self {
            least,
            least_parts,
            ..self
        })
    }

    /// Whether hits are rows; else spans alone.
    pub const fn has_events(&self) -> bool {
        self.source.events
    }

    /// Whether hits of an event are rows.
    pub fn is_row(&self, event: usize) -> bool {
        self.source.events && self.source.filter.event(event)
    }

    /// Whether an event may be in a row.
    pub fn has_event(&self, event: usize) -> bool {
        let RowSource { events, filter, .. } = &self.source;
        let roles = self.source.roles.get(event);
        *events && filter.event(event) || roles.is_some_and(|roles| !roles.is_empty())
    }

    /// Hands all rows to a sink. Returns the number of rows.
    ///
    /// # Errors
    /// [`ReportError::Write`] with the first error of the sink.
    pub fn run(&self, sink: &mut dyn RowSink, notices: &mut Notices) -> Result<u64, ReportError> {
        let source = &self.source;
        notices.set_paused(self.session, &source.filter);
        // Ends of a filtered-out begin are still its ends: only then does each other one find its own.
        let relaxed = source.filter.relaxed(|event| self.has_event(event));
        let relaxed = match self.session.is_whole() {
            true => relaxed.of_all_times(),
            false => relaxed,
        };
        let pauses = PairPauses::new(self.session, &self.pairs);
        let workers = Pool::default();
        let spare = Pool::<WindowRows>::default();
        let show = |window: Window<'_>| {
            let worker = workers.take();
            let mut worker = worker.unwrap_or_else(|| RowWorker::new(self.session, pauses.clone()));
            let mut rows = spare.take().unwrap_or_default();
            // Here and not where they were taken: one thread alone takes all rows.
            rows.clear();
            source.window(&mut worker, window, &mut rows);
            workers.put(worker);
            rows
        };
        let mut counted = CountedRows::new(sink, self.least, self.least_parts);
        let time = source.filter.time();
        let mut across = RowsAcross::new(time, &self.pairs, self.session, pauses.clone());
        let outcome = in_order(self.session, &relaxed, None, show, |mut rows| {
            across.take(&mut rows, &mut counted)?;
            spare.put(rows);
            Ok::<_, ReportError>(())
        })?;
        notices.unknown += across.unknown;
        notices.add(outcome);
        let forgotten = across.finish(&mut counted)?;
        notices.add_forgotten(forgotten);
        Ok(counted.rows)
    }
}
