//! Completion of patterns by what is indexed and what runs.
//!
//! The shell waits for the answer while the user types. So the files are read by another process, which may be stuck at a file system that
//! does not answer, and does not have the shell's pipe: it is killed when time is up, and is not waited for.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use usdtrec_buildid_cache::{Cache, running};

use super::candidates::{KnownEvents, event};

/// The verb of the scripts: with the word to complete, or without, by the process that reads files. It is in no help.
const VERB: &str = "complete-patterns";
/// How long the answer takes at most if it has a word.
const USUAL: Duration = Duration::from_millis(100);
/// How long it takes at most.
const LONGEST: Duration = Duration::from_secs(1);

/// What a script of a shell asks this process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PatternCompletion {
    /// Print the words that complete this one.
    Words(String),
    /// Print the events that are known.
    Events,
}

impl PatternCompletion {
    /// What the arguments of this process ask; `None` for other command lines.
    pub(crate) fn of_process() -> Option<Self> {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).take(3).collect();
        match arguments.as_slice() {
            [verb] if verb == VERB => Some(Self::Events),
            [verb, word] if verb == VERB => Some(Self::Words(word.to_string_lossy().into_owned())),
            _ => None,
        }
    }

    /// Prints the answer. A failure is no words: a shell has no place for messages.
    pub(crate) fn answer(&self) -> ExitCode {
        let printed = match self {
            Self::Words(word) => print_words(word),
            Self::Events => print_events(),
        };
        ExitCode::from(u8::from(printed.is_err()))
    }
}

fn print_words(word: &str) -> io::Result<()> {
    let begun = Instant::now();
    let mut reader = Command::new(std::env::current_exe()?)
        .arg(VERB)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (send, lines) = channel();
    if let Some(output) = reader.stdout.take() {
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines
                .take_while(|line| send.send(line.clone()).is_ok())
                .count()
        });
    }
    let words = collect(word, &lines, begun);
    // It may be stuck, and then does not end before its file system answers: this process has ended by then.
    reader.kill()?;
    let mut out = BufWriter::new(io::stdout());
    for word in words {
        writeln!(out, "{word}")?;
    }
    out.flush()
}

/// The words that complete one, by the events that come in time.
fn collect(word: &str, events: &Receiver<String>, begun: Instant) -> Vec<String> {
    let mut known = KnownEvents::default();
    let mut words = Vec::new();
    for limit in [USUAL, LONGEST] {
        if !words.is_empty() {
            break;
        }
        let mut left = limit.saturating_sub(begun.elapsed());
        while let Ok(event) = events.recv_timeout(left) {
            known.add(&event);
            left = limit.saturating_sub(begun.elapsed());
        }
        words = known.completing(word);
    }
    words
}

/// Prints the events that are indexed, by the cache's own texts alone, then those of what runs.
fn print_events() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout());
    let indexed = Cache::open(None).and_then(|cache| cache.named_probes());
    let indexed = indexed.unwrap_or_default();
    let indexed: BTreeSet<String> = indexed.iter().map(event).collect();
    for event in &indexed {
        writeln!(out, "{event}")?;
    }
    out.flush()?;
    let files = running()?.files;
    let probes = files
        .iter()
        .flat_map(|file| &file.mapped.scan.binary.probes);
    let running: BTreeSet<String> = probes.map(event).collect();
    for event in running.difference(&indexed) {
        writeln!(out, "{event}")?;
    }
    out.flush()
}
