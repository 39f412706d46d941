//! Arguments by their place.

use crate::schema::Argument;

/// Most arguments that SDT notes have; a tapset that speaks of more means something else.
pub(super) const MOST_ARGUMENTS: usize = 64;

/// The place of `$arg3`: 2.
pub(super) fn place_of(name: &str) -> Option<usize> {
    let number: usize = name.strip_prefix("$arg")?.parse().ok()?;
    (1..=MOST_ARGUMENTS).contains(&number).then(|| number - 1)
}

/// Arguments up to this place, unnamed where nothing is known.
pub(super) fn grow(arguments: &mut Vec<Argument>, place: usize) {
    for next in arguments.len()..=place {
        arguments.push(Argument::unnamed(next));
    }
}
