//! `--filter` and `--by` of spans with arguments of what ends them, compared with a plain walk.

use std::collections::BTreeMap;

use crate::support::{self, DONE, HINTS, HIT, Hit, REQUEST, Recorded, Recording};
use serde_json::Value;
use usdtrec_format::schema::Argument;
use usdtrec_report::Format;
use usdtrec_report::question::{Question, SpanQuestion};
use usdtrec_report::report::ReportOptions;
use usdtrec_report::{EventSelection, ReportError};
use usdtrec_testing::test;

/// Calls of `request(size, …)` and `done(status)`, one in another's time on other threads, and each as thread, size, status, and ns.
fn recorded() -> (Recorded, Vec<(u64, u64, u64)>) {
    let mut recording = Recording::with(std::path::Path::new("/opt/app"), |info| {
        for probe in info.definitions.iter_mut().flat_map(|all| &mut all.probes) {
            let name = if probe.name == "done" {
                "status"
            } else {
                "size"
            };
            probe.arguments[0] = Argument::named(name);
        }
    });
    recording.comm(0, (100, 100), "server", false);
    recording.mmap(0, 100, "/opt/app");
    let mut calls = Vec::new();
    let mut random = support::random(3);
    for at in 0..500_u64 {
        let (size, took) = (random(4), 1 + random(900));
        let status = [200, 404, 500][random(3) as usize];
        for (id, time, ax) in [(REQUEST, at * 1000, size), (DONE, at * 1000 + took, status)] {
            recording.hit(Hit {
                id,
                time: HIT.time + time,
                ax,
                ..HIT
            });
        }
        calls.push((size, status, took));
    }
    (recording.finish(), calls)
}

/// The head of the text, as one line.
fn head(recorded: &Recorded, filter: Option<&str>, question: SpanQuestion) -> String {
    let options = ReportOptions {
        hints: HINTS,
        ..ReportOptions::default()
    };
    let selection = EventSelection {
        filter: filter.map(str::to_owned),
        ..EventSelection::default()
    };
    let text = recorded.report_selected(&selection, &Question::Spans(question), &options);
    let text = text.unwrap().0;
    let head = text.lines().take_while(|line| line.starts_with('#'));
    let head = head.map(|line| line.trim_start_matches(['#', ' ']));
    head.collect::<Vec<_>>().join(" ")
}

/// Begin and end both have `arg1`, by which they do not agree: whose is meant is said, and how the other one is called.
#[test]
fn whose_argument_is_meant_is_said() {
    let mut recording = Recording::usual();
    for at in 0..40 {
        for (id, time, ax) in [(REQUEST, at * 10, 1000 + at), (DONE, at * 10 + 5, at % 3)] {
            let time = HIT.time + time;
            recording.hit(Hit {
                id,
                time,
                ax,
                ..HIT
            });
        }
    }
    let recorded = recording.finish();
    let by = |keys: &[&str]| SpanQuestion {
        spans: vec!["request..done".to_owned()],
        by: keys.iter().map(|&key| key.to_owned()).collect(),
        ..SpanQuestion::default()
    };
    let said = "arg1 is that of the event which begins the span; done.arg1 is that of the one which ends it";
    for (filter, keys, options) in [
        (None, &["arg1"][..], &["GroupKeys"][..]),
        (Some("arg1 > 5"), &["arg1"], &["GroupKeys", "Filter"]),
        (Some("arg1 > 5 && tid == 101"), &[], &["Filter"]),
        (Some("done.arg1 == 2"), &["done.arg1", "arg2"], &[]),
    ] {
        let head = head(&recorded, filter, by(keys));
        for option in ["GroupKeys", "Filter"] {
            let is_said = head.contains(&format!("{option}: {said}"));
            assert_eq!(is_said, options.contains(&option), "{head}");
        }
    }
    // By what they have in common, there is nothing to say.
    let keyed = SpanQuestion {
        key: vec!["arg1".to_owned()],
        ..by(&["arg1"])
    };
    assert!(!head(&recorded, None, keyed).contains(said));
}

fn ask(recorded: &Recorded, filter: Option<&str>, by: &[&str]) -> Result<Value, ReportError> {
    let question = Question::Spans(SpanQuestion {
        spans: vec!["request..done".to_owned()],
        by: by.iter().map(|&key| key.to_owned()).collect(),
        ..SpanQuestion::default()
    });
    let options = ReportOptions {
        format: Format::Json,
        ..ReportOptions::default()
    };
    let selection = EventSelection {
        filter: filter.map(str::to_owned),
        ..EventSelection::default()
    };
    let (text, _) = recorded.report_selected(&selection, &question, &options)?;
    Ok(serde_json::from_str::<Value>(&text).unwrap()["spans"][0].clone())
}

#[test]
fn filters_are_of_the_side_that_they_name() {
    let (recorded, calls) = recorded();
    type Is = fn(u64, u64) -> bool;
    let filters: [(&str, Is); 6] = [
        ("done.status == 500", |_, status| status == 500),
        ("status == 500", |_, status| status == 500),
        ("args.status >= 404", |_, status| status >= 404),
        ("size > 1 && status == 404", |size, status| {
            size > 1 && status == 404
        }),
        ("request.size == 0 || size == 3", |size, _| {
            size == 0 || size == 3
        }),
        // Both have a first argument: that of the begin is meant.
        ("arg1 == 3 && done.arg1 != 200", |size, status| {
            size == 3 && status != 200
        }),
    ];
    for (filter, is) in filters {
        let found = ask(&recorded, Some(filter), &[]).unwrap();
        let asked = calls.iter().filter(|(size, status, _)| is(*size, *status));
        let took: Vec<u64> = asked.map(|(.., took)| *took).collect();
        assert!(!took.is_empty() && took.len() < calls.len());
        assert_eq!(found["count"], took.len(), "{filter}");
        assert_eq!(found["total_ns"], took.iter().sum::<u64>(), "{filter}");
        assert_eq!(found["unmatched"], 0, "{filter}");
    }
    let wrong = |filter| ask(&recorded, Some(filter), &[]).unwrap_err().to_string();
    let both = wrong("size == status");
    assert!(
        both.contains("neither what begins the span nor what ends it"),
        "{both}"
    );
    let bare = wrong("span > 15");
    assert!(bare.contains("a time that has its unit"), "{bare}");
    let unknown = wrong("done.size == 3");
    assert!(unknown.contains("size"), "{unknown}");
}

#[test]
fn groups_are_of_the_side_that_they_name() {
    let (recorded, calls) = recorded();
    let by_status: [&[&str]; 3] = [&["status"], &["done.status"], &["done.arg1"]];
    for by in by_status {
        let found = ask(&recorded, None, by).unwrap();
        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
        for (_, status, took) in &calls {
            *expected.entry(*status).or_default() += took;
        }
        let groups = found["groups"].as_array().unwrap();
        assert_eq!(groups.len(), 3);
        for group in groups {
            let value = group
                .get("status")
                .or(group.get(by[0]))
                .or(group.get("arg1"));
            let value = value.unwrap().as_u64().unwrap();
            assert_eq!(group["total_ns"], expected[&value]);
        }
    }
    // Both have a first argument: that of the begin is meant.
    let found = ask(&recorded, None, &["arg1"]).unwrap();
    assert_eq!(found["groups"].as_array().unwrap().len(), 4);
}

/// Spans of a thread, ends of another process without a begin, and begins of other threads without an end.
struct Unmatched {
    spans: u64,
    ends: u64,
    begins: u64,
}

impl Unmatched {
    /// One of a hundred spans ends with 500, and one has the size 9; other hits have 200 and 1.
    fn record(&self) -> Recorded {
        let mut recording = Recording::usual();
        for at in 0..self.spans {
            let time = HIT.time + at * 1000;
            let is_one = at % 100 == 50;
            let ends = [200, 500][usize::from(is_one)];
            let begins = [1, 9][usize::from(is_one)];
            for (id, time, ax) in [(REQUEST, time, begins), (DONE, time + 500, ends)] {
                recording.hit(Hit {
                    id,
                    time,
                    ax,
                    ..HIT
                });
            }
        }
        let after = HIT.time + self.spans * 1000;
        for at in 0..self.ends {
            recording.hit(Hit {
                id: DONE,
                pid: 200,
                tid: 201,
                time: after + at,
                ax: 200,
                ..HIT
            });
        }
        for at in 0..self.begins {
            recording.hit(Hit {
                tid: 1000 + at as i32,
                time: after + self.ends + at,
                ax: 1,
                ..HIT
            });
        }
        recording.finish()
    }
}

fn of_spans(recorded: &Recorded, selection: &EventSelection, key: &[&str]) -> (Value, String) {
    let question = Question::Spans(SpanQuestion {
        spans: vec!["request..done".to_owned()],
        key: key.iter().map(|&key| key.to_owned()).collect(),
        ..SpanQuestion::default()
    });
    let shown = |format| {
        let options = ReportOptions {
            format,
            ..ReportOptions::default()
        };
        let shown = recorded.report_selected(selection, &question, &options);
        shown.unwrap().0
    };
    let json: Value = serde_json::from_str(&shown(Format::Json)).unwrap();
    (json["spans"][0].clone(), shown(Format::Text))
}

/// Ends of another process have begins there, which it does not say.
#[test]
fn ends_of_processes_that_are_not_selected_do_not_count() {
    let recorded = Unmatched {
        spans: 50,
        ends: 500,
        begins: 0,
    };
    let recorded = recorded.record();
    let all = EventSelection::default();
    let (found, text) = of_spans(&recorded, &all, &["tid"]);
    assert_eq!(
        (&found["count"], &found["unmatched"]),
        (&50.into(), &500.into())
    );
    assert!(
        text.contains("WARNING: 500 of 550 ends of request"),
        "{text}"
    );
    let of_process = EventSelection {
        pids: vec![100],
        ..all.clone()
    };
    let of_thread = EventSelection {
        tids: vec![101],
        ..all.clone()
    };
    let of_name = EventSelection {
        comms: vec!["worker".to_owned()],
        ..all.clone()
    };
    for selection in [of_process, of_thread, of_name] {
        let (found, text) = of_spans(&recorded, &selection, &["tid"]);
        assert_eq!(
            (&found["count"], &found["unmatched"]),
            (&50.into(), &0.into())
        );
        assert!(!text.contains("WARNING"), "{text}");
    }
    let others = EventSelection {
        pids: vec![200],
        ..all
    };
    let (found, _) = of_spans(&recorded, &others, &["tid"]);
    assert_eq!(
        (&found["count"], &found["unmatched"]),
        (&0.into(), &500.into())
    );
}

/// Of all begins, and of all ends, that are selected as hits, not of the spans that an expression leaves.
#[test]
fn what_has_no_end_is_a_share_of_all_begins() {
    let recorded = Unmatched {
        spans: 1000,
        ends: 0,
        begins: 3,
    };
    let recorded = recorded.record();
    let filtered = |filter: &str| EventSelection {
        filter: Some(filter.to_owned()),
        ..EventSelection::default()
    };
    let failed = filtered("done.arg1 == 500");
    let (found, text) = of_spans(&recorded, &failed, &["tid"]);
    assert_eq!((&found["count"], &found["open"]), (&10.into(), &3.into()));
    assert!(!text.contains("WARNING"), "{text}");
    let recorded = Unmatched {
        spans: 1000,
        ends: 40,
        begins: 30,
    };
    let recorded = recorded.record();
    let (_, text) = of_spans(&recorded, &failed, &["tid"]);
    assert!(
        text.contains("WARNING: 30 of 1030 begins of request"),
        "{text}"
    );
    assert!(!text.contains(" ends of request"), "{text}");
    let (_, text) = of_spans(&recorded, &filtered("request.arg1 == 9"), &["tid"]);
    assert!(
        text.contains("WARNING: 40 of 1040 ends of request"),
        "{text}"
    );
    assert!(!text.contains(" begins of request"), "{text}");
}
