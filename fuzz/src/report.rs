//! The report, end to end: a whole file.

use super::file::Scratch;
use super::{repair, shown};

/// Shows the file in one of the ways.
pub fn run(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    repair::checksums(&mut bytes);
    let scratch = Scratch::new(&bytes);
    shown::some(&scratch.path(), crc32fast::hash(&bytes));
}
