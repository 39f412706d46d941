//! Every option of `report` has an effect on every question, or is refused.

use super::requests::record;
use crate::common::{Engine, Lab, run, test};

/// Questions.
const QUESTIONS: [&[&str]; 9] = [
    &[],
    &["--sort", "arg1"],
    &["--sort", "arg1", "--value", "arg1"],
    &["--span", "function"],
    &["--span", "function", "--by", "arg1"],
    &["--hist", "span:function"],
    &["--hist", "arg1"],
    &["--heatmap", "span:function"],
    &["--rate", "100ms"],
];

/// Options, each with values of which at least one changes an answer, where the option means anything. Deeper calls are fewer
/// and take longer, so that no order is both by count and by mean.
const OPTIONS: [(&str, &[&str]); 9] = [
    ("--key", &["pid"]),
    ("--by", &["arg1"]),
    ("--min", &["1ms"]),
    ("--order", &["count", "mean"]),
    ("--scale", &["linear"]),
    ("--value", &["arg1"]),
    ("--top", &["1"]),
    ("--time", &["10%-20%"]),
    ("--filter", &["arg1 == 2"]),
];

#[test]
fn every_option_has_an_effect_or_is_refused() {
    let mut wrong = Vec::new();
    // On a busy machine, threads may run one after the other, and nothing depends on which of them a call is of.
    for _ in 0..5 {
        wrong = options_without_effect();
        if wrong.is_empty() {
            return;
        }
    }
    panic!("{wrong:#?}");
}

/// The options that have no effect on a recording.
fn options_without_effect() -> Vec<String> {
    let lab = Lab::privileged();
    record(&lab, Engine::BpfMulti);
    let mut wrong = Vec::new();
    for question in QUESTIONS {
        let ask = |more: &[&str]| {
            let base = ["report", "-i", "trace", "--format", "csv"];
            run(lab.command([&base[..], question, more].concat()))
        };
        let plain = ask(&[]).success().stdout;
        for (option, values) in OPTIONS
            .iter()
            .filter(|(option, _)| !question.contains(option))
        {
            let has_effect = values.iter().any(|value| {
                let answer = ask(&[option, value]);
                let refused = !answer.status.success() && answer.stderr.contains(option);
                refused || answer.stdout != plain
            });
            if !has_effect {
                wrong.push(format!("{question:?} {option}"));
            }
        }
    }
    wrong
}
