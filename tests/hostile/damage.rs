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
        for len in (0..bytes.len()).step_by(3) {
            report::run(&bytes[..len]);
        }
    }
}

#[test]
fn every_flip_is_shown() {
    for bytes in traces() {
        let mut bytes = bytes;
        for at in 0..bytes.len() {
            let mask = [0x01, 0x80, 0xff][at % 3];
            bytes[at] ^= mask;
            report::run(&bytes);
            bytes[at] ^= mask;
        }
    }
}

#[test]
fn every_extreme_is_shown() {
    for bytes in traces() {
        let mut bytes = bytes;
        for at in (0..bytes.len() - 8).step_by(4) {
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
            for extreme in [extremes[at / 4 % 6], extremes[(at / 4 + 1) % 6]] {
                bytes[at..at + 4].copy_from_slice(&extreme.to_le_bytes());
                report::run(&bytes);
            }
            bytes[at..at + 8].copy_from_slice(&[0xff; 8]);
            report::run(&bytes);
            bytes[at..at + 8].copy_from_slice(&before);
        }
    }
}
