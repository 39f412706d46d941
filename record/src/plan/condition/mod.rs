//! A filter of a site: an expression over its arguments, made into comparisons that a program in the kernel can do.
//!
//! A comparison has a value of the hit on one side and a constant on the other. Where the value cannot be read the
//! comparison is not true, whether it is negated or not, as everywhere: `!` is moved inwards to the comparisons.

mod error;
mod list;
mod relation;
mod side;
mod site;

pub use error::ConditionError;
pub(crate) use relation::Relation;
pub(crate) use site::Site;

use super::read::{Chain, Start, Step};

/// Most bytes of a text that is compared with.
pub(crate) const MOST_TEXT: usize = 240;

/// Most bytes of a thread's name (`TASK_COMM_LEN` with its NUL).
pub(crate) const MOST_COMM: usize = 15;

/// When hits of a site count.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// All do.
    Always,
    /// None does.
    Never,
    /// Those for which all of these are true.
    All(Vec<Self>),
    /// Those for which any of these is true.
    Any(Vec<Self>),
    /// Those for which a number compares so.
    Number {
        value: Chain,
        relation: Relation,
        /// As the bits of a number of the value's kind.
        with: u64,
    },
    /// Those for which the text at an address is this one.
    Text { at: Chain, text: Text },
    /// Those of threads with this name.
    Comm(Text),
}

/// How a text must be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    pub(crate) bytes: Vec<u8>,
    /// Whether it may go on behind them.
    pub(crate) is_prefix: bool,
    /// Whether it must be another.
    pub(crate) negated: bool,
}

/// Compares by value, whatever the sizes and signs. What is added last is taken from the constant: it may go beyond 64 bits.
fn number(mut value: Chain, relation: Relation, mut with: i128) -> Condition {
    while let Some(Step::Add(added)) = value.steps.last() {
        with = with.saturating_sub((*added).into());
        value.steps.pop();
    }
    let (least, most) = if value.signed {
        (i128::from(i64::MIN), i128::from(i64::MAX))
    } else {
        (0, i128::from(u64::MAX))
    };
    if with < least {
        return always_if(relation.holds(std::cmp::Ordering::Greater));
    }
    if with > most {
        return always_if(relation.holds(std::cmp::Ordering::Less));
    }
    Condition::Number {
        value,
        relation,
        with: with as u64,
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
