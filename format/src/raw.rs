//! The raw part of a sample of the bpf engine (`PERF_SAMPLE_RAW`): the values of a site's arguments, laid out as those of a
//! tracepoint, so that stock perf prints them.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 2 | `common_type`: the tracepoint's id, which is the attr's `config` |
//! | 2 | 1 + 1 | `common_flags`, `common_preempt_count`: 0 |
//! | 4 | 4 | `common_pid`: the thread's id |
//! | 8 | | the fields, each at a multiple of its size |
//! | | | the strings' bytes, each escaped and with its NUL |
//!
//! Words are in the recording machine's byte order. The whole with its `u32` size in front is a multiple of 8 bytes long.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::arch::Arch;
use crate::grammar::parse_operands;
use crate::operand::{Location, Operand};

/// Layout of the arguments in the raw part of a sample.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RawLayout {
    /// `common_type`: 1 to 65535.
    pub id: u16,
    /// Size of the fields, bytes: offset of the first string.
    pub size: u16,
    /// Offset of a `u32` in which bit N is set if memory of the argument with [`RawField::fault`] N could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u16>,
    /// Maximum length of a string without its NUL, bytes; 0 if no strings are captured.
    #[serde(default)]
    pub string_limit: u16,
    /// One for each operand of the site, or for each argument of an argument list.
    pub arguments: Vec<RawArgument>,
    /// Whether the arguments are those of an argument list instead of the note's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub listed: bool,
    /// Offset of the [`ThreadContext`](crate::ThreadContext); `None` if none is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_context: Option<u16>,
    /// Offset of the [`ThreadWaits`](crate::ThreadWaits); `None` if they are not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_waits: Option<u16>,
}

/// An argument in the raw part.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RawArgument {
    /// A constant in the note.
    Constant,
    /// Not captured.
    NotCaptured {
        /// Reason.
        reason: String,
    },
    /// A field.
    Field(RawField),
}

/// A field with an argument's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RawField {
    /// Offset from the start of the raw part, bytes.
    pub offset: u16,
    /// Size in bytes: 1, 2, 4 or 8. Signed integers of 1 and 2 bytes are widened to 4, because perf does not sign-extend them.
    pub size: u8,
    /// Whether it is a signed integer.
    pub signed: bool,
    /// The bit of [`RawLayout::missing`] that is set if the value could not be read. The field then is
    /// [`RawField::NOT_RESIDENT`] if the memory was not resident and not faulted in, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<u8>,
    /// The string at the address in the field, if one is captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<RawString>,
}

/// The fields of a captured string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RawString {
    /// Offset of a `u32`: the offset of the bytes in the raw part, and in the upper half their number including the NUL
    /// (`__data_loc`).
    pub location: u16,
    /// Offset of an `i16`, the [`StringStatus`].
    pub status: u16,
    /// Whether the argument is declared to be a string. Otherwise only bytes that look like a string are one, because any pointer
    /// may lead to empty or unreadable memory.
    #[serde(default)]
    pub known: bool,
    /// Length of the string; `None` if a NUL ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<RawLength>,
}

/// A captured string, with the field that holds its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringField {
    /// The field of the address.
    pub address: RawField,
    /// The fields of the string.
    pub string: RawString,
}

/// Length of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawLength {
    /// A constant number of bytes.
    Fixed(u32),
    /// The value of a field of the raw part.
    Field {
        /// Offset of the field.
        offset: u16,
        /// Size of the field in bytes: 1, 2, 4 or 8.
        size: u8,
        /// Whether it is a signed integer.
        signed: bool,
        /// The field's [`RawField::fault`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<u8>,
    },
}

/// Result of reading a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringStatus {
    /// The whole string was captured.
    Whole,
    /// The string is longer than [`RawLayout::string_limit`], or than a sample can be; its beginning was captured.
    Cut,
    /// The memory could not be read.
    Fault,
    /// The memory was not resident and was not faulted in, because that could block or was not requested.
    NotResident,
    /// The bytes do not look like a string.
    NoString,
    /// Not read, because the argument was not a readable address many times in a row.
    NotRead,
    /// As [`Whole`](Self::Whole), of less than four bytes: in traces of recorders that left open whether such are strings.
    Short,
    /// The length, which is another argument, is negative.
    NegativeLength,
}

impl RawField {
    /// Value of a field whose memory was not resident.
    pub const NOT_RESIDENT: u64 = 1;
}

impl StringStatus {
    /// `EFAULT`.
    const FAULT: i16 = -14;
    /// `EILSEQ`.
    const NO_STRING: i16 = -84;
    /// `EAGAIN`.
    const NOT_READ: i16 = -11;
    /// `EINVAL`.
    const NEGATIVE_LENGTH: i16 = -22;
    /// `ENODATA`.
    const NOT_RESIDENT: i16 = -61;
    /// `ENOMSG`.
    const SHORT: i16 = -42;

    /// Decodes a status: the length before escaping, more than the limit if cut, or a negative errno.
    #[must_use]
    pub const fn from_word(word: i16, limit: u16) -> Self {
        match word {
            Self::NO_STRING => Self::NoString,
            Self::NOT_READ => Self::NotRead,
            Self::NEGATIVE_LENGTH => Self::NegativeLength,
            Self::NOT_RESIDENT => Self::NotResident,
            Self::SHORT => Self::Short,
            ..0 => Self::Fault,
            len if len.cast_unsigned() > limit => Self::Cut,
            _ => Self::Whole,
        }
    }

    /// Encodes the status of a string of `len` bytes.
    #[must_use]
    pub const fn word(self, len: u16, limit: u16) -> i16 {
        match self {
            Self::Whole => len.cast_signed(),
            Self::Cut => limit.saturating_add(1).cast_signed(),
            Self::Fault => Self::FAULT,
            Self::NoString => Self::NO_STRING,
            Self::NotRead => Self::NOT_READ,
            Self::NegativeLength => Self::NEGATIVE_LENGTH,
            Self::NotResident => Self::NOT_RESIDENT,
            Self::Short => Self::SHORT,
        }
    }
}

impl RawLayout {
    /// Offset of the first field.
    pub const FIELDS: u16 = 8;

    /// The operands of a site with this argument string. For an argument list, they are placeholders with the
    /// size and sign of the fields.
    #[must_use]
    pub fn operands(&self, args: &str, arch: Option<Arch>) -> Vec<Operand> {
        if !self.listed {
            return parse_operands(args, arch);
        }
        let operand = |argument: &RawArgument| {
            let field = match argument {
                RawArgument::Field(field) => Some(field),
                _ => None,
            };
            Operand {
                size: field.map(|field| field.size),
                signed: field.map(|field| field.signed),
                float: false,
                location: Location::Absolute { address: 0 },
            }
        };
        self.arguments.iter().map(operand).collect()
    }

    /// The captured strings.
    pub fn strings(&self) -> impl Iterator<Item = RawString> {
        self.string_fields().map(|field| field.string)
    }

    /// The captured strings, each with the field of its address.
    pub fn string_fields(&self) -> impl Iterator<Item = StringField> {
        self.arguments.iter().filter_map(|argument| match argument {
            RawArgument::Field(address) => Some(StringField {
                address: *address,
                string: address.string?,
            }),
            _ => None,
        })
    }
}

/// Whether bytes look like a string: UTF-8 with at least one visible character, whose only control characters are whitespace and
/// escape (terminal colours). `cut` allows an incomplete last character.
#[must_use]
pub fn looks_like_string(bytes: &[u8], cut: bool) -> bool {
    let (text, rest) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) if cut && error.error_len().is_none() => {
            let (valid, _) = bytes.split_at(error.valid_up_to());
            (std::str::from_utf8(valid).unwrap_or_default(), true)
        }
        Err(_) => return false,
    };
    let is_odd = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x1b');
    let is_visible = |c: char| !c.is_whitespace() && !c.is_control();
    !text.chars().any(is_odd) && (text.is_empty() && !rest || text.chars().any(is_visible))
}

/// Appends bytes, escaped as one line of printable UTF-8: a backslash becomes `\\`, other bytes become
/// `\n`, `\t`, `\r` or `\xNN`. [`unescape`] reverses it.
pub fn escape_into(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.iter().all(|&byte| is_plain(byte)) {
        out.extend_from_slice(bytes);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut buffer = [0; 4];
            let encoded = c.encode_utf8(&mut buffer).as_bytes();
            match c {
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\t' => out.extend_from_slice(b"\\t"),
                '\r' => out.extend_from_slice(b"\\r"),
                c if c.is_control() => encoded.iter().for_each(|&byte| push_hex(byte, out)),
                _ => out.extend_from_slice(encoded),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_hex(byte, out));
    }
}

/// Reverses [`escape_into`]. Other backslashes are unchanged.
#[must_use]
pub fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let (byte, len) = match (first, tail) {
            (b'\\', [b'\\', ..]) => (b'\\', 2),
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [b'x', high, low, ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => (*first, 1),
            },
            _ => (*first, 1),
        };
        out.push(byte);
        rest = rest.get(len..).unwrap_or_default();
    }
    Cow::Owned(out)
}

fn is_plain(byte: u8) -> bool {
    (b' '..0x7f).contains(&byte) && byte != b'\\'
}

fn push_hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\x");
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

fn digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_strings_are_one_printable_line_and_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in [
            b"".as_slice(),
            b"/index.html",
            b"C:\\new\\x41",
            b"a\tb\nc\r\x1b[0m\x07\xc2\x85\xff\xc3",
            "größe 数".as_bytes(),
            &all,
        ] {
            let mut text = Vec::new();
            escape_into(bytes, &mut text);
            let shown = std::str::from_utf8(&text).unwrap();
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
            assert_eq!(unescape(&text), bytes, "{shown:?}");
        }
    }

    #[test]
    fn a_string_is_what_people_read() {
        for text in ["", "GET", "SELECT 1;\n\t-- größe", "\x1b[31mred"] {
            assert!(looks_like_string(text.as_bytes(), false), "{text:?}");
        }
        for bytes in [
            b"\x01".as_slice(),
            b"a\x02b",
            b"\xff\xfe",
            b"ab\xc3",
            b"\x7f",
        ] {
            assert!(!looks_like_string(bytes, false), "{bytes:?}");
        }
        assert!(looks_like_string(b"ab\xc3", true), "cut within a character");
        assert!(!looks_like_string(b"ab\xff", true));
        assert!(!looks_like_string(b"\xc3", true));
    }

    #[test]
    fn a_status_comes_back() {
        for status in [
            StringStatus::Whole,
            StringStatus::Cut,
            StringStatus::Fault,
            StringStatus::NotResident,
            StringStatus::NoString,
            StringStatus::NotRead,
            StringStatus::NegativeLength,
            StringStatus::Short,
        ] {
            let word = status.word(16, 16);
            assert_eq!(StringStatus::from_word(word, 16), status);
        }
        assert_eq!(StringStatus::from_word(0, 256), StringStatus::Whole);
        assert_eq!(StringStatus::from_word(-1, 256), StringStatus::Fault);
    }
}
