//! Finding the latest of very many mappings that holds an address.
//!
//! Mappings are put together in groups of 64, 8 of those in a larger one and so on. Of each group it is known which
//! addresses any of its mappings holds, so that those after the one that is searched are skipped by groups:
//!
//! ```text
//!  mappings  |..64..|..64..|..64..|..64..|..64..|..64..|..64..|..64..|..64..|..
//!  groups    |======|======|======|======|======|======|======|======|======|
//!            |=======================================================|
//! ```

use std::ops::Range;

/// Mappings in the smallest groups.
const LEAF: usize = 64;
/// Groups in one of the next size.
const FAN: usize = 8;

/// What the groups of a list of mappings hold.
#[derive(Debug, Default)]
pub(crate) struct Cover {
    /// Groups by size, the smallest first; in each the addresses, in order and without overlap.
    levels: Vec<Vec<Box<[Range<u64>]>>>,
}

impl Cover {
    /// To be called when `ranges`, the addresses of all mappings so far, has grown by one.
    pub(crate) fn grown(&mut self, ranges: &[impl AsRef<Range<u64>>]) {
        let mut size = LEAF;
        for level in 0.. {
            if !ranges.len().is_multiple_of(size) {
                return;
            }
            let parts: Vec<Range<u64>> = match level {
                0 => {
                    let newest = ranges.get(ranges.len() - LEAF..).unwrap_or_default();
                    newest.iter().map(|range| range.as_ref().clone()).collect()
                }
                level => {
                    let smaller = self.levels.get(level - 1).map_or(&[][..], Vec::as_slice);
                    let newest = smaller.get(smaller.len() - FAN..).unwrap_or_default();
                    newest
                        .iter()
                        .flat_map(|group| group.iter().cloned())
                        .collect()
                }
            };
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            if let Some(groups) = self.levels.get_mut(level) {
                groups.push(united(parts));
            }
            size *= FAN;
        }
    }

    /// The latest of the first `known` mappings that holds an address.
    pub(crate) fn latest<R: AsRef<Range<u64>>>(
        &self,
        ranges: &[R],
        known: usize,
        address: u64,
    ) -> Option<usize> {
        let mut end = known;
        while end > 0 {
            let (start, holds) = self.group_before(end, address);
            if holds {
                let group = ranges.get(start..end)?;
                let found = group
                    .iter()
                    .rposition(|range| range.as_ref().contains(&address));
                if let Some(found) = found {
                    return Some(start + found);
                }
            }
            end = start;
        }
        None
    }

    /// The largest group that ends at a place and does not hold an address; else the smallest, which does.
    fn group_before(&self, end: usize, address: u64) -> (usize, bool) {
        if !end.is_multiple_of(LEAF) {
            return (end - end % LEAF, true);
        }
        let sizes = (0..).map(|level| LEAF * FAN.pow(level));
        let groups = self.levels.iter().zip(sizes);
        let groups = groups.take_while(|(_, size)| end.is_multiple_of(*size));
        let free = groups
            .filter_map(|(groups, size)| Some((groups.get(end / size - 1)?, size)))
            .take_while(|(group, _)| !contains(group, address))
            .last();
        match free {
            Some((_, size)) => (end - size, false),
            None => (end - LEAF, true),
        }
    }
}

fn contains(group: &[Range<u64>], address: u64) -> bool {
    let after = group.partition_point(|range| range.start <= address);
    let before = after.checked_sub(1).and_then(|at| group.get(at));
    before.is_some_and(|range| range.contains(&address))
}

/// Ranges in order, those that overlap or touch made one.
fn united(mut ranges: Vec<Range<u64>>) -> Box<[Range<u64>]> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut united: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match united.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => united.push(range),
        }
    }
    united.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Mapped(Range<u64>);

    impl AsRef<Range<u64>> for Mapped {
        fn as_ref(&self) -> &Range<u64> {
            &self.0
        }
    }

    #[test]
    fn it_finds_what_looking_at_each_finds() {
        let mut cover = Cover::default();
        let mut ranges: Vec<Mapped> = Vec::new();
        let mut random = 1_u64;
        let mut next = |most: u64| {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (random >> 33) % most
        };
        for count in 0..3000_usize {
            let start = next(100_000);
            // Long ones and empty ones are rare.
            let len = if next(50) == 0 {
                next(20_000)
            } else {
                next(30)
            };
            ranges.push(Mapped(start..start + len));
            cover.grown(&ranges);
            for _ in 0..3 {
                let known = next(count as u64 + 2) as usize;
                let address = next(100_100);
                let each = ranges[..known]
                    .iter()
                    .rposition(|range| range.0.contains(&address));
                assert_eq!(
                    cover.latest(&ranges, known, address),
                    each,
                    "{known} {address:#x}"
                );
            }
        }
        assert_eq!(cover.levels.len(), 2);
    }
}
