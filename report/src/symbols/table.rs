//! The symbols of one file, sorted by file offset.

use std::path::Path;
use std::sync::Arc;

use object::read::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use object::{SectionFlags, SymbolFlags, elf};
use usdtrec_format::BuildId;

use super::demangle::demangle;

/// How many symbols before an offset are looked at for one that reaches over it.
const NESTED: usize = 64;

/// The code symbols of a file.
#[derive(Debug, Default)]
pub(super) struct SymbolTable {
    /// Sorted by start, one for each start.
    symbols: Vec<Entry>,
    names: Vec<u8>,
    complete: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// File offset of the first byte.
    start: u64,
    /// File offset behind the last byte.
    end: u64,
    /// Place of the name among the table's names.
    name: (u32, u32),
}

/// A symbol before the best of each address is chosen.
#[derive(Clone, Copy, Debug)]
struct Candidate<'data> {
    start: u64,
    size: u64,
    /// Smaller is better: of several symbols at an address, which is shown.
    rank: (bool, bool, bool, usize),
    name: &'data [u8],
}

impl SymbolTable {
    /// Reads `.symtab`, or `.dynsym` where there is none, of an ELF file that has this build-id (any, if `None`).
    /// `None` if the file is another or cannot be read.
    pub(super) fn read(path: &Path, build_id: Option<BuildId>) -> Option<Self> {
        let file = std::fs::File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        // SAFETY: the mapping is private and only read. A file that is cut while it is mapped raises
        // SIGBUS on access; binaries in use are replaced by renaming, not rewritten.
        let data = unsafe { memmap2::Mmap::map(&file) }.ok()?;
        Self::parse(&data, build_id)
    }

    fn parse(data: &[u8], build_id: Option<BuildId>) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        if let Some(expected) = build_id
            && file.build_id().ok()? != Some(expected.as_bytes())
        {
            return None;
        }
        let complete: Vec<_> = candidates(&file, file.symbols());
        let (candidates, complete) = if complete.is_empty() {
            (candidates(&file, file.dynamic_symbols()), false)
        } else {
            (complete, true)
        };
        let mut table = Self::build(candidates);
        table.complete = complete;
        Some(table)
    }

    fn build(mut candidates: Vec<Candidate<'_>>) -> Self {
        candidates.sort_by_key(|candidate| (candidate.start, candidate.rank));
        candidates.dedup_by_key(|candidate| candidate.start);
        let mut table = Self::default();
        for (at, candidate) in candidates.iter().enumerate() {
            let next = candidates.get(at + 1).map(|next| next.start);
            let end = match (candidate.size, next) {
                (0, Some(next)) => next,
                // The last of the file: nothing says where it ends; perf takes it to the page's end.
                (0, None) => (candidate.start | 0xfff) + 1,
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

    /// Whether they are of `.symtab`, not only those of `.dynsym` that other files can use.
    pub(super) const fn is_complete(&self) -> bool {
        self.complete
    }

    /// The symbol that covers a file offset: its readable name and the distance from its start, bytes.
    pub(super) fn find(&self, offset: u64) -> Option<(Arc<str>, u64)> {
        let behind = self.symbols.partition_point(|entry| entry.start <= offset);
        let entry = self.symbols[..behind]
            .iter()
            .rev()
            .take(NESTED)
            .find(|entry| offset < entry.end)?;
        let (from, to) = entry.name;
        let name = self.names.get(from as usize..to as usize)?;
        let name = demangle(&String::from_utf8_lossy(name));
        Some((name.into(), offset - entry.start))
    }
}

/// The symbols of a file that name code.
fn candidates<'data, S: ObjectSymbol<'data>>(
    file: &object::File<'data>,
    symbols: impl Iterator<Item = S>,
) -> Vec<Candidate<'data>> {
    let executable: Vec<bool> = {
        let sections = file.sections().map(|section| match section.flags() {
            SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(elf::SHF_EXECINSTR),
            _ => false,
        });
        // Section 0 is the null section, which `sections` leaves out.
        std::iter::once(false).chain(sections).collect()
    };
    symbols
        .filter(|symbol| {
            let section = symbol.section_index().map_or(0, |index| index.0);
            executable.get(section) == Some(&true)
        })
        .filter_map(|symbol| Candidate::new(file, &symbol))
        .collect()
}

impl<'data> Candidate<'data> {
    /// `None` if the symbol is not one of code, or lies in no segment.
    fn new(file: &object::File<'data>, symbol: &impl ObjectSymbol<'data>) -> Option<Self> {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
            return None;
        };
        let kind = st_info.st_type();
        let name = symbol.name_bytes().ok().filter(|name| !name.is_empty())?;
        if ![elf::STT_FUNC, elf::STT_GNU_IFUNC, elf::STT_NOTYPE].contains(&kind) {
            return None;
        }
        let address = symbol.address();
        let start = file.segments().find_map(|segment| {
            let within = address.checked_sub(segment.address())?;
            (within < segment.size()).then(|| segment.file_range().0 + within)
        })?;
        Some(Self {
            start,
            size: symbol.size(),
            rank: (
                symbol.size() == 0,
                symbol.is_weak(),
                symbol.is_local(),
                name.iter().take_while(|&&byte| byte == b'_').count(),
            ),
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(symbols: &[(u64, u64, bool, &'static str)]) -> SymbolTable {
        SymbolTable::build(
            symbols
                .iter()
                .map(|&(start, size, weak, name)| Candidate {
                    start,
                    size,
                    rank: (size == 0, weak, false, 0),
                    name: name.as_bytes(),
                })
                .collect(),
        )
    }

    fn find(table: &SymbolTable, offset: u64) -> Option<(String, u64)> {
        let (name, within) = table.find(offset)?;
        Some((name.to_string(), within))
    }

    #[test]
    fn the_symbol_that_covers_an_offset_is_found() {
        let table = table(&[
            (0x100, 0x40, true, "weak"),
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
    fn this_very_program_has_symbols() {
        let own = std::env::current_exe().unwrap();
        let table = SymbolTable::read(&own, None).unwrap();
        assert!(!table.symbols.is_empty());
        let other: BuildId = "00ff".parse().unwrap();
        assert!(SymbolTable::read(&own, Some(other)).is_none());
        assert!(SymbolTable::read(Path::new("/dev/null"), None).is_none());
    }
}
