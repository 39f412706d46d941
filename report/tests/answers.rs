//! Answers as plain data: the figures of `report --format json`.

use serde_json::{Value, json};
use usdtrec_report::answer::{Answer, AnswerData, Figure, HistogramEdge};
use usdtrec_report::question::{
    GroupOrder, Question, Scale, SpanQuestion, StackKind, StackWeight, Subject,
};
use usdtrec_report::report::{self, ReportOptions};
use usdtrec_report::{
    AnswerQuestions as _, EventSelection, Format, QuestionError, ReportError, Sources, TraceSession,
};
use usdtrec_testing::test;

fn demo() -> TraceSession {
    trace("demo.data")
}

fn trace(name: &str) -> TraceSession {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    TraceSession::open(&folder.join(name), &Sources::default()).unwrap()
}

fn ask(session: &TraceSession, question: &Question) -> Answer {
    let answer = session.answer(&EventSelection::default(), question);
    answer.unwrap()
}

/// What `report --format json` prints.
fn lines(answer: &Answer) -> Vec<Value> {
    let options = ReportOptions {
        format: Format::Json,
        ..ReportOptions::default()
    };
    let mut out = Vec::new();
    report::write(answer, &options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn spans(by: &[&str]) -> SpanQuestion {
    SpanQuestion {
        spans: vec!["request".to_owned()],
        by: by.iter().map(|&key| key.to_owned()).collect(),
        top: Some(2),
        ..SpanQuestion::default()
    }
}

fn groups(sort: &str, value: Option<&str>, order: GroupOrder) -> Question {
    Question::Groups {
        sort: vec![sort.to_owned()],
        value: value.map(str::to_owned),
        top: Some(2),
        order,
    }
}

/// Python takes answers from other threads.
const fn is_shared<T: Send + Sync>() {}
const _: () = is_shared::<Answer>();

#[test]
fn json_is_the_serialization_of_the_answer() {
    let session = demo();
    let all = [
        Question::Summary,
        groups("arg2", Some("arg3"), GroupOrder::default()),
        Question::Spans(spans(&["arg2", "request__done.arg2"])),
        Question::Histogram {
            of: Subject::Span(spans(&["arg2"])),
            scale: Scale::Auto,
        },
        Question::Heatmap(Subject::Argument("arg3".to_owned())),
        Question::Rate {
            interval: 100_000_000,
            sort: vec!["arg2".to_owned()],
        },
    ];
    for question in all {
        let answer = ask(&session, &question);
        let lines = lines(&answer);
        // The same without the intermediate value, as programs of other languages get it.
        let text = serde_json::to_string(&answer).unwrap();
        let whole: Value = serde_json::from_str(&text).unwrap();
        match whole {
            Value::Array(all) => assert_eq!(all, lines, "{question:?}"),
            one => assert_eq!([one], *lines, "{question:?}"),
        }
        assert!(lines[0].as_object().unwrap().len() > 1, "{question:?}");
    }
}

#[test]
fn a_summary_has_the_figures_of_json() {
    let answer = ask(&demo(), &Question::Summary);
    let [json] = &lines(&answer)[..] else {
        panic!("expected one object");
    };
    let AnswerData::Summary(summary) = answer.data() else {
        panic!("{answer:?}");
    };
    assert!(summary.events > 1000);
    assert_eq!(json["events"], summary.events);
    assert_eq!(json["file"], *summary.recording.file);
    assert_eq!(json["first_ns"], json!(summary.first_ns));
    assert_eq!(
        json["probes"].as_array().unwrap().len(),
        summary.probes.len()
    );
    for (probe, json) in summary
        .probes
        .iter()
        .zip(json["probes"].as_array().unwrap())
    {
        assert_eq!(json["event"], *probe.event);
        assert_eq!(json["count"], probe.count);
        assert_eq!(json["per_second"], json!(probe.per_second));
        for (argument, json) in probe
            .arguments
            .iter()
            .zip(json["arguments"].as_array().unwrap())
        {
            assert_eq!(json["type"], *argument.kind);
            match argument.p99 {
                Some(Figure::Integer(number)) => {
                    assert_eq!(json["p99"].as_i64().map(i128::from), Some(number));
                }
                Some(Figure::Float(number)) => assert_eq!(json["p99"].as_f64(), Some(number)),
                None => assert_eq!(json["p99"], Value::Null),
            }
        }
    }
    let span = &summary.spans[0];
    assert_eq!(json["spans"][0]["p99_ns"], json!(span.durations.p99_ns));
    assert!(span.durations.p99_ns > span.durations.p50_ns);
}

#[test]
fn groups_and_those_that_are_not_shown_add_up() {
    let session = demo();
    let AnswerData::Spans(report) = ask(&session, &Question::Spans(spans(&["arg2"]))).data() else {
        panic!("expected spans");
    };
    let [row] = &report.spans[..] else {
        panic!("{report:?}");
    };
    assert_eq!([row.groups.len(), row.slowest.len()], [2, 2]);
    let others = row.others.as_ref().unwrap();
    let shown: u64 = row.groups.iter().map(|group| group.durations.count).sum();
    assert_eq!(
        shown + others.durations.count,
        row.statistics.durations.count
    );
    assert_eq!(others.durations.count, row.ungrouped);
    assert!(row.groups[0].keys.values["arg2"].is_number());
    assert_eq!(
        Some(row.slowest[0].duration_ns),
        row.statistics.durations.max_ns
    );

    let question = groups("tid", Some("arg1"), GroupOrder::Total);
    let AnswerData::Groups(rows) = ask(&session, &question).data() else {
        panic!("expected groups");
    };
    for row in &rows {
        let value = row.value.as_ref().unwrap();
        assert_eq!(value.name, "arg1");
        assert!(value.count <= row.samples);
        assert_eq!(row.keys.values["tid"].is_null(), row.others.is_some());
    }
}

#[test]
fn numbers_are_sorted_by_their_own_figures_alone() {
    let session = demo();
    for order in GroupOrder::ALL {
        let question = groups("tid", Some("arg1"), order);
        let answer = session.answer(&EventSelection::default(), &question);
        match order {
            GroupOrder::Own | GroupOrder::P999 => {
                let error = answer.unwrap_err();
                let text = format!(
                    "order: expected count, sum, mean, p50, p90, p99 or max, found {:?}",
                    order.name()
                );
                assert_eq!(error.to_string(), text);
                assert!(matches!(
                    error,
                    ReportError::Question(QuestionError::Order { .. })
                ));
            }
            _ => assert!(answer.is_ok(), "{order:?}"),
        }
        assert_eq!(order.name().parse::<GroupOrder>().unwrap(), order);
    }
    let much = "much".parse::<GroupOrder>().unwrap_err().to_string();
    assert!(much.ends_with("self, mean, p50, p90, p99, p99.9 or max, found \"much\""));
}

#[test]
fn stacks_are_data_too() {
    let session = trace("traces/stock-7.2-regs-stack.data");
    let question = Question::Stacks {
        weight: StackWeight::Hits,
        of: StackKind::Auto,
    };
    let answer = ask(&session, &question);
    let AnswerData::Stacks(tables) = answer.data() else {
        panic!("{answer:?}");
    };
    assert_eq!(lines(&answer).len(), tables.len());
    for table in &tables {
        let weights: u64 = table.stacks.iter().map(|stack| stack.weight).sum();
        assert_eq!(weights, table.weight);
        assert!(table.stacks.iter().all(|stack| stack.stack.is_some()));
    }
    assert!(!tables.is_empty());
}

#[test]
fn strings_that_look_like_numbers_stay_strings() {
    let edge = HistogramEdge::String("1e3".to_owned());
    assert_eq!(serde_json::to_value(edge).unwrap(), json!("1e3"));
}
