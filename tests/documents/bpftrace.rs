//! The guide for those who know bpftrace: what it shows of bpftrace's output is what usdtrec counts, and what bpftrace prints where it is installed.

use std::path::Path;

use super::page::{Example, Page};
use super::run_command;
use crate::common::{Lab, find_tool, need_tool, run, test};

/// Numbers that bpftrace printed.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    /// `@[KEY, KEY]: NUMBER`; without keys for `@: NUMBER`.
    Entry { keys: Vec<String>, number: String },
    /// `[64, 128)   60 |@@@@|`, without those that are empty.
    Bucket { number: String },
    /// A line of `printf`, or a probe.
    Line(String),
}

impl Counted {
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        let is_remark = line.is_empty() || line.starts_with("Attaching ") || line == "@:";
        if is_remark {
            return None;
        }
        if let Some((_, rest)) = line.split_once(')').filter(|_| line.ends_with('|')) {
            let number = rest.split_whitespace().next().expect("a number").to_owned();
            return (number != "0").then_some(Self::Bucket { number });
        }
        // A bucket of one value.
        if line.ends_with('|') {
            return None;
        }
        let Some((name, number)) = line.split_once(": ").filter(|_| line.starts_with('@')) else {
            return Some(Self::Line(line.to_owned()));
        };
        let keys = name
            .split_once('[')
            .map_or("", |(_, keys)| keys)
            .trim_end_matches(']');
        let keys = keys.split(", ").filter(|key| !key.is_empty());
        Some(Self::Entry {
            keys: keys.map(str::to_owned).collect(),
            number: number.to_owned(),
        })
    }

    /// Those of an output, without the durations in `@ms`, which are others in each run.
    fn parse_lines<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<Self> {
        let mut is_duration = false;
        let lines = lines.filter(|line| {
            is_duration = line.starts_with("@ms[") || is_duration && !line.trim().is_empty();
            !is_duration
        });
        lines.filter_map(Self::parse).collect()
    }

    /// Whether usdtrec printed the same.
    fn is_in(&self, printed: &str, of_trace: bool) -> bool {
        let words_of =
            |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        match self {
            // Each is a line of events.
            Self::Entry { keys, number } if of_trace => {
                let has = |line: &str, key: &String| {
                    let value = format!("={key}");
                    words_of(line).iter().any(|word| word.ends_with(&value))
                };
                let lines = printed.lines();
                let lines = lines.filter(|line| keys.iter().all(|key| has(line, key)));
                lines.count().to_string() == *number
            }
            Self::Entry { keys, number } => printed.lines().any(|line| {
                let words = words_of(line);
                let has = |key: &String| {
                    let key = key.strip_prefix("usdt:./app:").unwrap_or(key);
                    words.iter().any(|word| word == key)
                };
                keys.iter().all(has) && words.contains(number)
            }),
            Self::Bucket { number } => printed
                .lines()
                .any(|line| words_of(line).get(1) == Some(number)),
            Self::Line(line) => {
                let line = line.strip_prefix("usdt:./app:").unwrap_or(line);
                printed
                    .lines()
                    .any(|ours| ours == line || ours.contains(&format!("sdt_{line} ")))
            }
        }
    }
}

/// Each command of bpftrace, with those of usdtrec that answer the same.
fn pairs(page: &Page) -> Vec<(Example, Vec<Example>)> {
    let mut pairs: Vec<(Example, Vec<Example>)> = Vec::new();
    for example in page.examples() {
        if example.command.starts_with("bpftrace ") {
            pairs.push((example, Vec::new()));
        } else if let Some((_, ours)) = pairs
            .last_mut()
            .filter(|_| example.command.contains("usdtrec "))
        {
            ours.push(example);
        }
    }
    pairs
}

#[test]
fn one_liners_of_bpftrace_have_the_same_numbers() {
    let lab = Lab::privileged();
    need_tool("gcc");
    let page = Page::read("docs/guides/from-bpftrace.md");
    for (name, text) in page.sources() {
        std::fs::write(lab.file(name), text).expect("a file");
    }
    run(lab.at_home(Path::new("gcc"), ["-O2", "-o", "app", "app.c"])).success();
    let pairs = pairs(&page);
    assert!(pairs.len() >= 13, "{pairs:?}");
    for (theirs, ours) in pairs {
        let mut shown = Counted::parse_lines(theirs.prints.iter().map(String::as_str));
        let mut printed = String::new();
        let ours: Vec<Example> = ours
            .into_iter()
            .filter(|example| {
                !["sdt_postgresql", "span:query", "ruby"]
                    .iter()
                    .any(|other| example.command.contains(other))
            })
            .collect();
        for example in &ours {
            printed += &run_command(&lab, &example.command, &|| ());
        }
        let of_trace = ours
            .iter()
            .any(|example| example.command.starts_with("usdtrec trace "));
        for counted in &shown {
            assert!(
                counted.is_in(&printed, of_trace),
                "{}: {counted:?} is not in\n{printed}",
                theirs.command
            );
        }
        // What is shown of it is what it prints.
        if find_tool("bpftrace").is_some() && !shown.is_empty() {
            let script = lab.at_home(Path::new("sh"), ["-c", &theirs.command]);
            let output = run(script).success().stdout;
            let mut found = Counted::parse_lines(output.lines());
            // On a busy machine others are slow as well.
            if theirs.command.contains("@slow[") {
                found.retain(|one| shown.contains(one));
            }
            found.sort();
            shown.sort();
            assert_eq!(found, shown, "{}", theirs.command);
        }
    }
}
