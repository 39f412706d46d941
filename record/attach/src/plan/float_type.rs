//! Types of floating-point numbers.

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
