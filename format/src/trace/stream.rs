//! Reads the compressed stream of `perf record -z`: records of types 81 and 83, which are pieces of one zstd stream.
//!
//! A record in the stream may start in one piece and end in the next.

use super::block::{Block, BlockKind};
use super::codec::{CodecError, StreamDecompressor};
use super::damage::{Damage, DamageKind, StreamError};
use super::reader::Trace;
use crate::perf::cursor::Cursor;
use crate::perf::{RawRecord, RecordType, Records};

/// Maximum decompressed length of a block of a stream, bytes.
pub(crate) const MAX_BLOCK: usize = 64 << 20;

/// A reader's position in a compressed stream.
pub(crate) struct CompressedStream {
    decompressor: StreamDecompressor,
    /// File offset after the last piece read.
    next: Option<u64>,
    /// The start of a record that continues in the next piece.
    begun: Vec<u8>,
    /// Damage from which on the stream cannot be read.
    broken: Option<Damage>,
}

impl CompressedStream {
    /// The start of a stream.
    ///
    /// # Errors
    /// The error of creating a zstd decompressor.
    pub(crate) fn new() -> Result<Self, CodecError> {
        Ok(Self {
            decompressor: StreamDecompressor::new()?,
            next: None,
            begun: Vec::new(),
            broken: None,
        })
    }

    /// Whether a block is the next one, or is after the damage.
    pub(crate) fn reaches(&self, trace: &Trace, block: &Block) -> bool {
        match &self.broken {
            Some(damage) => damage.offset <= block.offset && same_file(trace, damage.offset, block),
            None => before(trace, block) == self.next,
        }
    }

    /// Decompresses and discards the blocks before a block. Damage there is reported by the next [`read`](Self::read).
    pub(crate) fn skip_to(&mut self, trace: &Trace, block: &Block) {
        let mut out = Vec::new();
        let mut packed = Vec::new();
        let earlier = pieces(trace).take_while(|piece| piece.offset < block.offset);
        let earlier = earlier.filter(|piece| same_file(trace, piece.offset, block));
        for piece in earlier {
            if !matches!(self.read(trace, piece, &mut packed, &mut out), Ok(None)) {
                return;
            }
        }
    }

    /// Replaces the content of `out` by the whole records of the next block. Returns damage in this block. `packed` is a buffer.
    ///
    /// # Errors
    /// [`Damage`] if an earlier block was damaged.
    pub(crate) fn read(
        &mut self,
        trace: &Trace,
        block: &Block,
        packed: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Damage>, Damage> {
        if let Some(damage) = &self.broken {
            let kind = DamageKind::AfterBrokenStream(damage.offset);
            return Err(Damage::new(block.offset, kind));
        }
        out.clear();
        out.append(&mut self.begun);
        self.broken = self.take(trace, block, packed, out).err();
        if self.broken.is_some() || is_last(trace, block) {
            self.decompressor.finish(MAX_BLOCK, out);
        }
        self.next = Some(block.end());
        self.keep_begun(block, out);
        Ok(self.broken.clone())
    }

    fn take(
        &mut self,
        trace: &Trace,
        block: &Block,
        packed: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), Damage> {
        trace.read_exact(block, packed)?;
        for record in Records::new(packed) {
            let at = block.offset + record.offset as u64;
            let broken = |error: StreamError| Damage::new(at, DamageKind::Stream(error));
            let piece = piece(&record).ok_or_else(|| broken(StreamError::Cut))?;
            self.decompressor
                .decompress(piece, MAX_BLOCK, out)
                .map_err(|error| broken(error.into()))?;
        }
        Ok(())
    }

    /// Leaves whole records in `out`, and keeps the start of the next one.
    fn keep_begun(&mut self, block: &Block, out: &mut Vec<u8>) {
        let mut records = Records::new(out);
        records.by_ref().for_each(drop);
        let whole = records.offset();
        self.begun.extend_from_slice(&out[whole..]);
        out.truncate(whole);
        if self.begun.len() > usize::from(u16::MAX) && self.broken.is_none() {
            self.broken = Some(Damage::new(block.offset, DamageKind::NoRecords));
        }
    }
}

/// The blocks of the stream.
fn pieces(trace: &Trace) -> impl Iterator<Item = &Block> {
    trace
        .blocks()
        .iter()
        .filter(|block| block.kind == BlockKind::Stream)
}

/// Whether a block is the last of its stream.
fn is_last(trace: &Trace, block: &Block) -> bool {
    let mut blocks = trace.blocks().iter();
    let last = blocks
        .rfind(|other| other.kind == BlockKind::Stream && same_file(trace, other.offset, block));
    last.is_none_or(|last| last.offset <= block.offset)
}

/// End of the piece before a block.
fn before(trace: &Trace, block: &Block) -> Option<u64> {
    let blocks = trace.blocks();
    let at = blocks.partition_point(|other| other.offset < block.offset);
    blocks[..at]
        .iter()
        .rfind(|other| other.kind == BlockKind::Stream && same_file(trace, other.offset, block))
        .map(Block::end)
}

/// Whether an offset is in the same file as a block. Each file has its own stream.
fn same_file(trace: &Trace, offset: u64, block: &Block) -> bool {
    trace.source.part_of(offset) == trace.source.part_of(block.offset)
}

/// The compressed bytes of a record: the whole body of type 81; in type 83, a length (8) precedes them and padding follows.
pub(crate) fn piece<'a>(record: &RawRecord<'a>) -> Option<&'a [u8]> {
    if record.kind == RecordType::COMPRESSED {
        return Some(record.body);
    }
    let mut cursor = Cursor::new(record.body);
    let len = usize::try_from(cursor.u64()?).ok()?;
    cursor.take(len)
}
