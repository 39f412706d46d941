//! `--to folded` and `pprof`: stacks weigh the same in both, in a file and on standard output.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::nasty::Nasty;
use super::proto::{Field, Message};
use crate::common::{Lab, test};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");

/// Stacks with their weights, as lines of folded stacks have them.
pub(super) type Weights = BTreeMap<String, u64>;

fn folded(text: &str) -> Weights {
    let lines = text.lines().map(|line| {
        let (stack, weight) = line.rsplit_once(' ').expect("a weight");
        (stack.to_owned(), weight.parse().expect("a number"))
    });
    lines.collect()
}

pub(super) fn of_report(nasty: &Nasty, options: &[&str]) -> Weights {
    let report = ["export", "-i", "trace", "--to", "folded", "-o", "-"];
    let report = nasty.lab.usdtrec([&report[..], options].concat());
    folded(&report.success().stdout)
}

fn gunzip(path: &Path) -> Vec<u8> {
    let gzip = Command::new("gzip")
        .arg("-dc")
        .stdin(fs::File::open(path).expect("a file"))
        .output();
    let gzip = gzip.expect("gzip");
    assert!(gzip.status.success());
    gzip.stdout
}

/// The sum of the last value of each stack, by the names of functions.
fn pprof(path: &Path, with_label: bool) -> Weights {
    let bytes = gunzip(path);
    let profile = Message::parse(&bytes);
    let strings: Vec<&str> = profile
        .all(6)
        .map(|text| match text {
            Field::Bytes(text) => std::str::from_utf8(text).expect("UTF-8"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(strings[0], "");
    let names: BTreeMap<u64, &str> = profile
        .messages(5)
        .iter()
        .map(|function| {
            let name = function.number(2).expect("a name") as usize;
            (function.number(1).expect("an id"), strings[name])
        })
        .collect();
    let functions: BTreeMap<u64, u64> = profile
        .messages(4)
        .iter()
        .map(|location| {
            let line = location.message(4).expect("a line");
            let function = line.number(1).expect("a function");
            (location.number(1).expect("an id"), function)
        })
        .collect();
    let mut weights = Weights::new();
    for sample in profile.messages(2) {
        let locations = sample.all(1).map(|id| match id {
            Field::Varint(id) => names[&functions[id]],
            other => panic!("{other:?}"),
        });
        let mut stack: Vec<&str> = locations.collect();
        if with_label {
            let label = sample.message(3).expect("a label");
            stack.push(strings[label.number(2).expect("a text") as usize]);
        }
        stack.reverse();
        *weights.entry(stack.join(";")).or_default() += sample.number(2).expect("a value");
    }
    weights
}

#[test]
fn stacks_weigh_what_the_report_says() {
    let nasty = Nasty::record(50, &["-g"]);
    let span = ["--span", "nasty:work"];
    for options in [&[][..], &span[..]] {
        let expected = of_report(&nasty, options);
        assert!(expected.len() >= 3, "{expected:?}");
        let text = fs::read_to_string(nasty.export("folded", options)).expect("a file");
        assert_eq!(folded(&text), expected);
        let profile = nasty.export("pprof", options);
        assert_eq!(pprof(&profile, options.is_empty()), expected);
    }
    // Of several spans, the time of those within others counts once.
    let sum = |options: &[&str]| of_report(&nasty, options).values().sum::<u64>();
    let both = sum(&["--span", "nasty:work", "--span", "nasty:job"]);
    let [work, job] = ["nasty:work", "nasty:job"].map(|name| sum(&["--span", name]));
    assert!(
        both >= work.max(job) && both <= work + job,
        "{both} {work} {job}"
    );
}

/// All weights of the report.
#[test]
fn weights_are_chosen_as_in_the_report() {
    let nasty = Nasty::record(50, &["-g"]);
    for options in [
        &["-e", "nasty:work__start", "--value", "arg1"][..],
        &["--stacks", "native"],
        &["--span", "nasty:work", "--min", "1us"],
    ] {
        let expected = of_report(&nasty, options);
        assert!(!expected.is_empty(), "{options:?}");
        let text = fs::read_to_string(nasty.export("folded", options)).expect("a file");
        assert_eq!(folded(&text), expected, "{options:?}");
        let profile = nasty.export("pprof", options);
        assert!(profile.metadata().expect("a file").len() > 0);
    }
    let none = nasty.export("folded", &["--span", "nasty:work", "--min", "1h"]);
    assert_eq!(fs::read_to_string(none).expect("a file"), "");
}

/// Spans of at least a duration, as many as the report counts.
#[test]
fn short_spans_are_left_out() {
    let lab = Lab::new();
    let asked = ["--span", "request", "--min", "1ms"];
    let report = ["report", "-i", DEMO, "--format", "json"];
    let report = lab.usdtrec([&report[..], &asked].concat()).success();
    let report: serde_json::Value = serde_json::from_str(&report.stdout).expect("JSON");
    let count = report["spans"][0]["count"].as_u64().expect("a count");
    let exported = |options: &[&str]| {
        let export = ["export", "-i", DEMO, "--to", "otlp", "-o", "-"];
        let spans = lab.usdtrec([&export[..], options].concat()).success();
        spans.stdout.matches("\"startTimeUnixNano\"").count() as u64
    };
    assert_eq!(exported(&asked), count);
    assert!(count > 0 && count < exported(&asked[..2]), "{count}");
    for (options, why) in [
        (&["--to", "otlp", "--key", "arg1"][..], "--span"),
        (
            &["--to", "otlp", "--value", "arg1"],
            "cannot be used with '--to otlp'",
        ),
        (
            &["--to", "perfetto", "--stacks", "script"],
            "cannot be used with '--to perfetto'",
        ),
        (
            &["--to", "folded", "--value", "arg1", "--span", "x"],
            "cannot be used",
        ),
    ] {
        let export = ["export", "-i", DEMO, "-o", "refused"];
        let refused = lab.usdtrec([&export[..], options].concat());
        refused.exits(2).complains(why);
    }
}
