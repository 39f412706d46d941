//! zstd in Rust.

use std::io::{self, Read};

use super::CodecError;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Maximum window of an independent frame, bytes.
const FRAME_WINDOW: u64 = 8 << 20;
/// Maximum window of a stream, bytes: the window of level 22.
const STREAM_WINDOW: u64 = 128 << 20;
/// Maximum size of a frame header, bytes.
const MAX_HEADER: usize = 18;

/// Decompresses independent frames. As with the C library, their checksums are not compared.
#[derive(Default)]
pub(crate) struct FrameDecompressor {
    decoder: Option<FrameDecoder>,
}

impl FrameDecompressor {
    /// Replaces the content of `out` by the content of a frame, which must be `len` bytes.
    ///
    /// # Errors
    /// [`CodecError`].
    pub(crate) fn decompress(
        &mut self,
        frame: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        out.clear();
        out.reserve(len);
        let decoder = self.decoder.get_or_insert_with(|| {
            let mut decoder = FrameDecoder::new();
            decoder.set_max_window_size(FRAME_WINDOW);
            decoder
        });
        decoder
            .decode_all_to_vec(frame, out)
            .map_err(io::Error::other)?;
        if out.len() != len {
            let found = out.len();
            out.clear();
            let expected = len;
            return Err(CodecError::Length { expected, found });
        }
        Ok(())
    }
}

/// Decompresses a stream piece by piece.
///
/// The decoder buffers a window of the content, to which later pieces may refer, so that the content of a piece
/// is returned with later ones, and the rest by [`finish`](Self::finish).
pub(crate) struct StreamDecompressor {
    decoder: FrameDecoder,
    /// Whether the header of a frame was read.
    begun: bool,
    /// Whether an error ended the stream.
    broken: bool,
    /// Bytes of an incomplete block.
    packed: Vec<u8>,
    room: Vec<u8>,
}

impl StreamDecompressor {
    /// A decompressor at the start of a stream.
    ///
    /// # Errors
    /// None.
    pub(crate) fn new() -> Result<Self, CodecError> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(STREAM_WINDOW);
        Ok(Self {
            decoder,
            begun: false,
            broken: false,
            packed: Vec::new(),
            room: vec![0; 128 << 10],
        })
    }

    /// Decompresses a piece of the stream, and appends content of this piece and of those before it.
    ///
    /// # Errors
    /// [`CodecError`], also if `out` would become longer than `most`.
    pub(crate) fn decompress(
        &mut self,
        piece: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        self.packed.extend_from_slice(piece);
        let mut packed = std::mem::take(&mut self.packed);
        let taken = self.take(&packed, most, out);
        self.broken |= taken.is_err();
        packed.drain(..taken.as_ref().copied().unwrap_or(packed.len()));
        self.packed = packed;
        taken.map(drop)
    }

    /// Appends the buffered content at the end of the stream.
    pub(crate) fn finish(&mut self, most: usize, out: &mut Vec<u8>) {
        /// An empty last block.
        const LAST_BLOCK: [u8; 3] = [1, 0, 0];
        // After an error, the buffered content may be wrong.
        if self.begun && !self.broken {
            let _ = self.take(&LAST_BLOCK, most, out);
        }
    }

    /// Decompresses whole blocks. Returns their compressed length in bytes.
    fn take(&mut self, packed: &[u8], most: usize, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let mut rest = packed;
        loop {
            if !self.begun && !self.begin(&mut rest)? {
                break;
            }
            // One block at a time, to check the limit after each.
            let (block, _) = rest.split_at(block_len(rest));
            let (read, written) = self
                .decoder
                .decode_from_to(block, &mut self.room)
                .map_err(io::Error::other)?;
            rest = rest.get(read..).unwrap_or_default();
            if out.len() + written > most {
                return Err(CodecError::TooLong(most));
            }
            out.extend_from_slice(self.room.get(..written).unwrap_or_default());
            let drained = written < self.room.len();
            if drained && self.decoder.is_finished() {
                self.begun = false;
            } else if drained && read == 0 {
                break;
            }
        }
        Ok(packed.len() - rest.len())
    }

    /// Reads a frame header or a skippable frame; `false` if it is incomplete.
    fn begin(&mut self, rest: &mut &[u8]) -> Result<bool, CodecError> {
        if rest.len() < MAX_HEADER {
            return Ok(false);
        }
        let mut ahead = *rest;
        match self.decoder.init(&mut ahead) {
            Ok(()) => self.begun = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let Some(after) = ahead.get(length as usize..) else {
                    return Ok(false);
                };
                ahead = after;
            }
            Err(error) => return Err(io::Error::other(error).into()),
        }
        *rest = ahead;
        Ok(self.begun || !rest.is_empty())
    }
}

/// Length of the block at the front in bytes, including a checksum after the last block; at most the length of `bytes`.
fn block_len(bytes: &[u8]) -> usize {
    const RLE: u32 = 1;
    const CHECKSUM: usize = 4;
    let Some(&[low, middle, high]) = bytes.first_chunk::<3>() else {
        return bytes.len();
    };
    let header = u32::from_le_bytes([low, middle, high, 0]);
    let (last, kind, size) = (header & 1, header >> 1 & 3, header as usize >> 3);
    let content = if kind == RLE { 1 } else { size };
    let checksum = if last == 1 { CHECKSUM } else { 0 };
    bytes.len().min(3 + content + checksum)
}

/// Compresses independent frames.
pub(crate) struct FrameCompressor;

impl FrameCompressor {
    /// A compressor. The level is ignored.
    ///
    /// # Errors
    /// None.
    pub(crate) fn new(_level: i32) -> io::Result<Self> {
        Ok(Self)
    }

    /// Compresses `bytes` into `frame`; `None` if the frame exceeds its capacity.
    pub(crate) fn compress(&mut self, bytes: &[u8], frame: &mut Vec<u8>) -> Option<usize> {
        let compressed = compress_to_vec(bytes, CompressionLevel::Fastest);
        if compressed.len() > frame.capacity() {
            return None;
        }
        frame.clear();
        frame.extend_from_slice(&compressed);
        Some(compressed.len())
    }
}

/// Compresses `bytes` to a frame.
///
/// # Errors
/// None.
pub(crate) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    Ok(compress_to_vec(bytes, CompressionLevel::Fastest))
}

/// Decompresses a frame, at most `most` bytes of it.
///
/// # Errors
/// What is wrong with the frame.
pub(crate) fn decompress(frame: &[u8], most: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    StreamingDecoder::new(frame)
        .map_err(io::Error::other)?
        .take(most)
        .read_to_end(&mut out)?;
    Ok(out)
}
