//! The two implementations, compared on all test files and on each other's output.

use std::fs;
use std::path::PathBuf;

use super::pure;
use crate::perf::{RecordType, Records};
use crate::trace::chunk::ChunkHeader;
use crate::trace::stream::piece;
use crate::trace::{BlockKind, Trace};

#[cfg(feature = "zstd")]
use super::native;
// Without the C library there is only one to be tried.
#[cfg(not(feature = "zstd"))]
use super::pure as native;

const MAX_BYTES: usize = 64 << 20;

fn test_files() -> Vec<PathBuf> {
    let root: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../testdata"].iter().collect();
    let traces = fs::read_dir(root.join("traces")).unwrap().flatten();
    let mut files: Vec<PathBuf> = traces
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "data")
        })
        .collect();
    files.push(root.join("demo.data"));
    files
}

#[test]
fn both_decode_all_test_files_alike() {
    let (mut frames, mut pieces) = (0, 0);
    for file in test_files() {
        let trace = Trace::open(&file).unwrap();
        let mut streams = (
            native::StreamDecompressor::new().unwrap(),
            pure::StreamDecompressor::new().unwrap(),
        );
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for block in trace.blocks() {
            let mut bytes = Vec::new();
            trace.read_exact(block, &mut bytes).unwrap();
            match block.kind {
                BlockKind::Plain => {}
                BlockKind::Chunk => {
                    frames += 1;
                    let header = ChunkHeader::parse(&bytes).unwrap();
                    let frame = header.frame(&bytes).unwrap();
                    let len = header.raw_len as usize;
                    let (mut one, mut other) = (Vec::new(), Vec::new());
                    native::FrameDecompressor::default()
                        .decompress(frame, len, &mut one)
                        .unwrap();
                    pure::FrameDecompressor::default()
                        .decompress(frame, len, &mut other)
                        .unwrap();
                    assert!(one == other, "{} at {}", file.display(), block.offset);
                }
                BlockKind::Stream => {
                    for record in Records::new(&bytes) {
                        assert!(matches!(
                            record.kind,
                            RecordType::COMPRESSED | RecordType::COMPRESSED2
                        ));
                        pieces += 1;
                        let piece = piece(&record).unwrap();
                        streams.0.decompress(piece, MAX_BYTES, &mut one).unwrap();
                        streams.1.decompress(piece, MAX_BYTES, &mut other).unwrap();
                    }
                }
            }
        }
        streams.0.finish(MAX_BYTES, &mut one);
        streams.1.finish(MAX_BYTES, &mut other);
        assert!(
            one == other,
            "{}: {} bytes, {}",
            file.display(),
            one.len(),
            other.len()
        );
    }
    assert!(
        frames > 0 && pieces > 5,
        "{frames} frames, {pieces} pieces of streams"
    );
}

/// Records as they are: words that change a little from one to the next.
fn records() -> Vec<u8> {
    (0..40_000_u64)
        .flat_map(|at| {
            [at / 3, at * 7919 % 4096, 0x5555_0000]
                .map(u64::to_le_bytes)
                .concat()
        })
        .collect()
}

#[test]
fn each_reads_what_the_other_wrote() {
    let records = records();
    let mut frame = Vec::with_capacity(1 << 20);
    let mut out = Vec::new();
    native::FrameCompressor::new(1)
        .unwrap()
        .compress(&records, &mut frame)
        .unwrap();
    pure::FrameDecompressor::default()
        .decompress(&frame, records.len(), &mut out)
        .unwrap();
    assert!(out == records);
    pure::FrameCompressor::new(1)
        .unwrap()
        .compress(&records, &mut frame)
        .unwrap();
    native::FrameDecompressor::default()
        .decompress(&frame, records.len(), &mut out)
        .unwrap();
    assert!(out == records);
    let blob = native::compress(&records).unwrap();
    assert!(pure::decompress(&blob, u64::MAX).unwrap() == records);
    assert_eq!(pure::decompress(&blob, 10).unwrap(), records[..10]);
    let blob = pure::compress(&records).unwrap();
    assert!(native::decompress(&blob, u64::MAX).unwrap() == records);
}

#[test]
fn both_refuse_what_is_wrong() {
    let records = records();
    let mut frame = Vec::with_capacity(1 << 20);
    native::FrameCompressor::new(1)
        .unwrap()
        .compress(&records, &mut frame)
        .unwrap();
    let mut out = Vec::new();
    let mut refused = |frame: &[u8], len: usize| {
        let one = native::FrameDecompressor::default().decompress(frame, len, &mut out);
        let other = pure::FrameDecompressor::default().decompress(frame, len, &mut out);
        assert_eq!(one.is_err(), other.is_err(), "{one:?} {other:?}");
        one.is_err()
    };
    assert!(!refused(&frame, records.len()));
    assert!(refused(&frame, records.len() - 1));
    assert!(refused(&frame, records.len() + 1));
    assert!(refused(&frame[..frame.len() - 1], records.len()));
    assert!(refused(&[], records.len()));
    let last = frame.len() - 1;
    frame[last] ^= 1;
    assert!(!refused(&frame, records.len()));
    assert!(out == records, "the checksum of the frame is not compared");
}
