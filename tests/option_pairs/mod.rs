//! Every two options of `record`, `trace`, `top` and `stat` have their effects together, or are refused in words. Each option is tried once with several others, in
//! deep tests each two that go together.
//!
//! The options are those of docs/options.md, which a test keeps equal to the command line's own definition: one that is not known here
//! fails the test. Options go together in few recordings, so that each two are in one of them; each leaves out hits of its own of
//! testdata/targets/pairs.c, or shows in another way that it is obeyed, whatever is asked for besides.

mod choice;
mod hits;
mod programs;
mod refused;
mod run;
mod seen;
mod verb;

use self::choice::{CAPTURE, Choice, OF_ARGUMENTS, OF_RECORDS, RECORD, STAT, TOP, TRACE};
use self::programs::build;
use self::verb::Verb;
use crate::common::{Lab, test};

#[test]
fn of_record() {
    let choices = CAPTURE.iter().chain(&RECORD).collect();
    Verb {
        name: "record",
        choices,
    }
    .check();
}

#[test]
fn of_trace() {
    let choices = CAPTURE.iter().chain(&TRACE).collect();
    Verb {
        name: "trace",
        choices,
    }
    .check();
}

/// `top` shows no arguments: what is about them alone is refused.
#[test]
fn of_top() {
    let is_of_arguments = |choice: &&Choice| OF_ARGUMENTS.contains(&choice.option);
    let capture = CAPTURE.iter().filter(|choice| !is_of_arguments(choice));
    let choices = capture.chain(&TOP).collect();
    Verb {
        name: "top",
        choices,
    }
    .check();
    let lab = Lab::privileged();
    for choice in CAPTURE.iter().filter(is_of_arguments) {
        let words = ["top", "--no-wait", "-e", "x:y"]
            .into_iter()
            .chain(choice.words.split(' '));
        let ended = lab.usdtrec(words);
        let is_off = choice.words == "--strings off";
        let is_refused = ended.stderr.contains("<--filter <EXPR>|--by <KEY>|--span");
        assert_eq!(is_refused, !is_off, "{}: {}", choice.option, ended.stderr);
    }
}

/// `stat` shows no arguments and has no rings, and perf events cannot count without them.
#[test]
fn of_stat() {
    let has_effect = |choice: &&Choice| {
        let without = [&OF_ARGUMENTS[..], &OF_RECORDS].concat();
        !without.contains(&choice.option) && choice.words != "--engine perf-tracefs"
    };
    let choices = CAPTURE.iter().filter(has_effect).chain(&STAT).collect();
    Verb {
        name: "stat",
        choices,
    }
    .check();
}

/// Of two options that end the recording, the first to be fulfilled does.
#[test]
fn of_two_ends_the_first_counts() {
    let lab = Lab::privileged();
    let built = build(&lab);
    let path = built.to_str().expect("a path");
    let event = format!("sdt_pairs:*@{path}");
    let recorded = lab.usdtrec([
        "record",
        "--max-size",
        "1G",
        "--duration",
        "300ms",
        "-e",
        &event,
    ]);
    recorded.success();
    let shown = lab.usdtrec([
        "top",
        "-n",
        "1000",
        "-d",
        "100ms",
        "--duration",
        "300ms",
        "-e",
        &event,
    ]);
    shown.success();
}
