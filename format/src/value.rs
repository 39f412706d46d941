//! Values: decoded arguments, or the reasons why they are missing.

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
    /// The value is missing, for this reason.
    Missing(Missing),
}

/// A string in a traced program's memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringAt {
    /// Its address.
    pub address: u64,
    /// Its bytes, without the NUL at its end.
    pub bytes: Vec<u8>,
    /// Whether the string is longer, and only its beginning was captured.
    pub cut: bool,
    /// Whether the argument is not declared to be a string, and the bytes at its address only look like one.
    pub guessed: bool,
    /// Whether the bytes were not read at the hit: they are those of the file that is mapped there, which the program cannot write.
    pub from_file: bool,
}

impl StringAt {
    /// A whole string whose address is not known.
    #[must_use]
    pub const fn of_bytes(bytes: Vec<u8>) -> Self {
        Self {
            address: 0,
            bytes,
            cut: false,
            guessed: false,
            from_file: false,
        }
    }
}

/// An integer, of `u64` or of `i64`: as [`Value::Unsigned`] and [`Value::Signed`], of which the same number is equal here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerBits {
    /// Its lowest 64 bits, in two's complement.
    pub bits: u64,
    /// Whether it is below 0.
    pub is_negative: bool,
}

impl IntegerBits {
    /// An integer of `bytes` bytes (1, 2, 4 or 8) from the low bits of a word: cut, and sign-extended if it is signed.
    #[must_use]
    #[inline]
    pub const fn new(word: u64, bytes: u8, signed: bool) -> Self {
        let unused = 64 - 8 * bytes as u32;
        let top = word << unused;
        let extended = (top.cast_signed() >> unused).cast_unsigned();
        Self {
            bits: if signed { extended } else { top >> unused },
            is_negative: signed && top.cast_signed() < 0,
        }
    }
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

/// Why a value is missing. `Display` omits the angle brackets that text output adds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// A register that was not captured (`xmm0 not captured`).
    Register(&'static str),
    /// Memory at this address, which was not captured.
    Memory(u64),
    /// Stack memory at this address, below the stack pointer (in the red zone), which a stack dump does not contain.
    RedZone(u64),
    /// Stack memory above the end of the stack dump: the address, and the length of the dump in bytes.
    BeyondStack(u64, u32),
    /// The pointer to the string is null.
    Null,
    /// Memory at this address, which could not be read at the hit.
    Fault(u64),
    /// Memory that could not be read at the hit; its address was not recorded.
    Unreadable,
    /// Memory that was not resident at the hit and was not faulted in, because that could block or was not requested;
    /// its address, if it was recorded.
    NotResident(Option<u64>),
    /// The rest of the value is in a second register that the note does not name: the number of known low bytes, and their value.
    Pair(u8, u64),
    /// The value has more than 8 bytes: their number, and the value of the lowest 8.
    Wide(u8, u64),
    /// The operand cannot be evaluated; the reason.
    Operand(String),
    /// The sample is shorter than its definition.
    Truncated,
    /// There is none: the hit is in no span whose arguments it would have.
    Absent,
    /// It is of the begin of a span, which is not known: the recording began after it, or the hit was lost.
    Begin,
    /// It is of the thread that held a lock, which is not known: its release was said after the next thread had acquired the lock.
    Holder,
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
            Self::Absent => f.write_str("none"),
            Self::Begin => f.write_str("begin not known"),
            Self::Holder => f.write_str("holder not known"),
        }
    }
}
