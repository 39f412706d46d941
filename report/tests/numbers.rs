//! Numbers below 0, means, and what is known of them approximately, in all formats.

use serde_json::Value;
use usdtrec_report::Format;
use usdtrec_report::question::{GroupOrder, Question, Scale, Subject};
use usdtrec_testing::test;

use crate::support::{HIT, Hit, Recorded, Recording};

/// A recording of `request` with these numbers as its first argument.
fn recording(numbers: impl IntoIterator<Item = i32>) -> Recorded {
    let mut recording = Recording::usual();
    for (at, number) in numbers.into_iter().enumerate() {
        recording.hit(Hit {
            time: HIT.time + at as u64 * 1000,
            ax: number as u32 as u64,
            ..HIT
        });
    }
    recording.finish()
}

fn histogram(scale: Scale) -> Question {
    Question::Histogram {
        of: Subject::Argument("arg1".to_owned()),
        scale,
    }
}

/// Asserts that each bucket has the numbers from its begin to its end.
#[track_caller]
fn holds(buckets: &[(i64, i64, u64)], numbers: &[i32]) {
    for &(from, to, count) in buckets {
        let is_in = |number: &&i32| (from..to).contains(&i64::from(**number));
        let expected = numbers.iter().filter(is_in).count() as u64;
        assert_eq!(count, expected, "[{from}, {to})");
    }
    let all: u64 = buckets.iter().map(|(.., count)| count).sum();
    assert_eq!(all, numbers.len() as u64);
}

#[test]
fn buckets_have_what_is_between_their_edges() {
    let few: Vec<i32> = (-8..=8).flat_map(|number| [number; 10]).collect();
    let many: Vec<i32> = (-1024..=1024).collect();
    let ends = vec![i32::MIN, i32::MIN + 1, -1, 0, i32::MAX];
    for numbers in [few, many, ends] {
        let recorded = recording(numbers.iter().copied());
        let scales: &[Scale] = match numbers.len() {
            0..256 => &[Scale::Log2, Scale::Linear],
            _ => &[Scale::Log2],
        };
        for &scale in scales {
            let json = recorded.same_answer(&histogram(scale), Format::Json);
            let json: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
            let buckets = json["buckets"].as_array().unwrap().iter();
            let buckets: Vec<_> = buckets
                .map(|bucket| {
                    let edge = |name: &str| bucket[name].as_i64().unwrap();
                    (edge("from"), edge("to"), bucket["count"].as_u64().unwrap())
                })
                .collect();
            holds(&buckets, &numbers);
            let csv = recorded.same_answer(&histogram(scale), Format::Csv);
            let lines = csv.lines().skip(1).map(|line| {
                let fields: Vec<&str> = line.split(',').collect();
                let [_, from, to, count] = *fields else {
                    panic!("{line}");
                };
                let edge = |text: &str| text.parse::<i64>().unwrap();
                (edge(from), edge(to), count.parse().unwrap())
            });
            assert_eq!(lines.collect::<Vec<_>>(), buckets);
        }
        let map = Question::Heatmap(Subject::Argument("arg1".to_owned()));
        let json = recorded.same_answer(&map, Format::Json);
        let json: Value = serde_json::from_str(&json).unwrap();
        let buckets = json["buckets"].as_array().unwrap().iter();
        let buckets: Vec<_> = buckets
            .map(|bucket| {
                let edge = |name: &str| bucket[name].as_i64().unwrap();
                let counts = bucket["counts"].as_array().unwrap().iter();
                let count = counts.map(|count| count.as_u64().unwrap()).sum();
                (edge("from"), edge("to"), count)
            })
            .collect();
        holds(&buckets, &numbers);
    }
    let text = recording(-8..=8).answer(1, histogram(Scale::Log2), Format::Text);
    let lines = text
        .lines()
        .skip_while(|line| !line.contains("log2"))
        .skip(1)
        .take_while(|line| !line.is_empty());
    let labels = lines.map(|line| {
        line.split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    });
    let expected = [
        "-8 4", "-4 2", "-2 1", "-1 1", "0 1", "1 1", "2 2", "4 4", "8 1",
    ];
    assert_eq!(labels.collect::<Vec<_>>(), expected);
}

#[test]
fn means_have_all_digits() {
    let groups = |order| Question::Groups {
        sort: vec!["event".to_owned()],
        value: Some("arg1".to_owned()),
        top: None,
        order,
    };
    let rare: fn(i32) -> i32 = |at| i32::from(at % 30 == 0);
    for (number, mean, shown) in [
        (rare, 2.0 / 60.0, "0.0333"),
        (|at| -i32::from(at % 30 == 0), -2.0 / 60.0, "-0.0333"),
        (|_| 0, 0.0, "0.0"),
        (|at| at * 1_000_003, 29_500_088.5, "29500088.5"),
    ] {
        let recorded = recording((0..60).map(number));
        let json = recorded.same_answer(&groups(GroupOrder::Mean), Format::Json);
        let json: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
        assert_eq!(
            json["arg1.mean"].as_f64().map(f64::to_bits),
            Some(f64::to_bits(mean)),
            "{json}"
        );
        let csv = recorded.answer(1, groups(GroupOrder::Mean), Format::Csv);
        let (heading, line) = csv.split_once('\n').unwrap();
        let at = heading
            .split(',')
            .position(|name| name == "arg1.mean")
            .unwrap();
        let field = line.split(',').nth(at).unwrap();
        assert_eq!(field.parse::<f64>().unwrap(), mean);
        let text = recorded.answer(1, groups(GroupOrder::Mean), Format::Text);
        assert!(text.split_whitespace().any(|word| word == shown), "{text}");
    }
}

#[test]
fn approximate_numbers_have_the_digits_that_they_have() {
    let recorded = recording((0..5000).map(|at| at * 7919 % 100_003));
    let summary = recorded.answer(1, Question::Summary, Format::Text);
    let (_, rest) = summary.split_once("median ~").unwrap();
    let (median, _) = rest.split_once(',').unwrap();
    assert!(median.trim_end_matches('0').len() <= 3, "{summary}");
    let json = recorded.answer(1, Question::Summary, Format::Json);
    let json: Value = serde_json::from_str(&json).unwrap();
    let arguments = &json["probes"][0]["arguments"];
    assert_eq!(arguments[0]["exact"], false, "{arguments}");
}
