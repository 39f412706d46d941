//! The head of a pipe's stream (`perf record -o -`): records of the types 64, 66 and 80 before the first sample.

use std::io;

use super::chunk::RECORD_HEADER;
use super::features::Features;
use super::source::Source;
use super::window::Window;
use crate::perf::cursor::Cursor;
use crate::perf::feature::{Feature, take_ids};
use crate::perf::header::{FileHeader, Section};
use crate::perf::{Attr, RawRecord, RecordType, Records};

/// Reads attrs and features.
///
/// # Errors
/// The system call's.
pub(crate) fn read_head(
    source: &Source,
    features: &mut Features,
) -> io::Result<Vec<(Attr, Vec<u64>)>> {
    let mut window = Window::new(source);
    let mut attrs = Vec::new();
    let mut at = FileHeader::PIPE_LEN as u64;
    loop {
        let bytes = window.peek(at, usize::from(u16::MAX))?;
        let Some(record) = Records::new(bytes).next() else {
            return Ok(attrs);
        };
        let body_at = at + RECORD_HEADER as u64;
        at = body_at + record.body.len() as u64;
        match record.kind {
            RecordType::SAMPLE | RecordType::COMPRESSED | RecordType::COMPRESSED2 => {
                return Ok(attrs);
            }
            RecordType::HEADER_ATTR => attrs.extend(attr(&record)),
            RecordType::HEADER_FEATURE => {
                let mut cursor = Cursor::new(record.body);
                let number = cursor.u64().and_then(|number| u32::try_from(number).ok());
                if let Some(number) = number {
                    features.take(Feature(number), body_at + 8, cursor.rest());
                }
            }
            RecordType::HEADER_TRACING_DATA => {
                let len = Cursor::new(record.body).u32().unwrap_or_default();
                let section = Section {
                    offset: at,
                    size: u64::from(len),
                };
                features.tracing_data = Some(section);
                at = section.end();
            }
            _ => {}
        }
    }
}

/// Type 64: an attr, as long as its own size says, and ids.
fn attr(record: &RawRecord<'_>) -> Option<(Attr, Vec<u64>)> {
    let size = record.body.get(4..)?.first_chunk::<4>()?;
    let (attr, ids) = record
        .body
        .split_at_checked(u32::from_le_bytes(*size) as usize)?;
    Some((Attr::parse(attr)?, take_ids(ids)))
}
