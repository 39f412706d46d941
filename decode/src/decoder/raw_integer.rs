//! Integers in the raw part that are nothing but their bytes: where they are is the same in all samples of a site, so that they can be read
//! one sample after the other without a value for each.

use usdtrec_format::IntegerBits;

use super::Decoder;
use super::number_source::IntegerShape;
use super::operation::Shape;
use super::raw::{RawOperation, RawWord};

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
