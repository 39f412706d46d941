//! The symbols of one file, sorted by address.

use std::sync::Arc;

use crate::trace::symbols::demangle::demangle;

/// How many symbols of one rank at one address are compared by the lengths of their readable names.
const EQUAL: usize = 64;
/// How many symbols before an address are looked at for one that reaches over it.
const NESTED: usize = 64;

/// The code symbols of a file.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    /// Sorted by start, one for each start.
    symbols: Vec<Entry>,
    names: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Address of the first byte, as linked.
    start: u64,
    /// Address after the last byte.
    end: u64,
    /// Place of the name among the table's names.
    name: (u32, u32),
}

/// A symbol before the best of each address is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'data> {
    /// Address of the first byte, as linked.
    pub(crate) start: u64,
    /// Bytes; 0 if the file does not say.
    pub(crate) size: u64,
    pub(crate) rank: Rank,
    pub(crate) name: &'data [u8],
}

/// Of several symbols at an address the least is shown, as perf chooses: one with a size, not weak, global, with few
/// underscores in front; then the one with the longest readable name; then the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) no_size: bool,
    pub(crate) weak: bool,
    pub(crate) local: bool,
    pub(crate) underscores: usize,
}

impl SymbolTable {
    pub(crate) fn new(mut candidates: Vec<Candidate<'_>>) -> Self {
        candidates.sort_by_key(|candidate| (candidate.start, candidate.rank));
        let same = |a: &Candidate<'_>, b: &Candidate<'_>| a.start == b.start;
        let best: Vec<_> = candidates.chunk_by(same).filter_map(best).collect();
        let mut table = Self::default();
        for (at, candidate) in best.iter().enumerate() {
            let next = best.get(at + 1).map(|next| next.start);
            let end = match (candidate.size, next) {
                (0, Some(next)) => next,
                // The last of the file: nothing says where it ends; perf takes it to the page's end.
                (0, None) => (candidate.start | 0xfff).saturating_add(1),
                (size, _) => candidate.start.saturating_add(size),
            };
            let from = table.names.len() as u32;
            table.names.extend_from_slice(candidate.name);
            table.symbols.push(Entry {
                start: candidate.start,
                end,
                name: (from, table.names.len() as u32),
            });
        }
        table
    }

    /// The symbol that covers an address: its readable name and the distance from its start, bytes.
    pub(crate) fn find(&self, address: u64) -> Option<(Arc<str>, u64)> {
        let after = self.symbols.partition_point(|entry| entry.start <= address);
        let entry = self.symbols[..after]
            .iter()
            .rev()
            .take(NESTED)
            .find(|entry| address < entry.end)?;
        let (from, to) = entry.name;
        let name = self.names.get(from as usize..to as usize)?;
        let name = demangle(&String::from_utf8_lossy(name));
        Some((name.into(), address - entry.start))
    }
}

/// The best of the symbols at an address, which are sorted by rank.
fn best<'data>(symbols: &[Candidate<'data>]) -> Option<Candidate<'data>> {
    let (first, others) = symbols.split_first()?;
    let length = |symbol: &Candidate<'_>| demangle(&String::from_utf8_lossy(symbol.name)).len();
    let equal = others.iter().take_while(|other| other.rank == first.rank);
    let equal = equal.take(EQUAL);
    let mut best = (first, None);
    for other in equal {
        let longest = *best.1.get_or_insert_with(|| length(first));
        let other_length = length(other);
        if other_length > longest {
            best = (other, Some(other_length));
        }
    }
    Some(*best.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(symbols: &[(u64, u64, bool, &'static str)]) -> SymbolTable {
        let candidates = symbols.iter().map(|&(start, size, weak, name)| Candidate {
            start,
            size,
            rank: Rank {
                no_size: size == 0,
                weak,
                local: false,
                underscores: 0,
            },
            name: name.as_bytes(),
        });
        SymbolTable::new(candidates.collect())
    }

    fn find(table: &SymbolTable, address: u64) -> Option<(String, u64)> {
        let (name, within) = table.find(address)?;
        Some((name.to_string(), within))
    }

    #[test]
    fn the_symbol_that_covers_an_address_is_found() {
        let table = table(&[
            (0x100, 0x40, true, "weaker"),
            (0x100, 0x40, false, "strong"),
            (0x140, 0, false, "label"),
            (0x160, 0x10, false, "f"),
            (0x200, 0x100, false, "outer"),
            (0x210, 0x10, false, "inner"),
        ]);
        assert_eq!(find(&table, 0xff), None);
        assert_eq!(find(&table, 0x13f), Some(("strong".into(), 0x3f)));
        assert_eq!(find(&table, 0x15f), Some(("label".into(), 0x1f)));
        assert_eq!(find(&table, 0x170), None);
        assert_eq!(find(&table, 0x215), Some(("inner".into(), 5)));
        assert_eq!(find(&table, 0x280), Some(("outer".into(), 0x80)));
    }

    #[test]
    fn of_equal_symbols_the_longest_readable_name_is_shown_then_the_first() {
        let aliases = table(&[
            (1, 9, false, "_ZN2ns1S2goEv"),
            (1, 9, false, "a_long_name_in_c"),
            (1, 9, false, "b_long_name_in_c"),
        ]);
        assert_eq!(find(&aliases, 1), Some(("a_long_name_in_c".into(), 0)));
    }
}
