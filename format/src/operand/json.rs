//! The JSON form of an operand, as `usdtrec list --format json` prints it.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::arch::{Arch, Register};
use crate::operand::{Constant, Extend, IndexedAddress, Location, Operand, Relocation};
use crate::value::Value;

/// An operand in its JSON form: an object of `size`, `signed`, `float`, `kind` and the members of that
/// kind. An unparsed operand is `{"kind":"unparsed","text":…,"reason":…}`.
///
/// | kind | members |
/// |---|---|
/// | `const`, `const_expr` | `value`, cut to the operand's size and sign |
/// | `reg` | `reg`; `width` and `shift` if the name is a part of the register that the size does not determine; `pair` |
/// | `reg_deref` | `reg`, `offset` |
/// | `sib` | `reg` (null if none), `index`, `scale`, `offset`, `extend`; `symbol` and `reloc` if a symbol is added |
/// | `symbol_deref`, `got_deref` | `symbol`, `offset`, `reg` (null if none), `reloc` |
/// | `symbol_addr` | `symbol`, `offset` |
/// | `segment` | `segment`, and the members of the memory in it (`reg` is null for a plain number) |
#[derive(Clone, Copy, Debug)]
pub struct JsonOperand<'a> {
    operand: &'a Operand,
    arch: Arch,
}

impl Operand {
    /// The JSON form. `arch` must be the architecture for which the operand was parsed.
    #[must_use]
    pub const fn json(&self, arch: Arch) -> JsonOperand<'_> {
        JsonOperand {
            operand: self,
            arch,
        }
    }
}

impl Serialize for JsonOperand<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let Operand {
            size,
            signed,
            float,
            location,
        } = self.operand;
        if let Location::Unparsed { text, error } = location {
            map.serialize_entry("kind", "unparsed")?;
            map.serialize_entry("text", text)?;
            map.serialize_entry("reason", &error.to_string())?;
            return map.end();
        }
        map.serialize_entry("size", size)?;
        map.serialize_entry("signed", signed)?;
        map.serialize_entry("float", float)?;
        map.serialize_entry("kind", kind(location))?;
        self.location(location, &mut map)?;
        map.end()
    }
}

/// The name of a location's kind.
const fn kind(location: &Location) -> &'static str {
    match location {
        Location::Constant(_) => "const",
        Location::ConstantExpression(_) => "const_expr",
        Location::Register { .. } => "reg",
        Location::RegisterDeref { .. } | Location::Absolute { .. } => "reg_deref",
        Location::Indexed(_) | Location::SymbolIndexed { .. } => "sib",
        Location::SymbolDeref { .. } => "symbol_deref",
        Location::SymbolAddress { .. } => "symbol_addr",
        Location::GotDeref { .. } => "got_deref",
        Location::Segment { .. } => "segment",
        Location::Unparsed { .. } => "unparsed",
    }
}

impl JsonOperand<'_> {
    /// The members of a location.
    fn location<M: SerializeMap>(&self, location: &Location, map: &mut M) -> Result<(), M::Error> {
        match location {
            Location::Constant(Constant::Integer(value)) | Location::ConstantExpression(value) => {
                match self.operand.cut(*value, self.arch) {
                    // Of a float, it is the number in the note.
                    Value::Unsigned(cut) if !self.operand.float => {
                        map.serialize_entry("value", &cut)
                    }
                    Value::Signed(cut) if !self.operand.float => map.serialize_entry("value", &cut),
                    _ => map.serialize_entry("value", value),
                }
            }
            Location::Constant(Constant::Float(value)) => map.serialize_entry("value", value),
            Location::Register { .. } => self.register(location, map),
            Location::RegisterDeref { register, offset } => {
                map.serialize_entry("reg", &self.name(Some(*register)))?;
                map.serialize_entry("offset", offset)
            }
            Location::Absolute { address } => {
                map.serialize_entry("reg", &self.name(None))?;
                map.serialize_entry("offset", address)
            }
            Location::Indexed(address) => self.indexed(address, map),
            Location::SymbolIndexed {
                symbol,
                address,
                reloc,
            } => {
                map.serialize_entry("symbol", symbol)?;
                self.indexed(address, map)?;
                relocation(reloc.as_ref(), map)
            }
            Location::SymbolDeref {
                symbol,
                offset,
                register,
                reloc,
            } => {
                symbol_and_offset(symbol, *offset, map)?;
                map.serialize_entry("reg", &self.name(*register))?;
                relocation(reloc.as_ref(), map)
            }
            Location::GotDeref {
                symbol,
                offset,
                register,
                reloc,
            } => {
                symbol_and_offset(symbol, *offset, map)?;
                map.serialize_entry("reg", &self.name(*register))?;
                relocation(Some(reloc), map)
            }
            Location::SymbolAddress { symbol, offset } => symbol_and_offset(symbol, *offset, map),
            Location::Segment { segment, inner } => {
                map.serialize_entry("segment", segment)?;
                self.location(inner, map)
            }
            Location::Unparsed { .. } => Ok(()),
        }
    }

    /// The members of a register.
    fn register<M: SerializeMap>(&self, location: &Location, map: &mut M) -> Result<(), M::Error> {
        let Location::Register {
            register,
            width,
            shift,
            pair,
        } = *location
        else {
            return Ok(());
        };
        map.serialize_entry("reg", &self.name(Some(register)))?;
        // The size determines the part of the register, unless it is missing or exceeds the width of the name.
        let part = width < self.arch.register_bytes(register);
        if part && (shift != 0 || self.operand.size.is_none_or(|size| size > width)) {
            map.serialize_entry("width", &width)?;
        }
        if shift != 0 {
            map.serialize_entry("shift", &shift)?;
        }
        if pair {
            map.serialize_entry("pair", &true)?;
        }
        Ok(())
    }

    /// The members of an indexed address.
    fn indexed<M: SerializeMap>(
        &self,
        address: &IndexedAddress,
        map: &mut M,
    ) -> Result<(), M::Error> {
        map.serialize_entry("reg", &self.name(address.register))?;
        map.serialize_entry("index", &self.name(Some(address.index)))?;
        map.serialize_entry("scale", &address.scale)?;
        map.serialize_entry("offset", &address.offset)?;
        match address.extend {
            Some(Extend::SignWord) => map.serialize_entry("extend", "sxtw"),
            Some(Extend::ZeroWord) => map.serialize_entry("extend", "uxtw"),
            None => Ok(()),
        }
    }

    /// A register's name, or null.
    fn name(&self, register: Option<Register>) -> Option<&'static str> {
        register.map(|register| self.arch.register_name(register))
    }
}

/// The members that all symbol operands have.
fn symbol_and_offset<M: SerializeMap>(
    symbol: &str,
    offset: i64,
    map: &mut M,
) -> Result<(), M::Error> {
    map.serialize_entry("symbol", symbol)?;
    map.serialize_entry("offset", &offset)
}

/// A relocation, if there is one.
fn relocation<M: SerializeMap>(reloc: Option<&Relocation>, map: &mut M) -> Result<(), M::Error> {
    reloc.map_or(Ok(()), |Relocation(name)| {
        map.serialize_entry("reloc", name)
    })
}
