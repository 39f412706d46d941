//! `script -F +span` on recordings made by hand, beside a plain walk over the events.

use std::collections::HashMap;

use crate::support::{self, DONE, HIT, Hit, REQUEST, Recorded, Recording};
use serde_json::Value;
use usdtrec_format::Pattern;
use usdtrec_report::Format;
use usdtrec_report::script::{self, ScriptOptions, TimeOrigin};
use usdtrec_report::{EventSelection, QuestionError, ReportError};
use usdtrec_testing::test;

fn options(fields: &str, format: Format) -> ScriptOptions {
    ScriptOptions {
        fields: fields.parse().unwrap(),
        format,
        ..ScriptOptions::default()
    }
}

/// Many threads, deeply nested, over many windows.
fn recorded() -> Recorded {
    let mut recording = Recording::usual();
    let mut random = support::random(7);
    for at in 0..20_000 {
        // An end that begins nothing comes first.
        let begins = at > 0 && random(2) == 0;
        recording.hit(Hit {
            id: if begins { REQUEST } else { DONE },
            time: HIT.time + at * 1000,
            tid: 101 + random(30) as i32,
            cpu: random(2) as u32,
            ax: random(5),
            ..HIT
        });
        if at % 5000 == 4999 {
            recording.flush();
        }
    }
    recording.finish()
}

/// Of each end its time, and how long the span was.
fn expected(recorded: &Recorded) -> HashMap<u64, Option<u64>> {
    let mut open: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut ends = HashMap::new();
    for event in recorded.json(&EventSelection::default()) {
        let time = event["time_ns"].as_u64().unwrap();
        let waiting = open.entry(event["tid"].as_u64().unwrap()).or_default();
        if event["event"] == "sdt_app:request" {
            waiting.push(time);
        } else {
            ends.insert(time, waiting.pop().map(|begin| time - begin));
        }
    }
    ends
}

fn lines(recorded: &Recorded, selection: &EventSelection, fields: &str) -> Vec<Value> {
    let text = recorded.script(selection, &options(fields, Format::Json)).0;
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn check(lines: &[Value], ends: &HashMap<u64, Option<u64>>) {
    for line in lines {
        match ends.get(&line["time_ns"].as_u64().unwrap()) {
            None => assert_eq!(line.get("span"), None, "{line}"),
            Some(duration) => {
                assert_eq!(line["span"], "app:request");
                assert_eq!(line["span_ns"].as_u64(), *duration, "{line}");
                assert_eq!(line.get("span_ns").unwrap().is_null(), duration.is_none());
            }
        }
    }
}

#[test]
fn each_end_has_the_time_since_its_own_beginning() {
    let recorded = recorded();
    let ends = expected(&recorded);
    assert!(ends.values().filter(|end| end.is_none()).count() > 10);
    let all = lines(&recorded, &EventSelection::default(), "+span");
    assert_eq!(all.len(), 20_000);
    check(&all, &ends);
    // Without the beginnings, and without most of the ends: as long as before.
    let done = EventSelection {
        events: vec![Pattern::parse("sdt_app:done").unwrap()],
        ..EventSelection::default()
    };
    let some = EventSelection {
        filter: Some("arg1 == 3".to_owned()),
        ..done.clone()
    };
    let done = lines(&recorded, &done, "+span");
    assert_eq!(done.len(), ends.len());
    check(&done, &ends);
    let some = lines(&recorded, &some, "+span");
    assert!((100..done.len() / 2).contains(&some.len()));
    check(&some, &ends);
    // Alone, it is the whole object.
    let alone = lines(&recorded, &EventSelection::default(), "span");
    assert_eq!(
        alone
            .iter()
            .filter(|line| line.get("span").is_some())
            .count(),
        ends.len()
    );
}

#[test]
fn it_is_the_last_field_of_lines() {
    let mut recording = Recording::usual();
    for (at, id) in [(0, DONE), (1, REQUEST), (3, DONE)] {
        recording.hit(Hit {
            id,
            time: HIT.time + at * 1000,
            ..HIT
        });
    }
    let recorded = recording.finish();
    let show = |fields, format| {
        recorded
            .script(&EventSelection::default(), &options(fields, format))
            .0
    };
    assert_eq!(
        show("event,span", Format::Text),
        "sdt_app:done:  span=app:request(<beginning not known>)\n\
         sdt_app:request: \n\
         sdt_app:done:  span=app:request(2.000us)\n"
            .replace("sdt_app:done", "   sdt_app:done")
    );
    assert_eq!(
        show("time,event,span", Format::Csv),
        "time_ns,event,span,span_ns\n\
         5000000000,sdt_app:done,app:request,\n\
         5000001000,sdt_app:request,,\n\
         5000003000,sdt_app:done,app:request,2000\n"
    );
    // Alone, it has the first cells.
    assert_eq!(
        show("span", Format::Csv),
        "span,span_ns\napp:request,\n,\napp:request,2000\n"
    );
    let refused = |selection: &EventSelection, options: &ScriptOptions| match script::print(
        &recorded.session(),
        selection,
        options,
        &mut Vec::new(),
    ) {
        Err(ReportError::Question(error)) => error,
        other => panic!("{other:?}"),
    };
    let request = EventSelection {
        events: vec![Pattern::parse("sdt_app:request").unwrap()],
        ..EventSelection::default()
    };
    let error = refused(&request, &options("+span", Format::Text));
    assert_eq!(error, QuestionError::NoSpanEnds);
    let done = EventSelection {
        events: vec![Pattern::parse("sdt_app:done").unwrap()],
        ..EventSelection::default()
    };
    let since = ScriptOptions {
        times: TimeOrigin::Previous,
        ..options("+span", Format::Text)
    };
    assert_eq!(refused(&done, &since), QuestionError::TimesBesideSpans);
}
