//! Streams to which events are added: what is shown while they come is what is shown of the stream stored in a file.

use usdtrec_format::schema::Argument;
use usdtrec_format::trace::{Compression, NewEvents, PipeWriter, TraceInfo};
use usdtrec_report::script::{self, ScriptOptions, SpanRowQuestion};
use usdtrec_report::{
    ContextQuestion, EventSelection, Format, HintWords, Sentences, Sources, StreamSummary,
    TraceSession,
};
use usdtrec_testing::test;

use crate::support::{self, DONE, HIT, Recording, ip};

/// Ids of the events that are added.
const BEGIN: u64 = 2000;
const END: u64 = 2001;
const OTHER: u64 = 2002;

/// A head with events that are added after those of `former`, which are like `app:done`.
fn with(former: &TraceInfo, added: &[(&str, u64, &str)]) -> TraceInfo {
    let mut info = former.clone();
    for &(name, id, argument) in added {
        let mut event = info.events[1].clone();
        event.name = format!("sdt_late:{name}");
        event.ids = vec![id];
        info.events.push(event);
        let definitions = info.definitions.as_mut().unwrap();
        let mut probe = definitions.probes[1].clone();
        probe.event = format!("sdt_late:{name}");
        probe.provider = "late".to_owned();
        probe.name = name.to_owned();
        probe.arguments = vec![Argument::named(argument)];
        probe.sites[0].ids = vec![id];
        probe.file = definitions.files.len();
        let mut file = definitions.files[0].clone();
        file.path = "/opt/late.so".into();
        definitions.files.push(file);
        definitions.probes.push(probe);
    }
    info
}

/// A sample of an event with one register.
fn sample(id: u64, millis: u64, value: u64) -> Vec<u8> {
    let words = [
        9 | 2 << 32 | 64 << 48,
        id,
        ip(id),
        100 | 101 << 32,
        HIT.time + millis * 1_000_000,
        1,
        2,
        value,
    ];
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// A stream in which events are added twice, the second time while a span is open.
fn stream() -> Vec<u8> {
    let head = Recording::start().finish().session().info().clone();
    let span = [("work__start", BEGIN, "size"), ("work__done", END, "arg1")];
    let first = with(&head, &span);
    let second = with(&first, &[("other", OTHER, "size")]);
    let mut bytes = Vec::new();
    let mut writer = PipeWriter::create(&mut bytes, &head, Compression::Zstd(1)).unwrap();
    let rounds = [
        (None, vec![sample(DONE, 0, 3), sample(DONE, 1, 10)]),
        (Some(&first), vec![sample(BEGIN, 2, 11), sample(DONE, 3, 4)]),
        (Some(&second), vec![sample(OTHER, 4, 12), sample(END, 5, 5)]),
    ];
    for (added, samples) in rounds {
        if let Some(info) = added {
            let new = NewEvents::after(writer.info(), info);
            writer.add_events(new).unwrap();
        }
        writer.push(&samples.concat());
        writer.flush().unwrap();
    }
    writer.finish(&[]).unwrap();
    bytes
}

fn streamed(
    bytes: &[u8],
    selection: &EventSelection,
    options: &ScriptOptions,
) -> (String, StreamSummary) {
    support::script_of_stream(bytes, selection, &ContextQuestion::default(), options)
}

/// The lines of the stream as it comes, which are those of a file that has it.
fn lines(format: Format, filter: Option<&str>) -> Vec<String> {
    let bytes = stream();
    let options = ScriptOptions {
        format,
        ..ScriptOptions::default()
    };
    let selection = EventSelection {
        filter: filter.map(str::to_owned),
        ..EventSelection::default()
    };
    let (text, summary) = streamed(&bytes, &selection, &options);
    assert_eq!(summary.notices.unknown, 0);
    assert!(summary.notices.damage.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stored");
    std::fs::write(&path, &bytes).unwrap();
    let session = TraceSession::open(&path, &Sources::default()).unwrap();
    assert_eq!(session.damage(), []);
    let mut stored = Vec::new();
    script::print(&session, &selection, &options, &mut stored).unwrap();
    let trimmed = |text: &str| -> Vec<String> {
        let lines = text.lines();
        // The column of names is as wide as those that are known.
        lines
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    };
    let stored = String::from_utf8(stored).unwrap();
    if format != Format::Csv {
        assert_eq!(trimmed(&text), trimmed(&stored));
    }
    trimmed(&text)
}

#[test]
fn added_events_are_shown_as_of_a_file() {
    for format in [Format::Text, Format::Json] {
        let lines = lines(format, None);
        assert_eq!(lines.len(), 6);
        for (line, name) in lines.iter().zip([
            "app:done",
            "app:done",
            "work__start",
            "app:done",
            "late:other",
            "work__done",
        ]) {
            assert!(line.contains(name), "{line}");
        }
        assert!(lines[2].contains("size"), "{}", lines[2]);
    }
}

#[test]
fn filters_are_about_added_events_too() {
    let shown = lines(Format::Text, Some("arg1 > 4"));
    // `size` is the first argument of its events.
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert!(
        shown[1].contains("work__start") && shown[3].contains("work__done"),
        "{shown:?}"
    );
}

#[test]
fn a_header_that_was_printed_stays_and_what_it_lacks_is_said() {
    let (_, summary) = streamed(
        &stream(),
        &EventSelection::default(),
        &ScriptOptions {
            format: Format::Csv,
            ..ScriptOptions::default()
        },
    );
    let sentences = summary.notices.sentences(HintWords::default());
    assert!(
        sentences
            .iter()
            .any(|text| text.contains("not shown: size")),
        "{sentences:?}"
    );
    let lines = lines(Format::Csv, None);
    assert_eq!(lines.len(), 7);
    let columns = |line: &String| line.split(',').count();
    assert!(
        lines.iter().all(|line| columns(line) == columns(&lines[0])),
        "{lines:?}"
    );
}

/// The span is open while other events are added.
#[test]
fn spans_of_added_events_are_matched() {
    let head = with(
        Recording::start().finish().session().info(),
        &[
            ("query__start", 3000, "arg1"),
            ("query__done", 3001, "arg1"),
        ],
    );
    let first = with(
        &head,
        &[("work__start", BEGIN, "size"), ("work__done", END, "arg1")],
    );
    let second = with(&first, &[("other", OTHER, "size")]);
    let mut bytes = Vec::new();
    let mut writer = PipeWriter::create(&mut bytes, &head, Compression::None).unwrap();
    writer.push(&sample(3000, 0, 1));
    writer.flush().unwrap();
    let new = NewEvents::after(writer.info(), &first);
    writer.add_events(new).unwrap();
    writer.push(&sample(BEGIN, 1, 1));
    writer.flush().unwrap();
    let new = NewEvents::after(writer.info(), &second);
    writer.add_events(new).unwrap();
    writer.push(&[sample(END, 4, 1), sample(3001, 7, 1)].concat());
    writer.finish(&[]).unwrap();
    let options = ScriptOptions {
        fields: "+span".parse().unwrap(),
        ..ScriptOptions::default()
    };
    let (text, _) = streamed(&bytes, &EventSelection::default(), &options);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[2].contains("late:work") && lines[2].contains("(3.000ms)"),
        "{text}"
    );
    assert!(
        lines[3].contains("late:query") && lines[3].contains("(7.000ms)"),
        "{text}"
    );
}

/// The files with the begin and with the end of a span come one after the other, and then a second one with its end.
#[test]
fn spans_of_events_that_come_apart_are_matched() {
    const END_ELSEWHERE: u64 = 2003;
    let head = with(
        Recording::start().finish().session().info(),
        &[
            ("query__start", 3000, "id"),
            ("query__done", 3001, "id"),
            ("work__start", BEGIN, "id"),
        ],
    );
    let first = with(&head, &[("work__done", END, "id")]);
    let second = with(&first, &[("work__done", END_ELSEWHERE, "id")]);
    let mut bytes = Vec::new();
    let mut writer = PipeWriter::create(&mut bytes, &head, Compression::None).unwrap();
    writer.push(&sample(3000, 0, 1));
    writer.flush().unwrap();
    let new = NewEvents::after(writer.info(), &first);
    writer.add_events(new).unwrap();
    writer.push(&[sample(BEGIN, 1, 1), sample(END, 4, 1), sample(BEGIN, 5, 2)].concat());
    writer.flush().unwrap();
    // What began before ends after it, by the same id.
    let new = NewEvents::after(writer.info(), &second);
    writer.add_events(new).unwrap();
    writer.push(&[sample(END_ELSEWHERE, 9, 2), sample(3001, 10, 1)].concat());
    writer.finish(&[]).unwrap();
    let expected = [
        ("work", "3.000ms"),
        ("work", "4.000ms"),
        ("query", "10.000ms"),
    ];
    let field = ScriptOptions {
        fields: "+span".parse().unwrap(),
        ..ScriptOptions::default()
    };
    let (text, _) = streamed(&bytes, &EventSelection::default(), &field);
    let ends = text.lines().filter(|line| line.contains("__done"));
    let ends: Vec<&str> = ends.collect();
    assert_eq!(ends.len(), expected.len(), "{text}");
    for (line, (name, took)) in ends.iter().zip(expected) {
        let shown = format!("span=late:{name}({took})");
        assert!(line.contains(&shown), "{shown}: {text}");
    }
    let spans = ScriptOptions {
        spans: Some(SpanRowQuestion {
            spans: vec!["late:*".to_owned()],
            ..SpanRowQuestion::default()
        }),
        ..ScriptOptions::default()
    };
    let (text, _) = streamed(&bytes, &EventSelection::default(), &spans);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{text}");
    for (line, (name, took)) in lines.iter().zip(expected) {
        let shown = format!("late:{name}: {took}");
        assert!(line.contains(&shown), "{shown}: {text}");
    }
}
