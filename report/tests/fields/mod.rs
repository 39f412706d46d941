//! `FIELDS.md` names the members and columns that there are, and there are those that it names.

mod document;
mod generated;
mod recordings;

use std::path::Path;
use std::time::Duration;

use self::document::Answers;
use self::recordings::{
    damaged, few, joined, many, paused, silent, start, waiting, waits_as_events,
};
use crate::support::Recorded;
use serde_json::{Value, json};
use usdtrec_format::{NumberBucket, Pattern};
use usdtrec_report::Format;
use usdtrec_report::diff::{self, DiffOptions};
use usdtrec_report::question::{GroupOrder, Question, Scale, SpanQuestion, Subject};
use usdtrec_report::report::ReportOptions;
use usdtrec_report::script::{self, ScriptOptions, SpanRowQuestion, TimeOrigin};
use usdtrec_report::stat::{
    CountedNumbers, NumberEnds, NumberFacts, SpanFates, StatArgument, StatCounts, StatKey, StatRow,
    StatSpans, StatView,
};
use usdtrec_report::{EventSelection, HintWords, Sources, TraceSession};
use usdtrec_testing::test;

fn done() -> EventSelection {
    EventSelection {
        events: vec![Pattern::parse("sdt_app:done").unwrap()],
        ..EventSelection::default()
    }
}

fn ask(
    recorded: &Recorded,
    selection: &EventSelection,
    question: &Question,
    format: Format,
) -> String {
    let options = ReportOptions {
        format,
        ..ReportOptions::default()
    };
    let text = recorded.report_selected(selection, question, &options);
    named(text.unwrap().0.into_bytes(), recorded, "trace.data")
}

/// An answer with another name for the file.
fn named(out: Vec<u8>, recorded: &Recorded, name: &str) -> String {
    let text = String::from_utf8(out).unwrap();
    text.replace(recorded.path.to_str().unwrap(), name)
}

fn questions(title: &str, keys: &[&'static str], questions: &[Question], unmet: &[&str]) {
    let mut answers = Answers {
        keys: keys.to_vec(),
        value: Some("arg2"),
        ..Answers::default()
    };
    let all = [
        few(),
        many(),
        paused(false),
        paused(true),
        waiting(),
        waits_as_events(),
    ];
    for recorded in all {
        for question in questions {
            answers.add(|format| ask(&recorded, &EventSelection::default(), question, format));
        }
    }
    answers.check(title, unmet);
}

/// A recording of stock perf with copies of stacks, whose program is not here.
fn stacks(format: Format) -> String {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/traces");
    let path = traces.join("stock-7.2-regs-stack.data");
    let session = TraceSession::open(&path, &Sources::default()).unwrap();
    let options = ScriptOptions {
        fields: "+sym,+symoff,+dso".parse().unwrap(),
        format,
        ..ScriptOptions::default()
    };
    let mut out = Vec::new();
    script::print(&session, &EventSelection::default(), &options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn of_script() {
    let mut answers = Answers::default();
    let of_process = format!("+cpu,+{}", script::process_field_names().join(",+"));
    for (fields, times) in [
        ("+span", TimeOrigin::Clock),
        ("+sym,+symoff,+dso,+period,+tod", TimeOrigin::First),
        (&of_process, TimeOrigin::Previous),
    ] {
        for recorded in [few(), many(), waiting()] {
            answers.add(|format| {
                let options = ScriptOptions {
                    fields: fields.parse().unwrap(),
                    times,
                    format,
                    ..ScriptOptions::default()
                };
                recorded.script(&EventSelection::default(), &options).0
            });
        }
    }
    answers.add(stacks);
    let unmet = [
        "srcline",
        "stack[].srcline",
        "stack[].inlined",
        "demangled",
        "demangled.NAME",
        "symoff",
        "stack[].symoff",
        "stack[].file",
        "cut",
        "cut.NAME",
        "bytes",
        "bytes.NAME",
        "numbers",
        "numbers.NAME",
        "from_file",
        "from_file.NAME",
    ];
    answers.check("script", &unmet);
}

#[test]
fn of_script_spans() {
    let mut answers = Answers {
        names_both: true,
        ..Answers::default()
    };
    for recorded in [few(), many(), waiting()] {
        answers.add(|format| {
            let options = ScriptOptions {
                spans: Some(SpanRowQuestion {
                    spans: vec!["request".to_owned()],
                    ..SpanRowQuestion::default()
                }),
                format,
                ..ScriptOptions::default()
            };
            recorded.script(&EventSelection::default(), &options).0
        });
    }
    // What ends a span here has all of its arguments.
    answers.check("script --span", &["end.missing", "end.missing.NAME"]);
}

#[test]
fn of_report() {
    let mut answers = Answers::default();
    let question = Question::Summary;
    answers.add(|format| ask(&few(), &done(), &question, format));
    let paused = [paused(false), paused(true)];
    let others = [
        many(),
        damaged(),
        joined(),
        start().finish(),
        silent(),
        waiting(),
    ];
    for recorded in others.iter().chain(&paused) {
        answers.add(|format| ask(recorded, &EventSelection::default(), &question, format));
    }
    // No argument of these recordings is a string.
    let texts = [
        "count",
        "different",
        "exact",
        "cut",
        "values",
        "values[].value",
        "values[].count",
        "values[].demangled",
    ];
    let texts = texts.map(|name| format!("probes[].arguments[].texts.{name}"));
    let mut unmet: Vec<&str> = texts.iter().map(String::as_str).collect();
    // Nor are two probes at one instruction.
    unmet.push("unusual[].with");
    answers.check("report", &unmet);
}

#[test]
fn of_groups() {
    let top = |sort: &[&str], value: Option<&str>, top| Question::Groups {
        sort: sort.iter().map(|&key| key.to_owned()).collect(),
        value: value.map(str::to_owned),
        top,
        order: GroupOrder::default(),
    };
    let groups = |sort: &[&str], value| top(sort, value, None);
    let keys = ["comm", "pid", "tid", "cpu", "dso", "sym", "arg2", "arg4"];
    questions(
        "report --sort",
        &keys,
        &[
            groups(&["comm", "arg2"], None),
            groups(&["comm"], Some("arg2")),
            top(&["arg2"], Some("arg2"), Some(1)),
            groups(&["event", "pid", "tid", "cpu", "dso", "sym", "arg4"], None),
        ],
        &["demangled", "demangled.KEY", "cut", "cut.KEY"],
    );
}

#[test]
fn why_there_are_no_events_is_data_without_words_of_a_program() {
    let options = ReportOptions {
        format: Format::Json,
        hints: HintWords(|hint| format!("OPTION {hint:?}")),
        ..ReportOptions::default()
    };
    let text = silent().report(&Question::Summary, &options).unwrap().0;
    let report: Value = serde_json::from_str(&text).unwrap();
    // What the probe needs is not said where no process ran this build of its program.
    let expected = json!([
        {"kind": "other_version", "file": "/opt/app", "pids": [100]},
        {"kind": "unmapped", "file": "/opt/gone"},
        {"kind": "unmet", "events": ["sdt_app:request"], "needs": null, "filter": "arg1 > 5"},
    ]);
    assert_eq!(report["no_events"], expected);
    let reasons = report["reasons"].as_array().unwrap();
    assert_eq!(reasons.len(), 3);
    assert!(
        !report["reasons"].to_string().contains("OPTION"),
        "{report}"
    );
}

fn span(by: &[&str]) -> SpanQuestion {
    SpanQuestion {
        spans: vec!["request".to_owned()],
        by: by.iter().map(|&key| key.to_owned()).collect(),
        top: Some(1),
        ..SpanQuestion::default()
    }
}

#[test]
fn of_spans() {
    let by_argument = SpanQuestion {
        key: vec!["arg1".to_owned()],
        ..span(&[])
    };
    let never = SpanQuestion {
        min: 1 << 60,
        ..span(&[])
    };
    let asked = [
        by_argument,
        never,
        span(&[]),
        span(&["cpu", "arg2", "arg4"]),
    ];
    questions(
        "report --span",
        &["cpu", "arg2", "arg4"],
        &asked.map(Question::Spans),
        &[
            "spans[].groups[].demangled",
            "spans[].groups[].demangled.KEY",
            "spans[].groups[].cut",
            "spans[].groups[].cut.KEY",
            "spans[].slowest[].demangled",
            "spans[].slowest[].demangled.NAME",
        ],
    );
}

#[test]
fn of_histograms() {
    let of = |scale| Question::Histogram {
        of: Subject::Argument("arg1".to_owned()),
        scale,
    };
    let of_spans = Question::Histogram {
        of: Subject::Span(span(&[])),
        scale: Scale::Auto,
    };
    let asked = [
        of(Scale::Value),
        of(Scale::Log2),
        of(Scale::Linear),
        of_spans,
    ];
    questions("report --hist", &[], &asked, &["buckets[].demangled"]);
}

#[test]
fn of_heatmaps() {
    let of = [
        Subject::Argument("arg2".to_owned()),
        Subject::Span(span(&[])),
    ];
    questions("report --heatmap", &[], &of.map(Question::Heatmap), &[]);
}

#[test]
fn of_rates() {
    let rate = |sort: &[&str]| Question::Rate {
        interval: 1_000_000_000,
        sort: sort.iter().map(|&key| key.to_owned()).collect(),
    };
    let asked = [rate(&[]), rate(&["comm", "arg2"]), rate(&["event"])];
    // These are too few for others.
    questions(
        "report --rate",
        &["comm", "arg2"],
        &asked,
        &[
            "others",
            "doubtful",
            "demangled",
            "demangled.KEY",
            "cut",
            "cut.KEY",
        ],
    );
}

#[test]
fn of_diff() {
    let mut answers = Answers::default();
    let compare =
        |(a, b): (&Recorded, &Recorded), selection: &EventSelection, by: &[&str], format| {
            let options = DiffOptions {
                by: by.iter().map(|&key| key.to_owned()).collect(),
                format,
                ..DiffOptions::default()
            };
            let mut out = Vec::new();
            let open = |recorded: &Recorded| {
                TraceSession::open(&recorded.path, &Sources::default()).unwrap()
            };
            diff::print(&open(a), &open(b), selection, &options, &mut out).unwrap();
            let out = named(out, a, "before.data");
            named(out.into_bytes(), b, "after.data")
        };
    let cases = [
        (few(), few(), done(), &[][..]),
        (many(), many(), EventSelection::default(), &["arg3"]),
        (many(), few(), EventSelection::default(), &["arg3"]),
        (many(), start().finish(), EventSelection::default(), &[]),
        (waiting(), waiting(), EventSelection::default(), &["cpu"]),
    ];
    for (a, b, selection, by) in &cases {
        answers.add(|format| compare((a, b), selection, by, format));
    }
    answers.check("diff", &["figures[].demangled"]);
}

/// Numbers as programs in the kernel count them.
fn counted(sum: i128) -> Option<NumberFacts> {
    let bucket = NumberBucket::from_number;
    let counted = CountedNumbers {
        count: 3,
        sum,
        ends: Some(NumberEnds { min: 7, max: 900 }),
        histogram: Some([(bucket(7), 2), (bucket(900), 1)].into_iter().collect()),
        unbucketed: 0,
    };
    Some(counted.facts())
}

#[test]
fn of_stat() {
    let second = Duration::from_secs(1);
    let show = |view: StatView, rows: &[StatRow]| {
        let mut view = view;
        view.show(&StatCounts {
            elapsed: 2 * second,
            interval: second,
            rows: rows.to_vec(),
        })
    };
    let measured = |has_histogram| StatArgument {
        name: "arg2".to_owned(),
        has_histogram,
    };
    let spans = |has_parts| StatSpans {
        has_parts,
        has_histogram: true,
    };
    let hits = StatRow {
        event: "sdt_app:request".to_owned(),
        keys: Some(Vec::new()),
        count: 549,
        ..StatRow::default()
    };
    let ended = |numbers| StatRow {
        event: "app:request".to_owned(),
        is_span: true,
        count: 3,
        fates: Some(SpanFates::default()),
        numbers,
        ..hits.clone()
    };
    let groups = |row: StatRow| {
        let others = StatRow {
            keys: None,
            numbers: vec![None; row.numbers.len()],
            ..row.clone()
        };
        let group = StatRow {
            keys: Some(vec![StatKey::Number(100)]),
            fates: None,
            ..row
        };
        [group, others]
    };
    let view = |format, keys: &[&str], measured| {
        let keys = keys.iter().map(|&key| key.to_owned()).collect();
        StatView::new(format, false, keys, measured)
    };
    let mut answers = Answers {
        keys: vec!["pid"],
        value: Some("arg2"),
        ..Answers::default()
    };
    answers.add(|format| show(view(format, &[], Vec::new()), std::slice::from_ref(&hits)));
    for has_histogram in [false, true] {
        let measured_hits = StatRow {
            numbers: vec![counted(914)],
            ..hits.clone()
        };
        answers.add(|format| {
            let view = view(format, &["pid"], vec![measured(has_histogram)]);
            show(view, &groups(measured_hits.clone()))
        });
    }
    for has_parts in [false, true] {
        let parts = [7, 7, 0, 900].map(counted);
        let parts = parts.into_iter().filter(|_| has_parts);
        let numbers: Vec<_> = parts.chain([counted(914)]).collect();
        let unknown = vec![None; numbers.len()];
        answers.add(|format| {
            let view = view(format, &[], vec![measured(true)]).with_spans(Some(spans(has_parts)));
            let rows = [ended(numbers.clone()), ended(unknown.clone())];
            show(view, &rows)
        });
        answers.add(|format| {
            let view = view(format, &["pid"], Vec::new()).with_spans(Some(spans(has_parts)));
            show(view, &groups(ended(numbers.clone())))
        });
    }
    // No key is a string.
    answers.check("stat", &["cut", "cut.KEY"]);
}
