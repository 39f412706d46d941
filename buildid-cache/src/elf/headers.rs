//! The headers of an ELF file, independent of class and byte order: type, segments, sections and build-id.

use std::fs::File;
use std::os::unix::fs::FileExt;

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
use super::note_sections;
use super::section::Section;

/// Maximum size of a section that is read, bytes. libjvm's notes have 60 KB; a larger size means a damaged or hostile file.
pub(super) const SECTION_LIMIT: u64 = 64 << 20;
/// Maximum number of program or section headers. Programs with a section for each function have tens of thousands; a file with more than
/// 65,279 has the number in its first section header (ELF gABI, `e_shnum`).
const MAX_HEADERS: u64 = 1 << 20;
/// Maximum number of `PT_LOAD` segments that are searched for each site. Programs have up to a dozen.
const MAX_SEGMENTS: usize = 256;
/// Number of bytes at the beginning of a file that are read at once: the header, the program headers, and usually the build-id.
const BEGINNING: usize = 1024;

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
    /// Sections.
    pub(super) sections: Vec<Section>,
    /// Where the file may have SDT notes.
    pub(super) notes: Vec<Section>,
    /// GNU build-id.
    pub(super) build_id: Option<BuildId>,
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
    pub(super) fn read(file: &File, len: u64) -> Result<Self, ElfError> {
        let mut beginning = [0; BEGINNING];
        let count = file.read_at(&mut beginning, 0)?;
        let beginning = beginning.get(..count).unwrap_or_default();
        let Some(ident) = beginning.first_chunk::<6>() else {
            return Err(ElfError::NotElf("shorter than an ELF header"));
        };
        if ident[..4] != elf::ELFMAG {
            return Err(ElfError::NotElf("no ELF magic"));
        }
        let positioned = Positioned {
            file,
            len,
            beginning,
            at: 0,
        };
        match ident[4] {
            1 => Self::parse::<FileHeader32<Endianness>>(positioned),
            2 => Self::parse::<FileHeader64<Endianness>>(positioned),
            class => Err(ElfError::Header(format!(
                "ELF class {class}, expected 1 or 2"
            ))),
        }
    }

    fn parse<Elf: FileHeader<Endian = Endianness>>(file: Positioned<'_>) -> Result<Self, ElfError> {
        let cache = ReadCache::new(file);
        let data = &cache;
        let header = Elf::parse(data)?;
        let endian = header.endian()?;
        let class64 = header.is_class_64();
        let big_endian = header.is_big_endian();
        check_count("program headers", header.phnum(endian, data)? as u64)?;
        check_count("section headers", header.shnum(endian, data)? as u64)?;
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
        let names = section_names(header, endian, data, section_headers)?;
        let sections = section_headers.iter();
        let sections: Vec<Section> = sections
            .map(|section| neutral_section::<Elf>(section, endian, names))
            .collect();
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
            notes: match sections.len() {
                0 => note_sections::of_segments::<Elf>(program_headers, endian),
                _ => note_sections::of_sections(&sections),
            },
            sections,
            build_id: build_id.found,
            tables: [
                (header.e_phoff(endian).into(), size_of_val(program_headers)),
                (header.e_shoff(endian).into(), size_of_val(section_headers)),
                dynamic_section::<Elf>(program_headers, endian),
            ],
        })
    }

    /// The section of this name.
    pub(super) fn section(&self, name: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Whether the file is a separate debug file, whose code sections have no content. It repeats the notes of its program.
    pub(super) fn is_debug_file(&self) -> bool {
        let mut code = self.sections.iter().filter(|section| section.code);
        let has_code = code.clone().next().is_some();
        has_code && code.all(|section| section.no_bits)
    }
}

/// Refuses more than [`MAX_HEADERS`] headers of a kind.
fn check_count(what: &str, count: u64) -> Result<(), ElfError> {
    if count <= MAX_HEADERS {
        return Ok(());
    }
    Err(ElfError::Header(format!(
        "{count} {what}, expected at most {MAX_HEADERS}"
    )))
}

/// A reader with a position of its own, independent of the file descriptor's.
#[derive(Debug)]
struct Positioned<'a> {
    file: &'a File,
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
    /// Remaining number of bytes that may be read. Note segments can overlap, and all data read stays in memory until the end.
    room: u64,
}

impl<Elf: FileHeader> BuildIdFinder<Elf> {
    fn new(endian: Elf::Endian) -> Self {
        Self {
            endian,
            found: None,
            room: SECTION_LIMIT,
        }
    }

    /// Searches one range of notes, unless the build-id is already known. A damaged note ends the search of the range without an error.
    fn search<'data>(
        &mut self,
        data: impl ReadRef<'data>,
        offset: u64,
        size: u64,
        align: <Elf as FileHeader>::Word,
    ) {
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
    if size > SECTION_LIMIT {
        return Err(ElfError::Header(format!(
            "section names claim {size} bytes"
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

fn neutral_section<Elf: FileHeader>(
    header: &Elf::SectionHeader,
    endian: Elf::Endian,
    names: &[u8],
) -> Section {
    let name = names
        .get(header.sh_name(endian) as usize..)
        .unwrap_or_default();
    // No section that is searched for has a longer name; a hostile table could give many sections one long name.
    let name = &name[..name.len().min(64)];
    let end = name
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(name.len());
    let flags: u64 = header.sh_flags(endian).0;
    let code = SHF_ALLOC.0 | SHF_EXECINSTR.0;
    Section {
        name: name[..end].to_vec(),
        kind: header.sh_type(endian).0,
        address: header.sh_addr(endian).into(),
        offset: header.sh_offset(endian).into(),
        size: header.sh_size(endian).into(),
        no_bits: header.sh_type(endian) == SHT_NOBITS,
        code: flags & code == code,
        compressed: flags & SHF_COMPRESSED.0 != 0,
    }
}
