//! At which events functions are called and return, and what the hits of these say of the function.

use foldhash::HashSet;

use usdtrec_format::Value;
use usdtrec_format::perf::Sample;
use usdtrec_format::schema::{NamePart, ScriptCall};

use crate::calls::function::FunctionText;
use crate::session::events::Event;
use crate::session::ids::SampleTarget;
use crate::session::resolver::Resolver;

/// Shown in place of a part that is not known.
const UNKNOWN: &[u8] = b"?";

/// What an event does.
#[derive(Debug)]
pub(crate) struct CallRole {
    /// Whether a function is called; else it returns.
    pub(crate) enters: bool,
    name: Vec<Part>,
    /// The argument with the file's path.
    file: Option<usize>,
}

/// A part of a function's name.
#[derive(Debug)]
enum Part {
    Text(Box<[u8]>),
    /// The argument at a place.
    Argument(usize),
}

/// The roles of events. An event at which functions are called has one only if there is one at which they return, and the other way round.
pub(crate) fn roles(events: &[Event]) -> Vec<Option<CallRole>> {
    let all: Vec<Option<CallRole>> = events.iter().map(CallRole::from_event).collect();
    let stems = || events.iter().map(|event| stem_of(&event.name));
    let known: HashSet<(&str, bool)> = stems()
        .zip(&all)
        .filter_map(|(stem, role)| Some((stem, role.as_ref()?.enters)))
        .collect();
    let both = stems().zip(all);
    both.map(|(stem, role)| role.filter(|role| known.contains(&(stem, !role.enters))))
        .collect()
}

/// An event's name without its last word: what call and return have in common.
fn stem_of(name: &str) -> &str {
    let end = name.rfind(['_', '-']).unwrap_or(name.len());
    name.get(..end).unwrap_or(name)
}

impl CallRole {
    /// `None` if nothing is called there, or an argument is missing that says what.
    fn from_event(event: &Event) -> Option<Self> {
        let ScriptCall { enters, file, .. } = event.call.as_ref()?;
        let parts = event.call.as_ref()?.parts()?;
        let place = |name: &str| event.own_argument(name);
        let parts = parts.into_iter().map(|part| match part {
            NamePart::Text(text) => Some(Part::Text(text.as_bytes().into())),
            NamePart::Argument(name) => place(name).map(Part::Argument),
        });
        Some(Self {
            enters: *enters,
            name: parts.collect::<Option<Vec<_>>>()?,
            // A list of arguments may leave it out.
            file: file.as_deref().and_then(place),
        })
    }

    /// Makes `text` the function of a hit.
    pub(crate) fn read(
        &self,
        resolver: &mut Resolver<'_>,
        target: SampleTarget,
        sample: &Sample<'_>,
        text: &mut FunctionText,
    ) {
        text.name.clear();
        text.file.clear();
        text.partial = false;
        let site = resolver.session().site_of(target, sample);
        for part in &self.name {
            match part {
                Part::Text(literal) => text.name.extend_from_slice(literal),
                Part::Argument(place) => {
                    let value = site.and_then(|site| resolver.value(site, *place, sample));
                    if !put(value, &mut text.name) {
                        text.name.extend_from_slice(UNKNOWN);
                        text.partial = true;
                    }
                }
            }
        }
        if let Some(place) = self.file {
            let value = site.and_then(|site| resolver.value(site, place, sample));
            text.partial |= !put(value, &mut text.file);
        }
    }
}

/// Appends a string or a number; `false` if it is not known.
fn put(value: Option<&Value>, out: &mut Vec<u8>) -> bool {
    match value {
        Some(Value::String(string)) => out.extend_from_slice(&string.bytes),
        Some(Value::Unsigned(number)) => out.extend_from_slice(number.to_string().as_bytes()),
        Some(Value::Signed(number)) => out.extend_from_slice(number.to_string().as_bytes()),
        Some(Value::Missing(missing)) => return *missing == usdtrec_format::Missing::Null,
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_returns_have_a_stem() {
        let stem = stem_of("sdt_php:function__entry");
        assert_eq!(stem, stem_of("sdt_php:function__return"));
        assert_ne!(stem, stem_of("sdt_ruby:cmethod__entry"));
        assert_eq!(stem_of("call"), "call");
    }
}
