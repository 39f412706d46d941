//! Types of variables.

use std::collections::BTreeMap;
use std::sync::Arc;

use gimli::{AttributeValue, Register as DwarfRegister};
use usdtrec_format::schema::{Argument, ArgumentType, Labels};
use usdtrec_format::{Arch, Location, Operand};

use super::units::{Die, Entry};
use super::variables::{ValueLocation, Variable};
use super::{DebugInfo, kind};
use crate::plan::RegisterOffset;
use crate::plan::held_addresses::{HeldAddress, Holder, held_address};

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
    die: &Die<'_, '_>,
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
pub(super) fn is_rust(root: &Die<'_, '_>) -> bool {
    let language = root
        .entry()
        .and_then(|entry| entry.attr_value(gimli::DW_AT_language));
    language == Some(AttributeValue::Language(gimli::DW_LANG_Rust))
}

/// The type without typedefs and qualifiers.
pub(super) fn plain<'r, 'a>(die: &Die<'r, 'a>) -> Option<(Die<'r, 'a>, Entry<'a>)> {
    let mut die = die.clone();
    for _ in 0..MAX_TYPE_CHAIN {
        let entry = die.entry()?;
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
pub(super) fn target<'r, 'a>(die: &Die<'r, 'a>, entry: &Entry<'a>) -> Option<Die<'r, 'a>> {
    die.target(entry.attr_value(gimli::DW_AT_type)?)
}

/// Whether a pointer's target is plain `char`.
fn points_to_string<'a>(die: &Die<'_, 'a>, pointer: &Entry<'a>) -> bool {
    target(die, pointer).is_some_and(|target| is_char(&target))
}

/// Whether it is plain `char`, which C has for strings; `unsigned char` and `void` are any bytes.
pub(super) fn is_char(die: &Die<'_, '_>) -> bool {
    plain(die).is_some_and(|(die, entry)| {
        let name = entry.attr_value(gimli::DW_AT_name);
        let name = name.and_then(|name| die.text(name));
        entry.tag() == gimli::DW_TAG_base_type && name == Some(b"char")
    })
}

/// The size of a variable of this type, bytes; `None` if it is not known.
pub(super) fn size(die: &Die<'_, '_>) -> Option<u64> {
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
fn size_of_element<'a>(die: &Die<'_, 'a>, array: &Entry<'a>) -> Option<u64> {
    let (_, entry) = plain(&target(die, array)?)?;
    entry.attr_value(gimli::DW_AT_byte_size)?.udata_value()
}

/// The members of a structure or union, each with its offset, bytes.
pub(super) fn members<'r, 'a>(die: &Die<'r, 'a>) -> Vec<(u64, Die<'r, 'a>)> {
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

fn base(entry: &Entry<'_>, bytes: u64) -> Option<ArgumentType> {
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
fn words(die: &Die<'_, '_>) -> Option<Labels> {
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
            && words.len() < MAX_WORDS
        {
            words.insert(value, String::from_utf8_lossy(name).into_owned());
        }
    }
    (!words.is_empty()).then(|| Labels::Enum(Arc::new(words)))
}

/// Deepest nesting of arrays that is followed.
const MAX_DEPTH: usize = 16;
/// Maximum number of types that are looked at for an argument.
const MAX_TYPES: usize = 256;

/// Where a variable, or an address, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    /// Bytes from the caller's frame (the canonical frame address).
    Frame(i64),
    /// A register plus bytes, where the frame is not known.
    Register(DwarfRegister, i64),
    Linked(u64),
}

impl Spot {
    /// That of a register plus bytes, at an instruction with this frame.
    fn near(register: DwarfRegister, offset: i64, frame: Option<RegisterOffset>) -> Self {
        match frame.filter(|frame| frame.register == register) {
            Some(frame) => Self::Frame(offset.wrapping_sub(frame.offset)),
            None => Self::Register(register, offset),
        }
    }

    /// How far it is above another one.
    fn above(self, other: Self) -> Option<u64> {
        let bytes = match (self, other) {
            (Self::Frame(one), Self::Frame(other)) => one.checked_sub(other),
            (Self::Register(base, one), Self::Register(other_base, other)) => {
                one.checked_sub(other).filter(|_| base == other_base)
            }
            (Self::Linked(one), Self::Linked(other)) => return one.checked_sub(other),
            _ => None,
        };
        u64::try_from(bytes?).ok()
    }
}

impl DebugInfo<'_> {
    /// An argument whose value is the address of an array of `char`. It has a type alone: the name is that of the array, or of a structure
    /// around it.
    pub(super) fn array(
        &self,
        scopes: &[Vec<Variable<'_, '_>>],
        operand: &Operand,
        (pc, slot): (u64, usize),
    ) -> Option<Argument> {
        let is_address = operand.bytes(self.arch) == self.arch.pointer_size()
            && operand.signed != Some(true)
            && !operand.float;
        if !is_address
            || !scopes
                .iter()
                .flatten()
                .any(|known| has_string(&known.kind, 0))
        {
            return None;
        }
        let spot = self.spot(operand, pc)?;
        let mut left = MAX_TYPES;
        let variables = scopes.iter().flatten();
        let is_string = |variable: &Variable<'_, '_>| {
            let of_variable = self.spot_of(variable.place, pc)?;
            let offset = spot.above(of_variable)?;
            is_string_at(&variable.kind, offset, &mut left).then_some(())
        };
        variables.into_iter().find_map(is_string)?;
        Some(Argument {
            kind: Some(ArgumentType::String(None)),
            ..Argument::unnamed(slot)
        })
    }

    /// What an operand is the address of.
    fn spot(&self, operand: &Operand, pc: u64) -> Option<Spot> {
        let place = ValueLocation::from_operand(operand, self.arch, |symbol| self.address(symbol));
        let holder = match (&operand.location, place) {
            (Location::SymbolAddress { symbol, offset }, _) => {
                let address = self.address(symbol)?.checked_add_signed(*offset)?;
                return Some(Spot::Linked(address));
            }
            (_, Some(ValueLocation::Register(register))) => Holder::Register(register),
            (_, Some(ValueLocation::Memory(register, offset))) => Holder::Word(register, offset),
            _ => return None,
        };
        if self.arch != Arch::X86_64 {
            return None;
        }
        let (start, code) = self.frames.code(pc)?;
        Some(match held_address(&code, start, pc, holder)? {
            HeldAddress::Linked(address) => Spot::Linked(address),
            HeldAddress::Frame {
                register,
                offset,
                pc,
            } => Spot::near(register, offset, self.caller(pc)),
        })
    }

    fn spot_of(&self, place: ValueLocation, pc: u64) -> Option<Spot> {
        match place {
            ValueLocation::Register(_) => None,
            ValueLocation::Memory(register, offset) => {
                Some(Spot::near(register, offset, self.caller(pc)))
            }
            ValueLocation::Address(address) => Some(Spot::Linked(address)),
        }
    }
}

/// Whether an array of `char` is a variable of this type, or may be in it.
fn has_string(die: &Die<'_, '_>, depth: usize) -> bool {
    let Some((die, entry)) = kind::plain(die) else {
        return false;
    };
    match entry.tag() {
        gimli::DW_TAG_array_type => kind::target(&die, &entry).is_some_and(|each| {
            kind::is_char(&each) || depth < MAX_DEPTH && has_string(&each, depth + 1)
        }),
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => true,
        _ => false,
    }
}

/// Whether what is at an offset of a variable of this type can only be an array of `char`. The address of a structure or a union is that of its first
/// member, too: one of a `pthread_mutex_t`, which has an array of `char` among its members, is no string. `left`: how many types may be looked at.
fn is_string_at(die: &Die<'_, '_>, offset: u64, left: &mut usize) -> bool {
    let Some(fewer) = left.checked_sub(1) else {
        return false;
    };
    *left = fewer;
    let Some((die, entry)) = kind::plain(die) else {
        return false;
    };
    match entry.tag() {
        gimli::DW_TAG_array_type => {
            let is_beyond = kind::size(&die).is_some_and(|size| offset >= size);
            let Some(each) = kind::target(&die, &entry).filter(|_| !is_beyond) else {
                return false;
            };
            let of_each = || kind::size(&each).filter(|size| *size > 0);
            kind::is_char(&each)
                || of_each().is_some_and(|size| is_string_at(&each, offset % size, left))
        }
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
            let members = kind::members(&die);
            let within = |at: u64, member: &Die<'_, '_>| {
                let within = offset.checked_sub(at)?;
                let size = kind::size(member);
                size.is_none_or(|size| within < size).then_some(within)
            };
            let mut at_offset = members
                .iter()
                .filter_map(|(at, member)| Some((within(*at, member)?, member)))
                .peekable();
            at_offset.peek().is_some()
                && at_offset.all(|(within, member)| is_string_at(member, within, left))
                && (offset > 0
                    || members
                        .iter()
                        .all(|(_, member)| is_string_at(member, 0, left)))
        }
        _ => false,
    }
}
