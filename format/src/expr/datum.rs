//! Values of expressions.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::value::{Missing, StringAt, Value};

/// Value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum<'a> {
    /// An integer from -2^63 to 2^64-1.
    Integer(i128),
    /// A 4-byte floating-point number: an argument of that type, or the result of a cast.
    Float32(f32),
    /// An 8-byte floating-point number.
    Float(f64),
    /// A string.
    String(Cow<'a, [u8]>),
    /// The captured bytes of a string that is longer. What they do not decide has no value.
    Cut(Cow<'a, [u8]>),
    /// A number, and what looks like a string in memory at this address. It is that string where an expression needs one, or compares it with one.
    Guessed(&'a StringAt),
    /// The low bytes of a wider integer, with their number. Only casts to that size or less have a value.
    Lowest(u8, u64),
    /// No value.
    Missing,
}

impl<'a> Datum<'a> {
    /// The value of a decoded argument.
    #[must_use]
    pub fn from_value(value: &'a Value) -> Self {
        match value {
            Value::Unsigned(number) => Self::Integer((*number).into()),
            Value::Signed(number) => Self::Integer((*number).into()),
            Value::Float32(number) => Self::Float32(*number),
            Value::Float64(number) => Self::Float(*number),
            Value::String(string) if string.guessed => Self::Guessed(string),
            Value::String(string) => Self::of_string(string),
            Value::Missing(Missing::Wide(_, low)) => Self::Lowest(8, *low),
            Value::Missing(Missing::Pair(bytes, low)) => Self::Lowest(*bytes, *low),
            Value::Missing(_) => Self::Missing,
        }
    }

    fn of_string(string: &'a StringAt) -> Self {
        let bytes = Cow::Borrowed(&*string.bytes);
        match string.cut {
            true => Self::Cut(bytes),
            false => Self::String(bytes),
        }
    }

    /// The same value as a number, if it is only guessed to be a string.
    pub(super) fn into_number(self) -> Self {
        match self {
            Self::Guessed(string) => Self::Integer(string.address.into()),
            other => other,
        }
    }

    /// The same value as a string, if it may be one.
    pub(super) fn into_string(self) -> Self {
        match self {
            Self::Guessed(string) => Self::of_string(string),
            other => other,
        }
    }

    /// Whether the value is true (a number other than 0, a string that is not empty); `None` without a value.
    #[must_use]
    pub fn truth(&self) -> Option<bool> {
        match self {
            Self::Integer(number) => Some(*number != 0),
            Self::Float32(number) => Some(*number != 0.0),
            Self::Float(number) => Some(*number != 0.0),
            Self::String(string) => Some(!string.is_empty()),
            Self::Cut(start) => (!start.is_empty()).then_some(true),
            Self::Guessed(string) => Some(string.address != 0),
            Self::Lowest(..) | Self::Missing => None,
        }
    }

    /// Compares two values; `None` for a number and a string, without a value, for NaN, and where strings differ after what was captured.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (&Self::Guessed(string), Self::String(_) | Self::Cut(_)) => {
                return Self::of_string(string).compare(other);
            }
            (Self::String(_) | Self::Cut(_), &Self::Guessed(string)) => {
                return self.compare(&Self::of_string(string));
            }
            (Self::String(a), Self::String(b)) => return Some(a.cmp(b)),
            (Self::Cut(start), Self::String(b)) => return cut_and_whole(start, b),
            (Self::String(a), Self::Cut(start)) => {
                return cut_and_whole(start, a).map(Ordering::reverse);
            }
            (Self::Cut(a), Self::Cut(b)) => {
                let decided = !a.starts_with(b) && !b.starts_with(a);
                return decided.then(|| a.cmp(b));
            }
            _ => {}
        }
        match (self.wide().into_number(), other.wide().into_number()) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(&b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b),
            (Self::Integer(a), Self::Float(b)) => whole_and_float(a, b),
            (Self::Float(a), Self::Integer(b)) => whole_and_float(b, a).map(Ordering::reverse),
            _ => None,
        }
    }
}

impl Datum<'_> {
    /// The same value, with 4-byte floats converted to 8 bytes.
    fn wide(&self) -> Self {
        match self {
            Self::Float32(number) => Self::Float((*number).into()),
            other => other.clone(),
        }
    }

    /// Rounds a constant for the comparison with a 4-byte float to 4 bytes, because 4-byte floats are printed with the fewest
    /// digits that identify them. A constant that overflows or becomes 0 in 4 bytes is
    /// unchanged.
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

/// Compares a string of which the start is known with a whole one.
fn cut_and_whole(start: &[u8], whole: &[u8]) -> Option<Ordering> {
    (!whole.starts_with(start)).then(|| start.cmp(whole))
}

/// Compares an integer and a float exactly, even if a float cannot represent the integer.
fn whole_and_float(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // The conversion saturates, far beyond what whole numbers here can be.
    let floor = float.floor();
    let order = whole.cmp(&(floor as i128));
    Some(order.then(if float > floor {
        Ordering::Less
    } else {
        Ordering::Equal
    }))
}
