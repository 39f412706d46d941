//! The source lines of addresses, from the line tables of their units.

use std::collections::BTreeMap;

use gimli::{LineProgramHeader, LineRow, UnitRef};
use usdtrec_format::SourceLine;

use super::slice::Slice;
use super::units::{Die, Units};

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
