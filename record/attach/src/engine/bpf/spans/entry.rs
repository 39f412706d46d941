//! The element of the map of open spans.
//!
//! The key is the number of the span, a level, a thread or process if it is part of the key, and the value of an argument if that is: the span that began
//! when so many others of its key were open.
//!
//! | offset in the value | bytes | |
//! |---|---|---|
//! | 0 | 8 | number of open spans |
//! | 8 | 8 | number of spans that began beyond [`LEVELS`], or without room above open ones, and did not end |
//! | 16 | 8 | 1 while a program has the element, where programs of several threads may want it; 2 if the thread alone is the key |
//! | 24 | 8 | task of the key, where that is so |
//! | 32 | 8 | value of the key, where that is so |
//! | 40 | | of each level: when its span began, ns; which of its arguments are known, a bit for each; a word for each of these |
//! | after them | | the record of the begin |
//! | after it | | the record of the end that is being matched |
//!
//! In elements of other levels than 0, only the record of the begin is used.

use usdtrec_format::spans::PROGRAM_LEVELS;

/// Maximum number of spans of one key that are open at once.
pub(super) const LEVELS: u32 = PROGRAM_LEVELS;
/// Offset of the number of open spans.
pub(super) const DEPTH: i16 = 0;
/// Offset of the number of those beyond.
pub(super) const BEYOND: i16 = 8;
/// Offset of the word that is 1 while a program has the element.
pub(super) const OWNED: i16 = 16;
/// That word if the thread alone is the key.
pub(super) const IS_OF_THREAD: i32 = 2;
/// Offset of the task of the key.
pub(super) const TASK: i16 = 24;
/// Offset of the value of the key.
pub(super) const VALUE: i16 = 32;
/// Offset of what is known of the spans of each level.
pub(super) const FRAMES: u32 = 40;

/// How large the elements are, and from which duration on spans are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine::bpf) struct SpanMemory {
    /// Maximum number of arguments that must agree.
    pub(super) marks: u32,
    /// Maximum size of the record of a begin, bytes, a multiple of 8.
    pub(super) begin: u32,
    /// The same of an end.
    pub(super) end: u32,
    /// Duration of the shortest spans that are recorded, ns.
    pub(super) least: u64,
}

impl SpanMemory {
    /// Size of what is known of a level, bytes.
    pub(super) const fn frame(self) -> u32 {
        match self.marks {
            0 => 8,
            marks => 16 + 8 * marks,
        }
    }

    /// Offset of the record of the begin.
    pub(super) const fn begin_at(self) -> u32 {
        FRAMES + LEVELS * self.frame()
    }

    /// Offset of the record of the end.
    pub(super) const fn end_at(self) -> u32 {
        self.begin_at() + self.begin
    }

    /// Offset of the number of elements of threads for which there is room, after an element of zeros.
    pub(super) const fn room_at(self) -> u32 {
        self.bytes().next_multiple_of(8)
    }

    /// Size of an element, bytes.
    pub(in crate::engine::bpf) const fn bytes(self) -> u32 {
        self.end_at() + self.end
    }
}
