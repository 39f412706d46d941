//! Split DWARF: the entries of a unit that are in a `.dwo` file, or in the package of a program's `.dwo` files (`.dwp`), of which the program
//! has a skeleton with the addresses and the lines.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use gimli::{Dwarf, DwarfPackage, Reader, Section};
use usdtrec_format::{split_debug_files, split_debug_package};

use crate::lines::Lines;
use crate::sections::{Bytes, DwarfNeed, Room, SectionOpener, load_package, load_split};
use crate::units::{ReadUnit, Units, lock};

/// Maximum number of `.dwo` files that are opened for a program.
const MAX_FILES: usize = 1024;

/// The files with split units of a program, each opened when it is needed.
pub(crate) struct SplitFiles {
    /// The program, and its separate file.
    programs: Vec<PathBuf>,
    open: SectionOpener,
    need: DwarfNeed,
    package: OnceLock<Option<DwarfPackage<Bytes>>>,
    left: Mutex<Left>,
}

/// What may still be read.
struct Left {
    room: Room,
    files: usize,
}

/// A split unit.
pub struct SplitUnit {
    /// The units of its file.
    pub units: Units,
    /// The unit.
    pub read: Arc<ReadUnit>,
    /// The files that its calls name; `None` if they are those of the skeleton's table.
    pub lines: Option<Lines>,
}

impl SplitFiles {
    /// Those of a program, of which so much may be read.
    pub(crate) fn new(
        programs: Vec<PathBuf>,
        open: SectionOpener,
        need: DwarfNeed,
        room: Room,
    ) -> Self {
        Self {
            programs,
            open,
            need,
            package: OnceLock::new(),
            left: Mutex::new(Left {
                room,
                files: MAX_FILES,
            }),
        }
    }

    /// The split unit of a skeleton of the program; `None` if the unit is whole, or its other part is not found.
    pub(crate) fn unit(&self, skeleton: &ReadUnit, own: &Dwarf<Bytes>) -> Option<SplitUnit> {
        let id = skeleton.unit.dwo_id?;
        let package = self.package.get_or_init(|| self.open_package());
        let packed = package
            .as_ref()
            .and_then(|package| package.find_cu(id, own).ok()?);
        let dwarf = packed.or_else(|| self.file(skeleton, own))?;
        let units = Units::new(dwarf);
        let read = units.split_unit(skeleton)?;
        let lines = read.lines.and_then(|at| {
            let end = units.dwarf.debug_line.reader().len();
            Lines::read(&units.dwarf, &read.unit, at, end).ok()
        });
        Some(SplitUnit {
            lines,
            read: Arc::new(read),
            units,
        })
    }

    fn open_package(&self) -> Option<DwarfPackage<Bytes>> {
        let mut left = lock(&self.left);
        self.programs.iter().find_map(|program| {
            let file = (self.open)(&split_debug_package(program))?;
            load_package(&*file, &mut left.room)
        })
    }

    /// The `.dwo` file that a skeleton names.
    fn file(&self, skeleton: &ReadUnit, own: &Dwarf<Bytes>) -> Option<Dwarf<Bytes>> {
        let name = skeleton.split_name.as_ref()?.to_slice().ok()?;
        let directory = skeleton.unit.comp_dir.as_ref();
        let directory = directory.and_then(|directory| directory.to_slice().ok());
        let directory = directory.unwrap_or_default();
        let mut left = lock(&self.left);
        let programs = self.programs.iter();
        let mut candidates =
            programs.flat_map(|program| split_debug_files(program, &name, &directory));
        candidates.find_map(|path| {
            left.files = left.files.checked_sub(1)?;
            let file = (self.open)(&path)?;
            let sections = load_split(&*file, self.need, &mut left.room)?;
            let mut dwarf = sections.borrow(Clone::clone);
            dwarf.make_dwo(own);
            Some(dwarf)
        })
    }
}
