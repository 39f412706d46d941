//! The symbols of one file, sorted by address.

use std::sync::Arc;

use crate::symbols::candidates::{Candidate, Candidates};
use crate::symbols::demangle::demangle;
use crate::symbols::name_table::NameTable;

/// Maximum number of symbols of one rank at one address that are compared by the lengths of their readable names.
const EQUAL: usize = 64;
/// Maximum number of symbols of one rank at one address that are compared.
const ALIASES: usize = 4096;
/// Maximum number of symbols before an address that are searched for one that contains it.
const NESTED: usize = 64;

/// The code symbols of a file.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    /// Sorted by start, one for each start.
    symbols: Vec<Entry>,
    names: NameTable,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Address of the first byte, as linked.
    start: u64,
    /// Address after the last byte.
    end: u64,
    /// Offset of its name in the table of names.
    name: u32,
}

impl SymbolTable {
    pub(crate) fn new(candidates: Candidates) -> Self {
        let Candidates { mut symbols, names } = candidates;
        symbols.sort_by_key(|symbol| (symbol.start, symbol.rank));
        let same = |a: &Candidate, b: &Candidate| a.start == b.start;
        let best = symbols.chunk_by(same);
        let best: Vec<_> = best
            .filter_map(|symbols| best_of(symbols, &names))
            .collect();
        drop(symbols);
        let nexts = best.iter().skip(1).map(|next| Some(next.start));
        let entries = best.iter().zip(nexts.chain([None])).map(|(symbol, next)| {
            let end = match (symbol.size, next) {
                (0, Some(next)) => next,
                // The last of the file: nothing says where it ends; perf takes it to the page's end.
                (0, None) => (symbol.start | 0xfff).saturating_add(1),
                (size, _) => symbol.start.saturating_add(size),
            };
            Entry {
                start: symbol.start,
                end,
                name: symbol.name,
            }
        });
        Self {
            symbols: entries.collect(),
            names,
        }
    }

    /// The symbol that covers an address: its readable name and the distance from its start, bytes.
    pub(crate) fn find(&self, address: u64) -> Option<(Arc<str>, u64)> {
        let after = self.symbols.partition_point(|entry| entry.start <= address);
        let entry = self.symbols[..after]
            .iter()
            .rev()
            .take(NESTED)
            .find(|entry| address < entry.end)?;
        let name = readable(entry.name, &self.names)?;
        Some((name.into(), address - entry.start))
    }
}

fn readable(name: u32, names: &NameTable) -> Option<String> {
    let name = names.get(name)?;
    Some(demangle(&String::from_utf8_lossy(&name)))
}

/// The best of the symbols at an address, which are sorted by rank: of equal ones, those with the fewest underscores in front; of these the one with
/// the longest readable name; then the first.
fn best_of(symbols: &[Candidate], names: &NameTable) -> Option<Candidate> {
    let (first, others) = symbols.split_first()?;
    let equal = others.iter().take_while(|other| other.rank == first.rank);
    if equal.clone().next().is_none() {
        return Some(*first);
    }
    let underscores = |symbol: &Candidate| {
        let name = names.get(symbol.name)?;
        Some(name.iter().take_while(|byte| **byte == b'_').count())
    };
    let equal = std::iter::once(first).chain(equal).take(ALIASES);
    let equal = equal.filter_map(|symbol| Some((underscores(symbol)?, symbol)));
    let equal: Vec<_> = equal.collect();
    let fewest = equal.iter().map(|(count, _)| *count).min()?;
    let mut equal = equal.iter().filter(|(count, _)| *count == fewest);
    let mut best = equal.next()?.1;
    let mut longest = None;
    for (_, other) in equal.take(EQUAL) {
        let length = |symbol: &Candidate| readable(symbol.name, names).map_or(0, |name| name.len());
        let known = *longest.get_or_insert_with(|| length(best));
        let found = length(other);
        if found > known {
            (best, longest) = (other, Some(found));
        }
    }
    Some(*best)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::symbols::candidates::Rank;

    fn table(symbols: &[(u64, u64, bool, &'static str)]) -> SymbolTable {
        let mut strings = vec![0];
        let symbols = symbols.iter().map(|&(start, size, weak, name)| {
            let at = strings.len() as u32;
            strings.extend_from_slice(name.as_bytes());
            strings.push(0);
            Candidate {
                start,
                size,
                name: at,
                rank: Rank {
                    no_size: size == 0,
                    weak,
                    local: false,
                },
            }
        });
        let symbols = symbols.collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&strings).unwrap();
        SymbolTable::new(Candidates {
            symbols,
            names: NameTable::read(&file, 0, strings.len() as u64).unwrap(),
        })
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
            (1, 9, false, "__a_very_long_name_in_c"),
            (1, 9, false, "_ZN2ns1S2goEv"),
            (1, 9, false, "a_long_name_in_c"),
            (1, 9, false, "b_long_name_in_c"),
        ]);
        assert_eq!(find(&aliases, 1), Some(("a_long_name_in_c".into(), 0)));
    }
}
