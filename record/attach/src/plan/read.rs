//! A value that is read at a hit, from a register or memory, and the operations on it.

use std::ops::RangeInclusive;

use usdtrec_decode::SampleField;
use usdtrec_format::Register;

/// A value to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub source: Source,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Whether it is a signed integer.
    pub signed: bool,
    /// Whether it may be the address of a string.
    pub pointer: bool,
}

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A register, from byte `from` on.
    Register { register: Register, from: u8 },
    /// Memory.
    Memory(Address),
    /// An address itself.
    Address(Address),
    /// A number of the note.
    Number(u64),
    /// The result of an expression.
    Computed(Box<Chain>),
}

impl Read {
    /// Whether memory is read, which may not be there.
    pub(super) fn may_fault(&self) -> bool {
        match &self.source {
            Source::Memory(_) => true,
            Source::Computed(chain) => chain.may_fault(),
            Source::Address(address) => address.thread,
            Source::Register { .. } | Source::Number(_) => false,
        }
    }
}

/// `segment + base + index * scale + offset`, wrapping at the width of the program's addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address {
    /// Whether the thread's storage (`%fs` of a 64-bit program) is the base.
    pub thread: bool,
    pub base: Option<Register>,
    pub index: Option<(Register, u8)>,
    pub offset: i64,
}

/// A value of a hit and what is done with it. The result has 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub start: Start,
    pub steps: Vec<Step>,
    /// Whether the result is signed.
    pub signed: bool,
}

impl Chain {
    /// A value without operations.
    pub(super) fn from_read(read: Read) -> Self {
        Self {
            signed: read.signed,
            start: Start::Argument(read),
            steps: Vec::new(),
        }
    }

    /// Takes off the numbers that are added last, in their order.
    pub(super) fn split_sum(&mut self) -> Vec<i64> {
        let is_added = |step: &Step| matches!(step, Step::Add(_));
        let before = self.steps.iter().rposition(|step| !is_added(step));
        let sum = self.steps.split_off(before.map_or(0, |at| at + 1));
        let number = |step| match step {
            Step::Add(number) => Some(number),
            _ => None,
        };
        sum.into_iter().filter_map(number).collect()
    }

    /// Whether the sign of its 64 bits is that of the result: a difference may be below 0 though its argument is not. What neither a signed nor an unsigned
    /// number can hold has the sign of the argument, as in C.
    pub(super) fn is_signed_sum(&self) -> bool {
        let mut before = self.clone();
        let sum: i128 = before.split_sum().into_iter().map(i128::from).sum();
        let range = before.range();
        let (least, most) = (range.start() + sum, range.end() + sum);
        if least >= 0 && most <= u64::MAX.into() {
            return false;
        }
        let is_within = least >= i64::MIN.into() && most <= i64::MAX.into();
        is_within || self.signed
    }

    /// What the result can be, if it is not a sum.
    pub(super) fn range(&self) -> RangeInclusive<i128> {
        let of = |bytes: u8, signed: bool| {
            let bits = 8 * u32::from(bytes.clamp(1, 8));
            match signed {
                true => -(1_i128 << (bits - 1))..=(1_i128 << (bits - 1)) - 1,
                false => 0..=(1_i128 << bits) - 1,
            }
        };
        match (self.steps.last(), &self.start) {
            (Some(Step::Cut { bytes, signed } | Step::Load { bytes, signed }), _) => {
                of(*bytes, *signed)
            }
            (Some(Step::And(mask)), _) => 0..=(*mask).into(),
            (Some(Step::Add(_) | Step::Rank(_)), _) => of(8, self.signed),
            (None, Start::Argument(read)) => of(read.size, read.signed),
            (None, Start::Field(_)) => of(4, false),
        }
    }

    /// Whether memory is read, which may not be there.
    pub(super) fn may_fault(&self) -> bool {
        let of_argument = matches!(&self.start, Start::Argument(read) if read.may_fault());
        let loads = |step: &Step| matches!(step, Step::Load { .. });
        of_argument || self.steps.iter().any(loads)
    }

    /// Whether a hit may have no value.
    pub(super) fn may_be_missing(&self) -> bool {
        let ranks = |step: &Step| matches!(step, Step::Rank(_));
        self.may_fault() || self.steps.iter().any(ranks)
    }
}

/// The start of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Argument(Read),
    /// A number that is known of each hit.
    Field(SampleField),
}

/// An operation on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Adds.
    Add(i64),
    /// Keeps these bits only.
    And(u64),
    /// Keeps the lowest bytes, as a number.
    Cut { bytes: u8, signed: bool },
    /// Reads memory at the address.
    Load { bytes: u8, signed: bool },
    /// Of the bits of a floating-point number, its rank: an integer that orders as the numbers do. NaN has no value.
    Rank(FloatType),
}

/// The type of a floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatType {
    /// 4 bytes.
    Single,
    /// 8 bytes.
    Double,
}

impl FloatType {
    /// The type of this many bytes: 4 or 8; other numbers are 8.
    pub(super) const fn from_bytes(bytes: u8) -> Self {
        match bytes {
            4 => Self::Single,
            _ => Self::Double,
        }
    }

    /// Number of bytes.
    pub(crate) const fn bytes(self) -> u8 {
        match self {
            Self::Single => 4,
            Self::Double => 8,
        }
    }

    /// The bits without the sign.
    pub(super) const fn magnitude(self) -> u64 {
        u64::MAX >> (65 - 8 * self.bytes() as u32)
    }

    /// The rank of the infinity: that of NaN would be greater.
    pub(crate) const fn infinity(self) -> u64 {
        match self {
            Self::Single => f32::INFINITY.to_bits() as u64,
            Self::Double => f64::INFINITY.to_bits(),
        }
    }
}
