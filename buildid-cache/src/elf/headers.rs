//! The headers of an ELF file, independent of class and byte order: type, segments, sections and build-id.

use std::collections::HashSet;

use object::elf::{
    self, ELF_NOTE_GNU, ET_EXEC, ET_REL, FileHeader32, FileHeader64, NT_GNU_BUILD_ID, PF_W, PF_X,
    PT_DYNAMIC, PT_INTERP, PT_LOAD, PT_NOTE, PT_TLS, SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR,
    SHT_NOBITS, SHT_NOTE,
};
use object::endian::Endianness;
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::read::{ReadCache, ReadCacheOps, ReadRef};
use usdtrec_format::{Arch, BuildId, NoteLayout};

use super::error::ElfError;
use super::section::{self, SYMBOL_KINDS, Section};
use crate::served::Contents;

/// Maximum size of a section that is read, bytes. libjvm's notes have 60 KB; a larger size means a damaged or hostile file.
pub(super) const SECTION_LIMIT: u64 = 64 << 20;
/// Maximum number of bytes in which the build-id is searched for, of one segment or section and in all. libjvm's notes have 60 KB.
const BUILD_ID_RANGE: u64 = 1 << 18;
const BUILD_ID_ROOM: u64 = 1 << 22;
/// Maximum number of `PT_LOAD` segments that are searched for each site. Programs have up to a dozen.
const MAX_SEGMENTS: usize = 256;
/// Number of bytes at the beginning of a file that are read at once: the header, the program headers, and usually the build-id.
const BEGINNING: usize = 1024;

/// How much of the headers of a file is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderLimits {
    /// Maximum number of program headers. Programs have up to two dozen, core files one for each mapping. `execve(2)` refuses more than 64 KiB of
    /// them (fs/binfmt_elf.c, `load_elf_phdrs`).
    segments: u64,
    /// Maximum number of section headers. Programs with a section for each function have tens of thousands; a file with more than 65,279 has
    /// the number in its first section header (ELF gABI, `e_shnum`).
    sections: u64,
    /// Maximum size of the section names, bytes.
    names: u64,
    /// Maximum number of note sections, and of other sections that are kept: each takes up to 160 bytes while the file is open. Programs have up to a
    /// dozen note sections, or one for each object file that they are linked of (`ld --unique`).
    kept: u64,
}

impl HeaderLimits {
    /// Of a file that the user of the recorder names.
    pub(super) const NAMED: Self = Self {
        segments: 1 << 20,
        sections: 1 << 20,
        names: SECTION_LIMIT,
        kept: 1024,
    };
    /// Of a file that a process maps. Any user can map any number of sparse files.
    pub(super) const MAPPED: Self = Self {
        segments: 1 << 12,
        sections: 1 << 17,
        names: 1 << 23,
        kept: 96,
    };
}

/// The headers of an ELF file.
#[derive(Debug)]
pub(super) struct Headers {
    /// Architecture, if known.
    pub(super) arch: Option<Arch>,
    /// Whether the file is a relocatable object (`ET_REL`), which has no addresses yet.
    pub(super) relocatable: bool,
    /// Whether the file has a fixed address (`ET_EXEC`) or names a loader, as programs do.
    pub(super) is_program: bool,
    /// `PT_TLS`.
    pub(super) thread_local: Option<ThreadLocalSegment>,
    /// Class and byte order.
    pub(super) layout: NoteLayout,
    /// `PT_LOAD` segments.
    pub(super) segments: Vec<Segment>,
    /// Symbol tables, string tables, and the first section of each [wanted name](is_wanted_name).
    pub(super) sections: Vec<Section>,
    /// Where the file may have SDT notes.
    pub(super) notes: Vec<Section>,
    /// GNU build-id.
    pub(super) build_id: Option<BuildId>,
    /// Whether the file is a separate debug file, whose code sections have no content. It repeats the notes of its program.
    pub(super) is_debug_file: bool,
    /// File offset and size in bytes of the program headers, the section headers and the dynamic section.
    pub(super) tables: [(u64, usize); 3],
}

/// A `PT_TLS` segment: what each thread has a copy of.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadLocalSegment {
    pub(super) address: u64,
    pub(super) memory_size: u64,
    pub(super) align: u64,
}

/// A `PT_LOAD` segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) file_size: u64,
    pub(super) memory_size: u64,
    pub(super) executable: bool,
    pub(super) writable: bool,
}

impl Segment {
    /// The file offset of `len` bytes at an address; `None` unless the segment's file content has all of them.
    pub(super) fn file_offset(&self, address: u64, len: u64) -> Option<u64> {
        let within = address.checked_sub(self.address)?;
        (within.checked_add(len)? <= self.file_size)
            .then(|| self.offset.checked_add(within))
            .flatten()
    }

    /// Whether the address is in the segment's memory.
    pub(super) fn holds(&self, address: u64) -> bool {
        address
            .checked_sub(self.address)
            .is_some_and(|within| within < self.memory_size)
    }
}

impl Headers {
    /// Reads the headers of an ELF file with positioned reads. The file is not mapped: truncating a mapped file would kill this
    /// process with SIGBUS. `len` is the length of the file, bytes.
    pub(super) fn read(file: &Contents, len: u64, limits: HeaderLimits) -> Result<Self, ElfError> {
        let mut beginning = [0; BEGINNING];
        let count = file.read_at(&mut beginning, 0)?;
        let beginning = beginning.get(..count).unwrap_or_default();
        let Some(ident) = beginning.first_chunk::<6>() else {
            return Err(ElfError::NotElf("shorter than an ELF header"));
        };
        if ident[..4] != elf::ELFMAG {
            return Err(ElfError::NotElf(match ident.starts_with(b"#!") {
                true => {
                    "a script, which its interpreter executes: give the program that its first line names"
                }
                false => "no ELF magic",
            }));
        }
        let positioned = Positioned {
            file,
            len,
            beginning,
            at: 0,
        };
        match ident[4] {
            1 => Self::parse::<FileHeader32<Endianness>>(positioned, limits),
            2 => Self::parse::<FileHeader64<Endianness>>(positioned, limits),
            class => Err(ElfError::Header(format!(
                "ELF class {class}, expected 1 or 2"
            ))),
        }
    }

    fn parse<Elf: FileHeader<Endian = Endianness>>(
        file: Positioned<'_>,
        limits: HeaderLimits,
    ) -> Result<Self, ElfError> {
        let cache = ReadCache::new(file);
        let data = &cache;
        let header = Elf::parse(data)?;
        let endian = header.endian()?;
        let class64 = header.is_class_64();
        let big_endian = header.is_big_endian();
        let program_headers = header.phnum(endian, data)? as u64;
        check_count("program headers", program_headers, limits.segments)?;
        let section_headers = header.shnum(endian, data)? as u64;
        check_count("section headers", section_headers, limits.sections)?;
        let program_headers = header.program_headers(endian, data)?;
        let section_headers = header.section_headers(endian, data)?;
        let mut build_id = BuildIdFinder::<Elf>::new(endian);
        for segment in program_headers {
            if segment.p_type(endian) == PT_NOTE {
                let (offset, size) = segment.file_range(endian);
                build_id.search(data, offset, size, segment.p_align(endian));
            }
        }
        for section in section_headers {
            if section.sh_type(endian) == SHT_NOTE
                && let Some((offset, size)) = section.file_range(endian)
            {
                build_id.search(data, offset, size, section.sh_addralign(endian));
            }
        }
        let names = section_names(header, endian, data, section_headers, limits)?;
        let kept = KeptSections::select::<Elf>(section_headers, endian, names, limits.kept)?;
        Ok(Self {
            arch: Arch::from_elf(header.e_machine(endian).0, class64, big_endian),
            relocatable: header.e_type(endian) == ET_REL,
            is_program: header.e_type(endian) == ET_EXEC
                || program_headers
                    .iter()
                    .any(|segment| segment.p_type(endian) == PT_INTERP),
            thread_local: program_headers
                .iter()
                .find(|segment| segment.p_type(endian) == PT_TLS)
                .map(|segment| ThreadLocalSegment {
                    address: segment.p_vaddr(endian).into(),
                    memory_size: segment.p_memsz(endian).into(),
                    align: segment.p_align(endian).into(),
                }),
            layout: NoteLayout {
                class64,
                big_endian,
            },
            segments: load_segments::<Elf>(program_headers, endian),
            notes: match section_headers.len() {
                0 => section::notes_of_segments::<Elf>(program_headers, endian),
                _ => section::apart(kept.notes),
            },
            sections: kept.sections,
            is_debug_file: kept.has_code && !kept.has_code_content,
            build_id: build_id.found,
            tables: [
                (header.e_phoff(endian).into(), size_of_val(program_headers)),
                (header.e_shoff(endian).into(), size_of_val(section_headers)),
                dynamic_section::<Elf>(program_headers, endian),
            ],
        })
    }

    /// The first section of this name, if it is a [wanted](is_wanted_name) one.
    pub(super) fn section(&self, name: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

/// Refuses more than `most` headers or sections of a kind.
fn check_count(what: &str, count: u64, most: u64) -> Result<(), ElfError> {
    if count <= most {
        return Ok(());
    }
    Err(ElfError::Header(format!(
        "{count} {what}, expected at most {most}"
    )))
}

/// A reader with a position of its own, independent of the file descriptor's.
#[derive(Debug)]
struct Positioned<'a> {
    file: &'a Contents,
    /// Of the file, bytes.
    len: u64,
    /// What the file begins with.
    beginning: &'a [u8],
    at: u64,
}

impl ReadCacheOps for Positioned<'_> {
    fn len(&mut self) -> Result<u64, ()> {
        Ok(self.len)
    }

    fn seek(&mut self, at: u64) -> Result<u64, ()> {
        self.at = at;
        Ok(at)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ()> {
        let count = self.file.read_at(buffer, self.at).map_err(|_| ())?;
        self.at += count as u64;
        Ok(count)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ()> {
        let end = self.at.checked_add(buffer.len() as u64).ok_or(())?;
        let known = self.beginning.get(self.at as usize..end as usize);
        match known.filter(|_| end <= BEGINNING as u64) {
            Some(known) => buffer.copy_from_slice(known),
            None => self.file.read_exact_at(buffer, self.at).map_err(|_| ())?,
        }
        self.at = end;
        Ok(())
    }
}

/// Finds the GNU build-id in note segments and sections, by owner `GNU` *and* type 3, because SDT notes have type 3, too.
struct BuildIdFinder<Elf: FileHeader> {
    endian: Elf::Endian,
    found: Option<BuildId>,
    /// Remaining number of bytes that may be read. Note segments can overlap, and all data read stays in memory until all headers are read.
    room: u64,
}

impl<Elf: FileHeader> BuildIdFinder<Elf> {
    fn new(endian: Elf::Endian) -> Self {
        Self {
            endian,
            found: None,
            room: BUILD_ID_ROOM,
        }
    }

    /// Searches the beginning of one range of notes, unless the build-id is already known. A damaged note ends the search of the range without
    /// an error.
    fn search<'data>(
        &mut self,
        data: impl ReadRef<'data>,
        offset: u64,
        size: u64,
        align: <Elf as FileHeader>::Word,
    ) {
        let size = size.min(BUILD_ID_RANGE);
        if self.found.is_some() || size > self.room {
            return;
        }
        self.room -= size;
        let Ok(bytes) = data.read_bytes_at(offset, size) else {
            return;
        };
        self.found = find_build_id::<Elf>(bytes, self.endian, align);
    }
}

/// The build-id of the running kernel; `None` if `/sys/kernel/notes` cannot be read or has no build-id.
#[must_use]
pub(crate) fn kernel_build_id() -> Option<BuildId> {
    build_id_of_notes(&std::fs::read("/sys/kernel/notes").ok()?)
}

/// The GNU build-id in notes of this machine's byte order.
fn build_id_of_notes(notes: &[u8]) -> Option<BuildId> {
    let endian = Endianness::default();
    find_build_id::<FileHeader64<Endianness>>(notes, endian, 4)
}

fn find_build_id<Elf: FileHeader>(
    notes: &[u8],
    endian: Elf::Endian,
    align: Elf::Word,
) -> Option<BuildId> {
    NoteIterator::<Elf>::new(endian, align, notes)
        .ok()?
        .map_while(Result::ok)
        .filter(|note| note.name() == ELF_NOTE_GNU)
        .filter(|note| note.n_type(endian) == NT_GNU_BUILD_ID)
        .find_map(|note| BuildId::new(note.desc()).ok())
}

/// The section name string table; empty if the file has none.
fn section_names<'data, Elf: FileHeader>(
    header: &Elf,
    endian: Elf::Endian,
    data: impl ReadRef<'data>,
    sections: &[Elf::SectionHeader],
    limits: HeaderLimits,
) -> Result<&'data [u8], ElfError> {
    if sections.is_empty() {
        return Ok(&[]);
    }
    let index = header.section_strings_index(endian, data)?;
    let range = sections
        .get(index.0)
        .and_then(|section| section.file_range(endian));
    let Some((offset, size)) = range else {
        return Ok(&[]);
    };
    if size > limits.names {
        return Err(ElfError::Header(format!(
            "section names claim {size} bytes, expected at most {}",
            limits.names
        )));
    }
    data.read_bytes_at(offset, size).map_err(|()| {
        ElfError::Header(format!(
            "section names claim {size} bytes at offset {offset:#x}, beyond the end of the file"
        ))
    })
}

fn load_segments<Elf: FileHeader>(
    headers: &[Elf::ProgramHeader],
    endian: Elf::Endian,
) -> Vec<Segment> {
    headers
        .iter()
        .filter(|header| header.p_type(endian) == PT_LOAD)
        .take(MAX_SEGMENTS)
        .map(|header| Segment {
            address: header.p_vaddr(endian).into(),
            offset: header.p_offset(endian).into(),
            file_size: header.p_filesz(endian).into(),
            memory_size: header.p_memsz(endian).into(),
            executable: header.p_flags(endian).0 & PF_X.0 != 0,
            writable: header.p_flags(endian).0 & PF_W.0 != 0,
        })
        .collect()
}

/// File offset and size in bytes of the dynamic section; size 0 if there is none or its size is implausible.
fn dynamic_section<Elf: FileHeader>(
    headers: &[Elf::ProgramHeader],
    endian: Elf::Endian,
) -> (u64, usize) {
    /// Maximum size, bytes. Programs have about 40 entries of 16 bytes.
    const MAX: u64 = 1 << 20;
    let mut headers = headers.iter();
    let found = headers.find(|header| header.p_type(endian) == PT_DYNAMIC);
    let (offset, size) = found.map_or((0, 0), |header| header.file_range(endian));
    (offset, if size <= MAX { size as usize } else { 0 })
}

/// The sections that are kept of a file, which may have very many.
#[derive(Default)]
struct KeptSections {
    /// Symbol tables, string tables, and the first section of each wanted name.
    sections: Vec<Section>,
    /// Sections that may have SDT notes.
    notes: Vec<Section>,
    has_code: bool,
    /// Whether a code section has content.
    has_code_content: bool,
}

impl KeptSections {
    fn select<Elf: FileHeader<Endian = Endianness>>(
        headers: &[Elf::SectionHeader],
        endian: Endianness,
        names: &[u8],
        most: u64,
    ) -> Result<Self, ElfError> {
        let mut kept = Self::default();
        let mut known: HashSet<&[u8]> = HashSet::new();
        for header in headers {
            let kind = header.sh_type(endian);
            let name = section_name(names, header.sh_name(endian) as usize);
            let is_empty = kind == SHT_NOBITS;
            if is_code(header.sh_flags(endian).0) {
                kept.has_code = true;
                kept.has_code_content |= !is_empty;
            }
            let is_note = section::is_note(kind, name);
            let mut is_first = || is_wanted_name(name) && known.insert(name);
            if !is_note && !SYMBOL_KINDS.contains(&kind) && !is_first() {
                continue;
            }
            let section = neutral_section::<Elf>(header, endian, name);
            match is_note {
                true => kept.notes.push(section),
                false => kept.sections.push(section),
            }
            check_count("note sections", kept.notes.len() as u64, most)?;
            let number = kept.sections.len() as u64;
            check_count("tables and named sections", number, most)?;
        }
        Ok(kept)
    }
}

/// Whether a section of this name is asked for: symbols, relocations of the loader, unwind tables, debugging information.
fn is_wanted_name(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 7] = [
        b".dynsym",
        b".dynstr",
        b".symtab",
        b".rela.dyn",
        b".rel.dyn",
        b".rela.plt",
        b".stapsdt.base",
    ];
    const BEGINNINGS: [&[u8]; 4] = [b".eh_frame", b".debug_", b".zdebug_", b".gnu_debug"];
    let begins = |beginning: &&[u8]| name.starts_with(beginning);
    NAMES.contains(&name) || BEGINNINGS.iter().any(begins)
}

const fn is_code(flags: u64) -> bool {
    let code = SHF_ALLOC.0 | SHF_EXECINSTR.0;
    flags & code == code
}

/// A name in the table of names.
fn section_name(names: &[u8], offset: usize) -> &[u8] {
    let name = names.get(offset..).unwrap_or_default();
    // No section that is searched for has a longer name; a hostile table could give many sections one long name.
    let name = &name[..name.len().min(64)];
    let end = name.iter().position(|&byte| byte == 0);
    &name[..end.unwrap_or(name.len())]
}

fn neutral_section<Elf: FileHeader>(
    header: &Elf::SectionHeader,
    endian: Elf::Endian,
    name: &[u8],
) -> Section {
    let flags: u64 = header.sh_flags(endian).0;
    Section {
        name: name.to_vec(),
        address: header.sh_addr(endian).into(),
        offset: header.sh_offset(endian).into(),
        size: header.sh_size(endian).into(),
        kind: header.sh_type(endian).0,
        no_bits: header.sh_type(endian) == SHT_NOBITS,
        compressed: flags & SHF_COMPRESSED.0 != 0,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::FileExt as _;

    use object::elf::{SHT_NULL, SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB, SectionType};

    use super::*;
    use crate::elf::ObjectFile;
    use crate::served::{Handle, Patience, Reader};

    const HEADER: usize = 64;
    const SECTION: usize = 64;
    const NAMES: &[u8] = b"\0.names\0.text.a\0.note.a\0.debug_info\0";

    /// Type and name of a section.
    type Kind = (SectionType, &'static str);

    /// A file with the sections of these types and names; the first are those of an ELF file without content.
    fn file(kinds: impl Iterator<Item = Kind>) -> File {
        let all = [(SHT_NULL, ""), (SHT_STRTAB, ".names")].into_iter();
        let all: Vec<Kind> = all.chain(kinds).collect();
        let names = HEADER + all.len() * SECTION;
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        bytes.extend([3_u16, 62].map(u16::to_le_bytes).concat());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend([0, 0, HEADER as u64].map(u64::to_le_bytes).concat());
        bytes.extend(0_u32.to_le_bytes());
        // The number of sections is in the first one.
        bytes.extend([64, 56, 0, 64, 0, 1].map(u16::to_le_bytes).concat());
        for (at, (kind, name)) in all.iter().enumerate() {
            let mut named = NAMES.windows(name.len() + 1);
            let is_it = |end: &[u8]| end.strip_suffix(b"\0") == Some(name.as_bytes());
            let name = named.position(is_it).unwrap() as u32;
            let (offset, size) = match at {
                0 => (0, all.len()),
                1 => (names, NAMES.len()),
                at => (at, 1),
            };
            bytes.extend([name, kind.0].map(u32::to_le_bytes).concat());
            let words = [0, 0, offset as u64, size as u64, 0, 1, 0];
            bytes.extend(words.map(u64::to_le_bytes).concat());
        }
        bytes.extend(NAMES);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file
    }

    fn mapped(file: File) -> Result<ObjectFile, ElfError> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let reader = Reader::of_unknown(Patience::Usual);
        let handle = Handle::of_path(path.as_ref(), reader)?;
        ObjectFile::from_handle(handle, "a".into())
    }

    fn many(kind: Kind, number: usize) -> File {
        file(std::iter::repeat_n(kind, number))
    }

    #[test]
    fn few_of_very_many_sections_are_kept() {
        let number = 70_000;
        let progbits = many((SHT_PROGBITS, ".text.a"), number);
        let read = mapped(progbits).unwrap();
        assert_eq!(read.headers().sections.len(), 1, "the names");
        let read = mapped(many((SHT_PROGBITS, ".debug_info"), number)).unwrap();
        assert_eq!(read.headers().sections.len(), 2, "the first of the name");
        assert_eq!(read.section(".debug_info").unwrap().offset, 2);
        for kind in [(SHT_NOTE, ".note.a"), (SHT_SYMTAB, ".text.a")] {
            let error = mapped(many(kind, number)).unwrap_err().to_string();
            assert!(error.contains("expected at most 96"), "{error}");
            let kept =
                |file: ObjectFile| file.headers().notes.len() + file.headers().sections.len();
            assert_eq!(kept(mapped(many(kind, 95)).unwrap()), 96);
            let named = |number| ObjectFile::from_file(many(kind, number), "a".into());
            assert_eq!(kept(named(1000).unwrap()), 1001);
            assert!(named(1025).is_err());
        }
    }

    /// A file that a process maps is refused before its headers are read.
    #[test]
    fn less_is_read_of_mapped_files() {
        let number = HeaderLimits::MAPPED.sections as usize;
        let kind = (SHT_PROGBITS, ".text.a");
        let error = mapped(many(kind, number)).unwrap_err().to_string();
        assert!(error.contains("expected at most 131072"), "{error}");
        let named = ObjectFile::from_file(many(kind, number), "a".into());
        assert_eq!(named.unwrap().headers().sections.len(), 1);
        assert!(mapped(many(kind, number - 2)).is_ok());
    }

    #[test]
    fn a_debug_file_has_no_code() {
        let code = (SHF_ALLOC.0 | SHF_EXECINSTR.0) as u8;
        let read = |kind| {
            let file = file([(kind, ".text.a")].into_iter());
            let flags = (HEADER + 2 * SECTION + 8) as u64;
            file.write_all_at(&[code], flags).unwrap();
            mapped(file).unwrap()
        };
        assert!(read(SHT_NOBITS).headers().is_debug_file);
        assert!(!read(SHT_PROGBITS).headers().is_debug_file);
        assert!(
            !mapped(many((SHT_NOBITS, ".text.a"), 1))
                .unwrap()
                .headers()
                .is_debug_file
        );
    }
}
