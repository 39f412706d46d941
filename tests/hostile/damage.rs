//! Small traces damaged everywhere, shown in every way.

use usdtrec_format::trace::Compression;

use crate::fuzz::{compact::compact, records, report};

fn traces() -> [Vec<u8>; 2] {
    [
        compact(records::trace(Compression::Zstd(1), false)),
        compact(records::trace(Compression::None, true)),
    ]
}

#[test]
fn every_prefix_is_shown() {
    for bytes in traces() {
        for len in (0..bytes.len()).step_by(5) {
            report::run(&bytes[..len]);
        }
    }
}

#[test]
fn every_flip_is_shown() {
    // Every byte of the one, every third of the other, whose records stand bare and are many times the same.
    for (bytes, step) in traces().into_iter().zip([1, 3]) {
        let mut bytes = bytes;
        for at in (0..bytes.len()).step_by(step) {
            let mask = [0x01, 0x80, 0xff][at / step % 3];
            bytes[at] ^= mask;
            report::run(&bytes);
            bytes[at] ^= mask;
        }
    }
}

#[test]
fn every_extreme_is_shown() {
    for (bytes, step) in traces().into_iter().zip([4, 8]) {
        let mut bytes = bytes;
        for (number, at) in (0..bytes.len() - 8).step_by(step).enumerate() {
            let before = *bytes[at..].first_chunk::<8>().unwrap();
            let word = u32::from_le_bytes([before[0], before[1], before[2], before[3]]);
            let extremes = [
                0,
                1,
                u32::MAX,
                u32::MAX >> 1,
                word.wrapping_add(1),
                word.wrapping_sub(1),
            ];
            bytes[at..at + 4].copy_from_slice(&extremes[number % 6].to_le_bytes());
            report::run(&bytes);
            bytes[at..at + 8].copy_from_slice(&[0xff; 8]);
            report::run(&bytes);
            bytes[at..at + 8].copy_from_slice(&before);
        }
    }
}
