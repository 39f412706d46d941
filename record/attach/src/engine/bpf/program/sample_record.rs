//! The record that a program writes: a `PERF_RECORD_SAMPLE`, whole but for `common_pid`.
//!
//! | offset in the record | bytes | |
//! |---|---|---|
//! | 0 | 8 | record header: type 9, misc 2 (user), size |
//! | 8 | 8 | `IDENTIFIER`: the sample id |
//! | 16 | 8 | `IP` |
//! | 24 | 4 + 4 | process, thread |
//! | 32 | 8 | time, ns of `CLOCK_MONOTONIC` |
//! | 40 | 4 | CPU |
//! | 44 | 4 | the user plus 1 ([`Sample::user`](usdtrec_format::perf::Sample::user)) |
//! | 48 | 4 | size of the raw part |
//! | 52 | | raw part ([`RawLayout`]); its `common_type` is in the cookie, and in place of `common_pid` is the size of what the callers are found from, bytes |
//! | after it | | room for the strings, one of [`rooms`] for each |
//! | after them | | what the callers are found from, if they are recorded ([`stack`](super::stack)) |

use usdtrec_format::{RawLayout, RawLength};

/// Offset of the raw part in a record.
pub(in crate::engine::bpf) const RAW: usize = 52;

/// Offset of the size of what the callers are found from: that of `common_pid`, which the recorder writes instead.
pub(in crate::engine::bpf) const END_SIZE: usize = RAW + 4;
/// Offset of the process.
pub(super) const PROCESS: usize = 24;
/// Offset of the thread.
pub(in crate::engine::bpf) const THREAD: usize = 28;
/// Offset of the user plus 1.
pub(in crate::engine::bpf) const USER: usize = 44;

/// Room for a string in a short record, bytes, with the NUL.
pub(in crate::engine::bpf) const SHORT: usize = 64;
/// Maximum number of strings in a short record: a program with short records is twice as long.
const MAX_SHORT_STRINGS: usize = 4;

/// Room for the strings of a record in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct Room {
    /// For each string, bytes.
    pub(in crate::engine::bpf) each: usize,
    /// Size of the record without what the callers are found from, bytes.
    pub(in crate::engine::bpf) record: usize,
}

/// The rooms that the records of a layout can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct Rooms {
    /// In a record that is tried first; `None` if that would save little.
    pub(in crate::engine::bpf) short: Option<Room>,
    /// The limit, one byte more, by which a longer string is recognized, and the NUL.
    pub(in crate::engine::bpf) whole: Room,
}

/// Room for each string of a layout. The size of a reservation is a constant, so a program first reserves room for short strings, and
/// starts again with the whole room if one is longer.
pub(in crate::engine::bpf) fn rooms(layout: &RawLayout) -> Rooms {
    let whole = (usize::from(layout.string_limit) + 2).next_multiple_of(8);
    let always_long =
        |length| matches!(length, Some(RawLength::Fixed(bytes)) if bytes as usize > SHORT);
    let strings = layout.strings().count();
    let saves = whole >= 2 * SHORT
        && (1..=MAX_SHORT_STRINGS).contains(&strings)
        && !layout.strings().any(|string| always_long(string.length));
    let room = |each: usize| Room {
        each,
        record: RAW + usize::from(layout.size) + strings * each,
    };
    Rooms {
        short: saves.then(|| room(SHORT)),
        whole: room(whole),
    }
}

impl Rooms {
    /// The room in a record of this length; `None` if it is another length.
    pub(in crate::engine::bpf) fn of_record(self, len: usize) -> Option<Room> {
        let mut rooms = self.short.into_iter().chain([self.whole]);
        rooms.find(|room| room.record == len)
    }
}
