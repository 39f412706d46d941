//! When spans were open: each moment once, whatever keys and threads; begins after which the next one came; spans of a part of the time.

use std::collections::BTreeMap;

use crate::support::{self, DONE, HIT, Hit, REQUEST, Recorded, Recording};
use serde_json::{Value, json};
use usdtrec_report::export::{self, ExportFormat, ExportOptions, RowFormat};
use usdtrec_report::question::{Question, SpanQuestion};
use usdtrec_report::report::ReportOptions;
use usdtrec_report::script::ScriptOptions;
use usdtrec_report::{EventSelection, Format, TimeSpan};
use usdtrec_testing::test;

/// A hit: ns after the first, thread, whether it begins a span, and the argument that both probes have.
type At = (u64, i32, bool, u64);

fn recorded(hits: &[At], flush: usize) -> Recorded {
    let mut recording = Recording::usual();
    for hits in hits.chunks(flush) {
        for &(at, tid, begins, ax) in hits {
            recording.hit(Hit {
                id: if begins { REQUEST } else { DONE },
                time: HIT.time + at,
                tid,
                cpu: 0,
                ax,
                ..HIT
            });
        }
        recording.flush();
    }
    recording.finish()
}

fn question(key: &[&str], by: &[&str]) -> SpanQuestion {
    let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    SpanQuestion {
        spans: vec!["request".to_owned()],
        key: texts(key),
        by: texts(by),
        ..SpanQuestion::default()
    }
}

fn from(first: u64, last: u64) -> EventSelection {
    EventSelection {
        time: Some(TimeSpan::Times(
            Some(HIT.time + first),
            Some(HIT.time + last),
        )),
        ..EventSelection::default()
    }
}

fn answer(recorded: &Recorded, selection: &EventSelection, question: SpanQuestion) -> Value {
    let options = ReportOptions {
        format: Format::Json,
        ..ReportOptions::default()
    };
    let answer = recorded.report_selected(selection, &Question::Spans(question), &options);
    let answer: Value = serde_json::from_str(&answer.unwrap().0).unwrap();
    answer["spans"][0].clone()
}

fn export(recorded: &Recorded, selection: &EventSelection, format: RowFormat) -> String {
    let mut out = Vec::new();
    let options = ExportOptions::new(ExportFormat::Rows(format));
    export::write(&recorded.session(), selection, &options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Moments, and which of them are in spans of a group, or in one and in none within it.
struct Moments {
    open: Vec<bool>,
    own: Vec<bool>,
    sum: u64,
    count: u64,
}

/// A begin without its end, and the moments within it.
type Open = (At, Vec<bool>);

/// What a list of hits says, moment by moment: by the key, the newest begin ends first. Of spans that last at least `min` and overlap `time`.
fn moments(
    hits: &[At],
    key: impl Fn(&At) -> (i32, u64),
    group: impl Fn(&At) -> u64,
    (min, (first, last)): (u64, (u64, u64)),
) -> BTreeMap<u64, Moments> {
    let length = hits.last().unwrap().0 as usize + 1;
    let mut waiting: BTreeMap<(i32, u64), Vec<Open>> = BTreeMap::new();
    let mut groups = BTreeMap::new();
    for hit in hits {
        let stack = waiting.entry(key(hit)).or_default();
        if hit.2 {
            stack.push((*hit, vec![false; length]));
            continue;
        }
        let Some((begin, within)) = stack.pop() else {
            continue;
        };
        let span = begin.0 as usize..hit.0 as usize;
        if let Some((_, within)) = stack.last_mut() {
            within[span.clone()].fill(true);
        }
        if hit.0 - begin.0 < min || hit.0 < first || begin.0 > last {
            continue;
        }
        let group: &mut Moments = groups.entry(group(&begin)).or_insert_with(|| Moments {
            open: vec![false; length],
            own: vec![false; length],
            sum: 0,
            count: 0,
        });
        group.sum += hit.0 - begin.0;
        group.count += 1;
        for at in span {
            group.open[at] = true;
            group.own[at] |= !within[at];
        }
    }
    groups
}

fn number(moments: &[bool]) -> u64 {
    moments.iter().filter(|is| **is).count() as u64
}

#[test]
fn each_moment_counts_once_with_any_key() {
    for (seed, threads, texts) in [(1, 1, 3), (2, 3, 1), (3, 4, 5), (4, 7, 2)] {
        let mut random = support::random(seed);
        let mut at = 0;
        let hits: Vec<At> = (0..1500)
            .map(|_| {
                at += 1 + random(3) * random(4);
                let tid = 101 + random(threads) as i32;
                (at, tid, random(100) < 52, random(texts))
            })
            .collect();
        let recorded = recorded(&hits, 400);
        let times = [(0, u64::MAX), (at / 3, at / 3), (at / 4, at / 2)];
        for ((key, by), (min, time)) in [
            (&["tid"][..], &["arg1"][..]),
            (&["arg1"], &["tid"]),
            (&["arg1"], &["arg1"]),
            (&["tid", "arg1"], &["arg1"]),
            (&["tid", "arg1"], &["tid"]),
            (&["tid", "arg1"], &["pid"]),
        ]
        .into_iter()
        .zip(
            [0, 0, 9, 0, 12, 0]
                .into_iter()
                .zip(times.into_iter().cycle()),
        ) {
            let expected = moments(
                &hits,
                |hit| match key {
                    ["tid"] => (hit.1, 0),
                    ["arg1"] => (0, hit.3),
                    _ => (hit.1, hit.3),
                },
                |hit| match by {
                    ["tid"] => hit.1 as u64,
                    ["pid"] => 100,
                    _ => hit.3,
                },
                (min, time),
            );
            let selection = from(time.0, time.1.min(1 << 40));
            let asked = SpanQuestion {
                min,
                ..question(key, by)
            };
            let found = answer(&recorded, &selection, asked.clone());
            let what = format!("seed {seed}, key {key:?} by {by:?}, {time:?}");
            let groups = found["groups"].as_array().unwrap();
            assert_eq!(groups.len(), expected.len(), "{what}");
            for group in groups {
                let expected = &expected[&group[by[0]].as_u64().unwrap()];
                let figures = ["count", "sum_ns", "total_ns", "self_total_ns"]
                    .map(|name| group[name].as_u64().unwrap());
                let expected = [
                    expected.count,
                    expected.sum,
                    number(&expected.open),
                    number(&expected.own),
                ];
                assert_eq!(figures, expected, "{what}: {group}");
            }
            let all = |of: fn(&Moments) -> &Vec<bool>| {
                let mut all = vec![false; at as usize + 1];
                for moments in expected.values() {
                    let moments = all.iter_mut().zip(of(moments));
                    moments.for_each(|(all, is)| *all |= is);
                }
                number(&all)
            };
            assert_eq!(found["total_ns"], all(|group| &group.open), "{what}");
            assert_eq!(found["self_total_ns"], all(|group| &group.own), "{what}");
        }
    }
}

/// Ten that overlap, one after the other, of one thread: as much time with a key as without.
#[test]
fn overlapping_spans_last_as_long_with_a_key() {
    let begins = (0..10).map(|at| (at, 101, true, at));
    let hits: Vec<At> = begins
        .chain((0..10).map(|at| (100 + at, 101, false, at)))
        .collect();
    let recorded = recorded(&hits, 7);
    for key in [&["tid"][..], &["tid", "arg1"], &["arg1"], &["pid"]] {
        let found = answer(&recorded, &EventSelection::default(), question(key, &[]));
        let figures = (&found["total_ns"], &found["self_total_ns"]);
        assert_eq!(figures, (&109.into(), &109.into()), "{key:?}");
    }
}

/// A statement, one that fails, another one, and one that is open at the end.
const FAILS: [At; 6] = [
    (0, 101, true, 1),
    (1000, 101, false, 1),
    (2000, 101, true, 2),
    (8000, 101, true, 3),
    (9000, 101, false, 3),
    (9500, 101, true, 4),
];

/// How long the spans with an end last that OpenTelemetry has, in order.
fn durations(recorded: &Recorded, selection: &EventSelection) -> Vec<u64> {
    let otlp = export(recorded, selection, RowFormat::OtlpJson);
    let mut durations = Vec::new();
    for line in otlp.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let spans = line["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
        for span in spans.as_array().unwrap() {
            let at = |name: &str| span[name].as_str()?.parse::<u64>().ok();
            let (begin, end) = (at("startTimeUnixNano"), at("endTimeUnixNano"));
            durations.extend(
                end.zip(begin)
                    .and_then(|(end, begin)| end.checked_sub(begin)),
            );
        }
    }
    durations.sort_unstable();
    durations
}

#[test]
fn a_begin_after_which_the_next_one_came_ends_there() {
    for flush in 1..6 {
        let recorded = recorded(&FAILS, flush);
        let all = EventSelection::default();
        let found = answer(&recorded, &all, question(&[], &[]));
        let counts = ["count", "open", "unfinished"].map(|name| found[name].clone());
        assert_eq!(counts, [json!(2), json!(2), json!(1)]);
        let options = ReportOptions::default();
        let (text, _) = recorded.report(&Question::Summary, &options).unwrap();
        let open = text.lines().find(|line| line.starts_with("request "));
        assert!(open.unwrap().ends_with("  1"), "{text}");
        assert!(text.contains("the next one began"), "{text}");

        let lasts = durations(&recorded, &all);
        assert!(lasts.ends_with(&[1000, 1000, 6000]), "{lasts:?}");
    }
}

/// Where one began in another that ended, the next begin says nothing: it may be within.
#[test]
fn calls_are_open_although_others_begin() {
    let nested: [At; 7] = [
        (0, 101, true, 1),
        (10, 101, true, 2),
        (20, 101, false, 2),
        (30, 101, false, 1),
        (40, 101, true, 3),
        (50, 101, true, 4),
        (60, 101, false, 4),
    ];
    for flush in 1..7 {
        let recorded = recorded(&nested, flush);
        let found = answer(&recorded, &EventSelection::default(), question(&[], &[]));
        let counts = ["count", "open", "unfinished"].map(|name| found[name].clone());
        assert_eq!(counts, [json!(3), json!(1), json!(0)]);
    }
}

/// A span whose begin is before the time that is selected has it all the same, and each question finds the same spans.
#[test]
fn times_select_spans_after_they_are_matched() {
    let hits: [At; 8] = [
        (0, 101, true, 1),
        (100, 102, true, 2),
        (150, 102, false, 2),
        (300, 101, false, 1),
        (310, 101, true, 3),
        (390, 101, false, 3),
        (400, 101, true, 4),
        (900, 101, false, 4),
    ];
    let recorded = recorded(&hits, 3);
    for ((first, last), spans) in [
        ((200, 250), vec![300]),
        ((290, 320), vec![300, 80]),
        ((300, 300), vec![300]),
        ((301, 309), vec![]),
        ((395, 2000), vec![500]),
        ((120, 350), vec![50, 300, 80]),
    ] {
        let selection = from(first, last);
        let found = answer(&recorded, &selection, question(&[], &[]));
        assert_eq!(found["count"], spans.len(), "{first}-{last}");
        let sum: u64 = spans.iter().sum();
        assert_eq!(found["sum_ns"].as_u64().unwrap_or(0), sum);
        assert_eq!(
            (&found["open"], &found["unmatched"]),
            (&0.into(), &0.into())
        );
        let mut expected: Vec<u64> = spans;
        expected.sort_unstable();
        assert_eq!(durations(&recorded, &selection), expected, "{first}-{last}");
    }
    let options = ScriptOptions {
        fields: "+span".parse().unwrap(),
        format: Format::Json,
        ..ScriptOptions::default()
    };
    let (text, _) = recorded.script(&from(290, 305), &options);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert_eq!(lines[0]["span_ns"], 300);
}
