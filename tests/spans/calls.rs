//! Calls of testdata/targets/calls.cc, at random: nested, recursive, left by exceptions and by longjmp, in threads that change the CPU. Their
//! spans and groups are those that the program measured, and those of a calculation over what `script` prints.

use std::collections::BTreeMap;

use serde_json::Value;

use super::walk::{Asked, ask, covered, list, number, outside};
use crate::common::{Build, Event, Lab, run, test};

const CXX: Build = Build {
    compiler: "g++",
    options: &["-O2"],
};

const FUNCTION: Asked<'_> = Asked {
    starts: &["function__entry"],
    dones: &["function__return"],
    key: None,
    by: &["function"],
};

/// With the calls' ids, begin and end are known to belong together; without, calls of one function cannot be distinguished where the inner one
/// was left.
const WITH_IDS: [&str; 2] = [
    "sdt_calls:function__entry(function=str(arg1), id=arg2, depth=arg3)",
    "sdt_calls:function__return(function=str(arg1), id=arg2, status=arg3)",
];
const WITHOUT_IDS: [&str; 2] = [
    "sdt_calls:function__entry(function=str(arg1), depth=arg3)",
    "sdt_calls:function__return(function=str(arg1), status=arg3)",
];

/// What the program says of a call.
#[derive(Debug)]
struct Call {
    function: String,
    /// What is inside of its span, and what the span is inside of, ns; `None` if it did not return.
    took: Option<(u64, u64)>,
}

/// Records the program; what it prints. `None`, and the test is to be skipped, without a compiler.
#[track_caller]
pub(crate) fn record(lab: &Lab, events: &[&str], arguments: [&str; 4]) -> String {
    let program = CXX.make(lab, "calls.cc", "calls");
    lab.usdtrec(["buildid-cache", "--add", "calls"]).success();
    let mut record = lab.command(["record", "-m", "64M", "-o", "trace"]);
    for event in events {
        record.args(["-e", event]);
    }
    record.arg("--").arg(program).args(arguments);
    let recorded = run(record).success();
    recorded.complains(" 0 lost").stdout
}

fn parse(said: &str) -> BTreeMap<u64, Call> {
    let call = |line: &str| {
        let rest = line.strip_prefix("call ")?;
        let (id, rest) = rest.split_once(' ')?;
        let mut words = rest.rsplitn(4, ' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (outer, inner, returned) = (number()?, number()?, number()?);
        let call = Call {
            function: words.next()?.to_owned(),
            took: (returned == 1).then_some((inner, outer)),
        };
        Some((id.parse().ok()?, call))
    };
    let calls = said.lines().map(call);
    calls.collect::<Option<_>>().expect("lines of calls")
}

#[test]
fn calls_are_those_of_the_program() {
    let lab = Lab::privileged();
    for seed in ["1", "2"] {
        let said = record(&lab, &WITH_IDS, [seed, "120", "4", "0"]);
        let said = parse(&said);
        let walk = FUNCTION.compare(&lab, "function", &["--order", "p99"]);
        let returned = said.values().filter(|call| call.took.is_some()).count();
        assert!(returned > 1000 && said.len() - returned > 1000, "{said:?}");
        assert_eq!(
            (walk.open, walk.unmatched),
            (said.len() - returned, 0),
            "seed {seed}"
        );
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for call in said.values().filter(|call| call.took.is_some()) {
            let name = Value::Array(vec![call.function.clone().into()]);
            *counts.entry(name.to_string()).or_default() += 1;
        }
        let walked = walk.groups.iter();
        let walked: BTreeMap<String, usize> = walked
            .map(|(name, spans)| (name.clone(), spans.len()))
            .collect();
        assert_eq!(walked, counts);

        let answer = ask(&lab, &["--span", "function", "--by", "id"]);
        let groups = list(&answer["spans"][0], "groups");
        assert_eq!(groups.len(), returned);
        for group in groups {
            let call = &said[&number(group, "id")];
            let (inner, outer) = call.took.expect("a call that returned");
            let took = number(group, "total_ns");
            assert!(
                (inner..=outer).contains(&took),
                "{group} is not within {call:?}"
            );
        }
    }
}

/// A span as the calculation of this file finds it.
struct Found<'e> {
    begin: &'e Event,
    end: &'e Event,
    /// When it was in no other span of its thread within it, ns.
    own: Vec<(u64, u64)>,
}

impl Found<'_> {
    fn duration(&self) -> u64 {
        self.end.time_ns - self.begin.time_ns
    }
}

/// A begin without its end, and the spans within it.
type Open<'e> = (&'e Event, Vec<(u64, u64)>);

/// All spans: an end belongs to the latest begin of its thread and function that has no end and before which nothing that is open has ended.
fn spans(events: &[Event]) -> Vec<Found<'_>> {
    let mut stacks: BTreeMap<u32, Vec<Open<'_>>> = BTreeMap::new();
    let mut found = Vec::new();
    for event in events {
        let stack = stacks.entry(event.tid).or_default();
        match event.name() {
            "function__entry" => stack.push((event, Vec::new())),
            "function__return" => {
                let function = event.named("function");
                let is_its = |(begin, _): &Open<'_>| begin.named("function") == function;
                let Some(at) = stack.iter().rposition(is_its) else {
                    continue;
                };
                let begin = stack[at].0;
                let inner = stack.drain(at..).flat_map(|(_, inner)| inner).collect();
                let span = (begin.time_ns, event.time_ns);
                if let Some((_, inner)) = stack.last_mut() {
                    inner.push(span);
                }
                let own = outside(span, inner);
                let end = event;
                found.push(Found { begin, end, own });
            }
            _ => {}
        }
    }
    found
}

/// Asserts that groups have the spans that `group` puts into them.
#[track_caller]
fn compare(
    lab: &Lab,
    question: &[&str],
    by: &str,
    spans: &[&Found<'_>],
    group: impl Fn(&Found<'_>) -> Value,
) {
    let mut expected: BTreeMap<String, Vec<&Found<'_>>> = BTreeMap::new();
    for span in spans {
        expected
            .entry(group(span).to_string())
            .or_default()
            .push(span);
    }
    let mut asked = vec!["--span", "function", "--by", by];
    asked.extend(question);
    let answer = ask(lab, &asked);
    let answer = &answer["spans"][0];
    assert_eq!(answer["count"], spans.len(), "{asked:?}");
    let groups = list(answer, "groups");
    assert_eq!(groups.len(), expected.len(), "{asked:?}");
    for group in groups {
        let spans = &expected[&group[by].to_string()];
        let sum: u64 = spans.iter().map(|span| span.duration()).sum();
        let own = covered(spans.iter().flat_map(|span| span.own.clone()).collect());
        let most = spans.iter().map(|span| span.duration()).max();
        assert_eq!(group["count"], spans.len(), "{asked:?} {group}");
        assert_eq!(
            number(group, "mean_ns"),
            sum / spans.len() as u64,
            "{asked:?} {group}"
        );
        assert_eq!(number(group, "self_total_ns"), own, "{asked:?} {group}");
        let outside = spans.iter().flat_map(|span| &span.own);
        let own_sum: u64 = outside.map(|(begin, end)| end - begin).sum();
        assert_eq!(number(group, "self_ns"), own_sum, "{asked:?} {group}");
        assert_eq!(Some(number(group, "max_ns")), most, "{asked:?} {group}");
    }
}

/// Asserts that the heat map of each group has the spans that `group` puts into it, each in its bucket and in the interval in which it began.
#[track_caller]
fn maps(lab: &Lab, spans: &[&Found<'_>], group: impl Fn(&Found<'_>) -> Value) {
    let question = [
        "--heatmap",
        "span:function",
        "--by",
        "status",
        "--format",
        "json",
    ];
    let answer = lab.usdtrec([&["report", "-i", "trace"], &question[..]].concat());
    let answer = answer.success().silent().stdout;
    let mut cells = 0;
    for line in answer.lines() {
        let map: Value = serde_json::from_str(line).expect("an object");
        let (from, interval) = (number(&map, "from_ns"), number(&map, "interval_ns"));
        let title = map["of"].as_str().expect("a text");
        let (_, status) = title.rsplit_once(' ').expect("a group");
        let status: Value = serde_json::from_str(status).expect("a number");
        let of_group: Vec<_> = spans.iter().filter(|span| group(span) == status).collect();
        assert!(!of_group.is_empty(), "{title}");
        for bucket in list(&map, "buckets") {
            let range = number(bucket, "from")..number(bucket, "to");
            let counts = list(bucket, "counts").iter();
            let counts: Vec<u64> = counts
                .map(|count| count.as_u64().expect("a count"))
                .collect();
            let mut expected = vec![0; counts.len()];
            for span in of_group
                .iter()
                .filter(|span| range.contains(&span.duration()))
            {
                let place = ((span.begin.time_ns - from) / interval) as usize;
                expected[place.min(counts.len() - 1)] += 1;
            }
            assert_eq!(counts, expected, "{title} {range:?}");
            cells += counts.iter().sum::<u64>();
        }
    }
    assert_eq!(cells, spans.len() as u64);
}

#[test]
fn calls_without_ids_are_matched_by_function_and_nesting() {
    let lab = Lab::privileged();
    record(&lab, &WITHOUT_IDS, ["3", "150", "4", "0"]);
    let walk = FUNCTION.compare(&lab, "function", &[]);
    assert!(walk.open > 1000, "{}", walk.open);
    let events = lab.events("trace");
    let spans = spans(&events);
    let all: Vec<&Found<'_>> = spans.iter().collect();
    let count: usize = walk.groups.values().map(Vec::len).sum();
    assert_eq!(all.len(), count);
    let status = |span: &Found<'_>| span.end.named("status").clone();
    let depth = |span: &Found<'_>| span.begin.named("depth").clone();
    compare(&lab, &[], "function__return.status", &all, status);
    compare(&lab, &[], "status", &all, status);
    compare(&lab, &["--order", "self"], "depth", &all, depth);
    let ends: Vec<&Found<'_>> = spans
        .iter()
        .filter(|span| status(span) == 3 && depth(span).as_u64() > Some(2))
        .collect();
    assert!(ends.len() > 50, "{}", ends.len());
    maps(&lab, &all, status);
    let filter = ["--filter", "function__return.status == 3 && depth > 2"];
    compare(&lab, &filter, "depth", &ends, depth);
}

/// Groups of hits, with the numbers of an argument.
#[test]
fn groups_of_items_are_those_of_a_calculation() {
    let lab = Lab::privileged();
    let event = "sdt_calls:item(text=str(arg1), number=arg2, kind=arg3)";
    record(&lab, &[event], ["4", "0", "3", "4000"]);
    let events = lab.events("trace");
    assert_eq!(events.len(), 12_000);
    let number_of = |event: &Event| event.named("number").as_i64().expect("a number");
    for by in ["kind", "text"] {
        let mut expected: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for event in &events {
            let group = event.named(by).to_string();
            expected.entry(group).or_default().push(number_of(event));
        }
        let answer = lab.usdtrec([
            "report", "-i", "trace", "--sort", by, "--value", "number", "--format", "json",
        ]);
        let lines = answer.success().silent().stdout;
        assert_eq!(lines.lines().count(), expected.len());
        for line in lines.lines() {
            let group: Value = serde_json::from_str(line).expect("an object");
            let numbers = expected.get_mut(&group[by].to_string()).expect("a group");
            numbers.sort_unstable();
            let sum: i64 = numbers.iter().sum();
            assert_eq!(group["samples"], numbers.len(), "{line}");
            assert_eq!(group["number.sum"], sum, "{line}");
            assert_eq!(group["number.min"], numbers[0], "{line}");
            assert_eq!(group["number.max"], numbers[numbers.len() - 1], "{line}");
            let median = numbers[numbers.len().div_ceil(2) - 1];
            if numbers.len() <= 256 {
                assert_eq!(group["number.p50"], median, "{line}");
            }
        }
    }
    for (order, figure) in [
        ("count", "samples"),
        ("total", "number.sum"),
        ("mean", "number.mean"),
        ("p50", "number.p50"),
        ("p90", "number.p90"),
        ("p99", "number.p99"),
        ("max", "number.max"),
    ] {
        let question = ["--sort", "kind", "--value", "number", "--order", order];
        let report = ["report", "-i", "trace", "--format", "json"];
        let answer = lab.usdtrec([&report[..], &question].concat()).success();
        let figures = answer.stdout.lines().map(|line| {
            let group: Value = serde_json::from_str(line).expect("an object");
            group[figure].as_f64().expect("a number")
        });
        let figures: Vec<f64> = figures.collect();
        assert_eq!(figures.len(), 100);
        assert!(
            figures.is_sorted_by(|one, next| one >= next),
            "{order}: {figures:?}"
        );
    }
    for (order, reason) in [("self", "found \"self\""), ("p99.9", "found \"p99.9\"")] {
        let question = [
            "report", "--sort", "kind", "--value", "number", "--order", order,
        ];
        let answer = lab.usdtrec(question);
        assert_eq!(answer.status.code(), Some(1));
        assert!(answer.stderr.contains(reason), "{}", answer.stderr);
    }
}
