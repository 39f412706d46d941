//! The spans whose arguments hits get, by the names of their arguments.

use usdtrec_format::schema::Argument;
use usdtrec_trace::added::added_argument::{AddedArgument, AddedPlace, ArgumentSource};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::event_name::short_name;

use crate::holders::FIRST_SPAN;
use crate::spans::pair::Pair;

/// The spans of all parts.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) parts: Vec<Part>,
}

/// Spans of one name: their arguments have that in front.
#[derive(Debug)]
pub(crate) struct Part {
    /// The name without a provider.
    pub(crate) name: String,
    pub(crate) pairs: Vec<Pair>,
}

/// An argument of the spans of a part.
#[derive(Debug)]
struct PartArgument {
    argument: Argument,
    sources: Vec<ArgumentSource>,
}

impl Parts {
    /// Adds the spans that a text names.
    pub(crate) fn add(&mut self, text: &str, session: &TraceSession) -> Result<(), ReportError> {
        // Of START..DONE, the arguments are those of START.
        let start = text.split_once("..").map(|(start, _)| start);
        for pair in Pair::asked(text, session)? {
            let name = bare(start.unwrap_or(&pair.name)).to_owned();
            let known = self.parts.iter_mut().find(|part| part.name == name);
            match known {
                Some(part) if part.pairs.contains(&pair) => {}
                Some(part) => part.pairs.push(pair),
                None => self.parts.push(Part {
                    name,
                    pairs: vec![pair],
                }),
            }
        }
        Ok(())
    }

    /// The number of parts with those of locks.
    pub(crate) const fn count(&self) -> usize {
        FIRST_SPAN + self.parts.len()
    }

    /// The arguments of each part.
    pub(crate) fn arguments(&self, session: &TraceSession) -> Vec<Vec<AddedArgument>> {
        let arguments = self.parts.iter().map(|part| part.arguments(session));
        let placed = arguments
            .enumerate()
            .map(|(at, arguments)| placed(FIRST_SPAN + at, arguments));
        placed.collect()
    }

    /// Those that the hits of an event get.
    pub(crate) fn arguments_of_event(
        &self,
        event: usize,
        of_parts: &[Vec<AddedArgument>],
    ) -> Vec<AddedArgument> {
        let parts = self.parts.iter().zip(of_parts);
        // What begins a span has its arguments already.
        let others = parts.filter(|(part, _)| !part.begins_at(event));
        others
            .flat_map(|(_, arguments)| arguments.clone())
            .collect()
    }
}

impl Part {
    /// Whether an event begins a span of it.
    fn begins_at(&self, event: usize) -> bool {
        self.pairs.iter().any(|pair| pair.starts.contains(&event))
    }

    /// Its arguments: those of all events that begin a span of it, each name once.
    fn arguments(&self, session: &TraceSession) -> Vec<PartArgument> {
        let mut all: Vec<PartArgument> = Vec::new();
        for &at in self.pairs.iter().flat_map(|pair| &pair.starts) {
            let own = session.events().events.get(at);
            let own = own.map_or(&[][..], |event| event.own_arguments());
            for (place, argument) in own.iter().enumerate() {
                let name = format!("{}.{}", self.name, argument.name);
                let source = ArgumentSource { event: at, place };
                let mut known = all.iter_mut();
                match known.find(|known| known.argument.name == name) {
                    // Of two arguments of one name, the first.
                    Some(known) if known.sources.iter().any(|known| known.event == at) => {}
                    Some(known) => known.sources.push(source),
                    None => all.push(PartArgument {
                        argument: Argument {
                            name,
                            ..argument.clone()
                        },
                        sources: vec![source],
                    }),
                }
            }
        }
        all
    }

    /// For each of its arguments, where it is in an event that begins a span of it.
    pub(crate) fn places(&self, event: usize, session: &TraceSession) -> Vec<Option<usize>> {
        let place = |argument: &PartArgument| {
            let mut sources = argument.sources.iter();
            let source = sources.find(|source| source.event == event)?;
            Some(source.place)
        };
        self.arguments(session).iter().map(place).collect()
    }
}

/// The arguments of a part, in their order.
fn placed(part: usize, arguments: Vec<PartArgument>) -> Vec<AddedArgument> {
    let arguments = arguments.into_iter().enumerate();
    let placed = arguments.map(
        |(index, PartArgument { argument, sources })| AddedArgument {
            argument,
            place: AddedPlace { part, index },
            sources,
        },
    );
    placed.collect()
}

/// A name without its provider.
fn bare(name: &str) -> &str {
    let short = short_name(name);
    short.split_once(':').map_or(short, |(_, bare)| bare)
}
