//! Values: a decoded argument, or the reason why there is none.

use std::fmt;

/// A decoded argument.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// An unsigned integer, cut to the operand's size.
    Unsigned(u64),
    /// A signed integer, sign-extended from the operand's size.
    Signed(i64),
    /// A 4-byte float.
    Float32(f32),
    /// An 8-byte float.
    Float64(f64),
    /// A pointer, and the string that it points to.
    String(StringAt),
    /// There is no value, and why.
    Missing(Missing),
}

/// A string in a traced program's memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringAt {
    /// Where it is.
    pub address: u64,
    /// Its bytes, without the NUL at its end.
    pub bytes: Vec<u8>,
    /// Whether more follow that were not captured.
    pub cut: bool,
    /// Whether nothing says that the number is the address of a text, but that what is there looks like one.
    pub guessed: bool,
}

impl Value {
    /// An integer of `bytes` bytes from the low bits of a register, word or constant: cut, and
    /// sign-extended if it is signed. 0 and more than 8 bytes count as 8.
    #[must_use]
    pub const fn integer(bits: u64, bytes: u8, signed: bool) -> Self {
        let unused = match bytes {
            1..8 => 64 - 8 * bytes as u32,
            _ => 0,
        };
        let top = bits << unused;
        if signed {
            Self::Signed(top.cast_signed() >> unused)
        } else {
            Self::Unsigned(top >> unused)
        }
    }
}

/// Why there is no value. `Display` gives the words without the angle brackets that text output adds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// A register that the engine cannot or did not capture (`xmm0 not captured`).
    Register(&'static str),
    /// Memory at an address that is neither in the captured stack nor captured otherwise.
    Memory(u64),
    /// Stack memory below the stack pointer (the red zone), which a stack dump does not hold.
    RedZone(u64),
    /// Stack memory above the end of the dump: the address and the dump's length in bytes.
    BeyondStack(u64, u32),
    /// There is no text: the pointer to it is null.
    Null,
    /// Memory that could not be read at the hit.
    Fault(u64),
    /// Memory that could not be read at the hit; its address was not kept.
    Unreadable,
    /// Memory that was not resident at the hit and was not brought in, because that might have lasted for ever or was not asked for;
    /// its address, if it was kept.
    NotResident(Option<u64>),
    /// The value needs a second register that the note does not name; given are as many of its lowest bytes, and these.
    Pair(u8, u64),
    /// The value has so many bytes, more than 8; the lowest 8 are given.
    Wide(u8, u64),
    /// The operand cannot be evaluated; the reason.
    Operand(String),
    /// The sample is too short for what its definition says.
    Truncated,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(name) => write!(f, "{name} not captured"),
            Self::Memory(address) => write!(f, "memory {address:#x} not captured"),
            Self::RedZone(address) => write!(f, "red zone {address:#x} not captured"),
            Self::BeyondStack(address, len) => {
                write!(f, "stack {address:#x} beyond the {len} bytes captured")
            }
            Self::Null => f.write_str("null pointer"),
            Self::Fault(address) => write!(f, "fault {address:#x}"),
            Self::NotResident(Some(address)) => write!(f, "not resident {address:#x}"),
            Self::NotResident(None) => f.write_str("not resident"),
            Self::Unreadable => f.write_str("memory not readable"),
            Self::Pair(_, low) => write!(f, "upper half not in the note, lower {low:#x}"),
            Self::Wide(bytes, low) => write!(f, "value of {bytes} bytes, lower 8 {low:#x}"),
            Self::Operand(reason) => f.write_str(reason),
            Self::Truncated => f.write_str("sample cut short"),
        }
    }
}
