//! Probe definitions: JSON, which is compressed and checksummed in a file.

use usdtrec_format::trace::{Compression, TraceInfo, TraceWriter};

use super::file::Scratch;
use super::{records, shown};

/// Shows a file with these definitions in one of the ways.
pub fn run(bytes: &[u8]) {
    let Ok(definitions) = serde_json::from_slice(bytes) else {
        return;
    };
    let info = TraceInfo {
        definitions: Some(definitions),
        ..records::info()
    };
    let scratch = Scratch::new(&[]);
    // Paths that have no JSON.
    let Ok(mut writer) = TraceWriter::create(scratch.open(), &info, Compression::Zstd(1)) else {
        return;
    };
    writer.push(&samples());
    writer.flush().unwrap();
    shown::some(&scratch.path(), crc32fast::hash(bytes));
}

/// A sample of each of the first two ids, and of each id shared by the sites of an event.
fn samples() -> Vec<u8> {
    let mut out = Vec::new();
    for id in [1_u64, 101, 1, 2] {
        let start = out.len();
        out.extend(9_u64.to_le_bytes());
        for word in [id, 0x55_0000_1000, 7 | 8 << 32, 1000 + id, 0] {
            out.extend(word.to_le_bytes());
        }
        if id == 2 {
            // Seven registers, no stack.
            out.extend(
                [2_u64, 1, 2, 3, 4, 5, 6, 7, 0]
                    .iter()
                    .flat_map(|word| word.to_le_bytes()),
            );
        }
        let size = (out.len() - start) as u16;
        out[start + 6..start + 8].copy_from_slice(&size.to_le_bytes());
    }
    out
}
