//! Pieces of a head: events that are added while recording, before the next whole head.
//!
//! perf wants the attrs, names and formats of all events in one piece ([`added_events`](super::added_events)). Where each addition writes them anew, the
//! file grows with the square of the additions. So a whole head is written while all heads are short, when they have doubled, and at the end.
//! Other additions are pieces, which only our readers know; until the next whole head, stock perf leaves out the hits of these events.
//!
//! A piece is a blob in records of type 65 as definitions are, with the magic `USDTMORE`:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 4 | version of this table: 1 |
//! | 4 | 4 | CRC-32 (IEEE) of the rest |
//! | 8 | 8 | file offset of the first record of the previous piece; 0 if a whole head is before it |
//! | 16 | 8 | number of events before it |
//! | 24 | 8 | length of the records, bytes |
//! | 32 | | zstd frame of the records that a [stream](super::pipe) has of added events |
//!
//! The newest node of the [`index`](super::index) has the offset of the newest piece.

use std::sync::Arc;

use super::chunk::RECORD_HEADER;
use super::damage::{Damage, DamageKind};
use super::definitions_record::{self, MORE_MAGIC};
use super::known_events::EventsPart;
use super::limits::Limit;
use super::pipe::AddedRecords;
use super::pipe_writer::put_part;
use super::read_error::ReadError;
use super::reader::Trace;
use super::trace_files::TraceFiles;
use super::write_error::WriteError;
use super::{AddedEventsFault, TraceInfo, codec};
use crate::perf::cursor::Cursor;
use crate::perf::{RecordType, Records, TracingData};

const VERSION: u32 = 1;
/// Maximum length of all pieces and of their records, bytes: more than those of as many events as a trace has.
const MAX_PIECES: u64 = 4 * Limit::StreamHead.max();
/// Length of what precedes the frame.
const FRAME_AT: usize = 32;

/// Appends a piece with `part`, which follows `former` events of `info` and the piece at `previous`. Returns `false` if it is longer than what is
/// read.
///
/// # Errors
/// [`WriteError::Event`], [`WriteError::Definitions`].
pub(crate) fn put(
    info: &TraceInfo,
    part: &EventsPart<'_>,
    previous: u64,
    former: usize,
    out: &mut Vec<u8>,
) -> Result<bool, WriteError> {
    let mut records = Vec::new();
    put_part(info, part, &mut records)?;
    if records.len() as u64 > Limit::StreamHead.max() {
        return Ok(false);
    }
    let frame = definitions_record::compress(&records).map_err(WriteError::Definitions)?;
    let mut blob = VERSION.to_le_bytes().to_vec();
    blob.extend([0; 4]);
    for number in [previous, former as u64, records.len() as u64] {
        blob.extend(number.to_le_bytes());
    }
    blob.extend(frame);
    let crc = crc32fast::hash(blob.get(8..).unwrap_or_default());
    blob.splice(4..8, crc.to_le_bytes());
    definitions_record::put_records(MORE_MAGIC, &blob, out);
    Ok(true)
}

/// A piece in a file.
struct Piece {
    previous: u64,
    /// Number of events before it.
    former: u64,
    /// Length of the records, bytes.
    len: u64,
    blob: Vec<u8>,
}

impl Piece {
    /// The piece at an offset; `None` if it is damaged.
    fn read(source: &TraceFiles, at: u64) -> Result<Option<Self>, ReadError> {
        let blob = definitions_record::read_records(source, at, MORE_MAGIC)?;
        Ok(blob.and_then(Self::parse))
    }

    fn parse(blob: Vec<u8>) -> Option<Self> {
        let mut cursor = Cursor::new(&blob);
        cursor.u32()?;
        let crc = cursor.u32()?;
        (crc == crc32fast::hash(cursor.rest())).then_some(())?;
        let (previous, former, len) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        let believed = definitions_record::max_content(cursor.rest().len() as u64);
        (len <= believed.min(Limit::StreamHead.max())).then_some(Self {
            previous,
            former,
            len,
            blob,
        })
    }

    /// The records; `None` if they are damaged.
    fn records(&self) -> Option<Vec<u8>> {
        let records = codec::decompress(self.blob.get(FRAME_AT..)?, self.len + 1);
        records
            .ok()
            .filter(|records| records.len() as u64 == self.len)
    }
}

/// Adds the events of pieces, of which the newest is at an offset; 0 if there are none.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn read(trace: &mut Trace, newest: u64) -> Result<(), ReadError> {
    let mut offsets = Vec::new();
    let mut at = newest;
    let mut room = MAX_PIECES;
    while at != 0 {
        let piece = Piece::read(&trace.source, at)?;
        // Each piece has events.
        let piece = piece.filter(|_| (offsets.len() as u64) < Limit::Events.max());
        let left = piece
            .as_ref()
            .and_then(|piece| room.checked_sub(piece.blob.len() as u64 + piece.len));
        let (Some(piece), Some(left)) = (piece, left) else {
            trace.damage.push(damage(at, AddedEventsFault::Damaged));
            break;
        };
        room = left;
        offsets.push(at);
        at = match piece.previous {
            previous if previous < at => previous,
            _ => 0,
        };
    }
    let mut added = AddedRecords::default();
    for at in offsets.into_iter().rev() {
        let Some(piece) = Piece::read(&trace.source, at)? else {
            break;
        };
        if piece.former != trace.info.events.len() as u64 {
            let fault = AddedEventsFault::FormerEvents;
            trace.damage.push(damage(at, fault));
            break;
        }
        let Some(records) = piece.records() else {
            trace.damage.push(damage(at, AddedEventsFault::Damaged));
            break;
        };
        add(trace, &mut added, at, &records);
    }
    Ok(())
}

/// Adds the events of the records of a piece.
fn add(trace: &mut Trace, added: &mut AddedRecords, at: u64, records: &[u8]) {
    let mut rest = records;
    while let Some(record) = Records::new(rest).next() {
        let mut end = RECORD_HEADER + record.body.len();
        if record.kind == RecordType::HEADER_TRACING_DATA {
            let len = Cursor::new(record.body).u32().unwrap_or_default() as usize;
            let section = rest.get(end..end.saturating_add(len)).unwrap_or_default();
            added.take_tracepoints(at, TracingData::parse(section));
            end = end.saturating_add(len);
        } else if let Err(kind) = added.take(&record, at, Arc::make_mut(&mut trace.info)) {
            trace.damage.push(Damage::new(at, kind));
        }
        trace.damage.append(&mut added.take_damage());
        rest = rest.get(end..).unwrap_or_default();
    }
}

const fn damage(at: u64, fault: AddedEventsFault) -> Damage {
    Damage::new(at, DamageKind::AddedEvents(fault))
}
