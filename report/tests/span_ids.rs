//! Spans of one thread that nest or overlap, beside a model of the rule that the report says: thread, or thread and arg1.

use std::collections::{BTreeMap, HashMap};

use crate::support::{self, DONE, HIT, Hit, REQUEST, Recorded, Recording};
use serde_json::{Value, json};
use usdtrec_report::question::{Question, SpanQuestion};
use usdtrec_report::script::ScriptOptions;
use usdtrec_report::{EventSelection, Format};
use usdtrec_testing::{repetitions, test};

/// A hit: time, thread, whether it begins a span, and `arg1`, which both probes have.
#[derive(Clone, Copy, Debug)]
struct At {
    time: u64,
    tid: i32,
    begins: bool,
    arg1: u64,
}

/// What the values of begins and ends are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// Each span has another one.
    Serial,
    /// Some that are open at once have the same.
    Few,
    /// Those of ends are not those of begins.
    Unrelated,
    /// All the same.
    Constant,
}

/// A random schedule.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    hits: u64,
    threads: u64,
    depth: u64,
    /// Whether the newest ends first.
    nests: bool,
    /// Of a hundred ends, how many are missing.
    lost_ends: u64,
    values: Values,
}

impl Schedule {
    fn make(self, seed: u64) -> Vec<At> {
        let mut random = support::random(seed);
        let mut open: BTreeMap<i32, Vec<u64>> = BTreeMap::new();
        let (mut hits, mut number, mut time) = (Vec::new(), 1000, HIT.time);
        while (hits.len() as u64) < self.hits {
            time += 1 + random(1000);
            let tid = 101 + random(self.threads) as i32;
            let open = open.entry(tid).or_default();
            let depth = open.len() as u64;
            let ends = depth > 0 && (depth >= self.depth || random(2) == 0);
            let arg1 = if ends {
                let at = match self.nests {
                    true => open.len() - 1,
                    false => random(depth) as usize,
                };
                let begun = open.remove(at);
                if random(100) < self.lost_ends {
                    continue;
                }
                match self.values {
                    Values::Unrelated => random(200),
                    _ => begun,
                }
            } else {
                number += 1;
                let begun = match self.values {
                    Values::Serial => number,
                    Values::Few => random(12),
                    Values::Unrelated => random(200),
                    Values::Constant => 7,
                };
                open.push(begun);
                begun
            };
            hits.push(At {
                time,
                tid,
                begins: !ends,
                arg1,
            });
        }
        hits
    }
}

fn recorded(hits: &[At], flush: usize) -> Recorded {
    let mut recording = Recording::usual();
    for hits in hits.chunks(flush) {
        for hit in hits {
            recording.hit(Hit {
                id: if hit.begins { REQUEST } else { DONE },
                time: hit.time,
                tid: hit.tid,
                cpu: hit.tid as u32 % 4,
                ax: hit.arg1,
                ..HIT
            });
        }
        recording.flush();
    }
    recording.finish()
}

/// Of each end, when its span began: the newest open begin of its thread, with the same value if `by_value`.
fn model(hits: &[At], by_value: bool) -> HashMap<u64, Option<u64>> {
    let mut open: HashMap<i32, Vec<At>> = HashMap::new();
    let mut ends = HashMap::new();
    for hit in hits {
        let open = open.entry(hit.tid).or_default();
        if hit.begins {
            open.push(*hit);
            continue;
        }
        let found = open
            .iter()
            .rposition(|begun| !by_value || begun.arg1 == hit.arg1);
        ends.insert(hit.time, found.map(|at| open.remove(at).time));
    }
    ends
}

/// The same as `script -F +span` says.
fn scripted(recorded: &Recorded) -> HashMap<u64, Option<u64>> {
    let options = ScriptOptions {
        fields: "+span".parse().unwrap(),
        format: Format::Json,
        ..ScriptOptions::default()
    };
    let text = recorded.script(&EventSelection::default(), &options).0;
    let mut ends = HashMap::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["event"] == "sdt_app:done" {
            let time = line["time_ns"].as_u64().unwrap();
            ends.insert(time, line["span_ns"].as_u64().map(|lasted| time - lasted));
        }
    }
    ends
}

fn question(key: &[&str]) -> Question {
    Question::Spans(SpanQuestion {
        spans: vec!["request".to_owned()],
        key: key.iter().map(|&key| key.to_owned()).collect(),
        ..SpanQuestion::default()
    })
}

fn answer(recorded: &Recorded, key: &[&str]) -> Value {
    let text = recorded.same_answer(&question(key), Format::Json);
    serde_json::from_str::<Value>(&text).unwrap()["spans"][0].clone()
}

/// Asserts that the report and the script have the spans of the model.
#[track_caller]
fn check(recorded: &Recorded, found: &Value, ends: &HashMap<u64, Option<u64>>, of: &str) {
    let spans: Vec<u64> = ends
        .iter()
        .filter_map(|(end, begin)| Some(end - (*begin)?))
        .collect();
    assert_eq!(found["count"], spans.len(), "{of}");
    assert_eq!(found["unmatched"], ends.len() - spans.len(), "{of}");
    assert_eq!(
        found["sum_ns"].as_u64().unwrap_or(0),
        spans.iter().sum::<u64>(),
        "{of}"
    );
    assert_eq!(
        found["max_ns"].as_u64(),
        spans.iter().max().copied(),
        "{of}"
    );
    if found["key"] == "tid" {
        assert_eq!(scripted(recorded), *ends, "{of}");
    }
}

#[test]
fn spans_are_those_of_the_rule_that_is_said() {
    for seed in 0..repetitions("USDTREC_TEST_SPANS", 6) {
        for values in [
            Values::Serial,
            Values::Few,
            Values::Unrelated,
            Values::Constant,
        ] {
            for (depth, nests) in [(1, true), (6, true), (2, false), (8, false)] {
                let schedule = Schedule {
                    hits: 600 + seed * 500,
                    threads: 1 + seed % 4,
                    depth,
                    nests,
                    lost_ends: seed % 3 * 10,
                    values,
                };
                let of = format!("{schedule:?} seed {seed}");
                let hits = schedule.make(seed);
                let recorded = recorded(&hits, 97);
                let found = answer(&recorded, &[]);
                assert_eq!(found["key"], "tid", "{of}");
                let is_id = matches!(values, Values::Serial | Values::Few);
                let agreed = if is_id { json!(["arg1"]) } else { json!([]) };
                assert_eq!(found["agreed"], agreed, "{of}");
                check(&recorded, &found, &model(&hits, is_id), &of);
                let text = recorded.answer(1, question(&[]), Format::Text);
                let rule = if is_id {
                    "  matched by thread and arg1: request\n"
                } else {
                    "  matched by thread: request\n"
                };
                assert!(text.contains(rule), "{of}: {text}");
                // Only where all values differ, and no end is missing, is the rule that of the program itself.
                if values == Values::Serial && schedule.lost_ends == 0 {
                    assert_eq!(found["unmatched"], 0, "{of}");
                }
            }
        }
    }
}

/// The thread alone, if that is asked for.
#[test]
fn the_thread_alone_may_be_asked_for() {
    let schedule = Schedule {
        hits: 2000,
        threads: 2,
        depth: 8,
        nests: false,
        lost_ends: 5,
        values: Values::Serial,
    };
    let hits = schedule.make(3);
    let recorded = recorded(&hits, 300);
    let found = answer(&recorded, &["tid"]);
    assert_eq!(
        (&found["key"], &found["agreed"]),
        (&json!("tid"), &json!([]))
    );
    let ends = model(&hits, false);
    let spans = ends.values().flatten().count();
    assert_eq!(found["count"], spans);
    let sum: u64 = ends
        .iter()
        .filter_map(|(end, begin)| Some(end - (*begin)?))
        .sum();
    assert_eq!(found["sum_ns"], sum);
}

/// A number that is mostly the same at the end, as a size that was asked for and read: the thread alone.
#[test]
fn what_differs_between_begin_and_end_is_not_used() {
    let mut random = support::random(5);
    let sizes = [4096, 8192, 100, 512, 64];
    let hits = (0..2000).map(|at| {
        let begins = at % 2 == 0;
        (begins, sizes[random(5) as usize], random(20) == 0)
    });
    let mut asked = 0;
    let hits = hits.zip(0..).map(|((begins, size, differs), at)| {
        if begins {
            asked = size;
        }
        At {
            time: HIT.time + at * 1000,
            tid: 101,
            begins,
            arg1: if begins || differs { size } else { asked },
        }
    });
    let hits: Vec<At> = hits.collect();
    let recorded = recorded(&hits, 500);
    let found = answer(&recorded, &[]);
    assert_eq!(found["agreed"], json!([]));
    check(&recorded, &found, &model(&hits, false), "sizes");
}

/// More hits are read at the beginning than where it is found out that spans cross.
#[test]
fn spans_that_cross_late_are_matched_as_those_that_cross_early() {
    let nested = Schedule {
        hits: 70_000,
        threads: 3,
        depth: 4,
        nests: true,
        lost_ends: 0,
        values: Values::Serial,
    };
    let crossing = Schedule {
        hits: 600,
        nests: false,
        ..nested
    };
    let hits = nested.make(1);
    let after = hits.last().unwrap().time - HIT.time;
    let late = crossing.make(2).into_iter().map(|hit| At {
        time: hit.time + after + 1000,
        // Begins that are open are not theirs.
        tid: hit.tid + 10,
        arg1: hit.arg1 + (1 << 20),
        ..hit
    });
    for (is_crossing, late) in [(false, Vec::new()), (true, late.collect())] {
        let hits = [hits.clone(), late].concat();
        let recorded = recorded(&hits, 5000);
        let (found, ends) = (answer(&recorded, &[]), model(&hits, true));
        check(&recorded, &found, &ends, "late");
        assert_eq!(found["unmatched"], 0);
        assert_eq!(found["agreed"], json!(["arg1"]));
        let summary = recorded.same_answer(&Question::default(), Format::Json);
        let summary: Value = serde_json::from_str(&summary).unwrap();
        let spans = summary["spans"].as_array().unwrap();
        let of_summary = spans.iter().find(|span| span["span"] == found["span"]);
        for member in ["count", "sum_ns", "max_ns", "unmatched"] {
            let summed = of_summary.map(|span| &span[member]);
            assert_eq!(summed, Some(&found[member]), "{member} {is_crossing}");
        }
    }
}
