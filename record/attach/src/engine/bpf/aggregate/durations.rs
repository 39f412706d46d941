//! The histograms of the durations of spans: the counts of all buckets that are not empty, in one map. Groups have few of many buckets each, as many strings do.
//!
//! | offset in a key | bytes | |
//! |---|---|---|
//! | 0 | 2 | the bucket |
//! | 2 | 6 | place of the group among the numbers |

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use usdtrec_format::NumberBucket;
use usdtrec_kernel::bpf::insn::{Assembler, Helper, IS_NEW, If, Map, Op, Reg, Width};
use usdtrec_kernel::bpf::sys::{self, MapKind, MapShape};

use super::super::slots;
use super::number_layout::{NumberLayout, Word};
use crate::aggregation::BucketCount;
use crate::engine::numbers::u64_at;

/// Size of the map, bytes.
pub(super) const BYTES: usize = 12 << 20;
/// What an element takes, with its share of the buckets of the map, bytes.
const ELEMENT: usize = 96;
/// Bits of the bucket in a key.
const BUCKET_BITS: i32 = 16;

const SHAPE: MapShape = MapShape {
    key_size: 8,
    value_size: 8,
    entries: (BYTES / ELEMENT) as u32,
};

/// Slots of a key, and of the count that a new element begins with: what a hit is matched by is not needed any more.
const KEY: i16 = slots::SPAN_MARKS + 8;
const COUNT: i16 = slots::SPAN_MARKS + 16;

/// The map.
#[derive(Debug)]
pub(super) struct DurationBuckets(OwnedFd);

impl DurationBuckets {
    /// Creates it.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub(super) fn new() -> io::Result<Self> {
        sys::create_map(MapKind::Hash, SHAPE).map(Self)
    }

    /// Passes all counts to `take`, with the places of their groups among the numbers.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub(super) fn read(&self, mut take: impl FnMut(u64, BucketCount)) -> io::Result<()> {
        sys::read_map(self.0.as_fd(), SHAPE, |key, count| {
            let word = |bytes| u64_at(bytes, 0).unwrap_or(0);
            let (key, count) = (word(key), word(count));
            let place = key & ((1 << BUCKET_BITS) - 1);
            let bucket = NumberBucket::at_place(place as u32);
            if let Some(bucket) = bucket.filter(|_| count > 0) {
                take(key >> BUCKET_BITS, BucketCount { bucket, count });
            }
        })
    }
}

impl AsFd for DurationBuckets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Counts a duration in bucket `R5`. The place of the group among the numbers is in the slot of keys of arrays, and its numbers are at `R9`. What has no room
/// is counted there.
pub(super) fn count_in_bucket(asm: &mut Assembler, place: usize) {
    let found = asm.label();
    // KEY = (u64)number << BUCKET_BITS | r5;
    asm.load(Width::Word, Reg::R1, Reg::R10, slots::KEY);
    asm.op_value(Op::ShiftLeft, Reg::R1, BUCKET_BITS);
    asm.op(Op::Or, Reg::R1, Reg::R5);
    asm.store(Width::Double, Reg::R10, KEY, Reg::R1);
    // count = bpf_map_lookup_elem(&DurationBuckets, &KEY); if (count) goto found;
    asm.call_map(Helper::MapLookup, Map::DurationBuckets, KEY);
    asm.jump_if(If::NotEqual, Reg::R0, 0, found);
    // COUNT = 0; bpf_map_update_elem(&DurationBuckets, &KEY, &COUNT, BPF_NOEXIST);
    asm.store_value(Width::Double, Reg::R10, COUNT, 0);
    asm.address(Reg::R3, Reg::R10, COUNT.into());
    asm.set(Reg::R4, IS_NEW);
    asm.call_map(Helper::MapUpdate, Map::DurationBuckets, KEY);
    // Another CPU may have added it.
    // count = bpf_map_lookup_elem(&DurationBuckets, &KEY); if (!count) count = &numbers[place].Missing;
    asm.call_map(Helper::MapLookup, Map::DurationBuckets, KEY);
    asm.jump_if(If::NotEqual, Reg::R0, 0, found);
    let word = NumberLayout::word_at(place, Word::Missing);
    asm.address(Reg::R0, Reg::R9, word.cast_signed());
    // found: __sync_fetch_and_add(count, 1);
    asm.place(found);
    asm.increment(Reg::R0);
}
