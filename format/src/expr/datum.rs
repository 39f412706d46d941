//! What an expression is worth.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::Value;

/// What an expression is worth.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum<'a> {
    /// A whole number from -2^63 to 2^64-1.
    Integer(i128),
    /// Another number.
    Float(f64),
    /// A text.
    Text(Cow<'a, [u8]>),
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
            Value::Float32(number) => Self::Float((*number).into()),
            Value::Float64(number) => Self::Float(*number),
            Value::String(text) => Self::Text(Cow::Borrowed(&text.bytes)),
            Value::Missing(_) => Self::Missing,
        }
    }

    /// Whether it is true: a number that is not 0, a text that is not empty; `None` where there is no value.
    #[must_use]
    pub fn truth(&self) -> Option<bool> {
        match self {
            Self::Integer(number) => Some(*number != 0),
            Self::Float(number) => Some(*number != 0.0),
            Self::Text(text) => Some(!text.is_empty()),
            Self::Missing => None,
        }
    }

    /// Which of two comes first; `None` of a number and a text, and where one has no value or is no number.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Integer(a), Self::Float(b)) => whole_and_float(*a, *b),
            (Self::Float(a), Self::Integer(b)) => whole_and_float(*b, *a).map(Ordering::reverse),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            _ => None,
        }
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
