//! The record that a program writes: a whole `PERF_RECORD_SAMPLE`.
//!
//! | offset in the record | bytes | |
//! |---|---|---|
//! | 0 | 8 | record header: type 9, misc 2 (user), size |
//! | 8 | 8 | `IDENTIFIER`: the lower 48 bits of the cookie |
//! | 16 | 8 | `IP` |
//! | 24 | 4 + 4 | process, thread |
//! | 32 | 8 | time, ns of `CLOCK_MONOTONIC` |
//! | 40 | 8 | CPU |
//! | 48 | 4 | size of the raw part |
//! | 52 | | raw part ([`RawLayout`]); its `common_type` is the upper 16 bits of the cookie |
//! | after it | | room for the strings, [`string_room`] bytes each |

use usdtrec_format::RawLayout;

/// Offset of the raw part in a record.
pub(in crate::engine) const RAW: usize = 52;

/// Bits of a cookie that are the sample id.
pub(in crate::engine::bpf) const ID_BITS: u32 = 48;

/// Size of a record in the ring, bytes.
pub(in crate::engine::bpf) fn record_size(layout: &RawLayout) -> usize {
    RAW + usize::from(layout.size) + layout.strings().count() * string_room(layout)
}

/// Room for each string in the ring, bytes: the limit, one byte more, by which a longer string is recognized, and the NUL.
pub(in crate::engine::bpf) fn string_room(layout: &RawLayout) -> usize {
    (usize::from(layout.string_limit) + 2).next_multiple_of(8)
}

/// Offset of the room for a string in the record.
pub(in crate::engine::bpf) fn string_at(layout: &RawLayout, index: usize) -> i32 {
    (RAW + usize::from(layout.size) + index * string_room(layout)) as i32
}

/// The offset in the record of an offset in the raw part.
pub(in crate::engine::bpf) const fn at(offset: u16) -> i16 {
    RAW as i16 + offset.cast_signed()
}
