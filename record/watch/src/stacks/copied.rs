//! Functions that recorded processes copied into memory, and whose callers are known by their bytes: those in the memory of the process or, once it
//! has ended, those in the file that it copied them from.
//!
//! The trampolines of CPython keep no frame pointer on x86-64. They are recognized by all of their bytes, in the memory
//! of the process. The 64 KiB around an address are searched once, since CPython fills such a piece with them before it
//! is executable, so they are known after the process has ended. A process that ended before its memory was read has
//! what CPython copied in the file of the function that was called: if that is a known trampoline, and a call of one of
//! its copies ends at the address as CPython places them, it is one.

use std::cell::RefCell;
use std::collections::HashMap;

use usdtrec_buildid_cache::served::{Patience, ProcessFile};
use usdtrec_format::Arch;
use usdtrec_unwind::{CPYTHON_ARENA_BYTES, Code, CopiedCode, CopiedFunction, CopiedOriginal};

use super::tables::RecordedMapping;
use crate::limits::MAX_PIECES;

/// Size of the memory that is searched at once, bytes: that of CPython, for 4,096 of its trampolines.
const PIECE: u64 = CPYTHON_ARENA_BYTES as u64;
/// How often a piece without such a function is searched.
const TRIES: u8 = 2;

/// Functions that recorded processes copied.
#[derive(Debug)]
pub(super) struct CopiedFunctions {
    /// `None` if none is known for this machine.
    known: Option<CopiedCode>,
    pieces: RefCell<HashMap<PieceKey, Piece>>,
}

/// A piece of a mapping. The functions of a process that forked are its child's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PieceKey {
    /// Process, if the mapping was there before the recording; else the time says which mapping it is.
    pid: Option<i32>,
    start: u64,
    /// When it was mapped, ns.
    since: u64,
}

/// What is known of a piece.
#[derive(Debug, Default)]
struct Piece {
    /// In ascending order.
    functions: Vec<CopiedFunction>,
    tries: u8,
    is_read: bool,
}

impl CopiedFunctions {
    pub(super) fn new(arch: Arch) -> Self {
        Self {
            known: CopiedCode::for_arch(arch),
            pieces: RefCell::default(),
        }
    }

    /// The code at an address of a mapping, if it is that of such a function. `original` finds the function of the file that it called.
    pub(super) fn code(
        &self,
        place: RecordedMapping,
        address: u64,
        original: impl FnOnce(&CopiedCode) -> Option<CopiedOriginal>,
    ) -> Option<Code<'_>> {
        let known = self.known.as_ref()?;
        let number = address.checked_sub(place.start)? / PIECE;
        let start = place.start + number * PIECE;
        let key = PieceKey {
            pid: (place.since == 0).then_some(place.pid),
            start,
            since: place.since,
        };
        let mut pieces = self.pieces.borrow_mut();
        if pieces.len() >= MAX_PIECES && !pieces.contains_key(&key) {
            pieces.clear();
        }
        let piece = pieces.entry(key).or_default();
        if piece.functions.is_empty() && piece.tries < TRIES {
            piece.tries += 1;
            let len = place.end.saturating_sub(start).min(PIECE);
            if let Some(memory) = read(place.pid, start, len) {
                piece.functions = known.find(&memory);
                piece.is_read = true;
            }
        }
        let at = usize::try_from(address - start).ok()?;
        if !piece.is_read {
            let is_filled = (place.end - place.start).is_multiple_of(PIECE);
            return known.copy(is_filled.then(|| original(known)).flatten()?, at);
        }
        let after = piece
            .functions
            .partition_point(|function| function.offset <= at);
        let function = *piece.functions.get(after.checked_sub(1)?)?;
        known.at(function, at - function.offset)
    }
}

/// Memory of a process; `None` if it has ended, or may not be read.
fn read(pid: i32, start: u64, len: u64) -> Option<Vec<u8>> {
    let memory = ProcessFile::memory(u32::try_from(pid).ok()?, false, Patience::Short).ok()?;
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    let count = memory.read_at(&mut bytes, start).ok()?;
    bytes.truncate(count);
    (count > 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use memmap2::MmapMut;

    use super::*;

    /// A trampoline of CPython in memory of this process.
    #[test]
    fn functions_are_found_in_the_memory_of_the_process() {
        let mut memory = MmapMut::map_anon(2 * PIECE as usize).unwrap();
        let bytes = b"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3";
        let second = PIECE as usize + 0x100;
        memory[second..second + bytes.len()].copy_from_slice(bytes);
        let start = memory.as_ptr() as u64;
        let place = RecordedMapping {
            pid: std::process::id().cast_signed(),
            start,
            end: start + 2 * PIECE,
            since: 1,
        };
        let copied = CopiedFunctions::new(Arch::X86_64);
        let has = |place: RecordedMapping, at: usize| {
            let address = place.start + at as u64;
            copied.code(place, address, |_| None).is_some()
        };
        assert!(!has(place, 0x100) && !has(place, second - 1) && !has(place, second + 11));
        assert!(has(place, second) && has(place, second + 10));
        // They are known after the process has ended, in its children, too.
        drop(memory);
        assert!(has(RecordedMapping { pid: 0, ..place }, second + 5));
        // Another mapping at the same address has none.
        let other = RecordedMapping {
            pid: 0,
            since: 2,
            ..place
        };
        assert!(!has(other, second + 5));
        // The function in the file that a call leads to shows where copies are.
        let of_file = |place: RecordedMapping, at: usize| {
            let original = |known: &CopiedCode| known.original(bytes);
            let address = place.start + at as u64;
            copied.code(place, address, original).is_some()
        };
        assert!(of_file(other, second + 5) && of_file(other, 0x15) && of_file(other, 11 + 5));
        assert!(!of_file(other, second + 6) && !of_file(other, 0x17));
        let shorter = RecordedMapping {
            end: other.end - 0x1000,
            since: 3,
            ..other
        };
        assert!(!of_file(shorter, second + 5));
        assert!(
            CopiedFunctions::new(Arch::Aarch64)
                .code(place, start, |_| None)
                .is_none()
        );
    }
}
