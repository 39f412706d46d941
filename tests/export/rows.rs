//! `usdtrec_report::rows`: programs that use the library get what the verbs print.

use std::ops::ControlFlow;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};
use usdtrec_format::Pattern;
use usdtrec_report::rows::{
    FrameName, LossCounts, RowArgument, RowEvent, RowQuestion, RowReader, RowSpan, RowStack,
    RowValue, TraceRow,
};
use usdtrec_report::{EventSelection, HintWords, Sentences, Sources, TraceSession};

use super::nasty::Nasty;
use crate::common::{Lab, test};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/traces");

type Members = Map<String, Json>;

/// A span that ended, as `script -F +span` has it with the event that ends it.
#[derive(Clone, Debug, PartialEq)]
struct EndedSpan {
    time: u64,
    tid: i64,
    name: String,
    duration: u64,
}

/// What is in a trace.
#[derive(Debug, Default, PartialEq)]
struct Found {
    events: Vec<Members>,
    spans: Vec<EndedSpan>,
    /// Numbers of the events that end spans whose begin is not known.
    without_begin: Vec<usize>,
    /// Whether something is wrong with the trace.
    is_damaged: bool,
}

fn float(number: f64, shown: String) -> Json {
    match number.is_finite() {
        true => json!(shown.parse::<f64>().expect("a float")),
        false => json!(shown),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Adds a member of an object that is a member of an event.
fn put(event: &mut Members, object: &str, name: &str, value: Json) {
    let member = event.entry(object).or_insert_with(|| json!({}));
    member[name] = value;
}

fn put_argument(event: &mut Members, argument: &RowArgument<'_>) {
    let name = argument.name();
    let mut add = |object: &str, value: Json| put(event, object, name, value);
    let shown = match argument.value() {
        RowValue::Signed(number) => json!(number),
        RowValue::Unsigned(number) => json!(number),
        RowValue::Float32(number) => float(number.into(), number.to_string()),
        RowValue::Float64(number) => float(number, number.to_string()),
        RowValue::Bool(is) => json!(is),
        RowValue::Address(address) => json!(format!("{address:#x}")),
        RowValue::Word { word, .. } => json!(word),
        RowValue::String(string) => {
            if let Some(number) = string.number {
                add("numbers", json!(number));
            }
            if let Some(demangled) = &string.demangled {
                add("demangled", json!(demangled));
            }
            if string.is_cut {
                add("cut", json!(true));
            }
            if std::str::from_utf8(string.bytes).is_err() {
                add("bytes", json!(hex(string.bytes)));
            }
            json!(string.text())
        }
        RowValue::Bytes { bytes, is_cut } => {
            if is_cut {
                add("cut", json!(true));
            }
            json!(hex(bytes))
        }
        RowValue::Missing(reason) => {
            add("missing", json!(reason));
            Json::Null
        }
    };
    put(event, "args", name, shown);
}

fn path(file: &Path) -> &str {
    file.to_str().expect("UTF-8")
}

fn frame(name: &FrameName) -> Json {
    match name {
        FrameName::Function {
            name,
            file,
            inlined,
        } => match inlined {
            true => json!({"sym": **name, "dso": path(file), "inlined": true}),
            false => json!({"sym": **name, "dso": path(file)}),
        },
        FrameName::Offset { file, .. } => json!({"sym": null, "dso": path(file)}),
        FrameName::Address(_) => json!({"sym": null, "dso": null}),
        FrameName::Script { name, .. } => json!({"sym": **name, "dso": null}),
    }
}

fn put_stack(event: &mut Members, RowStack { frames, cut }: RowStack) {
    let frames: Vec<Json> = frames.iter().map(frame).collect();
    event.insert("stack".to_owned(), json!(frames));
    if let Some(cut) = cut {
        event.insert("stack_cut".to_owned(), json!(cut));
    }
}

/// An event as `script --format json` prints it.
fn members(event: RowEvent<'_>, has_wall: bool) -> Members {
    let comm = event.comm().map(str::to_owned);
    let mut all = Members::new();
    let tid = event.tid();
    let members = [
        ("time_ns", json!(event.time_ns())),
        ("cpu", json!(event.cpu())),
        ("pid", json!(event.pid())),
        ("tid", json!(tid)),
        ("comm", json!(comm.unwrap_or_else(|| format!(":{tid}")))),
        ("event", json!(event.name())),
        ("ip", json!(format!("{:#x}", event.ip()))),
        ("args", json!({})),
    ];
    all.extend(members.map(|(name, value)| (name.to_owned(), value)));
    if has_wall {
        let wall = event.wall_ns().map(i128::from);
        let wall = wall.map(|ns| Timestamp::from_nanosecond(ns).expect("a time"));
        let shown = wall.map(|wall| wall.strftime("%Y-%m-%dT%H:%M:%S%.9fZ").to_string());
        all.insert("tod".to_owned(), json!(shown));
    } else {
        assert_eq!(event.wall_ns(), None);
    }
    let short = event.name().trim_start_matches("sdt_");
    let provider = event.provider().expect("a provider");
    assert_eq!(short, format!("{provider}:{}", event.probe()));
    for argument in event.arguments() {
        put_argument(&mut all, &argument);
    }
    if let Some(stack) = event.stack() {
        put_stack(&mut all, stack);
    }
    all
}

fn ended(span: RowSpan<'_>) -> Option<EndedSpan> {
    let end = span.end()?;
    let (begin, time) = (span.begin().time_ns()?, end.time_ns()?);
    let duration = span.duration_ns()?;
    assert_eq!(begin + duration, time);
    assert!(span.self_ns()? <= duration);
    Some(EndedSpan {
        time,
        tid: end.tid().into(),
        name: span.name().to_owned(),
        duration,
    })
}

/// What the library has of a trace.
fn by_library(trace: &Path, selection: &EventSelection, has_wall: bool) -> Found {
    let session = TraceSession::open(trace, &Sources::default()).expect("a trace");
    let question = RowQuestion {
        stacks: true,
        ..RowQuestion::default()
    };
    let reader = RowReader::new(&session, selection, &question).expect("an answer");
    let mut found = Found::default();
    let notices = reader.read(|row| {
        match row {
            TraceRow::Event(event) => {
                if event.has_no_begin() {
                    found.without_begin.push(found.events.len());
                }
                found.events.push(members(event, has_wall));
            }
            TraceRow::Span(span) => found.spans.extend(ended(span)),
        }
        ControlFlow::Continue(())
    });
    let notices = notices.expect("notices").sentences(HintWords::default());
    found.is_damaged = !notices.is_empty();
    found
}

/// The same as `script` prints it, without spans if it is asked for some events alone: then their begins and ends may be others.
fn by_script(lab: &Lab, trace: &str, options: &[&str], has_wall: bool) -> Found {
    let script = ["script", "-i", trace, "--format", "json"];
    let tod = &["-F", "+tod"][..2 * usize::from(has_wall)];
    let print = |fields| lab.usdtrec([&script[..], &["-F", fields], tod, options].concat());
    let with_spans = print("+sym,+dso,+span");
    let printed = match with_spans.status.success() {
        true => with_spans,
        // No event ends a span.
        false => print("+sym,+dso"),
    };
    let printed = printed.success();
    let mut found = Found {
        is_damaged: printed.stderr.contains(": offset "),
        ..Found::default()
    };
    for line in printed.stdout.lines() {
        let mut event: Members = serde_json::from_str(line).expect("JSON");
        for of_hit in ["sym", "dso"] {
            event.remove(of_hit);
        }
        let duration = event.remove("span_ns").and_then(|ns| ns.as_u64());
        let name = event.remove("span").filter(|_| options.is_empty());
        if let Some(name) = name {
            match duration {
                Some(duration) => found.spans.push(EndedSpan {
                    time: event["time_ns"].as_u64().expect("a time"),
                    tid: event["tid"].as_i64().expect("a number"),
                    name: name.as_str().expect("a name").to_owned(),
                    duration,
                }),
                None => found.without_begin.push(found.events.len()),
            }
        }
        let frames = event.get_mut("stack").and_then(Json::as_array_mut);
        for frame in frames.into_iter().flatten() {
            frame.as_object_mut().expect("an object").remove("ip");
        }
        found.events.push(event);
    }
    found
}

#[track_caller]
fn compare(lab: &Lab, trace: &str, selection: &EventSelection, options: &[&str]) -> Found {
    let tod = lab.usdtrec(["script", "-i", trace, "-F", "+tod"]);
    let has_wall = tod.status.success();
    let expected = by_script(lab, trace, options, has_wall);
    let found = by_library(&lab.path().join(trace), selection, has_wall);
    for (found, expected) in found.events.iter().zip(&expected.events) {
        assert_eq!(found, expected, "{trace}");
    }
    assert!(found == expected, "{trace}: spans, or notices");
    found
}

#[test]
fn the_library_has_every_field_that_script_prints() {
    let lab = Lab::new();
    for (name, events) in [
        ("chunks.data", true),
        ("chunks-killed.data", true),
        ("group-7.3.data", true),
        ("mixed.data", true),
        ("stock-6.1.data", true),
        ("stock-6.1-killed-z.data", false),
        ("stock-6.1-pipe.data", true),
        ("stock-6.1-z.data", true),
        ("stock-7.2-regs-stack.data", true),
        ("tracepoint.data", true),
        ("tracepoint-regs.data", true),
    ] {
        let trace = format!("{TRACES}/{name}");
        let found = compare(&lab, &trace, &EventSelection::default(), &[]);
        assert_eq!(!found.events.is_empty(), events, "{name}");
    }
    let nasty = Nasty::record(100, &["-g"]);
    let found = compare(&nasty.lab, "trace", &EventSelection::default(), &[]);
    assert!(found.spans.len() > 100);
    assert!(found.events.iter().all(|event| event.contains_key("stack")));
}

#[test]
fn the_library_selects_as_script_does() {
    let lab = Lab::new();
    let all = compare(&lab, DEMO, &EventSelection::default(), &[]);
    let selection = EventSelection {
        events: vec![Pattern::parse("usdtrec:request__done").expect("a pattern")],
        time: Some("10%-50%".parse().expect("a time")),
        filter: Some("arg2 >= 400".to_owned()),
        ..EventSelection::default()
    };
    let options = [
        "-e",
        "usdtrec:request__done",
        "--time",
        "10%-50%",
        "--filter",
        "arg2 >= 400",
    ];
    let some = compare(&lab, DEMO, &selection, &options);
    assert!(!some.events.is_empty() && some.events.len() < all.events.len() / 10);
}

#[test]
fn a_walk_of_the_library_ends_early() {
    let session = TraceSession::open(Path::new(DEMO), &Sources::default()).expect("a trace");
    let (selection, question) = (EventSelection::default(), RowQuestion::default());
    let reader = RowReader::new(&session, &selection, &question).expect("an answer");
    let names: Vec<&str> = reader.span_names().collect();
    assert_eq!(names, ["usdtrec:request", "usdtrec:gc"]);
    let mut rows = 0;
    let notices = reader.read(|_| {
        rows += 1;
        match rows {
            3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert_eq!((rows, notices.expect("notices").damage.len()), (3, 0));
}

#[test]
fn the_library_says_what_was_lost_as_report_does() {
    let lab = Lab::new();
    let traces = ["chunks.data", "chunks-killed.data", "stock-6.1-z.data"];
    let traces = traces.map(|name| format!("{TRACES}/{name}"));
    for trace in traces.iter().map(String::as_str).chain([DEMO]) {
        let report = lab.usdtrec(["report", "-i", trace, "--format", "json"]);
        let report: Json = serde_json::from_str(&report.success().stdout).expect("JSON");
        let session = TraceSession::open(Path::new(trace), &Sources::default()).expect("a trace");
        let losses = LossCounts::new(&session);
        assert_eq!(report["lost"], json!(losses.lost()), "{trace}");
        assert_eq!(report["lost_exact"], json!(losses.is_exact), "{trace}");
        for probe in report["probes"].as_array().expect("a list") {
            let mut known = losses.probes.iter();
            let known = known.find(|known| known.event.as_deref() == probe["event"].as_str());
            assert_eq!(
                probe["lost"],
                json!(known.expect("a probe").lost),
                "{trace}"
            );
        }
    }
}
