//! `usdtrec completions`.

mod candidates;
mod keys;
mod reader;
mod spans;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueHint;
use clap_complete::Shell;

use crate::cli::{Cli, CompletionsArgs};

/// Verbs and their arguments that are patterns of probes in files.
const PATTERNS: [(&str, &str); 5] = [
    ("record", "event"),
    ("trace", "event"),
    ("top", "event"),
    ("stat", "event"),
    ("list", "patterns"),
];

/// Verbs and their arguments that are keys by which events are grouped.
const KEYS: [(&str, &str); 5] = [
    ("report", "by"),
    ("report", "sort"),
    ("diff", "by"),
    ("stat", "by"),
    ("top", "by"),
];

/// Verbs and their arguments that are names of spans.
const SPANS: [(&str, &str); 9] = [
    ("record", "span"),
    ("trace", "span"),
    ("top", "span"),
    ("stat", "span"),
    ("report", "span"),
    ("diff", "span"),
    ("script", "span"),
    ("flame", "span"),
    ("export", "span"),
];

/// What a script of a shell asks this process, or this process another one. It is in no help.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CompletionTask {
    /// Print the words that complete this pattern.
    Patterns(String),
    /// Print the events that are known.
    Events,
    /// Print the words that complete this key.
    Keys {
        word: String,
        /// Those before it.
        words: Vec<String>,
    },
    /// Print the arguments of this trace.
    Arguments(PathBuf),
    /// Print the words that complete this name of a span.
    Spans {
        word: String,
        /// Those before it.
        words: Vec<String>,
    },
    /// Print the names of the spans of this trace.
    SpansOf(PathBuf),
}

impl CompletionTask {
    /// What the arguments of this process ask; `None` for other command lines.
    pub(crate) fn from_command_line() -> Option<Self> {
        /// Maximum number of words of a command line that are read.
        const MAX_WORDS: usize = 1000;
        let arguments: Vec<OsString> = std::env::args_os().skip(1).take(MAX_WORDS).collect();
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        let (task, rest) = arguments.split_first()?;
        match (task.to_str()?, rest) {
            (candidates::PATTERNS, []) => Some(Self::Events),
            (candidates::PATTERNS, [word]) => Some(Self::Patterns(text(word))),
            ("complete-keys", [word, words @ ..]) => Some(Self::Keys {
                word: text(word),
                words: words.iter().map(text).collect(),
            }),
            ("complete-spans", [word, words @ ..]) => Some(Self::Spans {
                word: text(word),
                words: words.iter().map(text).collect(),
            }),
            (keys::ARGUMENTS, [trace]) => Some(Self::Arguments(trace.into())),
            (spans::OF_TRACE, [trace]) => Some(Self::SpansOf(trace.into())),
            _ => None,
        }
    }

    /// Prints the answer. A failure is no words: a shell has no place for messages.
    pub(crate) fn answer(&self) -> ExitCode {
        let printed = match self {
            Self::Patterns(word) => candidates::print_words(word),
            Self::Events => candidates::print_events(),
            Self::Keys { word, words } => keys::print_words(word, &keys::Words(words)),
            Self::Arguments(trace) => keys::print_arguments(trace),
            Self::Spans { word, words } => spans::print_words(word, &keys::Words(words)),
            Self::SpansOf(trace) => spans::print_spans(trace),
        };
        ExitCode::from(u8::from(printed.is_err()))
    }
}

/// Runs the verb.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    io::stdout().write_all(script(args.shell).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The script of a shell: clap's, in which patterns are marked as names of hosts, keys as names of users and names of spans as those of commands, of which
/// there are none, and our own completion of them.
fn script(shell: Shell) -> String {
    let mut command = Cli::listed();
    let patterns = PATTERNS.map(|place| (place, ValueHint::Hostname));
    let keys = KEYS.map(|place| (place, ValueHint::Username));
    let spans = SPANS.map(|place| (place, ValueHint::CommandName));
    let all = patterns.into_iter().chain(keys).chain(spans);
    for ((verb, argument), hint) in all {
        if command.find_subcommand(verb).is_some() {
            command = command.mut_subcommand(verb, |verb| {
                verb.mut_arg(argument, |marked| marked.value_hint(hint))
            });
        }
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "usdtrec", &mut script);
    let script = String::from_utf8_lossy(&script);
    match shell {
        Shell::Bash => {
            let marked = script.replace("complete -F _usdtrec ", "complete -F _usdtrec_all ");
            format!("{marked}{}", include_str!("completions/words.bash"))
        }
        Shell::Zsh => {
            // Functions come before what runs the first of them.
            let marked = script.replace(":_hosts'", ":_usdtrec_patterns'");
            let marked = marked.replace(":_users'", ":_usdtrec_keys'");
            let marked = marked.replace(":_command_names -e'", ":_usdtrec_spans'");
            let end = marked
                .rfind("\nif [ \"$funcstack[1]\"")
                .unwrap_or(marked.len());
            let (functions, last) = marked.split_at(end);
            format!("{functions}{}{last}", include_str!("completions/words.zsh"))
        }
        Shell::Fish => {
            let marked = script.replace("(__fish_print_hostnames)", "(__fish_usdtrec_patterns)");
            let marked = marked.replace("(__fish_complete_users)", "(__fish_usdtrec_keys)");
            let marked = marked.replace("(__fish_complete_command)", "(__fish_usdtrec_spans)");
            format!("{marked}{}", include_str!("completions/words.fish"))
        }
        _ => script.into_owned(),
    }
}
