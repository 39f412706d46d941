//! Inlined calls and lines of source, from the debugging information of a file.
//!
//! The information may be damaged or made to do harm. Time and memory are in proportion to the file, whatever it claims: that is why
//! this is not crate `addr2line`, which reads a list of ranges, a header of lines or a table of abbreviations as often as it is named.
//!
//! What is inlined at an address, and its line, are looked up in the unit of the address alone. At most 512 MB of
//! sections of a file are read. What was read of shared tables takes at most 96 MB, then it is forgotten. A unit has at
//! most as many ranges of calls as bytes. So a file that names one list a million times takes no more time or memory
//! than one that does not. A caller's instruction is the one before the address in the stack.

mod calls;
mod lines;
mod origin;
mod sections;
mod split;
mod texts;
mod units;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use foldhash::HashMap;
use gimli::{DebugLineOffset, UnitOffset};
use object::read::{Object, ObjectSection};
use usdtrec_format::{BuildId, SourceLine, debug_file_by_build_id};

use self::calls::Calls;
use self::lines::{Lines, NoLines};
use self::origin::NamedEntry;
pub use self::sections::LIMIT;
pub(crate) use self::sections::NoInlineInfo;
use self::sections::{Room, load};
use self::split::{SplitFiles, SplitUnit};
use self::units::{ReadUnit, UnitCode, Units, lock};
use crate::symbols::demangle::demangle;
use crate::symbols::image::{Binary, ParsedBinary, build_id_of};
use crate::symbols::search::DebugBinary;

/// What perf prints for a name that is not known.
const UNKNOWN: &str = "[unknown]";
/// Bytes that what was read may take; then it is forgotten.
const MAX_KEPT: usize = 96 << 20;

/// The debugging information of a file.
pub(crate) struct InlineInfo {
    own: Units,
    /// Of the file that several share (`dwz -m`).
    shared: Option<Units>,
    split: SplitFiles,
    /// Sorted.
    code: Vec<UnitCode>,
    /// Where each table of lines ends, by its offset.
    lines_end: BTreeMap<usize, usize>,
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
    read: ReadUnit,
    /// Where its entries are, if the file has only a skeleton.
    split: Option<SplitUnit>,
    calls: Calls,
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
    pub(crate) fn read(found: &DebugBinary) -> Result<Self, NoInlineInfo> {
        let DebugBinary { path, binary } = found;
        let file = binary.parse(None).ok_or(NoInlineInfo::Absent)?;
        let mut room = Room::new();
        let own = load(binary, &file, &mut room).ok_or_else(|| room.reason())?;
        let mut dwarf = own.borrow(Clone::clone);
        let shared = shared(path, &file)
            .and_then(|(binary, id)| load(&binary, &binary.parse(Some(id))?, &mut room));
        if let Some(shared) = &shared {
            dwarf.set_sup(shared.borrow(Clone::clone));
        }
        let own = Units::new(dwarf);
        if own.is_empty() {
            return Err(NoInlineInfo::Absent);
        }
        let (code, lines_end) = own.code();
        Ok(Self {
            own,
            shared: shared.map(|shared| Units::new(shared.borrow(Clone::clone))),
            split: SplitFiles::new(path, room),
            code,
            lines_end,
            kept: Mutex::default(),
        })
    }

    /// Whether a table was requested that is longer than is read, so that inlined functions or lines are missing.
    pub(crate) fn has_long_tables(&self) -> bool {
        let shared = self.shared.as_ref();
        self.own.has_long_tables() || shared.is_some_and(Units::has_long_tables)
    }

    /// What is inlined at an address, as linked; nothing if it is not known.
    pub(crate) fn at(&self, address: u64) -> Inlining {
        let unit = UnitCode::find(&self.code, address).and_then(|unit| self.unit(unit));
        let Some(unit) = unit else {
            return Inlining::default();
        };
        let of = &unit.read.unit;
        let line = |file, line| match &unit.split {
            Some(SplitUnit {
                units,
                read,
                lines: Some(lines),
            }) => lines.line(&units.dwarf, &read.unit, file, line),
            _ => unit.lines.as_ref()?.line(&self.own.dwarf, of, file, line),
        };
        // The outermost call first; a call's line is in its caller.
        let calls: Vec<_> = unit.calls.at(address).collect();
        let here = unit.lines.as_ref();
        let here = here.and_then(|lines| lines.at(&self.own.dwarf, of, address));
        let mut sources = calls.iter().map(|call| line(call.file, call.line));
        let outer = sources.next();
        let inner = sources.chain([here.clone()]);
        let named = calls.iter().zip(inner).map(|(call, source)| {
            let split = unit.split.as_ref();
            let entry = NamedEntry {
                units: split.map_or(&self.own, |split| &split.units),
                shared: self.shared.as_ref(),
                unit: split.map_or(of, |split| &split.read.unit),
                at: UnitOffset(call.entry),
            };
            let name = entry.name();
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
        let size = read
            .as_ref()
            .map_or(0, |unit| unit.calls.size() + unit.read.abbreviations_size);
        kept.make_room(size);
        kept.units.insert(at, read.clone());
        read
    }

    fn read_unit(&self, at: u32) -> Option<UnitInfo> {
        let read = self.own.unit(at)?;
        let split = self.split.unit(&read, &self.own.dwarf);
        let calls = match &split {
            Some(split) => Calls::read(&split.units.dwarf, &split.read.unit),
            None => Calls::read(&self.own.dwarf, &read.unit),
        };
        let lines = read.lines.and_then(|at| self.lines(at, &read));
        if calls.is_cut() {
            self.own.note_long_table();
        }
        Some(UnitInfo {
            read,
            split,
            calls,
            lines,
        })
    }

    fn lines(&self, at: DebugLineOffset, unit: &ReadUnit) -> Option<Arc<Lines>> {
        if let Some(known) = lock(&self.kept).lines.get(&at.0) {
            return known.clone();
        }
        let end = *self.lines_end.get(&at.0)?;
        let read = Lines::read(&self.own.dwarf, &unit.unit, at, end);
        let is_long = match &read {
            Ok(lines) => lines.is_cut(),
            Err(error) => *error == NoLines::TooLong,
        };
        if is_long {
            self.own.note_long_table();
        }
        let read = read.ok().map(Arc::new);
        let mut kept = lock(&self.kept);
        kept.make_room(read.as_ref().map_or(0, |lines| lines.size()));
        kept.lines.insert(at.0, read.clone());
        read
    }
}

impl Inlining {
    /// Whether nothing is known.
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

/// The shared file that a file names (`.gnu_debugaltlink`), with its build-id.
fn shared(path: &Path, file: &ParsedBinary<'_>) -> Option<(Binary, BuildId)> {
    let section = file.section_by_name(".gnu_debugaltlink")?;
    if section.size() > 4096 + 64 {
        return None;
    }
    let (name, id) = file.gnu_debugaltlink().ok()??;
    let id = BuildId::new(id).ok()?;
    let beside = path
        .canonicalize()
        .ok()?
        .parent()?
        .join(OsStr::from_bytes(name));
    let paths: [PathBuf; 2] = [beside, debug_file_by_build_id(id)];
    let open = |path: &PathBuf| {
        let binary = Binary::open(path)?;
        let is_it = binary
            .parse(Some(id))
            .is_some_and(|file| build_id_of(&file) == Some(id));
        is_it.then_some(binary)
    };
    Some((paths.iter().find_map(open)?, id))
}
