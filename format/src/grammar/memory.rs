//! Memory: `displacement(base,index,scale)` and `[base, displacement]`.

use super::displacement::{self, Displacement};
use super::location::{is_arithmetic, symbol_memory};
use super::{Machine, Parsed, number};
use crate::arch::Register;
use crate::arch::{BareNumber, RegisterPart, RegisterPrefix};
use crate::operand::{Extend, IndexedAddress, Location, OperandErrorKind};

impl Machine {
    /// Memory with registers in parentheses at the end, or `base,index` without parentheses; `None` if the body is
    /// neither.
    pub(super) fn parenthesised(self, body: &str) -> Option<Parsed<'_, Location>> {
        if self.syntax.bare_pair
            && !body.contains('(')
            && let Some((base, index)) = body.split_once(',')
        {
            return Some(self.base_and_index(base.trim(), index.trim()));
        }
        let (displacement, registers) = body.strip_suffix(')')?.rsplit_once('(')?;
        let registers = registers.trim();
        let prefix = self.syntax.constant_prefix;
        let numbers_are_registers = matches!(self.syntax.bare_number, BareNumber::Register);
        let arithmetic = registers.starts_with(is_arithmetic) && !numbers_are_registers
            || prefix.is_some_and(|prefix| prefix == "$" && registers.starts_with(prefix));
        (!arithmetic).then(|| self.base_index_scale(displacement, registers))
    }

    /// `displacement(base,index,scale)` without its parentheses.
    fn base_index_scale<'a>(
        self,
        displacement: &'a str,
        registers: &'a str,
    ) -> Parsed<'a, Location> {
        let mut parts = registers.split(',').map(str::trim);
        let (base, index, scale) = (parts.next(), parts.next(), parts.next());
        if parts.next().is_some() {
            return Err(too_many_parts("scale", format!("({registers})")).at(registers));
        }
        let named = base.filter(|base| !base.is_empty());
        let base = named.map_or(Ok(None), |base| self.base(base))?;
        let Some(index) = index else {
            named.ok_or_else(|| OperandErrorKind::NoBase.at(registers))?;
            return Ok(based(base, &self.displacement(displacement)?));
        };
        let index = self.expect_register(index)?.register;
        let place = self.displacement(displacement)?;
        Ok(indexed(
            base,
            index,
            scale.map_or(Ok(1), parse_scale)?,
            &place,
        ))
    }

    /// A displacement, which on an architecture without `%` before registers may be `%lo(symbol)`.
    fn displacement(self, text: &str) -> Parsed<'_, Displacement<'_>> {
        let text = text.trim();
        let function = match self.syntax.register_prefix {
            RegisterPrefix::None => text.strip_prefix('%'),
            _ => None,
        };
        let Some((reloc, argument)) = function.and_then(|text| text.split_once('(')) else {
            return displacement::parse(text);
        };
        let argument = argument
            .strip_suffix(')')
            .ok_or_else(|| OperandErrorKind::UnclosedRelocation(reloc.to_owned()).at(text))?;
        let mut place = displacement::parse(argument)?;
        place.relocate(reloc)?;
        Ok(place)
    }

    /// `base,index`.
    fn base_and_index<'a>(self, base: &'a str, index: &'a str) -> Parsed<'a, Location> {
        let base = self.base(base)?;
        let index = self.expect_register(index)?.register;
        Ok(indexed(base, index, 1, &Displacement::default()))
    }

    /// A base register; `None` for register 0 of PowerPC, which means the number 0 there (Power ISA, "RA|0").
    fn base(self, text: &str) -> Parsed<'_, Option<Register>> {
        let register = self.expect_register(text)?.register;
        let may_be_number = matches!(self.syntax.bare_number, BareNumber::Register);
        let is_number = may_be_number && self.arch.register_name(register) == "r0";
        Ok((!is_number).then_some(register))
    }

    /// `[base]`, `[base, displacement]`, `[base, index]` or `[base, index, extend shift]`.
    pub(super) fn bracketed(self, body: &str) -> Parsed<'_, Location> {
        let inner = body
            .strip_prefix('[')
            .and_then(|body| body.strip_suffix(']'));
        let unclosed = OperandErrorKind::Unclosed {
            opening: '[',
            closing: ']',
        };
        let inner = inner.ok_or(unclosed.at(body))?;
        let mut parts = inner.split(',').map(str::trim);
        let (base, second, third) = (parts.next(), parts.next(), parts.next());
        if parts.next().is_some() {
            return Err(too_many_parts("shift", body.to_owned()).at(body));
        }
        let base = self.expect_register(base.unwrap_or_default())?.register;
        let Some(second) = second else {
            return Ok(based(Some(base), &Displacement::default()));
        };
        if let Some(index) = self.register(second) {
            return self.shifted(base, index, third.unwrap_or_default());
        }
        if let Some(third) = third {
            let kind = OperandErrorKind::NoIndex {
                found: second.to_owned(),
                following: third.to_owned(),
            };
            return Err(kind.at(second));
        }
        Ok(based(Some(base), &self.bracket_displacement(second)?))
    }

    /// A displacement in brackets: a number, with or without `#`, or `#:lo12:symbol`.
    fn bracket_displacement(self, text: &str) -> Parsed<'_, Displacement<'_>> {
        let text = self
            .syntax
            .constant_prefix
            .and_then(|prefix| text.strip_prefix(prefix))
            .unwrap_or(text);
        let Some((reloc, symbol)) = text.strip_prefix(':').and_then(|text| text.split_once(':'))
        else {
            let place = displacement::parse(text)?;
            return match place.symbol {
                None if place.terms > 0 => Ok(place),
                _ => Err(self.no_register(text)),
            };
        };
        let mut place = displacement::parse(symbol)?;
        place.relocate(reloc)?;
        Ok(place)
    }

    /// `[base, index, extend shift]`; `modifier` is empty, a shift (`lsl 3`) or an extend with or without one.
    fn shifted(self, base: Register, index: RegisterPart, modifier: &str) -> Parsed<'_, Location> {
        let word_end = modifier.find(|char: char| !char.is_ascii_alphanumeric());
        let (word, amount) = modifier.split_at(word_end.unwrap_or(modifier.len()));
        let extend = match word {
            "" | "lsl" | "sxtx" | "uxtx" => None,
            "sxtw" => Some(Extend::SignWord),
            "uxtw" => Some(Extend::ZeroWord),
            _ => return Err(OperandErrorKind::Extend(word.to_owned()).at(word)),
        };
        let amount = amount.trim();
        let amount = amount.strip_prefix('#').unwrap_or(amount);
        let shift = match number::integer(amount) {
            None if amount.is_empty() && word != "lsl" => 0,
            Some(Ok(shift @ 0..=4)) => shift,
            _ => return Err(OperandErrorKind::Shift(amount.to_owned()).at(amount)),
        };
        let address = IndexedAddress {
            register: Some(base),
            index: index.register,
            scale: 1 << shift,
            offset: 0,
            extend,
        };
        Ok(Location::Indexed(address))
    }
}

/// The error for an address of more than three parts.
const fn too_many_parts(last: &'static str, text: String) -> OperandErrorKind {
    OperandErrorKind::TooManyParts { last, text }
}

/// Parses a scale of x86. 0, which gdb accepts, ignores the index.
fn parse_scale(text: &str) -> Parsed<'_, u8> {
    match number::integer(text) {
        Some(Ok(0)) => Ok(0),
        Some(Ok(1)) => Ok(1),
        Some(Ok(2)) => Ok(2),
        Some(Ok(4)) => Ok(4),
        Some(Ok(8)) => Ok(8),
        _ => Err(OperandErrorKind::Scale(text.to_owned()).at(text)),
    }
}

/// Memory at a base register, if there is one, and a displacement.
fn based(register: Option<Register>, place: &Displacement<'_>) -> Location {
    let offset = place.offset;
    match (place.symbol, register) {
        (Some(symbol), _) => symbol_memory(symbol, place, register),
        (None, Some(register)) => Location::RegisterDeref { register, offset },
        (None, None) => Location::Absolute { address: offset },
    }
}

/// Memory at a base, an index and a displacement.
fn indexed(
    register: Option<Register>,
    index: Register,
    scale: u8,
    place: &Displacement<'_>,
) -> Location {
    let address = IndexedAddress {
        register,
        index,
        scale,
        offset: place.offset,
        extend: None,
    };
    match place.symbol {
        None => Location::Indexed(address),
        Some(symbol) => Location::SymbolIndexed {
            symbol: symbol.to_owned(),
            address,
            reloc: place.relocation(),
        },
    }
}
