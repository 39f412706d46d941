//! A table of lines (DWARF 5, 6.2), read once.

use gimli::{
    DebugLine, DebugLineOffset, Dwarf, FileEntry, LineProgramHeader, Reader, Section, Unit,
};
use usdtrec_format::SourceLine;

use crate::sections::{Bytes, text, utf8};

/// Maximum number of rows that are read.
const MAX_ROWS: usize = 1 << 21;
/// Maximum length of the header of a table, bytes: a parsed file takes up to 150 times its bytes of memory.
const MAX_HEADER_BYTES: u64 = 1 << 18;
/// Maximum number of sequences that are checked for an address: they overlap only if a linker removed sections.
const MAX_CHECKED: usize = 64;
/// Maximum length of a path, bytes: `PATH_MAX`.
const MAX_PATH_BYTES: usize = 4096;

/// A table of lines.
#[derive(Debug)]
pub struct Lines {
    header: LineProgramHeader<Bytes>,
    /// Sorted.
    sequences: Vec<Sequence>,
    /// In each sequence, in the order of addresses.
    rows: Vec<LineRow>,
    /// Whether it has more rows than are read.
    is_cut: bool,
}

/// Why a table of lines is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLines {
    /// It is damaged.
    Damaged,
    /// Its header is longer than is read.
    TooLong,
}

/// Code without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sequence {
    begin: u64,
    /// Address after the last one.
    end: u64,
    /// Index of its first row.
    first: u32,
    /// Index after its last row.
    after: u32,
}

/// The line of all code from an address to that of the next row.
#[derive(Clone, Copy, Debug)]
struct LineRow {
    address: u64,
    file: u32,
    /// 0 for code that the compiler made up.
    line: u32,
}

impl Lines {
    /// Reads the table at an offset of `.debug_line`, which ends at `end`. What comes after damage is not found.
    pub(crate) fn read(
        dwarf: &Dwarf<Bytes>,
        unit: &Unit<Bytes>,
        at: DebugLineOffset,
        end: usize,
    ) -> Result<Self, NoLines> {
        let damaged = |_| NoLines::Damaged;
        let mut table = dwarf.debug_line.reader().clone();
        table.truncate(end).map_err(damaged)?;
        if header_length(&table, at).map_err(damaged)? > MAX_HEADER_BYTES {
            return Err(NoLines::TooLong);
        }
        let size = unit.header.address_size();
        let program = DebugLine::from(table).program(at, size, unit.comp_dir.clone(), None);
        let program = program.map_err(damaged)?;
        let mut lines = Self {
            header: program.header().clone(),
            sequences: Vec::new(),
            rows: Vec::new(),
            is_cut: false,
        };
        let mut rows = program.rows();
        let mut first = 0;
        while let Ok(Some((_, row))) = rows.next_row() {
            if row.end_sequence() {
                lines.end_sequence(first, row.address());
                first = lines.rows.len();
                continue;
            }
            if lines.rows.len() >= MAX_ROWS {
                lines.end_sequence(first, row.address());
                lines.is_cut = true;
                break;
            }
            lines.rows.push(LineRow {
                address: row.address(),
                file: u32::try_from(row.file_index()).unwrap_or(u32::MAX),
                line: row
                    .line()
                    .map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
            });
        }
        lines.sequences.sort_unstable();
        Ok(lines)
    }

    fn end_sequence(&mut self, first: usize, end: u64) {
        let Some(begin) = self.rows.get(first).map(|row| row.address) else {
            return;
        };
        // A linker gives code that it removed the address 0.
        if 0 < begin && begin < end {
            self.sequences.push(Sequence {
                begin,
                end,
                first: first as u32,
                after: self.rows.len() as u32,
            });
        }
    }

    /// Whether the table has more rows than are read.
    pub(crate) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Size in memory, bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let names = self.header.file_names().len() + self.header.include_directories().len();
        size_of_val(&*self.rows)
            + size_of_val(&*self.sequences)
            + names * size_of::<FileEntry<Bytes>>()
    }

    /// The line of the code at an address.
    pub(crate) fn at(
        &self,
        dwarf: &Dwarf<Bytes>,
        unit: &Unit<Bytes>,
        address: u64,
    ) -> Option<SourceLine> {
        let after = self.sequences.partition_point(|one| one.begin <= address);
        let before = self.sequences.get(..after)?.iter().rev().take(MAX_CHECKED);
        let mut before = before.filter(|one| address < one.end);
        let sequence = before.next()?;
        let rows = self
            .rows
            .get(sequence.first as usize..sequence.after as usize)?;
        let after = rows.partition_point(|row| row.address <= address);
        let row = rows.get(after.checked_sub(1)?)?;
        self.line(dwarf, unit, Some(row.file.into()), row.line.into())
    }

    /// The line of a file, by its number in the table.
    #[must_use]
    pub fn line(
        &self,
        dwarf: &Dwarf<Bytes>,
        unit: &Unit<Bytes>,
        file: Option<u64>,
        line: u64,
    ) -> Option<SourceLine> {
        if line == 0 {
            return None;
        }
        let file = self.header.file(file?)?;
        let part = |value| text(dwarf, unit, value);
        let mut path = part(file.path_name())?;
        let directory = file.directory(&self.header).and_then(part);
        let compiled_in = unit.comp_dir.as_ref().and_then(utf8);
        for directory in directory.into_iter().chain(compiled_in) {
            if !path.starts_with('/') {
                path = format!("{directory}/{path}");
            }
        }
        (path.len() <= MAX_PATH_BYTES).then_some(SourceLine { file: path, line })
    }
}

/// What a table claims of the length of its header, bytes.
fn header_length(table: &Bytes, at: DebugLineOffset) -> gimli::Result<u64> {
    let mut table = table.clone();
    table.skip(at.0)?;
    let (_, format) = table.read_initial_length()?;
    if table.read_u16()? >= 5 {
        // Sizes of an address and of a segment selector.
        table.skip(2)?;
    }
    Ok(table.read_length(format)? as u64)
}
