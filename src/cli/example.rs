//! Examples of each verb, for its help and its man page.

use std::fmt::Write;

use clap::Command;
use clap::builder::Styles;

/// A command line, and what it does.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) what: &'static str,
    pub(crate) line: &'static str,
}

const fn example(what: &'static str, line: &'static str) -> Example {
    Example { what, line }
}

/// By verb; those of `usdtrec` itself are the way from a program to a report.
const EXAMPLES: &[(&str, [Example; 3])] = &[
    (
        "usdtrec",
        [
            example(
                "What runs on this host and has probes",
                "sudo usdtrec list -a",
            ),
            example(
                "Record the queries of all processes of PostgreSQL for ten seconds",
                "sudo usdtrec record -a -e 'sdt_postgresql:query__*' --duration 10s",
            ),
            example("Summarize them", "usdtrec report"),
        ],
    ),
    (
        "buildid-cache",
        [
            example(
                "Index a program with probes",
                "sudo usdtrec buildid-cache --add /usr/lib/postgresql/15/bin/postgres",
            ),
            example(
                "Index every file with probes below a folder",
                "sudo usdtrec buildid-cache --scan /usr/lib",
            ),
            example("List what is indexed", "usdtrec buildid-cache --list"),
        ],
    ),
    (
        "list",
        [
            example(
                "What runs on this host and has probes, in which container or unit",
                "usdtrec list -a",
            ),
            example(
                "Probes of a file, with their sites and arguments",
                "usdtrec list -v --file ./app",
            ),
            example(
                "Probes whose names have gc in them, of all files that a process maps",
                "usdtrec list -p 1234 gc",
            ),
        ],
    ),
    (
        "record",
        [
            example(
                "Queries in all processes of PostgreSQL, for ten seconds",
                "sudo usdtrec record -a -e 'sdt_postgresql:query__*' --duration 10s",
            ),
            example(
                "All probes of a program that is started, with the callers of each hit",
                "sudo usdtrec record -g -e 'app:*@./app' -- ./app --port 8080",
            ),
            example(
                "Only large requests of a process that runs",
                "sudo usdtrec record -p 1234 -e app:request --filter 'arg2 > 4096'",
            ),
        ],
    ),
    (
        "trace",
        [
            example(
                "All probes of a process, until Ctrl-C",
                "sudo usdtrec trace -p 1234 -e '*:*'",
            ),
            example(
                "Queries of PostgreSQL that took more than 100 ms",
                "sudo usdtrec trace -e 'sdt_postgresql:query__*' --span query --min 100ms",
            ),
            example(
                "Lines in a form of your own",
                "sudo usdtrec trace -e app:request --format '{tod} {comm} {arg1:?}'",
            ),
        ],
    ),
    (
        "top",
        [
            example(
                "Probes of PostgreSQL, once a second",
                "sudo usdtrec top -e 'sdt_postgresql:*'",
            ),
            example(
                "Requests of a process by their URL, counted in the kernel",
                "sudo usdtrec top -p 1234 --by url -e 'app:request(url=str(arg2))'",
            ),
            example(
                "Five tables of two seconds each",
                "sudo usdtrec top -e 'app:*@./app' -d 2s -n 5",
            ),
        ],
    ),
    (
        "stat",
        [
            example(
                "Count the hits of all probes while a command runs",
                "sudo usdtrec stat -e 'app:*@./app' -- ./app --port 8080",
            ),
            example(
                "Queries of PostgreSQL, once a second",
                "sudo usdtrec stat -I 1000 -e 'sdt_postgresql:query__*'",
            ),
            example(
                "How large requests are, by the name of the thread, with percentiles",
                "sudo usdtrec stat --by comm --hist bytes -p 1234 -e app:request",
            ),
        ],
    ),
    (
        "report",
        [
            example("All that usdtrec.data has, in short", "usdtrec report"),
            example(
                "Durations of queries by statement, the slowest first",
                "usdtrec report --span query --by query:shape --order p99",
            ),
            example(
                "Hits of one probe by their callers (record -g)",
                "usdtrec report -g -e app:request",
            ),
        ],
    ),
    (
        "flame",
        [
            example("Stacks by their hits", "usdtrec flame hits.svg"),
            example(
                "Stacks by the time in queries, as a page",
                "usdtrec flame queries.html --span query",
            ),
            example(
                "What differs between two traces",
                "usdtrec flame change.svg --diff before.data after.data",
            ),
        ],
    ),
    (
        "diff",
        [
            example(
                "What differs beyond noise",
                "usdtrec diff before.data after.data",
            ),
            example(
                "The same for each statement",
                "usdtrec diff --by query:shape before.data after.data",
            ),
            example(
                "Only changes of 10 % and more",
                "usdtrec diff --percent-limit 10 before.data after.data",
            ),
        ],
    ),
    (
        "script",
        [
            example("All events of usdtrec.data", "usdtrec script"),
            example(
                "Events with certain arguments",
                r#"usdtrec script --filter 'arg2 > 4096 && arg1 ~ "/api/*"'"#,
            ),
            example(
                "The first tenth, with the time of day, and what each span took",
                "usdtrec script --time 0%-10% -F +tod,+span",
            ),
        ],
    ),
    (
        "export",
        [
            example(
                "A timeline for ui.perfetto.dev",
                "usdtrec export --to perfetto -o trace.pftrace",
            ),
            example(
                "A page for a ticket, with all answers of report",
                "usdtrec export --to html -o page.html",
            ),
            example(
                "Tables for DuckDB or Spark",
                "usdtrec export --to parquet -o dataset",
            ),
        ],
    ),
    (
        "sql",
        [
            example(
                "Views and questions, to read",
                "usdtrec sql --engine duckdb dataset",
            ),
            example(
                "Their answers",
                "usdtrec sql --engine duckdb dataset | duckdb",
            ),
            example(
                "The same for a dataset of many hosts",
                "usdtrec sql --engine spark s3://bucket/dataset",
            ),
        ],
    ),
    (
        "import",
        [
            example(
                "A trace of what bpftrace has printed",
                "usdtrec import hits.json -o usdtrec.data",
            ),
            example(
                "And its report",
                "usdtrec import hits.json -o hits.data && usdtrec report -i hits.data",
            ),
            example(
                "Without a file between",
                "sudo bpftrace -f json app.bt | usdtrec import - -o usdtrec.data",
            ),
        ],
    ),
    (
        "archive",
        [
            example(
                "Store the names of functions in a trace that has none",
                "usdtrec archive -i usdtrec.data",
            ),
            example(
                "Pack the recorded programs",
                "usdtrec archive --debug -o programs.tar.bz2",
            ),
            example(
                "Unpack them on another host",
                "usdtrec archive --unpack programs.tar.bz2",
            ),
        ],
    ),
    (
        "schema",
        [
            example(
                "Names and types of the arguments of a program's probes",
                "usdtrec schema show -v 'postgresql:*'",
            ),
            example(
                "Compare a schema file with a program",
                "usdtrec schema check app.toml --file ./app",
            ),
            example("Use it from now on", "usdtrec schema import app.toml"),
        ],
    ),
    (
        "demo",
        [
            example(
                "Record usdtrec's own probes, and report them",
                "sudo usdtrec demo",
            ),
            example("Report a bundled trace, without privileges", "usdtrec demo"),
            example(
                "With a build-id cache of its own",
                "sudo usdtrec demo --buildid-dir /tmp/cache",
            ),
        ],
    ),
    (
        "doctor",
        [
            example("Show what is left", "sudo usdtrec doctor"),
            example("Remove it", "sudo usdtrec doctor --heal"),
            example(
                "Remove it only if there is something, and say so",
                "sudo usdtrec doctor || sudo usdtrec doctor --heal",
            ),
        ],
    ),
    (
        "dump",
        [
            example(
                "Have the recorder write its last seconds now",
                "sudo usdtrec dump",
            ),
            example("One of several recorders", "sudo usdtrec dump -p 1234"),
            example("All recorders", "sudo usdtrec dump --all"),
        ],
    ),
    (
        "completions",
        [
            example(
                "bash, for all users",
                "usdtrec completions bash | sudo tee /etc/bash_completion.d/usdtrec",
            ),
            example(
                "zsh, in a folder of $fpath",
                "usdtrec completions zsh > ~/.zfunc/_usdtrec",
            ),
            example(
                "fish",
                "usdtrec completions fish > ~/.config/fish/completions/usdtrec.fish",
            ),
        ],
    ),
    (
        "man",
        [
            example(
                "For all users",
                "sudo usdtrec man /usr/local/share/man/man1",
            ),
            example("For you", "usdtrec man ~/.local/share/man/man1"),
            example(
                "To read one at once",
                "usdtrec man pages && man -l pages/usdtrec-record.1",
            ),
        ],
    ),
];

impl Example {
    /// The names of all verbs.
    pub(super) fn verbs() -> impl Iterator<Item = &'static str> {
        EXAMPLES.iter().map(|(verb, _)| *verb)
    }

    /// The examples of a verb.
    pub(crate) fn for_verb(verb: &str) -> &'static [Self] {
        let mut known = EXAMPLES.iter();
        let known = known.find(|(name, _)| *name == verb);
        known.map_or(&[], |(_, examples)| examples)
    }
}

/// Puts the examples at the beginning of each verb's help.
pub(super) fn with_examples(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let verbs = command.get_subcommands();
    let verbs: Vec<String> = verbs.map(|verb| verb.get_name().to_owned()).collect();
    let command = command.before_help(text(Example::for_verb(&name)));
    verbs.into_iter().fold(command, |command, name| {
        command.mut_subcommand(&name, |verb| {
            verb.before_help(text(Example::for_verb(&name)))
        })
    })
}

fn text(examples: &[Example]) -> String {
    let heading = *Styles::styled().get_header();
    let mut text = format!("{heading}Examples:{heading:#}");
    for Example { what, line } in examples {
        let _ = write!(text, "\n  # {what}\n  {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::words::normalized;

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
        for (verb, examples) in EXAMPLES {
            let is_whole = *verb == "usdtrec";
            if !is_whole && cli.find_subcommand(verb).is_none() {
                continue;
            }
            let mut commands = 0;
            for Example { what, line } in examples {
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
