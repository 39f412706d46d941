//! Traces without the zeros between head and data.

use super::repair;

/// The same file with the data moved up to the head: 60 KB of zeros between them would only be mutated in vain.
pub fn compact(mut bytes: Vec<u8>) -> Vec<u8> {
    const DATA: usize = 40;
    let word = |bytes: &[u8], at: usize| {
        bytes
            .get(at..)?
            .first_chunk()
            .map(|word| u64::from_le_bytes(*word))
    };
    let Some(data) = word(&bytes, DATA).filter(|data| *data == 65536 && bytes.len() > 65536) else {
        return bytes;
    };
    let head = bytes[..data as usize]
        .iter()
        .rposition(|&byte| byte != 0)
        .unwrap_or(0);
    let head = (head + 1).next_multiple_of(8);
    let shift = data - head as u64;
    bytes.drain(head..data as usize);
    let mut less = |at: usize| {
        if let Some(offset) = word(&bytes, at).filter(|offset| *offset >= data) {
            bytes[at..at + 8].copy_from_slice(&(offset - shift).to_le_bytes());
        }
    };
    less(DATA);
    let nodes: Vec<usize> = {
        let windows = bytes.windows(8).enumerate();
        windows
            .filter(|(_, window)| window == b"USDTINDX")
            .map(|(at, _)| at)
            .collect()
    };
    for node in nodes {
        // A node of version 1 has no checksums of the head, which is to be mutated.
        bytes[node + 16] = 1;
        let entries = word(&bytes, node + 20).unwrap_or(0) as u32;
        let places = (0..entries as usize)
            .map(|entry| node + 72 + 48 * entry)
            .chain([node + 32]);
        for at in places {
            if let Some(offset) = word(&bytes, at).filter(|offset| *offset >= data) {
                bytes[at..at + 8].copy_from_slice(&(offset - shift).to_le_bytes());
            }
        }
    }
    repair::checksums(&mut bytes);
    bytes
}
