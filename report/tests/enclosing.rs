//! Arguments of enclosing spans on recordings made by hand, beside a plain walk over the events.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;
use usdtrec_format::Pattern;
use usdtrec_report::question::{GroupOrder, Question, SpanQuestion};
use usdtrec_report::report::{self, ReportOptions};
use usdtrec_report::rows::{RowQuestion, RowReader, RowValue, TraceRow};
use usdtrec_report::script::{self, ScriptOptions};
use usdtrec_report::{
    AnswerQuestions as _, ContextQuestion, EventSelection, Format, QuestionError, ReportError,
    TraceSession,
};
use usdtrec_testing::test;

use crate::support::{self, DONE, HIT, Hit, INNER, REQUEST, Recorded, Recording};

fn recording() -> Recording {
    let mut recording = Recording::with(Path::new("/opt/app"), support::with_inner);
    recording.comm(0, (100, 100), "server", false);
    recording.mmap(0, 100, "/opt/app");
    recording
}

fn with(spans: &[&str]) -> ContextQuestion {
    ContextQuestion {
        with: spans.iter().map(|&span| span.to_owned()).collect(),
        holders: false,
    }
}

/// The trace, whose events have the arguments of the request that they are in.
fn session(recorded: &Recorded) -> TraceSession {
    let mut session = recorded.session();
    with(&["request"]).add_to(&mut session).unwrap();
    session
}

/// What is done in a pool of so many threads.
fn in_pool<T: Send>(threads: usize, what: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(what)
}

/// What `script` prints.
fn script(session: &TraceSession, selection: &EventSelection, options: &ScriptOptions) -> String {
    let mut out = Vec::new();
    script::print(session, selection, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn json(session: &TraceSession, selection: &EventSelection) -> Vec<Value> {
    let options = ScriptOptions {
        format: Format::Json,
        ..ScriptOptions::default()
    };
    let text = script(session, selection, &options);
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn filtered(filter: &str) -> EventSelection {
    EventSelection {
        filter: Some(filter.to_owned()),
        ..EventSelection::default()
    }
}

/// Many threads, deeply nested, over many windows and blocks. Of some threads the first begins are not there.
fn many() -> Recorded {
    let mut recording = recording();
    let mut random = support::random(11);
    for at in 0..30_000 {
        recording.hit(Hit {
            id: [REQUEST, DONE, INNER, INNER][random(4) as usize],
            time: HIT.time + at * 1000,
            tid: 101 + random(40) as i32,
            cpu: random(2) as u32,
            ax: at,
            ..HIT
        });
        if at % 5000 == 4999 {
            recording.flush();
        }
    }
    recording.finish()
}

/// What the request that an event is in began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enclosing {
    None,
    Unknown,
    Known(u64),
}

/// Of each inner and done event, by its time, what a plain walk says of the request that it is in.
fn walked(recorded: &Recorded) -> HashMap<u64, Enclosing> {
    let mut open: HashMap<u64, Vec<u64>> = HashMap::new();
    // Of each thread, those in no request since the last one began or ended.
    let mut outside: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut found = HashMap::new();
    for event in recorded.json(&EventSelection::default()) {
        let time = event["time_ns"].as_u64().unwrap();
        let tid = event["tid"].as_u64().unwrap();
        let stack = open.entry(tid).or_default();
        let outside = outside.entry(tid).or_default();
        let number = || event["args"]["arg1"].as_u64().unwrap();
        match event["event"].as_str().unwrap() {
            "sdt_app:request" => {
                // It is of 32 bits.
                stack.push(number());
                outside.clear();
            }
            "sdt_app:done" => {
                let begin = stack.pop();
                if begin.is_none() {
                    for time in outside.drain(..) {
                        found.insert(time, Enclosing::Unknown);
                    }
                }
                outside.clear();
                found.insert(time, begin.map_or(Enclosing::Unknown, Enclosing::Known));
            }
            _ => {
                let newest = stack.last();
                found.insert(
                    time,
                    newest.map_or(Enclosing::None, |&n| Enclosing::Known(n)),
                );
                outside.push(time);
            }
        }
    }
    found
}

/// What an event has of the request that it is in.
fn shown(event: &Value) -> Enclosing {
    let missing = event.pointer("/missing/request.arg1");
    match (event["args"]["request.arg1"].as_u64(), missing) {
        (Some(number), None) => Enclosing::Known(number),
        (None, Some(reason)) if reason == "begin not known" => Enclosing::Unknown,
        (None, None) => Enclosing::None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_event_has_the_arguments_of_the_newest_span_that_is_open() {
    let recorded = many();
    let walked = walked(&recorded);
    for state in [Enclosing::None, Enclosing::Unknown] {
        let count = walked.values().filter(|known| **known == state).count();
        assert!(count > 20, "{state:?}: {count}");
    }
    let session = session(&recorded);
    let all = json(&session, &EventSelection::default());
    assert_eq!(all.len(), 30_000);
    for event in &all {
        let time = event["time_ns"].as_u64().unwrap();
        match walked.get(&time) {
            Some(expected) => assert_eq!(shown(event), *expected, "{event}"),
            // It begins one, and has its arguments already.
            None => assert_eq!(event["args"].get("request.arg1"), None, "{event}"),
        }
    }
    // Selected by event, by the span itself, and by a part of the time: what begins before is known.
    let inner = EventSelection {
        events: vec![Pattern::parse("sdt_app:inner").unwrap()],
        time: Some("40%-45%".parse().unwrap()),
        filter: Some("request.arg1 % 3 == 1".to_owned()),
        ..EventSelection::default()
    };
    let some = json(&session, &inner);
    let first = HIT.time + 12_000_000;
    let expected = all.iter().filter(|event| {
        let time = event["time_ns"].as_u64().unwrap();
        event["event"] == "sdt_app:inner"
            && (first..=first + 1_500_000).contains(&time)
            && matches!(shown(event), Enclosing::Known(number) if number % 3 == 1)
    });
    let expected: Vec<&Value> = expected.collect();
    assert!(expected.len() > 50, "{}", expected.len());
    // Bounds in percent are rounded.
    let both = some.iter().filter(|event| expected.contains(event));
    assert!(both.count() + 1 >= expected.len(), "{}", some.len());
    assert!(some.len() <= expected.len() + 1);
}

/// Text, CSV, JSON and templates, with any number of threads.
#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    let recorded = many();
    let by = |by: &[&str]| by.iter().map(|&key| key.to_owned()).collect();
    let questions = [
        Question::Summary,
        Question::Groups {
            sort: by(&["event", "request.arg1"]),
            value: None,
            top: Some(50),
            order: GroupOrder::default(),
        },
        Question::Spans(SpanQuestion {
            spans: vec!["inner..inner".to_owned()],
            by: by(&["request.arg1"]),
            ..SpanQuestion::default()
        }),
    ];
    let answers = |threads| {
        in_pool(threads, || {
            let session = session(&recorded);
            let formats = [Format::Text, Format::Json, Format::Csv];
            let lines = formats.map(|format| {
                let options = ScriptOptions {
                    format,
                    ..ScriptOptions::default()
                };
                script(&session, &EventSelection::default(), &options)
            });
            let template = ScriptOptions {
                template: Some("{event} {request.arg1:>8}".parse().unwrap()),
                ..ScriptOptions::default()
            };
            let lines = lines.into_iter().chain([script(
                &session,
                &filtered("request.arg1 > 5000"),
                &template,
            )]);
            let reports = questions.iter().map(|question| {
                let answer = session.answer(&EventSelection::default(), question);
                let mut out = Vec::new();
                report::write(&answer.unwrap(), &ReportOptions::default(), &mut out).unwrap();
                String::from_utf8(out).unwrap()
            });
            lines.chain(reports).collect::<Vec<String>>()
        })
    };
    let one = answers(1);
    for threads in [2, 7] {
        assert!(answers(threads) == one, "{threads} threads");
    }
}

/// A request of a thread, and what happens in it and after it.
fn hits(recording: &mut Recording, hits: &[(u64, u64)]) {
    for (at, &(id, ax)) in (0..).zip(hits) {
        recording.hit(Hit {
            id,
            time: HIT.time + at * 1000,
            ax,
            ..HIT
        });
    }
}

/// Of requests that overlap on one thread, by an id, the ends are those of the table of spans; what is between is in one of those that are open.
#[test]
fn an_event_between_overlapping_spans_is_in_one_that_is_not_known() {
    let mut recording = recording();
    let round = |first: u64| {
        let second = first + 1;
        [
            (REQUEST, first),
            (INNER, 0),
            (REQUEST, second),
            (INNER, 0),
            (DONE, first),
            (INNER, 0),
            (DONE, second),
            (INNER, 0),
        ]
    };
    let rounds: Vec<(u64, u64)> = (1..20).flat_map(|at| round(2 * at)).collect();
    hits(&mut recording, &rounds);
    let recorded = recording.finish();
    let events = json(&session(&recorded), &EventSelection::default());
    for (at, events) in (1..).zip(events.chunks(8)) {
        let (first, second) = (Enclosing::Known(2 * at), Enclosing::Known(2 * at + 1));
        let others = events
            .iter()
            .filter(|event| event["event"] != "sdt_app:request");
        let found: Vec<Enclosing> = others.map(shown).collect();
        let expected = [
            first,
            Enclosing::Unknown,
            first,
            second,
            second,
            Enclosing::None,
        ];
        assert_eq!(found, expected, "{at}");
    }
}

/// What fails is followed by the next, and encloses nothing after that has ended: as in `report --span`.
#[test]
fn a_begin_without_an_end_has_ended_where_the_next_begins() {
    let mut recording = recording();
    let failed = [
        (INNER, 0),
        (REQUEST, 1),
        (INNER, 0),
        (REQUEST, 2),
        (INNER, 0),
        (DONE, 0),
        (INNER, 0),
        (REQUEST, 3),
        (DONE, 0),
        (INNER, 0),
    ];
    hits(&mut recording, &failed);
    let recorded = recording.finish();
    let session = session(&recorded);
    let inner = EventSelection {
        events: vec![Pattern::parse("sdt_app:inner").unwrap()],
        ..EventSelection::default()
    };
    let text = ScriptOptions {
        fields: "event,args".parse().unwrap(),
        ..ScriptOptions::default()
    };
    let lines = script(&session, &inner, &text);
    let found: Vec<&str> = lines
        .lines()
        .map(|line| line.split_once("number=").unwrap().1)
        .collect();
    assert_eq!(
        found,
        [
            "0",
            "0 request.arg1=1 request.arg2=18446744073709551615 request.arg3=2 request.arg4=<xmm0 not captured>",
            "0 request.arg1=2 request.arg2=18446744073709551615 request.arg3=2 request.arg4=<xmm0 not captured>",
            "0",
            "0"
        ]
    );
    let template = ScriptOptions {
        template: Some("{request.arg1} {args}".parse().unwrap()),
        ..ScriptOptions::default()
    };
    let lines = script(&session, &inner, &template);
    assert_eq!(lines.lines().next(), Some("- number=0"));
    let csv = ScriptOptions {
        format: Format::Csv,
        fields: "event,args.request.arg1,args.number".parse().unwrap(),
        ..ScriptOptions::default()
    };
    assert_eq!(
        script(&session, &inner, &csv),
        "event,request.arg1,number,missing\n\
         sdt_app:inner,,0,\nsdt_app:inner,1,0,\nsdt_app:inner,2,0,\nsdt_app:inner,,0,\nsdt_app:inner,,0,\n"
    );
}

/// The thread of a process that has the number of one that ended in a request is in none.
#[test]
fn a_process_with_the_number_of_another_is_in_none_of_its_spans() {
    let mut recording = recording();
    let hit = |id, time, ax| Hit {
        id,
        time: HIT.time + time,
        tid: 100,
        ax,
        ..HIT
    };
    for hit in [hit(REQUEST, 0, 1), hit(INNER, 1, 0)] {
        recording.hit(hit);
    }
    recording.fork(HIT.time + 2, (100, 100), (7, 7));
    recording.comm(HIT.time + 3, (100, 100), "other", true);
    recording.hit(hit(INNER, 4, 0));
    let recorded = recording.finish();
    let events = json(&session(&recorded), &EventSelection::default());
    let found: Vec<Enclosing> = events[1..].iter().map(shown).collect();
    assert_eq!(found, [Enclosing::Known(1), Enclosing::None]);
}

/// Groups, spans by the arguments of their beginnings, the slowest of them, and rows.
#[test]
fn questions_have_the_arguments_as_others() {
    let mut recording = recording();
    let requests = [
        (INNER, 9),
        (REQUEST, 1),
        (INNER, 0),
        (INNER, 1),
        (DONE, 0),
        (REQUEST, 2),
        (INNER, 2),
        (INNER, 3),
        (DONE, 0),
    ];
    hits(&mut recording, &requests);
    let recorded = recording.finish();
    let session = session(&recorded);
    let answer = |question: &Question| {
        let answer = session.answer(&EventSelection::default(), question);
        report::json(&answer.unwrap().facts)
    };
    let sort = vec!["event".to_owned(), "request.arg1".to_owned()];
    let groups = answer(&Question::Groups {
        sort,
        value: None,
        top: None,
        order: GroupOrder::default(),
    });
    let counts: HashMap<String, u64> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            let name = format!("{} {}", group["event"], group["request.arg1"]);
            (name, group["samples"].as_u64().unwrap())
        })
        .collect();
    let expected = [
        ("\"sdt_app:inner\" null", 1),
        ("\"sdt_app:inner\" 1", 2),
        ("\"sdt_app:inner\" 2", 2),
        ("\"sdt_app:request\" null", 2),
        ("\"sdt_app:done\" 1", 1),
        ("\"sdt_app:done\" 2", 1),
    ];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(counts, HashMap::from(expected));
    let spans = answer(&Question::Spans(SpanQuestion {
        spans: vec!["inner..done".to_owned()],
        by: vec!["request.arg1".to_owned()],
        ..SpanQuestion::default()
    }));
    let groups = spans["spans"][0]["groups"].as_array().unwrap();
    let found: Vec<(u64, u64)> = groups
        .iter()
        .map(|group| {
            let number = |name: &str| group[name].as_u64().unwrap();
            (number("request.arg1"), number("max_ns"))
        })
        .collect();
    assert_eq!(found.len(), 2, "{spans}");
    assert!(
        found.contains(&(1, 1000)) && found.contains(&(2, 1000)),
        "{found:?}"
    );
    let slowest = spans["spans"][0]["slowest"].as_array().unwrap();
    assert_eq!(slowest[0]["args"]["request.arg1"], 1, "{slowest:?}");
    let question = RowQuestion::default();
    let reader = RowReader::new(&session, &EventSelection::default(), &question).unwrap();
    let mut rows = Vec::new();
    let read = reader.read(|row| {
        if let TraceRow::Event(event) = row
            && event.name() == "sdt_app:inner"
        {
            let argument = event.argument("request.arg1").unwrap();
            rows.push(match argument.value() {
                RowValue::Signed(number) => Some(number),
                RowValue::Missing(_) => None,
                other => panic!("{other:?}"),
            });
        }
        std::ops::ControlFlow::Continue(())
    });
    read.unwrap();
    assert_eq!(rows, [None, Some(1), Some(1), Some(2), Some(2)]);
}

#[test]
fn a_span_that_is_not_there_is_refused_with_those_that_are() {
    let recorded = many();
    let refused = |span: &str| match with(&[span]).add_to(&mut recorded.session()) {
        Err(ReportError::Question(error)) => error,
        other => panic!("{other:?}"),
    };
    let error = refused("query");
    assert!(matches!(error, QuestionError::NoSpan { .. }));
    assert!(error.to_string().contains("app:request"), "{error}");
    // Any two probes make one; its arguments have the name of the first.
    let mut session = recorded.session();
    with(&["app:request..app:done", "request"])
        .add_to(&mut session)
        .unwrap();
    let inner = &session.events().events[2];
    let names: Vec<&str> = inner.arguments.iter().map(|one| &*one.name).collect();
    assert_eq!(
        names,
        [
            "number",
            "request.arg1",
            "request.arg2",
            "request.arg3",
            "request.arg4"
        ]
    );
    // Without any, they have their own alone again.
    ContextQuestion::default().add_to(&mut session).unwrap();
    assert_eq!(session.events().events[2].arguments.len(), 1);
}
