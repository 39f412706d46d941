//! Writes a trace to a pipe.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use super::chunk::RECORD_HEADER;
use super::clock_readings::{self, ClockReading};
use super::codec::Compression;
use super::definitions_record::PART_MAGIC;
use super::footer::{MIN_RECORD, put_ignored_record};
use super::head::{check_attrs, feature_bodies};
use super::index::IndexEntry;
use super::known_events::{EventsPart, KnownEvents};
use super::limits::Limit;
use super::loss_counts::put_loss;
use super::new_events::NewEvents;
use super::part_queue::PartQueue;
use super::section_records::MAX_RECORD;
use super::sink::Sink;
use super::write_error::{EventFault, WriteError};
use super::{Loss, Storage, Totals, TraceInfo, definitions_record};
use crate::definitions::Definitions;
use crate::perf::feature::{Feature, put_event_desc, put_name_and_ids};
use crate::perf::header::FileHeader;
use crate::perf::record::RecordBuilder;
use crate::perf::tracing_data::put_aligned_tracing_data;
use crate::perf::{Attr, EventAttr, RecordType, SampleType, TracepointFormat};

/// Maximum length of a record's body, bytes.
const MAX_BODY: usize = u16::MAX as usize / 8 * 8 - RECORD_HEADER;
/// Approximate maximum length of an `EVENT_DESC` record, bytes. There may be several.
const DESC_PART: usize = 32 << 10;

/// Writes a trace in pipe mode, which stock perf and [`PipeReader`](super::PipeReader) read while it is written.
///
/// There is no index and no footer: each record is valid as soon as it is written.
pub struct PipeWriter<W: Write> {
    pipe: Append<W>,
    /// Records since the last round.
    queue: PartQueue,
    totals: Totals,
    /// The events so far, and what describes them.
    info: TraceInfo,
    known: KnownEvents,
    formats: WrittenFormats,
    /// Whether a reader waits for the end of another round before it can show all events of the last one.
    unsettled: bool,
    /// Buffer of [`Sink`]s.
    out: Vec<u8>,
    id_type: SampleType,
}

impl<W: Write> PipeWriter<W> {
    /// Writes the head.
    ///
    /// The attrs must be as for [`TraceWriter::create`](super::TraceWriter::create).
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn create(
        output: W,
        info: &TraceInfo,
        compression: Compression,
    ) -> Result<Self, WriteError> {
        check_attrs(&info.events)?;
        let known = KnownEvents::new(info);
        known.size.check()?;
        let id_type = info
            .events
            .first()
            .map_or_else(SampleType::default, |event| event.attr.id_type());
        let mut writer = Self {
            pipe: Append {
                output,
                at: 0,
                broken: false,
            },
            queue: PartQueue::new(id_type, compression).map_err(WriteError::Compressor)?,
            totals: Totals::default(),
            info: info.clone(),
            known,
            formats: WrittenFormats::default(),
            unsettled: false,
            out: Vec::new(),
            id_type,
        };
        let mut head = FileHeader::MAGIC.to_vec();
        head.extend((FileHeader::PIPE_LEN as u64).to_le_bytes());
        for event in &info.events {
            put_attr(event, &mut head)?;
        }
        put_features(info, compression, &mut head);
        writer.formats.put(&info.tracepoints, &mut head);
        put_definitions(info.definitions.as_ref(), &mut head)?;
        Limit::StreamHead.check(head.len() as u64)?;
        writer.write(&head)?;
        writer.flush_output()?;
        Ok(writer)
    }

    /// The events so far, and what describes them.
    #[must_use]
    pub const fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// Writes events that are added. Call it only between flushes.
    ///
    /// # Errors
    /// As for [`TraceWriter::add_events`](super::TraceWriter::add_events), and [`WriteError::Io`].
    pub fn add_events(&mut self, new: NewEvents) -> Result<(), WriteError> {
        let part = new.part();
        let mut records = Vec::new();
        for event in part.events {
            put_attr(event, &mut records)?;
        }
        put_added_names(&self.info.events, part.events, &mut records);
        let mut formats = self.formats;
        formats.put(part.formats, &mut records);
        put_definitions(definitions_of(&self.info, &part).as_ref(), &mut records)?;
        Limit::StreamHead.check(records.len() as u64)?;
        let checked = self.known.check(&self.info.events, &part)?;
        self.known.take(checked);
        new.add_to(&mut self.info);
        self.formats = formats;
        self.write(&records)?;
        self.flush_output()
    }

    /// Buffers whole records, as [`TraceWriter::push`](super::TraceWriter::push) does.
    pub fn push(&mut self, records: &[u8]) {
        self.queue.push(records);
    }

    /// Allows several threads to compress, as [`TraceWriter::set_threads`](super::TraceWriter::set_threads) does.
    pub fn set_threads(&mut self, threads: NonZeroUsize, at_once: bool) {
        self.queue.set_threads(threads, at_once);
    }

    /// Length of the records that are not written yet, bytes.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queue.pending()
    }

    /// Length of the records that were pushed since the last flush or part, bytes.
    #[must_use]
    pub fn unflushed(&self) -> usize {
        self.queue.unflushed()
    }

    /// Begins to compress the records that were pushed, if there are helpers. They are written with the next round, so that a reader, which
    /// cannot go back, has a pass over all rings as one round.
    pub fn compress_part(&mut self) {
        if self.queue.pool.most_helpers() > 0 && self.unflushed() != 0 {
            self.queue.begin_part(false);
        }
    }

    /// Totals of the records flushed so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether [`flush`](Self::flush) is useful even if nothing is [`pending`](Self::pending). A reader shows a round after the end of the
    /// next one, because until then an earlier sample of another CPU may follow.
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// Writes all buffered records as one round. Call it only between passes over all rings.
    ///
    /// # Errors
    /// [`WriteError`]; after [`WriteError::Io`] nothing more can be written.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        let pending = self.pending();
        if pending != 0 || self.unsettled {
            self.write_round()?;
            self.unsettled = pending != 0;
        }
        self.queue.check_refusal()
    }

    /// As [`flush`](Self::flush), but writes the end of a round even if there are no records, so that a reader sees time pass.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn end_round(&mut self) -> Result<(), WriteError> {
        self.unsettled = true;
        self.flush()
    }

    /// Writes losses since the last call. The losses of all calls and of [`finish`](Self::finish) add up.
    ///
    /// # Errors
    /// [`WriteError::Io`], after which nothing more can be written.
    pub fn write_losses(&mut self, losses: &[Loss]) -> Result<(), WriteError> {
        let mut records = Vec::new();
        for loss in losses.iter().filter(|loss| loss.lost != 0) {
            put_loss(loss, self.id_type, &mut records);
        }
        if records.is_empty() {
            return Ok(());
        }
        self.write(&records)?;
        self.flush_output()
    }

    /// Writes readings of the clocks. Call it only between flushes.
    ///
    /// # Errors
    /// [`WriteError::Io`].
    pub fn write_clocks(&mut self, readings: &[ClockReading]) -> Result<(), WriteError> {
        let mut records = Vec::new();
        if clock_readings::put(readings, 0, 0, &mut records).is_none() {
            return Ok(());
        }
        self.write(&records)?;
        self.flush_output()
    }

    /// Flushes, and writes losses since the last [`write_losses`](Self::write_losses).
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn finish(mut self, losses: &[Loss]) -> Result<Totals, WriteError> {
        let flushed = self.flush();
        if let Err(WriteError::Record(_)) | Ok(()) = flushed {
            self.write_losses(losses)?;
        }
        flushed.map(|()| self.totals)
    }

    fn write_round(&mut self) -> Result<(), WriteError> {
        if self.unflushed() != 0 {
            self.queue.begin_part(true);
        }
        let at = self.pipe.at;
        let mut sink = Sink::new(&mut self.pipe, &mut self.out, at);
        let totals = &mut self.totals;
        let mut placed = |entry: IndexEntry| {
            totals.samples += u64::from(entry.counts.samples);
            totals.raw_bytes += u64::from(entry.raw_len);
        };
        let PartQueue { parts, pool, .. } = &mut self.queue;
        for part in &*parts {
            part.write_metadata(pool, &mut sink, &mut placed)?;
        }
        for part in parts {
            part.write_samples(pool, &mut sink, &mut placed)?;
        }
        RecordBuilder::new(sink.out(), RecordType::FINISHED_ROUND, 0).end();
        sink.drain()?;
        self.queue.reuse_all();
        self.totals.file_bytes = self.pipe.at;
        self.flush_output()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let offset = self.pipe.at;
        let written = self.pipe.write_at(bytes, offset);
        self.totals.file_bytes = self.pipe.at;
        written.map_err(|source| WriteError::Io { offset, source })
    }

    fn flush_output(&mut self) -> Result<(), WriteError> {
        let offset = self.pipe.at;
        let flushed = self.pipe.output.flush();
        flushed.map_err(|source| WriteError::Io { offset, source })
    }
}

/// A pipe as [`Storage`] that accepts writes only at the end.
struct Append<W> {
    output: W,
    /// Number of bytes written.
    at: u64,
    /// Whether a write failed, possibly after writing a part.
    broken: bool,
}

impl<W: Write> Storage for Append<W> {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.broken || offset != self.at {
            return Err(io::Error::other("an earlier write to the pipe failed"));
        }
        self.output
            .write_all(bytes)
            .inspect_err(|_| self.broken = true)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn set_len(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Appends the features as records, `COMPRESSED` first. Features that do not fit into a record, or are not known at the start, are omitted.
fn put_features(info: &TraceInfo, compression: Compression, out: &mut Vec<u8>) {
    let mut bodies = feature_bodies(info, compression, &[]);
    bodies.sort_by_key(|(feature, _)| *feature != Feature::COMPRESSED);
    for (feature, body) in &bodies {
        match *feature {
            Feature::SAMPLE_TIME | Feature::TRACING_DATA => {}
            Feature::EVENT_DESC => put_event_descs(&info.events, out),
            feature => put_feature(feature, body, out),
        }
    }
}

/// Appends as many `EVENT_DESC` records as the events need.
fn put_event_descs(events: &[EventAttr], out: &mut Vec<u8>) {
    let size = |event: &EventAttr| 256 + event.name.len() + 8 * event.ids.len();
    let mut rest = events;
    while !rest.is_empty() {
        let mut len = 0;
        let fitting = rest.iter().take_while(|event| {
            len += size(event);
            len <= DESC_PART
        });
        let (part, others) = rest.split_at(fitting.count().max(1));
        let mut body = Vec::new();
        put_event_desc(part, &mut body);
        put_feature(Feature::EVENT_DESC, &body, out);
        rest = others;
    }
}

/// Appends the names of events that are added to `former` ones. perf names events by their order and leaves those alone that
/// have a name, so that the record has the former ones, too, unless it gets too long.
fn put_added_names(former: &[EventAttr], added: &[EventAttr], out: &mut Vec<u8>) {
    let mut body = Vec::new();
    body.extend(((former.len() + added.len()) as u32).to_le_bytes());
    body.extend((Attr::MIN as u32).to_le_bytes());
    for (number, event) in former.iter().chain(added).enumerate() {
        let end = body.len() + Attr::MIN;
        event.attr.encode(&mut body);
        body.truncate(end);
        let is_added = number >= former.len();
        let ids = if is_added { event.ids.as_slice() } else { &[] };
        put_name_and_ids(&event.name, ids, &mut body);
    }
    if body.len() + 8 <= MAX_BODY {
        put_feature(Feature::EVENT_DESC, &body, out);
    } else {
        put_event_descs(added, out);
    }
}

fn put_definitions(definitions: Option<&Definitions>, out: &mut Vec<u8>) -> Result<(), WriteError> {
    if let Some(definitions) = definitions {
        let blob = definitions_record::encode(definitions).map_err(WriteError::Definitions)?;
        definitions_record::put_records(PART_MAGIC, &blob, out);
    }
    Ok(())
}

/// The definitions of events that are added.
fn definitions_of(info: &TraceInfo, part: &EventsPart<'_>) -> Option<Definitions> {
    let all = info.definitions.as_ref()?;
    Some(Definitions {
        version: all.version,
        producer: all.producer.clone(),
        engine: all.engine.clone(),
        uncounted: all.uncounted.clone(),
        boot: all.boot.clone(),
        files: part.files.to_vec(),
        probes: part.probes.to_vec(),
    })
}

/// Appends the records of events that are added, for our readers.
///
/// # Errors
/// [`WriteError::Event`], [`WriteError::Definitions`].
pub(crate) fn put_part(
    info: &TraceInfo,
    part: &EventsPart<'_>,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    for event in part.events {
        put_attr(event, out)?;
    }
    put_event_descs(part.events, out);
    WrittenFormats::default().put(part.formats, out);
    put_definitions(definitions_of(info, part).as_ref(), out)
}

fn put_feature(feature: Feature, body: &[u8], out: &mut Vec<u8>) {
    if body.len() + 8 > MAX_BODY {
        return;
    }
    let mut record = RecordBuilder::new(out, RecordType::HEADER_FEATURE, 0);
    record.bytes(&u64::from(feature.0).to_le_bytes());
    record.bytes(body);
    record.bytes(&[0; 7][..body.len().next_multiple_of(8) - body.len()]);
    record.end();
}

fn put_attr(event: &EventAttr, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let mut body = Vec::new();
    event.attr.encode(&mut body);
    body.extend(event.ids.iter().flat_map(|id| id.to_le_bytes()));
    if body.len() > MAX_BODY {
        return Err(WriteError::Event {
            event: event.name.clone(),
            fault: EventFault::TooManyIds {
                ids: event.ids.len(),
            },
        });
    }
    let mut record = RecordBuilder::new(out, RecordType::HEADER_ATTR, 0);
    record.bytes(&body);
    record.end();
    Ok(())
}

/// The formats of tracepoints that were written.
#[derive(Clone, Copy, Debug, Default)]
struct WrittenFormats {
    /// Length of all `TRACING_DATA`, bytes.
    len: usize,
}

impl WrittenFormats {
    /// Appends a record with the length of `TRACING_DATA` and the data after it, with formats that were not written yet.
    ///
    /// perf has no second `TRACING_DATA` in a stream: it takes the length of all together (`trace_data_size` in
    /// `tools/perf/util/trace-event-read.c`) and refuses another length. So records that it ignores make up the difference.
    fn put(&mut self, new: &[TracepointFormat], out: &mut Vec<u8>) {
        if new.is_empty() {
            return;
        }
        let mut body = Vec::new();
        put_aligned_tracing_data(new, &mut body);
        let mut record = RecordBuilder::new(out, RecordType::HEADER_TRACING_DATA, 0);
        record.bytes(&((self.len + body.len()) as u32).to_le_bytes());
        record.bytes(&[0; 4]);
        record.end();
        out.extend(&body);
        put_ignored(self.len, out);
        self.len += body.len();
    }
}

/// Appends `len` bytes of records that perf ignores. `len` is 0, or a multiple of 8 and at least [`MIN_RECORD`].
fn put_ignored(mut len: usize, out: &mut Vec<u8>) {
    while len > 0 {
        // The rest is either nothing or long enough for another record.
        let size = match len {
            0..=MAX_RECORD => len,
            _ => (len - MIN_RECORD).min(MAX_RECORD),
        };
        put_ignored_record(out, |out| out.resize(out.len() + size - RECORD_HEADER, 0));
        len -= size;
    }
}

impl<W: Write> std::fmt::Debug for PipeWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PipeWriter")
            .field("pending", &self.pending())
            .field("totals", &self.totals)
            .finish_non_exhaustive()
    }
}
