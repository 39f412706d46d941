//! Which arguments in the raw part are integers, for programs that compute with them. Those that are nothing but their bytes are at the same place in
//! all samples of a site, so that they can be read one sample after the other without a value for each.

use usdtrec_format::{IntegerBits, Value};

use super::Decoder;
use super::operation::Shape;
use super::raw::{RawOperation, RawWord};

/// What an argument is in samples with a raw part, with the type of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberSource {
    /// An integer in the argument's field.
    Field(IntegerShape),
    /// The same integer in each sample.
    Constant(i128),
    /// It has no value in any sample.
    Missing,
    /// A floating-point number.
    Float,
    /// A string.
    String,
}

/// An integer in the lowest bytes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerShape {
    /// Number of bytes: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Whether it is signed.
    pub signed: bool,
}

impl Decoder {
    /// What the argument with this index is.
    #[must_use]
    pub fn number_source(&self, index: usize) -> NumberSource {
        let mut raw = self.raw.iter();
        if let Some(operation) = raw.find(|known| known.slot() == index) {
            return operation.number_source();
        }
        match self.fixed.get(index) {
            Some(Value::Unsigned(number)) => NumberSource::Constant((*number).into()),
            Some(Value::Signed(number)) => NumberSource::Constant((*number).into()),
            Some(Value::Float32(_) | Value::Float64(_)) => NumberSource::Float,
            Some(Value::String(_)) => NumberSource::String,
            _ => NumberSource::Missing,
        }
    }
}

impl RawOperation {
    fn number_source(&self) -> NumberSource {
        let integer = |bytes, signed| NumberSource::Field(IntegerShape { bytes, signed });
        match self.shape() {
            _ if self.is_string() => NumberSource::String,
            _ if self.is_half() => NumberSource::Missing,
            Shape::Unsigned(bytes) => integer(bytes, false),
            Shape::Signed(bytes) => integer(bytes, true),
            Shape::Float32 | Shape::Float64 => NumberSource::Float,
            Shape::Wide(_) => NumberSource::Missing,
        }
    }
}

/// Where an integer argument is in the raw part of each sample of a site.
#[derive(Clone, Copy, Debug)]
pub struct RawInteger {
    field: RawWord,
    shape: IntegerShape,
}

impl Decoder {
    /// Where the argument with this index is, if it is an integer whose value depends on nothing else: not on whether there is a string at the
    /// address that it may be.
    #[must_use]
    pub fn raw_integer(&self, index: usize) -> Option<RawInteger> {
        let mut raw = self.raw.iter();
        raw.find(|known| known.slot() == index)?.integer()
    }
}

impl RawOperation {
    fn integer(&self) -> Option<RawInteger> {
        let (bytes, signed) = match self.shape() {
            Shape::Unsigned(bytes) => (bytes, false),
            Shape::Signed(bytes) => (bytes, true),
            _ => return None,
        };
        let is_plain = !self.may_be_string() && !self.is_half();
        is_plain.then_some(RawInteger {
            field: self.field(),
            shape: IntegerShape { bytes, signed },
        })
    }
}

impl RawInteger {
    /// Its value in a sample's raw part; `None` if it is missing there, for which [`Decoder::decode_one`] has the reason.
    #[must_use]
    #[inline]
    pub fn read(self, raw: &[u8]) -> Option<IntegerBits> {
        let bits = self.field.read(raw).ok()?;
        let IntegerShape { bytes, signed } = self.shape;
        Some(IntegerBits::new(bits, bytes, signed))
    }
}
