//! Which probes begin and end spans: by their names, or as the question says.

use usdtrec_format::spans::{self, NamedPair, SpanNameError};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::span_filter::SpanEvents;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::list::list;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::events::Event;

/// Events that begin a span, and those that end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Its name: `postgresql:query`.
    pub name: String,
    /// Indices of the events that begin it.
    pub starts: Vec<usize>,
    /// Indices of those that end it.
    pub dones: Vec<usize>,
    /// The argument, of the same process, that is the key of both; `None` for the thread.
    pub(crate) key: Option<&'static str>,
}

impl Pair {
    /// All pairs that are found by the names of events.
    pub(crate) fn find(session: &TraceSession, asked: impl Fn(usize) -> bool) -> Vec<Self> {
        let named = NamedEvents::new(session, asked);
        named.pairs(spans::pairs(&named.names))
    }

    /// All its events.
    pub(crate) fn events<'s>(&self, session: &'s TraceSession) -> impl Iterator<Item = &'s Event> {
        let events = self.starts.iter().chain(&self.dones);
        let events: Vec<&Event> = events
            .filter_map(|&event| session.events().events.get(event))
            .collect();
        events.into_iter()
    }

    /// The pairs of a question: `START..DONE`, or the name of one that is found by name, with globs.
    pub(crate) fn asked(text: &str, session: &TraceSession) -> Result<Vec<Self>, ReportError> {
        Self::asked_of(text, session, |_| true)
    }

    /// The same of the events that `of` says.
    pub(crate) fn asked_of(
        text: &str,
        session: &TraceSession,
        of: impl Fn(usize) -> bool,
    ) -> Result<Vec<Self>, ReportError> {
        let named = NamedEvents::new(session, of);
        match spans::asked_pairs(text, &named.names) {
            Ok(pairs) => Ok(named.pairs(pairs)),
            Err(SpanNameError::Pattern(error)) => Err(error.into()),
            Err(SpanNameError::NoEvent(event)) => Err(QuestionError::NoEvent {
                event: format!("{event:?}"),
                known: list(named.names.iter().copied()),
            }
            .into()),
            Err(SpanNameError::NoSpan { name, known }) => Err(QuestionError::NoSpan {
                span: name,
                known: list(known.iter().map(|name| &**name)),
            }
            .into()),
        }
    }
}

/// Names of events that are no dummies, and their indices.
struct NamedEvents<'s> {
    names: Vec<&'s str>,
    indices: Vec<usize>,
}

impl<'s> NamedEvents<'s> {
    /// The events for which `of` is true.
    fn new(session: &'s TraceSession, of: impl Fn(usize) -> bool) -> Self {
        let events = session.events().events.iter().enumerate();
        let events = events.filter(|(at, event)| !event.is_dummy() && of(*at));
        let (indices, names) = events.map(|(at, event)| (at, &*event.name)).unzip();
        Self { names, indices }
    }

    /// Pairs of names as pairs of events.
    fn pairs(&self, named: Vec<NamedPair>) -> Vec<Pair> {
        let of = |found: &[usize]| {
            let found = found.iter();
            found
                .filter_map(|&at| self.indices.get(at).copied())
                .collect()
        };
        let pairs = named.into_iter().map(|pair| Pair {
            starts: of(&pair.starts),
            dones: of(&pair.dones),
            name: pair.name,
            key: pair.key,
        });
        pairs.collect()
    }
}

/// The filter of spans that are requested: an expression may be about what ends them, too.
pub(crate) fn filter_of_pairs(
    pairs: &[Pair],
    selection: &EventSelection,
    session: &TraceSession,
) -> Result<SampleFilter, ReportError> {
    let of = |side: fn(&Pair) -> &Vec<usize>| pairs.iter().flat_map(side).copied();
    let starts: Vec<usize> = of(|pair| &pair.starts).collect();
    let dones: Vec<usize> = of(|pair| &pair.dones).collect();
    let ends = SpanEvents {
        starts: &starts,
        dones: &dones,
    };
    SampleFilter::of_spans(selection, session, ends)
}
