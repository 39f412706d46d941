//! How numbers compare.

use usdtrec_format::expr::BinaryOperator;

/// How a number must compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    /// That of an operator, if it is one.
    pub(super) const fn from_operator(operator: BinaryOperator) -> Option<Self> {
        Some(match operator {
            BinaryOperator::Equal => Self::Equal,
            BinaryOperator::NotEqual => Self::NotEqual,
            BinaryOperator::Less => Self::Less,
            BinaryOperator::LessOrEqual => Self::LessOrEqual,
            BinaryOperator::Greater => Self::Greater,
            BinaryOperator::GreaterOrEqual => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// The opposite relation.
    pub(super) const fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }

    /// The same with its sides exchanged.
    pub(super) const fn swapped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// Whether it is true of two that compare so.
    pub(super) fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}
