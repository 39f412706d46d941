//! Answers as plain data: the figures of `report --format json`.

use serde_json::{Value, json};
use usdtrec_report::answer::{Answer, Facts};
use usdtrec_report::question::{GroupOrder, Question, SpanQuestion, StackKind, StackWeight};
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
fn a_summary_has_the_figures_of_json() {
    let answer = ask(&demo(), &Question::Summary);
    let [json] = &lines(&answer)[..] else {
        panic!("expected one object");
    };
    let same = report::json(&answer.facts).to_string();
    assert_eq!(*json, serde_json::from_str::<Value>(&same).unwrap());
    let Facts::Summary(summary) = &answer.facts else {
        panic!("{answer:?}");
    };
    assert!(summary.events > 1000);
    assert_eq!(json["events"], summary.events);
    assert_eq!(json["file"], *summary.origin.file);
    assert_eq!(json["first_ns"], json!(summary.time.unwrap().first));
    let probes = json["probes"].as_array().unwrap();
    assert_eq!(probes.len(), summary.probes.len());
    for (probe, json) in summary.probes.iter().zip(probes) {
        assert_eq!(json["event"], *probe.event);
        assert_eq!(json["count"], probe.count);
        for (argument, json) in probe
            .arguments
            .iter()
            .zip(json["arguments"].as_array().unwrap())
        {
            assert_eq!(json["type"], *argument.kind);
            // A float of 4 bytes has the digits of one.
            let p99 = argument.spread();
            let p99 = p99.map(|spread| spread.p99.approximate() as f32);
            assert_eq!(json["p99"].as_f64().map(|p99| p99 as f32), p99);
        }
    }
    let durations = &summary.spans[0].durations;
    assert_eq!(json["spans"][0]["p99_ns"], durations.p99);
    assert!(durations.p99 > durations.p50);
}

#[test]
fn groups_and_those_that_are_not_shown_add_up() {
    let session = demo();
    let Facts::Spans(report) = ask(&session, &Question::Spans(spans(&["arg2"]))).facts else {
        panic!("expected spans");
    };
    let [span] = &report.spans[..] else {
        panic!("{report:?}");
    };
    let (groups, slowest) = (&report.groups[0], &report.slowest[0]);
    assert_eq!([groups.len(), slowest.len()], [2, 2]);
    let others = report.others[0].as_ref().unwrap();
    let shown: u64 = groups.iter().map(|group| group.durations.count).sum();
    assert_eq!(shown + others.durations.count, span.durations.count);
    assert_eq!(slowest[0].slow.duration, span.durations.max);

    let question = self::groups("tid", Some("arg1"), GroupOrder::Total);
    for row in lines(&ask(&session, &question)) {
        assert!(row["arg1.count"].as_u64() <= row["samples"].as_u64());
        assert_eq!(row["tid"].is_null(), row["others"] == true, "{row}");
    }
}

#[test]
fn numbers_are_sorted_by_their_own_figures_alone() {
    let session = demo();
    for order in GroupOrder::ALL {
        let question = groups("tid", Some("arg1"), order);
        let answer = session.answer(&EventSelection::default(), &question);
        match order {
            GroupOrder::Own | GroupOrder::P999 | GroupOrder::Part(_) => {
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
    let expected = "self, mean, p50, p90, p99, p99.9, max, oncpu, runnable, iowait or blocked";
    assert!(much.ends_with(&format!("{expected}, found \"much\"")));
}

#[test]
fn stacks_are_data_too() {
    let session = trace("traces/stock-7.2-regs-stack.data");
    let question = Question::Stacks {
        weight: StackWeight::Hits,
        of: StackKind::Auto,
    };
    let answer = ask(&session, &question);
    let Facts::Stacks(stacks) = &answer.facts else {
        panic!("{answer:?}");
    };
    let lines = lines(&answer);
    assert_eq!(lines.len(), stacks.tables.len());
    for (table, line) in stacks.tables.iter().zip(&lines) {
        let weights: u64 = table.paths.iter().map(|path| path.weight).sum();
        assert_eq!(weights, table.weight);
        let mut stacks = line["stacks"].as_array().unwrap().iter();
        assert!(stacks.all(|stack| stack["stack"].is_array()), "{line}");
    }
    assert!(!lines.is_empty());
}
