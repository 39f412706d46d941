//! What an expression is worth.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::{Missing, Value};

/// What an expression is worth.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum<'a> {
    /// A whole number from -2^63 to 2^64-1.
    Integer(i128),
    /// A number of 4 bytes of which the program made no more: an argument of that type, or what is cast to it.
    Float32(f32),
    /// Another number.
    Float(f64),
    /// A text.
    Text(Cow<'a, [u8]>),
    /// Of a wider number, so many of its lowest bytes. There is a value only for casts to as many or fewer.
    Lowest(u8, u64),
    /// There is no value.
    Missing,
}

impl<'a> Datum<'a> {
    /// What a decoded argument is worth.
    #[must_use]
    pub fn of(value: &'a Value) -> Self {
        match value {
            Value::Unsigned(number) => Self::Integer((*number).into()),
            Value::Signed(number) => Self::Integer((*number).into()),
            Value::Float32(number) => Self::Float32(*number),
            Value::Float64(number) => Self::Float(*number),
            Value::String(text) => Self::Text(Cow::Borrowed(&text.bytes)),
            Value::Missing(Missing::Wide(_, low)) => Self::Lowest(8, *low),
            Value::Missing(Missing::Pair(bytes, low)) => Self::Lowest(*bytes, *low),
            Value::Missing(_) => Self::Missing,
        }
    }

    /// Whether it is true: a number that is not 0, a text that is not empty; `None` where there is no value.
    #[must_use]
    pub fn truth(&self) -> Option<bool> {
        match self {
            Self::Integer(number) => Some(*number != 0),
            Self::Float32(number) => Some(*number != 0.0),
            Self::Float(number) => Some(*number != 0.0),
            Self::Text(text) => Some(!text.is_empty()),
            Self::Lowest(..) | Self::Missing => None,
        }
    }

    /// Which of two comes first; `None` of a number and a text, and where one has no value or is no number.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => return Some(a.cmp(b)),
            (Self::Text(_), _) | (_, Self::Text(_)) => return None,
            _ => {}
        }
        match (self.wide(), other.wide()) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(&b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b),
            (Self::Integer(a), Self::Float(b)) => whole_and_float(a, b),
            (Self::Float(a), Self::Integer(b)) => whole_and_float(b, a).map(Ordering::reverse),
            _ => None,
        }
    }
}

impl Datum<'_> {
    /// The same, with the numbers of 4 bytes as wide as others.
    fn wide(&self) -> Self {
        match self {
            Self::Float32(number) => Self::Float((*number).into()),
            other => other.clone(),
        }
    }

    /// A constant as it is compared with another value: to a number of 4 bytes it is rounded, because of such a one the shortest
    /// digits are shown that give it again. Beyond what 4 bytes hold, and so near to 0 that nothing would be left, it stays as
    /// it is.
    #[must_use]
    pub fn rounded_to(self, other: &Datum<'_>) -> Self {
        if !matches!(other, Datum::Float32(_)) {
            return self;
        }
        let number = match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
            other => return other,
        };
        let rounded = number as f32;
        if rounded.is_infinite() || rounded == 0.0 {
            return self;
        }
        Self::Float32(rounded)
    }
}

/// Compares exactly, also where a float cannot hold the whole number.
fn whole_and_float(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Conversion saturates, far beyond what whole numbers here can be.
    let floor = float.floor();
    let order = whole.cmp(&(floor as i128));
    Some(order.then(if float > floor {
        Ordering::Less
    } else {
        Ordering::Equal
    }))
}
