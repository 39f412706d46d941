//! Operands: the location, size and type of an argument at a site.

mod error;
mod explain;
mod json;

pub use error::{OperandError, OperandErrorKind};
pub use json::JsonOperand;

use crate::arch::{Arch, Register};

/// The operand of an argument: size and sign as written in the note, and location.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// Size as written, bytes; `None` if the note has no size.
    pub size: Option<u8>,
    /// Whether the value is signed; `None` if the note has no size.
    pub signed: Option<bool>,
    /// Whether the value is a floating-point number (`8f@`).
    pub float: bool,
    /// Location of the value.
    pub location: Location,
}

/// Location of a value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Location {
    /// A number in the note (`$-1`, `#5`, `i8192`).
    Constant(Constant),
    /// The value of a constant arithmetic expression (gdb's `$8|$4`).
    ConstantExpression(i64),
    /// A register, or `width` bytes of it from bit `shift` on (`%ah`: width 1, shift 8).
    Register {
        /// The full-width register.
        register: Register,
        /// Width of the named part, bytes (`%ax`: 2); the full width for the register's own name.
        width: u8,
        /// First bit of the named part: 8 for `%ah`, `%bh`, `%ch`, `%dh`, else 0.
        shift: u8,
        /// Whether the value is wider than the register, so that a second register, which the note does not name, has the rest
        /// (8 bytes on a 32-bit machine, 16 on a 64-bit one).
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
    /// Memory at a symbol's address plus `offset`. What `register` means depends on the relocation: with one, or where it
    /// is the program counter, it only helps the machine to reach the symbol; without, its content is added.
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
    /// Memory at a symbol's address plus an indexed address (`arr(,%rdi,4)`).
    SymbolIndexed {
        /// Symbol name.
        symbol: String,
        /// Offset that is added to the symbol's address.
        address: IndexedAddress,
        /// Relocation written on the operand.
        reloc: Option<Relocation>,
    },
    /// Memory at a constant address, which has a segment (`%fs:0x28`, `%ds:0x601040`).
    Absolute {
        /// Offset from the segment's base, bytes.
        address: i64,
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
    /// Text that cannot be parsed, and the reason.
    Unparsed {
        /// The operand's text.
        text: String,
        /// Why it cannot be parsed.
        error: OperandError,
    },
}

/// `register + index * scale + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedAddress {
    /// Base register.
    pub register: Option<Register>,
    /// Index register.
    pub index: Register,
    /// Factor of the index: 1, 2, 4, 8, 16 (aarch64), or 0 if the note has 0, which ignores the index.
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

impl Relocation {
    /// Whether it is an offset in thread-local storage (`tpoff`, `ntpoff`, `tprel_lo`, `gottpoff`,
    /// `tlsgd`, …), which cannot be computed from the symbol's address alone.
    #[must_use]
    pub fn is_thread_local(&self) -> bool {
        let name = self.0.to_ascii_lowercase();
        ["tpoff", "tprel", "dtp", "tls"]
            .iter()
            .any(|part| name.contains(part))
    }

    /// Whether it is the symbol's GOT slot, which contains its address (`GOTPCREL`, `got_lo12`).
    #[must_use]
    pub(crate) fn is_got_slot(&self) -> bool {
        let name = self.0.to_ascii_lowercase();
        name.starts_with("got") && name != "gotoff" && !name.starts_with("gotoff_")
    }
}

impl Operand {
    /// Size of the value in bytes: as written, else the width of the register's name, else the pointer size.
    #[must_use]
    pub fn bytes(&self, arch: Arch) -> u8 {
        match (self.size, &self.location) {
            (Some(size), _) => size,
            (None, Location::Register { width, .. }) => *width,
            (None, _) => arch.pointer_size(),
        }
    }

    /// Whether the value is signed; `false` if the note has no size.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.signed.unwrap_or(false)
    }

    /// The full-width registers whose content is needed to evaluate the operand, base first. The helper
    /// registers of a symbol operand (`rip`, a GOT base, a page) are not included, because the symbol's address is sufficient.
    pub fn registers(&self) -> impl Iterator<Item = Register> {
        self.location.registers().into_iter().flatten()
    }
}

impl Location {
    /// The symbol whose address is needed.
    #[must_use]
    pub fn symbol(&self) -> Option<&str> {
        match self {
            Self::SymbolDeref { symbol, .. }
            | Self::SymbolIndexed { symbol, .. }
            | Self::SymbolAddress { symbol, .. }
            | Self::GotDeref { symbol, .. } => Some(symbol),
            Self::Segment { inner, .. } => inner.symbol(),
            _ => None,
        }
    }

    /// The registers needed: base or value, and index.
    fn registers(&self) -> [Option<Register>; 2] {
        match self {
            Self::Register { register, .. } | Self::RegisterDeref { register, .. } => {
                [Some(*register), None]
            }
            Self::Indexed(address) | Self::SymbolIndexed { address, .. } => {
                [address.register, Some(address.index)]
            }
            Self::SymbolDeref {
                register,
                reloc: None,
                ..
            } => [
                register.filter(|register| *register != Register::PROGRAM_COUNTER),
                None,
            ],
            Self::Segment { inner, .. } => inner.registers(),
            _ => [None, None],
        }
    }
}
