//! What a program on new mappings tells the recorder.

use super::program::{self, CALL_BYTES};

/// Size of the key of a file: inode number, device, generation.
pub(super) const FILE_BYTES: usize = 16;

/// A mapping of a file that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMapping {
    /// Number of such mappings until then, from 1 on.
    pub token: u64,
    /// When, ns of the trace's clock, after its record.
    pub time: u64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Whether it is held.
    pub is_held: bool,
    /// The file, as the kernel knows it.
    pub file: [u8; FILE_BYTES],
}

impl NewMapping {
    /// A record of the ring ([`program`]).
    pub(super) fn parse(record: &[u8]) -> Option<Self> {
        let record: &[u8; CALL_BYTES as usize] = record.first_chunk()?;
        let double = |at: usize| {
            let bytes = record.get(at..)?.first_chunk()?;
            Some(u64::from_ne_bytes(*bytes))
        };
        let thread = double(program::THREAD as usize)?;
        Some(Self {
            token: double(program::TOKEN_AT as usize)?,
            time: double(program::TIME as usize)?,
            pid: (thread >> 32) as u32,
            tid: thread as u32,
            is_held: double(program::IS_HELD as usize)? != 0,
            file: *record.get(program::FILE_AT as usize..)?.first_chunk()?,
        })
    }
}
