//! Strings that a process has in memory that it cannot write: they are in the file that is mapped there.
//!
//! Traces have the mappings of code. A dynamic linker maps all parts of a file at once, as far from each other as they were linked, so the
//! other parts follow from the code. A part that the program cannot write, and that no relocation changes, is what the file has.
//!
//! At a hit no page may be touched that is not resident, and perf events record no memory. So a literal is missing in
//! the sample and is read from the file. Mappings without code are not recorded, because programs make many.
//!
//! * Only parts that the program cannot write are read, of files with the build-id that was mapped.
//! * A resolver adds the strings to what a decoder returns, so all views and filters have them.
//! * The strings found at the end of a recording are stored with the names of functions (`FileCode::strings`). Their key is
//!   the file offset that the address would have if the mapping of the code extended to there, which a reader can
//!   compute without the file.
//! * With programs the recorder knows whether memory could not be read at any hit, and searches for strings only then.
//!   With perf events it reads the trace again, for two seconds at most.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use foldhash::HashMap;
use object::read::{Object, ObjectSection, ObjectSegment};
use object::{ObjectKind, SegmentFlags, elf};
use usdtrec_format::raw::looks_like_string;

use crate::process::Mapping;
use crate::symbols::image::{Binary, ParsedBinary};

/// Alignment of mappings of files; that of pages may be greater.
const PAGE: u64 = 4096;

/// A string in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileString {
    /// Its bytes, without the NUL at its end.
    pub bytes: Vec<u8>,
    /// Whether it is longer.
    pub cut: bool,
}

impl FileString {
    /// Whether the bytes look like a string, which may be empty.
    pub(crate) fn looks_like_string(&self) -> bool {
        looks_like_string(&self.bytes, self.cut)
    }

    /// Whether the bytes are taken for a string though nothing says that they are one.
    pub(crate) fn is_sure(&self) -> bool {
        !self.bytes.is_empty() && self.looks_like_string()
    }
}

/// Strings of a file: those that the trace has, and those of the file.
#[derive(Debug, Default)]
pub(crate) struct FileStrings {
    /// By the file offset that they have if all of the file is mapped as its code is.
    pub(crate) stored: HashMap<u64, Arc<FileString>>,
    pub(crate) data: Option<ReadOnlyData>,
}

impl FileStrings {
    /// The string at an address of a process that has this mapping of the file.
    pub(crate) fn find(
        &self,
        mapping: Mapping,
        address: u64,
        limit: u16,
    ) -> Option<Arc<FileString>> {
        let stored = self.stored.get(&mapping.file_offset(address));
        stored.cloned().or_else(|| {
            let string = self.data.as_ref()?.string(mapping, address, limit)?;
            Some(Arc::new(string))
        })
    }
}

/// The parts of a program or library that nobody writes.
#[derive(Debug)]
pub(crate) struct ReadOnlyData {
    file: File,
    parts: Vec<Part>,
    /// Those with code, in whole pages.
    code: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    offset: u64,
    len: u64,
    address: u64,
}

impl Part {
    /// What is added to an offset in the part to get its address.
    const fn distance(self) -> u64 {
        self.address.wrapping_sub(self.offset)
    }

    const fn whole_pages(self) -> Self {
        let before = self.offset % PAGE;
        Self {
            offset: self.offset - before,
            len: self.len.saturating_add(before),
            address: self.address.wrapping_sub(before),
        }
    }
}

impl ReadOnlyData {
    /// The read-only data of a file; `None` if relocations change them.
    pub(crate) fn from_binary(binary: Binary) -> Option<Self> {
        let (mut parts, mut code) = (Vec::new(), Vec::new());
        {
            let file = binary.parse(None)?;
            if has_text_relocations(&file)? {
                return None;
            }
            for segment in file.segments() {
                let SegmentFlags::Elf { p_flags, .. } = segment.flags() else {
                    continue;
                };
                let (offset, len) = segment.file_range();
                let part = Part {
                    offset,
                    len,
                    address: segment.address(),
                };
                if p_flags.0 & elf::PF_W.0 == 0 && p_flags.0 & elf::PF_R.0 != 0 {
                    parts.push(part);
                }
                if p_flags.0 & elf::PF_X.0 != 0 {
                    code.push(part.whole_pages());
                }
            }
        }
        Some(Self {
            file: binary.into_file(),
            parts,
            code,
        })
    }

    fn string(&self, mapping: Mapping, address: u64, limit: u16) -> Option<FileString> {
        let of_mapping = |part: &&Part| {
            let within = mapping.offset.checked_sub(part.offset);
            within.is_some_and(|within| within < part.len)
        };
        let code = self.code.iter().find(of_mapping)?;
        let bias = mapping
            .start
            .wrapping_sub(mapping.offset.wrapping_add(code.distance()));
        let linked = address.wrapping_sub(bias);
        let (offset, left) = self.parts.iter().find_map(|part| {
            let within = linked.checked_sub(part.address)?;
            let left = part.len.checked_sub(within).filter(|left| *left > 0)?;
            Some((part.offset.checked_add(within)?, left))
        })?;
        let most = u64::from(limit) + 1;
        let mut bytes = vec![0; left.min(most) as usize];
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        let end = bytes.iter().position(|byte| *byte == 0);
        // A string that ends where the part ends has no NUL there.
        let cut = end.is_none();
        if cut && left < most {
            return None;
        }
        bytes.truncate(end.unwrap_or(limit.into()));
        Some(FileString { bytes, cut })
    }
}

/// Whether relocations change parts that the program cannot write; `None` if the file does not say.
fn has_text_relocations(file: &ParsedBinary<'_>) -> Option<bool> {
    // `DT_TEXTREL`, and `DF_TEXTREL` of `DT_FLAGS` (System V ABI, chapter 5).
    const TEXTREL: u64 = 22;
    const FLAGS: u64 = 30;
    const FLAG_TEXTREL: u64 = 4;
    let Some(dynamic) = file.section_by_name(".dynamic") else {
        return (file.kind() == ObjectKind::Executable).then_some(false);
    };
    let data = dynamic.data().ok()?;
    let word = if file.is_64() { 8 } else { 4 };
    let number = |bytes: &[u8]| {
        let bytes = bytes.iter().rev();
        bytes.fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let mut entries = data.chunks_exact(2 * word).map(|entry| {
        let (tag, value) = entry.split_at(word);
        (number(tag), number(value))
    });
    let says =
        |(tag, value): (u64, u64)| tag == TEXTREL || tag == FLAGS && value & FLAG_TEXTREL != 0;
    Some(!file.is_little_endian() || entries.any(says))
}
