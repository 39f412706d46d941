//! Traces whose probes were detached for a part of the time, beside all events as they happened.

mod happened;
mod streamed;

use std::path::Path;

use serde_json::Value;
use usdtrec_format::schema::{LockAction, LockUse, ScriptCall};
use usdtrec_format::trace::{Pause, TimeRange};
use usdtrec_report::diff::{self, DiffOptions};
use usdtrec_report::question::{GroupOrder, Question, SpanQuestion};
use usdtrec_report::report::ReportOptions;
use usdtrec_report::script::{self, ScriptOptions, SpanRowQuestion};
use usdtrec_report::{
    ContextQuestion, EventSelection, Format, HintWords, Sentences, TimeSpan, TraceSession,
};
use usdtrec_testing::test;

use self::happened::{
    CYCLE, EVENTS, PROBES, START, STEP, end, estimate, pauses, put, record, start, truth, whole,
};
use crate::support::{self, DONE, HIT, Hit, INNER, REQUEST, Recorded, Recording};

fn requests() -> Question {
    Question::Spans(SpanQuestion {
        spans: vec!["request..done".to_owned()],
        by: vec!["tid".to_owned()],
        ..SpanQuestion::default()
    })
}

/// The same with 1, 2 and 7 threads.
fn same(recorded: &Recorded, question: &Question, format: Format) -> String {
    let one = recorded.answer(1, question.clone(), format);
    for threads in [2, 7] {
        let answer = recorded.answer(threads, question.clone(), format);
        assert!(answer == one, "{threads} threads: {question:?}");
    }
    one
}

/// What `script` prints of a session.
fn json_lines(session: &TraceSession) -> Vec<Value> {
    let options = ScriptOptions {
        format: Format::Json,
        ..ScriptOptions::default()
    };
    let mut out = Vec::new();
    script::print(session, &EventSelection::default(), &options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().map(parsed).collect()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// What an answer says of events and spans; where they are in files is not the same.
fn facts(text: &str) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| name != "offset");
                members.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut answer = parsed(text);
    let members = answer.as_object_mut().unwrap();
    members.retain(|name, _| ["spans", "probes"].contains(&&**name));
    strip(&mut answer);
    answer
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn recorded_and_paused_are_all() {
    let recorded = whole();
    assert_eq!(recorded.session().damage(), []);
    let answer = parsed(&same(&recorded, &requests(), Format::Json));
    let span = &answer["spans"][0];
    let truth = truth();
    assert!(truth.paused_ends > 20 && truth.paused_begins > 20 && truth.ended > 500);
    assert_eq!(number(&span["count"]), truth.ended);
    assert_eq!(number(&span["sum_ns"]), truth.sum_ns);
    assert_eq!(number(&span["open"]), truth.open);
    assert_eq!(number(&span["unfinished"]), 0);
    assert_eq!(number(&span["unmatched"]), truth.unmatched);
    assert_eq!(number(&span["depth"]), 4);
    let paused = &span["paused"];
    assert_eq!(number(&paused["begins"]), truth.paused_begins);
    assert_eq!(number(&paused["ends"]), truth.paused_ends);
    let begins = truth.ended + truth.open + truth.paused_begins;
    assert_eq!(begins + truth.unrecorded_begins, truth.begins);
    let ends = truth.ended + truth.unmatched + truth.paused_ends;
    assert_eq!(ends + truth.unrecorded_ends, truth.ends);
    // A fifth of the time is recorded. Spans are some 10 us long, windows 200 us: some are missing.
    assert_eq!(number(&paused["pauses"]), EVENTS * STEP / CYCLE);
    assert_eq!(number(&paused["estimated_count"]), estimate(truth.ended));
    for format in [Format::Text, Format::Csv] {
        same(&recorded, &requests(), format);
    }
}

#[test]
fn the_summary_says_what_was_recorded_and_scales() {
    let recorded = whole();
    let answer = parsed(&same(&recorded, &Question::Summary, Format::Json));
    let probe = |name: &str| {
        let probes = answer["probes"].as_array().unwrap();
        let probe = probes.iter().find(|probe| probe["event"] == name);
        probe.unwrap().clone()
    };
    let truth = truth();
    let done = probe("sdt_app:done");
    let count = truth.ends - truth.unrecorded_ends;
    assert_eq!(number(&done["count"]), count);
    assert_eq!(number(&done["paused"]["pauses"]), 40);
    let hits = number(&done["paused"]["estimated_hits"]);
    assert_eq!(hits, estimate(count));
    // It is near the truth.
    assert!(
        hits.abs_diff(truth.ends) * 10 < truth.ends,
        "{hits} of {}",
        truth.ends
    );
    let seconds = number(&done["paused"]["recorded_ns"]) as f64 / 1e9;
    let rate = done["per_second"].as_f64().unwrap();
    assert!((rate * seconds - count as f64).abs() < 1e-3);
    // It is in no pause.
    assert_eq!(probe("sdt_app:inner").get("paused"), None);
    // Windows are not unusual.
    assert!(
        answer["unusual"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["event"] != "sdt_app:done")
    );
    let text = same(&recorded, &Question::Summary, Format::Text);
    let line = format!(
        "app:done: recorded 20.0% of the time (40 pauses, to keep to the budget): about {} hits at the same rate",
        (hits + 50) / 100 * 100
    );
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    assert!(text.contains(&line), "{line}\n{text}");
    assert!(
        text.contains("spans at the same rate; long ones are less than their share"),
        "{text}"
    );
    let csv = same(&recorded, &Question::Summary, Format::Csv);
    let done = csv
        .lines()
        .find(|line| line.starts_with("sdt_app:done,"))
        .unwrap();
    assert!(done.ends_with(&format!(",{hits}")), "{done}");
    let inner = csv
        .lines()
        .find(|line| line.starts_with("sdt_app:inner,"))
        .unwrap();
    assert!(inner.ends_with(','), "{inner}");
}

/// As of `report`: what is in no pause.
#[test]
fn rates_that_are_compared_are_of_the_recorded_time() {
    let recorded = whole();
    let answer = parsed(&same(&recorded, &Question::Summary, Format::Json));
    let session = recorded.session();
    let options = DiffOptions {
        format: Format::Json,
        ..DiffOptions::default()
    };
    let mut out = Vec::new();
    let selection = EventSelection::default();
    diff::print(&session, &session, &selection, &options, &mut out).unwrap();
    let compared: Value = serde_json::from_slice(&out).unwrap();
    for event in ["sdt_app:done", "sdt_app:inner"] {
        let is_rate = |figure: &&Value| figure["figure"] == "rate" && figure["name"] == event;
        let figures = compared["figures"].as_array().unwrap();
        let rate = figures.iter().find(is_rate).unwrap()["a"].as_f64().unwrap();
        let probes = answer["probes"].as_array().unwrap();
        let probe = probes.iter().find(|probe| probe["event"] == event).unwrap();
        let expected = probe["per_second"].as_f64().unwrap();
        assert!(
            (rate / expected - 1.0).abs() < 0.01,
            "{event}: {rate} {expected}"
        );
    }
}

#[test]
fn a_selected_time_has_its_own_factor() {
    let recorded = whole();
    let ask = |first: u64, last: u64| {
        let selection = EventSelection {
            time: Some(TimeSpan::Times(Some(START + first), Some(START + last))),
            ..EventSelection::default()
        };
        let options = ReportOptions {
            format: Format::Json,
            ..ReportOptions::default()
        };
        let (text, _) = recorded
            .report_selected(&selection, &Question::Summary, &options)
            .unwrap();
        let answer = parsed(&text);
        let mut probes = answer["probes"].as_array().unwrap().iter();
        let done = probes
            .find(|probe| probe["event"] == "sdt_app:done")
            .unwrap();
        let paused = &done["paused"];
        let of = |name: &str| number(&paused[name]);
        assert_eq!(number(&done["count"]) == 0, of("recorded_ns") == 0);
        (
            (of("pauses"), of("time_ns"), of("recorded_ns")),
            paused["estimated_hits"].as_u64(),
        )
    };
    // Half of a window and half of the pause after it.
    let begin = 3 * CYCLE + 100_500;
    let (part, hits) = ask(begin, begin + 500_000);
    assert_eq!(part, (1, 500_000, 100_000));
    assert!(hits.unwrap() > 0);
    // A window, and a pause.
    assert_eq!(
        ask(3 * CYCLE + 500, 3 * CYCLE + 200_500).0,
        (0, 200_000, 200_000)
    );
    assert_eq!(
        ask(3 * CYCLE + 300_000, 3 * CYCLE + 400_000),
        ((1, 100_000, 0), None)
    );
}

/// What `script --span` prints, in a pool of so many threads.
fn span_lines(recorded: &Recorded, threads: usize, options: &ScriptOptions) -> String {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let print = || recorded.script(&EventSelection::default(), options).0;
    pool.build().unwrap().install(print)
}

#[test]
fn spans_one_by_one_are_the_same_ones() {
    let recorded = whole();
    let truth = truth();
    let options = ScriptOptions {
        spans: Some(SpanRowQuestion {
            spans: vec!["request..done".to_owned()],
            ..SpanRowQuestion::default()
        }),
        format: Format::Json,
        ..ScriptOptions::default()
    };
    let one = span_lines(&recorded, 1, &options);
    for threads in [2, 7] {
        assert!(
            span_lines(&recorded, threads, &options) == one,
            "{threads} threads"
        );
    }
    let spans: Vec<Value> = one.lines().map(parsed).collect();
    let of = |fate: &str| spans.iter().filter(|span| span["fate"] == fate).count() as u64;
    assert_eq!(of("ended"), truth.ended);
    assert_eq!(of("paused"), truth.paused_begins);
    assert_eq!(of("open"), truth.open);
    assert_eq!(of("unfinished"), 0);
    let sum = spans.iter().filter_map(|span| span["span_ns"].as_u64());
    assert_eq!(sum.sum::<u64>(), truth.sum_ns);
    // The field of events that end spans.
    let options = ScriptOptions {
        fields: "+span".parse().unwrap(),
        format: Format::Json,
        ..ScriptOptions::default()
    };
    let one = span_lines(&recorded, 1, &options);
    for threads in [2, 7] {
        assert!(
            span_lines(&recorded, threads, &options) == one,
            "{threads} threads"
        );
    }
    let mut ended = 0;
    for line in one.lines().map(parsed) {
        if let Some(duration) = line["span_ns"].as_u64() {
            ended += 1;
            let known = truth.durations.get(&number(&line["time_ns"]));
            assert_eq!(known, Some(&duration), "{line}");
        }
    }
    assert_eq!(ended, truth.ended);
}

#[test]
fn groups_say_that_they_count_a_part() {
    let recorded = whole();
    let question = Question::Groups {
        sort: vec!["event".to_owned()],
        value: None,
        top: None,
        order: GroupOrder::default(),
    };
    let (text, notices) = recorded
        .report(&question, &ReportOptions::default())
        .unwrap();
    let sentences = notices.sentences(HintWords::default());
    let [done, request] = &*sentences else {
        panic!("{sentences:?}");
    };
    let both = format!("{done}\n{request}");
    for probe in ["app:request", "app:done"] {
        let sentence = format!(
            "{probe}: recorded 20.0% of the time (40 pauses, to keep to the budget): each of its events stands for 5"
        );
        assert!(both.contains(&sentence), "{both}\n{text}");
    }
}

/// Pauses that are wrong are ignored, and are wrong for themselves alone.
#[test]
fn garbage_does_no_harm() {
    let right = whole();
    let mut recording = start();
    let pause = |number: u64, ids: &[u64], from_ns: u64, to_ns: u64| Pause {
        number,
        ids: ids.to_vec(),
        from_ns,
        to_ns: Some(to_ns),
    };
    for garbage in [
        pause(u64::MAX, &PROBES, START + 500, START),
        pause(u64::MAX - 1, &[7, u64::MAX], START, u64::MAX),
        pause(u64::MAX - 2, &[], START, u64::MAX),
        pause(u64::MAX - 3, &PROBES, START + 77, START + 77),
        // Replaced by what follows.
        pause(0, &PROBES, 0, u64::MAX),
    ] {
        recording.pause(&garbage);
    }
    for (number, time) in pauses().into_iter().enumerate() {
        put(&mut recording, number as u64, time, &PROBES);
        if time.last <= end() {
            // Twice, and a part of it, under other numbers.
            put(&mut recording, 1000 + number as u64, time, &PROBES);
            let part = TimeRange::new(time.first + 10, time.last - 10);
            put(&mut recording, 2000 + number as u64, part, &[DONE, DONE]);
        }
    }
    record(START, end(), &mut recording);
    recording.recorded(START, end());
    let garbage = recording.finish();
    for question in [requests(), Question::Summary] {
        let answer =
            |recorded: &Recorded| facts(&recorded.answer(2, question.clone(), Format::Json));
        assert_eq!(answer(&garbage), answer(&right));
    }
}

/// Files of one recording, in the middle of a pause and in the middle of a window, and of another recording with the same numbers and ids.
#[test]
fn several_files_are_one_trace() {
    let single = whole();
    for cut in [3 * CYCLE + 500_000, 3 * CYCLE + 100_000] {
        let cut = START + cut;
        let mut first = start();
        let mut second = start();
        for (number, pause) in pauses().into_iter().enumerate() {
            let number = number as u64;
            if pause.last <= cut {
                put(&mut first, number, pause, &PROBES);
            } else if pause.first < cut {
                let begun = TimeRange::new(pause.first, u64::MAX);
                put(&mut first, number, begun, &PROBES);
                put(&mut second, number, pause, &PROBES);
            } else {
                put(&mut second, number, pause, &PROBES);
            }
        }
        record(START, cut, &mut first);
        record(cut, end(), &mut second);
        first.recorded(START, cut);
        second.recorded(cut, end());
        let joined = Recorded::together(&[first.finish(), second.finish()]);
        for question in [requests(), Question::Summary] {
            let answer = |recorded: &Recorded| facts(&same(recorded, &question, Format::Json));
            assert_eq!(answer(&single), answer(&joined), "cut at {cut}");
        }
    }
    // A recording whose pause lasts until its end, and another one without any, whose ids are of other probes.
    let file = |begin: u64, pauses: bool| {
        let mut recording = Recording::usual();
        for at in 0..200_u64 {
            recording.hit(Hit {
                id: [REQUEST, DONE][at as usize % 2],
                time: begin + at * STEP,
                ..HIT
            });
        }
        if pauses {
            recording.pause(&Pause {
                number: 0,
                ids: PROBES.to_vec(),
                from_ns: begin + 199 * STEP,
                to_ns: None,
            });
        }
        recording.recorded(begin, begin + 300 * STEP);
        recording.finish()
    };
    let joined = Recorded::together(&[
        file(START, true),
        file(START + 1000 * STEP, false),
        file(START + 2000 * STEP, true),
    ]);
    let answer = parsed(&same(&joined, &requests(), Format::Json));
    let span = &answer["spans"][0];
    assert_eq!(number(&span["count"]), 300);
    let paused = &span["paused"];
    assert_eq!(number(&paused["pauses"]), 2);
    assert_eq!(number(&paused["time_ns"]), 3 * 300 * STEP);
    assert_eq!(number(&paused["recorded_ns"]), (300 + 2 * 199) * STEP);
    assert_eq!(
        number(&paused["estimated_count"]),
        300 * 900 / (300 + 2 * 199) + 1
    );
}

/// What was followed before a pause had ended, as elsewhere; the last one before it was open.
#[test]
fn statements_that_fail_before_a_pause_are_unfinished() {
    let mut recording = Recording::usual();
    // Begins and ends, at microseconds; the pause is from 55 to 75.
    for (at, begins) in [
        (10, true),
        (20, true),
        (30, false),
        (40, true),
        (50, true),
        (80, false),
        (90, true),
        (100, false),
    ] {
        recording.hit(Hit {
            id: if begins { REQUEST } else { DONE },
            time: START + at * 1000,
            ..HIT
        });
    }
    recording.pause(&Pause {
        number: 0,
        ids: PROBES.to_vec(),
        from_ns: START + 55_000,
        to_ns: Some(START + 75_000),
    });
    recording.recorded(START, START + 100_000);
    let recorded = recording.finish();
    let answer = parsed(&same(&recorded, &requests(), Format::Json));
    let span = &answer["spans"][0];
    let of = |name: &str| number(&span[name]);
    assert_eq!(
        [of("count"), of("open"), of("unfinished"), of("unmatched")],
        [2, 2, 2, 0]
    );
    assert_eq!(of("depth"), 1);
    assert_eq!(
        (&span["paused"]["begins"], &span["paused"]["ends"]),
        (&1.into(), &1.into())
    );
    let options = ScriptOptions {
        spans: Some(SpanRowQuestion {
            spans: vec!["request..done".to_owned()],
            ..SpanRowQuestion::default()
        }),
        ..ScriptOptions::default()
    };
    let [(text, _), (streamed, _)] = streamed::both(&recorded, 1, &options);
    assert_eq!(streamed::sorted(&streamed), streamed::sorted(&text));
    let of = |fate: &str| text.lines().filter(|line| line.contains(fate)).count();
    assert_eq!(
        (of("<unfinished>"), of("<paused>"), of("<open>")),
        (2, 1, 0),
        "{text}"
    );
}

/// A hit after a pause is not in a span that was open before it.
#[test]
fn hits_after_a_pause_are_in_no_known_span() {
    let mut recording = start();
    for (at, id) in [
        (10, REQUEST),
        (20, INNER),
        (60, INNER),
        (70, REQUEST),
        (80, INNER),
        (90, DONE),
        (95, INNER),
    ] {
        recording.hit(Hit {
            id,
            time: START + at * 1000,
            ax: at,
            ..HIT
        });
    }
    recording.pause(&Pause {
        number: 0,
        ids: PROBES.to_vec(),
        from_ns: START + 30_000,
        to_ns: Some(START + 50_000),
    });
    let recorded = recording.finish();
    let mut session = recorded.session();
    let with = ContextQuestion {
        with: vec!["request".to_owned()],
        holders: false,
    };
    with.add_to(&mut session).unwrap();
    for lines in [json_lines(&session), streamed::json_lines(&recorded, &with)] {
        let inner = lines.iter().filter(|line| line["event"] == "sdt_app:inner");
        let values = inner.map(|line| line["args"]["request.arg1"].as_u64());
        assert_eq!(values.collect::<Vec<_>>(), [Some(10), None, Some(70), None]);
    }
}

/// Functions that were called before a pause are not on the stacks of hits in it and after it.
#[test]
fn scripts_begin_with_no_functions_after_a_pause() {
    let mut recording = Recording::with(Path::new("/opt/app"), |info| {
        support::with_inner(info);
        let probes = info.definitions.as_mut().unwrap().probes.iter_mut();
        for (probe, enters) in probes.zip([true, false]) {
            probe.call = Some(ScriptCall {
                enters,
                function: "f{arg1}".to_owned(),
                file: None,
            });
        }
    });
    for (at, id, ax) in [
        (10, REQUEST, 1),
        (20, REQUEST, 2),
        (25, INNER, 0),
        (40, INNER, 0),
        (60, REQUEST, 3),
        (70, INNER, 0),
        (80, DONE, 3),
        (90, DONE, 2),
        (95, INNER, 0),
    ] {
        recording.hit(Hit {
            id,
            time: START + at * 1000,
            ax,
            ..HIT
        });
    }
    recording.pause(&Pause {
        number: 0,
        ids: PROBES.to_vec(),
        from_ns: START + 30_000,
        to_ns: Some(START + 50_000),
    });
    let recorded = recording.finish();
    let groups = recorded.report_as(Format::Json, &["event", "stack:script"]);
    let groups = groups.lines().map(parsed);
    let inner = groups.filter(|group| group["event"] == "sdt_app:inner");
    let mut stacks: Vec<(u64, String)> = inner
        .map(|group| {
            let frames = group["stack:script"].as_array().into_iter().flatten();
            let names: Vec<&str> = frames.map(|frame| frame["sym"].as_str().unwrap()).collect();
            (number(&group["samples"]), names.join(" "))
        })
        .collect();
    stacks.sort();
    let expected = [(1, "f2 f1"), (1, "f3"), (2, "")];
    assert_eq!(
        stacks,
        expected.map(|(times, names)| (times, names.to_owned()))
    );
}

/// Who held a lock before a pause may have released it there.
#[test]
fn locks_are_held_by_nobody_known_after_a_pause() {
    let mut recording = Recording::with(Path::new("/opt/app"), |info| {
        support::with_inner(info);
        let probes = info.definitions.as_mut().unwrap().probes.iter_mut();
        let uses = [
            (LockAction::Waits, "arg1"),
            (LockAction::Acquires, "arg1"),
            (LockAction::Releases, "number"),
        ];
        for (probe, (action, lock)) in probes.zip(uses) {
            probe.lock = Some(LockUse {
                action,
                lock: lock.to_owned(),
                shared: false,
                group: false,
                contended: false,
            });
        }
    });
    for (at, tid, id) in [
        (10, 101, DONE),
        (40, 102, REQUEST),
        (50, 102, DONE),
        (60, 101, REQUEST),
        (70, 102, INNER),
        (80, 101, DONE),
    ] {
        recording.hit(Hit {
            id,
            tid,
            time: START + at * 1000,
            ..HIT
        });
    }
    recording.pause(&Pause {
        number: 0,
        ids: [&PROBES[..], &[INNER]].concat(),
        from_ns: START + 20_000,
        to_ns: Some(START + 30_000),
    });
    let recorded = recording.finish();
    let mut session = recorded.session();
    let holders = ContextQuestion {
        with: Vec::new(),
        holders: true,
    };
    holders.add_to(&mut session).unwrap();
    for lines in [
        json_lines(&session),
        streamed::json_lines(&recorded, &holders),
    ] {
        let acquired = lines.iter().filter(|line| line["event"] == "sdt_app:done");
        let holders = acquired.map(|line| line["args"]["holder.tid"].as_u64());
        assert_eq!(holders.collect::<Vec<_>>(), [None, None, Some(102)]);
    }
}

/// Where the probe that ends spans was detached alone, begins in the pause are matched with nothing after it.
#[test]
fn begins_in_a_pause_of_the_other_probe_are_matched_with_nothing_after_it() {
    let mut recording = Recording::usual();
    for (at, id) in [
        (10, REQUEST),
        (30, REQUEST),
        (60, DONE),
        (70, REQUEST),
        (80, DONE),
    ] {
        recording.hit(Hit {
            id,
            time: START + at * 1000,
            ..HIT
        });
    }
    recording.pause(&Pause {
        number: 0,
        ids: vec![DONE],
        from_ns: START + 20_000,
        to_ns: Some(START + 50_000),
    });
    let recorded = recording.finish();
    let answer = parsed(&same(&recorded, &requests(), Format::Json));
    let span = &answer["spans"][0];
    let of = |name: &str| number(&span[name]);
    assert_eq!(
        [of("count"), of("sum_ns"), of("open"), of("unmatched")],
        [1, 10_000, 0, 0]
    );
    assert_eq!(
        (&span["paused"]["begins"], &span["paused"]["ends"]),
        (&2.into(), &1.into())
    );
}
