//! Units of debugging information, and references from one to another.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use gimli::{
    AbbreviationsCacheStrategy, AttributeValue, DebugInfoOffset, DebugTypeSignature,
    DebuggingInformationEntry, Dwarf, DwarfPackage, DwarfSections, LineProgramHeader, LineRow,
    RunTimeEndian, Unit, UnitHeader, UnitOffset, UnitRef, UnitSectionOffset, UnitType,
};
use usdtrec_format::SourceLine;

use super::files::{Chain, SplitFiles};
use super::sections::Slice;

/// Maximum number of ranges that are checked for an address: they overlap only if a linker removed sections.
const MAX_RANGES_CHECKED: usize = 1024;

/// Maximum number of address ranges that are read from a file. Units may share a list, so that a short file could claim any number.
const MAX_RANGES_READ: usize = 1 << 22;

/// An entry's attributes.
pub(super) type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// The units of a file, and of the one that it shares with others.
pub(super) struct Units<'a> {
    own: Part<'a>,
    shared: Option<Part<'a>>,
    split: &'a SplitFiles<'a>,
    package: OnceCell<Option<DwarfPackage<Slice<'a>>>>,
    /// The split units that were needed, with the offsets of their skeletons; `None` for those that were not found.
    split_parts: Chain<(UnitSectionOffset, Option<Part<'a>>)>,
    endian: RunTimeEndian,
    /// First and last address but one of code, sorted, and whose it is: indices into the file's own headers.
    ranges: Vec<(u64, u64, usize)>,
}

/// The units of one file.
struct Part<'a> {
    dwarf: Dwarf<Slice<'a>>,
    /// The units of `.debug_info`, in their order.
    headers: Vec<(DebugInfoOffset, UnitHeader<Slice<'a>>)>,
    /// Type units.
    types: HashMap<DebugTypeSignature, (UnitHeader<Slice<'a>>, UnitOffset)>,
    parsed: RefCell<HashMap<UnitSectionOffset, Rc<Unit<Slice<'a>>>>>,
    /// The skeleton of a split unit.
    skeleton: Option<Rc<Unit<Slice<'a>>>>,
}

/// An entry of a unit.
#[derive(Clone)]
pub(super) struct Die<'r, 'a> {
    units: &'r Units<'a>,
    part: &'r Part<'a>,
    unit: Rc<Unit<Slice<'a>>>,
    at: UnitOffset,
}

impl<'a> Units<'a> {
    /// The units of a file, of which `shared` has what it has in common with others.
    pub(super) fn new(
        sections: &'a DwarfSections<Vec<u8>>,
        shared: Option<&'a DwarfSections<Vec<u8>>>,
        split: &'a SplitFiles<'a>,
        endian: RunTimeEndian,
    ) -> Self {
        let dwarf = |sections: &'a DwarfSections<Vec<u8>>| {
            sections.borrow(|section| Slice::new(section, endian))
        };
        let mut own = dwarf(sections);
        if let Some(shared) = shared {
            own.set_sup(dwarf(shared));
        }
        let mut units = Self {
            own: Part::new(own, None),
            shared: shared.map(|shared| Part::new(dwarf(shared), None)),
            split,
            package: OnceCell::new(),
            split_parts: Chain::default(),
            endian,
            ranges: Vec::new(),
        };
        units.ranges = units.own.ranges();
        units
    }

    /// The first entry of the unit with the code at an address, where its entries are: a skeleton has none.
    pub(super) fn entries_at(&self, pc: u64) -> Option<Die<'_, 'a>> {
        let skeleton = self.at_address(pc)?;
        if skeleton.unit.dwo_id.is_none() {
            return Some(skeleton);
        }
        let of = skeleton.number();
        let known = self.split_parts.find(|(known, _)| *known == of);
        let (_, part) = known.unwrap_or_else(|| {
            let part = self.split_dwarf(&skeleton);
            let part = part.map(|dwarf| Part::new(dwarf, Some(Rc::clone(&skeleton.unit))));
            self.split_parts.push((of, part))
        });
        let Some(part) = part else {
            return Some(skeleton);
        };
        let mut units = part
            .headers
            .iter()
            .filter_map(|(_, header)| part.unit(header));
        let unit = units.find(|unit| unit.dwo_id == skeleton.unit.dwo_id)?;
        Some(Die {
            at: UnitOffset(unit.header.size_of_header()),
            units: self,
            part,
            unit,
        })
    }

    /// The file or the part of the package with the split unit of a skeleton.
    fn split_dwarf(&self, skeleton: &Die<'_, 'a>) -> Option<Dwarf<Slice<'a>>> {
        let package = self.package.get_or_init(|| {
            let slice = |section: &'a Vec<u8>| Slice::new(section, self.endian);
            let package = self.split.package()?;
            package.borrow(slice, Slice::new(&[], self.endian)).ok()
        });
        let packed = package.as_ref().and_then(|package| {
            let found = package.find_cu(skeleton.unit.dwo_id?, &self.own.dwarf);
            found.ok().flatten()
        });
        packed.or_else(|| {
            let name = skeleton.text(skeleton.unit.dwo_name().ok()??)?;
            let directory = skeleton
                .unit
                .comp_dir
                .map_or(&[][..], |directory| directory.slice());
            let sections = self.split.file(name, directory)?;
            let mut dwarf = sections.borrow(|section| Slice::new(section, self.endian));
            dwarf.make_dwo(&self.own.dwarf);
            Some(dwarf)
        })
    }

    /// The first entry of the unit with the code at an address, in the file of the code.
    pub(super) fn at_address(&self, pc: u64) -> Option<Die<'_, 'a>> {
        let after = self.ranges.partition_point(|(begin, ..)| *begin <= pc);
        let before = self
            .ranges
            .get(..after)?
            .iter()
            .rev()
            .take(MAX_RANGES_CHECKED);
        let (.., index) = before.into_iter().find(|(_, end, _)| pc < *end)?;
        let (_, header) = self.own.headers.get(*index)?;
        let unit = self.own.unit(header)?;
        Some(Die {
            at: UnitOffset(unit.header.size_of_header()),
            units: self,
            part: &self.own,
            unit,
        })
    }
}

impl<'a> Part<'a> {
    fn new(mut dwarf: Dwarf<Slice<'a>>, skeleton: Option<Rc<Unit<Slice<'a>>>>) -> Self {
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let (mut headers, mut types) = (Vec::new(), HashMap::new());
        let mut all = dwarf.units();
        // Units after damage cannot be found.
        while let Ok(Some(header)) = all.next() {
            note_type(&mut types, &header);
            if let Some(offset) = header.debug_info_offset() {
                headers.push((offset, header));
            }
        }
        let mut all = dwarf.type_units();
        while let Ok(Some(header)) = all.next() {
            note_type(&mut types, &header);
        }
        Self {
            dwarf,
            headers,
            types,
            parsed: RefCell::default(),
            skeleton,
        }
    }

    fn ranges(&self) -> Vec<(u64, u64, usize)> {
        let (mut found, mut seen) = (Vec::new(), 0);
        for (index, (_, header)) in self.headers.iter().enumerate() {
            let Ok(unit) = self.dwarf.unit(*header) else {
                continue;
            };
            let Ok(mut ranges) = self.dwarf.unit_ranges(&unit) else {
                continue;
            };
            while let Ok(Some(range)) = ranges.next() {
                if range.begin < range.end {
                    found.push((range.begin, range.end, index));
                }
                seen += 1;
                if seen >= MAX_RANGES_READ {
                    found.sort_unstable();
                    return found;
                }
            }
        }
        found.sort_unstable();
        found
    }

    fn unit(&self, header: &UnitHeader<Slice<'a>>) -> Option<Rc<Unit<Slice<'a>>>> {
        let mut parsed = self.parsed.borrow_mut();
        if let Some(unit) = parsed.get(&header.offset()) {
            return Some(Rc::clone(unit));
        }
        let mut unit = self.dwarf.unit(*header).ok()?;
        if let Some(skeleton) = &self.skeleton {
            unit.copy_relocated_attributes(skeleton);
        }
        let unit = Rc::new(unit);
        parsed.insert(header.offset(), Rc::clone(&unit));
        Some(unit)
    }

    /// The entry at an offset of `.debug_info`.
    fn at(&self, offset: DebugInfoOffset) -> Option<(Rc<Unit<Slice<'a>>>, UnitOffset)> {
        let after = self.headers.partition_point(|(start, _)| *start <= offset);
        let (_, header) = self.headers.get(after.checked_sub(1)?)?;
        Some((self.unit(header)?, offset.to_unit_offset(header)?))
    }
}

fn note_type<'a>(
    types: &mut HashMap<DebugTypeSignature, (UnitHeader<Slice<'a>>, UnitOffset)>,
    header: &UnitHeader<Slice<'a>>,
) {
    if let UnitType::Type {
        type_signature,
        type_offset,
    } = header.type_()
    {
        types.insert(type_signature, (*header, type_offset));
    }
}

impl<'r, 'a> Die<'r, 'a> {
    /// Its unit.
    pub(super) fn unit(&self) -> UnitRef<'_, Slice<'a>> {
        UnitRef::new(&self.part.dwarf, &self.unit)
    }

    /// Its offset in its unit.
    pub(super) const fn offset(&self) -> UnitOffset {
        self.at
    }

    /// The offset of its unit, by which units differ.
    pub(super) fn number(&self) -> UnitSectionOffset {
        self.unit.header.offset()
    }

    /// Its attributes.
    pub(super) fn entry(&self) -> Option<Entry<'a>> {
        self.unit.entry(self.at).ok()
    }

    /// Another entry of its unit.
    pub(super) fn beside(&self, at: UnitOffset) -> Self {
        Self { at, ..self.clone() }
    }

    /// The entry that an attribute refers to: in its unit, another unit, a type unit, or the shared file.
    pub(super) fn target(&self, value: AttributeValue<Slice<'a>>) -> Option<Self> {
        let in_part = |part: &'r Part<'a>, offset| {
            let (unit, at) = part.at(offset)?;
            Some(Self {
                units: self.units,
                part,
                unit,
                at,
            })
        };
        match value {
            AttributeValue::UnitRef(at) => Some(self.beside(at)),
            AttributeValue::DebugInfoRef(offset) => in_part(self.part, offset),
            AttributeValue::DebugInfoRefSup(offset) => in_part(self.units.shared.as_ref()?, offset),
            AttributeValue::DebugTypesRef(signature) => {
                let (header, at) = self.part.types.get(&signature)?;
                let unit = self.part.unit(header)?;
                Some(Self {
                    unit,
                    at: *at,
                    ..self.clone()
                })
            }
            _ => None,
        }
    }

    /// The text of an attribute.
    pub(super) fn text(&self, value: AttributeValue<Slice<'a>>) -> Option<&'a [u8]> {
        Some(self.unit().attr_string(value).ok()?.slice())
    }
}

/// Maximum length of a path, bytes: `PATH_MAX`.
const MAX_PATH_BYTES: usize = 4096;

/// The lines of addresses; `None` for an address that no unit has.
pub(super) fn lines(units: &Units<'_>, addresses: &[u64]) -> Vec<Option<SourceLine>> {
    let mut of_units = BTreeMap::new();
    for &address in addresses {
        if let Some(root) = units.at_address(address) {
            let (_, addresses) = of_units
                .entry(root.number())
                .or_insert_with(|| (root, Vec::new()));
            addresses.push(address);
        }
    }
    let mut found = BTreeMap::new();
    for (root, mut addresses) in of_units.into_values() {
        addresses.sort_unstable();
        addresses.dedup();
        of_unit(&root, &addresses, &mut found);
    }
    let line = |address| found.get(address).cloned();
    addresses.iter().map(line).collect()
}

/// Adds the lines of a unit's addresses, which are in order: the line table is read once. What comes after damage is not found.
fn of_unit(root: &Die<'_, '_>, addresses: &[u64], found: &mut BTreeMap<u64, SourceLine>) {
    let unit = root.unit();
    let Some(program) = unit.line_program.clone() else {
        return;
    };
    let mut rows = program.rows();
    let mut last: Option<LineRow> = None;
    while let Ok(Some((header, row))) = rows.next_row() {
        if let Some(last) = last.filter(|last| !last.end_sequence()) {
            let from = addresses.partition_point(|address| *address < last.address());
            let until = addresses.partition_point(|address| *address < row.address());
            for address in addresses.get(from..until).unwrap_or_default() {
                if let Some(line) = line(unit, header, &last) {
                    found.entry(*address).or_insert(line);
                }
            }
        }
        last = Some(*row);
    }
}

/// The line of a row; `None` for code that the compiler made up (line 0).
fn line<'a>(
    unit: UnitRef<'_, Slice<'a>>,
    header: &LineProgramHeader<Slice<'a>>,
    row: &LineRow,
) -> Option<SourceLine> {
    let text = |value| Some(unit.attr_string(value).ok()?.slice());
    let file = row.file(header)?;
    let mut path = text(file.path_name())?.to_vec();
    let directory = file.directory(header).and_then(text);
    let compiled_in = unit.comp_dir.map(|directory| directory.slice());
    for directory in directory.into_iter().chain(compiled_in) {
        if !path.starts_with(b"/") {
            path = [directory, b"/", &path].concat();
        }
    }
    (path.len() <= MAX_PATH_BYTES).then_some(())?;
    Some(SourceLine {
        file: String::from_utf8_lossy(&path).into_owned(),
        line: row.line()?.get(),
    })
}
