//! Evaluates expressions.

use std::borrow::Cow;

use super::{BinaryOperator, Datum, Expr, ScalarType, Unary};

impl<N> Expr<N> {
    /// Evaluates the expression; `value` returns the value of a name. Memory of the traced program cannot be read: `str` has a value only for
    /// strings that were captured.
    #[must_use]
    pub fn evaluate<'a>(&'a self, value: &impl Fn(&'a N) -> Datum<'a>) -> Datum<'a> {
        match self {
            Self::Integer(number) => Datum::Integer(*number),
            Self::Float(number) => Datum::Float(*number),
            Self::String(string) => Datum::String(Cow::Borrowed(string)),
            Self::Name(name) => value(name),
            Self::Unary(operator, inner) => unary(*operator, &inner.evaluate(value).into_number()),
            Self::Binary(operator @ (BinaryOperator::And | BinaryOperator::Or), left, right) => {
                // If one side decides, the other side need not have a value.
                let decides = *operator == BinaryOperator::Or;
                let left = left.evaluate(value).truth();
                if left == Some(decides) {
                    return truth(decides);
                }
                match right.evaluate(value).truth() {
                    Some(right) if right == decides || left.is_some() => truth(right),
                    _ => Datum::Missing,
                }
            }
            Self::Binary(operator, left, right) => {
                let (mut one, mut other) = (left.evaluate(value), right.evaluate(value));
                if *operator == BinaryOperator::Glob {
                    one = one.into_string();
                } else if !operator.compares() {
                    (one, other) = (one.into_number(), other.into_number());
                }
                if operator.compares() && right.is_number() {
                    other = other.rounded_to(&one);
                } else if operator.compares() && left.is_number() {
                    one = one.rounded_to(&other);
                }
                binary(*operator, &one, &other)
            }
            Self::Cast(word, inner) => cast(*word, inner.evaluate(value).into_number()),
            Self::Str(address, length) => {
                let length = length.as_ref().map(|length| length.evaluate(value));
                string(address.evaluate(value).into_string(), length)
            }
            Self::Load(..) | Self::Bytes(..) => Datum::Missing,
        }
    }
}

fn truth<'a>(is: bool) -> Datum<'a> {
    Datum::Integer(is.into())
}

fn unary<'a>(operator: Unary, datum: &Datum<'_>) -> Datum<'a> {
    match (operator, datum) {
        (Unary::Not, datum) => datum.truth().map_or(Datum::Missing, |is| truth(!is)),
        (Unary::Complement, Datum::Integer(number)) => Datum::Integer(wrap(!number)),
        (Unary::Negate, Datum::Integer(number)) => Datum::Integer(wrap(-number)),
        (Unary::Negate, Datum::Float32(number)) => Datum::Float32(-number),
        (Unary::Negate, Datum::Float(number)) => Datum::Float(-number),
        _ => Datum::Missing,
    }
}

fn binary<'a>(operator: BinaryOperator, left: &Datum<'_>, right: &Datum<'_>) -> Datum<'a> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let ordered = |fits: fn(std::cmp::Ordering) -> bool| {
        let order = left.compare(right);
        order.map_or(Datum::Missing, |order| truth(fits(order)))
    };
    match operator {
        BinaryOperator::Equal => ordered(|order| order == Equal),
        BinaryOperator::NotEqual => ordered(|order| order != Equal),
        BinaryOperator::Less => ordered(|order| order == Less),
        BinaryOperator::LessOrEqual => ordered(|order| order != Greater),
        BinaryOperator::Greater => ordered(|order| order == Greater),
        BinaryOperator::GreaterOrEqual => ordered(|order| order != Less),
        BinaryOperator::Glob => glob(left, right),
        operator => match (left, right) {
            (Datum::Integer(left), Datum::Integer(right)) => {
                let result = whole(operator, *left, *right);
                result.map_or(Datum::Missing, |result| Datum::Integer(wrap(result)))
            }
            (left, right) => match (as_float(left), as_float(right)) {
                (Some(left), Some(right)) => {
                    float(operator, left, right).map_or(Datum::Missing, Datum::Float)
                }
                _ => Datum::Missing,
            },
        },
    }
}

/// Wraps a result to 64 bits if it is outside the range of integers.
fn wrap(number: i128) -> i128 {
    let fits = (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number);
    if fits { number } else { (number as u64).into() }
}

fn whole(operator: BinaryOperator, left: i128, right: i128) -> Option<i128> {
    let shift = || u32::try_from(right).ok().map(|by| by.min(127));
    Some(match operator {
        BinaryOperator::BitOr => left | right,
        BinaryOperator::BitXor => left ^ right,
        BinaryOperator::BitAnd => left & right,
        // A bit beyond the 64th is lost, as it is in 64 bits, and a negative number is one of C's `int64_t`.
        BinaryOperator::ShiftLeft => {
            let shifted = (left as u64).checked_shl(shift()?).unwrap_or(0);
            match left < 0 {
                true => shifted.cast_signed().into(),
                false => shifted.into(),
            }
        }
        BinaryOperator::ShiftRight => left >> shift()?,
        BinaryOperator::Add => left + right,
        BinaryOperator::Subtract => left - right,
        BinaryOperator::Multiply => left.wrapping_mul(right),
        BinaryOperator::Divide => left.checked_div(right)?,
        BinaryOperator::Remainder => left.checked_rem(right)?,
        _ => return None,
    })
}

fn float(operator: BinaryOperator, left: f64, right: f64) -> Option<f64> {
    Some(match operator {
        BinaryOperator::Add => left + right,
        BinaryOperator::Subtract => left - right,
        BinaryOperator::Multiply => left * right,
        BinaryOperator::Divide => left / right,
        BinaryOperator::Remainder => left % right,
        _ => return None,
    })
}

const fn as_float(datum: &Datum<'_>) -> Option<f64> {
    match datum {
        Datum::Integer(number) => Some(*number as f64),
        Datum::Float32(number) => Some(*number as f64),
        Datum::Float(number) => Some(*number),
        _ => None,
    }
}

fn glob<'a>(string: &Datum<'_>, pattern: &Datum<'_>) -> Datum<'a> {
    let is_cut = matches!(string, Datum::Cut(_));
    let (Datum::String(string) | Datum::Cut(string), Datum::String(text)) = (string, pattern)
    else {
        return Datum::Missing;
    };
    let text = std::str::from_utf8(text).ok();
    let glob = text.and_then(|text| Some((text, glob::Pattern::new(text).ok()?)));
    glob.map_or(Datum::Missing, |(text, pattern)| {
        let matches = pattern.matches(&String::from_utf8_lossy(string));
        if is_cut && !(matches && text.ends_with('*')) {
            // What the string begins with may show that the pattern does not match.
            let first = text.split(['*', '?', '[']).next().unwrap_or_default();
            let may_match =
                first.as_bytes().starts_with(string) || string.starts_with(first.as_bytes());
            return if may_match {
                Datum::Missing
            } else {
                truth(false)
            };
        }
        truth(matches)
    })
}

fn cast(word: ScalarType, datum: Datum<'_>) -> Datum<'_> {
    match (word, datum) {
        (ScalarType::Integer { bytes, .. }, Datum::Lowest(known, number)) if bytes <= known => {
            cast(word, Datum::Integer(number.into()))
        }
        (ScalarType::Integer { bytes, signed }, datum) => match whole_of(&datum) {
            Some(number) => {
                let value = crate::value::Value::integer(number as u64, bytes, signed);
                match value {
                    crate::value::Value::Signed(number) => Datum::Integer(number.into()),
                    crate::value::Value::Unsigned(number) => Datum::Integer(number.into()),
                    _ => Datum::Missing,
                }
            }
            None => Datum::Missing,
        },
        (ScalarType::Pointer, Datum::Integer(number)) => Datum::Integer((number as u64).into()),
        (ScalarType::Float32, datum) => {
            as_float(&datum).map_or(Datum::Missing, |number| Datum::Float32(number as f32))
        }
        (ScalarType::Float64, datum) => as_float(&datum).map_or(Datum::Missing, Datum::Float),
        (ScalarType::Pointer, _) => Datum::Missing,
    }
}

/// The whole part of a number.
fn whole_of(datum: &Datum<'_>) -> Option<i128> {
    match datum {
        Datum::Integer(number) => Some(*number),
        Datum::Float32(number) if number.is_finite() => Some(*number as i128),
        Datum::Float(number) if number.is_finite() => Some(*number as i128),
        _ => None,
    }
}

/// A string that was captured, up to a length.
fn string<'a>(string: Datum<'a>, length: Option<Datum<'a>>) -> Datum<'a> {
    let is_cut = matches!(string, Datum::Cut(_));
    let (Datum::String(mut bytes) | Datum::Cut(mut bytes)) = string else {
        return Datum::Missing;
    };
    let length = match length {
        None => usize::MAX,
        Some(Datum::Integer(length)) => usize::try_from(length.max(0)).unwrap_or(usize::MAX),
        Some(_) => return Datum::Missing,
    };
    let is_cut = is_cut && length > bytes.len();
    match &mut bytes {
        Cow::Borrowed(bytes) => *bytes = bytes.get(..length).unwrap_or(bytes),
        Cow::Owned(bytes) => bytes.truncate(length),
    }
    if is_cut {
        Datum::Cut(bytes)
    } else {
        Datum::String(bytes)
    }
}
