//! Inlined calls and lines of source, from the debugging information of a file.
//!
//! What is inlined at an address, and its line, are looked up in the unit of the address alone. What was read of shared
//! tables takes at most 96 MB, then it is forgotten. A unit has at most as many ranges of calls as bytes. So a file that
//! names one list a million times takes no more time or memory than one that does not. A caller's instruction is the one
//! before the address in the stack.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use gimli::UnitOffset;
pub use usdtrec_dwarf::LIMIT;
use usdtrec_dwarf::{
    DwarfInfo, DwarfNeed, DwarfSource, Lines, NoDwarf, ReadUnit, SplitUnit, WholeUnit,
};
use usdtrec_format::SourceLine;

use crate::symbols::demangle::demangle;
use crate::symbols::image::Binary;
use crate::symbols::inlined_calls::InlinedCalls;
use crate::symbols::search::DebugBinary;

/// What perf prints for a name that is not known.
const UNKNOWN: &str = "[unknown]";
/// Bytes that what was read may take; then it is forgotten.
const MAX_KEPT: usize = 96 << 20;

/// The debugging information of a file.
pub(crate) struct InlineInfo {
    dwarf: DwarfInfo,
    kept: Mutex<UnitCache>,
}

/// What was read.
#[derive(Default)]
struct UnitCache {
    units: HashMap<u32, Option<Arc<UnitInfo>>>,
    lines: HashMap<usize, Option<Arc<Lines>>>,
    /// Size of both in memory, bytes.
    size: usize,
}

/// What was read of a unit.
struct UnitInfo {
    whole: WholeUnit,
    calls: InlinedCalls,
    lines: Option<Arc<Lines>>,
}

/// What debugging information says of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inlining {
    /// The functions whose code was inlined there, the innermost first.
    pub(crate) calls: Vec<InlinedCall>,
    /// The line in the function that is not inlined.
    pub(crate) source: Option<SourceLine>,
}

/// A function whose code was inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InlinedCall {
    /// Its name, demangled.
    pub(crate) name: Arc<str>,
    /// The line in it.
    pub(crate) source: Option<SourceLine>,
}

impl fmt::Debug for InlineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineInfo").finish_non_exhaustive()
    }
}

impl InlineInfo {
    /// Reads the sections of a file.
    pub(crate) fn read(found: &DebugBinary) -> Result<Self, NoDwarf> {
        let DebugBinary { path, binary } = found;
        let real = path.canonicalize();
        let source = DwarfSource {
            file: binary,
            path: real.as_ref().unwrap_or(path),
            programs: vec![path.clone()],
            open: |path| Some(Box::new(Binary::open(path)?)),
        };
        Ok(Self {
            dwarf: DwarfInfo::read(source, DwarfNeed::CallsAndLines)?,
            kept: Mutex::default(),
        })
    }

    /// Whether a table was requested that is longer than is read, so that inlined functions or lines are missing.
    pub(crate) fn has_long_tables(&self) -> bool {
        self.dwarf.has_long_tables()
    }

    /// What is inlined at an address, as linked; nothing if it is not known.
    pub(crate) fn at(&self, address: u64) -> Inlining {
        let unit = self.dwarf.unit_at(address).and_then(|unit| self.unit(unit));
        let Some(unit) = unit else {
            return Inlining::default();
        };
        let of = &unit.whole.read;
        let line = |file, line| match &unit.whole.split {
            Some(SplitUnit {
                units,
                read,
                lines: Some(lines),
            }) => lines.line(&units.dwarf, &read.unit, file, line),
            _ => {
                let lines = unit.lines.as_ref()?;
                lines.line(&self.dwarf.own.dwarf, &of.unit, file, line)
            }
        };
        // The outermost call first; a call's line is in its caller.
        let calls: Vec<_> = unit.calls.at(address).collect();
        let here = unit.lines.as_ref();
        let here = here.and_then(|lines| self.dwarf.line_at(lines, of, address));
        let mut sources = calls.iter().map(|call| line(call.file, call.line));
        let outer = sources.next();
        let inner = sources.chain([here.clone()]);
        let named = calls.iter().zip(inner).map(|(call, source)| {
            let entry = self.dwarf.entry(&unit.whole, UnitOffset(call.entry));
            let name = entry.linked_name();
            let name = name.map_or_else(|| UNKNOWN.to_owned(), |name| demangle(&name));
            let name = Arc::from(name);
            InlinedCall { name, source }
        });
        let mut calls: Vec<InlinedCall> = named.collect();
        calls.reverse();
        Inlining {
            calls,
            source: outer.unwrap_or(here),
        }
    }

    fn unit(&self, at: u32) -> Option<Arc<UnitInfo>> {
        if let Some(known) = lock(&self.kept).units.get(&at) {
            return known.clone();
        }
        let read = self.read_unit(at).map(Arc::new);
        let mut kept = lock(&self.kept);
        let size = read.as_ref().map_or(0, |unit| {
            unit.calls.size() + unit.whole.read.abbreviations_size
        });
        kept.make_room(size);
        kept.units.insert(at, read.clone());
        read
    }

    fn read_unit(&self, at: u32) -> Option<UnitInfo> {
        let whole = self.dwarf.unit(at)?;
        let calls = match &whole.split {
            Some(split) => InlinedCalls::read(&split.units.dwarf, &split.read.unit),
            None => InlinedCalls::read(&self.dwarf.own.dwarf, &whole.read.unit),
        };
        if calls.is_cut() {
            self.dwarf.own.note_long_table();
        }
        Some(UnitInfo {
            lines: self.lines(&whole.read),
            whole,
            calls,
        })
    }

    fn lines(&self, unit: &ReadUnit) -> Option<Arc<Lines>> {
        let at = unit.lines?;
        if let Some(known) = lock(&self.kept).lines.get(&at.0) {
            return known.clone();
        }
        let read = self.dwarf.lines(unit).map(Arc::new);
        let mut kept = lock(&self.kept);
        kept.make_room(read.as_ref().map_or(0, |lines| lines.size()));
        kept.lines.insert(at.0, read.clone());
        read
    }
}

impl Inlining {
    /// Whether neither calls nor a line are known.
    pub(crate) const fn is_unknown(&self) -> bool {
        self.calls.is_empty() && self.source.is_none()
    }
}

impl UnitCache {
    fn make_room(&mut self, size: usize) {
        let size = size + size_of::<UnitInfo>();
        self.size += size;
        if self.size > MAX_KEPT {
            *self = Self {
                size,
                ..Self::default()
            };
        }
    }
}

/// Nothing in here can be left half-done by a panic elsewhere.
fn lock(kept: &Mutex<UnitCache>) -> MutexGuard<'_, UnitCache> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
