//! Reads the head of a trace in pipe mode (`perf record -o -`): the records of types 64, 66 and 80 before the first sample.
//!
//! | bytes | |
//! |---|---|
//! | 8, 8 | `PERFILE2`, 16 |
//! | records 64 | attr, ids |
//! | records 80 | features: number (8), body. `COMPRESSED` first; `EVENT_DESC` after the attrs that it names |
//! | record 66 | length (4), 0 (4); that many bytes of `TRACING_DATA` follow the record |
//! | records 65 | the probe definitions, which perf ignores |
//! | records 64, 80, 66, 65 | between rounds: events that are added while recording, and their definitions; those of all events in streams of usdtrec 0.1 |
//! | records | data, as in a file |

use std::sync::Arc;

use super::chunk::RECORD_HEADER;
use super::damage::{AddedEventsFault, Damage, DamageKind};
use super::definitions_record::{self, Parts};
use super::features::Features;
use super::file_head::{AttrIds, MAX_ATTRS};
use super::known_events::KnownEvents;
use super::limits::Limit;
use super::read_error::ReadError;
use super::reader::Trace;
use super::trace_files::TraceFiles;
use super::window::Window;
use super::{TraceInfo, added_events};
use crate::perf::cursor::Cursor;
use crate::perf::feature::{Feature, take_ids};
use crate::perf::header::{FileHeader, Section};
use crate::perf::{Attr, RawRecord, RecordType, Records, TracingData};

/// The contents of a head.
#[derive(Debug, Default)]
pub(crate) struct PipeHead {
    /// Attrs and ids.
    pub(crate) attrs: Vec<AttrIds>,
    /// Features.
    pub(crate) features: Features,
    definitions: Parts,
}

/// The role of a record in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadRecord {
    /// A part of the head.
    Taken,
    /// This many bytes of `TRACING_DATA` follow the record.
    TracingData(u32),
    /// Not a part of the head; more of the head may follow.
    Other,
    /// The first record after the head.
    Data,
}

impl PipeHead {
    /// Whether it has the definitions, after which no more of it follows: further attrs are those of events that are added.
    pub(crate) const fn is_whole(&self) -> bool {
        self.features.info.definitions.is_some()
    }

    /// Takes a record whose header is at `offset` in the stream.
    pub(crate) fn take(&mut self, record: &RawRecord<'_>, offset: u64) -> HeadRecord {
        let body_at = offset + RECORD_HEADER as u64;
        match record.kind {
            RecordType::SAMPLE
            | RecordType::COMPRESSED
            | RecordType::COMPRESSED2
            | RecordType::FINISHED_ROUND
            | RecordType::AUXTRACE => return HeadRecord::Data,
            RecordType::HEADER_ATTR if self.attrs.len() as u64 >= MAX_ATTRS => {}
            RecordType::HEADER_ATTR => self.attrs.extend(attr(record)),
            RecordType::HEADER_FEATURE => {
                let mut cursor = Cursor::new(record.body);
                let number = cursor.u64().and_then(|number| u32::try_from(number).ok());
                if let Some(number) = number {
                    self.features
                        .take(Feature(number), body_at + 8, cursor.rest());
                }
            }
            RecordType::HEADER_TRACING_DATA => {
                let len = Cursor::new(record.body).u32().unwrap_or_default();
                return HeadRecord::TracingData(len);
            }
            RecordType::HEADER_EVENT_TYPE => {
                if let Some(blob) = self.definitions.take(record) {
                    self.features.take_definitions(body_at, &blob);
                }
            }
            _ => return HeadRecord::Other,
        }
        HeadRecord::Taken
    }
}

/// Events that are added in the middle of a stream, by records as those of its head. The definitions are the last of them.
#[derive(Debug, Default)]
pub(crate) struct AddedRecords {
    head: PipeHead,
    /// The events so far, once some were added.
    known: Option<KnownEvents>,
    /// Length of the records, bytes.
    len: usize,
}

impl AddedRecords {
    /// Maximum length of the records, bytes.
    const MAX: usize = Limit::StreamHead.max() as usize;

    /// Takes a record of types 64, 65 or 80 whose header is at `offset`. With the last one, the head gets the events. Returns whether it did.
    ///
    /// # Errors
    /// [`DamageKind`] if the events are not those of a recorder: they are ignored.
    pub(crate) fn take(
        &mut self,
        record: &RawRecord<'_>,
        offset: u64,
        info: &mut TraceInfo,
    ) -> Result<bool, DamageKind> {
        let is_part = record.kind == RecordType::HEADER_EVENT_TYPE;
        if is_part && (self.head.attrs.is_empty() || !definitions_record::is_part(record.body)) {
            return Ok(false);
        }
        self.len = self.len.saturating_add(record.body.len());
        if self.len > Self::MAX {
            self.take_head();
            let fault = AddedEventsFault::TooLong { max: Self::MAX };
            return Err(DamageKind::AddedEvents(fault));
        }
        self.head.take(record, offset);
        if !self.head.is_whole() {
            return Ok(false);
        }
        let PipeHead {
            attrs,
            mut features,
            ..
        } = self.take_head();
        features.finish(attrs);
        let known = self.known.get_or_insert_with(|| KnownEvents::new(info));
        let joined = added_events::join(info, known, features.info);
        joined.map(|()| true).map_err(DamageKind::AddedEvents)
    }

    fn take_head(&mut self) -> PipeHead {
        self.len = 0;
        std::mem::take(&mut self.head)
    }

    /// Takes the formats of tracepoints.
    pub(crate) fn take_tracepoints(&mut self, offset: u64, found: TracingData) {
        self.head.features.take_tracepoints(offset, found);
    }

    /// Takes out the damage found.
    pub(crate) fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.head.features.damage)
    }
}

/// Adds the events of records in the middle of a pipe's data that were stored in a file.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn add_events(trace: &mut Trace, records: &[u64]) -> Result<(), ReadError> {
    let mut added = AddedRecords::default();
    let mut bytes = Vec::new();
    for &at in records {
        trace.source.read_record(at, &mut bytes)?;
        let Some(record) = Records::new(&bytes).next() else {
            continue;
        };
        if record.kind == RecordType::HEADER_TRACING_DATA {
            let len = Cursor::new(record.body).u32().unwrap_or_default() as usize;
            let at = at + (RECORD_HEADER + record.body.len()) as u64;
            let section = trace.source.bytes(at, len.min(AddedRecords::MAX))?;
            added.take_tracepoints(at, TracingData::parse(&section));
        } else {
            let taken = added.take(&record, at, Arc::make_mut(&mut trace.info));
            let damage = taken.err().map(|kind| Damage::new(at, kind));
            trace.damage.extend(damage);
        }
        trace.damage.append(&mut added.take_damage());
    }
    Ok(())
}

/// Reads the head of a pipe's data that were stored in a file. Returns its end, too.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn read_head(source: &TraceFiles) -> Result<(PipeHead, u64), ReadError> {
    let mut window = Window::new(source);
    let mut head = PipeHead::default();
    let mut at = FileHeader::PIPE_LEN as u64;
    loop {
        let bytes = window.peek(at, usize::from(u16::MAX))?;
        let Some(record) = Records::new(bytes).next() else {
            return Ok((head, at));
        };
        let taken = head.take(&record, at);
        at += (RECORD_HEADER + record.body.len()) as u64;
        match taken {
            HeadRecord::Data => return Ok((head, at)),
            HeadRecord::Taken if head.is_whole() => return Ok((head, at)),
            HeadRecord::TracingData(len) => {
                let section = Section {
                    offset: at,
                    size: u64::from(len),
                };
                head.features.tracing_data = Some(section);
                at = section.end();
            }
            HeadRecord::Taken | HeadRecord::Other => {}
        }
    }
}

/// Parses a record of type 64: an attr, whose size field gives its length, and ids.
fn attr(record: &RawRecord<'_>) -> Option<AttrIds> {
    let size = record.body.get(4..)?.first_chunk::<4>()?;
    let (attr, ids) = record
        .body
        .split_at_checked(u32::from_le_bytes(*size) as usize)?;
    Some(AttrIds {
        attr: Attr::parse(attr)?,
        ids: take_ids(ids),
    })
}
