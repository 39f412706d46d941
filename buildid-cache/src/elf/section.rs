//! One section of an ELF file.

use object::elf::{SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB, SHT_SYMTAB_SHNDX, SectionType};

/// Types of the sections that are needed to read symbols.
pub(super) const SYMBOL_KINDS: [SectionType; 4] =
    [SHT_SYMTAB, SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB_SHNDX];

/// A section header.
#[derive(Clone, Debug)]
pub struct Section {
    /// Name, cut to 64 bytes.
    pub name: Vec<u8>,
    /// Type (`SHT_*`).
    pub kind: u32,
    /// Link-time address.
    pub address: u64,
    /// File offset of the content.
    pub offset: u64,
    /// Size of the content, bytes.
    pub size: u64,
    /// Whether it has no content in the file (`SHT_NOBITS`).
    pub no_bits: bool,
    /// Whether the content is compressed (`SHF_COMPRESSED`).
    pub compressed: bool,
}
