//! The sides of comparisons.

use usdtrec_format::expr::{Datum, Expr, ExprError};
use usdtrec_format::{Constant, Location, Operand, Value};

use super::super::read::FloatType;
use super::{
    Chain, ComparedString, Condition, ConditionError, MAX_COMM_BYTES, MAX_STRING_BYTES, Relation,
    Step, all_of, always_if, any_of, beyond, number,
};

/// One side of a comparison.
pub(super) enum Side {
    Constant(Datum<'static>),
    Value(Chain),
    Float(Float),
    /// A string at an address.
    String(Chain, StringEnd),
    Comm,
    /// A value that cannot be read at this site.
    Missing,
}

/// Where a string ends.
pub(super) enum StringEnd {
    /// At its NUL.
    Nul,
    /// After so many bytes, of which one may be a NUL.
    Length(Chain),
    /// At its NUL, or before, after so many bytes.
    Most(u64),
}

impl Side {
    /// Rounds a literal for the comparison with a 4-byte float, as [`Datum::rounded_to`] does.
    pub(super) fn rounded_to(self, other: &Self) -> Self {
        let single = Datum::Float32(0.0);
        match (self, other) {
            (Self::Constant(literal), Self::Constant(other)) => {
                Self::Constant(literal.rounded_to(other))
            }
            (Self::Constant(literal), Self::Float(other)) if other.kind == FloatType::Single => {
                Self::Constant(literal.rounded_to(&single))
            }
            (side, _) => side,
        }
    }
}

/// Compares a side that is not a constant with a constant.
pub(super) fn against(
    side: Side,
    constant: Datum<'_>,
    relation: Relation,
) -> Result<Condition, ConditionError> {
    match (side, constant) {
        (Side::Value(value), Datum::Integer(with)) => number(value, relation, with),
        (Side::Value(value), Datum::Float32(with)) => whole(value, relation, with.into()),
        (Side::Value(value), Datum::Float(with)) => whole(value, relation, with),
        (Side::Float(float), with) => float.compare(relation, &with),
        (side @ (Side::String(..) | Side::Comm), Datum::String(bytes)) => {
            let negated = match relation {
                Relation::Equal => false,
                Relation::NotEqual => true,
                _ => return Err(beyond("the order of strings")),
            };
            let bytes = bytes.into_owned();
            string_is(
                side,
                ComparedString {
                    bytes,
                    is_prefix: false,
                    negated,
                },
            )
        }
        // A comparison of a number with a string has no value.
        _ => Ok(Condition::Never),
    }
}

pub(super) fn string_is(side: Side, string: ComparedString) -> Result<Condition, ConditionError> {
    if string.bytes.len() > MAX_STRING_BYTES {
        return Err(beyond("so long a string"));
    }
    if string.bytes.contains(&0) {
        return Ok(always_if(string.negated));
    }
    match side {
        // Names of threads are not longer.
        Side::Comm if string.bytes.len() > MAX_COMM_BYTES => Ok(always_if(string.negated)),
        Side::Comm => Ok(Condition::Comm(string)),
        Side::String(at, StringEnd::Nul) => Ok(Condition::String { at, string }),
        Side::String(at, StringEnd::Most(most)) => Ok(begins_with(at, most, string)),
        // A string with a length may have no NUL.
        Side::String(at, StringEnd::Length(length)) => {
            let len = string.bytes.len() as i128;
            let (relation, otherwise) = match string.is_prefix {
                true => (Relation::GreaterOrEqual, Relation::Less),
                false => (Relation::Equal, Relation::NotEqual),
            };
            let negated = string.negated;
            let string = ComparedString {
                is_prefix: true,
                ..string
            };
            let mut is_empty = Condition::Never;
            if len == 0 && !negated {
                // Zero bytes can be at any address.
                is_empty = number(length.clone(), Relation::Equal, 0)?;
            }
            let same = Condition::String { at, string };
            Ok(if negated {
                any_of(vec![number(length, otherwise, len)?, same])
            } else {
                let equal = all_of(vec![number(length, relation, len)?, same]);
                any_of(vec![is_empty, equal])
            })
        }
        _ => Ok(Condition::Never),
    }
}

/// Compares the first bytes of the string at an address, of which there are `most` at most.
fn begins_with(at: Chain, most: u64, string: ComparedString) -> Condition {
    let ComparedString {
        bytes,
        is_prefix,
        negated,
    } = string;
    let len = bytes.len() as u64;
    if len <= most {
        let is_prefix = is_prefix || len == most;
        let string = ComparedString {
            bytes,
            is_prefix,
            negated,
        };
        return Condition::String { at, string };
    }
    // They differ, if there is a string.
    match negated {
        true => Condition::String {
            at,
            string: ComparedString {
                bytes: Vec::new(),
                is_prefix: true,
                negated: false,
            },
        },
        false => Condition::Never,
    }
}

/// The value of an expression without names.
pub(super) fn constant(expression: &Expr) -> Option<Datum<'static>> {
    if matches!(expression, Expr::String(_)) || has_names(expression) {
        return None;
    }
    match expression.evaluate(&|_| Datum::Missing) {
        Datum::Integer(number) => Some(Datum::Integer(number)),
        Datum::Float32(number) => Some(Datum::Float32(number)),
        Datum::Float(number) => Some(Datum::Float(number)),
        _ => None,
    }
}

fn has_names(expression: &Expr) -> bool {
    match expression {
        Expr::Name(_) => true,
        Expr::Unary(_, inner) | Expr::Cast(_, inner) | Expr::Load(_, inner) => has_names(inner),
        Expr::Binary(_, left, right) => has_names(left) || has_names(right),
        Expr::Str(..) | Expr::Bytes(..) => true,
        _ => false,
    }
}

/// A constant operand's number.
pub(super) fn number_of(operand: &Operand) -> Option<Datum<'static>> {
    let number = match operand.location {
        Location::Constant(Constant::Integer(number)) | Location::ConstantExpression(number) => {
            number
        }
        Location::Constant(Constant::Float(number)) => {
            return Some(match operand.size {
                Some(4) => Datum::Float32(number as f32),
                _ => Datum::Float(number),
            });
        }
        _ => return None,
    };
    if operand.float {
        return None;
    }
    let size = operand.size.unwrap_or(8);
    let signed = operand.signed.unwrap_or(number < 0);
    match Value::integer(number.cast_unsigned(), size, signed) {
        Value::Unsigned(number) => Some(Datum::Integer(number.into())),
        Value::Signed(number) => Some(Datum::Integer(number.into())),
        _ => None,
    }
}

pub(super) fn error(at: usize, message: String) -> ConditionError {
    ExprError { at, message }.into()
}

/// A floating-point number of a hit: how its bits are read.
#[derive(Debug)]
pub(super) struct Float {
    pub(super) bits: Chain,
    pub(super) kind: FloatType,
}

/// The greatest integer, or rank of a number, that is not above a constant.
struct Floor {
    number: i128,
    /// Whether it is the constant itself.
    is_exact: bool,
}

impl FloatType {
    /// The rank of a constant; `None` for NaN and what is not a number.
    fn floor(self, constant: &Datum<'_>) -> Option<Floor> {
        let double = match *constant {
            Datum::Integer(number) => number as f64,
            Datum::Float32(number) => number.into(),
            Datum::Float(number) => number,
            _ => return None,
        };
        // One of the two numbers that are next to the constant.
        let (near, bits) = match self {
            Self::Single => {
                let single = double as f32;
                (Datum::Float32(single), single.to_bits().into())
            }
            Self::Double => (Datum::Float(double), double.to_bits()),
        };
        let rank = i128::from(bits & self.magnitude());
        let rank = if double.is_sign_negative() {
            -rank
        } else {
            rank
        };
        let order = near.compare(constant)?;
        Some(Floor {
            number: if order.is_gt() { rank - 1 } else { rank },
            is_exact: order.is_eq(),
        })
    }
}

impl Float {
    /// The number in memory at an address.
    pub(super) fn at(mut address: Chain, kind: FloatType) -> Self {
        address.steps.push(Step::Load {
            bytes: kind.bytes(),
            signed: false,
        });
        Self {
            bits: address,
            kind,
        }
    }

    /// Compares the number with a constant.
    pub(super) fn compare(
        mut self,
        relation: Relation,
        constant: &Datum<'_>,
    ) -> Result<Condition, ConditionError> {
        let Some(floor) = self.kind.floor(constant) else {
            return Ok(Condition::Never);
        };
        self.bits.steps.push(Step::Rank(self.kind));
        self.bits.signed = true;
        floor.compare(self.bits, relation)
    }

    /// Compares the number with 0: whether it is equal, or is not. NaN is not.
    pub(super) fn with_zero(mut self, is: bool) -> Result<Condition, ConditionError> {
        self.bits.steps.push(Step::And(self.kind.magnitude()));
        self.bits.signed = false;
        let relation = if is {
            Relation::Equal
        } else {
            Relation::NotEqual
        };
        number(self.bits, relation, 0)
    }
}

impl Floor {
    /// Compares an integer with the constant.
    fn compare(&self, value: Chain, relation: Relation) -> Result<Condition, ConditionError> {
        let relation = match relation {
            relation if self.is_exact => relation,
            Relation::Less | Relation::LessOrEqual => Relation::LessOrEqual,
            Relation::Greater | Relation::GreaterOrEqual => Relation::Greater,
            Relation::Equal => return Ok(Condition::Never),
            Relation::NotEqual => return Ok(Condition::any(value)),
        };
        number(value, relation, self.number)
    }
}

/// Compares an integer of a hit with a floating-point constant.
pub(super) fn whole(
    value: Chain,
    relation: Relation,
    constant: f64,
) -> Result<Condition, ConditionError> {
    if constant.is_nan() {
        return Ok(Condition::Never);
    }
    // The conversion saturates, far beyond what integers of a hit can be.
    let floor = Floor {
        number: constant.floor() as i128,
        is_exact: constant.floor() == constant,
    };
    floor.compare(value, relation)
}
