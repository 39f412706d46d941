//! The symbols that a stripped program carries: an ELF file in `.gnu_debugdata`, compressed with xz (GDB manual, "MiniDebugInfo").
//!
//! `lzma-rust2` decompresses it: unlike `lzma-rs`, it has a limit of memory and does not keep all output.

use std::io::Read;

use lzma_rust2::XzReader;
use object::read::{Object, ObjectSection};

use crate::symbols::candidates::{Candidates, CodeSymbols, Content};

/// Maximum length of the section, bytes. Those of Fedora's largest libraries have 2 MB.
const MAX_COMPRESSED_BYTES: u64 = 16 << 20;
/// Maximum length of the ELF file, bytes.
const MAX_FILE_BYTES: u64 = 32 << 20;
/// Maximum memory for decompressing, KiB.
const MAX_MEMORY: u32 = 80 << 10;

/// The symbols, which are those of functions that are not in `.dynsym`; `None` if there are none.
pub(crate) fn symbols<'data>(file: &impl Object<'data>) -> Option<Candidates> {
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
