//! Names of entries of debugging information.

use gimli::{AttributeValue, DebugInfoOffset, Unit, UnitOffset};

use super::sections::Bytes;
use super::texts::{text, utf8};
use super::units::{ReadUnit, Units};

/// Entries that are followed to a name: an inlined call, its function, and what the function is a definition of.
const MAX_ORIGINS: usize = 16;

/// An entry of a unit.
pub(super) struct NamedEntry<'a> {
    pub(super) units: &'a Units,
    /// Of the file that several share.
    pub(super) shared: Option<&'a Units>,
    pub(super) unit: &'a Unit<Bytes>,
    pub(super) at: UnitOffset,
}

/// What an entry says of its name.
enum Said {
    Name(String),
    /// Another entry of the unit has it.
    Beside(UnitOffset),
    /// An entry of another unit has it.
    Elsewhere {
        offset: DebugInfoOffset,
        /// Whether it is in the file that several share.
        shared: bool,
    },
}

impl NamedEntry<'_> {
    /// The name as linked, else as written.
    pub(super) fn name(&self) -> Option<String> {
        let (mut units, mut at) = (self.units, self.at);
        let mut elsewhere: Option<ReadUnit> = None;
        for _ in 0..MAX_ORIGINS {
            let unit = elsewhere.as_ref().map_or(self.unit, |read| &read.unit);
            match said(units, unit, at)? {
                Said::Name(name) => return Some(name),
                Said::Beside(next) => at = next,
                Said::Elsewhere { offset, shared } => {
                    if shared {
                        units = self.shared?;
                    }
                    let read = units.unit(units.of_entry(offset)?)?;
                    at = offset.to_unit_offset(&read.unit.header)?;
                    elsewhere = Some(read);
                }
            }
        }
        None
    }
}

fn said(units: &Units, unit: &Unit<Bytes>, at: UnitOffset) -> Option<Said> {
    let entry = unit.entry(at).ok()?;
    let (mut linked, mut written, mut origin) = (None, None, None);
    for attribute in entry.attrs() {
        let value = attribute.value();
        match attribute.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => linked = Some(value),
            gimli::DW_AT_name => written = Some(value),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => origin = Some(value),
            _ => {}
        }
    }
    let name = |value| utf8(&text(&units.dwarf, unit, value)?);
    if let Some(linked) = linked.and_then(name) {
        return Some(Said::Name(linked));
    }
    // What it refers to may have the name as linked.
    let elsewhere = |offset, shared| Some(Said::Elsewhere { offset, shared });
    match origin {
        None => written.and_then(name).map(Said::Name),
        Some(AttributeValue::UnitRef(at)) => Some(Said::Beside(at)),
        Some(AttributeValue::DebugInfoRef(offset)) => elsewhere(offset, false),
        Some(AttributeValue::DebugInfoRefSup(offset)) => elsewhere(offset, true),
        Some(_) => None,
    }
}
