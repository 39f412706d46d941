//! Arguments by index.

use crate::schema::Argument;

/// Maximum number of arguments. SDT notes have at most 12; `$argN` with a larger number is not an argument.
pub(super) const MAX_ARGUMENTS: usize = 64;

/// The index of an argument: 2 for `$arg3`.
pub(super) fn index_of(name: &str) -> Option<usize> {
    let number: usize = name.strip_prefix("$arg")?.parse().ok()?;
    (1..=MAX_ARGUMENTS).contains(&number).then(|| number - 1)
}

/// Extends the arguments up to this index with unnamed ones.
pub(super) fn grow(arguments: &mut Vec<Argument>, index: usize) {
    for next in arguments.len()..=index {
        arguments.push(Argument::unnamed(next));
    }
}
