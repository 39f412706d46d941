//! Units of debugging information, each read by itself.
//!
//! Reading takes time and memory in proportion to the file: tables that several units name (of abbreviations, of lines) are kept within limits, and end
//! where the next one begins, so that they cannot overlap.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::HashMap;
use gimli::{
    Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugAddrBase, DebugInfoOffset,
    DebugLineOffset, DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase, DebugTypeSignature,
    Dwarf, Reader, Section, Unit, UnitHeader, UnitOffset, UnitType,
};

use crate::sections::{Bytes, raw_text};

/// Maximum number of units of a file. Those of the largest browsers have 30,000.
const MAX_UNITS: usize = 1 << 18;
/// Maximum number of address ranges that are read from a file. Units may share a list, so that a short file could claim any number.
const MAX_RANGES: usize = 1 << 22;
/// Maximum length of a table of abbreviations, bytes. Those of compilers have some kilobytes.
const MAX_ABBREVIATION_BYTES: usize = 1 << 20;
/// Bytes of tables of abbreviations that are kept.
const MAX_ABBREVIATIONS: usize = 2 << 20;
/// Bytes of tables of abbreviations that may be read besides eight times the section.
const READ_AGAIN: usize = 64 << 20;
/// Maximum size of an abbreviation in memory, divided by its bytes in the file: 112 for 4.
const ABBREVIATION_RATIO: usize = 28;
/// Maximum number of ranges that are checked for an address: they overlap only if a linker removed sections.
const MAX_CHECKED: usize = 1024;

/// The units of one file.
pub struct Units {
    /// Their sections.
    pub dwarf: Dwarf<Bytes>,
    /// The units of `.debug_info`, in their order.
    headers: Vec<UnitHeader<Bytes>>,
    /// Type units, with the offsets of their types.
    types: HashMap<DebugTypeSignature, (UnitHeader<Bytes>, UnitOffset)>,
    /// Where each table of abbreviations ends.
    abbreviations_end: BTreeMap<usize, usize>,
    abbreviations: Mutex<KnownAbbreviations>,
    /// Whether a table was requested that is longer than is read.
    has_long_tables: AtomicBool,
}

/// Tables of abbreviations that were read, by their offsets.
#[derive(Default)]
struct KnownAbbreviations {
    tables: HashMap<usize, Option<Arc<Abbreviations>>>,
    /// Bytes of the section that the tables are.
    kept: usize,
    /// Bytes that were read, those of tables that were forgotten and read again included.
    read: usize,
}

/// A unit whose first entry was read.
pub struct ReadUnit {
    /// Without its line program.
    pub unit: Unit<Bytes>,
    /// Offset of its line program.
    pub lines: Option<DebugLineOffset>,
    /// Of a skeleton: the name of the file with its other entries.
    pub(crate) split_name: Option<Bytes>,
    /// Maximum size of its abbreviations in memory, bytes.
    pub abbreviations_size: usize,
    ranges: CodeRanges,
}

/// Addresses of code, as an entry says them.
#[derive(Default)]
pub struct CodeRanges {
    low: Option<AttributeValue<Bytes>>,
    high: Option<AttributeValue<Bytes>>,
    list: Option<AttributeValue<Bytes>>,
}

/// Code of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnitCode {
    /// First address.
    begin: u64,
    /// Address after the last one.
    end: u64,
    /// The unit, by its place in the file.
    pub(crate) unit: u32,
}

impl Units {
    /// The units of sections.
    pub(crate) fn new(dwarf: Dwarf<Bytes>) -> Self {
        let mut headers = Vec::new();
        let mut all = dwarf.units();
        // Units after damage cannot be found.
        while let Ok(Some(header)) = all.next() {
            if headers.len() >= MAX_UNITS {
                break;
            }
            headers.push(header);
        }
        let mut types = HashMap::default();
        let mut note_type = |header: &UnitHeader<Bytes>| {
            if let UnitType::Type {
                type_signature,
                type_offset,
            } = header.type_()
            {
                types.insert(type_signature, (header.clone(), type_offset));
            }
        };
        headers.iter().for_each(&mut note_type);
        let mut others = dwarf.type_units();
        for _ in 0..MAX_UNITS {
            let Ok(Some(header)) = others.next() else {
                break;
            };
            note_type(&header);
        }
        let of_types = types.values().map(|(header, _)| header);
        let all = headers.iter().chain(of_types);
        let starts = all.map(|header| header.debug_abbrev_offset().0);
        let end = dwarf.debug_abbrev.reader().len();
        Self {
            abbreviations_end: ends(starts, end),
            abbreviations: Mutex::default(),
            has_long_tables: AtomicBool::new(false),
            headers,
            types,
            dwarf,
        }
    }

    /// Notes that a table is longer than is read.
    pub fn note_long_table(&self) {
        self.has_long_tables.store(true, Relaxed);
    }

    /// Whether a table was requested that is longer than is read, so that something is missing.
    pub(crate) fn has_long_tables(&self) -> bool {
        self.has_long_tables.load(Relaxed)
    }

    /// Whether there are no units.
    pub(crate) const fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// A unit by its place in the file.
    #[must_use]
    pub fn unit(&self, at: u32) -> Option<ReadUnit> {
        ReadUnit::new(self, self.headers.get(at as usize)?.clone(), None)
    }

    /// The unit that a skeleton of the program is of.
    pub(crate) fn split_unit(&self, skeleton: &ReadUnit) -> Option<ReadUnit> {
        let mut units = self.headers.iter();
        units.find_map(|header| {
            let read = ReadUnit::new(self, header.clone(), Some(skeleton))?;
            (read.unit.dwo_id == skeleton.unit.dwo_id).then_some(read)
        })
    }

    /// The entry at an offset of `.debug_info`, with its unit.
    pub(crate) fn entry(&self, offset: DebugInfoOffset) -> Option<(ReadUnit, UnitOffset)> {
        let start = |header: &UnitHeader<Bytes>| header.debug_info_offset();
        let after = self
            .headers
            .partition_point(|header| start(header) <= Some(offset));
        let header = self.headers.get(after.checked_sub(1)?)?;
        let unit = ReadUnit::new(self, header.clone(), None)?;
        Some((unit, offset.to_unit_offset(header)?))
    }

    /// The type with a signature, with its unit.
    pub(crate) fn type_unit(
        &self,
        signature: DebugTypeSignature,
    ) -> Option<(ReadUnit, UnitOffset)> {
        let (header, at) = self.types.get(&signature)?;
        Some((ReadUnit::new(self, header.clone(), None)?, *at))
    }

    /// The code of all units, sorted, and where the tables of lines end.
    pub(crate) fn code(&self) -> (Vec<UnitCode>, BTreeMap<usize, usize>) {
        let (mut found, mut lines) = (Vec::new(), Vec::new());
        let mut room = MAX_RANGES;
        for place in 0..self.headers.len() as u32 {
            let Some(unit) = self.unit(place) else {
                continue;
            };
            lines.extend(unit.lines.map(|offset| offset.0));
            unit.ranges
                .each(&self.dwarf, &unit.unit, &mut room, |begin, end| {
                    let unit = place;
                    found.push(UnitCode { begin, end, unit });
                });
        }
        found.sort_unstable();
        let end = self.dwarf.debug_line.reader().len();
        (found, ends(lines.into_iter(), end))
    }

    /// Number of bytes in which a table of abbreviations is.
    fn abbreviations_len(&self, at: DebugAbbrevOffset) -> Option<usize> {
        self.abbreviations_end.get(&at.0)?.checked_sub(at.0)
    }

    /// A table of abbreviations; `None` if it is damaged or too long, or too many tables were forgotten and read again.
    fn abbreviations(&self, at: DebugAbbrevOffset) -> Option<Arc<Abbreviations>> {
        let mut known = lock(&self.abbreviations);
        if let Some(known) = known.tables.get(&at.0) {
            return known.clone();
        }
        let whole = self.abbreviations_len(at)?;
        let len = whole.min(MAX_ABBREVIATION_BYTES);
        let mut table = self.dwarf.debug_abbrev.reader().clone();
        if known.read > READ_AGAIN.saturating_add(8 * table.len()) {
            self.note_long_table();
            return None;
        }
        known.read += len;
        known.kept += len;
        if known.kept > MAX_ABBREVIATIONS {
            known.tables.clear();
            known.kept = len;
        }
        let end = at.0 + len;
        let read = table
            .truncate(end)
            .ok()
            .and_then(|()| DebugAbbrev::from(table).abbreviations(at).ok())
            .map(Arc::new);
        if read.is_none() && len < whole {
            self.note_long_table();
        }
        known.tables.insert(at.0, read.clone());
        read
    }
}

impl UnitCode {
    /// The unit with the code at an address.
    pub(crate) fn find(all: &[Self], address: u64) -> Option<u32> {
        let after = all.partition_point(|code| code.begin <= address);
        let before = all.get(..after)?.iter().rev().take(MAX_CHECKED);
        let mut before = before.filter(|code| address < code.end);
        Some(before.next()?.unit)
    }
}

impl ReadUnit {
    /// Reads the first entry of a unit, which has a skeleton if it is a split one.
    fn new(units: &Units, header: UnitHeader<Bytes>, skeleton: Option<&Self>) -> Option<Self> {
        let dwarf = &units.dwarf;
        let encoding = header.encoding();
        let abbreviations = units.abbreviations_len(header.debug_abbrev_offset());
        let abbreviations = abbreviations?.min(MAX_ABBREVIATION_BYTES);
        let abbreviations_size = abbreviations.saturating_mul(ABBREVIATION_RATIO);
        let mut unit = Unit {
            abbreviations: units.abbreviations(header.debug_abbrev_offset())?,
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(
                encoding,
                dwarf.file_type,
            ),
            addr_base: DebugAddrBase(0),
            loclists_base: DebugLocListsBase::default_for_encoding_and_file(
                encoding,
                dwarf.file_type,
            ),
            rnglists_base: DebugRngListsBase::default_for_encoding_and_file(
                encoding,
                dwarf.file_type,
            ),
            line_program: None,
            dwo_id: match header.type_() {
                UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id),
                _ => None,
            },
            header,
        };
        if let Some(skeleton) = skeleton {
            unit.copy_relocated_attributes(&skeleton.unit);
        }
        let (mut lines, mut directory, mut split_name) = (None, None, None);
        let mut ranges = CodeRanges::default();
        let root = {
            let mut cursor = unit.header.entries(&unit.abbreviations);
            cursor.next_dfs().ok()?;
            cursor.current()?.clone()
        };
        for attr in root.attrs() {
            match (attr.name(), attr.value()) {
                (gimli::DW_AT_comp_dir, value) => directory = Some(value),
                (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(at)) => lines = Some(at),
                (gimli::DW_AT_dwo_name | gimli::DW_AT_GNU_dwo_name, value) => {
                    split_name = Some(value);
                }
                (gimli::DW_AT_GNU_dwo_id, AttributeValue::DwoId(id)) => unit.dwo_id = Some(id),
                (gimli::DW_AT_GNU_ranges_base, AttributeValue::DebugRngListsBase(base)) => {
                    unit.rnglists_base = base;
                }
                (gimli::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => {
                    unit.str_offsets_base = base;
                }
                (
                    gimli::DW_AT_addr_base | gimli::DW_AT_GNU_addr_base,
                    AttributeValue::DebugAddrBase(base),
                ) => unit.addr_base = base,
                (gimli::DW_AT_rnglists_base, AttributeValue::DebugRngListsBase(base)) => {
                    unit.rnglists_base = base;
                }
                (gimli::DW_AT_loclists_base, AttributeValue::DebugLocListsBase(base)) => {
                    unit.loclists_base = base;
                }
                (name, value) => ranges.note(name, value),
            }
        }
        // The tables of addresses and strings are known by now.
        if let Some(low) = &ranges.low
            && let Ok(Some(low)) = dwarf.attr_address(&unit, low.clone())
        {
            unit.low_pc = low;
        }
        if !matches!(
            root.tag(),
            gimli::DW_TAG_compile_unit | gimli::DW_TAG_skeleton_unit
        ) {
            ranges = CodeRanges::default();
        }
        let directory = directory.and_then(|value| raw_text(dwarf, &unit, value));
        unit.comp_dir = directory.or_else(|| skeleton?.unit.comp_dir.clone());
        let split_name = split_name.and_then(|value| raw_text(dwarf, &unit, value));
        Some(Self {
            unit,
            lines,
            split_name,
            ranges,
            abbreviations_size,
        })
    }
}

impl CodeRanges {
    /// Notes an attribute that says addresses.
    pub fn note(&mut self, name: gimli::DwAt, value: AttributeValue<Bytes>) {
        match name {
            gimli::DW_AT_low_pc => self.low = Some(value),
            gimli::DW_AT_high_pc => self.high = Some(value),
            gimli::DW_AT_ranges => self.list = Some(value),
            _ => {}
        }
    }

    /// Calls `each` with the first address and the one after the last of each range that is not empty, as long as there is room.
    pub fn each(
        self,
        dwarf: &Dwarf<Bytes>,
        unit: &Unit<Bytes>,
        room: &mut usize,
        mut each: impl FnMut(u64, u64),
    ) {
        // A linker gives code that it removed the address 0.
        let mut each = |begin, end| {
            if 0 < begin && begin < end {
                each(begin, end);
            }
        };
        let list = self
            .list
            .and_then(|list| dwarf.attr_ranges_offset(unit, list).ok().flatten());
        if let Some(list) = list {
            let Ok(mut ranges) = dwarf.ranges(unit, list) else {
                return;
            };
            while *room > 0 {
                let Ok(Some(range)) = ranges.next() else {
                    return;
                };
                *room -= 1;
                each(range.begin, range.end);
            }
            return;
        }
        let address = |value| dwarf.attr_address(unit, value).ok().flatten();
        let Some(low) = self.low.and_then(address) else {
            return;
        };
        let high = self.high.and_then(|high| match high.udata_value() {
            Some(size) => low.checked_add(size),
            None => address(high),
        });
        if let Some(high) = high.filter(|_| *room > 0) {
            *room -= 1;
            each(low, high);
        }
    }
}

/// Where each of the tables that begin at these offsets ends: where the next one begins, or at the end of all.
fn ends(starts: impl Iterator<Item = usize>, end: usize) -> BTreeMap<usize, usize> {
    let mut ends: BTreeMap<usize, usize> = starts.map(|start| (start, end)).collect();
    let mut next = end;
    for (start, end) in ends.iter_mut().rev() {
        *end = next;
        next = *start;
    }
    ends
}

/// Nothing in here can be left half-done by a panic elsewhere.
pub(crate) fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
