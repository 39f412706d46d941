//! Streams: a pause is known when its record comes, and its end when that of its end comes.

use serde_json::Value;
use usdtrec_format::perf::{RecordType, Records, SampleId};
use usdtrec_format::trace::{BlockReader, Compression, PipeWriter, Trace};
use usdtrec_report::script::{ScriptOptions, SpanRowQuestion};
use usdtrec_report::{
    ContextQuestion, EventSelection, Format, HintWords, Sentences, StreamSummary,
};
use usdtrec_testing::test;

use super::happened::{PROBES, START, end, pauses, put, record, start};
use super::parsed;
use crate::support::{self, Recorded};

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

/// What `script` prints of a stream.
fn print(
    bytes: &[u8],
    context: &ContextQuestion,
    options: &ScriptOptions,
) -> (String, StreamSummary) {
    support::script_of_stream(bytes, &EventSelection::default(), context, options)
}

/// The same with a record in each round.
pub(super) fn json_lines(recorded: &Recorded, context: &ContextQuestion) -> Vec<Value> {
    let options = ScriptOptions {
        format: Format::Json,
        ..ScriptOptions::default()
    };
    let (text, _) = print(&stream(recorded, 1), context, &options);
    text.lines().map(parsed).collect()
}

/// Lines that say the same in any order: of spans without an end, the order is that in which they are found.
fn sorted(text: &str) -> Vec<&str> {
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
        for round in [1, 50, 7000] {
            let bytes = stream(&recorded, round);
            let (text, summary) = print(&bytes, &ContextQuestion::default(), &options);
            assert!(sorted(&text) == sorted(&file), "{round} records in a round");
            let said = |notices: &usdtrec_report::Notices| notices.sentences(HintWords::default());
            assert_eq!(said(&summary.notices), said(&notices));
            assert_eq!(notices.paused.len(), 2);
        }
    }
}
