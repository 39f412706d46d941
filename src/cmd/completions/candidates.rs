//! The words that complete a list of patterns.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, BufWriter, Write};

use usdtrec_buildid_cache::{Cache, KeptProbes, running};
use usdtrec_format::Probe;

use super::reader::{LONGEST, Reader, USUAL};

/// Maximum number of words: any user can run a file with any number of probes.
const MAX_WORDS: usize = 1000;
/// Maximum length of a name, bytes.
const MAX_NAME: usize = 128;

/// Whether a shell or a pattern can take a word for nothing but a name.
pub(super) fn is_plain(word: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=MAX_NAME).contains(&word.len()) && !word.starts_with('-') && word.bytes().all(is_of_name)
}

/// Names of probes by their providers.
#[derive(Debug, Default)]
pub(super) struct KnownEvents(BTreeMap<String, BTreeSet<String>>);

impl KnownEvents {
    /// Adds `PROVIDER:NAME`. A word that a shell or a pattern could take for anything else than a name is left out: traced files choose them.
    pub(super) fn add(&mut self, event: &str) {
        if let Some((provider, name)) = event.split_once(':')
            && is_plain(provider)
            && is_plain(name)
        {
            let names = self.0.entry(provider.to_owned()).or_default();
            names.insert(name.to_owned());
        }
    }

    /// The words that begin with `word`, of whose list the last pattern is completed: by providers, or by the names of one provider.
    pub(super) fn completing(&self, word: &str) -> Vec<String> {
        let start = word.rfind(',').map_or(0, |comma| comma + 1);
        let (before, pattern) = word.split_at(start);
        let is_in_list = before.matches('(').count() > before.matches(')').count();
        if is_in_list || pattern.contains(['(', '@', '*', '?', '[']) {
            return Vec::new();
        }
        let bare = pattern.strip_prefix("sdt_").unwrap_or(pattern);
        let before = &word[..word.len() - bare.len()];
        let words: Vec<String> = match bare.split_once(':') {
            Some((provider, name)) => self.names(before, provider, name).collect(),
            None => {
                let providers = self.0.keys().filter(|known| known.starts_with(bare));
                let providers: Vec<&String> = providers.take(MAX_WORDS).collect();
                match providers.as_slice() {
                    [one] => self.names(before, one, "").collect(),
                    _ => providers
                        .iter()
                        .map(|one| format!("{before}{one}:"))
                        .collect(),
                }
            }
        };
        words
    }

    fn names<'a>(
        &'a self,
        before: &'a str,
        provider: &'a str,
        begin: &'a str,
    ) -> impl Iterator<Item = String> + 'a {
        let names = self.0.get(provider).into_iter().flatten();
        let names = names.filter(move |name| name.starts_with(begin));
        names
            .take(MAX_WORDS)
            .map(move |name| format!("{before}{provider}:{name}"))
    }
}

/// `PROVIDER:NAME`.
pub(super) fn event(probe: &Probe) -> String {
    format!("{}:{}", probe.provider, probe.name)
}

/// Prints each of these on a line of its own.
pub(super) fn print_lines(lines: impl IntoIterator<Item = impl fmt::Display>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout());
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

/// The task, with the word to complete, or without, by the process that reads files.
pub(super) const PATTERNS: &str = "complete-patterns";

/// Prints the words that complete this one.
pub(super) fn print_words(word: &str) -> io::Result<()> {
    let reader = Reader::start([PATTERNS])?;
    let mut known = KnownEvents::default();
    let mut words = Vec::new();
    for limit in [USUAL, LONGEST] {
        if !words.is_empty() {
            break;
        }
        for event in reader.lines_until(limit) {
            known.add(&event);
        }
        words = known.completing(word);
    }
    drop(reader);
    print_lines(words)
}

/// Prints the events that are indexed, by the cache's own texts alone, then those of what runs.
pub(super) fn print_events() -> io::Result<()> {
    let indexed = Cache::open(None).and_then(|cache| cache.named_probes());
    let indexed = indexed.unwrap_or_default();
    let indexed: BTreeSet<String> = indexed.iter().map(event).collect();
    print_lines(&indexed)?;
    let files = running(&KeptProbes::ALL)?.files;
    let probes = files
        .iter()
        .flat_map(|file| &file.mapped.scan.binary.probes);
    let running: BTreeSet<String> = probes.map(event).collect();
    print_lines(running.difference(&indexed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pattern_of_a_list_is_completed() {
        let mut known = KnownEvents::default();
        for event in [
            "app:start",
            "app:stop",
            "apt:x",
            "zoo:a-b",
            "zoo:$(touch PWN)",
            "zoo:a\nb",
            "-e:x",
            "zoo:",
            "zoo",
        ] {
            known.add(event);
        }
        for (word, words) in [
            ("", &["app:", "apt:", "zoo:"][..]),
            ("a", &["app:", "apt:"]),
            ("app", &["app:start", "app:stop"]),
            ("sdt_app:st", &["sdt_app:start", "sdt_app:stop"]),
            ("x:y@/a\\,b,app:sto", &["x:y@/a\\,b,app:stop"]),
            ("app:n(arg1),sdt_z", &["app:n(arg1),sdt_zoo:a-b"]),
            ("app:n(arg1,a", &[]),
            ("app:n@a", &[]),
            ("app:st*", &[]),
            ("other:", &[]),
        ] {
            assert_eq!(known.completing(word), words, "{word}");
        }
    }

    #[test]
    fn words_are_not_without_number() {
        let mut known = KnownEvents::default();
        for number in 0..2 * MAX_WORDS {
            known.add(&format!("app:n{number}"));
        }
        assert_eq!(known.completing("app:").len(), MAX_WORDS);
        known.add(&format!("app:{}", "x".repeat(MAX_NAME + 1)));
        assert_eq!(known.completing("app:x"), [""; 0]);
    }
}
