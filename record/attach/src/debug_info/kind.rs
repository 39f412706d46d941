//! Types of variables.

use std::collections::BTreeMap;
use std::sync::Arc;

use gimli::AttributeValue;
use usdtrec_dwarf::{Die, DieAttributes};
use usdtrec_format::schema::{ArgumentType, Labels};
use usdtrec_format::{Arch, Operand};

use super::limits::MAX_NAME_BYTES;

/// Longest chain of typedefs and qualifiers.
const MAX_TYPE_CHAIN: usize = 32;
/// Maximum number of members of a structure that are looked at.
const MAX_MEMBERS: usize = 1024;
/// Maximum number of words of an enumeration that are kept.
const MAX_WORDS: usize = 256;

/// The type of an argument, from that of its variable.
#[derive(Debug, Default)]
pub(super) struct Kind {
    /// The type; `None` leaves it to the note.
    pub(super) kind: Option<ArgumentType>,
    /// The words of an enumeration.
    pub(super) labels: Option<Labels>,
}

/// The type of a variable that an operand reads; `None` if the operand reads another number of bytes than it has. `cast`: the
/// sign in the note is not the variable's.
pub(super) fn from_operand(
    die: &Die<'_>,
    operand: &Operand,
    arch: Arch,
    cast: bool,
) -> Option<Kind> {
    let (die, entry) = plain(die)?;
    let pointer = u64::from(arch.pointer_size());
    let size = entry
        .attr_value(gimli::DW_AT_byte_size)
        .and_then(|size| size.udata_value());
    let (bytes, kind) = match entry.tag() {
        gimli::DW_TAG_pointer_type if points_to_string(&die, &entry) => {
            (pointer, Some(ArgumentType::String(None)))
        }
        gimli::DW_TAG_pointer_type
        | gimli::DW_TAG_reference_type
        | gimli::DW_TAG_rvalue_reference_type => (pointer, Some(ArgumentType::Pointer)),
        gimli::DW_TAG_base_type => (size?, base(&entry, size?)),
        gimli::DW_TAG_enumeration_type => (size?, None),
        _ => return None,
    };
    let differs = matches!(kind, Some(ArgumentType::Integer { signed, .. }) if operand.signed != Some(signed));
    let labels = (entry.tag() == gimli::DW_TAG_enumeration_type)
        .then(|| words(&die))
        .flatten();
    (bytes == u64::from(operand.bytes(arch))).then_some(Kind {
        // If the sign in the note differs, the program has a cast, which may be intended.
        kind: kind.filter(|_| cast || !differs),
        labels,
    })
}

/// Whether a unit, given by its first entry, is of Rust code.
pub(super) fn is_rust(root: &Die<'_>) -> bool {
    let language = root
        .attributes()
        .and_then(|entry| entry.attr_value(gimli::DW_AT_language));
    language == Some(AttributeValue::Language(gimli::DW_LANG_Rust))
}

/// The type without typedefs and qualifiers.
pub(super) fn plain<'r>(die: &Die<'r>) -> Option<(Die<'r>, DieAttributes)> {
    let mut die = die.clone();
    for _ in 0..MAX_TYPE_CHAIN {
        let entry = die.attributes()?;
        match entry.tag() {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => {
                die = target(&die, &entry)?;
            }
            _ => return Some((die, entry)),
        }
    }
    None
}

/// The type that a type is made from.
pub(super) fn target<'r>(die: &Die<'r>, entry: &DieAttributes) -> Option<Die<'r>> {
    die.target(entry.attr_value(gimli::DW_AT_type)?)
}

/// Whether a pointer's target is plain `char`.
fn points_to_string(die: &Die<'_>, pointer: &DieAttributes) -> bool {
    target(die, pointer).is_some_and(|target| is_char(&target))
}

/// Whether it is plain `char`, which C has for strings; `unsigned char` and `void` are any bytes.
pub(super) fn is_char(die: &Die<'_>) -> bool {
    plain(die).is_some_and(|(die, entry)| {
        let name = entry.attr_value(gimli::DW_AT_name);
        let name = name.and_then(|name| die.text(name));
        entry.tag() == gimli::DW_TAG_base_type && name.as_deref() == Some("char")
    })
}

/// The size of a variable of this type, bytes; `None` if it is not known.
pub(super) fn size(die: &Die<'_>) -> Option<u64> {
    let (die, entry) = plain(die)?;
    let size = entry.attr_value(gimli::DW_AT_byte_size);
    if entry.tag() != gimli::DW_TAG_array_type || size.is_some() {
        return size?.udata_value();
    }
    let mut all = size_of_element(&die, &entry)?;
    let unit = die.unit();
    let mut tree = unit.entries_tree(Some(die.offset())).ok()?;
    let mut children = tree.root().ok()?.children();
    while let Ok(Some(child)) = children.next() {
        let entry = child.entry();
        if entry.tag() == gimli::DW_TAG_subrange_type {
            let value = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let last = || value(gimli::DW_AT_upper_bound)?.checked_add(1);
            let count = value(gimli::DW_AT_count).or_else(last)?;
            all = all.checked_mul(count)?;
        }
    }
    Some(all)
}

/// The size of an element of an array, which is no array: that has all dimensions in one type.
fn size_of_element(die: &Die<'_>, array: &DieAttributes) -> Option<u64> {
    let (_, entry) = plain(&target(die, array)?)?;
    entry.attr_value(gimli::DW_AT_byte_size)?.udata_value()
}

/// The members of a structure or union, each with its offset, bytes.
pub(super) fn members<'r>(die: &Die<'r>) -> Vec<(u64, Die<'r>)> {
    let mut found = Vec::new();
    let unit = die.unit();
    let Ok(mut tree) = unit.entries_tree(Some(die.offset())) else {
        return found;
    };
    let Ok(root) = tree.root() else {
        return found;
    };
    let mut children = root.children();
    while let Ok(Some(child)) = children.next() {
        let entry = child.entry();
        // Those of a union have no offset.
        let at = entry
            .attr_value(gimli::DW_AT_data_member_location)
            .map_or(Some(0), |value| value.udata_value());
        let kind = entry
            .attr_value(gimli::DW_AT_type)
            .and_then(|kind| die.target(kind));
        if let (gimli::DW_TAG_member, Some(at), Some(kind)) = (entry.tag(), at, kind)
            && found.len() < MAX_MEMBERS
        {
            found.push((at, kind));
        }
    }
    found
}

fn base(entry: &DieAttributes, bytes: u64) -> Option<ArgumentType> {
    let Some(AttributeValue::Encoding(encoding)) = entry.attr_value(gimli::DW_AT_encoding) else {
        return None;
    };
    let size = u8::try_from(bytes)
        .ok()
        .filter(|size| matches!(size, 1 | 2 | 4 | 8));
    match encoding {
        gimli::DW_ATE_boolean => Some(ArgumentType::Bool),
        gimli::DW_ATE_float if bytes == 4 => Some(ArgumentType::Float32),
        gimli::DW_ATE_float if bytes == 8 => Some(ArgumentType::Float64),
        gimli::DW_ATE_UTF => Some(ArgumentType::Char),
        gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => {
            Some(ArgumentType::integer(size?, true))
        }
        gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char => {
            Some(ArgumentType::integer(size?, false))
        }
        _ => None,
    }
}

/// The words of an enumeration.
fn words(die: &Die<'_>) -> Option<Labels> {
    let mut words = BTreeMap::new();
    let unit = die.unit();
    let mut tree = unit.entries_tree(Some(die.offset())).ok()?;
    let mut children = tree.root().ok()?.children();
    while let Ok(Some(child)) = children.next() {
        let entry = child.entry();
        let value = entry
            .attr_value(gimli::DW_AT_const_value)
            .and_then(|value| value.sdata_value());
        let name = entry
            .attr_value(gimli::DW_AT_name)
            .and_then(|name| die.text(name));
        if let (gimli::DW_TAG_enumerator, Some(value), Some(name)) = (entry.tag(), value, name)
            && name.len() <= MAX_NAME_BYTES
            && words.len() < MAX_WORDS
        {
            words.insert(value, name);
        }
    }
    (!words.is_empty()).then(|| Labels::Enum(Arc::new(words)))
}
