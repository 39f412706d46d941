//! Options that do not go together because of their values. What does not depend on values is said to clap.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use usdtrec_format::expr::TimedFilter;

/// Values of an option.
type Values = fn(&str) -> bool;

/// Options that do not go together with another one, if both have some values.
struct Conflict {
    verbs: &'static [&'static str],
    options: &'static [&'static str],
    values: Values,
    other: &'static str,
    other_values: Values,
}

const CONFLICTS: [Conflict; 17] = [
    conflict(&["report", "diff", "list"], &["width"], "format", is_data),
    conflict(&["report"], &["clock"], "format", is_data),
    conflict(&["diff"], &["all"], "format", is_data),
    conflict(&["list"], &["by"], "format", is_data),
    conflict(
        &["script"],
        &["hide_call_graph", "max_stack", "stacks", "no_inline"],
        "format",
        |format| is_csv(format) || format.contains('{'),
    ),
    conflict(&["script", "trace"], &["ns"], "format", is_data),
    conflict(&["script", "trace"], &["times"], "format", is_data).of(|times| times == "ns"),
    conflict(
        &["report", "script", "export", "flame"],
        &["no_inline"],
        "stacks",
        |stacks| stacks == "script",
    ),
    conflict(
        &["export"],
        &["span", "min", "no_inline", "drop", "hash"],
        "to",
        |to| to == "perf",
    ),
    conflict(&["export"], &["filter"], "to", |to| to == "perf").of(has_duration),
    conflict(&["export"], &["drop", "hash"], "to", has_stacks),
    conflict(&["export"], &["value", "stacks"], "to", |to| {
        !has_stacks(to)
    }),
    conflict(&["export"], &["trace_id"], "to", |to| {
        !to.starts_with("otlp")
    }),
    conflict(
        &["record", "trace", "top", "stat"],
        &["strlen"],
        "strings",
        |strings| strings == "off",
    ),
    conflict(
        &["record", "trace", "top", "stat"],
        &["no_wait"],
        "engine",
        |engine| engine.starts_with("perf"),
    ),
    // Durations of spans are always added up.
    conflict(&["stat"], &["value"], "span", |_| true).of(|value| value == "span"),
    conflict(&["record"], &["no_symbols"], "output", |output| {
        output == "-"
    }),
];

const fn conflict(
    verbs: &'static [&'static str],
    options: &'static [&'static str],
    other: &'static str,
    other_values: Values,
) -> Conflict {
    Conflict {
        verbs,
        options,
        values: |_| true,
        other,
        other_values,
    }
}

impl Conflict {
    /// The same, of some values of the options only.
    const fn of(self, values: Values) -> Self {
        Self { values, ..self }
    }
}

fn is_csv(format: &str) -> bool {
    format.starts_with("csv")
}

fn is_data(format: &str) -> bool {
    is_csv(format) || format == "json"
}

fn has_stacks(to: &str) -> bool {
    ["folded", "pprof"].contains(&to)
}

/// Whether a filter asks for spans of a minimum duration, as `--min` does.
fn has_duration(filter: &str) -> bool {
    TimedFilter::parse(filter)
        .is_ok_and(|filter| filter.least > 0 || filter.parts.first().is_some())
}

/// Refuses options that do not go together, as clap does.
///
/// # Errors
/// What clap says.
pub(super) fn check(command: &mut Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(());
    };
    command.build();
    let Some(verb) = command.find_subcommand_mut(name) else {
        return Ok(());
    };
    let mut conflicts = CONFLICTS
        .iter()
        .filter(|conflict| conflict.verbs.contains(&name));
    let found = conflicts.find_map(|conflict| found(conflict, verb, matches));
    match found.or_else(|| conflict_of_duration(verb, matches)) {
        None => Ok(()),
        Some([one, other]) => {
            let refused = format!("the argument '{one}' cannot be used with '{other}'");
            Err(verb.error(ErrorKind::ArgumentConflict, refused))
        }
    }
}

/// The words of two options that do not go together.
fn found(conflict: &Conflict, verb: &Command, matches: &ArgMatches) -> Option<[String; 2]> {
    let mut options = conflict.options.iter();
    let option = options.find(|option| {
        is_given(matches, option) && value(matches, option, conflict.values).is_some()
    })?;
    let other = value(matches, conflict.other, conflict.other_values)?;
    let words = |id: &str, value: String| match argument(verb, id) {
        Some(argument) if argument.get_action().takes_values() => match argument.get_long() {
            Some(long) => format!("--{long} {value}"),
            None => value,
        },
        Some(argument) => argument.to_string(),
        None => value,
    };
    let own = value(matches, option, conflict.values)?;
    Some([words(option, own), words(conflict.other, other)])
}

/// A filter that asks for spans of a minimum duration goes together with what `--min` does.
fn conflict_of_duration(verb: &Command, matches: &ArgMatches) -> Option<[String; 2]> {
    let min = argument(verb, "min")?;
    let filter = value(matches, "filter", has_duration)?;
    let conflicts = verb.get_arg_conflicts_with(min);
    let mut given = conflicts
        .into_iter()
        .filter(|other| is_given(matches, other.get_id().as_str()));
    let other = given.next()?;
    Some([format!("--filter {filter}"), other.to_string()])
}

fn argument<'c>(verb: &'c Command, id: &str) -> Option<&'c Arg> {
    verb.get_arguments()
        .find(|argument| argument.get_id() == id)
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// A value of an option, or its default, that is one of some values.
fn value(matches: &ArgMatches, id: &str, values: Values) -> Option<String> {
    let mut texts = matches.get_raw(id)?.map(|text| text.to_string_lossy());
    let text = texts.find(|text| values(text))?;
    Some(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    /// What a command line is refused with.
    fn refused(line: &[&str]) -> String {
        let words = ["usdtrec"].iter().chain(line);
        let matches = Cli::whole().try_get_matches_from(words);
        let checked = matches.and_then(|matches| check(&mut Cli::whole(), &matches));
        checked.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn options_that_do_not_go_together_are_refused_by_name() {
        for (line, one, other) in [
            (
                "report --width 80 --format json",
                "--width 80",
                "--format json",
            ),
            ("diff a b --all --format csv", "--all", "--format csv"),
            (
                "list -a --by container --format json",
                "--by container",
                "--format json",
            ),
            (
                "script -G --format csv-raw",
                "--hide-call-graph",
                "--format csv-raw",
            ),
            (
                "script --times reltime,ns --format json",
                "--times ns",
                "--format json",
            ),
            ("script --ns --format json", "--ns", "--format json"),
            ("export --to perf -o x --min 1ms", "--min 1ms", "--to perf"),
            ("export --to pprof -o x --drop a", "--drop a", "--to pprof"),
            ("export --to html -o x --value a", "--value a", "--to html"),
            (
                "record -e a:b --strlen 5 --strings off",
                "--strlen 5",
                "--strings off",
            ),
            (
                "record -e a:b --no-wait --engine perf-pmu",
                "--no-wait",
                "--engine perf-pmu",
            ),
            (
                "record -e a:b -g --no-symbols -o -",
                "--no-symbols",
                "--output -",
            ),
        ] {
            let line: Vec<&str> = line.split(' ').collect();
            let expected = format!("the argument '{one}' cannot be used with '{other}'");
            let refused = refused(&line);
            assert!(refused.contains(&expected), "{line:?}: {refused}");
        }
    }

    #[test]
    fn a_duration_in_a_filter_goes_together_with_what_min_does() {
        for (verb, option) in [
            (&["script"][..], "--hide-call-graph"),
            (&["script"], "--holders"),
            (&["trace", "-e", "a:b"], "-g"),
            (&["record", "-e", "a:b"], "-g"),
            (&["export", "--to", "folded", "-o", "x"], "--value=a"),
            (&["flame", "x.svg"], "--value=a"),
            (&["report"], "--sort=comm"),
        ] {
            for asked in [["--min", "1ms"], ["--filter", "span > 1ms"]] {
                let refused = refused(&[verb, &asked, &[option]].concat());
                assert!(
                    refused.contains("cannot be used with"),
                    "{verb:?} {option}: {refused}"
                );
            }
            let other = ["--filter", "arg1 > 1"];
            assert_eq!(refused(&[verb, &other, &[option]].concat()), "", "{verb:?}");
        }
    }
}
