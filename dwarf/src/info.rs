//! The debugging information of a program: that of its file, of the file that it shares with others, and of its split units.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::UnitOffset;
use usdtrec_format::SourceLine;

use crate::die::Die;
use crate::lines::{Lines, NoLines};
use crate::links::shared;
use crate::sections::{DwarfNeed, NoDwarf, Room, SectionFile, SectionOpener, load};
use crate::split::{SplitFiles, SplitUnit};
use crate::units::{ReadUnit, UnitCode, Units};

/// Where the debugging information of a program is.
pub struct DwarfSource<'f> {
    /// The file with its units.
    pub file: &'f dyn SectionFile,
    /// The path of that file: the file that it shares with others is named from there.
    pub path: &'f Path,
    /// The program and its separate file, beside which `.dwo` files and their package are.
    pub programs: Vec<PathBuf>,
    /// Opens the files that it names.
    pub open: SectionOpener,
}

/// The debugging information of a program.
pub struct DwarfInfo {
    /// The units of its file.
    pub own: Units,
    /// Of the file that several share.
    shared: Option<Units>,
    split: SplitFiles,
    /// Sorted.
    code: Vec<UnitCode>,
    /// Where each table of lines ends, by its offset.
    lines_end: BTreeMap<usize, usize>,
}

/// A unit, with its split part.
pub struct WholeUnit {
    /// The unit in the file of the code.
    pub read: Arc<ReadUnit>,
    /// Where its entries are, if the file has only a skeleton.
    pub split: Option<SplitUnit>,
}

impl DwarfInfo {
    /// Reads the sections of a program.
    ///
    /// # Errors
    /// [`NoDwarf`].
    pub fn read(source: DwarfSource<'_>, need: DwarfNeed) -> Result<Self, NoDwarf> {
        let mut room = Room::default();
        let own = load(source.file, need, &mut room).ok_or_else(|| room.reason())?;
        let mut dwarf = own.borrow(Clone::clone);
        let shared = shared(source.file, source.path, source.open)
            .and_then(|file| load(&*file, need, &mut room));
        if let Some(shared) = &shared {
            dwarf.set_sup(shared.borrow(Clone::clone));
        }
        let own = Units::new(dwarf);
        if own.is_empty() {
            return Err(NoDwarf::Absent);
        }
        let (code, lines_end) = own.code();
        Ok(Self {
            own,
            shared: shared.map(|shared| Units::new(shared.borrow(Clone::clone))),
            split: SplitFiles::new(source.programs, source.open, need, room),
            code,
            lines_end,
        })
    }

    /// Whether a table was requested that is longer than is read, so that something is missing.
    #[must_use]
    pub fn has_long_tables(&self) -> bool {
        let shared = self.shared.as_ref();
        self.own.has_long_tables() || shared.is_some_and(Units::has_long_tables)
    }

    /// The place in the file of the unit with the code at an address, as linked.
    #[must_use]
    pub fn unit_at(&self, address: u64) -> Option<u32> {
        UnitCode::find(&self.code, address)
    }

    /// A unit by its place in the file.
    #[must_use]
    pub fn unit(&self, place: u32) -> Option<WholeUnit> {
        let read = self.own.unit(place)?;
        Some(WholeUnit {
            split: self.split.unit(&read, &self.own.dwarf),
            read: Arc::new(read),
        })
    }

    /// An entry of a unit, of its split part if it has one.
    #[must_use]
    pub fn entry<'r>(&'r self, unit: &'r WholeUnit, at: UnitOffset) -> Die<'r> {
        let (units, read) = match &unit.split {
            Some(split) => (&split.units, &split.read),
            None => (&self.own, &unit.read),
        };
        Die::new(units, self.shared.as_ref(), Arc::clone(read), at)
    }

    /// The first entry of a unit.
    #[must_use]
    pub fn first_entry<'r>(&'r self, unit: &'r WholeUnit) -> Die<'r> {
        let read = unit.split.as_ref().map_or(&unit.read, |split| &split.read);
        self.entry(unit, UnitOffset(read.unit.header.size_of_header()))
    }

    /// The table of lines of a unit of the file itself.
    #[must_use]
    pub fn lines(&self, unit: &ReadUnit) -> Option<Lines> {
        let at = unit.lines?;
        let end = *self.lines_end.get(&at.0)?;
        let read = Lines::read(&self.own.dwarf, &unit.unit, at, end);
        let is_long = match &read {
            Ok(lines) => lines.is_cut(),
            Err(error) => *error == NoLines::TooLong,
        };
        if is_long {
            self.own.note_long_table();
        }
        read.ok()
    }

    /// The line of the code at an address in the table of its unit.
    #[must_use]
    pub fn line_at(&self, lines: &Lines, unit: &ReadUnit, address: u64) -> Option<SourceLine> {
        lines.at(&self.own.dwarf, &unit.unit, address)
    }
}
