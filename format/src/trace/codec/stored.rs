//! A zstd frame whose blocks are not compressed (RFC 8878): for what would be compressed more than readers believe.

/// Maximum length of a block, bytes.
const BLOCK: usize = 128 << 10;

/// Makes a frame of `bytes`, at most 4 GiB.
pub(crate) fn store(bytes: &[u8]) -> Vec<u8> {
    /// A single segment, whose content size has 4 bytes, without checksum.
    const DESCRIPTOR: u8 = 0b1010_0000;
    let mut frame = 0xfd2f_b528_u32.to_le_bytes().to_vec();
    frame.push(DESCRIPTOR);
    frame.extend((bytes.len() as u32).to_le_bytes());
    let mut blocks = bytes.chunks(BLOCK).peekable();
    while let Some(block) = blocks.next() {
        let is_last = u32::from(blocks.peek().is_none());
        // The type of the block, raw, is 0.
        let header = (block.len() as u32) << 3 | is_last;
        frame.extend(header.to_le_bytes().iter().take(3));
        frame.extend_from_slice(block);
    }
    frame
}
