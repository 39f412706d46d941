//! Arguments that are arrays of `char`: their value is the address of a variable, or of a part of one.

use std::time::Instant;

use gimli::Register as DwarfRegister;
use usdtrec_dwarf::Die;
use usdtrec_format::schema::{Argument, ArgumentType};
use usdtrec_format::{Arch, Location, Operand};

use super::limits::is_late;
use super::variables::{Caller, ValueLocation, Variable};
use super::{DebugInfo, kind};
use crate::plan::frame::RegisterOffset;
use crate::plan::held_addresses::{HeldAddress, Holder, held_address};

/// Deepest nesting of arrays that is followed.
const MAX_DEPTH: usize = 16;
/// Maximum number of types that are looked at for an argument.
const MAX_TYPES: usize = 256;

/// What is left for the types of an argument.
struct Looking {
    types: usize,
    until: Instant,
}

impl Looking {
    /// Whether one more type may be looked at.
    fn one_more(&mut self) -> bool {
        let fewer = self.types.checked_sub(1);
        self.types = fewer.unwrap_or_default();
        fewer.is_some() && !is_late(self.until)
    }
}

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
    /// The place at a register plus bytes, at an instruction with this frame.
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
        scopes: &[Vec<Variable<'_>>],
        operand: &Operand,
        (pc, slot): (u64, usize),
        caller: &Caller<'_>,
    ) -> Option<Argument> {
        let is_address = operand.bytes(self.arch) == self.arch.pointer_size()
            && operand.signed != Some(true)
            && !operand.float;
        if !is_address
            || !scopes
                .iter()
                .flatten()
                .any(|known| !is_late(self.until) && has_string(&known.kind, 0))
        {
            return None;
        }
        let spot = self.spot(operand, pc)?;
        let mut looking = Looking {
            types: MAX_TYPES,
            until: self.until,
        };
        let variables = scopes.iter().flatten();
        let is_string = |variable: &Variable<'_>| {
            let of_variable = spot_of(variable.place, caller)?;
            let offset = spot.above(of_variable)?;
            is_string_at(&variable.kind, offset, &mut looking).then_some(())
        };
        variables.into_iter().find_map(is_string)?;
        // A search that ended early may have missed a member that is no string.
        (!is_late(self.until)).then(|| Argument {
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
}

fn spot_of(place: ValueLocation, caller: &Caller<'_>) -> Option<Spot> {
    match place {
        ValueLocation::Register(_) => None,
        ValueLocation::Memory(register, offset) => Some(Spot::near(register, offset, caller())),
        ValueLocation::Address(address) => Some(Spot::Linked(address)),
    }
}

/// Whether an array of `char` is a variable of this type, or may be in it.
fn has_string(die: &Die<'_>, depth: usize) -> bool {
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
/// member, too: one of a `pthread_mutex_t`, which has an array of `char` among its members, is no string.
fn is_string_at(die: &Die<'_>, offset: u64, looking: &mut Looking) -> bool {
    if !looking.one_more() {
        return false;
    }
    let until = looking.until;
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
                || of_each().is_some_and(|size| is_string_at(&each, offset % size, looking))
        }
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
            let members = kind::members(&die);
            let within = |at: u64, member: &Die<'_>| {
                let within = offset.checked_sub(at).filter(|_| !is_late(until))?;
                let size = kind::size(member);
                size.is_none_or(|size| within < size).then_some(within)
            };
            let mut at_offset = members
                .iter()
                .filter_map(|(at, member)| Some((within(*at, member)?, member)))
                .peekable();
            at_offset.peek().is_some()
                && at_offset.all(|(within, member)| is_string_at(member, within, looking))
                && (offset > 0
                    || members
                        .iter()
                        .all(|(_, member)| is_string_at(member, 0, looking)))
        }
        _ => false,
    }
}
