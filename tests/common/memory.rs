//! The memory of a process.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The byte at a link-time address of a position-independent program that a process runs.
#[track_caller]
pub(crate) fn byte_of(pid: u32, program: &Path, address: u64) -> u8 {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("a process that runs");
    let path = program.to_str().expect("a path in UTF-8");
    let first = maps.lines().find(|line| line.ends_with(path));
    let first = first.expect("the program is mapped");
    let (start, _) = first.split_once('-').expect("START-END");
    let start = u64::from_str_radix(start, 16).expect("an address");
    let mut memory = File::open(format!("/proc/{pid}/mem")).expect("a process that runs");
    let mut byte = [0];
    let at = SeekFrom::Start(start + address);
    memory.seek(at).expect("any address");
    memory.read_exact(&mut byte).expect("mapped memory");
    byte[0]
}
