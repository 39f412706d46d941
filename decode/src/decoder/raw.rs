//! Values in the raw part of a sample of the bpf engine ([`RawLayout`]).

use usdtrec_format::raw::unescape;
use usdtrec_format::schema::ArgumentType;
use usdtrec_format::trace::StringArgument;
use usdtrec_format::{
    Arch, Location, Missing, Operand, RawArgument, RawField, RawLayout, StringAt, StringStatus,
    Value,
};

use super::compile::{self, Compiled};
use super::constant_address::{StringEvidence, UnreadString};
use super::operation::Shape;

/// The operation of an argument in the raw part.
#[derive(Clone, Debug)]
pub(super) struct RawOperation {
    /// Index of the argument.
    slot: usize,
    field: RawWord,
    shape: Shape,
    /// Whether only the lower half of the value was captured.
    lower_half: bool,
    string: Option<StringFields>,
    /// Whether the argument is of an argument list, whose types come from the schema instead of the note.
    listed: bool,
}

/// The field of an argument in the raw part.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawWord {
    offset: usize,
    /// 1, 2, 4 or 8.
    bytes: u8,
    fault: Option<FaultBit>,
}

/// What says that an argument could not be read.
#[derive(Clone, Copy, Debug)]
struct FaultBit {
    /// Offset of the word with the bits of all arguments.
    word: usize,
    bit: u32,
}

/// Offsets of the fields of a string.
#[derive(Clone, Debug)]
struct StringFields {
    location: usize,
    status: usize,
    limit: u16,
    known: bool,
    /// Whether other hits say that there are strings, so that an empty one is one.
    is_shown: bool,
    /// Whether its length is another argument, or fixed.
    has_length: bool,
}

/// Compiles an argument.
pub(super) fn argument(
    slot: usize,
    operand: &Operand,
    arch: Arch,
    layout: &RawLayout,
) -> Compiled<RawOperation> {
    match layout.arguments.get(slot) {
        Some(RawArgument::Constant) => Compiled::Fixed(match compile::operand(operand, arch, 0) {
            Compiled::Fixed(value) => value,
            Compiled::PerSample(_) => Value::Missing(Missing::Truncated),
        }),
        Some(RawArgument::NotCaptured { reason }) => {
            Compiled::Fixed(Value::Missing(Missing::Operand(reason.clone())))
        }
        Some(RawArgument::Field(field)) => match of_field(slot, operand, arch, *field, layout) {
            Some(operation) => Compiled::PerSample(operation),
            None => {
                let reason = "its field in the trace's definitions is invalid".to_owned();
                Compiled::Fixed(Value::Missing(Missing::Operand(reason)))
            }
        },
        None => Compiled::Fixed(Value::Missing(Missing::Truncated)),
    }
}

/// Compiles a field; `None` if the layout, which comes from a file, is invalid.
fn of_field(
    slot: usize,
    operand: &Operand,
    arch: Arch,
    field: RawField,
    layout: &RawLayout,
) -> Option<RawOperation> {
    let (width, pair) = match operand.location {
        Location::Register { width, pair, .. } => (width, pair),
        _ => (u8::MAX, false),
    };
    let bytes = operand.bytes(arch).min(width).min(field.size);
    if !matches!(bytes, 1 | 2 | 4 | 8) || field.fault.is_some_and(|bit| u32::from(bit) >= u32::BITS)
    {
        return None;
    }
    let shape = match (operand.float, operand.is_signed()) {
        (false, _) if operand.bytes(arch) > 8 => Shape::Wide(operand.bytes(arch)),
        (true, _) if bytes == 4 => Shape::Float32,
        (true, _) => Shape::Float64,
        (false, true) => Shape::Signed(bytes),
        (false, false) => Shape::Unsigned(bytes),
    };
    Some(RawOperation {
        slot,
        field: RawWord {
            offset: field.offset.into(),
            bytes,
            fault: layout.missing.zip(field.fault).map(|(word, bit)| FaultBit {
                word: word.into(),
                bit: bit.into(),
            }),
        },
        shape,
        lower_half: pair || operand.bytes(arch) > arch.pointer_size() && width != u8::MAX,
        string: field.string.map(|string| StringFields {
            location: string.location.into(),
            status: string.status.into(),
            limit: layout.string_limit,
            known: string.known,
            is_shown: false,
            has_length: string.length.is_some(),
        }),
        listed: layout.listed,
    })
}

impl RawOperation {
    /// Index of the argument.
    pub(super) const fn slot(&self) -> usize {
        self.slot
    }

    /// The same for an argument with another index.
    pub(super) fn at(&self, slot: usize) -> Self {
        Self {
            slot,
            ..self.clone()
        }
    }

    /// Whether samples may have its address without the string there. A string with a length may end without a NUL.
    pub(super) fn may_lack_string(&self) -> bool {
        self.string
            .as_ref()
            .is_some_and(|string| !string.has_length)
    }

    /// The string at its address, if it was not read.
    pub(super) fn unread_string(&self, raw: &[u8]) -> Option<UnreadString> {
        let string = self.string.as_ref().filter(|_| self.may_lack_string())?;
        let status = i16::from_le_bytes(word_at(raw, string.status)?);
        if !matches!(
            StringStatus::from_word(status, string.limit),
            StringStatus::Fault | StringStatus::NotResident | StringStatus::NotRead
        ) {
            return None;
        }
        let address = self.bits(raw).ok()?;
        let evidence = if string.known {
            StringEvidence::Declared
        } else if string.is_shown {
            StringEvidence::OtherHits
        } else {
            StringEvidence::Size
        };
        Some(UnreadString {
            argument: self.slot,
            address,
            evidence,
            limit: string.limit,
        })
    }

    /// How its bits are a value.
    pub(super) const fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether only the lower half of the value was captured.
    pub(super) const fn is_half(&self) -> bool {
        self.lower_half
    }

    /// Whether it is declared to be a string, which is read.
    pub(super) fn is_string(&self) -> bool {
        self.string.as_ref().is_some_and(|string| string.known)
    }

    /// Whether samples may have a string for it.
    pub(super) const fn may_be_string(&self) -> bool {
        self.string.is_some()
    }

    /// The field of its bits.
    pub(super) const fn field(&self) -> RawWord {
        self.field
    }

    /// Whether the argument is of an argument list.
    pub(super) const fn is_listed(&self) -> bool {
        self.listed
    }

    /// Takes that other hits, or a filter, say of the argument whether it is a string.
    pub(super) fn learn_string(&mut self, learned: &StringArgument) {
        if let Some(string) = &mut self.string {
            // A zero at one address says nothing of others.
            if learned.address.is_none() {
                string.is_shown = learned.is_string;
            }
        }
    }

    /// Applies the type of a schema.
    pub(super) fn typed(&mut self, kind: &ArgumentType) {
        self.shape = match (self.listed, kind, self.shape) {
            (true, ArgumentType::Float32, Shape::Unsigned(4)) => Shape::Float32,
            (true, ArgumentType::Float64, Shape::Unsigned(8)) => Shape::Float64,
            (_, _, shape) => shape.typed(kind),
        };
        self.string = match kind {
            ArgumentType::String(_) | ArgumentType::Bytes(_) => {
                self.string.take().map(|string| StringFields {
                    known: true,
                    ..string
                })
            }
            _ => None,
        };
    }

    /// Decodes the argument into `value`, reusing the memory of a string.
    #[inline]
    pub(super) fn decode(&self, raw: &[u8], value: &mut Value) {
        match self.bits(raw) {
            Err(missing) => *value = Value::Missing(missing),
            Ok(bits) => match &self.string {
                Some(string) if string.read(raw, bits, value) => {}
                _ => *value = self.shape.value(bits),
            },
        }
    }

    #[inline]
    fn bits(&self, raw: &[u8]) -> Result<u64, Missing> {
        let bits = self.field.read(raw)?;
        if self.lower_half {
            return Err(Missing::Pair(self.field.bytes, bits));
        }
        Ok(bits)
    }
}

impl RawWord {
    /// Its bits in a raw part, or why they are missing.
    #[inline]
    pub(super) fn read(self, raw: &[u8]) -> Result<u64, Missing> {
        let rest = raw.get(self.offset..).unwrap_or_default();
        let bits = match self.bytes {
            1 => rest
                .first_chunk()
                .map(|byte| u8::from_le_bytes(*byte).into()),
            2 => rest
                .first_chunk()
                .map(|word| u16::from_le_bytes(*word).into()),
            4 => rest
                .first_chunk()
                .map(|word| u32::from_le_bytes(*word).into()),
            _ => rest.first_chunk().map(|word| u64::from_le_bytes(*word)),
        };
        let bits = bits.ok_or(Missing::Truncated)?;
        match self.fault {
            Some(fault) if fault.is_set(raw) => Err(match bits {
                RawField::NOT_RESIDENT => Missing::NotResident(None),
                _ => Missing::Unreadable,
            }),
            _ => Ok(bits),
        }
    }
}

impl FaultBit {
    #[inline]
    fn is_set(self, raw: &[u8]) -> bool {
        let word = word_at::<4>(raw, self.word);
        word.is_none_or(|word| u32::from_le_bytes(word) >> self.bit & 1 == 1)
    }
}

impl StringFields {
    /// Whether anything but the bytes says that there is a string.
    const fn is_string(&self) -> bool {
        self.known || self.is_shown
    }

    /// Stores the string in `value`; `false` if there is no string.
    #[inline]
    fn read(&self, raw: &[u8], address: u64, value: &mut Value) -> bool {
        let (Some(status), Some(location)) = (
            word_at::<2>(raw, self.status),
            word_at::<4>(raw, self.location),
        ) else {
            return false;
        };
        let cut = match StringStatus::from_word(i16::from_le_bytes(status), self.limit) {
            StringStatus::Whole | StringStatus::Short => false,
            StringStatus::Cut => true,
            StringStatus::Fault if self.known && address == 0 => {
                *value = Value::Missing(Missing::Null);
                return true;
            }
            StringStatus::Fault if self.known => {
                *value = Value::Missing(Missing::Fault(address));
                return true;
            }
            StringStatus::NotResident if self.known => {
                *value = Value::Missing(Missing::NotResident(Some(address)));
                return true;
            }
            StringStatus::NegativeLength if self.known => {
                *value = Value::Missing(Missing::Operand("its length is negative".to_owned()));
                return true;
            }
            StringStatus::Fault
            | StringStatus::NotResident
            | StringStatus::NegativeLength
            | StringStatus::NoString
            | StringStatus::NotRead => return false,
        };
        let location = u32::from_le_bytes(location);
        let (start, len) = ((location & 0xffff) as usize, (location >> 16) as usize);
        let Some(bytes) = raw.get(start..start + len.saturating_sub(1)) else {
            return false;
        };
        if bytes.is_empty() && !self.is_string() {
            return false;
        }
        let bytes = unescape(bytes);
        if let Value::String(string) = value {
            string.address = address;
            string.cut = cut;
            string.guessed = !self.known;
            string.from_file = false;
            string.bytes.clear();
            string.bytes.extend_from_slice(&bytes);
        } else {
            *value = Value::String(StringAt {
                address,
                bytes: bytes.into_owned(),
                cut,
                guessed: !self.known,
                from_file: false,
            });
        }
        true
    }
}

#[inline]
fn word_at<const N: usize>(raw: &[u8], at: usize) -> Option<[u8; N]> {
    raw.get(at..)?.first_chunk().copied()
}
