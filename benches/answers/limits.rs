//! What the machine itself can do: copying memory, and zstd alone.

use std::hint::black_box;
use std::time::Instant;

use crate::ROUNDS;
use crate::table::median;

/// Bytes that are copied: far more than caches hold.
const COPIED: usize = 256 << 20;

/// Bytes a second that one thread copies.
pub(crate) fn copying() -> f64 {
    let from = vec![1_u8; COPIED];
    let mut to = vec![0_u8; COPIED];
    let rates: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
            COPIED as f64 / begin.elapsed().as_secs_f64()
        })
        .collect();
    median(&rates)
}

/// Seconds that one thread takes to inflate these blocks, which are compressed first, by zstd alone: no file, no checks.
pub(crate) fn inflating(blocks: &[Vec<u8>]) -> f64 {
    let frames: Vec<Vec<u8>> = blocks
        .iter()
        .map(|block| zstd::bulk::compress(block, 1).expect("zstd"))
        .collect();
    let most = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let mut inflater = zstd::bulk::Decompressor::new().expect("zstd");
    let mut out = vec![0; most];
    let times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            for frame in &frames {
                let bytes = inflater
                    .decompress_to_buffer(frame, &mut out)
                    .expect("zstd");
                black_box(bytes);
            }
            begin.elapsed().as_secs_f64()
        })
        .collect();
    median(&times)
}
