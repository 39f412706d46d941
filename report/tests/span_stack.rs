//! Spans of calls that nest, recur, throw, and of which begins are missing: as a plain walk over what `script` prints finds them, with any
//! number of threads.

use std::collections::BTreeMap;

use crate::support::{self, DONE, HIT, Hit, REQUEST, Recorded, Recording};
use serde_json::Value;
use usdtrec_format::schema::Argument;
use usdtrec_report::EventSelection;
use usdtrec_report::Format;
use usdtrec_report::question::{GroupOrder, Question, SpanQuestion};
use usdtrec_testing::test;

/// A recording in which the first argument of both probes is called so.
fn named(name: &str) -> Recording {
    let mut recording = Recording::with(std::path::Path::new("/opt/app"), |info| {
        let probes = info.definitions.iter_mut().flat_map(|all| &mut all.probes);
        probes.for_each(|probe| probe.arguments[0] = Argument::named(name));
    });
    recording.comm(0, (100, 100), "server", false);
    recording.comm(0, (100, 101), "worker", false);
    recording.mmap(0, 100, "/opt/app");
    recording
}

/// Times in microseconds after the first, whether it is a begin, and the function.
fn calls(name: &str, hits: &[(u64, bool, u64)]) -> Recorded {
    let mut recording = named(name);
    for &(at, begins, function) in hits {
        recording.hit(hit(101, HIT.time + at * 1000, begins, function));
    }
    recording.finish()
}

fn hit(tid: i32, time: u64, begins: bool, function: u64) -> Hit {
    Hit {
        id: if begins { REQUEST } else { DONE },
        time,
        tid,
        cpu: tid as u32 % 4,
        ax: function,
        ..HIT
    }
}

fn by_function(name: &str) -> SpanQuestion {
    SpanQuestion {
        spans: vec!["request..done".to_owned()],
        by: vec![name.to_owned()],
        top: Some(10),
        ..SpanQuestion::default()
    }
}

fn span(recorded: &Recorded, question: SpanQuestion) -> Value {
    let text = recorded.answer(2, Question::Spans(question), Format::Json);
    serde_json::from_str::<Value>(&text).unwrap()["spans"][0].clone()
}

fn group<'v>(found: &'v Value, name: &str, value: u64) -> &'v Value {
    let groups = found["groups"].as_array().unwrap();
    groups.iter().find(|group| group[name] == value).unwrap()
}

/// outer begins, thrower begins and leaves by longjmp, outer ends.
#[test]
fn an_end_belongs_to_the_begin_of_its_function() {
    let hits: Vec<_> = (0..100)
        .flat_map(|at| {
            [
                (at * 10, true, 1),
                (at * 10 + 1, true, 2),
                (at * 10 + 6, false, 1),
            ]
        })
        .collect();
    let recorded = calls("func_id", &hits);
    let found = span(&recorded, by_function("func_id"));
    assert_eq!(found["agreed"], serde_json::json!(["func_id"]));
    assert_eq!(
        (&found["count"], &found["total_ns"]),
        (&100.into(), &600_000.into())
    );
    assert_eq!(
        (&found["open"], &found["unfinished"]),
        (&100.into(), &100.into())
    );
    assert_eq!(found["groups"].as_array().unwrap().len(), 1);
    assert_eq!(group(&found, "func_id", 1)["self_ns"], 600_000);
    let question = Question::Spans(by_function("func_id"));
    let text = recorded.answer(1, question, Format::Text);
    let warning = "WARNING: 100 of 200 begins of request..done (50.0%) have no end:";
    assert!(text.contains(warning), "{text}");
    assert!(text.contains("longjmp"), "{text}");
    // By the thread alone, on request.
    let by_thread = SpanQuestion {
        key: vec!["tid".to_owned()],
        ..by_function("func_id")
    };
    let found = span(&recorded, by_thread);
    assert_eq!(group(&found, "func_id", 2)["total_ns"], 500_000);
}

/// A number that begins and ends do not have in common is none that must agree.
#[test]
fn what_means_something_else_at_the_end_does_not_count() {
    let hits: Vec<_> = (0..50)
        .flat_map(|at| [(at * 10, true, 1000 + at), (at * 10 + 6, false, 200)])
        .collect();
    let found = span(&calls("id", &hits), by_function("id"));
    assert_eq!(
        (&found["count"], &found["unmatched"]),
        (&50.into(), &0.into())
    );
    assert_eq!(found["agreed"], serde_json::json!([]));
    // Nor does an amount.
    let found = span(&calls("bytes", &hits[..20]), by_function("bytes"));
    assert_eq!(
        (&found["count"], &found["agreed"]),
        (&10.into(), &serde_json::json!([]))
    );
}

#[test]
fn a_moment_counts_once() {
    // f [0, 100] calls g [10, 40], which calls f [20, 30].
    let recorded = calls(
        "func_id",
        &[
            (0, true, 1),
            (10, true, 2),
            (20, true, 1),
            (30, false, 1),
            (40, false, 2),
            (100, false, 1),
        ],
    );
    let found = span(&recorded, by_function("func_id"));
    assert_eq!(
        (&found["total_ns"], &found["self_ns"]),
        (&100_000.into(), &100_000.into())
    );
    let of = |function, figure: &str| group(&found, "func_id", function)[figure].clone();
    assert_eq!(
        (of(1, "total_ns"), of(1, "self_ns")),
        (100_000.into(), 80_000.into())
    );
    assert_eq!(
        (of(2, "total_ns"), of(2, "self_ns")),
        (30_000.into(), 20_000.into())
    );
    assert_eq!(of(1, "mean_ns"), 55_000);
    // The outer one does not count: the inner one does.
    let short = SpanQuestion {
        min: 20_000,
        ..by_function("func_id")
    };
    let found = span(&recorded, short);
    assert_eq!(found["total_ns"], 100_000);
    assert_eq!(group(&found, "func_id", 2)["self_ns"], 20_000);
}

#[test]
fn keys_may_be_several() {
    let mut recording = named("func_id");
    for (time, tid, begins) in [
        (0, 101, true),
        (5, 102, true),
        (9, 101, false),
        (40, 102, false),
    ] {
        recording.hit(hit(tid, HIT.time + time * 1000, begins, 1));
    }
    let recorded = recording.finish();
    let keyed = |key: &[&str]| SpanQuestion {
        key: key.iter().map(|&key| key.to_owned()).collect(),
        ..by_function("func_id")
    };
    let found = span(&recorded, keyed(&["tid", "func_id"]));
    assert_eq!(
        (&found["min_ns"], &found["max_ns"]),
        (&9000.into(), &35_000.into())
    );
    assert_eq!(found["key"], "tid,func_id");
    assert_eq!(span(&recorded, keyed(&["func_id"]))["max_ns"], 40_000);
}

/// What a plain walk finds of a group.
#[derive(Debug, Default, PartialEq)]
struct Figures {
    count: u64,
    sum: u64,
    total: u64,
    own: u64,
    /// Sum of the times of its spans in none within them.
    own_sum: u64,
    max: u64,
}

struct Open {
    time: u64,
    function: u64,
    /// Those that ended directly within it, from when to when.
    inner: Vec<(u64, u64)>,
}

/// Spans by a plain walk. Totals are worked out afterwards, of what ended.
#[derive(Default)]
struct Walk {
    groups: BTreeMap<u64, Figures>,
    unmatched: u64,
    unfinished: u64,
    open: u64,
    depth: usize,
}

impl Walk {
    fn from_events(events: &[Value]) -> Self {
        let mut walk = Self::default();
        let mut stacks: BTreeMap<u64, Vec<Open>> = BTreeMap::new();
        let mut ended: Vec<Ended> = Vec::new();
        for event in events {
            let number = |value: &Value| value.as_u64().unwrap();
            let (time, tid) = (number(&event["time_ns"]), number(&event["tid"]));
            let function = number(&event["args"]["func_id"]);
            let stack = stacks.entry(tid).or_default();
            if event["event"] == "sdt_app:request" {
                stack.push(Open {
                    time,
                    function,
                    inner: Vec::new(),
                });
                walk.depth = walk.depth.max(stack.len());
                continue;
            }
            let Some(at) = stack.iter().rposition(|open| open.function == function) else {
                walk.unmatched += 1;
                continue;
            };
            let left = stack.split_off(at + 1);
            walk.unfinished += left.len() as u64;
            let open = stack.pop().unwrap();
            let duration = time - open.time;
            let mut inner = open.inner;
            inner.extend(left.into_iter().flat_map(|open| open.inner));
            if let Some(outer) = stack.last_mut() {
                outer.inner.push((open.time, time));
            }
            let group = walk.groups.entry(function).or_default();
            group.count += 1;
            group.sum += duration;
            group.max = group.max.max(duration);
            ended.push(Ended {
                function,
                span: (open.time, time),
                inner,
            });
        }
        walk.open = stacks.values().map(|stack| stack.len() as u64).sum::<u64>() + walk.unfinished;
        walk.add_totals(&ended);
        walk
    }

    /// The time that is in any of a group's spans, and in one of them and none within it, of all threads together.
    fn add_totals(&mut self, ended: &[Ended]) {
        for (function, group) in &mut self.groups {
            let of_group = || ended.iter().filter(|span| span.function == *function);
            group.total = covered(of_group().map(|span| span.span).collect());
            group.own = covered(of_group().flat_map(Ended::outside).collect());
            let outside = of_group().flat_map(Ended::outside);
            group.own_sum = outside.map(|(begin, end)| end - begin).sum();
        }
    }
}

/// A span that ended, and those directly within it, from when to when.
struct Ended {
    function: u64,
    span: (u64, u64),
    inner: Vec<(u64, u64)>,
}

impl Ended {
    /// The parts of it that are in none within it.
    fn outside(&self) -> Vec<(u64, u64)> {
        let mut inner = self.inner.clone();
        inner.sort_unstable();
        let begins = std::iter::once(self.span.0).chain(inner.iter().map(|inner| inner.1));
        let ends = inner.iter().map(|inner| inner.0).chain([self.span.1]);
        begins.zip(ends).collect()
    }
}

/// The time that intervals cover.
fn covered(mut intervals: Vec<(u64, u64)>) -> u64 {
    intervals.sort_unstable();
    let (mut time, mut until) = (0, 0);
    for (begin, end) in intervals {
        time += end.saturating_sub(begin.max(until));
        until = end.max(until);
    }
    time
}

/// Calls of several threads, some of which throw and some of which began before the recording.
fn random_calls(seed: u64, threads: i32, events: u64) -> Recorded {
    let mut recording = named("func_id");
    let mut random = support::random(seed);
    let mut stacks = vec![Vec::new(); threads as usize];
    let mut time = HIT.time;
    for at in 0..events {
        time += 1 + random(2000);
        let thread = random(threads as u64) as usize;
        let stack = &mut stacks[thread];
        let tid = 101 + thread as i32;
        match random(100) {
            // An end without a recorded begin.
            0 => recording.hit(hit(tid, time, false, random(8))),
            // A throw through some frames.
            1..=3 => {
                for _ in 0..=random(4) {
                    stack.pop();
                }
            }
            4..=45 if !stack.is_empty() => {
                let function = stack.pop().unwrap();
                recording.hit(hit(tid, time, false, function));
            }
            _ if stack.len() > 300 => stack.truncate(3),
            _ => {
                let function = random(8);
                stack.push(function);
                recording.hit(hit(tid, time, true, function));
            }
        }
        if at % 3000 == 2999 {
            recording.flush();
        }
    }
    recording.finish()
}

#[test]
fn the_same_as_a_plain_walk_with_any_number_of_threads() {
    for (seed, threads) in [(1, 1), (3, 40)] {
        let recorded = random_calls(seed, threads, 25_000);
        let walk = Walk::from_events(&recorded.json(&EventSelection::default()));
        let found = span(&recorded, by_function("func_id"));
        for (name, expected) in [
            ("open", walk.open),
            ("unfinished", walk.unfinished),
            ("unmatched", walk.unmatched),
            ("depth", walk.depth as u64),
        ] {
            assert_eq!(found[name], expected, "{name} with seed {seed}");
        }
        assert_eq!(found["groups"].as_array().unwrap().len(), walk.groups.len());
        for (function, expected) in &walk.groups {
            let group = group(&found, "func_id", *function);
            let number = |name: &str| group[name].as_u64().unwrap();
            let figures = Figures {
                count: number("count"),
                sum: expected.sum,
                total: number("total_ns"),
                own: number("self_total_ns"),
                own_sum: number("self_ns"),
                max: number("max_ns"),
            };
            assert_eq!(figures, *expected, "{function} with seed {seed}");
            assert_eq!(number("mean_ns"), expected.sum / expected.count);
        }
        for format in [Format::Text, Format::Json, Format::Csv] {
            let of = |threads| {
                let question = Question::Spans(by_function("func_id"));
                recorded.answer(threads, question, format)
            };
            let one = of(1);
            assert!([2, 7].into_iter().all(|threads| of(threads) == one));
        }
    }
}

/// Very many calls in one another, of two functions by turns, and ends that fit none.
#[test]
fn very_deep() {
    const DEEP: u64 = 300_000;
    let mut recording = named("func_id");
    for at in 0..DEEP {
        recording.hit(hit(101, HIT.time + at, true, at % 2));
        if at % 16_384 == 0 {
            recording.flush();
        }
    }
    for at in 0..20_000 {
        recording.hit(hit(101, HIT.time + DEEP + at, false, 2 + at));
    }
    recording.hit(hit(101, HIT.time + 2 * DEEP, false, 0));
    let recorded = recording.finish();
    let found = span(&recorded, by_function("func_id"));
    assert_eq!(
        (&found["count"], &found["unmatched"]),
        (&1.into(), &20_000.into())
    );
    assert_eq!(found["unfinished"], 1);
    assert_eq!(found["open"], DEEP - 1);
    assert_eq!(found["depth"], DEEP);
}

/// More groups than are kept: the first ones in the requested order are kept, whenever they came, and the others are reported.
#[test]
fn of_very_many_groups_those_asked_for_are_kept() {
    const GROUPS: u64 = 20_000;
    let mut recording = named("call_id");
    let mut random = support::random(5);
    let mut expected: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut time = HIT.time;
    for at in 0..GROUPS + 2000 {
        // The last ones are a few groups again and again.
        let group = if at < GROUPS { at } else { at % 7 * 2500 };
        let took = match at {
            19_990 => 900_000_000,
            19_995 => 800_000_000,
            _ => 1 + random(5000),
        };
        recording.hit(hit(101, time, true, group));
        recording.hit(hit(101, time + took, false, group));
        expected.entry(group).or_default().push(took);
        time += took + 10;
        if at % 2000 == 0 {
            recording.flush();
        }
    }
    let recorded = recording.finish();
    let total = |took: &Vec<u64>| took.iter().sum::<u64>();
    let all: u64 = expected.values().map(total).sum();
    type Order = (GroupOrder, &'static str, fn(&[u64]) -> u64);
    let orders: [Order; 4] = [
        (GroupOrder::Count, "count", |took| took.len() as u64),
        (GroupOrder::Total, "total_ns", |took| took.iter().sum()),
        (GroupOrder::Max, "max_ns", |took| {
            took.iter().copied().max().unwrap()
        }),
        (GroupOrder::P99, "p99_ns", |took| {
            let mut took = took.to_vec();
            took.sort_unstable();
            took[(took.len() * 990).div_ceil(1000) - 1]
        }),
    ];
    for (order, name, figure) in orders {
        let question = SpanQuestion {
            order,
            top: Some(9),
            ..by_function("call_id")
        };
        let found = span(&recorded, question.clone());
        let groups = found["groups"].as_array().unwrap();
        let mut best: Vec<(u64, u64)> = expected
            .iter()
            .map(|(group, took)| (figure(took), *group))
            .collect();
        best.sort_by_key(|&(figure, group)| (std::cmp::Reverse(figure), group));
        let sure = match order {
            // Seven groups have many spans, all others one.
            GroupOrder::Count => 7,
            _ => 9,
        };
        for (group, (figure, of)) in groups.iter().zip(best).take(sure) {
            assert_eq!(
                (&group[name], &group["call_id"]),
                (&figure.into(), &of.into())
            );
        }
        let shown: u64 = groups
            .iter()
            .map(|group| group["sum_ns"].as_u64().unwrap())
            .sum();
        assert_eq!(found["others"]["sum_ns"], all - shown);
        assert_eq!(found["others"]["groups"], Value::Null);
        if order != GroupOrder::Max {
            continue;
        }
        for format in [Format::Text, Format::Json, Format::Csv] {
            let of = |threads| {
                let question = Question::Spans(question.clone());
                recorded.answer(threads, question, format)
            };
            let one = of(1);
            assert_eq!(of(7), one);
            match format {
                Format::Csv => assert!(one.lines().last().unwrap().contains(",,true,")),
                Format::Text => assert!(one.contains("all other groups"), "{one}"),
                _ => {}
            }
        }
    }
}

/// Groups with equal figures, more strings of numbers than are kept apart, and arguments that are called as columns are.
#[test]
fn answers_are_the_same_every_time() {
    let mut recording = named("event");
    let mut random = support::random(9);
    for at in 0..9000 {
        let group = random(3000);
        recording.hit(hit(101, HIT.time + at * 20, true, group));
        recording.hit(hit(101, HIT.time + at * 20 + 5, false, group));
        if at % 500 == 0 {
            recording.flush();
        }
    }
    let recorded = recording.finish();
    let sort = |keys: &[&str], value: Option<&str>| Question::Groups {
        sort: keys.iter().map(|&key| key.to_owned()).collect(),
        value: value.map(str::to_owned),
        top: None,
        order: GroupOrder::default(),
    };
    let questions = [
        Question::Summary,
        sort(&["arg1"], None),
        sort(&["args.event", "tid"], Some("arg1")),
        Question::Spans(by_function("args.event")),
        Question::Rate {
            interval: 1000,
            sort: vec!["tid".to_owned()],
        },
    ];
    for question in questions {
        for format in [Format::Text, Format::Json, Format::Csv] {
            let one = recorded.answer(1, question.clone(), format);
            assert_eq!(recorded.answer(7, question.clone(), format), one);
        }
    }
    let csv = recorded.answer(2, sort(&["event", "args.event"], None), Format::Csv);
    assert!(
        csv.starts_with("overhead,samples,event,args.event,others,doubtful\n"),
        "{csv}"
    );
    assert!(csv.lines().nth(1).unwrap().contains(",sdt_app:"), "{csv}");
    let script = recorded.script_as(Format::Csv);
    let header: Vec<&str> = script.lines().next().unwrap().split(',').collect();
    assert!(header.contains(&"args.event"), "{header:?}");
    assert_eq!(header.iter().filter(|name| **name == "event").count(), 1);
}

/// Jobs that begin on one thread and end on another, with their number.
#[test]
fn ends_on_other_threads_are_matched_by_an_argument_which_is_said() {
    let jobs = |number: fn(u64) -> [u64; 2]| {
        let mut recording = named("job");
        for at in 0..50 {
            let [begin, end] = number(at);
            recording.hit(hit(100, HIT.time + at * 10_000, true, begin));
            recording.hit(hit(101, HIT.time + at * 10_000 + 6000, false, end));
        }
        let recorded = recording.finish();
        let question = Question::Spans(SpanQuestion {
            spans: vec!["request..done".to_owned()],
            ..SpanQuestion::default()
        });
        recorded.answer(1, question, Format::Text)
    };
    let text = jobs(|at| [at, at]);
    let warning = "are on different threads and have the same job";
    assert!(text.replace("\n  ", " ").contains(warning), "{text}");
    assert!(!text.contains("were open when"), "{text}");
    // Values that do not agree, and one that all have.
    for number in [(|at| [at, 1000 + at]) as fn(u64) -> [u64; 2], |_| [7, 7]] {
        let text = jobs(number);
        assert!(!text.contains("different threads"), "{text}");
    }
}
