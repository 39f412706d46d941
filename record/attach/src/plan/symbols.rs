//! Symbols of an ELF file, as operands name them.

use std::collections::HashMap;

use object::elf::{DF_1_PIE, DT_FLAGS_1, DT_PLTGOT, DT_SONAME, PT_LOAD, PT_TLS};
use object::read::elf::{Dyn, ElfFile, FileHeader, ProgramHeader};
use object::{Object, ObjectKind, ObjectSymbol, ObjectSymbolTable, SymbolKind, SymbolScope};
use thiserror::Error;
use usdtrec_buildid_cache::elf::{Excerpt, ObjectFile};
use usdtrec_format::OperandError;

/// The symbols of a file, which are read on first use.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Addresses by name, and whether other files see them; `None` for a name that several symbols have.
    addresses: HashMap<String, Option<(u64, bool)>>,
    /// Offsets from the thread's base, likewise.
    thread: HashMap<String, Option<i64>>,
    /// Whether the file is linked to a fixed address.
    fixed: bool,
    /// Its address range: first address and the one after the last.
    mapped: Vec<(u64, u64)>,
    is_program: bool,
    /// Link-time address that `@GOTOFF` counts from (`_GLOBAL_OFFSET_TABLE_`).
    got: Option<u64>,
}

/// The symbol at the address that `@GOTOFF` counts from.
const GOT: &str = "_GLOBAL_OFFSET_TABLE_";

impl Symbols {
    /// Reads the symbol tables of an ELF file; tables that cannot be read are empty.
    pub fn from_file(file: &ObjectFile) -> Self {
        let Ok(tables) = file.symbol_tables() else {
            return Self::default();
        };
        let symbols = if file.is_class64() {
            Self::read::<object::elf::FileHeader64<object::Endianness>>(&tables)
        } else {
            Self::read::<object::elf::FileHeader32<object::Endianness>>(&tables)
        };
        symbols.unwrap_or_default()
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

    fn read<Elf: FileHeader<Endian = object::Endianness>>(tables: &Excerpt) -> Option<Self> {
        let file = ElfFile::<Elf, &Excerpt>::parse(tables).ok()?;
        let endian = file.endian();
        let dynamic = Dynamic::from_tables(&file, tables);
        let fixed = file.kind() == ObjectKind::Executable;
        let mut symbols = Self {
            fixed,
            is_program: fixed || dynamic.is_program(&file),
            got: dynamic.got,
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
        if symbols.addresses.is_empty() && symbols.thread.is_empty() {
            let table = file.dynamic_symbol_table();
            symbols.add(
                table.iter().flat_map(ObjectSymbolTable::symbols),
                thread_end,
            );
        }
        if let Ok(got) = known(&symbols.addresses, GOT) {
            symbols.got = Some(got.0);
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
    pub fn value(&self, symbol: &str) -> Result<u64, NotCaptured> {
        known(&self.addresses, symbol).map(|(value, _)| value)
    }

    /// The link-time address of a symbol whose address the dynamic linker finds out.
    pub fn bound(&self, symbol: &str) -> Result<u64, NotCaptured> {
        match known(&self.addresses, symbol)? {
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
        known(&self.thread, symbol)
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
    fn from_tables<'a, Elf: FileHeader<Endian = object::Endianness>>(
        file: &ElfFile<'a, Elf, &'a Excerpt>,
        tables: &'a Excerpt,
    ) -> Self {
        let endian = file.endian();
        let mut segments = file.elf_program_headers().iter();
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
    fn is_program<'a, Elf: FileHeader<Endian = object::Endianness>>(
        &self,
        file: &ElfFile<'a, Elf, &'a Excerpt>,
    ) -> bool {
        let endian = file.endian();
        let mut segments = file.elf_program_headers().iter();
        let has_interpreter =
            segments.any(|segment| segment.p_type(endian) == object::elf::PT_INTERP);
        self.is_pie || has_interpreter && !self.has_soname
    }
}

fn known<T: Copy>(table: &HashMap<String, Option<T>>, symbol: &str) -> Result<T, NotCaptured> {
    match table.get(symbol) {
        Some(Some(value)) => Ok(*value),
        Some(None) => Err(NotCaptured::SeveralSymbols(symbol.to_owned())),
        None => Err(NotCaptured::NoSymbol(symbol.to_owned())),
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
