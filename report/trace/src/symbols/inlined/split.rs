//! Split DWARF: the entries of a unit that are in a `.dwo` file, or in the package of a program's `.dwo` files (`.dwp`), of which the program
//! has a skeleton with the addresses and the lines.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use gimli::{Dwarf, DwarfPackage, EndianReader, Reader, Section, SectionId};
use object::Object;
use usdtrec_format::{split_debug_files, split_debug_package};

use super::lines::Lines;
use super::sections::{Bytes, Room, endian, load_split, package_sections};
use super::units::{ReadUnit, Units, lock};
use crate::symbols::image::Binary;

/// Maximum number of `.dwo` files that are opened for a program.
const MAX_FILES: usize = 1024;

/// The files with split units of a program, each opened when it is needed.
pub(super) struct SplitFiles {
    /// The program.
    path: PathBuf,
    package: OnceLock<Option<DwarfPackage<Bytes>>>,
    left: Mutex<Left>,
}

/// What may still be read.
struct Left {
    room: Room,
    files: usize,
}

/// A split unit.
pub(super) struct SplitUnit {
    pub(super) units: Units,
    pub(super) read: ReadUnit,
    /// The files that its calls name; `None` if they are those of the skeleton's table.
    pub(super) lines: Option<Arc<Lines>>,
}

impl SplitFiles {
    /// Those of a program, of which so much may be read.
    pub(super) fn new(path: &Path, room: Room) -> Self {
        Self {
            path: path.to_owned(),
            package: OnceLock::new(),
            left: Mutex::new(Left {
                room,
                files: MAX_FILES,
            }),
        }
    }

    /// The split unit of a skeleton of the program; `None` if the unit is whole, or its other part is not found.
    pub(super) fn unit(&self, skeleton: &ReadUnit, own: &Dwarf<Bytes>) -> Option<SplitUnit> {
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
            lines: lines.map(Arc::new),
            read,
            units,
        })
    }

    fn open_package(&self) -> Option<DwarfPackage<Bytes>> {
        let binary = Binary::open(&split_debug_package(&self.path))?;
        let file = binary.parse(None)?;
        file.section_by_name(SectionId::DebugCuIndex.name())?;
        let sections = package_sections(&binary, &file, &mut lock(&self.left).room)?;
        let empty = EndianReader::new(Arc::from([]), endian(&file));
        sections.borrow(Clone::clone, empty).ok()
    }

    /// The `.dwo` file that a skeleton names.
    fn file(&self, skeleton: &ReadUnit, own: &Dwarf<Bytes>) -> Option<Dwarf<Bytes>> {
        let name = skeleton.split_name.as_ref()?.to_slice().ok()?;
        let directory = skeleton.unit.comp_dir.as_ref();
        let directory = directory.and_then(|directory| directory.to_slice().ok());
        let directory = directory.unwrap_or_default();
        let candidates = split_debug_files(&self.path, &name, &directory);
        let mut left = lock(&self.left);
        candidates.iter().find_map(|path| {
            left.files = left.files.checked_sub(1)?;
            let binary = Binary::open(path)?;
            let file = binary.parse(None)?;
            let sections = load_split(&binary, &file, &mut left.room)?;
            let mut dwarf = sections.borrow(Clone::clone);
            dwarf.make_dwo(own);
            Some(dwarf)
        })
    }
}
