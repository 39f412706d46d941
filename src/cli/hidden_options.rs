//! Options that are in no help: those of perf that state what is always so or are another name of an option, and those that are refused
//! with what to use instead.

use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::print::Times;

const RAW_SAMPLES: &str = "raw-samples";
const THREADS: &str = "threads";
const INLINE: &str = "inline";

/// Options of perf that state what is always so, by verbs. They are accepted, so that command lines of perf work.
const ALWAYS_SO: [(&[&str], Option<char>, &str); 6] = [
    // Samples have the arguments in their raw part, with the bpf engine: with perf engines it is refused.
    (&["record"], Some('R'), RAW_SAMPLES),
    // Each hit has its time.
    (&["record"], Some('T'), "timestamp"),
    // Traces are compressed by as many threads as the hits need.
    (&["record"], None, THREADS),
    // Each group has its number of events.
    (&["report"], Some('n'), "show-nr-samples"),
    // Reports are plain text.
    (&["report"], None, "stdio"),
    // Stacks have frames of inlined functions.
    (
        &["report", "script", "flame", "diff", "export"],
        None,
        INLINE,
    ),
];

/// Refuses `record -R` with perf engines, with which it is never so.
///
/// # Errors
/// The message of a usage error.
#[cfg(feature = "record")]
pub(super) fn check_raw_samples(matches: &ArgMatches, is_perf: bool) -> Result<(), String> {
    match matches.get_flag(RAW_SAMPLES) && is_perf {
        true => Err("-R, --raw-samples: samples of perf engines have no arguments in their raw part; leave out --engine".to_owned()),
        false => Ok(()),
    }
}

/// Options of perf that are items of `--times` of `script` and `trace`.
const EQUIVALENT: [(&str, Times); 3] = [
    ("reltime", Times::Reltime),
    ("deltatime", Times::Deltatime),
    ("ns", Times::Ns),
];

/// The items of `--times` that a verb of [`EQUIVALENT`] options is given by their names.
pub(super) fn times(matches: &ArgMatches) -> impl Iterator<Item = Times> {
    let given = EQUIVALENT.iter();
    let given = given.filter(|(long, _)| matches.get_flag(long));
    given.map(|(_, item)| *item)
}

/// Options that are refused, by verbs, and what to do, or use, instead.
const REFUSED: [(&[&str], Option<char>, &str, &str); 8] = [
    (&["record"], Some('c'), "count", FEWER),
    (&["record"], Some('F'), "freq", FEWER),
    (&["report"], None, "html", "use export --to html -o FILE"),
    (&["report"], None, "folded", "use export --to folded -o -"),
    (&["report", "diff", "script", "trace"], None, "human", HUMAN),
    (&["script", "trace"], None, "tod", "use -F +tod"),
    (&["export"], None, "counter", COUNTER),
    (&["stat"], None, "sum", "use --value"),
];

const FEWER: &str = "every hit is recorded; to record fewer, use --filter";
const COUNTER: &str = "slices have the numbers: in ui.perfetto.dev, make a debug track of the arguments debug.args.NAME";
/// The form of numbers is that of the verb.
const HUMAN: &str = "text of report and diff has numbers with a known unit as times and sizes; script, trace, JSON and CSV have plain numbers";

/// Adds these options to a command line.
pub(super) fn with_hidden_options(mut command: Command) -> Command {
    let states = ALWAYS_SO.map(|(verbs, short, long)| (verbs, always_so(short, long)));
    let equivalent = EQUIVALENT.map(|(long, _)| (&["script", "trace"][..], always_so(None, long)));
    let refused = REFUSED.map(|(verbs, short, long, instead)| {
        // Refused with a value and without one.
        let option = hidden(short, long).num_args(0..=1);
        let option = option.default_missing_value("");
        (verbs, option.value_parser(NoValue(instead)))
    });
    for (verbs, option) in states.into_iter().chain(equivalent).chain(refused) {
        for verb in verbs {
            // A build may be without the verb.
            if command.find_subcommand(verb).is_some() {
                command = command.mut_subcommand(verb, |verb| verb.arg(&option));
            }
        }
    }
    command
}

fn hidden(short: Option<char>, long: &'static str) -> Arg {
    Arg::new(long).short(short).long(long).hide(true)
}

fn always_so(short: Option<char>, long: &'static str) -> Arg {
    let option = hidden(short, long);
    match long {
        // It may have a value, whatever that is.
        THREADS => option.num_args(0..=1).require_equals(true),
        // The last of both counts.
        INLINE => option
            .action(ArgAction::SetTrue)
            .overrides_with("no_inline"),
        _ => option.action(ArgAction::SetTrue),
    }
}

/// Refuses every value.
#[derive(Clone, Copy, Debug)]
struct NoValue(&'static str);

impl TypedValueParser for NoValue {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        _: &OsStr,
    ) -> Result<String, clap::Error> {
        let option = argument.map(names).unwrap_or_default();
        let refused = format!("{option}: {}", self.0);
        Err(command.clone().error(ErrorKind::InvalidValue, refused))
    }
}

/// An option of other verbs that is refused, whatever its value.
#[cfg(feature = "record")]
pub(super) fn refused(option: Arg, reason: &'static str) -> Arg {
    option.value_parser(NoValue(reason)).hide(true)
}

/// The same, of an option without a value.
#[cfg(feature = "record")]
pub(super) fn refused_flag(option: Arg, reason: &'static str) -> Arg {
    option.value_parser(NoFlag(reason)).hide(true)
}

/// Refuses a flag; that it is not there is its default value.
#[cfg(feature = "record")]
#[derive(Clone, Copy, Debug)]
struct NoFlag(&'static str);

#[cfg(feature = "record")]
impl TypedValueParser for NoFlag {
    type Value = bool;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<bool, clap::Error> {
        match value == "false" {
            true => Ok(false),
            false => NoValue(self.0)
                .parse_ref(command, argument, value)
                .map(|_| true),
        }
    }
}

/// `-c, --count`.
fn names(option: &Arg) -> String {
    let short = option.get_short().map(|short| format!("-{short}"));
    let long = option.get_long().map(|long| format!("--{long}"));
    short.into_iter().chain(long).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    fn parse(line: &[&str]) -> Result<clap::ArgMatches, clap::Error> {
        let words = ["usdtrec"].iter().chain(line);
        Cli::whole().try_get_matches_from(words)
    }

    #[test]
    fn what_is_always_so_is_accepted_and_in_no_help() {
        for (verbs, _, long) in ALWAYS_SO {
            for verb in verbs {
                let mut command = Cli::whole();
                let verb = command.find_subcommand_mut(verb);
                let help = verb.expect("a verb").render_long_help().to_string();
                let long = format!("--{long} ");
                assert!(!help.contains(&long), "{help}");
            }
        }
        for line in [
            &["record", "-T", "-e", "a:b"][..],
            &["record", "--threads", "-e", "a:b", "true"],
            &["record", "--threads=cpu", "-e", "a:b"],
            &["report", "-n", "--stdio", "--inline"],
            &["flame", "a.svg", "--inline"],
            &["flame", "-i", "a.1", "-i", "a.2", "a.svg"],
            &["report", "-i", "a.1", "-i", "a.2", "--stdio"],
        ] {
            assert!(parse(line).is_ok(), "{line:?}");
        }
    }

    #[test]
    fn of_inline_and_no_inline_the_last_counts() {
        for (line, expected) in [
            (&["script", "--inline", "--no-inline"][..], true),
            (&["script", "--no-inline", "--inline"], false),
        ] {
            let matches = parse(line).expect("a command line");
            let (_, script) = matches.subcommand().expect("a verb");
            assert_eq!(script.get_flag("no_inline"), expected, "{line:?}");
        }
    }

    #[test]
    fn refused_options_say_what_to_do() {
        for (verbs, _, long, instead) in REFUSED {
            let long = format!("--{long}");
            let lines = [
                vec![verbs[0], &long],
                vec![verbs[0], &long, "5"],
                vec![verbs[0], &long, "--buildid-dir=cache"],
            ];
            for line in lines {
                let refused = parse(&line).expect_err("a refusal").to_string();
                assert!(refused.contains(instead), "{line:?}: {refused}");
            }
        }
    }
}
