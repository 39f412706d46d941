//! Entries of units, and what they refer to.

use std::sync::Arc;

use gimli::{AttributeValue, DebuggingInformationEntry, UnitOffset, UnitRef};

use crate::sections::{Bytes, text};
use crate::units::{ReadUnit, Units};

/// Entries that are followed to a name: an inlined call, its function, and what the function is a definition of.
const MAX_ORIGINS: usize = 16;

/// An entry's attributes.
pub type DieAttributes = DebuggingInformationEntry<Bytes>;

/// An entry of a unit (DIE).
#[derive(Clone)]
pub struct Die<'r> {
    units: &'r Units,
    /// Of the file that several share.
    shared: Option<&'r Units>,
    unit: Arc<ReadUnit>,
    at: UnitOffset,
}

impl<'r> Die<'r> {
    pub(crate) const fn new(
        units: &'r Units,
        shared: Option<&'r Units>,
        unit: Arc<ReadUnit>,
        at: UnitOffset,
    ) -> Self {
        Self {
            units,
            shared,
            unit,
            at,
        }
    }

    /// Its unit.
    #[must_use]
    pub fn unit(&self) -> UnitRef<'_, Bytes> {
        UnitRef::new(&self.units.dwarf, &self.unit.unit)
    }

    /// Its offset in its unit.
    #[must_use]
    pub const fn offset(&self) -> UnitOffset {
        self.at
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Option<DieAttributes> {
        self.unit.unit.entry(self.at).ok()
    }

    /// The entry that an attribute refers to: in its unit, another unit, a type unit, or the shared file.
    #[must_use]
    pub fn target(&self, value: AttributeValue<Bytes>) -> Option<Self> {
        let of_units = |units: &'r Units, offset| {
            let (unit, at) = units.entry(offset)?;
            Some(Self::new(units, self.shared, Arc::new(unit), at))
        };
        match value {
            AttributeValue::UnitRef(at) => Some(Self { at, ..self.clone() }),
            AttributeValue::DebugInfoRef(offset) => of_units(self.units, offset),
            AttributeValue::DebugInfoRefSup(offset) => of_units(self.shared?, offset),
            AttributeValue::DebugTypesRef(signature) => {
                let (unit, at) = self.units.type_unit(signature)?;
                Some(Self::new(self.units, self.shared, Arc::new(unit), at))
            }
            _ => None,
        }
    }

    /// The text of an attribute, as UTF-8: other bytes are replaced.
    #[must_use]
    pub fn text(&self, value: AttributeValue<Bytes>) -> Option<String> {
        text(&self.units.dwarf, &self.unit.unit, value)
    }

    /// The name as linked, else as written: that of the entry, or of the one that it is a copy or a definition of.
    #[must_use]
    pub fn linked_name(&self) -> Option<String> {
        let mut at = self.clone();
        for _ in 0..MAX_ORIGINS {
            let entry = at.attributes()?;
            let value = |name| entry.attr_value(name);
            let linked = value(gimli::DW_AT_linkage_name);
            let linked = linked.or_else(|| value(gimli::DW_AT_MIPS_linkage_name));
            if let Some(linked) = linked.and_then(|linked| at.text(linked)) {
                return Some(linked);
            }
            // What it refers to may have the name as linked.
            let origin = value(gimli::DW_AT_abstract_origin);
            match origin.or_else(|| value(gimli::DW_AT_specification)) {
                None => return at.text(value(gimli::DW_AT_name)?),
                Some(origin) => at = at.target(origin)?,
            }
        }
        None
    }
}
