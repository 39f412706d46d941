//! `--to folded` and `pprof` as programs of others read them: inferno, `go tool pprof`.

use std::fs;
use std::path::Path;

use super::nasty::Nasty;
use super::weights::{Weights, of_report};
use crate::common::{Lab, need_tool, run, test};

/// Debian's package golang-1.19-go.
const GO: &str = "/usr/lib/go-1.19/bin/go";
/// The options of both kinds of weights: hits, and time in spans.
const WEIGHTS: [&[&str]; 2] = [&[], &["--span", "nasty:work"]];

/// The stacks of a profile as `go tool pprof` prints them, with the last value of each. Stacks of hits begin with the label.
#[track_caller]
fn stacks_of_pprof(lab: &Lab, profile: &Path, with_label: bool) -> Weights {
    let mut go = lab.at_home(Path::new(GO), ["tool", "pprof", "-raw"]);
    go.arg(profile).env("PPROF_TMPDIR", lab.path());
    let printed = run(go).success().stdout;
    let (_, samples) = printed.split_once("Samples:\n").expect("samples");
    let (samples, locations) = samples.split_once("Locations\n").expect("locations");
    let (locations, _) = locations.split_once("Mappings\n").expect("mappings");
    // `     1: 0x0 M=1 main :0 s=0`
    let names: Vec<&str> = locations
        .lines()
        .map(|line| {
            let (_, name) = line.split_once(" M=").expect("a mapping");
            let (_, name) = name.split_once(' ').expect("a name");
            name.strip_suffix(" :0 s=0").expect("no line")
        })
        .collect();
    // `         53: 1 2 3`, and then `                event:[sdt_nasty:value]`. The first line names the values.
    let mut weights = Weights::new();
    let mut lines = samples.lines().skip(1).map(str::trim);
    while let Some(sample) = lines.next() {
        let (values, ids) = sample.split_once(": ").expect("a sample");
        let value = values.split_whitespace().last().expect("a value");
        let ids = ids.split_whitespace();
        let mut stack: Vec<&str> = ids
            .map(|id| names[id.parse::<usize>().expect("an id") - 1])
            .collect();
        let label = lines.next().expect("a label");
        if with_label {
            let label = label.strip_prefix("event:[").expect("the event");
            stack.push(label.strip_suffix(']').expect("the event"));
        }
        stack.reverse();
        *weights.entry(stack.join(";")).or_default() += value.parse::<u64>().expect("a number");
    }
    weights
}

#[test]
fn go_tool_pprof_has_the_weights_of_the_report() {
    need_tool(GO);
    let nasty = Nasty::record(50, &["-g"]);
    for options in WEIGHTS {
        let profile = nasty.export("pprof", options);
        let found = stacks_of_pprof(&nasty.lab, &profile, options.is_empty());
        assert_eq!(found, of_report(&nasty, options), "{options:?}");
    }
}

#[test]
fn inferno_draws_all_folded_stacks() {
    let nasty = Nasty::record(50, &["-g"]);
    for options in WEIGHTS {
        let text = fs::read_to_string(nasty.export("folded", options)).expect("a file");
        let mut picture = Vec::new();
        let mut drawing = inferno::flamegraph::Options::default();
        inferno::flamegraph::from_lines(&mut drawing, text.lines(), &mut picture).expect("SVG");
        let picture = String::from_utf8(picture).expect("UTF-8");
        let all: u64 = of_report(&nasty, options).values().sum();
        let total = format!("total_samples=\"{all}\"");
        assert!(picture.contains(&total), "{total}: {picture:.2000}");
    }
}
