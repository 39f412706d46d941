//! The spans that a question names.

use super::names::{NamedPair, pairs, short_name};
use crate::pattern::{Pattern, PatternError};

/// Why a name means no span.
#[derive(Debug, thiserror::Error)]
pub enum SpanNameError {
    /// A pattern cannot be understood.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// No event is called so.
    #[error("there is no event {0:?}")]
    NoEvent(String),
    /// No span is called so.
    #[error("there is no span {name:?}")]
    NoSpan {
        /// The name.
        name: String,
        /// Names of the spans that are found by the names of events.
        known: Vec<String>,
    },
}

/// The pairs of events that a text means: `START..DONE`, or the name of a span that is found by the names of events, with globs.
///
/// # Errors
/// [`SpanNameError`].
pub fn asked_pairs(text: &str, names: &[&str]) -> Result<Vec<NamedPair>, SpanNameError> {
    if let Some((start, done)) = text.split_once("..") {
        return Ok(vec![NamedPair {
            name: format!("{}..{}", short_name(start), short_name(done)),
            starts: events(start, names)?,
            dones: events(done, names)?,
            key: None,
        }]);
    }
    let pattern = Pattern::parse(text)?;
    let fits = |pair: &NamedPair| {
        let (_, bare) = pair.name.split_once(':').unwrap_or(("", &pair.name));
        bare == text
            || pair.name == short_name(text)
            || pattern.matches_event(&format!("sdt_{}", pair.name))
    };
    let (asked, others): (Vec<_>, Vec<_>) = pairs(names).into_iter().partition(fits);
    if asked.is_empty() {
        return Err(SpanNameError::NoSpan {
            name: text.to_owned(),
            known: others.into_iter().map(|pair| pair.name).collect(),
        });
    }
    Ok(asked)
}

/// The events of a name or pattern, by their places.
fn events(text: &str, names: &[&str]) -> Result<Vec<usize>, SpanNameError> {
    let pattern = Pattern::parse(text)?;
    let fits = |name: &str| {
        let (_, bare) = name.split_once(':').unwrap_or(("", name));
        pattern.matches_event(name) || name == text || bare == text
    };
    let found = names.iter().enumerate().filter(|(_, name)| fits(name));
    let found: Vec<usize> = found.map(|(at, _)| at).collect();
    match found.is_empty() {
        true => Err(SpanNameError::NoEvent(text.to_owned())),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = [
        "sdt_db:query__start",
        "sdt_db:query__done",
        "sdt_db:lock__wait__start",
        "sdt_db:lock__wait__done",
        "sdt_web:done",
    ];

    fn asked(text: &str) -> Vec<String> {
        let pairs = asked_pairs(text, &NAMES).unwrap().into_iter();
        pairs
            .map(|pair| format!("{} {:?} {:?}", pair.name, pair.starts, pair.dones))
            .collect()
    }

    #[test]
    fn spans_have_names_globs_or_two_events() {
        let query = "db:query [0] [1]";
        for text in ["query", "db:query", "sdt_db:query", "*:que*"] {
            assert_eq!(asked(text), [query], "{text}");
        }
        assert_eq!(asked("*:*"), [query, "db:lock__wait [2] [3]"]);
        assert_eq!(
            asked("db:query__start..done"),
            ["db:query__start..done [0] [4]"]
        );
    }

    #[test]
    fn names_of_nothing_are_refused() {
        let error = asked_pairs("request", &NAMES).unwrap_err();
        let SpanNameError::NoSpan { known, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(*known, ["db:query", "db:lock__wait"]);
        let error = asked_pairs("query__start..finished", &NAMES).unwrap_err();
        assert!(matches!(error, SpanNameError::NoEvent(name) if name == "finished"));
    }
}
