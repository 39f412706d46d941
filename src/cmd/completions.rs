//! `usdtrec completions`.

mod candidates;
mod patterns;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::ValueHint;
use clap_complete::Shell;

use crate::cli::{Cli, CompletionsArgs};

pub(crate) use self::patterns::PatternCompletion;

/// Verbs and their arguments that are patterns of probes in files.
const PATTERNS: [(&str, &str); 5] = [
    ("record", "event"),
    ("trace", "event"),
    ("top", "event"),
    ("stat", "event"),
    ("list", "patterns"),
];

/// Runs the verb.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    io::stdout().write_all(script(args.shell).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The script of a shell: clap's, in which patterns are marked as names of hosts, of which there are none, and our own completion of them.
fn script(shell: Shell) -> String {
    let mut command = Cli::listed();
    for (verb, argument) in PATTERNS {
        if command.find_subcommand(verb).is_some() {
            command = command.mut_subcommand(verb, |verb| {
                verb.mut_arg(argument, |marked| marked.value_hint(ValueHint::Hostname))
            });
        }
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "usdtrec", &mut script);
    let script = String::from_utf8_lossy(&script);
    match shell {
        Shell::Bash => {
            let marked = script.replace("complete -F _usdtrec ", "complete -F _usdtrec_all ");
            format!("{marked}{}", include_str!("completions/patterns.bash"))
        }
        Shell::Zsh => {
            // Functions come before what runs the first of them.
            let marked = script.replace(":_hosts'", ":_usdtrec_patterns'");
            let end = marked
                .rfind("\nif [ \"$funcstack[1]\"")
                .unwrap_or(marked.len());
            let (functions, last) = marked.split_at(end);
            format!(
                "{functions}{}{last}",
                include_str!("completions/patterns.zsh")
            )
        }
        Shell::Fish => {
            let marked = script.replace("(__fish_print_hostnames)", "(__fish_usdtrec_patterns)");
            format!("{marked}{}", include_str!("completions/patterns.fish"))
        }
        _ => script.into_owned(),
    }
}
