//! Symbols of an ELF file, as operands name them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use object::elf::{DF_1_PIE, DT_FLAGS_1, DT_PLTGOT, DT_SONAME, ET_EXEC, PT_LOAD, PT_TLS};
use object::read::elf::{Dyn, ElfFile, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ObjectSymbolTable, SymbolKind, SymbolScope};
use thiserror::Error;
use usdtrec_buildid_cache::elf::{Excerpt, ObjectFile};
use usdtrec_format::{Operand, OperandError};

/// Maximum total size of the symbol and string tables that are read of a file that the user named, bytes. Chromium with all symbols has 100 MB.
const SYMBOL_BYTES: u64 = 256 << 20;
/// The same of a file that nobody named.
const FOUND_SYMBOL_BYTES: u64 = 32 << 20;
/// Ratio of the maximum number of bytes of names that are compared to that. Names may end with others, so that each byte is one of several.
const NAME_RATIO: u64 = 8;

/// The symbols of a file that operands name.
#[derive(Clone, Debug, Default)]
pub struct NeededSymbols {
    names: HashSet<String>,
    /// Whether nobody named the file.
    is_found: bool,
    /// What was read for the names.
    read: Option<Arc<Symbols>>,
}

impl NeededSymbols {
    /// Adds what operands name.
    pub fn add<'o>(&mut self, operands: impl IntoIterator<Item = &'o Operand>) {
        let operands = operands.into_iter();
        for symbol in operands.filter_map(|operand| operand.location.symbol()) {
            if !self.names.contains(symbol) {
                self.names.insert(symbol.to_owned());
                self.read = None;
            }
        }
    }

    /// Notes that nobody named the file: large tables are not read.
    pub const fn set_found(&mut self) {
        self.is_found = true;
    }

    /// Whether nobody named the file.
    pub const fn is_found(&self) -> bool {
        self.is_found
    }

    /// The symbols in a file, which is read if names were added since.
    pub fn of_file(&mut self, file: &ObjectFile) -> Arc<Symbols> {
        let read = || Arc::new(Symbols::from_file(file, &self.names, self.is_found));
        Arc::clone(self.read.get_or_insert_with(read))
    }

    /// Frees what was read.
    pub fn free(&mut self) {
        self.read = None;
    }

    /// The same names, of which nothing is read.
    #[must_use]
    pub fn unread(&self) -> Self {
        Self {
            read: None,
            ..self.clone()
        }
    }
}

/// Symbols of a file, by the names that were asked for.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Addresses by name, and whether other files see them; `None` for a name that several symbols have.
    addresses: HashMap<String, Option<(u64, bool)>>,
    /// Offsets from the thread's base, likewise.
    thread: HashMap<String, Option<i64>>,
    /// Why the tables were not read.
    unread: Option<String>,
    /// Whether the file is linked to a fixed address.
    fixed: bool,
    /// Its address range: first address and the one after the last.
    mapped: Vec<(u64, u64)>,
    is_program: bool,
    /// Link-time address that `@GOTOFF` counts from (`_GLOBAL_OFFSET_TABLE_`).
    got: Option<u64>,
    /// Size of the thread-local storage of the file, bytes.
    thread_end: u64,
}

/// The symbol at the address that `@GOTOFF` counts from.
const GOT: &str = "_GLOBAL_OFFSET_TABLE_";

impl Symbols {
    /// Reads the symbols of these names in an ELF file. The tables are read only if there are names.
    fn from_file(file: &ObjectFile, names: &HashSet<String>, is_found: bool) -> Self {
        if file.is_class64() {
            Self::read::<object::elf::FileHeader64<Endianness>>(file, names, is_found)
        } else {
            Self::read::<object::elf::FileHeader32<Endianness>>(file, names, is_found)
        }
    }

    /// Symbols of a program, by name and address.
    #[cfg(test)]
    pub fn made_up<'a>(symbols: impl Iterator<Item = (&'a str, u64)>) -> Self {
        Self {
            addresses: symbols
                .map(|(name, value)| (name.to_owned(), Some((value, false))))
                .collect(),
            ..Self::default()
        }
    }

    fn read<Elf: FileHeader<Endian = Endianness>>(
        file: &ObjectFile,
        names: &HashSet<String>,
        is_found: bool,
    ) -> Self {
        let headers = file.header_tables().ok();
        let mut symbols = headers
            .and_then(|tables| Self::from_headers::<Elf>(&tables))
            .unwrap_or_default();
        if !names.is_empty() {
            let limit = if is_found {
                FOUND_SYMBOL_BYTES
            } else {
                SYMBOL_BYTES
            };
            let mut wanted = WantedNames::new(names, limit.saturating_mul(NAME_RATIO));
            let tables = file.symbol_tables(limit, wanted.longest);
            let added = tables
                .map_err(|error| error.to_string())
                .and_then(|tables| {
                    let parsed = ElfFile::<Elf, &Excerpt>::parse(&tables);
                    let file = parsed.map_err(|error| error.to_string())?;
                    let added = symbols.add_tables(&file, &mut wanted);
                    added.map_err(|error| error.to_string())
                });
            if let Err(why) = added {
                // Others may have the names of those that were read.
                symbols.addresses.clear();
                symbols.thread.clear();
                symbols.unread = Some(why);
            }
        }
        symbols
    }

    /// What the headers say, without symbols.
    fn from_headers<Elf: FileHeader<Endian = Endianness>>(tables: &Excerpt) -> Option<Self> {
        let header = Elf::parse(tables).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, tables).ok()?;
        let dynamic = Dynamic::from_segments::<Elf>(segments, endian, tables);
        let fixed = header.e_type(endian) == ET_EXEC;
        let mut symbols = Self {
            fixed,
            is_program: fixed || dynamic.is_program::<Elf>(segments, endian),
            got: dynamic.got,
            ..Self::default()
        };
        for segment in segments {
            let address: u64 = segment.p_vaddr(endian).into();
            let size: u64 = segment.p_memsz(endian).into();
            match segment.p_type(endian) {
                PT_LOAD => symbols.mapped.push((address, address.saturating_add(size))),
                PT_TLS => {
                    let align = segment.p_align(endian).into().max(1);
                    symbols.thread_end = size.checked_next_multiple_of(align)?;
                }
                _ => {}
            }
        }
        Some(symbols)
    }

    /// Adds the symbols of these names: those of the dynamic table where the other one has none.
    fn add_tables<'t, Elf: FileHeader<Endian = Endianness>>(
        &mut self,
        file: &ElfFile<'t, Elf, &'t Excerpt>,
        wanted: &mut WantedNames<'_>,
    ) -> Result<(), LongNames> {
        let table = file.symbol_table();
        let symbols = table.iter().flat_map(ObjectSymbolTable::symbols);
        if !self.add(symbols, wanted)? {
            let table = file.dynamic_symbol_table();
            self.add(table.iter().flat_map(ObjectSymbolTable::symbols), wanted)?;
        }
        if let Some(Some((got, _))) = self.addresses.get(GOT) {
            self.got = Some(*got);
        }
        Ok(())
    }

    /// Returns whether there are any symbols, of these names or others that are not longer.
    fn add<'data, S: ObjectSymbol<'data>>(
        &mut self,
        symbols: impl Iterator<Item = S>,
        wanted: &mut WantedNames<'_>,
    ) -> Result<bool, LongNames> {
        let mut has_any = false;
        for symbol in symbols.filter(|symbol| !symbol.is_undefined()) {
            let name = symbol.name();
            wanted.count(name.map_or(wanted.longest, str::len))?;
            let Ok(name) = name else { continue };
            let is_needed = wanted.names.contains(name);
            let value = symbol.address();
            match symbol.kind() {
                SymbolKind::Tls => {
                    has_any = true;
                    let offset = value.wrapping_sub(self.thread_end).cast_signed();
                    if is_needed {
                        put(&mut self.thread, name, offset);
                    }
                }
                SymbolKind::Data | SymbolKind::Text | SymbolKind::Unknown | SymbolKind::Label => {
                    has_any = true;
                    let exported = symbol.scope() == SymbolScope::Dynamic;
                    if is_needed || name == GOT {
                        put(&mut self.addresses, name, (value, exported));
                    }
                }
                _ => {}
            }
        }
        Ok(has_any)
    }

    /// The link-time address of a symbol that the code refers to without its dynamic linker.
    pub fn value(&self, symbol: &str) -> Result<u64, NotCaptured> {
        self.known(&self.addresses, symbol).map(|(value, _)| value)
    }

    /// The link-time address of a symbol whose address the dynamic linker finds out.
    pub fn bound(&self, symbol: &str) -> Result<u64, NotCaptured> {
        match self.known(&self.addresses, symbol)? {
            // A symbol of this name in another file may take precedence.
            (_, true) if !self.is_program => Err(NotCaptured::BoundSymbol(symbol.to_owned())),
            (value, _) => Ok(value),
        }
    }

    /// The offset of a thread-local symbol from the thread's base (x86: below it).
    pub fn thread_offset(&self, symbol: &str) -> Result<i64, NotCaptured> {
        if !self.is_program {
            return Err(NotCaptured::ThreadOffset(symbol.to_owned()));
        }
        self.known(&self.thread, symbol)
    }

    fn known<T: Copy>(
        &self,
        table: &HashMap<String, Option<T>>,
        symbol: &str,
    ) -> Result<T, NotCaptured> {
        match (table.get(symbol), &self.unread) {
            (Some(Some(value)), _) => Ok(*value),
            (Some(None), _) => Err(NotCaptured::SeveralSymbols(symbol.to_owned())),
            (None, None) => Err(NotCaptured::NoSymbol(symbol.to_owned())),
            (None, Some(why)) => Err(NotCaptured::UnreadSymbols {
                symbol: symbol.to_owned(),
                why: why.clone(),
            }),
        }
    }

    /// The link-time address that `@GOTOFF` is relative to, if known.
    pub const fn got(&self) -> Option<u64> {
        self.got
    }

    /// Whether the file's addresses are those of the running program.
    pub const fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Whether an address is in the file's mappings.
    pub fn maps(&self, address: u64) -> bool {
        self.mapped
            .iter()
            .any(|(start, end)| (*start..*end).contains(&address))
    }
}

/// The names with which those of symbols are compared.
struct WantedNames<'a> {
    names: &'a HashSet<String>,
    /// Length of the longest one, bytes.
    longest: usize,
    /// Number of bytes that may be compared yet, and at first.
    room: u64,
    most: u64,
}

impl<'a> WantedNames<'a> {
    fn new(names: &'a HashSet<String>, most: u64) -> Self {
        let longest = names.iter().map(String::len).chain([GOT.len()]).max();
        Self {
            names,
            longest: longest.unwrap_or(0),
            room: most,
            most,
        }
    }

    /// Counts a name.
    fn count(&mut self, bytes: usize) -> Result<(), LongNames> {
        let left = self.room.checked_sub(bytes as u64);
        self.room = left.ok_or(LongNames { most: self.most })?;
        Ok(())
    }
}

/// The names of the symbols are not read to the end.
#[derive(Clone, Copy, Debug, Error)]
#[error("the names of the file's symbols have more than {most} bytes, each symbol's counted")]
struct LongNames {
    most: u64,
}

/// Entries of the dynamic section.
#[derive(Debug, Default)]
struct Dynamic {
    /// `DF_1_PIE`.
    is_pie: bool,
    has_soname: bool,
    /// `DT_PLTGOT`.
    got: Option<u64>,
}

impl Dynamic {
    fn from_segments<Elf: FileHeader<Endian = Endianness>>(
        segments: &[Elf::ProgramHeader],
        endian: Endianness,
        tables: &Excerpt,
    ) -> Self {
        let mut segments = segments.iter();
        let table = segments.find_map(|segment| segment.dynamic(endian, tables).ok()?);
        let mut dynamic = Self::default();
        for entry in table.unwrap_or_default() {
            let value: u64 = entry.d_val(endian).into();
            match entry.d_tag(endian) {
                DT_FLAGS_1 => dynamic.is_pie = value & DF_1_PIE.0 != 0,
                DT_SONAME => dynamic.has_soname = true,
                DT_PLTGOT => dynamic.got = Some(value),
                _ => {}
            }
        }
        dynamic
    }

    /// Whether a position-independent file is a program. Linkers have marked programs since 2016; older programs have an interpreter, as
    /// have libraries that can be executed (libc.so.6).
    fn is_program<Elf: FileHeader<Endian = Endianness>>(
        &self,
        segments: &[Elf::ProgramHeader],
        endian: Endianness,
    ) -> bool {
        let mut segments = segments.iter();
        let has_interpreter =
            segments.any(|segment| segment.p_type(endian) == object::elf::PT_INTERP);
        self.is_pie || has_interpreter && !self.has_soname
    }
}

fn put<T: Copy + PartialEq>(table: &mut HashMap<String, Option<T>>, name: &str, value: T) {
    table
        .entry(name.to_owned())
        .and_modify(|known| *known = known.filter(|known| *known == value))
        .or_insert(Some(value));
}

/// Why an argument's value is not read at a hit. The trace stores the text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotCaptured {
    /// The operand cannot be parsed.
    #[error("{text}: {error}")]
    Unparsed {
        /// The operand's text.
        text: String,
        /// Why it cannot be parsed.
        error: OperandError,
    },
    /// No program has code for this kind of operand.
    #[error("unsupported kind of operand")]
    Operand,
    /// Numbers have 1, 2, 4, 8 or more bytes.
    #[error("value of {0} bytes")]
    Size(u8),
    /// Floating-point numbers have 4 or 8 bytes.
    #[error("{0}-byte float")]
    FloatSize(u8),
    /// A floating-point number does not fit into the named part of a register, both in bytes.
    #[error("{size}-byte float in {width} bytes of a register")]
    FloatInRegister { size: u8, width: u8 },
    /// A constant that is a floating-point number, in an expression.
    #[error("constant float")]
    ConstantFloat,
    /// The kernel does not give this register at a hit.
    #[error("{0} not captured")]
    Register(&'static str),
    /// An index register that is narrower than an address.
    #[error("widened index register not captured")]
    WidenedIndex,
    /// A symbol with a base and an index, whose address is not known when linked.
    #[error("{0} with two registers not captured")]
    TwoRegisters(String),
    /// Memory in a segment that is not that of the thread, or whose base is not available.
    #[error("memory in segment {0} not captured")]
    Segment(&'static str),
    /// Thread-local memory of which no register has the base.
    #[error("thread-local memory without its base")]
    NoThreadBase,
    /// A thread-local symbol by a relocation that does not count from the thread's base.
    #[error("thread-local {symbol}@{relocation} not captured")]
    ThreadRelocation {
        /// The symbol's name.
        symbol: String,
        /// The relocation, without `@`.
        relocation: String,
    },
    /// Where a library's thread-local storage is differs between processes.
    #[error("offset of {0} in thread-local storage unknown for a library")]
    ThreadOffset(String),
    /// The dynamic linker may choose another file's symbol.
    #[error("address of {0} not captured")]
    BoundSymbol(String),
    /// The file has no such symbol.
    #[error("the file has no symbol {0}")]
    NoSymbol(String),
    /// The symbol tables were not read.
    #[error("symbol {symbol}: {why}")]
    UnreadSymbols {
        /// The symbol's name.
        symbol: String,
        /// Why.
        why: String,
    },
    /// The file has several symbols of one name.
    #[error("the file has several symbols {0}")]
    SeveralSymbols(String),
    /// An expression of the argument list uses an operand that is not captured.
    #[error("the operand that it uses is not captured")]
    UsedOperand,
    /// The argument list leaves it out.
    #[error("not in the argument list")]
    LeftOut,
    /// An expression of the argument list uses an argument that the site does not have.
    #[error("the site has fewer arguments")]
    NoArgument,
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use usdtrec_format::{Arch, parse_operands};

    use super::*;

    fn operands(args: &str) -> Vec<Operand> {
        parse_operands(args, Some(Arch::X86_64))
    }

    fn program() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/debug/bare-aarch64")
    }

    #[test]
    fn symbols_are_read_by_name() {
        let file = ObjectFile::open(&program()).unwrap();
        let mut needed = NeededSymbols::default();
        needed.add(&operands("8@%rdi 8@8(%rsp)"));
        let symbols = needed.of_file(&file);
        assert!(symbols.is_fixed() && symbols.maps(0x40_0110));
        needed.add(&operands("8@framed(%rip) 4@$d(%rip) 8@%fs:other@tpoff"));
        let symbols = needed.of_file(&file);
        assert_eq!(symbols.value("framed"), Ok(0x40_0110));
        let value = |name: &str| symbols.value(name).unwrap_err().to_string();
        assert_eq!(value("other"), "the file has no symbol other");
        // It has these, but nothing needs them.
        assert_eq!(value("_start"), "the file has no symbol _start");
        assert_eq!(symbols.addresses.len(), 1);
    }

    /// The file with other symbols and names.
    fn with_symbols(symbols: &[u8], names: &[u8]) -> ObjectFile {
        const TYPE: usize = 4;
        const OFFSET: usize = 24;
        let mut bytes = fs::read(program()).unwrap();
        let sections = u64::from_le_bytes(*bytes[0x28..].first_chunk().unwrap()) as usize;
        let headers = sections..bytes.len();
        for (kind, content) in [(2, symbols), (3, names)] {
            let mut headers = headers.clone().step_by(64);
            let header = headers.find(|at| bytes[at + TYPE] == kind).unwrap();
            let place = [bytes.len(), content.len()].map(usize::to_le_bytes);
            bytes[header + OFFSET..][..16].copy_from_slice(&place.concat());
            bytes.extend(content);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &bytes).unwrap();
        ObjectFile::open(file.path()).unwrap()
    }

    /// A symbol of data with the name at this offset.
    fn symbol(name: u32, value: u64) -> Vec<u8> {
        let mut symbol = name.to_le_bytes().to_vec();
        symbol.extend([0x11, 0, 1, 0]);
        symbol.extend([value, 8].map(u64::to_le_bytes).concat());
        symbol
    }

    /// All symbols have one name, whose end is far away.
    #[test]
    fn names_that_are_longer_than_the_wanted_ones_take_no_time() {
        let mut names = b"\0wanted\0".to_vec();
        names.resize(4 << 20, b'x');
        names.push(0);
        let many = symbol(8, 7).repeat(200_000);
        let file = with_symbols(&[vec![0; 24], symbol(1, 5), many].concat(), &names);
        let mut needed = NeededSymbols::default();
        needed.add(&operands("8@wanted(%rip)"));
        let begun = Instant::now();
        assert_eq!(needed.of_file(&file).value("wanted"), Ok(5));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    /// All symbols have a name that may be a wanted one.
    #[test]
    fn very_many_bytes_of_names_are_not_compared() {
        const LENGTH: usize = 8000;
        let long = "x".repeat(LENGTH);
        let names = format!("\0wanted\0{}y\0", "x".repeat(LENGTH - 1));
        let most = FOUND_SYMBOL_BYTES * NAME_RATIO;
        let many = symbol(8, 7).repeat(most as usize / LENGTH + 1);
        let file = with_symbols(
            &[vec![0; 24], symbol(1, 5), many].concat(),
            names.as_bytes(),
        );
        let mut needed = NeededSymbols::default();
        needed.add(&operands(&format!("8@wanted(%rip) 8@{long}(%rip)")));
        assert_eq!(needed.of_file(&file).value("wanted"), Ok(5));
        needed = needed.unread();
        needed.set_found();
        let error = needed.of_file(&file).value("wanted").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("have more than"), "{error}");
    }

    #[test]
    fn long_tables_of_files_that_nobody_named_are_not_read() {
        const TYPE: usize = 4;
        const SIZE: usize = 32;
        let mut bytes = fs::read(program()).unwrap();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let sections = word(0x28) as usize;
        let mut headers = (sections..bytes.len()).step_by(64);
        let header = headers.find(|at| bytes[at + TYPE] == 2).unwrap();
        let size = FOUND_SYMBOL_BYTES / 24 * 24 + 24;
        bytes[header + SIZE..][..8].copy_from_slice(&size.to_le_bytes());
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &bytes).unwrap();
        let content = File::options().write(true).open(file.path()).unwrap();
        content.set_len(2 * FOUND_SYMBOL_BYTES).unwrap();
        let file = ObjectFile::open(file.path()).unwrap();
        let mut needed = NeededSymbols::default();
        needed.add(&operands("8@framed(%rip)"));
        assert_eq!(needed.of_file(&file).value("framed"), Ok(0x40_0110));
        let mut found = needed.unread();
        found.set_found();
        let symbols = found.of_file(&file);
        let error = symbols.value("framed").unwrap_err().to_string();
        assert!(
            error.contains("framed: ") && error.contains("expected at most"),
            "{error}"
        );
    }
}
