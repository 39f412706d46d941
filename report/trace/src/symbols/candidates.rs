//! The symbols of an ELF file that name code, and those that a stripped program carries: an ELF file in `.gnu_debugdata`, compressed with xz (GDB
//! manual, "MiniDebugInfo"). `lzma-rust2` decompresses it: unlike `lzma-rs`, it has a limit of memory and does not keep all output.

use std::fs::File;
use std::io::Read;

use lzma_rust2::XzReader;
use object::elf;
use object::read::elf::{FileHeader, SectionHeader, Sym, SymbolTable as ElfSymbols};
use object::read::{Object, ObjectSection, ReadRef, SectionIndex, elf::ElfFile};

use crate::symbols::name_table::NameTable;

/// Symbols of which the best of each address are to be chosen, and their names.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub(crate) symbols: Vec<Candidate>,
    pub(crate) names: NameTable,
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Address of the first byte, as linked.
    pub(crate) start: u64,
    /// Bytes; 0 if the file does not say.
    pub(crate) size: u64,
    /// Offset of its name in the table of names.
    pub(crate) name: u32,
    pub(crate) rank: Rank,
}

/// Of several symbols at an address the least is shown, as perf chooses: one with a size, not weak, global. Of equal ones, the names decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) no_size: bool,
    pub(crate) weak: bool,
    pub(crate) local: bool,
}

/// An ELF file of one class.
pub(crate) trait CodeSymbols {
    /// The symbols of `.symtab`.
    fn linked(&self, content: Content<'_>) -> Candidates;
    /// The symbols of `.dynsym`, which other files can use.
    fn dynamic(&self, content: Content<'_>) -> Candidates;
}

/// Where the bytes of an ELF file are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    File(&'a File),
    Bytes(&'a [u8]),
}

impl Content<'_> {
    /// The string table at an offset.
    fn names(self, at: u64, len: u64) -> Option<NameTable> {
        match self {
            Content::File(file) => NameTable::read(file, at, len),
            Content::Bytes(bytes) => {
                let end = usize::try_from(at.checked_add(len)?).ok()?;
                let names = bytes.get(usize::try_from(at).ok()?..end)?;
                Some(NameTable::from_bytes(names.to_vec()))
            }
        }
    }
}

impl Candidates {
    /// These and others; these alone if the names of both are too many.
    pub(crate) fn joined(self, others: Self) -> Self {
        let Some((names, from)) = self.names.joined(&others.names) else {
            return self;
        };
        let others = others.symbols.into_iter().filter_map(|symbol| {
            let name = symbol.name.checked_add(from)?;
            Some(Candidate { name, ..symbol })
        });
        Self {
            symbols: self.symbols.into_iter().chain(others).collect(),
            names,
        }
    }
}

impl<'data, Elf: FileHeader, R: ReadRef<'data>> CodeSymbols for ElfFile<'data, Elf, R> {
    fn linked(&self, content: Content<'_>) -> Candidates {
        candidates(self, self.elf_symbol_table(), content)
    }

    fn dynamic(&self, content: Content<'_>) -> Candidates {
        candidates(self, self.elf_dynamic_symbol_table(), content)
    }
}

/// The symbols of a symbol table; empty if its names cannot be read.
fn candidates<'data, Elf: FileHeader, R: ReadRef<'data>>(
    elf: &ElfFile<'data, Elf, R>,
    table: &ElfSymbols<'data, Elf, R>,
    content: Content<'_>,
) -> Candidates {
    let endian = elf.endian();
    let sections = elf.elf_section_table();
    let names = sections.section(table.string_section()).ok();
    let names = names.and_then(|section| {
        let (at, len) = (section.sh_offset(endian), section.sh_size(endian));
        content.names(at.into(), len.into())
    });
    let Some(names) = names else {
        return Candidates::default();
    };
    let is_code = |section: SectionIndex| {
        let section = sections.section(section);
        section.is_ok_and(|section| section.sh_flags(endian).contains(elf::SHF_EXECINSTR))
    };
    let machine = elf.elf_header().e_machine(endian);
    let has_mapping_symbols = [elf::EM_ARM, elf::EM_AARCH64, elf::EM_RISCV].contains(&machine);
    let symbols = table.enumerate().filter_map(|(index, symbol)| {
        let section = table.symbol_section(endian, symbol, index).ok()??;
        let may_be_mapping = has_mapping_symbols && symbol.st_type() == elf::STT_NOTYPE;
        let is_mapping = || may_be_mapping && is_mapping_symbol(&names, symbol.st_name(endian));
        (is_code(section) && names_code(symbol) && !is_mapping()).then(|| {
            let size = symbol.st_size(endian).into();
            Candidate {
                start: first_byte(machine, symbol.st_type(), symbol.st_value(endian).into()),
                size,
                name: symbol.st_name(endian),
                rank: Rank {
                    no_size: size == 0,
                    weak: symbol.st_bind() == elf::STB_WEAK,
                    local: symbol.st_bind() == elf::STB_LOCAL,
                },
            }
        })
    });
    Candidates {
        symbols: symbols.filter(|symbol| symbol.name != 0).collect(),
        names,
    }
}

/// The address of the first byte of a symbol: on ARM, bit 0 of a function says that it is one of Thumb instructions.
fn first_byte(machine: elf::Machine, kind: elf::SymbolType, value: u64) -> u64 {
    match machine == elf::EM_ARM && kind != elf::STT_NOTYPE {
        true => value & !1,
        false => value,
    }
}

/// Whether a symbol says where code or data begins, as assemblers for these machines write: `$x`, `$d.1` ("ELF for the Arm 64-bit Architecture", 5.7).
fn is_mapping_symbol(names: &NameTable, name: u32) -> bool {
    match names.get(name).as_deref() {
        Some([b'$', b'a' | b'd' | b't' | b'x', rest @ ..]) => {
            rest.is_empty() || rest.starts_with(b".") || rest.starts_with(b"rv")
        }
        _ => false,
    }
}

fn names_code(symbol: &impl Sym) -> bool {
    match symbol.st_type() {
        elf::STT_FUNC | elf::STT_GNU_IFUNC => true,
        // Of labels perf takes those that assembler programmers let others see.
        elf::STT_NOTYPE => ![elf::STV_HIDDEN, elf::STV_INTERNAL].contains(&symbol.st_visibility()),
        _ => false,
    }
}

/// Maximum length of the section, bytes. Those of Fedora's largest libraries have 2 MB.
const MAX_COMPRESSED_BYTES: u64 = 16 << 20;
/// Maximum length of the ELF file, bytes.
const MAX_FILE_BYTES: u64 = 32 << 20;
/// Maximum memory for decompressing, KiB.
const MAX_MEMORY: u32 = 80 << 10;

/// The symbols, which are those of functions that are not in `.dynsym`; `None` if there are none.
pub(crate) fn mini_debug_symbols<'data>(file: &impl Object<'data>) -> Option<Candidates> {
    let section = file.section_by_name(".gnu_debugdata")?;
    if section.size() > MAX_COMPRESSED_BYTES {
        return None;
    }
    let elf = decompress(section.data().ok()?)?;
    let content = Content::Bytes(&elf);
    let found = match object::File::parse(elf.as_slice()).ok()? {
        object::File::Elf32(elf) => elf.linked(content),
        object::File::Elf64(elf) => elf.linked(content),
        _ => return None,
    };
    (!found.symbols.is_empty()).then_some(found)
}

fn decompress(data: &[u8]) -> Option<Vec<u8>> {
    let mut elf = Vec::new();
    let mut reader = XzReader::new_mem_limit(data, false, MAX_MEMORY).take(MAX_FILE_BYTES + 1);
    reader.read_to_end(&mut elf).ok()?;
    (elf.len() as u64 <= MAX_FILE_BYTES).then_some(elf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_thumb_instructions_begin_at_even_addresses() {
        assert_eq!(first_byte(elf::EM_ARM, elf::STT_FUNC, 0x1235), 0x1234);
        assert_eq!(first_byte(elf::EM_ARM, elf::STT_NOTYPE, 0x1235), 0x1235);
        assert_eq!(first_byte(elf::EM_X86_64, elf::STT_FUNC, 0x1235), 0x1235);
    }

    #[test]
    fn mapping_symbols_are_told_from_functions() {
        let names = NameTable::from_bytes(b"\0$x\0$d.12\0$xrv64i\0$other\0x\0$\0".to_vec());
        let is_one = |name| is_mapping_symbol(&names, name);
        assert!([1, 4, 10].into_iter().all(is_one));
        assert!(![0, 18, 25, 27].into_iter().any(is_one));
    }
}
