//! One section of an ELF file.

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
    /// Whether it is loaded code (`SHF_ALLOC` and `SHF_EXECINSTR`).
    pub code: bool,
    /// Whether the content is compressed (`SHF_COMPRESSED`).
    pub compressed: bool,
}
