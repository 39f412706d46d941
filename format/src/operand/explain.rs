//! Operands as readable text.

use crate::arch::RegisterPart;
use crate::arch::{Arch, Register};
use crate::operand::{Constant, Extend, IndexedAddress, Location, Operand, Relocation};
use crate::value::Value;

impl Operand {
    /// The operand as a short phrase: `s32 in ebx`, `u64 in memory at rbp-320`, `f64 in xmm0`,
    /// `s32 constant -1`, `not understood: …`. `arch` must be the architecture for which it was parsed.
    #[must_use]
    pub fn explain(&self, arch: Arch) -> String {
        let place = match &self.location {
            Location::Unparsed { error, .. } => return format!("not understood: {error}"),
            Location::Constant(constant) => format!("constant {}", self.constant(*constant, arch)),
            Location::ConstantExpression(value) => {
                format!(
                    "constant {}",
                    self.constant(Constant::Integer(*value), arch)
                )
            }
            location => words(location, arch),
        };
        let unsized_note = if self.size.is_none() {
            ", size not given"
        } else {
            ""
        };
        format!("{} {place}{unsized_note}", self.type_name(arch))
    }

    /// `s32`, `u8`, `f64`, …; `24 bytes` where no number has so many.
    fn type_name(&self, arch: Arch) -> String {
        let bytes = self.bytes(arch);
        if !self.float && !matches!(bytes, 1 | 2 | 4 | 8 | 16) {
            return format!("{bytes} bytes");
        }
        let letter = match (self.float, self.is_signed()) {
            (true, _) => 'f',
            (false, true) => 's',
            (false, false) => 'u',
        };
        format!("{letter}{}", 8 * u32::from(bytes))
    }

    /// A constant, cut to the operand's size.
    fn constant(&self, constant: Constant, arch: Arch) -> String {
        match constant {
            Constant::Float(value) => format!("{value:?}"),
            Constant::Integer(value) if self.float => value.to_string(),
            Constant::Integer(value) => match self.cut(value, arch) {
                Value::Unsigned(cut) => cut.to_string(),
                Value::Signed(cut) => cut.to_string(),
                _ => value.to_string(),
            },
        }
    }

    /// A constant integer, cut to the operand's size: what the argument is.
    pub(super) fn cut(&self, value: i64, arch: Arch) -> Value {
        Value::integer(value.cast_unsigned(), self.bytes(arch), self.is_signed())
    }
}

/// The location of a value.
fn words(location: &Location, arch: Arch) -> String {
    match location {
        Location::Register {
            register,
            width,
            shift,
            pair,
        } => {
            let part = RegisterPart {
                register: *register,
                bytes: *width,
                shift: *shift,
            };
            let name = arch.table().part_name(part);
            if *pair {
                format!("in {name} and a register that the note does not name")
            } else {
                format!("in {name}")
            }
        }
        Location::SymbolAddress { symbol, offset } => {
            format!("address {symbol}{}", signed(*offset))
        }
        Location::GotDeref {
            symbol,
            offset,
            reloc,
            ..
        } => {
            let what = if reloc.is_thread_local() {
                "thread-local offset"
            } else {
                "address"
            };
            format!("{what} of {symbol}{}, from its GOT slot", signed(*offset))
        }
        Location::Segment { segment, inner } => {
            format!(
                "in thread-local memory at {segment}:{}",
                address(inner, arch)
            )
        }
        Location::SymbolDeref {
            reloc: Some(reloc), ..
        } if reloc.is_thread_local() => {
            format!("in thread-local memory at {}", address(location, arch))
        }
        location => format!("in memory at {}", address(location, arch)),
    }
}

/// An address as a sum.
fn address(location: &Location, arch: Arch) -> String {
    match location {
        Location::RegisterDeref { register, offset } => {
            format!("{}{}", arch.register_name(*register), signed(*offset))
        }
        Location::Absolute { address } => format!("{address:#x}"),
        Location::Indexed(indexed) => sum(indexed, arch),
        Location::SymbolIndexed {
            symbol, address, ..
        } => format!("{symbol}+{}", sum(address, arch)),
        Location::SymbolDeref {
            symbol,
            offset,
            register,
            reloc,
        } => {
            let base = added_base(*register, reloc.as_ref())
                .map(|register| format!("{}+", arch.register_name(register)));
            format!("{}{symbol}{}", base.unwrap_or_default(), signed(*offset))
        }
        location => words(location, arch),
    }
}

/// The register whose content is added to a symbol's address, if there is one.
fn added_base(register: Option<Register>, reloc: Option<&Relocation>) -> Option<Register> {
    register.filter(|register| reloc.is_none() && *register != Register::PROGRAM_COUNTER)
}

/// `base+index*scale+offset`.
fn sum(indexed: &IndexedAddress, arch: Arch) -> String {
    let index = arch.register_name(indexed.index);
    let index = match indexed.extend {
        Some(Extend::SignWord) => format!("s32({index})"),
        Some(Extend::ZeroWord) => format!("u32({index})"),
        None => index.to_owned(),
    };
    let base = indexed
        .register
        .map(|register| format!("{}+", arch.register_name(register)))
        .unwrap_or_default();
    let scale = match indexed.scale {
        1 => String::new(),
        scale => format!("*{scale}"),
    };
    format!("{base}{index}{scale}{}", signed(indexed.offset))
}

/// An offset with its sign; empty for 0.
fn signed(offset: i64) -> String {
    match offset {
        0 => String::new(),
        offset => format!("{offset:+}"),
    }
}
