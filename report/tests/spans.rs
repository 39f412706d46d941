//! Spans: matched by hand, and by a walk over what `script` prints.

use std::collections::HashMap;

use crate::support::{self, DONE, HINTS, HIT, Hit, REQUEST, Recorded, Recording};
use serde_json::Value;
use usdtrec_report::Format;
use usdtrec_report::question::{GroupOrder, Question, SpanQuestion};
use usdtrec_report::report::ReportOptions;
use usdtrec_report::{EventSelection, HintWords, ReportError, Sentences};
use usdtrec_testing::test;

fn question(span: &str) -> SpanQuestion {
    SpanQuestion {
        spans: vec![span.to_owned()],
        top: Some(10),
        ..SpanQuestion::default()
    }
}

fn ask(
    recorded: &Recorded,
    selection: &EventSelection,
    question: SpanQuestion,
    format: Format,
) -> Result<String, ReportError> {
    let options = ReportOptions {
        format,
        ..ReportOptions::default()
    };
    let (text, _) = recorded.report_selected(selection, &Question::Spans(question), &options)?;
    Ok(text)
}

/// The first span of the answer.
fn span(recorded: &Recorded, question: SpanQuestion) -> Value {
    let text = ask(recorded, &EventSelection::default(), question, Format::Json).unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    answer["spans"][0].clone()
}

/// Times in microseconds after the first, threads, and whether it is the begin.
fn recording(hits: &[(u64, i32, bool, u64)]) -> Recorded {
    let mut recording = Recording::usual();
    for &(at, tid, begins, ax) in hits {
        recording.hit(Hit {
            id: if begins { REQUEST } else { DONE },
            time: HIT.time + at * 1000,
            tid,
            cpu: (at % 3) as u32,
            ax,
            ..HIT
        });
    }
    recording.finish()
}

#[test]
fn brackets_nest_by_thread() {
    let recorded = recording(&[
        (0, 101, false, 0),
        (1, 101, true, 1),
        (2, 101, true, 2),
        (3, 102, true, 3),
        (5, 101, false, 0),
        (6, 102, false, 0),
        (9, 101, false, 0),
        (10, 101, true, 4),
    ]);
    let found = span(&recorded, question("request..done"));
    assert_eq!(found["count"], 3);
    assert_eq!(found["open"], 1);
    assert_eq!(found["unmatched"], 1);
    // The inner one is in the outer one.
    assert_eq!(found["sum_ns"], 3000 + 3000 + 8000);
    // Each moment counts once, also of two threads; self times are added up.
    assert_eq!(
        (
            &found["total_ns"],
            &found["self_total_ns"],
            &found["self_ns"]
        ),
        (&8000.into(), &8000.into(), &11000.into())
    );
    assert_eq!(
        (&found["min_ns"], &found["max_ns"]),
        (&3000.into(), &8000.into())
    );
    assert_eq!(found["exact"], true);
    assert_eq!((&found["depth"], &found["key"]), (&2.into(), &"tid".into()));
    let slowest = &found["slowest"];
    assert_eq!(slowest.as_array().unwrap().len(), 3);
    assert_eq!(slowest[0]["duration_ns"], 8000);
    assert_eq!(slowest[0]["time_ns"], HIT.time + 1000);
    assert_eq!(slowest[0]["args"]["arg1"], 1);
    assert_eq!(slowest[0]["comm"], "worker");
    // Of equals the earlier one first.
    assert_eq!(slowest[1]["args"]["arg1"], 2);
}

/// Hits are read otherwise where a filter needs more of them than what they are matched by.
#[test]
fn spans_are_the_same_with_a_filter_that_is_true_of_all_hits() {
    let all = EventSelection {
        filter: Some("tid > 0".to_owned()),
        ..EventSelection::default()
    };
    for seed in 1..20 {
        let mut random = support::random(seed);
        let hits: Vec<_> = (0..500)
            .map(|at| (at, 101 + random(3) as i32, random(5) < 3, random(9)))
            .collect();
        let recorded = recording(&hits);
        let answer = |selection: &EventSelection| {
            let text = ask(
                &recorded,
                selection,
                question("request..done"),
                Format::Json,
            )
            .unwrap();
            let answer: Value = serde_json::from_str(&text).unwrap();
            answer["spans"].clone()
        };
        let unfiltered = answer(&EventSelection::default());
        assert!(unfiltered[0]["count"].as_u64() > Some(100), "{unfiltered}");
        assert_eq!(unfiltered, answer(&all), "seed {seed}");
    }
}

#[test]
fn keys_groups_and_least_times() {
    // Crossing, not nested: only the argument distinguishes them.
    let recorded = recording(&[
        (0, 101, true, 7),
        (1, 101, true, 8),
        (4, 102, false, 7),
        (9, 102, false, 8),
    ]);
    let by_argument = SpanQuestion {
        key: vec!["arg1".to_owned()],
        by: vec!["arg1".to_owned()],
        order: GroupOrder::Max,
        ..question("request..done")
    };
    let found = span(&recorded, by_argument.clone());
    assert_eq!(
        (&found["sum_ns"], &found["total_ns"]),
        (&(4000 + 8000).into(), &9000.into())
    );
    let groups = found["groups"].as_array().unwrap();
    let of = |at: usize| (groups[at]["arg1"].as_u64(), groups[at]["max_ns"].as_u64());
    assert_eq!(
        [of(0), of(1)],
        [(Some(8), Some(8000)), (Some(7), Some(4000))]
    );
    let long = SpanQuestion {
        min: 5000,
        ..by_argument.clone()
    };
    assert_eq!(span(&recorded, long)["count"], 1);
    let by_process = SpanQuestion {
        key: vec!["pid".to_owned()],
        ..question("request..done")
    };
    assert_eq!(span(&recorded, by_process)["total_ns"], 9000);
    let by_thread = span(&recorded, question("request..done"));
    assert_eq!(
        (&by_thread["count"], &by_thread["open"]),
        (&0.into(), &2.into())
    );
    let csv = ask(
        &recorded,
        &EventSelection::default(),
        by_argument,
        Format::Csv,
    )
    .unwrap();
    assert_eq!(
        csv.lines().nth(1),
        Some("request..done,8,false,1,8000,8000,8000,8000,8000,8000,8000,8000,8000,8000,8000")
    );
}

/// Hits without a key belong to no span, and are reported.
#[test]
fn hits_without_a_key_are_reported() {
    let recorded = recording(&[(0, 101, true, 1), (1, 101, true, 2), (4, 101, false, 0)]);
    let keyed = SpanQuestion {
        key: vec!["arg4".to_owned()],
        ..question("request..request")
    };
    let found = span(&recorded, keyed.clone());
    assert_eq!((&found["count"], &found["open"]), (&0.into(), &0.into()));
    assert_eq!(found["unkeyed"], 2);
    let text = ask(&recorded, &EventSelection::default(), keyed, Format::Text).unwrap();
    assert!(
        text.contains("  hits without a key, which are left out: request..request 2\n"),
        "{text}"
    );
}

/// Of equals the earlier ones are the slowest, whatever thread sees them first.
#[test]
fn the_slowest_are_always_the_same() {
    let hits = (0..400).flat_map(|at| [(at * 10, 101, true, at), (at * 10 + 3, 101, false, 0)]);
    let recorded = recording(&hits.collect::<Vec<_>>());
    let found = span(&recorded, question("request..done"));
    let slowest = found["slowest"].as_array().unwrap().iter();
    let slowest: Vec<u64> = slowest
        .map(|slow| slow["args"]["arg1"].as_u64().unwrap())
        .collect();
    assert_eq!(slowest, (0..10).collect::<Vec<u64>>());
}

/// A filter chooses spans by how they begin; what it leaves out is matched all the same.
#[test]
fn a_filter_is_asked_of_the_begin() {
    let recorded = recording(&[
        (0, 101, true, 1),
        (1, 101, true, 2),
        (3, 101, false, 0),
        (9, 101, false, 0),
    ]);
    for (filter, total) in [
        ("arg1 == 1", 9000),
        ("arg1 == 2", 2000),
        ("arg2 != 0", 9000),
    ] {
        let selection = EventSelection {
            filter: Some(filter.to_owned()),
            ..EventSelection::default()
        };
        let text = ask(
            &recorded,
            &selection,
            question("request..done"),
            Format::Json,
        )
        .unwrap();
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["spans"][0]["total_ns"], total, "{filter}");
        assert_eq!(found["spans"][0]["open"], 0);
    }
}

#[test]
fn what_is_not_there_is_said() {
    let recorded = recording(&[(0, 101, true, 1)]);
    let refused = |question: SpanQuestion| {
        let answer = ask(
            &recorded,
            &EventSelection::default(),
            question,
            Format::Text,
        );
        answer.unwrap_err().to_string()
    };
    assert!(refused(question("nothing")).contains("it has: app:request"));
    assert!(refused(question("a..done")).contains("no event \"a\""));
    let key = SpanQuestion {
        key: vec!["arg2".to_owned()],
        ..question("request..done")
    };
    assert!(refused(key).contains("sdt_app:done has no argument \"arg2\""));
    let text = ask(
        &recorded,
        &EventSelection::default(),
        question("request"),
        Format::Text,
    )
    .unwrap();
    assert!(text.contains("\nrequest      0    -"), "{text}");
}

/// Tens of thousands of hits of many threads in several flushes: as a plain walk over the events finds them.
#[test]
fn the_same_as_a_plain_walk() {
    let mut recording = Recording::usual();
    let mut random = support::random(1);
    for flush in 0..8 {
        // Each CPU's ring after the other.
        let mut hits: Vec<Hit> = (0..5000)
            .map(|at| Hit {
                id: if random(2) == 0 { REQUEST } else { DONE },
                time: HIT.time + flush * 5_000_000 + at * 1000 + random(900),
                tid: 101 + random(40) as i32,
                cpu: random(2) as u32,
                ax: random(5),
                ..HIT
            })
            .collect();
        hits.sort_by_key(|hit| (hit.cpu, hit.time));
        hits.into_iter().for_each(|hit| recording.hit(hit));
        recording.flush();
    }
    let recorded = recording.finish();
    let mut open: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    let mut by_group: HashMap<u64, Vec<u64>> = HashMap::new();
    let (mut unmatched, mut depth) = (0, 0);
    for event in recorded.json(&EventSelection::default()) {
        let number = |value: &Value| value.as_u64().unwrap();
        let (time, waiting) = (
            number(&event["time_ns"]),
            open.entry(number(&event["tid"])).or_default(),
        );
        if event["event"] == "sdt_app:request" {
            waiting.push((time, number(&event["args"]["arg1"])));
            depth = depth.max(waiting.len());
        } else if let Some((begin, group)) = waiting.pop() {
            by_group.entry(group).or_default().push(time - begin);
        } else {
            unmatched += 1;
        }
    }
    let asked = SpanQuestion {
        by: vec!["arg1".to_owned()],
        ..question("request..done")
    };
    let found = span(&recorded, asked);
    assert_eq!(found["unmatched"], unmatched);
    assert_eq!(found["depth"], depth);
    let left: usize = open.values().map(Vec::len).sum();
    assert_eq!(found["open"], left);
    let mut all: Vec<u64> = by_group.values().flatten().copied().collect();
    all.sort_unstable();
    assert_eq!(found["count"], all.len());
    assert_eq!(found["mean_ns"], all.iter().sum::<u64>() / all.len() as u64);
    let near = |found: &Value, exact: u64| {
        let found = found.as_u64().unwrap();
        assert!(
            found.abs_diff(exact) * 256 <= exact,
            "{found} is not near {exact}"
        );
    };
    for (name, thousandths) in [
        ("p50_ns", 500),
        ("p90_ns", 900),
        ("p99_ns", 990),
        ("p999_ns", 999),
    ] {
        near(
            &found[name],
            all[(all.len() * thousandths).div_ceil(1000) - 1],
        );
    }
    let slowest: Vec<u64> = found["slowest"]
        .as_array()
        .unwrap()
        .iter()
        .map(|slow| slow["duration_ns"].as_u64().unwrap())
        .collect();
    let longest: Vec<u64> = all.iter().rev().take(10).copied().collect();
    assert_eq!(slowest, longest);
    for group in found["groups"].as_array().unwrap() {
        let spans = &by_group[&group["arg1"].as_u64().unwrap()];
        assert_eq!(group["count"], spans.len());
        assert_eq!(group["max_ns"], *spans.iter().max().unwrap());
    }
}

/// More than a million that never end: those that are dropped are reported, whatever the question.
#[test]
fn spans_that_do_not_fit_are_reported() {
    const ROOM: u64 = 1 << 20;
    let mut recording = Recording::usual();
    for at in 0..ROOM + 5000 {
        recording.hit(Hit {
            id: REQUEST,
            time: HIT.time + at,
            ..HIT
        });
        if at % 4096 == 0 {
            recording.flush();
        }
    }
    let recorded = recording.finish();
    for question in [
        Question::Summary,
        Question::Spans(question("request..done")),
    ] {
        let options = ReportOptions::default();
        let (_, notices) = recorded.report(&question, &options).unwrap();
        // The older half goes when one is too many.
        let forgotten = notices.forgotten;
        assert!((5000..=ROOM / 2).contains(&forgotten), "{forgotten}");
        let sentence = format!("{forgotten} spans are not counted: too many were open at once");
        assert_eq!(notices.sentences(HintWords::default()), [&*sentence]);
        let with_hint = format!("{sentence}, FewerSpans");
        assert_eq!(notices.sentences(HINTS), [with_hint]);
    }
}
