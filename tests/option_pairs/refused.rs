//! Pairs of options that are refused, with the reasons.

use super::choice::Choice;

/// Options that do not go together, and words of the reason.
pub(super) const REFUSED: &[(&str, &str, &str)] = &[
    ("-a", "-p {pid}", "cannot be used with"),
    ("-a", "-t {pid}", "cannot be used with"),
    ("-p {pid}", "-t {pid}", "cannot be used with"),
    ("-a", "-i", "cannot be used with"),
    ("-t {pid}", "-i", "cannot be used with"),
    ("-q", "-v", "cannot be used with"),
    (
        "--engine perf-tracefs",
        "--strings all",
        "--strings all needs the bpf engine",
    ),
    (
        "--engine perf-tracefs",
        "--strlen 5",
        "--strlen needs the bpf engine",
    ),
    (
        "--engine perf-tracefs",
        "--nonresident never",
        "--nonresident needs the bpf engine",
    ),
    (
        "--engine perf-tracefs",
        "--stack-rate 1",
        "<-g|--call-graph <MODE>>",
    ),
    ("--strings off", "--strlen 5", "cannot be used with"),
    (
        "--engine perf-tracefs",
        "--by comm",
        "top --by needs the bpf engine",
    ),
    ("-m 5M", "--by comm", "cannot be used with"),
    ("--format json", "-x,", "cannot be used with"),
    ("--format csv", "-x,", "cannot be used with"),
    (
        "--times reltime",
        "--times deltatime",
        "reltime and deltatime contradict each other",
    ),
    ("--format json", "--times ns", "cannot be used with"),
    ("--format csv", "--times ns", "cannot be used with"),
    (
        "--format T:{time}\\t{args}",
        "-F -comm",
        "determines the fields",
    ),
];

/// Pairs that go together in no set here: with perf events, callers are refused beside a third option (`-R`), and the kernel does not say that it
/// cut a chain. `stacks::recorded` has both together.
const APART: [(&str, &str); 2] = [
    ("--engine perf-tracefs", "-g"),
    ("--engine perf-tracefs", "--call-graph fp"),
];

/// Whether two options are in no set together although they are not refused.
pub(super) fn are_apart(one: &Choice, other: &Choice) -> bool {
    APART.iter().any(|(first, second)| {
        let words = [one.words, other.words];
        words == [*first, *second] || words == [*second, *first]
    })
}

/// What two options that do not go together say.
pub(super) fn refusal(one: &Choice, other: &Choice) -> Option<&'static str> {
    let is = |choice: &Choice, words: &str| choice.words == words;
    let mut known = REFUSED.iter();
    let known = known.find(|(first, second, _)| {
        is(one, first) && is(other, second) || is(one, second) && is(other, first)
    });
    known.map(|(.., reason)| *reason)
}
