//! The addresses that are in a piece of code that a process made.

use std::ops::Range;

/// The addresses that are in the code, out of sorted ones. None are in code whose end is before its start.
pub(crate) fn addresses_in(addresses: &[u64], code: Range<u64>) -> &[u64] {
    let from = addresses.partition_point(|&at| at < code.start);
    let until = addresses.partition_point(|&at| at < code.end);
    addresses.get(from..until).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_not_in_the_code() {
        let addresses = [3, 5, 5, 8, u64::MAX];
        for (code, expected) in [
            (0..3, &addresses[..0]),
            (3..8, &addresses[..3]),
            (4..9, &addresses[1..4]),
            (9..u64::MAX, &[]),
            (Range { start: 9, end: 3 }, &[]),
        ] {
            assert_eq!(addresses_in(&addresses, code.clone()), expected, "{code:?}");
        }
    }
}
