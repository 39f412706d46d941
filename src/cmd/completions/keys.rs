//! Completion of keys by which events are grouped: those of any trace, and the arguments of the trace at hand.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use usdtrec_report::{Sources, TraceSession};

use super::candidates::{is_plain, print_lines};
use super::reader::{LONGEST, Reader};
use crate::cli::{DEFAULT_TRACE, group_keys};
#[cfg(feature = "record")]
use crate::cmd::stat::by::KEYS;

/// The task of the process that reads the trace.
pub(super) const ARGUMENTS: &str = "complete-arguments";

/// The words of a command line before the one to complete.
#[derive(Debug)]
pub(super) struct Words<'w>(pub(super) &'w [String]);

impl Words<'_> {
    /// The verb that has keys.
    fn verb(&self) -> Option<&str> {
        self.first_of(&["report", "diff", "stat", "top"])
    }

    /// The first word that is one of these.
    pub(super) fn first_of(&self, known: &[&str]) -> Option<&str> {
        let mut words = self.0.iter().map(String::as_str);
        words.find(|word| known.contains(word))
    }

    /// The trace that the verb reads.
    pub(super) fn trace(&self, verb: &str) -> &str {
        let mut before = "";
        for word in self.0 {
            if let Some(path) = word.strip_prefix("--input=") {
                return path;
            }
            let is_input = before == "-i" || before == "--input";
            let is_first = verb == "diff" && !word.starts_with('-') && Path::new(word).is_file();
            if is_input || is_first {
                return word;
            }
            before = word;
        }
        DEFAULT_TRACE
    }
}

/// Prints the words that complete this one, of whose list the last key is completed.
pub(super) fn print_words(word: &str, words: &Words<'_>) -> io::Result<()> {
    let Some(verb) = words.verb() else {
        return Ok(());
    };
    let keys: BTreeSet<String> = match verb {
        #[cfg(feature = "record")]
        "stat" | "top" => KEYS.each_ref().map(|(name, _)| (*name).to_owned()).into(),
        verb => {
            let reader = Reader::start([ARGUMENTS, words.trace(verb)])?;
            let arguments = reader.lines_until(LONGEST);
            let fixed = group_keys().into_iter().map(str::to_owned);
            fixed.chain(arguments).collect()
        }
    };
    print_lines(completing(word, &keys))
}

/// The words that begin with `word`.
fn completing(word: &str, keys: &BTreeSet<String>) -> Vec<String> {
    let start = word.rfind(',').map_or(0, |comma| comma + 1);
    let (before, key) = word.split_at(start);
    let taken: Vec<&str> = before.split(',').collect();
    let matching = keys.iter().filter(|known| known.starts_with(key));
    let new = matching.filter(|known| !taken.contains(&known.as_str()));
    new.map(|known| format!("{before}{known}")).collect()
}

/// Prints the names of the arguments of a trace. Those that a shell could take for anything else are left out: a trace may be of anybody.
pub(super) fn print_arguments(trace: &Path) -> io::Result<()> {
    let session = TraceSession::open(trace, &Sources::default()).map_err(io::Error::other)?;
    let events = session.events().events.iter();
    let arguments = events.flat_map(|event| &event.arguments);
    let names: BTreeSet<&str> = arguments.map(|argument| &*argument.name).collect();
    print_lines(names.into_iter().filter(|name| is_plain(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_key_of_a_list_is_completed() {
        let keys = ["comm", "cpu", "pid"].map(str::to_owned).into();
        for (word, words) in [
            ("", &["comm", "cpu", "pid"][..]),
            ("c", &["comm", "cpu"]),
            ("pid,c", &["pid,comm", "pid,cpu"]),
            ("cpu,", &["cpu,comm", "cpu,pid"]),
            ("x", &[]),
        ] {
            assert_eq!(completing(word, &keys), words, "{word}");
        }
    }

    #[test]
    fn the_trace_of_a_command_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        for (line, verb, trace) in [
            ("usdtrec report --by", "report", DEFAULT_TRACE),
            ("usdtrec report -i a.data --by", "report", "a.data"),
            ("usdtrec report --input=a.data --by", "report", "a.data"),
            (&*format!("usdtrec diff {path} b.data --by"), "diff", path),
            ("usdtrec stat --by", "stat", DEFAULT_TRACE),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let words = Words(&words);
            assert_eq!(words.verb(), Some(verb), "{line}");
            assert_eq!(words.trace(verb), trace, "{line}");
        }
        assert_eq!(Words(&["usdtrec".to_owned()]).verb(), None);
    }
}
