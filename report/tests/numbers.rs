//! Numbers below 0, means, and what is known of them approximately, in all formats.

use serde_json::Value;
use usdtrec_format::schema::Argument;
use usdtrec_report::Format;
use usdtrec_report::question::{GroupOrder, Question, Scale, Subject};
use usdtrec_testing::test;

use crate::support::{HIT, Hit, REQUEST_INLINED, Recorded, Recording};

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

/// Integers at one site of `request` and floats at the other, as the argument `size`.
fn integers_and_floats(integers: &[u64], floats: &[f64]) -> Recorded {
    let mut recording = Recording::with("/opt/app".as_ref(), |info| {
        let probe = &mut info.definitions.as_mut().unwrap().probes[0];
        probe.arguments = vec![Argument::named("size")];
        for (site, args) in probe.sites.iter_mut().zip(["8@%rsi", "8f@16(%rsp)"]) {
            site.site.args = args.to_owned();
        }
    });
    let integers = integers.iter().map(|&si| Hit { si, ..HIT });
    let floats = floats.iter().map(|float| Hit {
        id: REQUEST_INLINED,
        stack: [0, 0, float.to_bits(), 0],
        ..HIT
    });
    for (at, hit) in integers.chain(floats).enumerate() {
        let time = HIT.time + at as u64 * 1000;
        recording.hit(Hit { time, ..hit });
    }
    recording.finish()
}

#[test]
fn integers_and_floats_of_one_argument_are_all_in_its_sum_and_in_histograms() {
    let recorded = integers_and_floats(&[1, 2, 40, 1 << 20], &[0.5, 2.25, -3.0, f64::NAN, 1.0]);
    let groups = Question::Groups {
        sort: vec!["event".to_owned()],
        value: Some("size".to_owned()),
        top: None,
        order: GroupOrder::Sum,
    };
    let json = recorded.same_answer(&groups, Format::Json);
    let group: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    let sum = f64::from(1 << 20) + 43.75;
    for (figure, expected) in [
        ("sum", sum),
        ("mean", sum / 8.0),
        ("min", -3.0),
        ("p50", 1.0),
        ("max", f64::from(1 << 20)),
    ] {
        assert_eq!(
            group[format!("size.{figure}")],
            expected,
            "{figure} {group}"
        );
    }
    assert_eq!(group["size.count"], 8, "{group}");
    assert_eq!(group["size.exact"], true, "{group}");

    let json = recorded.same_answer(&Question::Summary, Format::Json);
    let json: Value = serde_json::from_str(&json).unwrap();
    let of_summary = &json["probes"][0]["arguments"][0];
    for figure in ["count", "min", "p50", "max", "exact"] {
        let of_group = &group[format!("size.{figure}")];
        assert_eq!(of_summary[figure], *of_group, "{figure} {of_summary}");
    }

    let histogram = Question::Histogram {
        of: Subject::Argument("size".to_owned()),
        scale: Scale::Value,
    };
    let json = recorded.same_answer(&histogram, Format::Json);
    let all: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let counts = |of: &Value| [&of["count"], &of["nan"], &of["missing"]].map(Value::as_u64);
    assert_eq!(
        all.iter().map(counts).collect::<Vec<_>>(),
        [[Some(4), Some(0), Some(0)], [Some(4), Some(1), Some(0)]],
        "{json}"
    );
    let text = recorded.answer(1, histogram, Format::Text);
    assert!(text.ends_with("1 more are NaN\n"), "{text}");
}

#[test]
fn sums_of_both_kinds_are_near_where_integers_are() {
    let many: Vec<u64> = (1000..1500).collect();
    let recorded = integers_and_floats(&many, &[0.25]);
    let groups = Question::Groups {
        sort: vec!["event".to_owned()],
        value: Some("size".to_owned()),
        top: None,
        order: GroupOrder::Sum,
    };
    let csv = recorded.answer(1, groups, Format::Csv);
    let (heading, line) = csv.split_once('\n').unwrap();
    let columns: Vec<_> = heading.split(',').zip(line.trim_end().split(',')).collect();
    for expected in [
        ("size.count", "501"),
        ("size.min", "0.25"),
        ("size.max", "1499.0"),
        ("size.sum", "624750.25"),
        ("size.exact", "false"),
    ] {
        assert!(columns.contains(&expected), "{expected:?} {csv}");
    }
}

#[test]
fn least_and_most_rates_are_said_to_be_of_whole_intervals() {
    let text = |numbers, interval| {
        let rate = Question::Rate {
            interval,
            sort: Vec::new(),
        };
        recording(0..numbers).answer(1, rate, Format::Text)
    };
    let of_whole = "# least and most are of whole intervals\n";
    // Hits are 1 us apart: the last interval has 25 of them.
    assert!(text(225, 100_000).contains(of_whole));
    assert!(!text(225, 1_000_000).contains(of_whole));
}
