//! Which arguments in the raw part are integers, for programs that compute with them.

use usdtrec_format::Value;

use super::Decoder;
use super::operation::Shape;
use super::raw::RawOperation;

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
