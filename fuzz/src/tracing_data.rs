//! The formats of tracepoints: a `TRACING_DATA` section.

use usdtrec_format::perf::{Attr, EventAttr, SampleType, TracepointFormat, TracingData};
use usdtrec_format::trace::{Compression, TraceInfo, TraceWriter};

use super::file::Scratch;
use super::shown;

/// Reads the section and shows samples of its first formats, whose raw part is the section, too.
pub fn run(bytes: &[u8]) {
    let found = TracingData::parse(bytes);
    assert!(
        found
            .cut
            .is_none_or(|cut| cut.at <= bytes.len() && !cut.expected.is_empty())
    );
    found.formats.iter().for_each(check);
    if found.formats.is_empty() {
        return;
    }
    let parts = SampleType::IDENTIFIER | SampleType::IP | SampleType::TID | SampleType::TIME;
    let event = |(at, format): (usize, &TracepointFormat)| EventAttr {
        attr: Attr {
            kind: 2,
            config: format.id.into(),
            sample_type: parts | SampleType::CPU | SampleType::RAW,
            flags: Attr::SAMPLE_ID_ALL,
            ..Attr::default()
        },
        name: String::new(),
        ids: vec![at as u64],
    };
    let events: Vec<EventAttr> = found
        .formats
        .iter()
        .take(4)
        .enumerate()
        .map(event)
        .collect();
    let samples = samples(events.len() as u64, bytes);
    let info = TraceInfo {
        events,
        tracepoints: found.formats,
        ..TraceInfo::default()
    };
    let scratch = Scratch::new(&[]);
    let mut writer = TraceWriter::create(scratch.open(), &info, Compression::None).unwrap();
    writer.push(&samples);
    writer.flush().unwrap();
    shown::some(&scratch.path(), crc32fast::hash(bytes));
}

/// Asks for everything of a format.
pub(super) fn check(format: &TracepointFormat) {
    for field in &format.fields {
        let _ = (field.name(), field.shape(), field.is_address_of_hit());
    }
    let _ = format.is_probe();
}

/// Two samples of each event: one with little in its raw part, one with much.
fn samples(events: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for id in 0..events {
        for raw in [
            &bytes[..bytes.len().min(20)],
            &bytes[..bytes.len().min(4000)],
        ] {
            let padding = (4 + raw.len()).next_multiple_of(8) - 4 - raw.len();
            let size = 8 + 5 * 8 + 4 + raw.len() + padding;
            out.extend((9 | (size as u64) << 48).to_le_bytes());
            for word in [id, 0x1000, 7 | 7 << 32, 1000 + id, 0] {
                out.extend(word.to_le_bytes());
            }
            out.extend(((raw.len() + padding) as u32).to_le_bytes());
            out.extend(raw);
            out.resize(out.len() + padding, 0);
        }
    }
    out
}
