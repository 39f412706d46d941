//! Writes a trace file.

use std::borrow::Borrow;
use std::fs::File;
use std::num::NonZeroUsize;
use std::ops::Range;

use super::chunk::RECORD_HEADER;
use super::clock_readings::{self, ClockReading};
use super::codec::Compression;
use super::definitions_record::PART_MAGIC;
use super::digest::DigestTail;
use super::footer::{IndexTail, put_ignored_record};
use super::head::{EncodedHead, Head};
use super::index::{IndexEntry, IndexNode, MAX_NODE};
use super::known_events::{HeadCounts, KnownEvents};
use super::limits::fitting_losses;
use super::loss_counts::{LossCounts, put_loss};
use super::new_events::NewEvents;
use super::packed_records::PackedRecords;
use super::part::Part;
use super::part_queue::{NextPart, PartQueue};
use super::record_counts::{RecordCounts, Totals};
use super::sink::Sink;
use super::time_range::TimeRange;
use super::write_error::WriteError;
use super::{Loss, Storage, TraceInfo, added_events, added_piece, definitions_record};
use crate::perf::header::FileHeader;
use crate::perf::record::RecordBuilder;
use crate::perf::{RecordType, SampleType};

/// Length of the losses in the last node, which has at most a page of entries besides, bytes.
const MAX_LOSSES: usize = MAX_NODE - (1 << 20);

/// What was written of events that were added.
#[derive(Clone, Copy, Debug, Default)]
struct WrittenHeads {
    /// What the file describes.
    counts: HeadCounts,
    /// Length of all heads that were written for added events, bytes.
    bytes: u64,
}

impl WrittenHeads {
    /// Length of heads that is never too much, bytes.
    const SHORT: u64 = 4 << 20;
    /// How many times the length of the newest head all of them may have.
    const MOST: u64 = 2;

    /// Whether a whole head of the events is to be written now, and not only what is new.
    const fn need_head(&self, info: &TraceInfo, bytes: u64) -> bool {
        // Events without definitions are those of perf alone.
        let is_whole = info.definitions.is_none() || self.counts.events == 0;
        is_whole || self.bytes + bytes <= Self::SHORT + Self::MOST * bytes
    }
}

/// Packed records, and whether a pass over all rings ends with them.
#[derive(Clone, Copy, Debug)]
pub struct PackedPiece<R> {
    /// The records.
    pub records: R,
    /// Whether it does.
    pub ends_round: bool,
}

/// Writes a trace file, which is complete for any reader after each [`flush`](Self::flush).
pub struct TraceWriter<S: Storage = File> {
    storage: S,
    head: Head,
    compression: Compression,
    /// The events so far, and what describes them.
    info: TraceInfo,
    known: KnownEvents,
    /// What the first head has of them.
    first: HeadCounts,
    written: WrittenHeads,
    /// Records that are not in the file yet.
    queue: PartQueue,
    index: IndexTail,
    digest: DigestTail,
    /// Clock readings that are not in the file yet.
    clocks: Vec<ClockReading>,
    /// Losses so far.
    losses: LossCounts,
    /// Counts of all flushed records; their time range is `SAMPLE_TIME`.
    counts: RecordCounts,
    /// File offset after the newest footer, where the next flush is written.
    end: u64,
    /// Buffer of [`Sink`]s.
    out: Vec<u8>,
    id_type: SampleType,
}

impl<S: Storage> TraceWriter<S> {
    /// The first bytes of a trace that is complete enough to be read.
    pub const MAGIC: [u8; 8] = FileHeader::MAGIC;

    /// Writes the head of the trace to an empty file.
    ///
    /// All attrs must sample `IDENTIFIER`, `IP`, `TID`, `TIME` and `CPU`, have `sample_id_all` set, and the same `read_format`.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn create(
        storage: S,
        info: &TraceInfo,
        compression: Compression,
    ) -> Result<Self, WriteError> {
        let known = KnownEvents::new(info);
        known.size.check()?;
        let EncodedHead { head, bytes } = Head::encode(info, compression)?;
        let id_type = info
            .events
            .first()
            .map_or_else(SampleType::default, |event| event.attr.id_type());
        let mut writer = Self {
            storage,
            compression,
            info: info.clone(),
            first: known.counts,
            written: WrittenHeads {
                counts: known.counts,
                bytes: 0,
            },
            known,
            queue: PartQueue::new(id_type, compression).map_err(WriteError::Compressor)?,
            index: IndexTail::default(),
            digest: DigestTail::default(),
            clocks: Vec::new(),
            losses: LossCounts::default(),
            counts: RecordCounts::default(),
            end: head.data_offset,
            out: Vec::new(),
            id_type,
            head,
        };
        let magic = FileHeader::MAGIC.len();
        // The magic is written last, so that an incomplete head is not taken for a trace.
        write(&mut writer.storage, &bytes[magic..], magic as u64)?;
        writer.write_start()?;
        write(&mut writer.storage, &bytes[..magic], 0)?;
        Ok(writer)
    }

    /// The events so far, and what describes them.
    #[must_use]
    pub const fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// Writes the head again, after another process has truncated or overwritten the file. With the next flush the file can be read again;
    /// events that are gone are damage.
    ///
    /// # Errors
    /// [`WriteError::Io`]; those of [`create`](Self::create).
    pub fn restore_head(&mut self) -> Result<(), WriteError> {
        let first = self.first.beginning(&self.info);
        let EncodedHead { head, bytes } = Head::encode(&first, self.compression)?;
        write(&mut self.storage, &bytes, 0)?;
        if self.first != self.known.counts {
            self.head = head;
            self.head.definitions = Vec::new();
            self.written = WrittenHeads::default();
            self.index.added = 0;
        }
        match self.counts.time() {
            Some(time) => self.write_time(time),
            None => Ok(()),
        }
    }

    /// Adds events. The next flush writes them, before its records.
    ///
    /// # Errors
    /// [`WriteError::Event`], [`WriteError::Limit`]; the events are as before.
    pub fn add_events(&mut self, new: NewEvents) -> Result<(), WriteError> {
        let checked = self.known.check(&self.info.events, &new.part())?;
        self.known.take(checked);
        new.add_to(&mut self.info);
        Ok(())
    }

    /// Whether the next flush writes events that were added.
    #[must_use]
    pub fn has_added_events(&self) -> bool {
        self.written.counts != self.known.counts
    }

    /// Buffers whole records, in the order of their ring. After bytes that are not whole records, the next [`flush`](Self::flush) writes all
    /// other records and returns an error.
    pub fn push(&mut self, records: &[u8]) {
        self.queue.push(records);
    }

    /// Sets the time at which recording began, and the time up to which events are in the file, ns of the trace's clock. The next flush
    /// writes them.
    pub fn set_recorded(&mut self, began: u64, until: u64) {
        self.index.recorded = Some(TimeRange {
            first: began,
            last: until,
        });
    }

    /// Notes that CPUs went off line or came on line while recording with perf events, so that hits there are missing and not counted as lost.
    pub const fn set_cpus_changed(&mut self) {
        self.index.cpus_changed = true;
    }

    /// Adds readings of the clocks, later than all before. The next flush of records, or the end, writes them.
    pub fn add_clocks(&mut self, readings: &[ClockReading]) {
        self.clocks.extend_from_slice(readings);
    }

    /// Allows `threads` threads to compress, the caller's among them: helpers are started when records wait, or at once if `at_once`. Without
    /// this call the caller's compresses alone. Records are read back the same with any number.
    pub fn set_threads(&mut self, threads: NonZeroUsize, at_once: bool) {
        self.queue.set_threads(threads, at_once);
    }

    /// Length of the records that are not in the file yet, bytes.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queue.pending()
    }

    /// Length of the records that were pushed since the last flush, bytes.
    #[must_use]
    pub fn unflushed(&self) -> usize {
        self.queue.unflushed()
    }

    /// Whether [`flush_part`](Self::flush_part) took records that are not in the file yet.
    #[must_use]
    pub fn has_parts(&self) -> bool {
        self.queue.has_parts()
    }

    /// Totals of the records flushed so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            samples: self.index.totals.samples,
            raw_bytes: self.index.totals.raw_bytes,
            file_bytes: self.end,
        }
    }

    /// Compresses and writes all buffered records as one round, and commits it. Call it only between passes over all rings.
    ///
    /// # Errors
    /// [`WriteError`]; what was flushed before stays valid. After [`WriteError::Io`] the records stay buffered, so that the flush can be
    /// repeated.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.flush_as(true)
    }

    /// As [`flush`](Self::flush), without ending the round: for use within a pass over all rings, to limit the memory for its records. With
    /// several threads, what is still being compressed is written by a later call.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn flush_part(&mut self) -> Result<(), WriteError> {
        self.flush_as(false)
    }

    fn flush_as(&mut self, ends_round: bool) -> Result<(), WriteError> {
        if self.unflushed() != 0 || self.has_added_events() && !self.has_parts() {
            self.queue.begin_part(ends_round);
        }
        while let Some(NextPart { part, ends_round }) = self.queue.next(ends_round) {
            self.write_part(part, ends_round)?;
        }
        self.queue.check_refusal()
    }

    /// Writes and commits a part; if that fails, it is the first part again.
    fn write_part(&mut self, mut part: Part, ends_round: bool) -> Result<(), WriteError> {
        if let Err(error) = self.write_round(&mut part, ends_round) {
            // Bytes after the footer are ignored, so a failure is harmless.
            let _ = self.storage.set_len(self.end);
            self.queue.put_back(part);
            return Err(error);
        }
        self.queue.reuse(part);
        Ok(())
    }

    /// Writes what was pushed, then packed records, of which the times may be any, and commits them. Each piece is dropped when it is written.
    ///
    /// # Errors
    /// [`WriteError`]; what was flushed before stays valid.
    pub fn write_packed<R: Borrow<PackedRecords>>(
        &mut self,
        pieces: impl IntoIterator<Item = PackedPiece<R>>,
    ) -> Result<(), WriteError> {
        self.flush()?;
        let mut index = self.index.clone();
        let mut counts = self.counts;
        let mut sink = Sink::new(&mut self.storage, &mut self.out, self.end);
        for piece in pieces {
            let records = piece.records.borrow();
            let at = sink.position();
            sink.write(records.bytes())?;
            for entry in records.entries_at(at) {
                counts.add(&entry.counts);
                index.add(entry);
            }
            if piece.ends_round {
                RecordBuilder::new(sink.out(), RecordType::FINISHED_ROUND, 0).end();
            }
        }
        let footer = put_footer(&self.head, &mut index, &self.losses, &mut sink);
        sink.drain()?;
        self.write_sample_time(&counts)?;
        self.commit(footer.data_end)?;
        self.end = footer.end;
        self.index = index;
        self.counts = counts;
        // Readers read the blocks of these records.
        self.digest.clear();
        Ok(())
    }

    /// Adds losses since the last call. The losses of all calls and of [`finish`](Self::finish) add up. The next flush writes the sums per
    /// event, so that they are known even if the recorder is killed.
    pub fn add_losses(&mut self, losses: &[Loss]) {
        self.losses.add(losses);
    }

    /// Flushes, and writes all losses, including those since the last [`add_losses`](Self::add_losses), and the end of the file.
    ///
    /// # Errors
    /// [`WriteError`]; what was flushed before stays valid.
    pub fn finish(mut self, losses: &[Loss]) -> Result<Totals, WriteError> {
        self.losses.add(losses);
        let refused = match self.flush() {
            Err(WriteError::Record(what)) => Some(what),
            other => {
                other?;
                None
            }
        };
        self.write_end()?;
        match refused {
            Some(what) => Err(WriteError::Record(what)),
            None => Ok(self.totals()),
        }
    }

    /// Writes the definitions as records, and the first footer.
    fn write_start(&mut self) -> Result<(), WriteError> {
        let mut sink = Sink::new(&mut self.storage, &mut self.out, self.end);
        let definitions = std::mem::take(&mut self.head.definitions);
        definitions_record::put_records(PART_MAGIC, &definitions, sink.out());
        let footer = put_footer(&self.head, &mut self.index, &self.losses, &mut sink);
        sink.drain()?;
        self.commit(footer.data_end)?;
        self.end = footer.end;
        Ok(())
    }

    /// Writes metadata, samples, the end of the round if `ends_round`, and the footer; then commits.
    fn write_round(&mut self, part: &mut Part, ends_round: bool) -> Result<(), WriteError> {
        let has_added = self.has_added_events();
        let mut index = self.index.clone();
        let mut counts = self.counts;
        let mut sink = Sink::new(&mut self.storage, &mut self.out, self.end);
        let mut changed = None;
        if has_added {
            let at = sink.position();
            let former = self.written.counts.events;
            let part = self.written.counts.rest(&self.info);
            let is_piece = !self.written.need_head(&self.info, self.known.size.bytes())
                && added_piece::put(&self.info, &part, index.added, former, sink.out())?;
            if is_piece {
                index.added = at;
            } else {
                changed = Some(put_head(&self.head, &self.info, &mut index, &mut sink)?);
            }
            let head = changed.as_ref().map_or(&self.head, |changed| &changed.head);
            // For readers of a file that is cut after it.
            put_footer(head, &mut index, &self.losses, &mut sink);
            sink.drain_if_full()?;
        }
        let mut metadata: Option<Range<u64>> = None;
        let mut blocks = 0;
        let mut place = |entry: IndexEntry| {
            if entry.metadata {
                let start = metadata.as_ref().map_or(entry.offset, |all| all.start);
                metadata = Some(start..entry.offset + u64::from(entry.len));
                blocks += 1;
            }
            counts.add(&entry.counts);
            index.add(entry);
        };
        part.write_metadata(&mut self.queue.pool, &mut sink, &mut place)?;
        part.write_samples(&mut self.queue.pool, &mut sink, &mut place)?;
        if ends_round {
            RecordBuilder::new(sink.out(), RecordType::FINISHED_ROUND, 0).end();
        }
        let at = sink.at();
        if let Some(digest) = self.digest.put(at, index.digest, sink.out()) {
            index.digest = digest;
        }
        put_clocks(&self.clocks, &mut index, &mut sink);
        let head = changed.as_ref().map_or(&self.head, |changed| &changed.head);
        let footer = put_footer(head, &mut index, &self.losses, &mut sink);
        sink.drain()?;
        self.write_sample_time(&counts)?;
        match changed {
            Some(changed) => self.commit_head(changed, footer.data_end)?,
            None => self.commit(footer.data_end)?,
        }
        self.written.counts = self.known.counts;
        self.end = footer.end;
        self.index = index;
        self.clocks.clear();
        self.counts = counts;
        self.digest.flushed(part.metadata(), blocks, metadata);
        Ok(())
    }

    /// Writes the losses as records, and the feature table and the last node after the end of the data.
    fn write_end(&mut self) -> Result<(), WriteError> {
        let losses = self.losses.all();
        let mut sink = Sink::new(&mut self.storage, &mut self.out, self.end);
        let mut changed = None;
        if self.index.added != 0 {
            let whole = put_head(&self.head, &self.info, &mut self.index, &mut sink)?;
            put_footer(&whole.head, &mut self.index, &self.losses, &mut sink);
            changed = Some(whole);
        }
        let head = changed.as_ref().map_or(&self.head, |changed| &changed.head);
        for loss in losses.iter().filter(|loss| loss.lost != 0) {
            put_loss(loss, self.id_type, sink.out());
        }
        put_clocks(&self.clocks, &mut self.index, &mut sink);
        let data_end = sink.position();
        sink.out().extend_from_slice(&head.table);
        let node = IndexNode {
            finished: true,
            losses: fitting_losses(losses, MAX_LOSSES),
            ..self.index.next_node(sink.position(), head.sums.clone())
        };
        node.encode(sink.out());
        let end = sink.position();
        sink.drain()?;
        self.write_ratio()?;
        match changed {
            Some(changed) => self.commit_head(changed, data_end)?,
            None => self.commit(data_end)?,
        }
        self.end = end;
        Ok(())
    }

    /// Commits all previous writes by moving the end of the data.
    fn commit(&mut self, data_end: u64) -> Result<(), WriteError> {
        let size = data_end - self.head.data_offset;
        self.write_at(&size.to_le_bytes(), FileHeader::DATA_SIZE_OFFSET)
    }

    /// As [`commit`](Self::commit), with the attrs and features of another head.
    fn commit_head(&mut self, changed: ChangedHead, data_end: u64) -> Result<(), WriteError> {
        let ChangedHead { head, bytes } = changed;
        let mut header = head.header;
        header.data.size = data_end - head.data_offset;
        let from = FileHeader::ATTRS_OFFSET;
        // One write within a page, which no signal interrupts.
        self.write_at(&header.encode()[from..], from as u64)?;
        self.head = head;
        self.written.bytes += bytes;
        Ok(())
    }

    fn write_sample_time(&mut self, counts: &RecordCounts) -> Result<(), WriteError> {
        let changed = counts
            .time()
            .filter(|time| self.counts.time() != Some(*time));
        changed.map_or(Ok(()), |time| self.write_time(time))
    }

    fn write_time(&mut self, time: TimeRange) -> Result<(), WriteError> {
        let TimeRange { first, last } = time;
        let mut body = first.to_le_bytes().to_vec();
        body.extend(last.to_le_bytes());
        self.write_at(&body, self.head.sample_time)
    }

    fn write_ratio(&mut self) -> Result<(), WriteError> {
        let Some(offset) = self.head.ratio else {
            return Ok(());
        };
        let in_file = (self.end - self.head.data_offset).max(1);
        let ratio = (self.index.totals.raw_bytes / in_file).max(1) as u32;
        self.write_at(&ratio.to_le_bytes(), offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<(), WriteError> {
        write(&mut self.storage, bytes, offset)
    }
}

fn write(storage: &mut impl Storage, bytes: &[u8], offset: u64) -> Result<(), WriteError> {
    let written = storage.write_at(bytes, offset);
    written.map_err(|source| WriteError::Io { offset, source })
}

/// A head with events that were added.
struct ChangedHead {
    head: Head,
    /// Its length, bytes.
    bytes: u64,
}

/// Appends the whole head of all events.
fn put_head<S: Storage>(
    head: &Head,
    info: &TraceInfo,
    index: &mut IndexTail,
    sink: &mut Sink<'_, S>,
) -> Result<ChangedHead, WriteError> {
    let (from, at) = (sink.position(), sink.at());
    let head = added_events::put(head, info, at, sink.out())?;
    index.added = 0;
    Ok(ChangedHead {
        head,
        bytes: sink.position() - from,
    })
}

/// Offsets of a footer.
struct Footer {
    /// File offset of the end of the data, 8 bytes after the start of the record.
    data_end: u64,
    /// File offset after the record.
    end: u64,
}

/// Appends clock readings, if there are any.
fn put_clocks<S: Storage>(clocks: &[ClockReading], index: &mut IndexTail, sink: &mut Sink<'_, S>) {
    let (at, previous) = (sink.at(), index.clocks);
    if let Some(newest) = clock_readings::put(clocks, at, previous, sink.out()) {
        index.clocks = newest;
    }
}

/// Appends full pages and a footer.
fn put_footer<S: Storage>(
    head: &Head,
    index: &mut IndexTail,
    losses: &LossCounts,
    sink: &mut Sink<'_, S>,
) -> Footer {
    let at = sink.at();
    index.put_pages(at, sink.out());
    let start = sink.position();
    let table = &head.table;
    let node_at = start + (RECORD_HEADER + table.len()) as u64;
    let mut node = index.next_node(node_at, head.sums.clone());
    // The size of a record is a `u16`.
    let mut bytes = Vec::new();
    node.encode(&mut bytes);
    let room = usize::from(u16::MAX).saturating_sub(RECORD_HEADER * 2 + table.len() + bytes.len());
    if let Some(losses) = losses.by_event(room) {
        node.losses = losses;
        node.counted = true;
    }
    put_ignored_record(sink.out(), |out| {
        out.extend_from_slice(table);
        node.encode(out);
    });
    Footer {
        data_end: start + RECORD_HEADER as u64,
        end: sink.position(),
    }
}

impl<S: Storage> std::fmt::Debug for TraceWriter<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceWriter")
            .field("end", &self.end)
            .field("pending", &self.pending())
            .field("totals", &self.totals())
            .finish_non_exhaustive()
    }
}
