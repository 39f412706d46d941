//! Advice about a value that was taken for the command, because it has a blank before it and not `=` (`record -z 0`).

use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use crate::cli::Cli;

/// Advice for a command that cannot be run.
pub(super) fn advice(command: &Path) -> Option<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    // What follows is a command for certain.
    let words: Vec<String> = words.take_while(|word| word != "--").collect();
    find(&Cli::command(), &words, command)
}

fn find(cli: &Command, words: &[String], command: &Path) -> Option<String> {
    let verb = cli.find_subcommand(words.get(1)?)?;
    let (option, value) = words.windows(2).find_map(|pair| match pair {
        [option, value] if Path::new(value) == command => Some((option, value)),
        _ => None,
    })?;
    // All other values are programs as likely as not.
    let is_value = value.starts_with(|first: char| first.is_ascii_digit()) || value == "signal";
    if is_value && verb.get_arguments().any(|known| is_optional(known, option)) {
        return Some(format!("did you mean {option}={value}?"));
    }
    let is_mode = value == "dwarf" || value == "fp";
    (option == "-g" && is_mode).then(|| format!("did you mean --call-graph {value}?"))
}

/// Whether a word is an option that can have a value after `=`, and needs none; also the last one of several letters (`-qz`).
fn is_optional(known: &Arg, word: &str) -> bool {
    if !known.is_require_equals_set() {
        return false;
    }
    match word.strip_prefix("--") {
        Some(long) => known.get_long() == Some(long),
        None => word.starts_with('-') && known.get_short() == word.chars().last(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_equals_sign_are_recognized() {
        let cli = Cli::command();
        for (line, command, advice) in [
            ("record -z 0 ./a", "0", Some("did you mean -z=0?")),
            ("record -qz 19 ./a", "19", Some("did you mean -qz=19?")),
            (
                "record --switch-output 1s ./a",
                "1s",
                Some("did you mean --switch-output=1s?"),
            ),
            (
                "record -g dwarf ./a",
                "dwarf",
                Some("did you mean --call-graph dwarf?"),
            ),
            ("record -z ./typo", "./typo", None),
            ("record -q 0", "0", None),
            ("record -g typo", "typo", None),
        ] {
            let words: Vec<String> = format!("usdtrec {line}")
                .split(' ')
                .map(str::to_owned)
                .collect();
            let found = find(&cli, &words, Path::new(command));
            assert_eq!(found.as_deref(), advice, "{line}");
        }
    }
}
