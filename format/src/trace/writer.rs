//! Writing a trace.

use std::fs::File;
use std::ops::Range;

use super::chunk::RECORD_HEADER;
use super::compression::Compression;
use super::digest::DigestTail;
use super::footer::{IndexTail, put_ignored_record};
use super::head::Head;
use super::index::{IndexEntry, IndexNode};
use super::intake::Intake;
use super::loss_counts::LossCounts;
use super::packer::Packer;
use super::sink::Sink;
use super::tally::Tally;
use super::write_error::WriteError;
use super::{Loss, Storage, TraceInfo, carrier};
use crate::perf::header::FileHeader;
use crate::perf::record::RecordBuilder;
use crate::perf::{LostSamples, RecordType, SampleId, SampleType};

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Samples.
    pub samples: u64,
    /// Bytes of records before compression.
    pub raw_bytes: u64,
    /// Length of the file, bytes.
    pub file_bytes: u64,
}

/// Writes a trace; after every [`flush`](Self::flush) the file is complete for any reader.
pub struct TraceWriter<S: Storage = File> {
    storage: S,
    head: Head,
    intake: Intake,
    packer: Packer,
    index: IndexTail,
    digest: DigestTail,
    /// What was lost so far.
    losses: LossCounts,
    /// All records flushed; its times are `SAMPLE_TIME`'s.
    tally: Tally,
    /// File offset behind the newest footer: where the next flush goes.
    end: u64,
    /// Memory of [`Sink`]s.
    out: Vec<u8>,
    id_type: SampleType,
}

impl<S: Storage> TraceWriter<S> {
    /// Writes the head of the trace into an empty file.
    ///
    /// All attrs must sample `IDENTIFIER`, `IP`, `TID`, `TIME` and `CPU`, have `sample_id_all` set and one `read_format`.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn create(
        storage: S,
        info: &TraceInfo,
        compression: Compression,
    ) -> Result<Self, WriteError> {
        let (head, bytes) = Head::encode(info, compression)?;
        let id_type = info
            .events
            .first()
            .map_or_else(SampleType::default, |event| event.attr.id_type());
        let mut writer = Self {
            storage,
            intake: Intake::new(id_type),
            packer: Packer::new(compression).map_err(WriteError::Compressor)?,
            index: IndexTail::default(),
            digest: DigestTail::default(),
            losses: LossCounts::default(),
            tally: Tally::default(),
            end: head.data_offset,
            out: Vec::new(),
            id_type,
            head,
        };
        // The first bytes, which say what kind of file it is, are written last.
        let (magic, rest) = bytes.split_at(FileHeader::MAGIC.len());
        let magic = magic.to_vec();
        writer.write_at(rest, FileHeader::MAGIC.len() as u64)?;
        writer.write_start()?;
        writer.write_at(&magic, 0)?;
        Ok(writer)
    }

    /// Takes whole records, in the order of their ring. Bytes that are no whole records make the next
    /// [`flush`](Self::flush) fail after it has written all others.
    pub fn push(&mut self, records: &[u8]) {
        self.intake.push(records);
    }

    /// Says when recording began and up to when it has come, ns of the trace's clock, for the flushes from now on.
    pub fn set_recorded(&mut self, began: u64, until: u64) {
        self.index.recorded = Some((began, until));
    }

    /// Says that CPUs went off line or came on line while perf events recorded, so that hits there are missing and not counted as lost.
    pub const fn set_cpus_changed(&mut self) {
        self.index.cpus_changed = true;
    }

    /// Bytes taken and not yet flushed.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.intake.pending()
    }

    /// Totals so far, of what was flushed.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            samples: self.index.totals.samples,
            raw_bytes: self.index.totals.raw_bytes,
            file_bytes: self.end,
        }
    }

    /// Compresses and writes all that was taken, as one round, and makes the file valid up to here.
    /// To be called only between passes over all rings.
    ///
    /// # Errors
    /// [`WriteError`]; what was flushed before stays valid. After [`WriteError::Io`] what was taken still waits, so that
    /// flushing may be tried again.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.flush_as(true)
    }

    /// As [`flush`](Self::flush), within a pass over all rings: the round goes on. Thus a pass that finds much need not be held
    /// in memory.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn flush_part(&mut self) -> Result<(), WriteError> {
        self.flush_as(false)
    }

    fn flush_as(&mut self, ends_round: bool) -> Result<(), WriteError> {
        if self.pending() != 0 {
            self.write_round(ends_round).inspect_err(|_| {
                // What stands behind the footer is no part of the trace; leaving it there would do no harm.
                let _ = self.storage.set_len(self.end);
            })?;
            self.intake.clear();
        }
        match self.intake.take_refusal() {
            Some(what) => Err(WriteError::Record(what)),
            None => Ok(()),
        }
    }

    /// Takes losses that have not been reported yet; those of all calls and of [`finish`](Self::finish) add up. The next flush
    /// writes how many each event has lost by then, so that they are known however the recorder ends.
    pub fn tell_losses(&mut self, losses: &[Loss]) {
        self.losses.add(losses);
    }

    /// Flushes, writes the losses, with those that have not been reported yet, and the normal end of the file.
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

    /// The definitions as records and the first footer.
    fn write_start(&mut self) -> Result<(), WriteError> {
        let mut sink = Sink::new(&mut self.storage, &mut self.out, self.end);
        carrier::put_records(&self.head.definitions, sink.out());
        let footer = put_footer(&self.head, &mut self.index, &self.losses, &mut sink);
        sink.drain()?;
        self.commit(footer.data_end)?;
        self.end = footer.end;
        Ok(())
    }

    /// Metadata, samples, the round's end if it does, and the footer; then the commit.
    fn write_round(&mut self, ends_round: bool) -> Result<(), WriteError> {
        let mut index = self.index.clone();
        let mut tally = self.tally;
        let mut metadata: Option<Range<u64>> = None;
        let mut blocks = 0;
        let mut place = |entry: IndexEntry| {
            if entry.metadata {
                let start = metadata.as_ref().map_or(entry.offset, |all| all.start);
                metadata = Some(start..entry.offset + u64::from(entry.len));
                blocks += 1;
            }
            tally.add(&entry.tally);
            index.add(entry);
        };
        let intake = &mut self.intake;
        intake.seal();
        let mut sink = Sink::new(&mut self.storage, &mut self.out, self.end);
        self.packer
            .pack(&intake.metadata, true, &mut sink, &mut place)?;
        self.packer
            .pack(&intake.samples, false, &mut sink, &mut place)?;
        if ends_round {
            RecordBuilder::new(sink.out(), RecordType::FINISHED_ROUND, 0).end();
        }
        let at = sink.at();
        if let Some(digest) = self.digest.put(at, index.digest, sink.out()) {
            index.digest = digest;
        }
        let footer = put_footer(&self.head, &mut index, &self.losses, &mut sink);
        sink.drain()?;
        self.write_sample_time(&tally)?;
        self.commit(footer.data_end)?;
        self.end = footer.end;
        self.index = index;
        self.tally = tally;
        let records = self.intake.metadata.bytes();
        self.digest.flushed(records, blocks, metadata);
        Ok(())
    }

    /// Losses as records, then the table and the last node behind the end of the data.
    fn write_end(&mut self) -> Result<(), WriteError> {
        let losses = self.losses.all();
        let mut sink = Sink::new(&mut self.storage, &mut self.out, self.end);
        for loss in losses.iter().filter(|loss| loss.lost != 0) {
            put_loss(loss, self.id_type, sink.out());
        }
        let data_end = sink.position();
        sink.out().extend_from_slice(&self.head.table);
        let node = IndexNode {
            finished: true,
            losses,
            ..self
                .index
                .next_node(sink.position(), self.head.sums.clone())
        };
        node.encode(sink.out());
        let end = sink.position();
        sink.drain()?;
        self.write_ratio()?;
        self.commit(data_end)?;
        self.end = end;
        Ok(())
    }

    /// Moves the end of the data: the one write that makes the ones before it count.
    fn commit(&mut self, data_end: u64) -> Result<(), WriteError> {
        let size = data_end - self.head.data_offset;
        self.write_at(&size.to_le_bytes(), FileHeader::DATA_SIZE_OFFSET)
    }

    fn write_sample_time(&mut self, tally: &Tally) -> Result<(), WriteError> {
        let Some((earliest, latest)) = tally.time().filter(|time| self.tally.time() != Some(*time))
        else {
            return Ok(());
        };
        let mut body = earliest.to_le_bytes().to_vec();
        body.extend(latest.to_le_bytes());
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
        self.storage
            .write_at(bytes, offset)
            .map_err(|source| WriteError::Io { offset, source })
    }
}

/// Where a footer came to stand.
struct Footer {
    /// File offset where the data end: 8 bytes into the record.
    data_end: u64,
    /// File offset behind the record.
    end: u64,
}

/// Appends the pages that are full and a footer.
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
    // A record has 16 bits for its size.
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

/// `LOST_SAMPLES`, as perf writes it: with the id, without time and process.
pub(crate) fn put_loss(loss: &Loss, id_type: SampleType, out: &mut Vec<u8>) {
    let lost = LostSamples {
        lost: loss.lost,
        id: SampleId {
            id: loss.id,
            identifier: loss.id,
            ..SampleId::default()
        },
    };
    lost.encode(id_type, out);
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
