//! What the time of spans was spent on: by hand, and beside a model of nested spans.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};
use usdtrec_format::{NoTimeParts, TimePart};
use usdtrec_report::diff::{self, DiffOptions};
use usdtrec_report::export::{self, ExportFormat, ExportOptions, RowFormat};
use usdtrec_report::question::{GroupOrder, Question, Scale, SpanQuestion, Subject};
use usdtrec_report::report::ReportOptions;
use usdtrec_report::rows::{RowQuestion, RowReader, TraceRow};
use usdtrec_report::script::{ScriptOptions, SpanRowQuestion};
use usdtrec_report::{EventSelection, Format, QuestionError, ReportError};
use usdtrec_testing::{repetitions, test};

use crate::support::{self, DONE, HIT, Hit, REQUEST, Recorded, Recording, with_waits};

/// Sums that are not known.
const UNKNOWN: [u64; 3] = [u64::MAX; 3];

/// A hit: time after the first, ns, thread, whether it begins a span, and sums.
type At = (u64, i32, bool, [u64; 3]);

fn recording(hits: &[At], flush: usize) -> Recorded {
    let mut recording = Recording::with(Path::new("/opt/app"), with_waits);
    for tid in 101..105 {
        recording.comm(0, (100, tid), "worker", false);
    }
    for hits in hits.chunks(flush) {
        for &(at, tid, begins, waits) in hits {
            let hit = Hit {
                id: if begins { REQUEST } else { DONE },
                time: HIT.time + at,
                tid,
                si: 7,
                ..HIT
            };
            recording.waited(hit, waits);
        }
        recording.flush();
    }
    recording.finish()
}

fn question() -> SpanQuestion {
    SpanQuestion {
        spans: vec!["request".to_owned()],
        key: vec!["tid".to_owned()],
        top: Some(10),
        ..SpanQuestion::default()
    }
}

fn text(recorded: &Recorded, question: SpanQuestion, format: Format) -> String {
    recorded.same_answer(&Question::Spans(question), format)
}

fn span(recorded: &Recorded, question: SpanQuestion) -> Value {
    let answer: Value = serde_json::from_str(&text(recorded, question, Format::Json)).unwrap();
    answer["spans"][0].clone()
}

/// An outer span of 100 us with an inner one of 40; one of another thread, and one that another thread ends.
fn few() -> Recorded {
    let hits = [
        (0, 101, true, [0, 0, 0]),
        (30_000, 101, true, [5000, 0, 10_000]),
        (70_000, 101, false, [5000, 8000, 30_000]),
        (100_000, 101, false, [15_000, 8000, 40_000]),
        (200_000, 102, true, UNKNOWN),
        (210_000, 102, false, UNKNOWN),
        (300_000, 103, true, [100, 0, 0]),
        (305_000, 103, false, [6000, 0, 0]),
    ];
    recording(&hits, 3)
}

fn script(recorded: &Recorded, options: ScriptOptions) -> String {
    recorded.script(&EventSelection::default(), &options).0
}

fn lines_of_spans(format: Format) -> ScriptOptions {
    ScriptOptions {
        spans: Some(SpanRowQuestion {
            spans: vec!["request".to_owned()],
            key: vec!["tid".to_owned()],
            ..SpanRowQuestion::default()
        }),
        format,
        ..ScriptOptions::default()
    }
}

#[test]
fn parts_and_self_are_sums_of_what_is_known() {
    let recorded = few();
    let found = span(&recorded, question());
    assert_eq!(
        (&found["count"], &found["sum_ns"]),
        (&4.into(), &155_000.into())
    );
    let expected = json!({
        "known": 2,
        "oncpu_ns": 12_000 + 37_000, "runnable_ns": 15_000, "iowait_ns": 16_000, "blocked_ns": 60_000,
        "self_oncpu_ns": 37_000, "self_runnable_ns": 15_000, "self_iowait_ns": 8000, "self_blocked_ns": 40_000,
        "unknown": {"not_recorded": 0, "one_side": 0, "other_thread": 0, "no_room": 1, "contradictory": 1, "missed_switch": 0},
    });
    assert_eq!(found["parts"], expected);
    let slowest = &found["slowest"][0]["parts"];
    let outer =
        json!({"oncpu_ns": 37_000, "runnable_ns": 15_000, "iowait_ns": 8000, "blocked_ns": 40_000});
    assert_eq!(*slowest, outer);
    assert_eq!(found["slowest"][2]["parts"], Value::Null);
    let csv = text(&recorded, question(), Format::Csv);
    let [header, line] = csv.lines().collect::<Vec<_>>()[..] else {
        panic!("{csv}");
    };
    assert!(header.ends_with(",sum_ns,oncpu_ns,runnable_ns,iowait_ns,blocked_ns,self_oncpu_ns,self_runnable_ns,self_iowait_ns,self_blocked_ns,parts_known"));
    assert!(
        line.ends_with(",49000,15000,16000,60000,37000,15000,8000,40000,2"),
        "{line}"
    );
}

#[test]
fn text_has_the_parts_in_80_columns() {
    let recorded = few();
    let shown = text(&recorded, question(), Format::Text);
    let expected = "\
Span     Count   p50    p99    Sum  On CPU  Runnable    I/O  Blocked  Open
request      4  10us  100us  155us   35.0%     10.7%  11.4%    42.9%     0
  self                       115us   37.0%     15.0%   8.0%    40.0%
";
    assert!(shown.contains(expected), "{shown}");
    assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
    let remark = "spans whose parts are not known: request 2 of 4 (1 the recorder had no room";
    assert!(shown.contains(remark), "{shown}");
    assert!(
        shown.contains("(37us on cpu, 15us runnable, 8us in I/O, 40us"),
        "{shown}"
    );
    let grouped = SpanQuestion {
        by: vec!["tid".to_owned()],
        order: GroupOrder::Part(TimePart::Blocked),
        ..question()
    };
    let shown = text(&recorded, grouped.clone(), Format::Text);
    assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
    let groups = span(&recorded, grouped)["groups"].clone();
    assert_eq!(groups[0]["parts"]["blocked_ns"], 60_000);
    assert_eq!(groups[1]["parts"]["known"], 0);
    assert_eq!(groups[1]["parts"]["blocked_ns"], Value::Null);
}

#[test]
fn lines_of_spans_have_the_parts() {
    let recorded = few();
    let json = script(&recorded, lines_of_spans(Format::Json));
    let lines: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |at: usize| TimePart::ALL.map(|part| lines[at][part.spec().column].as_u64());
    assert_eq!(of(0), [Some(12_000), Some(0), Some(8000), Some(20_000)]);
    assert_eq!(
        of(1),
        [Some(37_000), Some(15_000), Some(8000), Some(40_000)]
    );
    assert_eq!((of(2), of(3)), ([None; 4], [None; 4]));
    assert_eq!(lines[2].get("oncpu_ns"), Some(&Value::Null));
    let csv = script(&recorded, lines_of_spans(Format::Csv));
    let mut rows = csv.lines();
    let header = rows.next().unwrap();
    assert!(
        header.starts_with("span,span_ns,oncpu_ns,runnable_ns,iowait_ns,blocked_ns,fate,begin.")
    );
    assert!(
        rows.next()
            .unwrap()
            .starts_with("app:request,40000,12000,0,8000,20000,ended,")
    );
    let shown = script(&recorded, lines_of_spans(Format::Text));
    let first = shown.lines().next().unwrap();
    assert!(
        first.contains("app:request: 40.000us (12us on cpu, 8us in I/O, 20us blocked) arg1="),
        "{first}"
    );
    let last = shown.lines().last().unwrap();
    assert!(
        last.contains(" 5.000us (parts not known: longer waits than the span) "),
        "{last}"
    );
    let template = ScriptOptions {
        template: Some(
            "{span.blocked}|{span.oncpu_ns}|{begin.tid}"
                .parse()
                .unwrap(),
        ),
        ..lines_of_spans(Format::Text)
    };
    let shown = script(&recorded, template);
    assert_eq!(
        shown,
        "20.000us|12000|101\n40.000us|37000|101\n-|-|102\n-|-|103\n"
    );
}

#[test]
fn events_have_sums_and_the_span_that_they_end() {
    let recorded = few();
    let options = |fields: &str, format| ScriptOptions {
        fields: fields.parse().unwrap(),
        format,
        ..ScriptOptions::default()
    };
    let json = script(
        &recorded,
        options("+span,+runnable,+iowait,+blocked", Format::Json),
    );
    let lines: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let sums = |at: usize| ["runnable", "iowait", "blocked"].map(|name| lines[at][name].as_u64());
    assert_eq!(sums(1), [Some(5000), Some(0), Some(10_000)]);
    assert_eq!(sums(4), [None; 3]);
    assert_eq!(
        (&lines[4]["blocked"], lines[0].get("oncpu_ns")),
        (&Value::Null, None)
    );
    assert_eq!(
        (&lines[2]["span_ns"], &lines[2]["iowait_ns"]),
        (&40_000.into(), &8000.into())
    );
    assert_eq!(lines[5]["blocked_ns"], Value::Null);
    let csv = script(&recorded, options("+span,+blocked", Format::Csv));
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.iter().all(|count| *count == columns[0]), "{csv}");
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .ends_with(",span,span_ns,oncpu_ns,runnable_ns,iowait_ns,blocked_ns")
    );
    let shown = script(&recorded, options("+span,+blocked", Format::Text));
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines[2]
            .contains(" 30000 span=app:request(40.000us: 12us on cpu, 8us in I/O, 20us blocked)"),
        "{shown}"
    );
    assert!(lines[4].ends_with(" -"), "{shown}");
    let late = EventSelection {
        filter: Some("blocked > 20000 && iowait == 8000".to_owned()),
        ..EventSelection::default()
    };
    assert_eq!(recorded.json(&late).len(), 2);
}

#[test]
fn spans_are_chosen_and_measured_by_their_parts() {
    let recorded = few();
    let mut blocked = question();
    blocked.least_parts.ask(TimePart::Blocked, 20_001);
    let found = span(&recorded, blocked);
    assert_eq!(
        (&found["count"], &found["sum_ns"]),
        (&1.into(), &100_000.into())
    );
    let mut options = lines_of_spans(Format::Json);
    let spans = options.spans.as_mut().unwrap();
    spans.least_parts.ask(TimePart::OnCpu, 1);
    assert_eq!(script(&recorded, options).lines().count(), 2);
    let histogram = Question::Histogram {
        of: Subject::Span(SpanQuestion {
            measured: Some(TimePart::Iowait),
            ..question()
        }),
        scale: Scale::Value,
    };
    let shown = recorded.same_answer(&histogram, Format::Text);
    assert!(
        shown.contains("iowait of app:request") && shown.contains("8us  2"),
        "{shown}"
    );
    let csv = recorded.same_answer(&histogram, Format::Csv);
    assert!(
        csv.contains("8000,,2") || csv.contains("8000,8000,2"),
        "{csv}"
    );
}

/// What an export writes.
fn exported(recorded: &Recorded, format: RowFormat) -> Vec<u8> {
    let mut out = Vec::new();
    let options = ExportOptions::new(ExportFormat::Rows(format));
    let selection = EventSelection::default();
    export::write(&recorded.session(), &selection, &options, &mut out).unwrap();
    out
}

#[test]
fn exports_have_what_is_known() {
    let recorded = few();
    let text = String::from_utf8(exported(&recorded, RowFormat::OtlpJson)).unwrap();
    let data: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let spans = &data["resourceSpans"][0]["scopeSpans"][0]["spans"];
    let attribute = |at: usize, name: &str| {
        let all = spans[at]["attributes"].as_array().unwrap().iter();
        let mut found = all.filter(|attribute| attribute["key"] == name);
        found
            .next()
            .map(|attribute| attribute["value"]["intValue"].clone())
    };
    assert_eq!(attribute(1, "oncpu_ns"), Some("37000".into()));
    assert_eq!(attribute(1, "self_blocked_ns"), Some("20000".into()));
    assert_eq!(attribute(2, "blocked_ns"), None);
    let trace = exported(&recorded, RowFormat::Perfetto);
    let has = |bytes: &[u8], name: &str| bytes.windows(name.len()).any(|at| at == name.as_bytes());
    assert!(has(&trace, "self_iowait_ns"));
    let session = recorded.session();
    let question = RowQuestion::default();
    let reader = RowReader::new(&session, &EventSelection::default(), &question).unwrap();
    let mut parts = Vec::new();
    let read = reader.read(|row| {
        if let TraceRow::Span(span) = row {
            parts.push((span.parts(), span.named_parts().last().unwrap()));
        }
        std::ops::ControlFlow::Continue(())
    });
    read.unwrap();
    assert_eq!(parts[1].0.unwrap().total(), 100_000);
    assert_eq!(parts[1].1, ("self_blocked_ns", Some(20_000)));
    assert_eq!(
        parts[2],
        (Err(NoTimeParts::NoRoom), ("self_blocked_ns", None))
    );
    let plain = Recording::usual().finish();
    assert!(!has(
        &exported(&plain, RowFormat::Perfetto),
        "self_iowait_ns"
    ));
}

/// By an argument, spans may end on another thread.
#[test]
fn parts_of_two_threads_are_not_known() {
    let hits = [
        (0, 101, true, [0, 0, 0]),
        (10, 102, false, [0, 0, 5]),
        (20, 101, true, [0, 0, 1]),
        (25, 101, true, [0, 0, 2]),
        (29, 102, false, [9, 9, 9]),
        (40, 101, false, [0, 0, 6]),
    ];
    let by_argument = SpanQuestion {
        key: vec!["pid".to_owned()],
        ..question()
    };
    let parts = span(&recording(&hits, 100), by_argument)["parts"].clone();
    assert_eq!(
        (&parts["known"], &parts["unknown"]["other_thread"]),
        (&1.into(), &2.into())
    );
    assert_eq!(
        (&parts["oncpu_ns"], &parts["blocked_ns"]),
        (&15.into(), &5.into())
    );
    // The span within it was of two threads.
    assert_eq!(parts["self_blocked_ns"], Value::Null);
}

#[test]
fn without_waits_nothing_is_shown_and_what_needs_them_is_refused() {
    let mut plain = Recording::usual();
    for (id, at) in [(REQUEST, 0), (DONE, 5)] {
        plain.hit(Hit {
            id,
            time: HIT.time + at,
            ..HIT
        });
    }
    let plain = plain.finish();
    assert_eq!(span(&plain, question()).get("parts"), None);
    let shown = text(&plain, question(), Format::Text);
    assert!(
        shown.contains("p99.9") && !shown.contains("On CPU"),
        "{shown}"
    );
    assert!(!script(&plain, lines_of_spans(Format::Csv)).contains("oncpu"));
    let refused = |question: SpanQuestion| {
        let asked = plain.report(&Question::Spans(question), &ReportOptions::default());
        match asked {
            Err(ReportError::Question(QuestionError::NotOfProcess { what, .. })) => what,
            other => panic!("{other:?}"),
        }
    };
    let ordered = SpanQuestion {
        order: GroupOrder::Part(TimePart::Runnable),
        ..question()
    };
    assert_eq!(refused(ordered), "runnable");
    let mut least = question();
    least.least_parts.ask(TimePart::OnCpu, 5);
    assert_eq!(refused(least), "oncpu");
}

#[test]
fn diff_says_which_part_grew() {
    let recorded = |blocked: u64| {
        let hits = (0..2000_u64).flat_map(|at| {
            let (begin, sum) = (at * 1_000_000, at * blocked);
            let lasted = 20_000 + at % 7 * 100 + blocked;
            [
                (begin, 101, true, [0, 0, sum]),
                (begin + lasted, 101, false, [0, 0, sum + blocked]),
            ]
        });
        recording(&hits.collect::<Vec<_>>(), 500)
    };
    let (a, b) = (recorded(1000), recorded(300_000));
    let print = |format| {
        let options = DiffOptions {
            format,
            ..DiffOptions::default()
        };
        let mut out = Vec::new();
        let (a, b) = (a.session(), b.session());
        diff::print(&a, &b, &EventSelection::default(), &options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let shown = print(Format::Text);
    let line = shown
        .lines()
        .find(|line| line.contains("blocked a span"))
        .unwrap();
    assert!(
        line.contains("app:request: 299us more blocked a span; on cpu"),
        "{shown}"
    );
    let data: Value = serde_json::from_str(&print(Format::Json)).unwrap();
    let parts = &data["parts"][0];
    assert_eq!(
        (&parts["most"], &parts["kind"]),
        (&"blocked".into(), &"span".into())
    );
    assert_eq!(parts["b"]["blocked_ns"], 2000 * 300_000_u64);
}

/// An open span of the model.
#[derive(Clone, Copy)]
struct Open {
    time: u64,
    waits: [u64; 3],
    within: u64,
    within_known: [u64; 4],
}

/// What the model says of all spans.
#[derive(Debug, Default, PartialEq)]
struct Model {
    count: u64,
    known: u64,
    whole: [u64; 4],
    own: Option<[u64; 4]>,
    no_room: u64,
    contradictory: u64,
}

impl Model {
    fn new(hits: &[At]) -> Self {
        let mut model = Self {
            own: Some([0; 4]),
            ..Self::default()
        };
        let mut threads: HashMap<i32, Vec<Open>> = HashMap::new();
        for &(time, tid, begins, waits) in hits {
            let stack = threads.entry(tid).or_default();
            if begins {
                stack.push(Open {
                    time,
                    waits,
                    within: 0,
                    within_known: [0; 4],
                });
            } else if let Some(open) = stack.pop() {
                let parts = model.end(open, time, waits);
                if let Some(outer) = stack.last_mut() {
                    outer.within += time - open.time;
                    let parts = parts.unwrap_or_default();
                    (0..4).for_each(|at| outer.within_known[at] += parts[at]);
                }
            }
        }
        model
    }

    fn end(&mut self, open: Open, time: u64, waits: [u64; 3]) -> Option<[u64; 4]> {
        self.count += 1;
        if open.waits == UNKNOWN || waits == UNKNOWN {
            self.no_room += 1;
            return None;
        }
        let [runnable, iowait, blocked] = [0, 1, 2].map(|at| waits[at] - open.waits[at]);
        let Some(on_cpu) = (time - open.time).checked_sub(runnable + iowait + blocked) else {
            self.contradictory += 1;
            return None;
        };
        let parts = [on_cpu, runnable, iowait, blocked];
        self.known += 1;
        (0..4).for_each(|at| self.whole[at] += parts[at]);
        let is_own_known = open.within_known.iter().sum::<u64>() == open.within;
        let is_less = (0..4).all(|at| parts[at] >= open.within_known[at]);
        self.own = self.own.filter(|_| is_own_known && is_less);
        if let Some(own) = &mut self.own {
            (0..4).for_each(|at| own[at] += parts[at] - open.within_known[at]);
        }
        Some(parts)
    }
}

/// Random hits of three threads, each of which spends its time on one thing after the other. Of a hundred hits, so many do not know their sums, and so many
/// have sums by another clock.
fn schedule(seed: u64, unknown: u64, wrong: u64) -> Vec<At> {
    let mut random = support::random(seed);
    let mut sums: HashMap<i32, [u64; 3]> = HashMap::new();
    let mut last: HashMap<i32, u64> = HashMap::new();
    let mut time = 0;
    let hits = (0..1500).map(|_| {
        time += 1 + random(1000);
        let tid = 101 + random(3) as i32;
        let passed = time - last.insert(tid, time).unwrap_or(time);
        let sums = sums.entry(tid).or_default();
        let mut left = passed;
        for sum in sums.iter_mut() {
            let waited = if random(2) == 0 { 0 } else { random(left + 1) };
            *sum += waited;
            left -= waited;
        }
        if random(100) < wrong {
            sums[2] += passed + 5000;
        }
        let waits = if random(100) < unknown {
            UNKNOWN
        } else {
            *sums
        };
        (time, tid, random(100) < 52, waits)
    });
    hits.collect()
}

#[test]
fn random_spans_have_the_parts_of_the_model() {
    for seed in 0..repetitions("USDTREC_TEST_SPANS", 12) {
        let (unknown, wrong) = [(0, 0), (3, 0), (0, 2), (10, 5)][seed as usize % 4];
        let hits = schedule(seed, unknown, wrong);
        let model = Model::new(&hits);
        let recorded = recording(&hits, 37 + seed as usize);
        let found = span(&recorded, question());
        let parts = &found["parts"];
        let own = TimePart::ALL.map(|part| parts[part.spec().own_column].as_u64());
        let own: Option<Vec<u64>> = own.into_iter().collect();
        let of = |reason: NoTimeParts| parts["unknown"][reason.name()].as_u64().unwrap();
        let asked = Model {
            count: found["count"].as_u64().unwrap(),
            known: parts["known"].as_u64().unwrap(),
            whole: TimePart::ALL.map(|part| parts[part.spec().column].as_u64().unwrap()),
            own: own.map(|own| own.try_into().unwrap()),
            no_room: of(NoTimeParts::NoRoom),
            contradictory: of(NoTimeParts::Contradictory),
        };
        assert_eq!(asked, model, "seed {seed}");
        if (unknown, wrong) == (0, 0) {
            assert_eq!(
                model.whole.iter().sum::<u64>(),
                found["sum_ns"],
                "seed {seed}"
            );
            assert_eq!(model.own.unwrap().iter().sum::<u64>(), found["self_ns"]);
        }
        check_lines(&recorded, &model, seed);
    }
}

/// The parts of each line are its duration exactly, and all lines together are what the model has.
fn check_lines(recorded: &Recorded, model: &Model, seed: u64) {
    let json = script(recorded, lines_of_spans(Format::Json));
    let mut whole = [0; 4];
    for line in json.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let parts = TimePart::ALL.map(|part| line[part.spec().column].as_u64());
        let Some(parts) = parts.into_iter().collect::<Option<Vec<u64>>>() else {
            continue;
        };
        assert_eq!(parts.iter().sum::<u64>(), line["span_ns"], "seed {seed}");
        (0..4).for_each(|at| whole[at] += parts[at]);
    }
    assert_eq!(whole, model.whole, "seed {seed}");
}
