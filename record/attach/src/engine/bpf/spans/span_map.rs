//! The map of open spans.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use usdtrec_kernel::bpf::insn::Map;
use usdtrec_kernel::bpf::sys::{self, MapKind, MapShape};

use super::super::kernel_objects::MappedWords;
use super::entry::SpanMemory;

/// Maximum number of elements, and maximum size of the map, bytes.
const MAX_ENTRIES: usize = 65_536;
pub(in crate::engine::bpf) const MAX_BYTES: usize = 64 << 20;
/// What an element takes besides its key and value, with its share of the buckets, bytes.
const ELEMENT: usize = 80;
/// Elements of threads without open spans stay in one part of so many of the map.
const STAY: u32 = 2;
/// Size of a key, bytes.
pub(super) const KEY: u32 = 24;

/// The maps. The kernel allocates all of their memory at once.
#[derive(Debug)]
pub(in crate::engine::bpf) struct SpanMaps {
    pub(super) spans: OwnedFd,
    pub(super) shape: MapShape,
    /// An array with one element of zeros, which new elements are copied from, and the number of elements of threads for which there is room.
    zeros: OwnedFd,
    zero_words: MappedWords,
    /// When threads that have ended are looked for again.
    pub(super) next_search: Instant,
    /// How large elements are.
    pub memory: SpanMemory,
}

impl SpanMaps {
    /// Creates them, for at most `most` open spans if that is less than what there is room for in so many bytes.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub(in crate::engine::bpf) fn new(
        memory: SpanMemory,
        bytes: usize,
        most: Option<usize>,
    ) -> io::Result<Self> {
        let element = memory.bytes() as usize + KEY as usize + ELEMENT;
        let entries = (bytes / element).min(most.unwrap_or(MAX_ENTRIES));
        let shape = MapShape {
            key_size: KEY,
            value_size: memory.bytes(),
            entries: entries.clamp(1, MAX_ENTRIES) as u32,
        };
        let zeros = sys::create_array(memory.room_at() + 8, 1)?;
        let maps = Self {
            spans: sys::create_map(MapKind::Hash, shape)?,
            shape,
            zero_words: MappedWords::new(zeros.as_fd(), memory.room_at() as usize / 8 + 1)?,
            zeros,
            next_search: Instant::now(),
            memory,
        };
        if let Some(room) = maps.room() {
            room.store(u64::from(shape.entries / STAY), Ordering::Relaxed);
        }
        Ok(maps)
    }

    /// The number of elements of threads for which there is room; less than 0 if there are more.
    pub(in crate::engine::bpf) fn room_for_threads(&self) -> i64 {
        let room = self.room().map(|room| room.load(Ordering::Relaxed));
        room.unwrap_or(0).cast_signed()
    }

    /// The same as two's complement, which programs change.
    pub(super) fn room(&self) -> Option<&AtomicU64> {
        self.zero_words.get(self.memory.room_at() as usize / 8)
    }

    /// The maps, for programs.
    pub(in crate::engine::bpf) fn descriptors(&self) -> [(Map, BorrowedFd<'_>); 2] {
        [
            (Map::Spans, self.spans.as_fd()),
            (Map::SpanZeros, self.zeros.as_fd()),
        ]
    }
}
