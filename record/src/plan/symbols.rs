//! Symbols of an ELF file, as operands name them.

use std::collections::HashMap;

use object::elf::{PT_LOAD, PT_TLS};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{
    FileKind, Object, ObjectKind, ObjectSymbol, ObjectSymbolTable, SymbolKind, SymbolScope,
};

/// The symbols of a file that is not read before one is asked for.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// Addresses by name, and whether other files see them; `None` for a name that several symbols have.
    addresses: HashMap<String, Option<(u64, bool)>>,
    /// Offsets from the thread's base, likewise.
    thread: HashMap<String, Option<i64>>,
    /// Whether the file is linked to a fixed address.
    fixed: bool,
    /// What it maps: first and last address but one.
    mapped: Vec<(u64, u64)>,
    is_program: bool,
}

impl Symbols {
    /// Reads the symbol tables of an ELF file; what cannot be read has none.
    pub(crate) fn of(data: &[u8]) -> Self {
        match FileKind::parse(data) {
            Ok(FileKind::Elf32) => {
                Self::read::<object::elf::FileHeader32<object::Endianness>>(data)
            }
            Ok(FileKind::Elf64) => {
                Self::read::<object::elf::FileHeader64<object::Endianness>>(data)
            }
            _ => None,
        }
        .unwrap_or_default()
    }

    /// Symbols of a program, by name and address.
    #[cfg(test)]
    pub(crate) fn made_up<'a>(symbols: impl Iterator<Item = (&'a str, u64)>) -> Self {
        Self {
            addresses: symbols
                .map(|(name, value)| (name.to_owned(), Some((value, false))))
                .collect(),
            ..Self::default()
        }
    }

    fn read<Elf: FileHeader<Endian = object::Endianness>>(data: &[u8]) -> Option<Self> {
        let file = ElfFile::<Elf>::parse(data).ok()?;
        let endian = file.endian();
        let mut symbols = Self {
            fixed: file.kind() == ObjectKind::Executable,
            is_program: file
                .elf_program_headers()
                .iter()
                .any(|segment| segment.p_type(endian) == object::elf::PT_INTERP)
                || file.kind() == ObjectKind::Executable,
            ..Self::default()
        };
        let mut thread_end = 0;
        for segment in file.elf_program_headers() {
            let address: u64 = segment.p_vaddr(endian).into();
            let size: u64 = segment.p_memsz(endian).into();
            match segment.p_type(endian) {
                PT_LOAD => symbols.mapped.push((address, address.saturating_add(size))),
                PT_TLS => {
                    let align = segment.p_align(endian).into().max(1);
                    thread_end = size.checked_next_multiple_of(align)?;
                }
                _ => {}
            }
        }
        symbols.add(
            file.symbol_table()
                .iter()
                .flat_map(ObjectSymbolTable::symbols),
            thread_end,
        );
        let known = symbols.addresses.len() + symbols.thread.len();
        if known == 0 {
            let table = file.dynamic_symbol_table();
            symbols.add(
                table.iter().flat_map(ObjectSymbolTable::symbols),
                thread_end,
            );
        }
        Some(symbols)
    }

    fn add<'data, S: ObjectSymbol<'data>>(
        &mut self,
        symbols: impl Iterator<Item = S>,
        thread_end: u64,
    ) {
        for symbol in symbols.filter(|symbol| !symbol.is_undefined()) {
            let Ok(name) = symbol.name() else { continue };
            let value = symbol.address();
            match symbol.kind() {
                SymbolKind::Tls => {
                    let offset = value.wrapping_sub(thread_end).cast_signed();
                    put(&mut self.thread, name, offset);
                }
                SymbolKind::Data | SymbolKind::Text | SymbolKind::Unknown | SymbolKind::Label => {
                    let exported = symbol.scope() == SymbolScope::Dynamic;
                    put(&mut self.addresses, name, (value, exported));
                }
                _ => {}
            }
        }
    }

    /// The link-time address of a symbol that the code refers to without its dynamic linker.
    pub(crate) fn value(&self, symbol: &str) -> Result<u64, String> {
        known(&self.addresses, symbol).map(|(value, _)| value)
    }

    /// The link-time address of a symbol whose address the dynamic linker finds out.
    pub(crate) fn bound(&self, symbol: &str) -> Result<u64, String> {
        match known(&self.addresses, symbol)? {
            // Another file's symbol of that name may have come before.
            (_, true) if !self.is_program => Err(format!("address of {symbol} not captured")),
            (value, _) => Ok(value),
        }
    }

    /// The offset of a thread-local symbol from the thread's base (x86: below it).
    pub(crate) fn thread_offset(&self, symbol: &str) -> Result<i64, String> {
        if !self.is_program {
            return Err(format!(
                "place of {symbol} in a thread's storage not known for a library"
            ));
        }
        known(&self.thread, symbol)
    }

    /// Whether the file's addresses are those of the running program.
    pub(crate) const fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Whether an address lies in the file's mappings.
    pub(crate) fn maps(&self, address: u64) -> bool {
        self.mapped
            .iter()
            .any(|(start, end)| (*start..*end).contains(&address))
    }
}

fn known<T: Copy>(table: &HashMap<String, Option<T>>, symbol: &str) -> Result<T, String> {
    match table.get(symbol) {
        Some(Some(value)) => Ok(*value),
        Some(None) => Err(format!("several symbols {symbol} in the file")),
        None => Err(format!("no symbol {symbol} in the file")),
    }
}

fn put<T: Copy + PartialEq>(table: &mut HashMap<String, Option<T>>, name: &str, value: T) {
    table
        .entry(name.to_owned())
        .and_modify(|known| *known = known.filter(|known| *known == value))
        .or_insert(Some(value));
}
