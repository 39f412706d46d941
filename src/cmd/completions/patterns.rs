//! Completion of patterns by what is indexed and what runs.

use std::collections::BTreeSet;
use std::io;

use usdtrec_buildid_cache::{Cache, running};

use super::candidates::{KnownEvents, event};
use super::lines::print_lines;
use super::reader::{LONGEST, Reader, USUAL};

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
    let files = running()?.files;
    let probes = files
        .iter()
        .flat_map(|file| &file.mapped.scan.binary.probes);
    let running: BTreeSet<String> = probes.map(event).collect();
    print_lines(running.difference(&indexed))
}
