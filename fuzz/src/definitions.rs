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
    writer.push(&records::hits(1000));
    writer.flush().unwrap();
    shown::some(&scratch.path(), crc32fast::hash(bytes));
}
