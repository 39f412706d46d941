//! Comparisons with floating-point numbers, as comparisons of integers.
//!
//! The rank of a floating-point number is its magnitude's bits as an integer, with its sign: numbers are ordered as their ranks are
//! (IEEE 754, section 3.4), consecutive numbers have consecutive ranks, and both zeros have rank 0. NaN has none.

use usdtrec_format::expr::Datum;

use super::{Chain, Condition, Relation, Step, number};
use crate::plan::float_type::FloatType;

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
    pub(super) fn compare(mut self, relation: Relation, constant: &Datum<'_>) -> Condition {
        let Some(floor) = self.kind.floor(constant) else {
            return Condition::Never;
        };
        self.bits.steps.push(Step::Rank(self.kind));
        self.bits.signed = true;
        floor.compare(self.bits, relation)
    }

    /// Compares the number with 0: whether it is equal, or is not. NaN is not.
    pub(super) fn with_zero(mut self, is: bool) -> Condition {
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
    fn compare(&self, value: Chain, relation: Relation) -> Condition {
        let relation = match relation {
            relation if self.is_exact => relation,
            Relation::Less | Relation::LessOrEqual => Relation::LessOrEqual,
            Relation::Greater | Relation::GreaterOrEqual => Relation::Greater,
            Relation::Equal => return Condition::Never,
            Relation::NotEqual => return Condition::any(value),
        };
        number(value, relation, self.number)
    }
}

/// Compares an integer of a hit with a floating-point constant.
pub(super) fn whole(value: Chain, relation: Relation, constant: f64) -> Condition {
    if constant.is_nan() {
        return Condition::Never;
    }
    // The conversion saturates, far beyond what integers of a hit can be.
    let floor = Floor {
        number: constant.floor() as i128,
        is_exact: constant.floor() == constant,
    };
    floor.compare(value, relation)
}
