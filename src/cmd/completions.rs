//! `usdtrec completions`.

mod candidates;
mod keys;
mod reader;
mod spans;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::ValueHint;
use clap_complete::Shell;

use crate::cli::{Cli, CompletionsArgs};

/// Arguments that are patterns of probes in files, and their verbs.
const PATTERNS: [(&str, &str); 2] = [("event", "record trace top stat"), ("patterns", "list")];
/// Those that are keys by which events are grouped.
const KEYS: [(&str, &str); 2] = [("by", "report diff stat top"), ("sort", "report")];
/// Those that are names of spans.
const SPANS: [(&str, &str); 1] = [(
    "span",
    "record trace top stat report diff script flame export",
)];

/// Answers what a script of a shell asks this process, or this process another one; `None` for other command lines. It is in no help.
pub(crate) fn answer() -> Option<ExitCode> {
    /// Maximum number of words of a command line that are read.
    const MAX_WORDS: usize = 1000;
    let arguments = std::env::args_os().skip(1).take(MAX_WORDS);
    let arguments: Vec<OsString> = arguments.collect();
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let texts = |words: &[OsString]| words.iter().map(text).collect::<Vec<_>>();
    let (task, rest) = arguments.split_first()?;
    let printed = match (task.to_str()?, rest) {
        (candidates::PATTERNS, []) => candidates::print_events(),
        (candidates::PATTERNS, [word]) => candidates::print_words(&text(word)),
        ("complete-keys", [word, before @ ..]) => {
            keys::print_words(&text(word), &keys::Words(&texts(before)))
        }
        ("complete-spans", [word, before @ ..]) => {
            spans::print_words(&text(word), &keys::Words(&texts(before)))
        }
        (keys::ARGUMENTS, [trace]) => keys::print_arguments(Path::new(trace)),
        (spans::OF_TRACE, [trace]) => spans::print_spans(Path::new(trace)),
        _ => return None,
    };
    // A failure is no words: a shell has no place for messages.
    Some(ExitCode::from(u8::from(printed.is_err())))
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
    for ((argument, verbs), hint) in patterns.into_iter().chain(keys).chain(spans) {
        for verb in verbs.split(' ') {
            if command.find_subcommand(verb).is_some() {
                command = command.mut_subcommand(verb, |verb| {
                    verb.mut_arg(argument, |marked| marked.value_hint(hint))
                });
            }
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
