//! More groups and series than are kept: those that come first in the order asked for are found whenever they came, the others are a row,
//! and answers are the same with any number of threads.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::support::{self, DONE, HIT, Hit, Recording};
use serde_json::Value;
use usdtrec_report::Format;
use usdtrec_report::question::{GroupOrder, Question};
use usdtrec_testing::test;

fn hit(time: u64, id: u64, tid: i32, ax: u64, si: u64) -> Hit {
    Hit {
        id,
        time: HIT.time + time,
        tid,
        ax,
        si,
        ..HIT
    }
}

fn lines(json: &str) -> Vec<Value> {
    json.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn groups(sort: &str, value: Option<&str>, top: Option<usize>) -> Question {
    Question::Groups {
        sort: vec![sort.to_owned()],
        value: value.map(str::to_owned),
        top,
        order: GroupOrder::default(),
    }
}

/// 300,000 groups of `done`, of which the most frequent ones come last, and a few of `request`.
#[test]
fn the_most_frequent_groups_are_kept() {
    let mut recording = Recording::usual();
    let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
    for at in 0..302_000_u64 {
        let group = match at {
            0..300_000 => at,
            _ => 280_000 + at * at % 41,
        };
        *expected.entry(group).or_default() += 1;
        recording.hit(hit(at, DONE, 101, group, 0));
        if at % 50_000 == 0 {
            recording.hit(hit(at, support::REQUEST, 101, 3, 0));
            recording.flush();
        }
    }
    let recorded = recording.finish();
    let mut best: Vec<(u64, u64)> = expected.iter().map(|(&group, &n)| (n, group)).collect();
    best.sort_by_key(|&(n, group)| (Reverse(n), group));
    let found = lines(&recorded.same_answer(&groups("arg1", None, None), Format::Json));
    let (others, found): (Vec<_>, Vec<_>) = found.iter().partition(|line| line["others"] == true);
    let of_request: Vec<_> = found
        .iter()
        .filter(|line| line["event"] == "sdt_app:request")
        .collect();
    assert_eq!(of_request.len(), 1, "a rare probe keeps its groups");
    assert_eq!(
        (&of_request[0]["arg1"], &of_request[0]["samples"]),
        (&3.into(), &7.into())
    );
    let of_done: Vec<_> = found
        .iter()
        .filter(|line| line["event"] == "sdt_app:done")
        .collect();
    let frequent = best.iter().take_while(|(n, _)| *n > 1);
    let frequent: Vec<_> = frequent.collect();
    assert!(frequent.len() >= 10);
    for ((n, group), line) in frequent.iter().zip(&of_done) {
        assert_eq!(
            (&line["arg1"], &line["samples"]),
            (&(*group).into(), &(*n).into())
        );
    }
    assert_eq!(others.len(), 1);
    assert_eq!(others[0]["groups"], Value::Null);
    let samples = |line: &&&Value| line["samples"].as_u64().unwrap();
    let shown: u64 = of_done
        .iter()
        .map(|line| line["samples"].as_u64().unwrap())
        .sum();
    assert_eq!(
        others.iter().map(|line| samples(&line)).sum::<u64>() + shown,
        302_000
    );
    // Groups of one event each that are not shown are as good as the last ones shown: no doubt.
    assert_eq!(others[0]["doubtful"], Value::Null);
    let top = groups("arg1", None, Some(3));
    let text = recorded.answer(2, top.clone(), Format::Text);
    assert!(text.contains("all other groups"), "{text}");
    assert!(!text.contains("WARNING"), "{text}");
    let csv = recorded.answer(2, top, Format::Csv);
    let ends = |end: &str| csv.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!((ends(",false,"), ends(",,true,")), (4, 1), "{csv}");
}

/// 20,000 groups with numbers, those with the greatest sums last.
#[test]
fn the_groups_with_the_greatest_sums_are_kept() {
    let mut recording = Recording::usual();
    let mut random = support::random(7);
    let mut expected: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for at in 0..22_000_u64 {
        let group = if at < 20_000 { at } else { at % 9 * 2000 + 5 };
        let number = match at {
            19_990 => 1_000_000_000_000,
            0..20_000 => 1 + random(900),
            _ => 1_000 + random(50_000),
        };
        expected.entry(group).or_default().push(number);
        recording.hit(hit(at, support::REQUEST, 101, group, number));
        if at % 3000 == 0 {
            recording.flush();
        }
    }
    let recorded = recording.finish();
    let mut best: Vec<(u64, u64)> = expected
        .iter()
        .map(|(&group, numbers)| (numbers.iter().sum(), group))
        .collect();
    best.sort_by_key(|&(sum, group)| (Reverse(sum), group));
    let question = groups("arg1", Some("arg2"), Some(10));
    let found = lines(&recorded.same_answer(&question, Format::Json));
    for ((sum, group), line) in best.iter().zip(&found).take(10) {
        assert_eq!(
            (&line["arg1"], &line["arg2.sum"]),
            (&(*group).into(), &(*sum).into())
        );
        assert_eq!(line["arg2.count"], expected[group].len());
    }
    let others = &found[10];
    assert_eq!(
        (&others["others"], &others["doubtful"]),
        (&true.into(), &Value::Null)
    );
    let all: u64 = best.iter().map(|(sum, _)| sum).sum();
    let shown: u64 = best.iter().take(10).map(|(sum, _)| sum).sum();
    assert_eq!(others["arg2.sum"], all - shown);
    let by_max = Question::Groups {
        sort: vec!["arg1".to_owned()],
        value: Some("arg2".to_owned()),
        top: Some(10),
        order: GroupOrder::Max,
    };
    let found = lines(&recorded.same_answer(&by_max, Format::Json));
    let mut greatest: Vec<u64> = expected
        .values()
        .map(|all| *all.iter().max().unwrap())
        .collect();
    greatest.sort_by_key(|&most| Reverse(most));
    for (most, line) in greatest.iter().zip(&found).take(10) {
        assert_eq!(line["arg2.max"], *most);
    }
    assert_eq!(found[10]["doubtful"], Value::Null);
    // Of all groups, the last ones are as little as some that are not shown may be.
    let whole = groups("arg1", Some("arg2"), None);
    let all = recorded.answer(2, whole, Format::Text);
    assert!(
        all.contains("WARNING: there were too many groups"),
        "{}",
        &all[all.len() - 400..]
    );
    recorded.same_answer(&question, Format::Csv);
}

/// 3000 series, those with the most events last.
#[test]
fn the_series_with_the_most_events_are_kept() {
    let mut recording = Recording::usual();
    let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
    for at in 0..9000_u64 {
        let group = if at < 3000 { at } else { 2900 + at * at % 97 };
        *expected.entry(group).or_default() += 1;
        recording.hit(hit(at * 1_000_000, DONE, 101, group, 0));
        if at % 500 == 0 {
            recording.flush();
        }
    }
    let recorded = recording.finish();
    let question = Question::Rate {
        interval: 1_000_000_000,
        sort: vec!["arg1".to_owned()],
    };
    let found = lines(&recorded.same_answer(&question, Format::Json));
    let sum = |line: &Value| -> u64 {
        let counts = line["counts"].as_array().unwrap();
        counts.iter().map(|count| count.as_u64().unwrap()).sum()
    };
    let mut best: Vec<(u64, u64)> = expected.iter().map(|(&group, &n)| (n, group)).collect();
    best.sort_by_key(|&(n, group)| (Reverse(n), group));
    let frequent = best.iter().take_while(|(n, _)| *n > 1);
    for ((n, group), line) in frequent.zip(&found) {
        assert_eq!((sum(line), &line["arg1"]), (*n, &(*group).into()));
    }
    let others = found.last().unwrap();
    assert_eq!(
        (&others["others"], &others["arg1"]),
        (&true.into(), &Value::Null)
    );
    assert_eq!(found.iter().map(sum).sum::<u64>(), 9000);
    let text = recorded.same_answer(&question, Format::Text);
    assert!(text.contains("all other series"), "{text}");
    let csv = recorded.same_answer(&question, Format::Csv);
    assert_eq!(
        csv.lines().filter(|line| line.contains(",true,,")).count(),
        9
    );
}

/// An argument of one probe is named as the report's own table names it; hits of other probes have no value.
#[test]
fn an_argument_of_one_probe() {
    let mut recording = Recording::usual();
    for (at, event) in [DONE, support::REQUEST, DONE].into_iter().enumerate() {
        recording.hit(hit(at as u64, event, 101, 7, 0));
    }
    let recorded = recording.finish();
    let events = lines(&recorded.same_answer(&groups("event", None, None), Format::Json));
    let done = events.iter().find(|line| line["samples"] == 2);
    let done = done.and_then(|line| line["event"].as_str()).unwrap();
    let (_, probe) = done.split_once(':').unwrap();
    for name in [done, probe] {
        let key = format!("{name}.arg1");
        let found = lines(&recorded.same_answer(&groups(&key, None, None), Format::Json));
        let found = found.iter().map(|line| (&line[&key], &line["samples"]));
        let mut found: Vec<_> = found
            .map(|(key, samples)| (key.as_u64(), samples.as_u64()))
            .collect();
        found.sort();
        assert_eq!(found, [(None, Some(1)), (Some(7), Some(2))]);
    }
}
