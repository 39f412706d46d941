//! Streams: a pause is known when its record comes, and its end when that of its end comes.

use std::io::Read;

use serde_json::Value;
use usdtrec_format::perf::{RecordType, Records, SampleId};
use usdtrec_format::trace::{BlockReader, Compression, Pause, PipeWriter, Trace};
use usdtrec_report::script::{ScriptOptions, SpanRowQuestion};
use usdtrec_report::{
    ContextQuestion, EventSelection, Format, HintWords, Notices, Sentences, StreamSummary,
};
use usdtrec_testing::test;

use super::happened::{PROBES, START, STEP, end, pauses, put, record, start};
use super::parsed;
use crate::support::{self, DONE, HIT, Hit, REQUEST, Recorded, Recording};

/// The records of a trace as a stream, in the order in which a recorder writes them, with so many of them in a round.
fn stream(recorded: &Recorded, round: usize) -> Vec<u8> {
    let trace = Trace::open(&recorded.path).unwrap();
    let id_type = trace.info().events[0].attr.id_type();
    let mut reader = BlockReader::new();
    let mut records: Vec<(u64, Vec<u8>)> = Vec::new();
    for block in trace.blocks() {
        for record in Records::new(reader.read(&trace, block).unwrap()) {
            let time = match record.kind {
                RecordType::SAMPLE => record.body[24..32].try_into().map(u64::from_le_bytes).ok(),
                _ => SampleId::split(record.body, id_type).map(|split| split.id.time),
            };
            let mut bytes = Vec::new();
            record.put(&mut bytes);
            records.extend(time.map(|time| (time, bytes)));
        }
    }
    records.sort_by_key(|(time, _)| *time);
    let mut bytes = Vec::new();
    let mut writer = PipeWriter::create(&mut bytes, trace.info(), Compression::Zstd(1)).unwrap();
    for round in records.chunks(round) {
        for (_, record) in round {
            writer.push(record);
        }
        writer.flush().unwrap();
    }
    writer.finish(&[]).unwrap();
    bytes
}

/// A pipe that gives few bytes at once.
struct Slowly<'b>(&'b [u8]);

impl Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(100);
        self.0.read(&mut buffer[..most])
    }
}

/// What `script` prints of a stream, whether it is there or arrives.
fn print(
    bytes: &[u8],
    context: &ContextQuestion,
    options: &ScriptOptions,
) -> (String, StreamSummary) {
    let all = EventSelection::default();
    let (text, summary) = support::script_of_stream(bytes, &all, context, options);
    let (slowly, _) = support::script_of_stream(Slowly(bytes), &all, context, options);
    assert!(slowly == text, "the order depends on what arrives at once");
    (text, summary)
}

/// What `script` prints of the spans of a trace in a file, and of the stream with so many records in a round.
pub(super) fn both(
    recorded: &Recorded,
    round: usize,
    options: &ScriptOptions,
) -> [(String, Notices); 2] {
    let file = recorded.script(&EventSelection::default(), options);
    let bytes = stream(recorded, round);
    let (text, summary) = print(&bytes, &ContextQuestion::default(), options);
    [file, (text, summary.notices)]
}

/// Lines of the spans of requests.
fn requests(template: Option<&str>) -> ScriptOptions {
    ScriptOptions {
        spans: Some(SpanRowQuestion {
            spans: vec!["request..done".to_owned()],
            ..SpanRowQuestion::default()
        }),
        template: template.map(|template| template.parse().unwrap()),
        ..ScriptOptions::default()
    }
}

/// Events of the program in microseconds: when, which thread, which probe.
fn hits(recording: &mut Recording, hits: &[(u64, i32, u64)]) {
    for &(at, tid, id) in hits {
        recording.hit(Hit {
            id,
            tid,
            time: START + at * 1000,
            ..HIT
        });
    }
}

/// A pause in microseconds, when it begins and when it ends.
fn pause(recording: &mut Recording, number: u64, from: u64, to: u64) {
    let mut record = Pause {
        number,
        ids: PROBES.to_vec(),
        from_ns: START + from * 1000,
        to_ns: None,
    };
    recording.pause(&record);
    record.to_ns = Some(START + to * 1000);
    recording.pause(&record);
}

/// What `script` prints of a stream with a record in each round.
pub(super) fn json_lines(recorded: &Recorded, context: &ContextQuestion) -> Vec<Value> {
    let options = ScriptOptions {
        format: Format::Json,
        ..ScriptOptions::default()
    };
    let (text, _) = print(&stream(recorded, 1), context, &options);
    text.lines().map(parsed).collect()
}

/// Lines that say the same in any order: of spans without an end, the order is that in which they are found.
pub(super) fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn spans_of_a_stream_are_those_of_a_file() {
    let mut recording = start();
    for (number, pause) in pauses().into_iter().enumerate() {
        put(&mut recording, number as u64, pause, &PROBES);
    }
    record(START, end(), &mut recording);
    let recorded = recording.finish();
    let spans = ScriptOptions {
        spans: Some(SpanRowQuestion {
            spans: vec!["request..done".to_owned()],
            ..SpanRowQuestion::default()
        }),
        format: Format::Json,
        ..ScriptOptions::default()
    };
    let events = ScriptOptions {
        fields: "+span".parse().unwrap(),
        format: Format::Json,
        ..ScriptOptions::default()
    };
    for options in [spans, events] {
        let (file, notices) = recorded.script(&EventSelection::default(), &options);
        let mut texts = Vec::new();
        for round in [1, 50, 7000] {
            let bytes = stream(&recorded, round);
            let (text, summary) = print(&bytes, &ContextQuestion::default(), &options);
            assert!(sorted(&text) == sorted(&file), "{round} records in a round");
            texts.push(text);
            let said = |notices: &usdtrec_report::Notices| notices.sentences(HintWords::default());
            assert_eq!(said(&summary.notices), said(&notices));
            assert_eq!(notices.paused.len(), 2);
        }
        // Nor does the order depend on what is shown at once.
        assert!(texts.iter().all(|text| *text == texts[0]));
    }
}

/// A recorder that is never stopped: what a pause ended is printed when the next hit of its key comes.
#[test]
fn a_span_that_a_pause_ended_does_not_wait_for_the_end_of_the_stream() {
    let mut recording = start();
    pause(&mut recording, 0, 20, 30);
    hits(
        &mut recording,
        &[
            (10, 101, REQUEST),
            (40, 101, REQUEST),
            (50, 101, DONE),
            (60, 101, REQUEST),
        ],
    );
    let recorded = recording.finish();
    let options = requests(Some("{tid} {span}"));
    let [(file, _), (streamed, _)] = both(&recorded, 1, &options);
    let fates = |text: &str| {
        let fates = text
            .lines()
            .filter_map(|line| Some(line.split_once(' ')?.1));
        fates.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(fates(&file), ["10.000us", "<paused>", "<open>"]);
    assert_eq!(fates(&streamed), ["<paused>", "10.000us", "<open>"]);
    assert_eq!(sorted(&streamed), sorted(&file));
}

/// Threads that never come again: of those that a pause ended, none is said to be open.
#[test]
fn spans_that_a_pause_ended_take_no_room_of_open_ones() {
    const THREADS: u64 = 40_000;
    let mut recording = start();
    // An event each two microseconds.
    pause(&mut recording, 0, 2 * THREADS - 1, 2 * THREADS);
    for at in 0..2 * THREADS {
        recording.hit(Hit {
            tid: 1000 + at as i32,
            time: START + at * 2000,
            ..HIT
        });
        if at % 3000 == 0 {
            recording.flush();
        }
    }
    let recorded = recording.finish();
    let options = requests(Some("{tid} {span}"));
    let [(file, _), (streamed, notices)] = both(&recorded, 1000, &options);
    assert_eq!(notices.forgotten, 0);
    assert!(sorted(&streamed) == sorted(&file));
    let of = |fate: &str| streamed.lines().filter(|line| line.ends_with(fate)).count();
    let both = [of("<paused>"), of("<open>")];
    assert_eq!(both, [THREADS as usize; 2]);
}

/// So many that a stream forgets the names that no thread has any more, and numbers the others anew.
fn many_processes(recording: &mut Recording) {
    for number in 0..10_000_u64 {
        let (time, pid) = (START + 100_000 + number * STEP, 1000 + number as i32);
        recording.comm(time, (pid, pid), &format!("job {number}"), true);
    }
}

/// Many processes begin while spans are open, and threads get other names: those that had others at the begins of the spans.
#[test]
fn a_begin_that_is_kept_has_the_name_of_its_thread() {
    let mut recording = start();
    for (tid, name) in [(101, "paused"), (102, "ended"), (103, "open")] {
        recording.comm(0, (100, tid), name, false);
    }
    pause(&mut recording, 0, 20, 30);
    hits(
        &mut recording,
        &[(10, 101, REQUEST), (40, 102, REQUEST), (50, 103, REQUEST)],
    );
    for tid in [101, 102, 103] {
        recording.comm(START + 60_000, (100, tid), "renamed", false);
    }
    many_processes(&mut recording);
    hits(
        &mut recording,
        &[(20_000, 101, REQUEST), (20_001, 102, DONE)],
    );
    let recorded = recording.finish();
    let options = requests(Some("{begin.comm} {span} {comm}"));
    let [(file, _), (streamed, _)] = both(&recorded, 500, &options);
    let expected = [
        "ended 19.961ms renamed",
        "open <open> open",
        "paused <paused> paused",
        "renamed <open> renamed",
    ];
    assert_eq!(sorted(&file), expected);
    assert_eq!(sorted(&streamed), expected);
}

/// Names have other numbers at the end of a span than at its begin.
#[test]
fn spans_are_matched_by_the_text_of_a_name() {
    let mut recording = start();
    recording.comm(0, (100, 101), "worker", false);
    hits(&mut recording, &[(10, 101, REQUEST)]);
    many_processes(&mut recording);
    hits(&mut recording, &[(20_000, 101, DONE)]);
    let recorded = recording.finish();
    for key in [&["pid"][..], &["comm"], &["comm", "pid"]] {
        let mut options = requests(Some("{comm} {span}"));
        if let Some(spans) = &mut options.spans {
            spans.key = key.iter().map(|&key| key.to_owned()).collect();
        }
        for (text, _) in both(&recorded, 500, &options) {
            assert_eq!(text, "worker 19.990ms\n", "{key:?}");
        }
    }
}

/// More pauses than are kept one by one.
#[test]
fn a_long_stream_says_what_a_file_says_of_pauses() {
    const PAUSES: u64 = 20_000;
    let mut recording = start();
    hits(&mut recording, &[(10, 101, REQUEST)]);
    for number in 0..PAUSES {
        let from = number * 10 + 20;
        pause(&mut recording, number, from, from + 5);
    }
    let last = PAUSES * 10 + 20;
    hits(
        &mut recording,
        &[
            (last, 102, DONE),
            (last + 10, 101, REQUEST),
            (last + 20, 101, DONE),
        ],
    );
    let recorded = recording.finish();
    let [(file, of_file), (streamed, of_stream)] = both(&recorded, 1000, &requests(None));
    assert_eq!(sorted(&streamed), sorted(&file));
    assert_eq!(of_stream.paused, of_file.paused);
    assert_eq!(of_file.paused[0].part.pauses, PAUSES);
}

/// Requests of one thread that overlap are matched by their ids in a file; of a stream it is said that they overlap.
#[test]
fn a_stream_says_that_spans_of_a_thread_overlap() {
    let mut recording = Recording::usual();
    for round in 0..200 {
        for (at, id, number) in [
            (0, REQUEST, 2 * round),
            (1, REQUEST, 2 * round + 1),
            (2, DONE, 2 * round),
            (3, DONE, 2 * round + 1),
        ] {
            recording.hit(Hit {
                id,
                time: HIT.time + (10 * round + at) * 1000,
                ax: 5000 + number,
                ..HIT
            });
        }
    }
    let options = ScriptOptions {
        fields: "+span".parse().unwrap(),
        ..ScriptOptions::default()
    };
    let [(_, file), (_, stream)] = both(&recording.finish(), 7, &options);
    assert!(file.overlaps.is_empty());
    let overlaps = stream.overlaps.iter();
    let overlaps = overlaps.map(|overlap| [&*overlap.span, &*overlap.argument]);
    assert_eq!(overlaps.collect::<Vec<_>>(), [["app:request", "arg1"]]);
}
