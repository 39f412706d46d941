//! The inlined calls of a unit (DWARF 5, 3.3.8).

use gimli::{AttributeValue, Dwarf, EntriesRaw, Unit, UnitOffset};
use usdtrec_dwarf::{Bytes, CodeRanges};

/// Maximum number of ranges of calls of a unit.
const MAX_CALLS: usize = 1 << 20;
/// Ranges that a unit of any length may have.
const MIN_ROOM: usize = 4096;
/// Maximum depth of calls that are inlined in each other.
const MAX_DEPTH: u16 = 128;

/// The inlined calls of a unit, sorted by depth and address: those of a depth are within those of the one above it.
#[derive(Debug, Default)]
pub(super) struct InlinedCalls {
    calls: Vec<Call>,
    /// Whether there are more, or deeper ones, than are read.
    is_cut: bool,
}

/// A range of addresses of an inlined call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call {
    /// 0 for calls in a function that is not inlined itself.
    depth: u16,
    /// First address.
    begin: u64,
    /// Address after the last one.
    end: u64,
    /// The entry of the call, bytes from the start of its unit.
    pub(super) entry: usize,
    /// The caller's file, by its number in the table of lines.
    pub(super) file: Option<u64>,
    /// Line of the call; 0 if it is not known.
    pub(super) line: u64,
}

impl InlinedCalls {
    /// Reads the entries of a unit. What comes after damage is not found.
    pub(super) fn read(dwarf: &Dwarf<Bytes>, unit: &Unit<Bytes>) -> Self {
        let mut reading = Reading {
            dwarf,
            unit,
            calls: Vec::new(),
            is_cut: false,
            // Calls may share a list of ranges: without a limit a short unit would have any number.
            room: MAX_CALLS.min(unit.header.length_including_self() + MIN_ROOM),
        };
        if let Ok(entries) = unit.entries_raw(None) {
            // The calls before damage are right.
            let _ = reading.read(entries);
        }
        let is_cut = reading.is_cut || reading.room == 0;
        let mut calls = reading.calls;
        calls.sort_unstable();
        Self { calls, is_cut }
    }

    /// Whether the unit has more calls, or deeper ones, than are read.
    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Size in memory, bytes.
    pub(super) const fn size(&self) -> usize {
        size_of_val(self.calls.as_slice())
    }

    /// The calls at an address, the outermost first.
    pub(super) fn at(&self, address: u64) -> impl Iterator<Item = Call> {
        (0..MAX_DEPTH).map_while(move |depth| {
            let before = |call: &Call| (call.depth, call.begin) <= (depth, address);
            let after = self.calls.partition_point(before);
            let call = self.calls.get(after.checked_sub(1)?)?;
            (call.depth == depth && address < call.end).then_some(*call)
        })
    }
}

struct Reading<'a> {
    dwarf: &'a Dwarf<Bytes>,
    unit: &'a Unit<Bytes>,
    calls: Vec<Call>,
    /// Whether a call was left out because of its depth.
    is_cut: bool,
    /// Ranges that may still be read.
    room: usize,
}

/// An entry whose children are read.
struct Open {
    /// Depth in the tree of entries.
    at: isize,
    /// Depth of the calls in it.
    calls: u16,
}

impl Reading<'_> {
    fn read(&mut self, mut entries: EntriesRaw<'_, Bytes>) -> gimli::Result<()> {
        let mut open: Vec<Open> = Vec::new();
        while !entries.is_empty() && self.room > 0 {
            let (offset, at) = (entries.next_offset(), entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            while open.last().is_some_and(|last| last.at >= at) {
                open.pop();
            }
            let depth = open.last().map_or(0, |last| last.calls);
            let attributes = abbreviation.attributes();
            match abbreviation.tag() {
                gimli::DW_TAG_inlined_subroutine if depth < MAX_DEPTH => {
                    self.call(&mut entries, attributes, offset, depth)?;
                    let calls = depth + 1;
                    open.push(Open { at, calls });
                }
                gimli::DW_TAG_subprogram => {
                    entries.skip_attributes(attributes)?;
                    open.push(Open { at, calls: 0 });
                }
                tag => {
                    self.is_cut |= tag == gimli::DW_TAG_inlined_subroutine;
                    entries.skip_attributes(attributes)?;
                }
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        entries: &mut EntriesRaw<'_, Bytes>,
        attributes: &[gimli::AttributeSpecification],
        entry: UnitOffset,
        depth: u16,
    ) -> gimli::Result<()> {
        let mut ranges = CodeRanges::default();
        let (mut file, mut line) = (None, 0);
        for spec in attributes {
            let attribute = entries.read_attribute(*spec)?;
            match (attribute.name(), attribute.value()) {
                // Before DWARF 5, 0 was no file.
                (gimli::DW_AT_call_file, AttributeValue::FileIndex(index)) => {
                    file = (index > 0 || self.unit.header.version() >= 5).then_some(index);
                }
                (gimli::DW_AT_call_line, value) => line = value.udata_value().unwrap_or(0),
                (name, value) => ranges.note(name, value),
            }
        }
        let calls = &mut self.calls;
        ranges.each(self.dwarf, self.unit, &mut self.room, |begin, end| {
            calls.push(Call {
                depth,
                begin,
                end,
                entry: entry.0,
                file,
                line,
            });
        });
        Ok(())
    }
}
