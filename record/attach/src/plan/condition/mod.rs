//! A filter of a site: an expression over its arguments, made into comparisons that a program in the kernel can do.
//!
//! A comparison has a value of the hit on one side and a constant on the other. Where the value cannot be read the
//! comparison is not true, whether it is negated or not, as everywhere: `!` is moved inwards to the comparisons.
//!
//! Comparisons with constants are compiled from the syntax tree of `expr`, for each site's operands, and programs
//! evaluate them before they reserve space in the ring. Floats are compared as integers (`float.rs`). What a program
//! cannot evaluate, and all filters of perf events, the recorder evaluates (`record/src/recording/pipeline.rs`).
//!
//! An argument list (`-e 'p:n(url=str(*arg1))'`) is compiled in the same way: each expression becomes a chain of loads,
//! sums and casts whose result is a field of the layout. Such a layout is marked `listed`: readers take sizes and signs
//! from its fields, and names and types from the definitions, not from the note. A fault at any step sets the field's
//! fault bit.

pub(crate) mod list;
mod side;
pub(crate) mod site;

use usdtrec_format::expr::{BinaryOperator, ExprError};

use super::read::{Chain, Start, Step};

/// Maximum length of a string in a comparison, bytes.
const MAX_STRING_BYTES: usize = 240;

/// Maximum length of a thread's name, bytes (`TASK_COMM_LEN` includes the NUL).
pub(crate) const MAX_COMM_BYTES: usize = 15;

/// A compiled filter of a site.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// All hits pass.
    Always,
    /// No hit passes.
    Never,
    /// All of these must be true.
    All(Vec<Self>),
    /// At least one of these must be true.
    Any(Vec<Self>),
    /// A comparison of a number of the hit with a constant.
    Number {
        value: Chain,
        relation: Relation,
        /// The constant, as the bits of a number with the value's size and sign.
        with: u64,
    },
    /// A comparison of the string at an address.
    String { at: Chain, string: ComparedString },
    /// A comparison of the thread's name.
    Comm(ComparedString),
}

/// The string to compare with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ComparedString {
    pub bytes: Vec<u8>,
    /// Whether more bytes may follow.
    pub is_prefix: bool,
    /// Whether the string must differ.
    pub negated: bool,
}

/// Compares by value, independent of sizes and signs.
///
/// Final additions are subtracted from the constant instead: as integers are from -2^63 to 2^64-1, a sum may exceed the 64 bits of the program. If it may leave
/// this range, too, it wraps as the program's sums do: an unsigned one above, a signed one below.
///
/// # Errors
/// [`ConditionError::Unsupported`] for additions and subtractions of which some may wrap.
fn number(mut value: Chain, relation: Relation, with: i128) -> Result<Condition, ConditionError> {
    let added = value.split_sum();
    let range = value.range();
    let mut sum = 0_i128;
    let is_exact = added.iter().all(|added| {
        sum += i128::from(*added);
        let least = range.start().saturating_add(sum);
        let most = range.end().saturating_add(sum);
        least >= i64::MIN.into() && most <= u64::MAX.into()
    });
    let wraps_alike = |added: &i64| (*added < 0) == value.signed;
    let with = if is_exact {
        with.saturating_sub(sum)
    } else if added.iter().all(wraps_alike) {
        value.steps.extend(added.into_iter().map(Step::Add));
        with
    } else {
        return Err(beyond("a sum and a difference beyond 64 bits"));
    };
    Ok(compared(value, relation, with))
}

/// The error for what programs cannot evaluate.
fn beyond(what: &str) -> ConditionError {
    ConditionError::Unsupported(what.to_owned())
}

fn compared(value: Chain, relation: Relation, with: i128) -> Condition {
    let (least, most) = if value.signed {
        (i128::from(i64::MIN), i128::from(i64::MAX))
    } else {
        (0, i128::from(u64::MAX))
    };
    let beyond = match with {
        with if with < least => Some(std::cmp::Ordering::Greater),
        with if with > most => Some(std::cmp::Ordering::Less),
        _ => None,
    };
    match beyond.map(|ordering| relation.holds(ordering)) {
        Some(true) => return Condition::any(value),
        Some(false) => return Condition::Never,
        None => {}
    }
    Condition::Number {
        value,
        relation,
        with: with as u64,
    }
}

impl Condition {
    /// True of any value, if there is one.
    fn any(value: Chain) -> Self {
        if !value.may_be_missing() {
            return Self::Always;
        }
        let least = if value.signed { i64::MIN } else { 0 };
        Self::Number {
            value,
            relation: Relation::GreaterOrEqual,
            with: least.cast_unsigned(),
        }
    }
}

fn all_of(conditions: Vec<Condition>) -> Condition {
    if conditions.contains(&Condition::Never) {
        return Condition::Never;
    }
    let mut left: Vec<_> = conditions
        .into_iter()
        .filter(|condition| *condition != Condition::Always)
        .collect();
    match left.len() {
        0 => Condition::Always,
        1 => left.remove(0),
        _ => Condition::All(left),
    }
}

fn any_of(conditions: Vec<Condition>) -> Condition {
    if conditions.contains(&Condition::Always) {
        return Condition::Always;
    }
    let mut left: Vec<_> = conditions
        .into_iter()
        .filter(|condition| *condition != Condition::Never)
        .collect();
    match left.len() {
        0 => Condition::Never,
        1 => left.remove(0),
        _ => Condition::Any(left),
    }
}

fn always_if(is_true: bool) -> Condition {
    if is_true {
        Condition::Always
    } else {
        Condition::Never
    }
}

/// Why an expression cannot be evaluated at a site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// The expression is wrong for the probe; with the offset in it.
    #[error(transparent)]
    Expression(#[from] ExprError),
    /// A program in the kernel cannot evaluate it.
    #[error("{0} cannot be evaluated while recording")]
    Unsupported(String),
    /// A program in the kernel cannot evaluate it at this site, where an argument is a floating-point number.
    #[error("arithmetic with a float cannot be evaluated while recording")]
    FloatArithmetic,
}

impl ConditionError {
    /// The message without an offset.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Expression(error) => error.message.clone(),
            Self::Unsupported(_) | Self::FloatArithmetic => self.to_string(),
        }
    }
}

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
    /// The relation of an operator, if it is one.
    const fn from_operator(operator: BinaryOperator) -> Option<Self> {
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
    const fn negated(self) -> Self {
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
    const fn swapped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// Whether it is true of two that compare so.
    fn holds(self, ordering: std::cmp::Ordering) -> bool {
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
