//! The spans of a stream, matched while it is written.
//!
//! A window is what is shown at once; spans are matched by the same code as those of files ([`RowWalk`](super::row_walk::RowWalk)).

use usdtrec_format::{Missing, Value};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::SpanOverlap;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::events::stream::SpanTotals;
use usdtrec_trace::process::hit_names::HitNames;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;

use crate::rows::joined_windows::RowsAcross;
use crate::rows::row_sink::{CountedRows, RowSink};
use crate::rows::row_walk::SpanRowQuestion;
use crate::rows::row_window::{RowSource, RowWorker};
use crate::rows::window_rows::WindowRows;
use crate::spans::asked_keys::asked_keys;
use crate::spans::common_integers::IdWatch;
use crate::spans::key::SpanKey;
use crate::spans::pair::{Pair, filter_of_pairs};
use crate::spans::pair_pauses::PairPauses;
use crate::spans::role::Role;
use crate::spans::stream_pairs::ChangedPairs;
use crate::stats::keys::dictionary::Dictionary;

/// Maximum number of open spans. Each takes the memory of the values of its begin.
const MAX_OPEN: usize = 1 << 16;

/// The spans of a stream.
#[derive(Debug)]
pub struct SpanStream {
    question: SpanRowQuestion,
    selection: EventSelection,
    source: RowSource,
    /// The pairs of probes that begin and end spans.
    pub pairs: Vec<Pair>,
    pauses: PairPauses,
    /// Number of events that the session had when pairs were last looked for.
    events: usize,
    window: WindowRows,
    /// Latest time of all samples so far.
    latest: u64,
    /// The same of the windows before.
    taken: u64,
    across: RowsAcross,
    totals: SpanTotals,
    /// Finds out whether spans overlap that are matched by the thread.
    ids: IdWatch,
}

impl SpanStream {
    /// # Errors
    /// [`ReportError::Question`] if the trace does not have what is requested. A trace without events may get them later.
    pub fn new(
        session: &TraceSession,
        selection: &EventSelection,
        question: SpanRowQuestion,
    ) -> Result<Self, ReportError> {
        let filter = filter_of_pairs(&[], &EventSelection::default(), session)?;
        let mut stream = Self {
            across: RowsAcross::of_stream(filter.time(), MAX_OPEN),
            source: RowSource {
                filter,
                roles: Vec::new(),
                keys: Vec::new(),
                rows: Rows::new(session, |_| true),
                dictionary: Dictionary::hashing(),
                events: false,
                stacks: false,
                unknown: Value::Missing(Missing::Operand("site not known".to_owned())),
            },
            question,
            selection: selection.clone(),
            pairs: Vec::new(),
            pauses: PairPauses::default(),
            events: 0,
            window: WindowRows::default(),
            latest: 0,
            taken: 0,
            totals: SpanTotals::default(),
            ids: IdWatch::default(),
        };
        stream.add_events(session)?;
        Ok(stream)
    }

    /// Adds the spans of events that were added to the stream. Spans that are open are not affected.
    ///
    /// # Errors
    /// As those of [`new`](Self::new).
    pub fn add_events(&mut self, session: &TraceSession) -> Result<(), ReportError> {
        let may_come = self.events > 0 || has_no_probes(session);
        self.events = session.events().events.len();
        let mut found: Vec<Pair> = Vec::new();
        for span in &self.question.spans {
            match Pair::asked(span, session) {
                Ok(pairs) => {
                    let new = pairs.into_iter().filter(|pair| !found.contains(pair));
                    let new: Vec<Pair> = new.collect();
                    found.extend(new);
                }
                // It may come later, and others are there.
                Err(ReportError::Question(
                    QuestionError::NoSpan { .. } | QuestionError::NoEvent { .. },
                )) if may_come => {}
                Err(error) => return Err(error),
            }
        }
        self.source.rows = Rows::new(session, |_| true);
        let changed = ChangedPairs::take(&mut self.pairs, found);
        if !changed.is_empty() {
            let (names, rows) = (&self.question.key, &self.source.rows);
            let keys = asked_keys(names, &changed.pairs, session, rows)?;
            changed.put_keys(keys, &mut self.source.keys);
            self.ids = self.watch(session);
        }
        self.pauses = PairPauses::new(session, &self.pairs);
        self.across.set_pairs(&self.pairs, session);
        self.across.set_pauses(self.pauses.clone());
        self.source.roles = Role::from_pairs(&self.pairs, self.events);
        self.set_filter(session)
    }

    /// Watches pairs that are matched by the thread, from now on.
    fn watch(&self, session: &TraceSession) -> IdWatch {
        let keys = self.pairs.iter().zip(&self.source.keys);
        let by_thread = keys
            .filter(|(_, key)| self.question.key.is_empty() && matches!(key, SpanKey::Thread(_)));
        let by_thread: Vec<&Pair> = by_thread.map(|(pair, _)| pair).collect();
        IdWatch::new(session, &self.pairs, |pair| by_thread.contains(&pair))
    }

    /// The spans that overlap on their threads, as far as the stream went.
    pub fn overlaps(&mut self) -> Vec<SpanOverlap> {
        self.ids.overlaps()
    }

    /// Finds anew what is selected: names of threads may have come.
    fn set_filter(&mut self, session: &TraceSession) -> Result<(), ReportError> {
        let selection = match self.pairs.is_empty() {
            true => &EventSelection::default(),
            false => &self.selection,
        };
        self.source.filter = filter_of_pairs(&self.pairs, selection, session)?;
        self.across.set_time(self.source.filter.time());
        Ok(())
    }

    /// Takes pauses of the stream that have become known.
    pub fn renew_pauses(&mut self, session: &TraceSession) {
        self.pauses.renew(session);
        self.across.set_pauses(self.pauses.clone());
    }

    /// A worker for the samples that are shown at once.
    pub fn worker<'s>(&self, session: &'s TraceSession) -> RowWorker<'s> {
        RowWorker::new(session, self.pauses.clone())
    }

    /// The names of the begins that are kept, whose numbers are replaced when others are forgotten.
    pub fn kept_names(&mut self) -> Vec<HitNames<'_>> {
        self.across.kept_names()
    }

    /// Whether an event begins or ends a span.
    pub fn has_role(&self, event: usize) -> bool {
        let roles = self.source.roles.get(event);
        roles.is_some_and(|roles| !roles.is_empty())
    }

    /// Begins a window.
    ///
    /// # Errors
    /// [`ReportError::Question`] if the trace has no longer what is selected.
    pub fn begin_window(&mut self, session: &TraceSession) -> Result<(), ReportError> {
        if !self.selection.comms.is_empty() {
            self.set_filter(session)?;
        }
        self.window.clear();
        self.source.begin_window(&mut self.window);
        Ok(())
    }

    /// Takes the next sample of the window. The begin of a span that a recorder has waited for is older than samples of earlier windows, and may be that of an
    /// outer span: what comes after it is matched across windows.
    ///
    /// # Errors
    /// [`ReportError::Write`] with the first error of the sink.
    #[inline]
    pub fn sample(
        &mut self,
        worker: &mut RowWorker<'_>,
        hit: Hit<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<(), ReportError> {
        let time = hit.sample.time;
        self.ids.take(&mut worker.resolver, hit);
        self.source.sample(worker, hit, &mut self.window);
        if time >= self.latest {
            self.latest = time;
            return Ok(());
        }
        self.end_window(worker, sink)?;
        self.window.clear();
        self.source.begin_window(&mut self.window);
        Ok(())
    }

    /// Ends the window: hands the spans that ended in it to a sink.
    ///
    /// # Errors
    /// [`ReportError::Write`] with the first error of the sink.
    pub fn end_window(
        &mut self,
        worker: &mut RowWorker<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<(), ReportError> {
        worker.end_window(&mut self.window);
        let mut counted = self.counted(sink);
        self.across
            .make_room(&self.window, self.taken, &mut counted)?;
        self.across.take(&mut self.window, &mut counted)?;
        self.taken = self.latest;
        self.totals.shown += counted.rows;
        self.totals.shorter += counted.shorter;
        Ok(())
    }

    /// Counts the rows that are asked for.
    fn counted<'a>(&self, sink: &'a mut dyn RowSink) -> CountedRows<'a> {
        CountedRows::new(sink, self.question.least, self.question.least_parts)
    }

    /// Ends the stream: hands the spans that have no end to the sink. Returns what was counted.
    ///
    /// # Errors
    /// [`ReportError::Write`] with the first error of the sink.
    pub fn end(self, sink: &mut dyn RowSink) -> Result<SpanTotals, ReportError> {
        let mut counted = self.counted(sink);
        let forgotten = self.across.finish(&mut counted)?;
        Ok(SpanTotals {
            shown: self.totals.shown + counted.rows,
            forgotten,
            ..self.totals
        })
    }
}

/// Whether a trace has no events but those about processes.
fn has_no_probes(session: &TraceSession) -> bool {
    session.events().events.iter().all(|event| event.is_dummy())
}

/// The filter of the samples that spans of a stream are made of.
pub fn stream_selection(selection: &EventSelection) -> EventSelection {
    EventSelection {
        time: selection.time.clone(),
        ..EventSelection::default()
    }
}
