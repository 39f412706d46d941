//! Locations: the part of an operand after its size.

use super::displacement::Displacement;
use super::prefix::Prefix;
use super::{Machine, Parsed, displacement, expression, number};
use crate::arch::Register;
use crate::arch::{BareNumber, BareSymbol, MemoryForm, RegisterPart, RegisterPrefix};
use crate::operand::{Constant, Location, OperandErrorKind};

impl Machine {
    /// Parses a whole location. Its kind is determined by its start and end, so that an error is about
    /// the intended kind.
    pub(super) fn location<'a>(self, body: &'a str, prefix: &Prefix) -> Parsed<'a, Location> {
        if let Some((_, inner)) = segment(body, self.syntax.flat_segments) {
            return self.in_segment(inner);
        }
        if let Some((segment, inner)) = segment(body, self.syntax.segments) {
            let inner = Box::new(self.in_segment(inner)?);
            return Ok(Location::Segment { segment, inner });
        }
        if let Some(part) = self.register(body) {
            return Ok(self.in_register(part, prefix));
        }
        if let Some(memory) = self.memory(body) {
            return memory;
        }
        if let Some(after) = self.constant_prefix(body) {
            return self.constant(after, body, prefix);
        }
        if let Some(number) = number::integer(body) {
            return self.bare_number(number?, body);
        }
        if let Some(float) = number::float(body).filter(|_| self.has_bare_constants()) {
            return Ok(Location::Constant(Constant::Float(float)));
        }
        if body.starts_with('%') && !matches!(self.syntax.register_prefix, RegisterPrefix::None) {
            let part = self.expect_register(body)?;
            return Ok(self.in_register(part, prefix));
        }
        match displacement::parse(body) {
            Ok(place) if place.symbol.is_some() => self.bare_symbol(&place, prefix),
            Ok(_) => self.expression(body),
            Err(_) if body.starts_with(is_arithmetic) => self.expression(body),
            Err(failure) => Err(failure),
        }
    }

    /// A value in a register.
    fn in_register(self, part: RegisterPart, prefix: &Prefix) -> Location {
        // A value that is wider than a general register continues in another register.
        let word = self.arch.pointer_size();
        let whole = part.bytes == word && self.table.info(part.register).bytes == word;
        Location::Register {
            register: part.register,
            width: part.bytes,
            shift: part.shift,
            pair: whole && prefix.size.is_some_and(|size| size > word),
        }
    }

    /// Memory in a segment: a plain number is an address there.
    fn in_segment(self, body: &str) -> Parsed<'_, Location> {
        if let Some(memory) = self.memory(body) {
            return memory;
        }
        let place = displacement::parse(body)?;
        match place.symbol {
            Some(symbol) => Ok(symbol_memory(symbol, &place, None)),
            None if place.terms > 0 => Ok(Location::Absolute {
                address: place.offset,
            }),
            None => Err(OperandErrorKind::NoAddress.at(body)),
        }
    }

    /// Memory, if the body has the form of a memory operand.
    fn memory(self, body: &str) -> Option<Parsed<'_, Location>> {
        match self.syntax.memory {
            MemoryForm::Brackets => body.starts_with('[').then(|| self.bracketed(body)),
            MemoryForm::Parentheses => self.parenthesised(body),
        }
    }

    /// The part after the constant prefix, if the body has one.
    fn constant_prefix(self, body: &str) -> Option<&str> {
        let prefix = self.syntax.constant_prefix?;
        let after = body.strip_prefix(prefix)?;
        // A prefix that is a letter could also begin a symbol.
        let is_word = prefix.starts_with(|first: char| first.is_ascii_alphabetic());
        (!is_word || number::integer(after).is_some()).then_some(after)
    }

    /// A constant, a symbol's address or an expression of constants.
    fn constant<'a>(self, after: &'a str, body: &'a str, prefix: &Prefix) -> Parsed<'a, Location> {
        if let Some(number) = number::integer(after) {
            return Ok(Location::Constant(Constant::Integer(number?)));
        }
        if let Some(float) = number::float(after) {
            return Ok(Location::Constant(Constant::Float(float)));
        }
        match displacement::parse(after) {
            Ok(place) => match (place.symbol, place.reloc) {
                (Some(symbol), None) => self.symbol_address(symbol, &place, prefix),
                (Some(symbol), Some(relocation)) => Err(OperandErrorKind::RelocatedAddress {
                    symbol: symbol.to_owned(),
                    relocation: relocation.to_owned(),
                }
                .at(relocation)),
                (None, _) => self.expression(body),
            },
            Err(_) => self.expression(body),
        }
    }

    /// Whether a constant needs no prefix.
    const fn has_bare_constants(self) -> bool {
        matches!(self.syntax.bare_number, BareNumber::Constant)
    }

    /// Constant arithmetic.
    fn expression(self, body: &str) -> Parsed<'_, Location> {
        expression::evaluate(body, self.syntax.constant_prefix, self.has_bare_constants())
            .map(Location::ConstantExpression)
    }

    /// A number alone that is not the name of a register.
    fn bare_number(self, number: i64, body: &str) -> Parsed<'_, Location> {
        match self.syntax.bare_number {
            BareNumber::Constant => Ok(Location::Constant(Constant::Integer(number))),
            BareNumber::Register => Err(self.no_register(body)),
            BareNumber::Address => Err(OperandErrorKind::NumberAlone.at(body)),
        }
    }

    /// A symbol alone, with an optional offset or relocation. Without a size, any word could be a symbol.
    fn bare_symbol<'a>(self, place: &Displacement<'a>, prefix: &Prefix) -> Parsed<'a, Location> {
        let symbol = place.symbol.unwrap_or_default();
        if prefix.size.is_none() {
            return Err(OperandErrorKind::SymbolWithoutSize(symbol.to_owned()).at(symbol));
        }
        if self.table.name(symbol).is_some() {
            return Err(OperandErrorKind::RegisterWithoutPrefix(symbol.to_owned()).at(symbol));
        }
        match self.syntax.bare_symbol {
            BareSymbol::Memory => Ok(symbol_memory(symbol, place, None)),
            BareSymbol::Address if self.is_like_register(symbol) => Err(self.no_register(symbol)),
            BareSymbol::Address if place.reloc.is_none() => {
                self.symbol_address(symbol, place, prefix)
            }
            _ => Err(OperandErrorKind::SymbolAlone {
                symbol: symbol.to_owned(),
                machine: self.arch.name(),
            }
            .at(symbol)),
        }
    }

    /// Whether a word is a name of registers with another number, or none (`r99`, `r07`, `r`). One letter alone is the name of
    /// a symbol, but for the general registers.
    fn is_like_register(self, symbol: &str) -> bool {
        let family = symbol.trim_end_matches(|last: char| last.is_ascii_digit());
        let number = &symbol[family.len()..];
        let word = self.arch.pointer_size();
        self.table
            .name(&format!("{family}0"))
            .is_some_and(|first| !number.is_empty() || first.bytes == word && family == "r")
    }

    /// The address of a symbol, which no value wider than a pointer is.
    fn symbol_address<'a>(
        self,
        symbol: &'a str,
        place: &Displacement<'a>,
        prefix: &Prefix,
    ) -> Parsed<'a, Location> {
        let pointer = self.arch.pointer_size();
        if prefix.size.is_some_and(|size| size > pointer) {
            return Err(OperandErrorKind::WideAddress {
                symbol: symbol.to_owned(),
                pointer,
            }
            .at(symbol));
        }
        Ok(Location::SymbolAddress {
            symbol: symbol.to_owned(),
            offset: place.offset,
        })
    }
}

/// The segment at the start of a body, if it is one of these, and the part after its colon.
fn segment<'a>(body: &'a str, known: &[&'static str]) -> Option<(&'static str, &'a str)> {
    let (name, inner) = body.strip_prefix('%')?.split_once(':')?;
    let segment = known.iter().find(|known| **known == name.trim_end())?;
    Some((segment, inner.trim_start()))
}

/// Memory at a symbol, or its GOT slot.
pub(super) fn symbol_memory(
    symbol: &str,
    place: &Displacement<'_>,
    register: Option<Register>,
) -> Location {
    let symbol = symbol.to_owned();
    let offset = place.offset;
    match place.relocation() {
        Some(reloc) if reloc.is_got_slot() => Location::GotDeref {
            symbol,
            offset,
            register,
            reloc,
        },
        reloc => Location::SymbolDeref {
            symbol,
            offset,
            register,
            reloc,
        },
    }
}

/// Whether a character can start constant arithmetic.
pub(super) fn is_arithmetic(first: char) -> bool {
    matches!(first, '(' | '-' | '+' | '~' | '!') || first.is_ascii_digit()
}
