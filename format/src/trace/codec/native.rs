//! zstd by the C library.

use std::io::{self, Read};

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Decompresses frames on their own.
#[derive(Default)]
pub(crate) struct FrameDecompressor {
    context: Option<zstd::bulk::Decompressor<'static>>,
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
        let context = match self.context.take() {
            Some(context) => context,
            None => zstd::bulk::Decompressor::new().map_err(|error| error.to_string())?,
        };
        let found = self
            .context
            .insert(context)
            .decompress_to_buffer(frame, out)
            .map_err(|error| error.to_string())?;
        if found != len {
            return Err(format!("expected {len} bytes of records, found {found}"));
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
    /// What is wrong, in words.
    pub(crate) fn new() -> Result<Self, String> {
        Ok(Self {
            decoder: Decoder::new().map_err(|error| error.to_string())?,
            room: Vec::with_capacity(zstd::zstd_safe::DCtx::out_size()),
        })
    }

    /// Appends what one piece of the stream holds.
    ///
    /// # Errors
    /// What is wrong, in words; also if `out` would become longer than `most`.
    pub(crate) fn decompress(
        &mut self,
        piece: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let mut input = InBuffer::around(piece);
        loop {
            self.room.clear();
            let mut output = OutBuffer::around(&mut self.room);
            self.decoder
                .run(&mut input, &mut output)
                .map_err(|error| error.to_string())?;
            if out.len() + self.room.len() > most {
                return Err(format!("it holds more than {most} bytes of records"));
            }
            out.extend_from_slice(&self.room);
            if input.pos() == piece.len() && self.room.len() < self.room.capacity() {
                return Ok(());
            }
        }
    }
    /// Appends what is still kept back, at the end of the stream: nothing, here.
    pub(crate) fn finish(&mut self, _most: usize, _out: &mut Vec<u8>) {}
}

/// Compresses frames on their own.
pub(crate) struct FrameCompressor {
    context: zstd::bulk::Compressor<'static>,
}

impl FrameCompressor {
    /// A compressor of a level (1 to 22), whose frames have checksums.
    ///
    /// # Errors
    /// zstd's.
    pub(crate) fn new(level: i32) -> io::Result<Self> {
        let mut context = zstd::bulk::Compressor::new(level)?;
        context.include_checksum(true)?;
        Ok(Self { context })
    }

    /// Puts a frame of `bytes` into `frame`; `None` if it does not fit into its capacity.
    pub(crate) fn compress(&mut self, bytes: &[u8], frame: &mut Vec<u8>) -> Option<usize> {
        self.context.compress_to_buffer(bytes, frame).ok()
    }
}

/// One frame of `bytes`.
///
/// # Errors
/// zstd's.
pub(crate) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    const LEVEL: i32 = 3;
    zstd::bulk::compress(bytes, LEVEL)
}

/// The content of one frame, at most `most` bytes of it.
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
