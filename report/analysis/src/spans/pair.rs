//! Which probes begin and end spans: by their names, or as the question says.

use usdtrec_format::Pattern;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::span_filter::SpanEvents;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::list::list;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::event_name::short_name as short;
use usdtrec_trace::session::events::Event;

use crate::spans::names;

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
        let events = session.events().events.iter().enumerate();
        let events = events.filter(|(at, event)| !event.is_dummy() && asked(*at));
        let (places, names): (Vec<usize>, Vec<&str>) =
            events.map(|(at, event)| (at, &*event.name)).unzip();
        let of = |found: &[usize]| {
            found
                .iter()
                .filter_map(|&at| places.get(at).copied())
                .collect()
        };
        let pairs = names::pairs(&names).into_iter().map(|pair| Self {
            starts: of(&pair.starts),
            dones: of(&pair.dones),
            name: pair.name,
            key: pair.key,
        });
        pairs.collect()
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
        if let Some((start, done)) = text.split_once("..") {
            let (starts, dones) = (events(start, session)?, events(done, session)?);
            let name = format!("{}..{}", short(start), short(done));
            return Ok(vec![Self {
                name,
                starts,
                dones,
                key: None,
            }]);
        }
        let found = Self::find(session, |_| true);
        let pattern = Pattern::parse(text)?;
        let fits = |pair: &Self| {
            let (_, bare) = pair.name.split_once(':').unwrap_or(("", &pair.name));
            bare == text
                || pair.name == short(text)
                || pattern.matches_event(&format!("sdt_{}", pair.name))
        };
        let asked: Vec<Self> = found.iter().filter(|pair| fits(pair)).cloned().collect();
        if !asked.is_empty() {
            return Ok(asked);
        }
        Err(QuestionError::NoSpan {
            span: text.to_owned(),
            known: list(found.iter().map(|pair| &*pair.name)),
        }
        .into())
    }
}

/// The events of a name or pattern.
fn events(text: &str, session: &TraceSession) -> Result<Vec<usize>, ReportError> {
    let pattern = Pattern::parse(text)?;
    let events = session.events().events.iter().enumerate();
    let fits = |name: &str| {
        let (_, bare) = name.split_once(':').unwrap_or(("", name));
        pattern.matches_event(name) || name == text || bare == text
    };
    let found: Vec<usize> = events
        .filter(|(_, event)| !event.is_dummy() && fits(&event.name))
        .map(|(at, _)| at)
        .collect();
    if found.is_empty() {
        let events = session.events().events.iter();
        let known = list(
            events
                .filter(|event| !event.is_dummy())
                .map(|event| &*event.name),
        );
        return Err(QuestionError::NoEvent {
            event: format!("{text:?}"),
            known,
        }
        .into());
    }
    Ok(found)
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
