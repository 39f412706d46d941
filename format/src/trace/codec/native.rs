//! zstd with the C library.

use std::io::{self, Read};

use super::CodecError;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

/// Decompresses independent frames. Their checksums are not compared: the CRC of what a frame is in says whether its bytes are those that were
/// written, and costs a tenth, as there are fewer of them.
#[derive(Default)]
pub(crate) struct FrameDecompressor {
    context: Option<zstd::bulk::Decompressor<'static>>,
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
        let context = match self.context.take() {
            Some(context) => context,
            None => {
                let mut context = zstd::bulk::Decompressor::new()?;
                context.set_parameter(DParameter::ForceIgnoreChecksum(true))?;
                context
            }
        };
        let found = self
            .context
            .insert(context)
            .decompress_to_buffer(frame, out)?;
        if found != len {
            let expected = len;
            return Err(CodecError::Length { expected, found });
        }
        Ok(())
    }
}

/// Decompresses a stream piece by piece.
pub(crate) struct StreamDecompressor {
    decoder: Decoder<'static>,
    room: Vec<u8>,
}

impl StreamDecompressor {
    /// A decompressor at the start of a stream.
    ///
    /// # Errors
    /// [`CodecError`].
    pub(crate) fn new() -> Result<Self, CodecError> {
        Ok(Self {
            decoder: Decoder::new()?,
            room: Vec::with_capacity(zstd::zstd_safe::DCtx::out_size()),
        })
    }

    /// Appends the content of a piece of the stream.
    ///
    /// # Errors
    /// [`CodecError`], also if `out` would become longer than `most`.
    pub(crate) fn decompress(
        &mut self,
        piece: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let mut input = InBuffer::around(piece);
        loop {
            self.room.clear();
            let mut output = OutBuffer::around(&mut self.room);
            self.decoder.run(&mut input, &mut output)?;
            if out.len() + self.room.len() > most {
                return Err(CodecError::TooLong(most));
            }
            out.extend_from_slice(&self.room);
            if input.pos() == piece.len() && self.room.len() < self.room.capacity() {
                return Ok(());
            }
        }
    }
    /// Appends buffered content at the end of the stream. This implementation buffers nothing.
    pub(crate) fn finish(&mut self, _most: usize, _out: &mut Vec<u8>) {}
}

/// Compresses independent frames.
pub(crate) struct FrameCompressor {
    context: zstd::bulk::Compressor<'static>,
}

impl FrameCompressor {
    /// A compressor with a level (1 to 22). Its frames have checksums.
    ///
    /// # Errors
    /// zstd's.
    pub(crate) fn new(level: i32) -> io::Result<Self> {
        let mut context = zstd::bulk::Compressor::new(level)?;
        context.include_checksum(true)?;
        Ok(Self { context })
    }

    /// Compresses `bytes` into `frame`; `None` if the frame exceeds its capacity.
    pub(crate) fn compress(&mut self, bytes: &[u8], frame: &mut Vec<u8>) -> Option<usize> {
        self.context.compress_to_buffer(bytes, frame).ok()
    }
}

/// Compresses `bytes` to a frame.
///
/// # Errors
/// zstd's.
pub(crate) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    const LEVEL: i32 = 3;
    zstd::bulk::compress(bytes, LEVEL)
}

/// Decompresses a frame, at most `most` bytes of it.
///
/// # Errors
/// zstd's.
pub(crate) fn decompress(frame: &[u8], most: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    zstd::stream::read::Decoder::with_buffer(frame)?
        .take(most)
        .read_to_end(&mut out)?;
    Ok(out)
}
