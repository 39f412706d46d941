//! All options of a verb, put into few recordings.

use std::collections::BTreeSet;
use std::path::Path;

use usdtrec_testing::is_deep;

use super::choice::{Choice, ENDERS, NEEDS, OF_ARGUMENTS};
use super::programs::{Programs, build};
use super::refused::{REFUSED, are_apart, refusal};
use super::run::Run;
use crate::common::Lab;

/// The options of a verb, as docs/options.md has them.
pub(super) fn documented(verb: &str) -> BTreeSet<String> {
    let document = include_str!("../../docs/options.md");
    let title = format!("\n## usdtrec {verb}\n");
    let (_, section) = document.split_once(&title).expect("a section of the verb");
    let section = section.split("\n## ").next().expect("text");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split_once('`')).map(|(name, _)| {
        // Without the name of the value.
        let name = name.split(" <").next().expect("a name");
        let name = name.split("[=").next().expect("a name");
        name.to_owned()
    });
    // Other tests are about when probes are attached (copied_code.rs), what patterns without a path wait for (followed.rs), the choice of processes
    // (chosen.rs), budgets (budget.rs), thread contexts (thread_context.rs), waits (off_cpu.rs), files that are mapped later (no_gap.rs), locks (context/), triggers
    // (flight_recorder/), slow spans and the callers that trace prints (slow_spans.rs), and recorders without capabilities (no_follow.rs).
    let others = [
        "-h, --help",
        "-D, --delay",
        "--no-wait",
        "--no-follow",
        "-G, --cgroup",
        "--container",
        "--unit",
        "--exe",
        "--thread-context",
        "--off-cpu",
        "--off-cpu-thresh",
        "--budget",
        "--no-gap",
        "--holders",
        "--span",
        "--key",
        "--min",
        "--ring",
        "--trigger",
        "--until",
        "--after",
        "--cooldown",
        "--keep",
        "--trigger-cmd",
    ];
    let of_trace = ["-g", "--call-graph", "--max-stack"];
    let is_other =
        |name: &str| others.contains(&name) || verb == "trace" && of_trace.contains(&name);
    names.filter(|name| !is_other(name)).collect()
}

/// All choices of a verb.
pub(super) struct Verb {
    pub(super) name: &'static str,
    pub(super) choices: Vec<&'static Choice>,
}

impl Verb {
    pub(super) fn named(&self, words: &str) -> usize {
        let mut choices = self.choices.iter();
        choices
            .position(|choice| choice.words == words)
            .expect("a choice")
    }

    /// Choices with what they need.
    pub(super) fn with_needs(&self, set: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut whole = set.clone();
        for (what, needed) in NEEDS {
            if whole.iter().any(|at| self.choices[*at].words == *what) {
                whole.insert(self.named(needed));
            }
        }
        whole
    }

    /// Two choices of a set that do not go together, with the reason; without a reason if they are values of one option, or both end the
    /// recording.
    pub(super) fn conflict(
        &self,
        set: &BTreeSet<usize>,
    ) -> Option<(usize, usize, Option<&'static str>)> {
        let pairs = set
            .iter()
            .flat_map(|one| set.range(one + 1..).map(move |other| (*one, *other)));
        let mut conflicts = pairs.filter_map(|(at, next)| {
            let (one, other) = (self.choices[at], self.choices[next]);
            let is_ender = |choice: &Choice| ENDERS.contains(&choice.words);
            if let Some(reason) = refusal(one, other) {
                return Some((at, next, Some(reason)));
            }
            let alike = one.option == other.option
                || is_ender(one) && is_ender(other)
                || are_apart(one, other);
            alike.then_some((at, next, None))
        });
        conflicts.next()
    }

    /// Sets of choices, so that each is in one of them; in deep tests each two that go together.
    pub(super) fn sets(&self) -> Vec<BTreeSet<usize>> {
        let all = 0..self.choices.len();
        let pairs = all
            .clone()
            .flat_map(|one| (one + 1..all.end).map(move |other| (one, other)));
        let goes = |set: &BTreeSet<usize>| self.conflict(set).is_none();
        let mut open: BTreeSet<(usize, usize)> = pairs
            .filter(|(one, other)| goes(&self.with_needs(&[*one, *other].into())))
            .collect();
        let mut sets = Vec::new();
        let mut tried = BTreeSet::new();
        loop {
            let is_new = |(one, other): &&(usize, usize)| {
                is_deep() || !tried.contains(one) || !tried.contains(other)
            };
            let Some((one, other)) = open.iter().find(is_new) else {
                break;
            };
            let mut set = self.with_needs(&[*one, *other].into());
            loop {
                let gain = |at: &usize| {
                    let new = |with: &&usize| open.contains(&(*at.min(*with), *at.max(*with)));
                    set.iter().filter(new).count()
                };
                let fits = |at: &usize| {
                    let mut more = set.clone();
                    more.insert(*at);
                    !set.contains(at) && goes(&self.with_needs(&more))
                };
                let best = all.clone().filter(fits).max_by_key(gain);
                let Some(best) = best.filter(|best| gain(best) > 0) else {
                    break;
                };
                set.insert(best);
                set = self.with_needs(&set);
            }
            open.retain(|(one, other)| !(set.contains(one) && set.contains(other)));
            tried.extend(set.iter().copied());
            sets.push(set);
        }
        sets
    }

    pub(super) fn run(&self, set: &BTreeSet<usize>) -> Run<'static> {
        Run {
            verb: self.name,
            choices: set.iter().map(|at| self.choices[*at]).collect(),
        }
    }

    /// What is wrong with a set of options that go together.
    pub(super) fn wrong(&self, set: &BTreeSet<usize>, built: &Path) -> Vec<String> {
        let run = self.run(set);
        let depends_on_time = ["-q", "--duration {duration}", "-d {delay}", "-n 2"];
        let mut slower = 1;
        loop {
            let lab = Lab::new();
            let wrong = match run.execute(&lab, built, slower) {
                Err(said) => vec![format!("refused: {said}")],
                Ok(seen) => {
                    let silent = run.choices.iter().filter(|choice| !(choice.shows)(&seen));
                    let silent = silent.map(|choice| {
                        let text: String = seen.text.chars().take(600).collect();
                        format!("{}: {text}\n{}", choice.words, seen.ended.stderr)
                    });
                    silent.collect()
                }
            };
            if wrong.is_empty() {
                return wrong;
            }
            if slower > 30 || !depends_on_time.iter().any(|words| run.has(words)) {
                let words: Vec<&str> = run.choices.iter().map(|choice| choice.words).collect();
                let all = words.join(" ");
                return wrong
                    .iter()
                    .map(|wrong| format!("{} {all}: {wrong}", self.name))
                    .collect();
            }
            slower *= 4;
        }
    }

    /// Two options that do not go together are refused with the reason.
    pub(super) fn refuses(
        &self,
        set: &BTreeSet<usize>,
        reason: &str,
        built: &Path,
    ) -> Option<String> {
        let lab = Lab::new();
        let run = self.run(set);
        let programs = Programs::start(&lab, built);
        let words = run.command(&lab, &programs, 1);
        let ended = lab.usdtrec(&words);
        let is_refused = !ended.status.success() && ended.stderr.contains(reason);
        (!is_refused).then(|| format!("{words:?} is not refused with {reason:?}: {}", ended.stderr))
    }

    #[track_caller]
    pub(super) fn check(&self) {
        let known: BTreeSet<String> = self
            .choices
            .iter()
            .map(|choice| choice.option.to_owned())
            .collect();
        let refused = match self.name {
            "top" | "stat" => &OF_ARGUMENTS[..],
            _ => &[],
        };
        let refused = refused.iter().map(|option| (*option).to_owned());
        let known: BTreeSet<String> = known.into_iter().chain(refused).collect();
        assert_eq!(known, documented(self.name));
        let lab = Lab::privileged();
        let built = build(&lab);
        let mut wrong = Vec::new();
        for (first, second, reason) in REFUSED {
            let find = |words: &str| self.choices.iter().position(|choice| choice.words == words);
            if let (Some(first), Some(second)) = (find(first), find(second)) {
                wrong.extend(self.refuses(&[first, second].into(), reason, &built));
            }
        }
        let sets = self.sets();
        for set in &sets {
            wrong.extend(self.wrong(set, &built));
        }
        eprintln!(
            "{}: {} recordings of {} options",
            self.name,
            sets.len(),
            self.choices.len()
        );
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }
}
