//! Reading `perf record -z`: records 81 and 83 that are pieces of one zstd stream.
//!
//! A record of the stream may begin in one piece and end in the next.

use super::block::{Block, BlockKind};
use super::codec::StreamDecompressor;
use super::damage::Damage;
use super::reader::Trace;
use crate::perf::cursor::Cursor;
use crate::perf::{RawRecord, RecordType, Records};

/// Most bytes of records that one block of a stream may become.
pub(crate) const MAX_BLOCK: usize = 64 << 20;

/// Where in the stream a reader is.
pub(crate) struct Stream {
    decompressor: StreamDecompressor,
    /// File offset behind the last piece taken.
    next: Option<u64>,
    /// The first bytes of a record whose rest is in the next piece.
    begun: Vec<u8>,
    /// Where the stream cannot be read on.
    broken: Option<Damage>,
}

impl Stream {
    /// The stream's start.
    ///
    /// # Errors
    /// zstd could not be set up.
    pub(crate) fn new() -> Result<Self, String> {
        Ok(Self {
            decompressor: StreamDecompressor::new()?,
            next: None,
            begun: Vec::new(),
            broken: None,
        })
    }

    /// Whether a block is the next one, or lies behind where nothing can be read.
    pub(crate) fn reaches(&self, trace: &Trace, block: &Block) -> bool {
        match &self.broken {
            Some(damage) => damage.offset <= block.offset && same_file(trace, damage.offset, block),
            None => before(trace, block) == self.next,
        }
    }

    /// Takes the blocks before one, without keeping what they hold. If the stream breaks there, reading on tells.
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

    /// Replaces `out` by the whole records of the next block, and says where the stream broke, if it did. `packed` is memory.
    ///
    /// # Errors
    /// [`Damage`] if it broke in an earlier block.
    pub(crate) fn read(
        &mut self,
        trace: &Trace,
        block: &Block,
        packed: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Damage>, Damage> {
        if let Some(damage) = &self.broken {
            let what = format!(
                "unreadable, because the compressed stream broke at offset {}",
                damage.offset
            );
            return Err(Damage::lost(block.offset, what));
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
            let broken = |what: String| {
                Damage::lost(at, format!("the compressed stream breaks here: {what}"))
            };
            let piece = piece(&record).ok_or_else(|| broken("a piece is cut".to_owned()))?;
            self.decompressor
                .decompress(piece, MAX_BLOCK, out)
                .map_err(broken)?;
        }
        Ok(())
    }

    /// Leaves whole records in `out` and keeps the beginning of the next.
    fn keep_begun(&mut self, block: &Block, out: &mut Vec<u8>) {
        let mut records = Records::new(out);
        records.by_ref().for_each(drop);
        let whole = records.offset();
        self.begun.extend_from_slice(&out[whole..]);
        out.truncate(whole);
        if self.begun.len() > usize::from(u16::MAX) && self.broken.is_none() {
            let what = "the decompressed bytes are no records";
            self.broken = Some(Damage::lost(block.offset, what));
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

/// Whether no piece of the stream follows a block.
fn is_last(trace: &Trace, block: &Block) -> bool {
    let mut blocks = trace.blocks().iter();
    let last = blocks
        .rfind(|other| other.kind == BlockKind::Stream && same_file(trace, other.offset, block));
    last.is_none_or(|last| last.offset <= block.offset)
}

/// File offset behind the piece before a block.
fn before(trace: &Trace, block: &Block) -> Option<u64> {
    let blocks = trace.blocks();
    let at = blocks.partition_point(|other| other.offset < block.offset);
    blocks[..at]
        .iter()
        .rfind(|other| other.kind == BlockKind::Stream && same_file(trace, other.offset, block))
        .map(Block::end)
}

/// Whether an offset is in the file that holds a block: each has a stream of its own.
fn same_file(trace: &Trace, offset: u64, block: &Block) -> bool {
    trace.source.part_of(offset) == trace.source.part_of(block.offset)
}

/// The compressed bytes of a record: type 81 holds nothing else, type 83 a length 8, the bytes and padding.
pub(crate) fn piece<'a>(record: &RawRecord<'a>) -> Option<&'a [u8]> {
    if record.kind == RecordType::COMPRESSED {
        return Some(record.body);
    }
    let mut cursor = Cursor::new(record.body);
    let len = usize::try_from(cursor.u64()?).ok()?;
    cursor.take(len)
}
