//! Operands: where one argument of a site lives.

use crate::{Arch, Register};

/// One argument of a site: its size and sign as written, and where it lives.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// Bytes, as written; `None` where the note gives no size.
    pub size: Option<u8>,
    /// Whether the value is signed; `None` where the note gives no size.
    pub signed: Option<bool>,
    /// Whether the value is a floating-point number (`8f@`).
    pub float: bool,
    /// Where the value is.
    pub location: Location,
}

/// Where a value lives.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Location {
    /// A number in the note (`$-1`, `#5`, `i8192`).
    Constant(Constant),
    /// A constant arithmetic expression (gdb's `$8|$4`), already worked out.
    ConstantExpression(i64),
    /// A register, or `width` bytes of it from bit `shift` on (`%ah`: width 1, shift 8).
    Register {
        /// The full-width register.
        register: Register,
        /// Bytes that the name used stands for (`%ax`: 2); the full width where the name is the full register's.
        width: u8,
        /// First bit: 8 for `%ah` and its kin, else 0.
        shift: u8,
        /// The value needs a second register that the note does not name (8 bytes on a 32-bit machine).
        pair: bool,
    },
    /// Memory at `register + offset`.
    RegisterDeref {
        /// Base register.
        register: Register,
        /// Bytes added to it.
        offset: i64,
    },
    /// Memory at `register + index * scale + offset`.
    Indexed(IndexedAddress),
    /// Memory at a symbol's address plus `offset`; relative to `register` where one is named.
    SymbolDeref {
        /// Symbol name.
        symbol: String,
        /// Bytes added to the symbol's address.
        offset: i64,
        /// `rip`, the GOT base, the page register of `#:lo12:`; `None` for an absolute address.
        register: Option<Register>,
        /// Relocation written on the operand (`GOTOFF`, `lo12`, `lo`).
        reloc: Option<Relocation>,
    },
    /// The address of a symbol itself, plus `offset` (`#.LC0`).
    SymbolAddress {
        /// Symbol name.
        symbol: String,
        /// Bytes added.
        offset: i64,
    },
    /// The content of the symbol's GOT slot, which is the symbol's address (`arr@GOTPCREL(%rip)`).
    GotDeref {
        /// Symbol name.
        symbol: String,
        /// Bytes added.
        offset: i64,
        /// Base register.
        register: Option<Register>,
        /// Relocation as written (`GOTPCREL`, `GOT`).
        reloc: Relocation,
    },
    /// Memory in a segment, i.e. thread-local storage (`%fs:0x10(%rax)`, `%gs:tlsd@ntpoff`).
    Segment {
        /// Segment register's name (`fs`, `gs`).
        segment: &'static str,
        /// The rest of the operand.
        inner: Box<Location>,
    },
    /// Text that could not be parsed, kept with the reason.
    Unparsed {
        /// The operand's text.
        text: String,
        /// Why it could not be parsed.
        reason: String,
    },
}

/// `register + index * scale + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedAddress {
    /// Base register.
    pub register: Option<Register>,
    /// Index register.
    pub index: Register,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Bytes added.
    pub offset: i64,
    /// How a narrower index register is widened (aarch64 `sxtw`).
    pub extend: Option<Extend>,
}

/// Widening of a 32-bit index register (aarch64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extend {
    /// `sxtw`: sign-extend the low 32 bits.
    SignWord,
    /// `uxtw`: zero-extend the low 32 bits.
    ZeroWord,
}

/// A relocation specifier written on an operand, as text without `@`, `%` or colons (`GOTOFF`, `lo12`, `ntpoff`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation(pub String);

/// A constant in a note.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// An integer as written, before it is cut to the operand's size. Above `i64::MAX` it wraps.
    Integer(i64),
    /// A decimal floating-point immediate (`#1.5e+0`, arm).
    Float(f64),
}

/// Parses an argument string. Every argument yields one operand, in order; one that cannot be parsed is
/// [`Location::Unparsed`] and costs its neighbours nothing. `arch` `None` (an unknown machine) leaves
/// all of them unparsed.
#[must_use]
pub fn parse_operands(_args: &str, _arch: Option<Arch>) -> Vec<Operand> {
    todo!()
}
