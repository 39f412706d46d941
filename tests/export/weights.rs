//! `--to folded`, `speedscope` and `pprof`: stacks weigh what `report --folded` says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use super::nasty::Nasty;
use super::proto::{Field, Message};
use crate::common::test;

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
    let report = ["report", "-i", "trace", "--folded"];
    let report = nasty.lab.usdtrec([&report[..], options].concat());
    folded(&report.success().stdout)
}

fn speedscope(path: &Path) -> Weights {
    let document: Json = serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
    let frames = &document["shared"]["frames"];
    let profiles = document["profiles"].as_array().expect("profiles");
    let mut weights = Weights::new();
    for profile in profiles {
        let mut stacks = Vec::new();
        for sample in profile["samples"].as_array().expect("samples") {
            let names = sample.as_array().expect("frames").iter();
            let mut names: Vec<&str> = names
                .map(|at| {
                    let at = at.as_u64().expect("an index") as usize;
                    frames[at]["name"].as_str().expect("a name")
                })
                .collect();
            if profiles.len() > 1 {
                names.insert(0, profile["name"].as_str().expect("a name"));
            }
            stacks.push(names.join(";"));
        }
        let own = profile["weights"].as_array().expect("weights");
        assert_eq!(own.len(), stacks.len());
        for (stack, weight) in stacks.into_iter().zip(own) {
            *weights.entry(stack).or_default() += weight.as_u64().expect("a number");
        }
    }
    weights
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
        assert_eq!(speedscope(&nasty.export("speedscope", options)), expected);
        let profile = nasty.export("pprof", options);
        assert_eq!(pprof(&profile, options.is_empty()), expected);
    }
    let two = ["--span", "nasty:work", "--span", "nasty:job"];
    let head = ["export", "-i", "trace", "--to", "folded", "-o", "out"];
    let refused = nasty.lab.usdtrec([&head[..], &two].concat());
    refused.exits(1).complains("expected one name");
}
