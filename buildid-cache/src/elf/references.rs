//! Where a file's code finds the addresses of variables at run time.

use std::collections::{HashMap, HashSet};

use usdtrec_format::Arch;

use super::error::ElfError;
use super::headers::SECTION_LIMIT;
use super::object_file::ObjectFile;

/// Sections with relocations of the loader.
const RELOCATIONS: [&str; 2] = [".rela.dyn", ".rel.dyn"];

impl ObjectFile {
    /// The places in which the loader writes the addresses of exported variables, because a symbol of another file may hide them: for each of
    /// `variables`, by their link-time addresses, that of one such place. Variables that the code finds without the loader have none.
    ///
    /// # Errors
    /// [`ElfError`].
    pub fn references_to(&self, variables: &HashSet<u64>) -> Result<HashMap<u64, u64>, ElfError> {
        let mut places = HashMap::new();
        let kinds = self.arch().and_then(address_relocations);
        let (Some(kinds), Some(symbols)) = (kinds, self.section(".dynsym")) else {
            return Ok(places);
        };
        if variables.is_empty() || self.is_big_endian() {
            return Ok(places);
        }
        let entries = Entries::for_class(self.is_class64());
        let content = self.content(symbols, SECTION_LIMIT)?;
        let mut named: HashMap<u32, u64> = HashMap::new();
        for (number, symbol) in (0..).zip(content.chunks_exact(entries.symbol)) {
            let address = entries.word(symbol, entries.value);
            if let Some(address) = address.filter(|address| variables.contains(address)) {
                named.insert(number, address);
            }
        }
        let sections = RELOCATIONS.map(|name| (name.starts_with(".rela"), self.section(name)));
        for (has_addend, section) in sections {
            let Some(section) = section.filter(|_| !named.is_empty()) else {
                continue;
            };
            let content = self.content(section, SECTION_LIMIT)?;
            let size = entries.word * if has_addend { 3 } else { 2 };
            for relocation in content.chunks_exact(size) {
                let place = entries.word(relocation, 0);
                let info = entries.word(relocation, entries.word);
                if let (Some(place), Some(info)) = (place, info)
                    && kinds.contains(&entries.kind(info))
                    && let Some(variable) = named.get(&entries.symbol_of(info))
                {
                    places.insert(*variable, place);
                }
            }
        }
        Ok(places)
    }
}

/// The types of relocations that are the address of a symbol (`GLOB_DAT` and that of a pointer).
const fn address_relocations(arch: Arch) -> Option<[u32; 2]> {
    match arch {
        Arch::X86_64 | Arch::I386 => Some([6, 1]),
        Arch::Aarch64 => Some([1025, 257]),
        _ => None,
    }
}

/// The layout of symbols and relocations of a class, little-endian.
struct Entries {
    /// Size of an address.
    word: usize,
    /// Size of a symbol, and where its value is.
    symbol: usize,
    value: usize,
}

impl Entries {
    const fn for_class(class64: bool) -> Self {
        match class64 {
            true => Self {
                word: 8,
                symbol: 24,
                value: 8,
            },
            false => Self {
                word: 4,
                symbol: 16,
                value: 4,
            },
        }
    }

    fn word(&self, entry: &[u8], at: usize) -> Option<u64> {
        let bytes = entry.get(at..at + self.word)?;
        let bytes = bytes.iter().rev();
        Some(bytes.fold(0, |word, byte| word << 8 | u64::from(*byte)))
    }

    const fn kind(&self, info: u64) -> u32 {
        match self.word {
            8 => info as u32,
            _ => info as u32 & 0xff,
        }
    }

    const fn symbol_of(&self, info: u64) -> u32 {
        match self.word {
            8 => (info >> 32) as u32,
            _ => info as u32 >> 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// What the linker makes of an exported variable, of a hidden one, and of none.
    #[test]
    fn exported_variables_have_places_and_hidden_ones_have_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let code = "short exported, set = 1; __attribute__((visibility(\"hidden\"))) short hidden;\n\
                    short *pointer = &set; int sum(void) { return exported + hidden; }\n";
        fs::write(path("a.c"), code).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
        let built = compiler.arg(path("a.so")).arg(path("a.c")).status();
        if !built.is_ok_and(|status| status.success()) {
            // Without a compiler, end-to-end tests have such a library.
            return;
        }
        let file = ObjectFile::open(&path("a.so")).unwrap();
        let symbols = file.section(".dynsym").unwrap();
        let content = file.content(symbols, SECTION_LIMIT).unwrap();
        let entries = Entries::for_class(file.is_class64());
        let symbols = content.chunks_exact(entries.symbol);
        let variables: HashSet<u64> = symbols
            .filter_map(|symbol| entries.word(symbol, entries.value))
            .filter(|address| *address != 0)
            .collect();
        let places = file.references_to(&variables).unwrap();
        // `exported`, and `set` by the pointer.
        assert_eq!(places.len(), 2, "{places:x?}");
        assert_eq!(file.references_to(&HashSet::new()).unwrap(), HashMap::new());
        let other: HashSet<u64> = variables.iter().map(|address| address + 1).collect();
        assert_eq!(file.references_to(&other).unwrap(), HashMap::new());
    }
}
