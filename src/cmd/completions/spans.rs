//! Completion of names of spans: of the probes that are indexed and of those that run, or of those of the trace at hand.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use usdtrec_format::spans::pairs;
use usdtrec_report::{Sources, TraceSession};

use super::candidates::{PATTERNS, is_plain, print_lines};
use super::keys::Words;
use super::reader::{LONGEST, Reader};

/// The task of the process that reads the trace.
pub(super) const OF_TRACE: &str = "complete-spans-of";
/// Verbs that match spans while they happen.
const LIVE: [&str; 4] = ["record", "trace", "top", "stat"];
/// Verbs that read a trace.
const READING: [&str; 5] = ["report", "script", "export", "flame", "diff"];

/// Prints the words that complete this one.
pub(super) fn print_words(word: &str, words: &Words<'_>) -> io::Result<()> {
    let lines: Vec<String> = if words.first_of(&LIVE).is_some() {
        let reader = Reader::start([PATTERNS])?;
        let events: BTreeSet<String> = reader.lines_until(LONGEST).collect();
        names(events.iter().map(|event| format!("sdt_{event}")))
    } else if let Some(verb) = words.first_of(&READING) {
        let reader = Reader::start([OF_TRACE, words.trace(verb)])?;
        reader.lines_until(LONGEST).collect()
    } else {
        return Ok(());
    };
    print_lines(completing(word, &lines))
}

/// The words that begin with `word`: names without their provider, unless the word has one.
fn completing(word: &str, names: &[String]) -> BTreeSet<String> {
    let names = names.iter().filter_map(|name| {
        let (provider, bare) = name.split_once(':')?;
        let is_safe = is_plain(provider) && is_plain(bare);
        let shown = if word.contains(':') { name } else { bare };
        (is_safe && shown.starts_with(word)).then(|| shown.to_owned())
    });
    names.collect()
}

/// Prints the names of the spans of a trace.
pub(super) fn print_spans(trace: &Path) -> io::Result<()> {
    let session = TraceSession::open(trace, &Sources::default()).map_err(io::Error::other)?;
    let events = session.events().events.iter();
    print_lines(names(events.map(|event| event.name.clone())))
}

/// The names of the spans that events form by their names.
fn names(events: impl Iterator<Item = String>) -> Vec<String> {
    let events: Vec<String> = events.collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    pairs(&events).into_iter().map(|pair| pair.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_completed_with_and_without_provider() {
        let events = [
            "sdt_app:query__start",
            "sdt_app:query__done",
            "sdt_app:go",
            "sdt_db:query__start",
            "sdt_db:query__done",
            "sdt_db:$(x)__start",
            "sdt_db:$(x)__done",
        ];
        let names = names(events.into_iter().map(str::to_owned));
        let words = |word| Vec::from_iter(completing(word, &names));
        assert_eq!(words("q"), ["query"]);
        assert_eq!(words("app:"), ["app:query"]);
        assert_eq!(words("x"), [""; 0]);
        assert_eq!(words(""), ["query"], "no text that a shell runs");
    }
}
