//! Examples of each verb, for its help and its man page.

use clap::Command;
use clap::builder::Styles;

/// Three examples of each verb, below its name, as help shows them; those of `usdtrec` itself are the way from a program to a report.
const EXAMPLES: &str = include_str!("examples.txt");

/// A command line, and what it does.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) what: &'static str,
    pub(crate) line: &'static str,
}

impl Example {
    /// The names of all verbs.
    pub(super) fn verbs() -> impl Iterator<Item = &'static str> {
        EXAMPLES.lines().filter(|line| !line.starts_with(' '))
    }

    /// The examples of a verb.
    pub(crate) fn for_verb(verb: &str) -> Vec<Self> {
        let mut lines = lines(verb);
        let next = || {
            Some(Self {
                what: lines.next()?.strip_prefix("# ")?,
                line: lines.next()?,
            })
        };
        std::iter::from_fn(next).collect()
    }
}

/// The lines about a verb.
fn lines(verb: &str) -> impl Iterator<Item = &'static str> {
    let mut lines = EXAMPLES.lines();
    lines.find(|line| *line == verb);
    lines.map_while(|line| line.strip_prefix("  "))
}

/// Puts the examples at the beginning of each verb's help.
pub(super) fn with_examples(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let verbs = command.get_subcommands();
    let verbs: Vec<String> = verbs.map(|verb| verb.get_name().to_owned()).collect();
    let command = command.before_help(text(&name));
    verbs.into_iter().fold(command, |command, name| {
        command.mut_subcommand(&name, |verb| verb.before_help(text(&name)))
    })
}

fn text(verb: &str) -> String {
    let heading = *Styles::styled().get_header();
    let mut text = format!("{heading}Examples:{heading:#}");
    for line in lines(verb) {
        text.extend(["\n  ", line]);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::perf_syntax::normalized;

    /// The words of a shell's line, without quotes.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for letter in line.chars() {
            match letter {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                _ => words.last_mut().expect("a word").push(letter),
            }
        }
        assert!(!is_quoted, "{line}");
        words
    }

    #[test]
    fn each_verb_has_examples_that_can_be_typed() {
        let cli = Cli::command();
        for verb in cli.get_subcommands() {
            assert_eq!(Example::for_verb(verb.get_name()).len(), 3, "{verb}");
        }
        for verb in Example::verbs() {
            let is_whole = verb == "usdtrec";
            if !is_whole && cli.find_subcommand(verb).is_none() {
                continue;
            }
            let mut commands = 0;
            for Example { what, line } in Example::for_verb(verb) {
                assert!(what.len().max(line.len()) <= 76, "{line}: is wrapped");
                let words = words(line);
                let parts = words.split(|word| ["|", "||", "&&", ">"].contains(&word.as_str()));
                for part in parts {
                    let part = part.strip_prefix(&["sudo".to_owned()][..]).unwrap_or(part);
                    if part.first().is_none_or(|first| first != "usdtrec") {
                        continue;
                    }
                    commands += usize::from(part.get(1).is_some_and(|word| word == verb));
                    let words = normalized(part.iter().map(OsString::from));
                    let parsed = Cli::whole().try_get_matches_from(words);
                    assert!(parsed.is_ok(), "{line}: {}", parsed.expect_err("an error"));
                }
            }
            assert!(commands >= 3 || is_whole, "{verb}: {commands}");
        }
    }

    #[test]
    fn help_begins_with_them() {
        let mut cli = Cli::whole();
        for verb in cli.get_subcommands_mut() {
            for help in [verb.render_help(), verb.render_long_help()] {
                let help = help.to_string();
                assert!(help.starts_with("Examples:\n  # "), "{help}");
            }
        }
    }
}
