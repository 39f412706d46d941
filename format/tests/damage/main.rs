//! Damaged files: no panic, no memory on a claim's word, and everything that is whole is given.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use support::memory::{self, Counting};
use support::{Found, open, read, rounds, trace_bytes};
use usdtrec_format::trace::{Block, BlockKind, Compression, Damage, Trace};

#[global_allocator]
static MEMORY: Counting = Counting;

/// Peak memory is the process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// What reading a file of this length may take at most, whatever it claims: buffers of blocks, the window, zstd's
/// contexts and what is really in the file.
const MAX_MEMORY: usize = 16 << 20;

const BOTH: [Compression; 2] = [Compression::None, Compression::Zstd(1)];

/// A trace of several chunks in several flushes, small enough to be damaged everywhere.
fn small(compression: Compression, finish: bool) -> Vec<u8> {
    trace_bytes(&rounds(3, 12), compression, finish)
}

/// One file that is changed in place, which is quicker than a file for each change.
struct Patient {
    file: File,
    bytes: Vec<u8>,
}

impl Patient {
    fn new(bytes: Vec<u8>) -> Self {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        Self { file, bytes }
    }

    /// Opens and reads the file with other bytes at an offset, and checks the memory that it took.
    fn with(&self, at: usize, patch: &[u8]) -> Option<(Trace, Found)> {
        let end = (at + patch.len()).min(self.bytes.len());
        let before = memory::now();
        memory::reset();
        self.file
            .write_all_at(&patch[..end - at], at as u64)
            .unwrap();
        let opened = Trace::from_file(self.file.try_clone().unwrap());
        let found = opened.ok().map(|trace| {
            let found = read(&trace);
            (trace, found)
        });
        self.file
            .write_all_at(&self.bytes[at..end], at as u64)
            .unwrap();
        let took = memory::most() - before;
        assert!(took < MAX_MEMORY, "offset {at}: {took} bytes of memory");
        found
    }

    /// Offsets that hold something: zeros between head and data are nothing that can be damaged.
    fn offsets(&self) -> impl Iterator<Item = usize> {
        let padding = self.bytes[..65536].iter().rposition(|&byte| byte != 0);
        (0..padding.unwrap() + 1).chain(65536..self.bytes.len())
    }
}

#[test]
fn every_prefix_gives_all_that_is_whole_in_it() {
    let _alone = ALONE.lock();
    for compression in BOTH {
        for finish in [false, true] {
            let bytes = small(compression, finish);
            let whole = open(&bytes).unwrap();
            let all = read(&whole).numbers();
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            for len in (0..bytes.len()).rev() {
                if (6000..65536).contains(&len) && len % 1000 != 0 {
                    // Zeros before the data.
                    continue;
                }
                file.set_len(len as u64).unwrap();
                let Ok(trace) = Trace::from_file(file.try_clone().unwrap()) else {
                    assert!(len < 104, "{len}");
                    continue;
                };
                let found = read(&trace);
                let whole: u32 = whole_blocks(&whole, len)
                    .filter_map(|block| block.samples)
                    .sum();
                let numbers = found.numbers();
                assert!(numbers.len() >= whole as usize, "{len}: {}", numbers.len());
                assert_eq!(numbers, all[..numbers.len()], "{len}");
                assert!(!found.damage.is_empty(), "{len}");
            }
        }
    }
}

fn whole_blocks(trace: &Trace, len: usize) -> impl Iterator<Item = &Block> {
    trace
        .blocks()
        .iter()
        .filter(move |block| block.end() <= len as u64)
}

/// The samples of all blocks but the one that holds an offset.
fn elsewhere(trace: &Trace, numbers: &[u64], at: usize) -> (BTreeSet<u64>, bool) {
    let mut rest = numbers;
    let mut kept = BTreeSet::new();
    let mut hit = false;
    for block in trace.blocks() {
        let (own, others) = rest.split_at(block.samples.unwrap() as usize);
        rest = others;
        if (block.offset..block.end()).contains(&(at as u64)) {
            hit = true;
        } else {
            kept.extend(own);
        }
    }
    (kept, hit)
}

#[test]
fn every_flip_costs_at_most_the_chunk_that_it_hits() {
    let _alone = ALONE.lock();
    for finish in [false, true] {
        let patient = Patient::new(small(Compression::Zstd(1), finish));
        let trace = open(&patient.bytes).unwrap();
        let all = read(&trace).numbers();
        for at in patient.offsets() {
            for mask in [0x01, 0xff] {
                let Some((_, found)) = patient.with(at, &[patient.bytes[at] ^ mask]) else {
                    assert!(at < 104, "offset {at}");
                    continue;
                };
                let numbers: BTreeSet<u64> = found.numbers().into_iter().collect();
                let (kept, hit) = elsewhere(&trace, &all, at);
                // Where the data begin cannot be known otherwise; what stands behind is found again all the same.
                let place = format!("offset {at} ^ {mask:#x}: {:?}", found.damage);
                if !(40..48).contains(&at) {
                    assert!(kept.is_subset(&numbers), "{place}");
                }
                assert!(numbers.iter().all(|number| all.contains(number)), "{place}");
                if hit && numbers.len() < all.len() {
                    assert!(found.tells_loss(), "{place}");
                }
            }
        }
    }
}

#[test]
fn every_flip_in_plain_records_leaves_what_is_before_it() {
    let _alone = ALONE.lock();
    for finish in [false, true] {
        let patient = Patient::new(small(Compression::None, finish));
        let trace = open(&patient.bytes).unwrap();
        let all = read(&trace);
        for at in patient.offsets() {
            for mask in [0x01, 0xff] {
                let Some((_, found)) = patient.with(at, &[patient.bytes[at] ^ mask]) else {
                    assert!(at < 104, "offset {at}");
                    continue;
                };
                if at < 65536 {
                    continue;
                }
                let before: u32 = whole_blocks(&trace, at)
                    .filter_map(|block| block.samples)
                    .sum();
                let before = before as usize;
                let place = format!("offset {at} ^ {mask:#x}: {:?}", found.damage);
                assert!(found.samples.len() >= before, "{place}");
                assert!(found.samples[..before] == all.samples[..before], "{place}");
            }
        }
    }
}

#[test]
fn extreme_sizes_and_counts_cost_no_memory() {
    let _alone = ALONE.lock();
    for compression in BOTH {
        for finish in [false, true] {
            let patient = Patient::new(small(compression, finish));
            // Chunks are not aligned, everything else is.
            let step = if compression == Compression::None {
                4
            } else {
                2
            };
            for at in patient.offsets().step_by(step) {
                for patch in [
                    [0xff; 8].as_slice(),
                    &[0xff, 0xff, 0xff, 0x7f],
                    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
                    &[0; 8],
                    &[0xf8, 0xff],
                ] {
                    patient.with(at, patch);
                }
            }
        }
    }
}

/// Sets bytes in the last node of the index and gives it the checksum that fits.
fn forge_node(bytes: &mut [u8], at: usize, patch: &[u8]) {
    let node = bytes
        .windows(8)
        .rposition(|part| part == b"USDTINDX")
        .unwrap();
    bytes[node + at..node + at + patch.len()].copy_from_slice(patch);
    let len = u32::from_le_bytes(*bytes[node + 12..].first_chunk().unwrap()) as usize;
    let crc = crc32fast::hash(&bytes[node + 12..node + len]);
    bytes[node + 8..node + 12].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn an_index_that_lies_is_not_believed() {
    let _alone = ALONE.lock();
    let bytes = small(Compression::Zstd(1), false);
    let all = read(&open(&bytes).unwrap()).sorted();
    let own = bytes
        .windows(8)
        .rposition(|part| part == b"USDTINDX")
        .unwrap() as u64;
    let patches = [
        // Entries, losses.
        (20, u64::from(u32::MAX)),
        // The node before: none, itself, behind itself, nowhere, inside another.
        (32, 0),
        (32, own),
        (32, own + 8),
        (32, u64::MAX),
        (32, 65536),
        (32, own - 16),
        // Where the first entry's chunk is.
        (72, 0),
        (72, u64::MAX),
        (72, own),
        (72, 65537),
        // Its length and its records' length.
        (80, u64::MAX),
        (80, 0),
        (80, 0x7fff_ffff),
    ];
    for (at, value) in patches {
        let mut forged = bytes.clone();
        forge_node(&mut forged, at, &value.to_le_bytes());
        let patient = Patient::new(forged);
        let (_, found) = patient.with(0, b"P").unwrap();
        let place = format!("{value:#x} at {at}: {:?}", found.damage);
        if found.sorted() != all {
            assert!(found.tells_loss(), "{place}");
        }
        assert!(!found.damage.is_empty(), "{place}");
        let samples: BTreeSet<u64> = found.numbers().into_iter().collect();
        assert_eq!(samples.len(), found.samples.len(), "{place}: twice");
    }
}

/// A zstd frame of 1 GiB in 32 KiB: blocks that say "128 KiB of this byte".
fn bomb() -> Vec<u8> {
    const BLOCKS: usize = 8192;
    const BLOCK: u32 = 128 << 10;
    const RUN_LENGTH: u32 = 1 << 1;
    // Magic, no content size, a window of 128 KiB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    for number in 1..=BLOCKS {
        let header = BLOCK << 3 | RUN_LENGTH | u32::from(number == BLOCKS);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// Chunks whose frames hold far more than they say.
#[test]
fn a_bomb_is_not_inflated() {
    let _alone = ALONE.lock();
    let mut bytes = small(Compression::Zstd(1), false);
    let bomb = bomb();
    let mut chunk = Vec::new();
    chunk.extend(81_u32.to_le_bytes());
    chunk.extend([0; 2]);
    chunk.extend(((56 + bomb.len()) as u16).to_le_bytes());
    chunk.extend(0x184D_2A55_u32.to_le_bytes());
    chunk.extend(40_u32.to_le_bytes());
    chunk.extend(b"USDC\x01\0\0\0");
    let mut rest = (1_u32 << 20).to_le_bytes().to_vec();
    rest.extend(10_u32.to_le_bytes());
    rest.extend(10_u32.to_le_bytes());
    rest.extend([1; 16]);
    rest.extend(&bomb);
    chunk.extend(crc32fast::hash(&rest).to_le_bytes());
    chunk.extend(rest);
    // The index is made unreadable, so that the walk finds the chunk, which takes the place of the last one.
    let trace = open(&bytes).unwrap();
    let last = trace.blocks().last().unwrap();
    let at = last.offset as usize;
    bytes.splice(at..last.end() as usize, chunk);
    let size = (bytes.len() - 65536) as u64;
    bytes[48..56].copy_from_slice(&size.to_le_bytes());
    let patient = Patient::new(bytes);
    let (trace, found) = patient.with(0, b"P").unwrap();
    assert!(trace.blocks().iter().any(|block| block.raw_len == 1 << 20));
    // In the words of either implementation of zstd.
    let told = |damage: &Damage| {
        let words = ["buffer is too small", "Target must have"];
        words.iter().any(|words| damage.to_string().contains(words))
    };
    assert!(
        found.tells_loss() && found.damage.iter().any(told),
        "{:?}",
        found.damage
    );
    assert_eq!(found.samples.len(), 24, "the two rounds before");
}

/// The same in a stream of `perf record -z`, which is read for as long as the records in it are few.
#[test]
fn a_bomb_in_a_stream_is_not_inflated() {
    let _alone = ALONE.lock();
    let mut bytes = small(Compression::Zstd(1), false);
    let bomb = bomb();
    let trace = open(&bytes).unwrap();
    bytes.truncate(trace.blocks()[0].offset as usize);
    bytes.extend(81_u32.to_le_bytes());
    bytes.extend([0; 2]);
    bytes.extend(((8 + bomb.len()) as u16).to_le_bytes());
    bytes.extend(bomb);
    let size = (bytes.len() - 65536) as u64;
    bytes[48..56].copy_from_slice(&size.to_le_bytes());
    let before = memory::now();
    memory::reset();
    let trace = open(&bytes).unwrap();
    let kinds: Vec<BlockKind> = trace.blocks().iter().map(|block| block.kind).collect();
    assert_eq!(kinds, [BlockKind::Stream]);
    let found = read(&trace);
    let told = found
        .damage
        .iter()
        .any(|damage| damage.to_string().contains("bytes of records, found more"));
    assert!(found.tells_loss() && told, "{:?}", found.damage);
    let took = memory::most() - before;
    assert!(took < 256 << 20, "{took} bytes of memory");
}

/// The same file without an index, so that there are no checksums of its head.
fn without_index(mut bytes: Vec<u8>) -> Vec<u8> {
    let magic = b"USDTINDX";
    let starts = bytes.windows(magic.len()).enumerate();
    let starts = starts.filter(|(_, window)| *window == magic);
    let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    for at in starts {
        bytes[at..at + magic.len()].fill(0);
    }
    bytes
}

/// The feature bit 24 says that the samples are elsewhere.
#[test]
fn samples_in_other_files_are_told() {
    let _alone = ALONE.lock();
    let mut part = without_index(small(Compression::None, true));
    part[72 + 3] |= 1;
    let trace = open(&part).unwrap();
    let told = |damage: &Damage| damage.loses_records() && damage.to_string().contains("data.N");
    assert!(trace.damage().iter().any(told), "{:?}", trace.damage());
}

#[test]
fn what_is_no_trace_is_refused_in_words() {
    let _alone = ALONE.lock();
    let mut swapped = small(Compression::None, true);
    swapped[..8].reverse();
    let mut old = small(Compression::None, true);
    old[8] = 72;
    let mut attrs = without_index(small(Compression::None, true));
    attrs[16] = 72;
    let cases: [(&[u8], &str); 7] = [
        (b"", "an empty file"),
        (b"PERF", "PERF"),
        (b"PERFILE2\x68", "the end of the file"),
        (&[0; 200], "killed before it wrote the header"),
        (&swapped, "big-endian"),
        (&old, "found 72"),
        (&attrs, "attr size of 80"),
    ];
    for (bytes, part) in cases {
        let error = open(bytes).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let error = Trace::open(directory.path()).unwrap_err();
    assert!(error.to_string().contains("--threads"), "{error}");
    let missing = Trace::open("/nonexistent/usdtrec.data".as_ref()).unwrap_err();
    assert!(missing.to_string().contains("/nonexistent/usdtrec.data"));
}
