//! The spans whose arguments hits get, by the names of their arguments.

use usdtrec_format::schema::Argument;
use usdtrec_trace::added::added_argument::{AddedArgument, AddedPlace, ArgumentSource};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::event_name::{bare_name, short_name};

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

impl Parts {
    /// Adds the spans that a text names.
    pub(crate) fn add(&mut self, text: &str, session: &TraceSession) -> Result<(), ReportError> {
        // Of START..DONE, the arguments are those of START.
        let start = text.split_once("..").map(|(start, _)| start);
        for pair in Pair::asked(text, session)? {
            let name = bare_name(short_name(start.unwrap_or(&pair.name))).to_owned();
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
        let parts = self.parts.iter().enumerate();
        let arguments = parts.map(|(at, part)| part.arguments(FIRST_SPAN + at, session));
        arguments.collect()
    }

    /// The arguments that the hits of an event get.
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

    /// Its arguments: those of all events that begin a span of it, each name once. `part` is its number.
    fn arguments(&self, part: usize, session: &TraceSession) -> Vec<AddedArgument> {
        let mut all: Vec<AddedArgument> = Vec::new();
        for &at in self.pairs.iter().flat_map(|pair| &pair.starts) {
            let own = session.events().events.get(at);
            let own = own.map_or(&[][..], |event| event.own_arguments());
            for (place, argument) in own.iter().enumerate() {
                let name = format!("{}.{}", self.name, argument.name);
                let source = ArgumentSource { event: at, place };
                let index = all.len();
                let mut known = all.iter_mut();
                match known.find(|known| known.argument.name == name) {
                    // Of two arguments of one name, the first.
                    Some(known) if known.sources.iter().any(|known| known.event == at) => {}
                    Some(known) => known.sources.push(source),
                    None => all.push(AddedArgument {
                        argument: Argument {
                            name,
                            ..argument.clone()
                        },
                        place: AddedPlace { part, index },
                        sources: vec![source],
                    }),
                }
            }
        }
        all
    }
}

/// For each argument of a part, where it is in an event that begins a span of it.
pub(crate) fn places(of_part: &[AddedArgument], event: usize) -> Vec<Option<usize>> {
    let place = |argument: &AddedArgument| {
        let mut sources = argument.sources.iter();
        let source = sources.find(|source| source.event == event)?;
        Some(source.place)
    };
    of_part.iter().map(place).collect()
}
