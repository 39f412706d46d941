//! Options that are in no help: those of perf that state what is always so or are another name of an option, and those that are refused
//! with what to use instead.

use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::print::Times;

/// An option of perf that states what is always so. It is accepted, so that command lines of perf work.
struct AlwaysSo {
    verbs: &'static [&'static str],
    short: Option<char>,
    long: &'static str,
    /// The option that states the opposite: the last of both counts.
    opposite: Option<&'static str>,
    /// Whether it may have a value, whatever that is.
    has_value: bool,
    what: &'static str,
}

const RAW_SAMPLES: &str = "raw-samples";

const ALWAYS_SO: [AlwaysSo; 6] = [
    // With the bpf engine: with perf engines it is refused.
    AlwaysSo {
        verbs: &["record"],
        short: Some('R'),
        long: RAW_SAMPLES,
        opposite: None,
        has_value: false,
        what: "samples have the arguments in their raw part",
    },
    AlwaysSo {
        verbs: &["record"],
        short: Some('T'),
        long: "timestamp",
        opposite: None,
        has_value: false,
        what: "each hit has its time",
    },
    AlwaysSo {
        verbs: &["record"],
        short: None,
        long: "threads",
        opposite: None,
        has_value: true,
        what: "traces are compressed by as many threads as the hits need",
    },
    AlwaysSo {
        verbs: &["report"],
        short: Some('n'),
        long: "show-nr-samples",
        opposite: None,
        has_value: false,
        what: "each group has its number of events",
    },
    AlwaysSo {
        verbs: &["report"],
        short: None,
        long: "stdio",
        opposite: None,
        has_value: false,
        what: "reports are plain text",
    },
    AlwaysSo {
        verbs: &["report", "script", "flame", "diff", "export"],
        short: None,
        long: "inline",
        opposite: Some("no_inline"),
        has_value: false,
        what: "stacks have frames of inlined functions",
    },
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

/// An option of perf that is an item of `--times` of `script` and `trace`.
struct Equivalent {
    long: &'static str,
    item: Times,
}

const EQUIVALENT: [Equivalent; 3] = [
    Equivalent {
        long: "reltime",
        item: Times::Reltime,
    },
    Equivalent {
        long: "deltatime",
        item: Times::Deltatime,
    },
    Equivalent {
        long: "ns",
        item: Times::Ns,
    },
];

/// The items of `--times` that a verb of [`EQUIVALENT`] options is given by their names.
pub(super) fn times(matches: &ArgMatches) -> impl Iterator<Item = Times> {
    let given = EQUIVALENT.iter();
    let given = given.filter(|option| matches.get_flag(option.long));
    given.map(|option| option.item)
}

/// An option that is refused.
struct Refused {
    verbs: &'static [&'static str],
    short: Option<char>,
    long: &'static str,
    /// What to do, or use, instead.
    instead: &'static str,
}

const REFUSED: [Refused; 8] = [
    Refused {
        verbs: &["record"],
        short: Some('c'),
        long: "count",
        instead: "every hit is recorded; to record fewer, use --filter",
    },
    Refused {
        verbs: &["record"],
        short: Some('F'),
        long: "freq",
        instead: "every hit is recorded; to record fewer, use --filter",
    },
    Refused {
        verbs: &["report"],
        short: None,
        long: "html",
        instead: "use export --to html -o FILE",
    },
    Refused {
        verbs: &["report"],
        short: None,
        long: "folded",
        instead: "use export --to folded -o -",
    },
    Refused {
        verbs: &["report", "diff", "script", "trace"],
        short: None,
        long: "human",
        instead: HUMAN,
    },
    Refused {
        verbs: &["script", "trace"],
        short: None,
        long: "tod",
        instead: "use -F +tod",
    },
    Refused {
        verbs: &["export"],
        short: None,
        long: "counter",
        instead: "slices have the numbers: in ui.perfetto.dev, make a debug track of the arguments debug.args.NAME",
    },
    Refused {
        verbs: &["stat"],
        short: None,
        long: "sum",
        instead: "use --value",
    },
];

/// The form of numbers is that of the verb.
const HUMAN: &str = "text of report and diff has numbers with a known unit as times and sizes; script, trace, JSON and CSV have plain numbers";

/// Adds these options to a command line.
pub(super) fn with_hidden_options(mut command: Command) -> Command {
    for option in &ALWAYS_SO {
        for verb in option.verbs {
            command = with_argument(command, verb, || option.argument());
        }
    }
    for option in &EQUIVALENT {
        for verb in ["script", "trace"] {
            command = with_argument(command, verb, || option.argument());
        }
    }
    for option in &REFUSED {
        for verb in option.verbs {
            command = with_argument(command, verb, || option.argument());
        }
    }
    command
}

/// A build may be without the verb.
fn with_argument(command: Command, verb: &'static str, argument: impl Fn() -> Arg) -> Command {
    if command.find_subcommand(verb).is_none() {
        return command;
    }
    command.mut_subcommand(verb, |verb| verb.arg(argument()))
}

impl AlwaysSo {
    fn argument(&self) -> Arg {
        let argument = Arg::new(self.long)
            .short(self.short)
            .long(self.long)
            .help(self.what)
            .hide(true);
        let argument = match self.has_value {
            true => argument.num_args(0..=1).require_equals(true),
            false => argument.action(ArgAction::SetTrue),
        };
        match self.opposite {
            Some(opposite) => argument.overrides_with(opposite),
            None => argument,
        }
    }
}

impl Equivalent {
    fn argument(&self) -> Arg {
        Arg::new(self.long)
            .long(self.long)
            .help(format!("--times {}", self.long))
            .action(ArgAction::SetTrue)
            .hide(true)
    }
}

impl Refused {
    fn argument(&self) -> Arg {
        Arg::new(self.long)
            .short(self.short)
            .long(self.long)
            .help(self.instead)
            // Refused with a value and without one.
            .num_args(0..=1)
            .default_missing_value("")
            .value_parser(NoValue(self.instead))
            .hide(true)
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
        for option in &ALWAYS_SO {
            for verb in option.verbs {
                let mut command = Cli::whole();
                let verb = command.find_subcommand_mut(verb);
                let help = verb.expect("a verb").render_long_help().to_string();
                let long = format!("--{} ", option.long);
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
        for option in &REFUSED {
            let long = format!("--{}", option.long);
            let lines = [
                vec![option.verbs[0], &long],
                vec![option.verbs[0], &long, "5"],
                vec![option.verbs[0], &long, "--buildid-dir=cache"],
            ];
            for line in lines {
                let refused = parse(&line).expect_err("a refusal").to_string();
                assert!(refused.contains(option.instead), "{line:?}: {refused}");
            }
        }
    }
}
