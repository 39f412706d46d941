//! The names of functions in stacks that follow a trace: JSON, in a section with lengths and a checksum.
//!
//! A byte says how the section is made; the rest is the JSON, or the section.

use usdtrec_format::perf::put_callchain;
use usdtrec_format::trace::{Compression, Trace, TraceWriter};

use super::file::Scratch;
use super::{records, shown};

/// The magic bytes of the section.
const MAGIC: &[u8] = b"USDTCODE";
/// An address of the file that is mapped, and its offset there.
const MAPPED: u64 = 0x55_0000_0000;

/// Shows a trace with these names in one of the ways.
pub fn run(bytes: &[u8]) {
    if let Some(scratch) = trace(bytes) {
        shown::some(&scratch.path(), crc32fast::hash(bytes));
    }
}

/// Whether the names are read.
pub fn are_read(bytes: &[u8]) -> bool {
    let trace = trace(bytes).map(|scratch| Trace::open(&scratch.path()));
    trace.is_some_and(|trace| trace.unwrap().code_names().is_some())
}

fn trace(bytes: &[u8]) -> Option<Scratch> {
    let (&how, rest) = bytes.split_first()?;
    let scratch = Scratch::new(&[]);
    let written = TraceWriter::create(scratch.open(), &records::info(), Compression::None);
    let mut writer = written.unwrap();
    writer.push(&records::process(0));
    writer.push(&stacks());
    writer.finish(&[]).unwrap();
    let section = match how & 1 {
        0 => section(rest, how),
        _ => [MAGIC, rest].concat(),
    };
    scratch.append(&section);
    Some(scratch)
}

/// The section with this JSON. Lengths are wrong in some.
fn section(json: &[u8], how: u8) -> Vec<u8> {
    let frame = frame(json);
    let mut rest = Vec::new();
    let [long, longer] = [2, 4].map(|bit| u64::from(how & bit) << 20);
    rest.extend((json.len() as u64 + long).to_le_bytes());
    rest.extend((frame.len() as u64 + longer).to_le_bytes());
    rest.extend(frame);
    let mut bytes = MAGIC.to_vec();
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(crc32fast::hash(&rest).to_le_bytes());
    bytes.extend(rest);
    bytes
}

/// A zstd frame of blocks that are not compressed (RFC 8878, 3.1.1).
fn frame(bytes: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 1 << 16;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend((bytes.len() as u32).to_le_bytes());
    let mut blocks: Vec<&[u8]> = bytes.chunks(BLOCK).collect();
    if blocks.is_empty() {
        blocks.push(&[]);
    }
    let last = blocks.len() - 1;
    for (at, block) in blocks.into_iter().enumerate() {
        let head = (block.len() as u32) << 3 | u32::from(at == last);
        frame.extend(&head.to_le_bytes()[..3]);
        frame.extend(block);
    }
    frame
}

/// Samples of the event of [`records`] that has call chains, without registers.
fn stacks() -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0..8 {
        let mut parts = Vec::new();
        let callers = [0x100, 0x200, 0x1fff, 0x0dad_0000];
        let addresses = callers.map(|address| MAPPED + address + number % 2);
        put_callchain(&addresses, None, &mut parts);
        parts.extend(0_u64.to_le_bytes());
        let size = 48 + parts.len() as u64;
        for word in [
            9 | size << 48,
            3,
            MAPPED + 0x100,
            7 | 7 << 32,
            1 + number,
            0,
        ] {
            out.extend(word.to_le_bytes());
        }
        out.extend(parts);
    }
    out
}
