//! Reads a trace from a pipe while it is written.

use std::io::{ErrorKind, Read};

use super::chunk::{ChunkHeader, RECORD_HEADER};
use super::codec::{FrameDecompressor, StreamDecompressor};
use super::damage::{ChunkDamage, Damage, DamageKind, StreamError};
use super::limits::Limit;
use super::pipe::{AddedRecords, HeadRecord, PipeHead};
use super::process_cgroup::is_of_processes;
use super::read_error::ReadError;
use super::scan::auxiliary_len;
use super::stream::{MAX_BLOCK, piece};
use super::{Trace, TraceInfo};
use crate::perf::header::FileHeader;
use crate::perf::{RawRecord, RecordType, Records, TracingData, record_header};

/// Size of a read, bytes.
const READ: usize = 256 << 10;
/// Length of records after which [`PipeReader::read`] returns although more have arrived, bytes.
const RETURN_BYTES: usize = 1 << 20;
/// Maximum length of `TRACING_DATA`, and of the records before the first sample, bytes.
const MAX_HEAD: usize = Limit::StreamHead.max() as usize;

/// Reads the output of `usdtrec record -o -` or `perf record -o -` from a pipe. Memory is bounded by the longest block.
pub struct PipeReader<R> {
    input: Input<R>,
    head: Trace,
    /// The head as far as it was read, and records that add events to it.
    info: TraceInfo,
    added: AddedRecords,
    /// Whether `info` has events that were not taken yet.
    has_added: bool,
    /// Records before the first sample that are not part of the head.
    early: Vec<u8>,
    frames: FrameDecompressor,
    frame: Vec<u8>,
    stream: Option<StreamDecompressor>,
    /// The start of a record of the compressed stream that continues in the next piece.
    begun: Vec<u8>,
    damage: Vec<Damage>,
}

impl<R: Read> PipeReader<R> {
    /// Reads the head. Blocks until its last record or the first one after the head arrives.
    ///
    /// # Errors
    /// [`ReadError`] if the data are not a perf.data file in pipe mode.
    pub fn open(input: R) -> Result<Self, ReadError> {
        let mut input = Input {
            input,
            bytes: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
        };
        check_magic(&mut input)?;
        let mut head = PipeHead::default();
        let mut early = Vec::new();
        while early.len() <= MAX_HEAD {
            let offset = input.offset;
            let Some(record) = input.record()? else { break };
            let taken = head.take(&record, offset);
            let len = RECORD_HEADER + record.body.len();
            match taken {
                HeadRecord::Data => break,
                HeadRecord::Other => early.extend_from_slice(input.front(len)),
                HeadRecord::Taken | HeadRecord::TracingData(_) => {}
            }
            input.skip(len);
            if let HeadRecord::TracingData(len) = taken {
                let offset = input.offset;
                let found = formats(&mut input, len)?;
                head.features.take_tracepoints(offset, found);
            }
            if head.is_whole() {
                break;
            }
        }
        let PipeHead {
            attrs,
            mut features,
            ..
        } = head;
        features.finish(attrs);
        Ok(Self {
            input,
            info: features.info.clone(),
            head: Trace::of_head(features.info, features.damage),
            added: AddedRecords::default(),
            has_added: false,
            early,
            frames: FrameDecompressor::default(),
            frame: Vec::new(),
            stream: None,
            begun: Vec::new(),
            damage: Vec::new(),
        })
    }

    /// The head of the trace.
    #[must_use]
    pub fn info(&self) -> &TraceInfo {
        self.head.info()
    }

    /// Takes the head out of the reader, as a [`Trace`] without blocks. Later calls return an empty one.
    pub fn take_head(&mut self) -> Trace {
        let empty = Trace::of_head(TraceInfo::default(), Vec::new());
        std::mem::replace(&mut self.head, empty)
    }

    /// The head with events that were added, if the last [`read`](Self::read) found some: samples of these events come with later reads.
    /// Former events keep their indexes.
    pub fn take_added(&mut self) -> Option<TraceInfo> {
        std::mem::take(&mut self.has_added).then(|| self.info.clone())
    }

    /// Appends the whole records that have arrived, decompressed, including the ends of rounds ([`RecordType::FINISHED_ROUND`]). Blocks
    /// until there is at least one, or events were added. Returns `false` at the end of the stream.
    ///
    /// # Errors
    /// [`ReadError::Read`], with the offset in the stream.
    pub fn read(&mut self, out: &mut Vec<u8>) -> Result<bool, ReadError> {
        let before = out.len();
        out.append(&mut self.early);
        loop {
            let found = out.len() - before;
            if found >= RETURN_BYTES || found > 0 && !self.input.has_record() {
                return Ok(true);
            }
            let Some(record) = self.input.record()? else {
                self.end(out);
                return Ok(out.len() > before);
            };
            let (kind, len) = (record.kind, RECORD_HEADER + record.body.len());
            self.take(kind, len, out);
            let following = match kind {
                RecordType::HEADER_TRACING_DATA => tracing_data_len(self.input.front(len)),
                _ => 0,
            };
            let auxiliary = match kind {
                RecordType::AUXTRACE => auxiliary_len(self.input.front(len)),
                _ => 0,
            };
            self.input.skip(len);
            self.discard_auxiliary(auxiliary)?;
            if following != 0 {
                let offset = self.input.offset;
                let found = formats(&mut self.input, following)?;
                self.added.take_tracepoints(offset, found);
            }
            self.damage.append(&mut self.added.take_damage());
            if self.has_added {
                return Ok(true);
            }
        }
    }

    /// Reads and discards the data after an `AUXTRACE` record.
    fn discard_auxiliary(&mut self, len: u64) -> Result<(), ReadError> {
        let start = self.input.offset;
        self.input
            .discard(usize::try_from(len).unwrap_or(usize::MAX))?;
        let rest = (self.input.offset - start) as usize;
        if (rest as u64) < len {
            let kind = DamageKind::CutStream { rest };
            self.damage.push(Damage::new(start, kind));
        }
        Ok(())
    }

    /// Takes a record of a head at the front, which may add events.
    fn take_head_record(&mut self, len: usize) -> Result<(), DamageKind> {
        let Some(record) = Records::new(self.input.front(len)).next() else {
            return Ok(());
        };
        let offset = self.input.offset;
        self.has_added |= self.added.take(&record, offset, &mut self.info)?;
        Ok(())
    }

    /// Damage found since the last call, with offsets in the stream.
    pub fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }

    /// Number of bytes read from the stream.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.input.offset
    }

    /// Appends the contents of the record of `len` bytes at the front.
    fn take(&mut self, kind: RecordType, len: usize, out: &mut Vec<u8>) {
        let bytes = self.input.front(len);
        let done = match kind {
            RecordType::COMPRESSED | RecordType::COMPRESSED2 => match ChunkHeader::parse(bytes) {
                Some(header) => match header.frame(bytes) {
                    Some(frame) => self
                        .frames
                        .decompress(frame, header.raw_len as usize, &mut self.frame)
                        .map(|()| out.extend_from_slice(&self.frame))
                        .map_err(|error| DamageKind::Chunk(error.into())),
                    None => Err(DamageKind::Chunk(ChunkDamage::Checksum)),
                },
                None => self.take_piece(len, out).map_err(DamageKind::Stream),
            },
            // What follows them is taken later.
            RecordType::HEADER_TRACING_DATA | RecordType::AUXTRACE => Ok(()),
            RecordType::HEADER_ATTR | RecordType::HEADER_FEATURE => self.take_head_record(len),
            RecordType::HEADER_EVENT_TYPE
                if !bytes.get(RECORD_HEADER..).is_some_and(is_of_processes) =>
            {
                self.take_head_record(len)
            }
            _ => {
                out.extend_from_slice(bytes);
                Ok(())
            }
        };
        if let Err(kind) = done {
            self.damage.push(Damage::new(self.input.offset, kind));
        }
    }

    /// Decompresses a piece of the stream of `perf record -z`.
    fn take_piece(&mut self, len: usize, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let Some(record) = Records::new(self.input.front(len)).next() else {
            return Ok(());
        };
        let piece = piece(&record).ok_or(StreamError::Cut)?;
        let stream = match &mut self.stream {
            Some(stream) => stream,
            empty => empty.insert(StreamDecompressor::new()?),
        };
        stream.decompress(piece, MAX_BLOCK, &mut self.begun)?;
        self.take_begun(out)
    }

    /// Moves the whole records of the compressed stream to `out`.
    fn take_begun(&mut self, out: &mut Vec<u8>) -> Result<(), StreamError> {
        let mut records = Records::new(&self.begun);
        records.by_ref().for_each(drop);
        let whole = records.offset();
        out.extend(self.begun.drain(..whole));
        if self.begun.len() > usize::from(u16::MAX) {
            self.begun.clear();
            return Err(StreamError::NoRecords);
        }
        Ok(())
    }

    /// At the end of the stream: takes the rest of a compressed stream, and adds damage if bytes remain that are not a whole record.
    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(mut stream) = self.stream.take() {
            stream.finish(MAX_BLOCK, &mut self.begun);
            // A remaining partial record is reported below.
            let _ = self.take_begun(out);
        }
        let rest = self.input.rest().len() + self.begun.len();
        if rest != 0 {
            let kind = DamageKind::CutStream { rest };
            self.damage.push(Damage::new(self.input.offset, kind));
            self.begun.clear();
            self.input.skip(self.input.rest().len());
        }
    }
}

fn check_magic<R: Read>(input: &mut Input<R>) -> Result<(), ReadError> {
    input.fill(FileHeader::PIPE_LEN)?;
    let start = input.rest();
    let magic = start.get(..8).unwrap_or(start);
    if magic != FileHeader::MAGIC {
        let found = match magic {
            [] => "the end of the stream".to_owned(),
            magic => format!("\"{}\"", magic.escape_ascii()),
        };
        return Err(ReadError::format(
            0,
            "\"PERFILE2\" (a perf.data stream)",
            found,
        ));
    }
    let len = start.get(8..).and_then(|len| len.first_chunk());
    match len.map(|len| u64::from_le_bytes(*len)) {
        Some(len) if len == FileHeader::PIPE_LEN as u64 => {
            input.skip(FileHeader::PIPE_LEN);
            Ok(())
        }
        found => Err(ReadError::format(
            8,
            "header size 16 (the stream of a pipe)",
            found.map_or_else(
                || "the end of the stream".to_owned(),
                |len| {
                    format!("{len}: a file, which cannot be read from a pipe: open it by its path")
                },
            ),
        )),
    }
}

/// Reads the formats of tracepoints, which follow their record.
fn formats<R: Read>(input: &mut Input<R>, len: u32) -> Result<TracingData, ReadError> {
    let len = len as usize;
    if len > MAX_HEAD {
        input.discard(len)?;
        return Ok(TracingData::default());
    }
    input.fill(len)?;
    let there = input.rest().len().min(len);
    let found = TracingData::parse(input.front(there));
    input.skip(there);
    Ok(found)
}

fn tracing_data_len(record: &[u8]) -> u32 {
    let len = record
        .get(RECORD_HEADER..)
        .and_then(|body| body.first_chunk());
    len.map_or(0, |len| u32::from_le_bytes(*len))
}

/// Buffered input.
struct Input<R> {
    input: R,
    /// The buffer.
    bytes: Vec<u8>,
    /// Range of the buffer that was read and not taken yet.
    start: usize,
    end: usize,
    /// Offset in the stream of the first byte that is not taken yet.
    offset: u64,
}

impl<R: Read> Input<R> {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// The first `len` bytes, or all if there are fewer.
    fn front(&self, len: usize) -> &[u8] {
        let rest = self.rest();
        rest.get(..len).unwrap_or(rest)
    }

    fn skip(&mut self, len: usize) {
        self.start += len;
        self.offset += len as u64;
    }

    /// Reads until `len` bytes are buffered, or the stream ends.
    fn fill(&mut self, len: usize) -> Result<(), ReadError> {
        if self.rest().len() >= len {
            return Ok(());
        }
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.bytes.len() < len {
            self.bytes.resize(len.max(READ), 0);
        }
        while self.end < len {
            match self.input.read(&mut self.bytes[self.end..]) {
                Ok(0) => return Ok(()),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let read = (self.end - self.start) as u64;
                    return Err(ReadError::at(self.offset + read)(error));
                }
            }
        }
        Ok(())
    }

    /// Reads and discards `len` bytes, without buffering all of them.
    fn discard(&mut self, mut len: usize) -> Result<(), ReadError> {
        while len > 0 {
            self.fill(1)?;
            let there = self.rest().len().min(len);
            if there == 0 {
                return Ok(());
            }
            self.skip(there);
            len -= there;
        }
        Ok(())
    }

    /// Whether a whole record is buffered.
    fn has_record(&self) -> bool {
        Records::new(self.rest()).next().is_some()
    }

    /// Reads the next record, without taking it; `None` if the stream ends, or the bytes are not a record.
    fn record(&mut self) -> Result<Option<RawRecord<'_>>, ReadError> {
        self.fill(RECORD_HEADER)?;
        let Some((.., size)) = record_header(self.rest()) else {
            return Ok(None);
        };
        self.fill(size)?;
        Ok(Records::new(self.rest()).next())
    }
}
