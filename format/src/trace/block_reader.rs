//! Reads blocks.

use super::block::{Block, BlockKind};
use super::chunk::{ChunkHeader, MAX_RAW};
use super::codec::FrameDecompressor;
use super::damage::{ChunkDamage, Damage, DamageKind};
use super::digest::Digest;
use super::reader::Trace;
use super::stream::CompressedStream;
use crate::perf::Records;

/// Reads blocks, and reuses decompressor and buffers. Use one reader per thread.
#[derive(Default)]
pub struct BlockReader {
    frames: FrameDecompressor,
    stream: Option<CompressedStream>,
    /// Bytes of the file.
    packed: Vec<u8>,
    /// Decompressed records.
    records: Vec<u8>,
    cut: Option<Damage>,
}

impl BlockReader {
    /// A new reader.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the whole records of a block of `trace`. If the block has bytes after them that are not a record, [`cut`](Self::cut)
    /// returns the damage.
    ///
    /// # Errors
    /// [`Damage`] if no record of the block can be read.
    pub fn read<'a>(&'a mut self, trace: &'a Trace, block: &Block) -> Result<&'a [u8], Damage> {
        self.cut = None;
        match block.kind {
            BlockKind::Chunk => self.read_chunk(trace, block)?,
            BlockKind::Plain => self.read_plain(trace, block)?,
            BlockKind::Stream => self.read_stream(trace, block)?,
        }
        self.replace_ids(trace, block.offset);
        Ok(&self.records)
    }

    /// Compares a block of `trace` with its checksum, if it has one, without decompressing it.
    ///
    /// # Errors
    /// [`Damage`] if it is not as it was written.
    pub fn check(&mut self, trace: &Trace, block: &Block) -> Result<(), Damage> {
        match block.kind {
            BlockKind::Chunk => self.read_frame(trace, block).map(|_| ()),
            BlockKind::Plain => self.read_plain(trace, block),
            BlockKind::Stream => Ok(()),
        }
    }

    /// Reads the records of a digest of `trace`; `None` if the digest is damaged: read its blocks instead.
    pub fn read_digest<'a>(&'a mut self, trace: &Trace, digest: &Digest) -> Option<&'a [u8]> {
        self.cut = None;
        digest.read(
            &trace.source,
            &mut self.frames,
            &mut self.packed,
            &mut self.records,
        )?;
        self.replace_ids(trace, digest.covers.start);
        Some(&self.records)
    }

    /// Replaces sample ids that mean something else in another file of the trace.
    fn replace_ids(&mut self, trace: &Trace, offset: u64) {
        let part = trace.part_at(offset).and_then(|at| trace.parts.get(at));
        if let Some(ids) = part.and_then(|part| part.ids.as_ref()) {
            ids.replace(&mut self.records);
        }
    }

    /// Swaps the buffer with the records of the last block for another buffer, which the next read overwrites. For callers that keep
    /// the records of many blocks.
    pub fn swap_records(&mut self, buffer: &mut Vec<u8>) {
        std::mem::swap(&mut self.records, buffer);
    }

    /// The damage after the records of the last block, if there is any.
    #[must_use]
    pub fn cut(&self) -> Option<&Damage> {
        self.cut.as_ref()
    }

    fn read_chunk(&mut self, trace: &Trace, block: &Block) -> Result<(), Damage> {
        let header = self.read_frame(trace, block)?;
        let damage = |reason| Damage::new(block.offset, DamageKind::Chunk(reason));
        let frame = header
            .frame(&self.packed)
            .ok_or_else(|| damage(ChunkDamage::Checksum))?;
        self.frames
            .decompress(frame, header.raw_len as usize, &mut self.records)
            .map_err(|error| damage(error.into()))
    }

    /// Reads a chunk, whose checksum is right.
    fn read_frame(&mut self, trace: &Trace, block: &Block) -> Result<ChunkHeader, Damage> {
        let damage = |reason| Damage::new(block.offset, DamageKind::Chunk(reason));
        trace.read_exact(block, &mut self.packed)?;
        let header = ChunkHeader::parse(&self.packed)
            .filter(|header| header.raw_len == block.raw_len)
            .ok_or_else(|| damage(ChunkDamage::Header))?;
        match header.frame(&self.packed) {
            Some(_) => Ok(header),
            None => Err(damage(ChunkDamage::Checksum)),
        }
    }

    fn read_stream(&mut self, trace: &Trace, block: &Block) -> Result<(), Damage> {
        let stream = match self.stream.take() {
            Some(stream) if stream.reaches(trace, block) => self.stream.insert(stream),
            _ => {
                let stream = CompressedStream::new()
                    .map_err(|error| Damage::new(block.offset, DamageKind::Decompressor(error)))?;
                let stream = self.stream.insert(stream);
                stream.skip_to(trace, block);
                stream
            }
        };
        self.cut = stream.read(trace, block, &mut self.packed, &mut self.records)?;
        Ok(())
    }

    fn read_plain(&mut self, trace: &Trace, block: &Block) -> Result<(), Damage> {
        trace.read_exact(block, &mut self.records)?;
        // The next record is found by the size of the one before, so that none can be found after an invalid size.
        let mut records = Records::new(&self.records);
        records.by_ref().for_each(drop);
        let whole = records.offset();
        let rest = self.records.len() - whole;
        if rest != 0 {
            let kind = DamageKind::PartialRecord { rest };
            self.cut = Some(Damage::new(block.offset + whole as u64, kind));
            self.records.truncate(whole);
        }
        Ok(())
    }
}

impl Trace {
    /// Replaces the content of `out` by the bytes of a block in the file.
    pub(crate) fn read_exact(&self, block: &Block, out: &mut Vec<u8>) -> Result<(), Damage> {
        const MAX: usize = MAX_RAW + u16::MAX as usize;
        let len = usize::try_from(block.len)
            .ok()
            .filter(|&len| len <= MAX)
            .ok_or_else(|| {
                let kind = DamageKind::BlockSize {
                    most: MAX,
                    found: block.len,
                };
                Damage::new(block.offset, kind)
            })?;
        self.source
            .read(block.offset, len, out)
            .map_err(|error| Damage::new(block.offset, DamageKind::Read(error.into_cause())))?;
        if out.len() < len {
            let kind = DamageKind::CutBlock {
                expected: len,
                found: out.len(),
            };
            return Err(Damage::new(block.offset, kind));
        }
        Ok(())
    }
}
