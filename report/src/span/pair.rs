//! Which probes begin and end spans: by their names, or as somebody asks for.

use usdtrec_format::Pattern;

use crate::error::ReportError;
use crate::session::Session;
use crate::text::list;

/// Words in names of probes that begin something, each with those that end it.
const WORDS: [(&str, &[&str]); 16] = [
    (
        "start",
        &[
            "done",
            "end",
            "finish",
            "finished",
            "stop",
            "complete",
            "completed",
            "return",
            "exit",
            "commit",
            "abort",
        ],
    ),
    (
        "begin",
        &["end", "done", "finish", "complete", "commit", "abort"],
    ),
    ("startup", &["shutdown"]),
    ("entry", &["return", "exit"]),
    ("enter", &["exit", "leave", "return", "entered"]),
    ("acquire", &["release"]),
    ("lock", &["unlock"]),
    ("wait", &["waited"]),
    ("request", &["response", "done"]),
    ("send", &["reply"]),
    ("connect", &["disconnect"]),
    ("issue", &["complete"]),
    ("init", &["fini"]),
    ("prepare", &["finish"]),
    ("create", &["destroy"]),
    ("suspend", &["resume"]),
];

/// Events that begin a span, and those that end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// What it is called: `postgresql:query`.
    pub(crate) name: String,
    /// Indices of the events that begin it.
    pub(crate) starts: Vec<usize>,
    /// Indices of those that end it.
    pub(crate) dones: Vec<usize>,
}

impl Pair {
    /// All pairs that the names of events tell of.
    pub(crate) fn find(session: &Session, asked: impl Fn(usize) -> bool) -> Vec<Self> {
        let events = &session.events().events;
        let mut pairs: Vec<Self> = Vec::new();
        for (at, event) in events.iter().enumerate() {
            if event.is_dummy() || !asked(at) {
                continue;
            }
            let Some((name, dones)) = Self::ends_of(session, &event.name, &asked) else {
                continue;
            };
            // Sites with other operands are events of the same name.
            match pairs.iter_mut().find(|pair| pair.name == name) {
                Some(pair) if pair.dones == dones => pair.starts.push(at),
                Some(_) => {}
                None => pairs.push(Self {
                    name,
                    starts: vec![at],
                    dones,
                }),
            }
        }
        pairs
    }

    /// What a span that an event may begin is called, and the events that end it, if there are any.
    fn ends_of(
        session: &Session,
        event: &str,
        asked: &impl Fn(usize) -> bool,
    ) -> Option<(String, Vec<usize>)> {
        let words = words(event);
        // The last word that begins something: `lwlock__wait__start` is a wait.
        for (range, word) in words.iter().rev() {
            let Some((_, ends)) = WORDS.iter().find(|(begin, _)| begin == word) else {
                continue;
            };
            let wanted = ends
                .iter()
                .map(|end| [&event[..range.start], end, &event[range.end..]].concat());
            let wanted: Vec<String> = wanted.collect();
            let events = session.events().events.iter().enumerate();
            let dones: Vec<usize> = events
                .filter(|(at, event)| {
                    !event.is_dummy() && asked(*at) && wanted.contains(&event.name)
                })
                .map(|(at, _)| at)
                .collect();
            if !dones.is_empty() {
                return Some((name_without(event, range.clone()), dones));
            }
        }
        None
    }

    /// The pairs that somebody asks for: `START..DONE`, or the name of one that is found by name, with globs.
    pub(crate) fn asked(text: &str, session: &Session) -> Result<Vec<Self>, ReportError> {
        if let Some((start, done)) = text.split_once("..") {
            let (starts, dones) = (events(start, session)?, events(done, session)?);
            let name = format!("{}..{}", short(start), short(done));
            return Ok(vec![Self {
                name,
                starts,
                dones,
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
        let known = match list(found.iter().map(|pair| &*pair.name)) {
            names if names.is_empty() => "its probes' names tell of none".to_owned(),
            names => format!("it has: {names}"),
        };
        Err(ReportError::Ask(format!(
            "the trace has no span {text:?}; {known}; START..DONE makes one of any two probes"
        )))
    }
}

/// The events of a name or pattern.
fn events(text: &str, session: &Session) -> Result<Vec<usize>, ReportError> {
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
        return Err(ReportError::Ask(format!(
            "the trace has no event {text:?}; it has: {known}"
        )));
    }
    Ok(found)
}

/// A probe's name without perf's `sdt_`.
fn short(event: &str) -> &str {
    event.strip_prefix("sdt_").unwrap_or(event)
}

/// The words of a probe's name behind its provider, with their places.
fn words(event: &str) -> Vec<(std::ops::Range<usize>, &str)> {
    let from = event.find(':').map_or(0, |colon| colon + 1);
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    let mut words = Vec::new();
    let mut rest = &event[from..];
    while let Some(start) = rest.find(is_letter) {
        rest = &rest[start..];
        let (word, behind) = rest.split_at(rest.find(|c| !is_letter(c)).unwrap_or(rest.len()));
        let at = event.len() - rest.len();
        words.push((at..at + word.len(), word));
        rest = behind;
    }
    words
}

/// The name without one of its words and what joined that to the others: `postgresql:query`.
fn name_without(event: &str, word: std::ops::Range<usize>) -> String {
    let joins = |c: char| !c.is_ascii_alphanumeric() && c != ':';
    let before = event[..word.start].trim_end_matches(joins);
    let behind = event[word.end..].trim_start_matches(joins);
    let name = match (
        before.ends_with(':') || before.is_empty(),
        behind.is_empty(),
    ) {
        (true, true) => event.to_owned(),
        (true, false) => format!("{before}{behind}"),
        (false, true) => before.to_owned(),
        (false, false) => format!("{before}__{behind}"),
    };
    short(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_names() {
        let event = "sdt_postgresql:lwlock__wait__start";
        let words = words(event);
        let texts: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
        assert_eq!(texts, ["lwlock", "wait", "start"]);
        let named = |event: &str, word: &str| {
            let (range, _) = super::words(event)
                .into_iter()
                .find(|(_, known)| *known == word)
                .unwrap();
            name_without(event, range)
        };
        assert_eq!(named(event, "start"), "postgresql:lwlock__wait");
        assert_eq!(named("sdt_hs:gc-begin", "begin"), "hs:gc");
        assert_eq!(named("sdt_hs:begin__gc", "begin"), "hs:gc");
        assert_eq!(named("sdt_a:start", "start"), "a:start");
        assert_eq!(named("sdt_a:x__entry__slow", "entry"), "a:x__slow");
    }
}
