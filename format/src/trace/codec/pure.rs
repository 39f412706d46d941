//! zstd in Rust.

use std::io::{self, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Largest window of a frame that is read on its own.
const FRAME_WINDOW: u64 = 8 << 20;
/// Largest window of a stream: that of level 22.
const STREAM_WINDOW: u64 = 128 << 20;
/// Bytes that a header of a frame may have.
const MAX_HEADER: usize = 18;

/// Decompresses frames on their own.
#[derive(Default)]
pub(crate) struct FrameDecompressor {
    decoder: Option<FrameDecoder>,
}

impl FrameDecompressor {
    /// Replaces `out` by the content of one frame, which must be `len` bytes.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(crate) fn decompress(
        &mut self,
        frame: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        out.clear();
        out.reserve(len);
        let decoder = self.decoder.get_or_insert_with(|| {
            let mut decoder = FrameDecoder::new();
            decoder.set_max_window_size(FRAME_WINDOW);
            decoder
        });
        decoder
            .decode_all_to_vec(frame, out)
            .map_err(|error| error.to_string())?;
        if out.len() != len {
            let found = out.len();
            out.clear();
            return Err(format!("expected {len} bytes of records, found {found}"));
        }
        let checksum = decoder.get_checksum_from_data();
        if checksum.is_some() && checksum != decoder.get_calculated_checksum() {
            out.clear();
            return Err("the frame's checksum does not fit".to_owned());
        }
        Ok(())
    }
}

/// Decompresses a stream piece by piece.
///
/// The decoder keeps back as many bytes as the stream's window has, because what follows may refer to them; so what a piece
/// holds comes out with later ones, the last of it from [`finish`](Self::finish).
pub(crate) struct StreamDecompressor {
    decoder: FrameDecoder,
    /// Whether the header of a frame was read.
    begun: bool,
    /// Whether an error ended it.
    broken: bool,
    /// Bytes that are no whole block yet.
    packed: Vec<u8>,
    room: Vec<u8>,
}

impl StreamDecompressor {
    /// A decompressor at the start of a stream.
    ///
    /// # Errors
    /// None.
    pub(crate) fn new() -> Result<Self, String> {
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

    /// Appends what one piece of the stream, or those before it, hold.
    ///
    /// # Errors
    /// What is wrong, in words; also if `out` would become longer than `most`.
    pub(crate) fn decompress(
        &mut self,
        piece: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        self.packed.extend_from_slice(piece);
        let mut packed = std::mem::take(&mut self.packed);
        let taken = self.take(&packed, most, out);
        self.broken |= taken.is_err();
        packed.drain(..taken.as_ref().copied().unwrap_or(packed.len()));
        self.packed = packed;
        taken.map(drop)
    }

    /// Appends what is still kept back, at the end of the stream.
    pub(crate) fn finish(&mut self, most: usize, out: &mut Vec<u8>) {
        /// A block without content that says that it is the last.
        const LAST_BLOCK: [u8; 3] = [1, 0, 0];
        // Behind an error nobody knows where what is kept back was still right.
        if self.begun && !self.broken {
            let _ = self.take(&LAST_BLOCK, most, out);
        }
    }

    /// Takes whole blocks and tells how many bytes they had.
    fn take(&mut self, packed: &[u8], most: usize, out: &mut Vec<u8>) -> Result<usize, String> {
        let mut rest = packed;
        loop {
            if !self.begun && !self.begin(&mut rest)? {
                break;
            }
            // One at a time: the decoder decodes all that it gets, however much that becomes.
            let (block, _) = rest.split_at(block_len(rest));
            let (read, written) = self
                .decoder
                .decode_from_to(block, &mut self.room)
                .map_err(|error| error.to_string())?;
            rest = rest.get(read..).unwrap_or_default();
            if out.len() + written > most {
                return Err(format!("it holds more than {most} bytes of records"));
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

    /// Reads the header of a frame, or of one to be skipped; `false` if there is no whole one.
    fn begin(&mut self, rest: &mut &[u8]) -> Result<bool, String> {
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
                let Some(behind) = ahead.get(length as usize..) else {
                    return Ok(false);
                };
                ahead = behind;
            }
            Err(error) => return Err(error.to_string()),
        }
        *rest = ahead;
        Ok(self.begun || !rest.is_empty())
    }
}

/// Bytes of the block at the front, the checksum that may follow a last one included, or as many of them as are there.
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

/// Compresses frames on their own.
pub(crate) struct FrameCompressor;

impl FrameCompressor {
    /// A compressor; there is one level.
    ///
    /// # Errors
    /// None.
    pub(crate) fn new(_level: i32) -> io::Result<Self> {
        Ok(Self)
    }

    /// Puts a frame of `bytes` into `frame`; `None` if it does not fit into its capacity.
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

/// One frame of `bytes`.
///
/// # Errors
/// None.
pub(crate) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    Ok(compress_to_vec(bytes, CompressionLevel::Fastest))
}

/// The content of one frame, at most `most` bytes of it.
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
