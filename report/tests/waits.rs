//! What threads waited for in spans: by hand, beside a model of nested spans, and as events of their own.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::{Value, json};
use usdtrec_format::{Pattern, TimePart};
use usdtrec_report::diff::{self, DiffOptions};
use usdtrec_report::export::{self, ExportFormat, ExportOptions, RowFormat, StackFormat};
use usdtrec_report::question::{GroupOrder, Question, SpanQuestion};
use usdtrec_report::report::ReportOptions;
use usdtrec_report::script::{self, ScriptOptions};
use usdtrec_report::{EventSelection, Format, Sources, TraceSession};
use usdtrec_testing::{repetitions, test};

use crate::support::{
    self, DONE, HIT, Hit, REQUEST, Recorded, RecordedWait, Recording, with_wait_events, with_waits,
};

/// What happens on a thread.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// A span begins; its first argument.
    Begin(u64),
    /// One ends; its argument.
    End(u64),
    /// The thread is back: ns, runnable of it, state, word.
    Wait(u64, u64, &'static str, &'static str),
}

use Happening::{Begin, End, Wait};

/// Time after the first hit, ns, thread, and what happens. Threads from 200 on are of process 200.
type At = (u64, i32, Happening);

/// Waits of at least so many ns have events.
fn recording(all: &[At], flush: usize, threshold: u64) -> Recorded {
    let mut recording = Recording::with(Path::new("/opt/app"), |info| {
        with_waits(info);
        with_wait_events(info);
    });
    for (pid, tid) in [(100, 101), (100, 102), (200, 201), (200, 202)] {
        recording.comm(0, (pid, tid), "worker", false);
    }
    // How long each thread has waited so far: runnable, in I/O wait, blocked.
    let mut sums: HashMap<i32, [u64; 3]> = HashMap::new();
    for some in all.chunks(flush) {
        for &(at, tid, what) in some {
            let (pid, time) = (tid / 100 * 100, HIT.time + at);
            let sums = sums.entry(tid).or_default();
            let (id, argument) = match what {
                Begin(argument) => (REQUEST, argument),
                End(argument) => (DONE, argument),
                Wait(ns, runnable, state, wait) => {
                    sums[0] += runnable;
                    sums[if state == "iowait" { 1 } else { 2 }] += ns - runnable;
                    if ns >= threshold {
                        recording.wait(RecordedWait {
                            pid,
                            tid,
                            time,
                            ns,
                            runnable,
                            state,
                            wait,
                        });
                    }
                    continue;
                }
            };
            let hit = Hit {
                id,
                pid,
                tid,
                time,
                ax: argument,
                si: argument,
                ..HIT
            };
            recording.waited(hit, *sums);
        }
        recording.flush();
    }
    recording.finish()
}

/// Without names of keys, the report finds what begins and ends have in common.
fn question(key: &[&str], by: &[&str]) -> SpanQuestion {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    SpanQuestion {
        spans: vec!["request".to_owned()],
        key: owned(key),
        by: owned(by),
        ..SpanQuestion::default()
    }
}

fn text(recorded: &Recorded, question: &SpanQuestion, format: Format) -> String {
    recorded.same_answer(&Question::Spans(question.clone()), format)
}

fn span(recorded: &Recorded, question: &SpanQuestion) -> Value {
    let answer = text(recorded, question, Format::Json);
    serde_json::from_str::<Value>(&answer).unwrap()["spans"][0].clone()
}

/// `wait`: ns and count.
type Waits = BTreeMap<String, (u64, u64)>;

fn waits(row: &Value) -> Waits {
    let waits = row["waits"].as_array().unwrap().iter();
    let waits = waits.map(|wait| {
        let number = |name: &str| wait[name].as_u64().unwrap();
        let word = wait["wait"].as_str().unwrap().to_owned();
        (word, (number("ns"), number("count")))
    });
    waits.collect()
}

/// A span of 100 us with one of 20 within it, one of 100 of another process, and waits in no span that is counted.
fn few() -> Recorded {
    let all = [
        // No span is open.
        (500, 101, Wait(400, 0, "blocked", "epoll_wait")),
        (1000, 101, Begin(1)),
        (3000, 201, Begin(5)),
        (21_000, 101, Wait(20_000, 5000, "blocked", "futex")),
        (23_000, 101, Wait(1000, 1000, "runnable", "runnable")),
        (30_000, 101, Begin(2)),
        (42_000, 101, Wait(10_000, 0, "iowait", "fdatasync")),
        (43_000, 201, Wait(40_000, 0, "blocked", "futex")),
        (50_000, 101, End(2)),
        (60_000, 101, Wait(9000, 1000, "iowait", "fdatasync")),
        (101_000, 101, End(1)),
        (103_000, 201, End(5)),
        // A thread without spans.
        (104_000, 102, Wait(9000, 0, "blocked", "futex")),
        // A span that never ends.
        (105_000, 202, Begin(6)),
        (125_000, 202, Wait(20_000, 0, "blocked", "nanosleep")),
    ];
    recording(&all, 4, 0)
}

#[test]
fn waits_are_those_of_the_newest_span_of_their_thread_that_ended() {
    let recorded = few();
    for key in [&["tid"][..], &[]] {
        let found = span(&recorded, &question(key, &[]));
        // Without the time in which the thread could have run.
        let expected = json!([
            {"wait": "futex", "ns": 15_000 + 40_000, "count": 2},
            {"wait": "fdatasync", "ns": 10_000 + 8000, "count": 2},
        ]);
        assert_eq!(found["waits"], expected, "{key:?}");
        // They are what the clocks of hits say.
        assert_eq!(
            (
                &found["parts"]["self_iowait_ns"],
                &found["parts"]["self_blocked_ns"]
            ),
            (&18_000.into(), &55_000.into())
        );
    }
    let mut by_thread = question(&["tid"], &["tid"]);
    by_thread.order = GroupOrder::Part(TimePart::Iowait);
    let groups = &span(&recorded, &by_thread)["groups"];
    let expected = json!([
        {"wait": "fdatasync", "ns": 18_000, "count": 2},
        {"wait": "futex", "ns": 15_000, "count": 1},
    ]);
    assert_eq!(
        (&groups[0]["tid"], &groups[0]["waits"]),
        (&101.into(), &expected)
    );
    assert_eq!(
        groups[1]["waits"],
        json!([{"wait": "futex", "ns": 40_000, "count": 1}])
    );
    // Shorter spans do not count, nor what was waited for in them.
    by_thread.min = 30_000;
    by_thread.top = Some(1);
    let least = &span(&recorded, &by_thread);
    assert_eq!(waits(least)["fdatasync"], (8000, 1));
    assert_eq!(waits(&least["others"])["futex"], (40_000, 1));
    // What is asked for at the end of a span is known when it ends.
    let groups = &span(&recorded, &question(&["tid"], &["done.arg1"]))["groups"];
    let of = |argument: u64| {
        let mut all = groups.as_array().unwrap().iter();
        let group = all.find(|group| group["done.arg1"] == argument);
        waits(group.unwrap())
    };
    assert_eq!(of(2), [("fdatasync".to_owned(), (10_000, 1))].into());
    assert_eq!(of(5), [("futex".to_owned(), (40_000, 1))].into());
}

/// The lines of a text that say what was waited for, with the one before each.
fn lines(shown: &str) -> Vec<[&str; 2]> {
    let all: Vec<&str> = shown.lines().collect();
    let pairs = all.windows(2).map(|pair| [pair[0], pair[1]]);
    pairs.filter(|pair| pair[1].starts_with("  in ")).collect()
}

#[test]
fn text_and_pages_have_waits_below_each_row() {
    let recorded = few();
    let by_thread = question(&["tid"], &["tid"]);
    let shown = text(&recorded, &by_thread, Format::Text);
    let found = lines(&shown);
    // Shares are of the time outside of spans within them, as those of the line above.
    assert!(found[0][0].starts_with("  self  "), "{shown}");
    let all = found.iter().map(|[_, waits]| *waits);
    let expected = [
        "  in futex 27.5%, fdatasync 9.0%",
        "  in fdatasync 18.0%, futex 15.0%",
        "  in futex 40.0%",
    ];
    assert_eq!(all.collect::<Vec<_>>(), expected, "{shown}");
    let mut page = Vec::new();
    let mut options = ExportOptions::new(ExportFormat::Html);
    options.spans = by_thread.spans.clone();
    let selection = EventSelection::default();
    export::write(&recorded.session(), &selection, &options, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let below = "<br><small>in futex 27.5%, fdatasync 9.0%</small></td>";
    assert!(page.contains(below), "{page}");
}

/// Words for which a line has no room, and times that are too short for one, are left out.
#[test]
fn a_line_has_the_longest_waits() {
    const WORDS: [&str; 8] = [
        "Lock:transactionid",
        "LWLock:LockManager",
        "LWLock:BufferContent",
        "IO:WALSync",
        "IO:DataFileRead",
        "Lock:tuple",
        "LWLock:ProcArray",
        "a word that is much longer than any that a program should have",
    ];
    let mut all = vec![(0, 101, Begin(1))];
    let mut time = 0;
    for (at, word) in (0..).zip(WORDS) {
        let ns = if at == 7 { 3_000_000 } else { 1_000_000 >> at };
        time += ns;
        all.push((time, 101, Wait(ns, 0, "blocked", word)));
    }
    all.push((5_000_000, 101, End(1)));
    let recorded = recording(&all, 3, 0);
    let asked = Question::Spans(question(&[], &[]));
    let shown = |columns| {
        let selection = EventSelection::default();
        let mut options = ReportOptions::default();
        options.room.columns = columns;
        let (shown, _) = recorded
            .report_selected(&selection, &asked, &options)
            .unwrap();
        lines(&shown)[0][1].to_owned()
    };
    let narrow = "  in a word that is much longer than any that… 60.0%, Lock:transactionid 20.0%";
    assert_eq!(shown(Some(80)), narrow);
    let wide = format!(
        "{narrow}, LWLock:LockManager 10.0%, LWLock:BufferContent 5.0%, IO:WALSync 2.5%, IO:DataFileRead 1.2%"
    );
    assert_eq!(shown(Some(200)), wide);
}

#[test]
fn spans_that_are_of_no_thread_have_no_waits_and_a_row_without_any_no_line() {
    let recorded = few();
    for key in ["arg1", "pid"] {
        let asked = question(&[key], &[]);
        assert_eq!(span(&recorded, &asked).get("waits"), None, "{key}");
        let shown = text(&recorded, &asked, Format::Text);
        assert_eq!(lines(&shown).len(), 0, "{shown}");
    }
    let all = [(1000, 101, Begin(1)), (2000, 101, End(1))];
    let recorded = recording(&all, 4, 0);
    assert_eq!(span(&recorded, &question(&[], &[]))["waits"], json!([]));
    let shown = text(&recorded, &question(&[], &[]), Format::Text);
    assert_eq!(lines(&shown).len(), 0, "{shown}");
    // CSV has a line for each row.
    let csv = text(&few(), &question(&["tid"], &[]), Format::Csv);
    assert!(!csv.contains("futex"), "{csv}");
}

/// What happens on four threads at random, and what was waited for by the first argument of the spans that ended.
fn random_waits(random: &mut impl FnMut(u64) -> u64, threshold: u64) -> (Vec<At>, [Waits; 4]) {
    const WORDS: [&str; 3] = ["futex", "read", "fdatasync"];
    let mut all = Vec::new();
    let mut groups: [Waits; 4] = Default::default();
    let mut open: HashMap<i32, Vec<(u64, Waits)>> = HashMap::new();
    for at in 0..400 {
        let tid = [101, 102, 201, 202][random(4) as usize];
        let stack = open.entry(tid).or_default();
        let what = match random(5) {
            0 if stack.len() < 4 => {
                let argument = random(4);
                stack.push((argument, Waits::new()));
                Begin(argument)
            }
            1 => {
                let Some((argument, ended)) = stack.pop() else {
                    continue;
                };
                for (word, (ns, count)) in ended {
                    let sum = groups[argument as usize].entry(word).or_default();
                    *sum = (sum.0 + ns, sum.1 + count);
                }
                End(argument)
            }
            kind => {
                let ns = 1 + random(50);
                let runnable = random(ns);
                let word = WORDS[random(3) as usize];
                let wait = match kind {
                    2 => Wait(ns, ns, "runnable", "runnable"),
                    3 => Wait(ns, runnable, "iowait", word),
                    _ => Wait(ns, runnable, "blocked", word),
                };
                if let Some((_, waits)) = stack.last_mut()
                    && ns >= threshold
                    && kind != 2
                {
                    let sum = waits.entry(word.to_owned()).or_default();
                    *sum = (sum.0 + ns - runnable, sum.1 + 1);
                }
                wait
            }
        };
        all.push((at * 1000, tid, what));
    }
    (all, groups)
}

#[test]
fn waits_of_random_spans_are_those_of_a_model() {
    let mut random = support::random(58);
    for _ in 0..repetitions("USDTREC_WAIT_TRACES", 6) {
        let threshold = random(2) * 20;
        let (all, expected) = random_waits(&mut random, threshold);
        let recorded = recording(&all, 1 + random(90) as usize, threshold);
        let found = span(&recorded, &question(&["tid"], &["arg1"]));
        for group in found["groups"].as_array().unwrap() {
            let argument = group["arg1"].as_u64().unwrap();
            assert_eq!(waits(group), expected[argument as usize], "{all:?}");
            let sum: u64 = waits(group).values().map(|(ns, _)| ns).sum();
            let part = |name: &str| group["parts"][name].as_u64().unwrap();
            let off = part("self_iowait_ns") + part("self_blocked_ns");
            // What is not recorded is nothing that is known.
            assert!(sum <= off && (sum == off || threshold > 0), "{group}");
        }
    }
}

#[test]
fn waits_are_events_that_no_span_begins_or_ends_with() {
    let recorded = few();
    let selection = EventSelection {
        events: vec![Pattern::parse("offcpu:offcpu-time").unwrap()],
        ..EventSelection::default()
    };
    let events = recorded.json(&selection);
    assert_eq!(events.len(), 8);
    let expected =
        json!({"ns": 20_000, "runnable": 5000, "state": "blocked", "syscall": "", "wait": "futex"});
    assert_eq!(
        (&events[1]["event"], &events[1]["args"]),
        (&"offcpu:offcpu-time".into(), &expected)
    );
    let summary = recorded.same_answer(&Question::Summary, Format::Json);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let spans = summary["spans"].as_array().unwrap();
    let names = spans.iter().map(|span| span["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["app:request"]);
    // Selecting others leaves what is known of spans.
    let chosen = EventSelection {
        events: vec![Pattern::parse("sdt_app:request").unwrap()],
        pids: vec![100],
        ..EventSelection::default()
    };
    let asked = Question::Spans(question(&["tid"], &[]));
    let (shown, _) = recorded
        .report_selected(&chosen, &asked, &ReportOptions::default())
        .unwrap();
    assert_eq!(
        lines(&shown)[0][1],
        "  in fdatasync 18.0%, futex 15.0%",
        "{shown}"
    );
}

#[test]
fn other_answers_and_exports_have_waits_as_events() {
    let recorded = few();
    let session = recorded.session();
    let selection = EventSelection::default();
    let exports = [
        ExportFormat::Html,
        ExportFormat::Rows(RowFormat::OtlpJson),
        ExportFormat::Rows(RowFormat::OtlpProto),
        ExportFormat::Rows(RowFormat::Perfetto),
        ExportFormat::Stacks(StackFormat::Folded),
        ExportFormat::Stacks(StackFormat::Pprof),
    ];
    let none = recording(&[(1000, 101, Begin(1)), (2000, 101, End(1))], 4, 0);
    let without = none.session();
    for format in exports {
        let write = |session| {
            let mut out = Vec::new();
            let options = ExportOptions::new(format);
            let written = export::write(session, &selection, &options, &mut out);
            written
                .map_err(|error| error.to_string())
                .map(|_| out.is_empty())
        };
        // Stacks are refused where there are none.
        assert_eq!(write(&session), write(&without), "{format:?}");
    }
    let path = recorded.path.with_file_name("plain.data");
    let file = std::fs::File::create_new(&path).unwrap();
    export::write_perf(&session, &selection, file).unwrap();
    let plain = TraceSession::open(&path, &Sources::default()).unwrap();
    let options = ScriptOptions::default();
    let (expected, _) = recorded.script(&selection, &options);
    let mut out = Vec::new();
    script::print(&plain, &selection, &options, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    for format in [Format::Text, Format::Json, Format::Csv] {
        let by_wait = Question::Groups {
            sort: ["event", "wait"].map(str::to_owned).to_vec(),
            value: Some("ns".to_owned()),
            top: None,
            order: GroupOrder::Count,
        };
        let shown = recorded.same_answer(&by_wait, format);
        assert!(shown.contains("fdatasync"), "{shown}");
        let options = DiffOptions {
            format,
            ..DiffOptions::default()
        };
        let mut out = Vec::new();
        diff::print(&session, &session, &selection, &options, &mut out).unwrap();
    }
}
