//! Which arguments of two recordings are the same, and which can be compared how.

use usdtrec_trace::form::Form;

use crate::diff::quantiles::Ranked;
use crate::diff::recording::ArgumentSide;
use crate::diff::slices::{Counts, SLICES, add, total};
use crate::stats::number::Scalar;

/// Different numbers up to which their shares are compared and not percentiles.
const MAX_LISTED_VALUES: usize = 8;
/// Values of each recording whose shares are compared.
pub(crate) const MAX_SHARES: usize = 8;
/// Numbers from here on, where nothing says what they are, are addresses, stamps or hashes.
const MIN_ADDRESS: f64 = 4_294_967_296.0;
/// The correlation with time from which on numbers of both recordings are counters. By chance, 20 slices of one in a hundred thousand have it.
const DRIFT: f64 = 0.9;

/// Where B has an argument of A's: by its name, else at its place if one of both has no name of its own.
pub(crate) fn counterpart(at: usize, a: &[ArgumentSide], b: &[ArgumentSide]) -> Option<usize> {
    let name = &a.get(at)?.known.name;
    let named = b.iter().position(|other| other.known.name == *name);
    named.or_else(|| {
        let other = &b.get(at)?.known.name;
        let free = !a.iter().any(|one| one.known.name == *other);
        (free && (is_number(name, at) || is_number(other, at))).then_some(at)
    })
}

/// Whether an argument has no name but its number.
pub(crate) fn is_number(name: &str, at: usize) -> bool {
    name.strip_prefix("arg") == Some(&(at + 1).to_string())
}

/// Hits with and without a value.
pub(crate) fn hits(side: &ArgumentSide) -> Counts {
    let mut all = values(side);
    add(&mut all, &side.missing);
    all
}

/// Hits with a value. What is not declared to be a string may be a string in some hits and a number in others.
pub(crate) fn values(side: &ArgumentSide) -> Counts {
    let mut all = side.strings.all;
    if let Some(numbers) = &side.numbers {
        add(&mut all, &numbers.all);
    }
    all
}

/// Whether it is of no use to compare numbers: they are addresses, or may be.
pub(crate) fn is_address(side: &ArgumentSide, numbers: &Ranked) -> bool {
    let known = &side.known;
    let is_undeclared = known.kind.is_none() && known.unit.is_none() && known.labels.is_none();
    let least = numbers
        .numbers
        .iter()
        .map(|number| number.number.approximate());
    let least = least.filter(|number| *number != 0.0).reduce(f64::min);
    side.form.is_address() || is_undeclared && least.is_some_and(|least| least >= MIN_ADDRESS)
}

/// The numbers of both, if they are words or few.
pub(crate) fn few(a: &Ranked, b: &Ranked, form: &Form) -> Option<Vec<Scalar>> {
    if !a.exact || !b.exact {
        return None;
    }
    let is_word = matches!(
        form,
        Form::Enum(_) | Form::Flags(_) | Form::Bool | Form::Char
    );
    let new = b.numbers.iter();
    let new = new.filter(|new| a.counts(new.number) == [0; SLICES]);
    let both = a.numbers.iter().chain(new).map(|known| known.number);
    let mut values: Vec<Scalar> = both.collect();
    if is_word {
        let count = |number| total(&a.counts(number)).saturating_add(total(&b.counts(number)));
        values.sort_by_cached_key(|number| std::cmp::Reverse(count(*number)));
        values.truncate(MAX_SHARES);
    }
    (values.len() <= MAX_LISTED_VALUES).then_some(values)
}

/// Whether numbers of both go the same way all the time.
pub(crate) fn are_counters(a: &Ranked, b: &Ranked) -> bool {
    a.drift() * b.drift() > DRIFT * DRIFT
}
