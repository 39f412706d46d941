//! What of an ELF file matters here, free of class and byte order: its kind, segments, sections and build-id.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use object::elf::{
    self, ELF_NOTE_GNU, ET_REL, FileHeader32, FileHeader64, NT_GNU_BUILD_ID, PF_W, PF_X, PT_LOAD,
    PT_NOTE, SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS, SHT_NOTE,
};
use object::endian::Endianness;
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};
use rustix::fs::OFlags;
use usdtrec_format::{Arch, BuildId, NoteLayout};

use super::ElfError;

/// Largest section that is read, bytes. libjvm's notes are 60 KB; a greater claim is a damaged or hostile file.
const SECTION_LIMIT: u64 = 64 << 20;
/// `PT_LOAD` segments that are looked at for each site. Programs have up to a dozen.
const MOST_SEGMENTS: usize = 256;

/// An open ELF file. Only headers and note sections are read (never mapped: a file that
/// shrinks while we look at it must not kill us with SIGBUS).
#[derive(Debug)]
pub(super) struct Image {
    file: File,
    /// File length, bytes.
    pub(super) len: u64,
    /// Architecture, if known.
    pub(super) arch: Option<Arch>,
    /// Whether it is a relocatable object (`ET_REL`), whose addresses mean nothing yet.
    pub(super) relocatable: bool,
    /// Class and byte order.
    pub(super) layout: NoteLayout,
    /// `PT_LOAD` segments.
    pub(super) segments: Vec<Segment>,
    /// Sections.
    pub(super) sections: Vec<Section>,
    /// GNU build-id.
    pub(super) build_id: Option<BuildId>,
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

/// A section.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) name: Vec<u8>,
    pub(super) address: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    /// Whether it has no content in the file (`SHT_NOBITS`).
    pub(super) no_bits: bool,
    /// Whether it is loaded code (`SHF_ALLOC` and `SHF_EXECINSTR`).
    pub(super) code: bool,
}

impl Segment {
    /// The file offset of a span of `len` bytes at an address, if the segment's file content holds all of it.
    pub(super) fn file_offset(&self, address: u64, len: u64) -> Option<u64> {
        let within = address.checked_sub(self.address)?;
        (within.checked_add(len)? <= self.file_size)
            .then(|| self.offset.checked_add(within))
            .flatten()
    }

    /// Whether the address lies in the segment's memory.
    pub(super) fn holds(&self, address: u64) -> bool {
        address
            .checked_sub(self.address)
            .is_some_and(|within| within < self.memory_size)
    }
}

impl Image {
    /// Opens a regular file and reads its headers.
    pub(super) fn open(path: &Path) -> Result<Self, ElfError> {
        // Opening a device may do things, and opening a FIFO that nobody writes would wait for ever.
        if !std::fs::metadata(path)?.is_file() {
            return Err(ElfError::NotElf("not a regular file"));
        }
        let file = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed())
            .open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(ElfError::NotElf("not a regular file"));
        }
        let mut ident = [0; 6];
        match file.read_exact_at(&mut ident, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(ElfError::NotElf("shorter than an ELF header"));
            }
            outcome => outcome?,
        }
        if ident[..4] != elf::ELFMAG {
            return Err(ElfError::NotElf("no ELF magic"));
        }
        match ident[4] {
            1 => Self::parse::<FileHeader32<Endianness>>(file, metadata.len()),
            2 => Self::parse::<FileHeader64<Endianness>>(file, metadata.len()),
            class => Err(ElfError::Header(format!(
                "ELF class {class}, expected 1 or 2"
            ))),
        }
    }

    fn parse<Elf: FileHeader<Endian = Endianness>>(file: File, len: u64) -> Result<Self, ElfError> {
        let cache = ReadCache::new(file);
        let data = &cache;
        let header = Elf::parse(data)?;
        let endian = header.endian()?;
        let class64 = header.is_class_64();
        let big_endian = header.is_big_endian();
        let program_headers = header.program_headers(endian, data)?;
        let section_headers = header.section_headers(endian, data)?;
        let mut build_id = BuildIdFinder::<Elf>::new(endian);
        for segment in program_headers {
            if segment.p_type(endian) == PT_NOTE {
                let (offset, size) = segment.file_range(endian);
                build_id.look(data, offset, size, segment.p_align(endian));
            }
        }
        for section in section_headers {
            if section.sh_type(endian) == SHT_NOTE
                && let Some((offset, size)) = section.file_range(endian)
            {
                build_id.look(data, offset, size, section.sh_addralign(endian));
            }
        }
        let names = section_names(header, endian, data, section_headers)?;
        let image = ImageParts {
            arch: Arch::from_elf(header.e_machine(endian).0, class64, big_endian),
            relocatable: header.e_type(endian) == ET_REL,
            layout: NoteLayout {
                class64,
                big_endian,
            },
            segments: load_segments::<Elf>(program_headers, endian),
            sections: section_headers
                .iter()
                .map(|section| neutral_section::<Elf>(section, endian, names))
                .collect(),
            build_id: build_id.found,
        };
        Ok(image.with_file(cache.into_inner(), len))
    }

    /// The section of this name.
    pub(super) fn section(&self, name: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// A section's content.
    pub(super) fn content(&self, section: &Section) -> Result<Vec<u8>, ElfError> {
        let end = section.offset.checked_add(section.size);
        if section.no_bits || section.size > SECTION_LIMIT || end.is_none_or(|end| end > self.len) {
            return Err(ElfError::Header(format!(
                "section {} claims {} bytes at offset {:#x} of a file of {} bytes",
                String::from_utf8_lossy(&section.name),
                section.size,
                section.offset,
                self.len
            )));
        }
        let mut content = vec![0; section.size as usize];
        self.file.read_exact_at(&mut content, section.offset)?;
        Ok(content)
    }

    /// Up to `N` bytes of the file at an offset, fewer at its end.
    pub(super) fn bytes_at<const N: usize>(&self, offset: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; N];
        let mut filled = 0;
        while filled < N {
            match self
                .file
                .read_at(&mut bytes[filled..], offset + filled as u64)
            {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Whether the file is a separate debug file: its code has no content. Such a file repeats the notes of
    /// the program that it belongs to.
    pub(super) fn is_debug_file(&self) -> bool {
        let mut code = self.sections.iter().filter(|section| section.code);
        let none = code.clone().next().is_none();
        !none && code.all(|section| section.no_bits)
    }
}

/// An [`Image`] without its file, which the parser borrows until it is done.
struct ImageParts {
    arch: Option<Arch>,
    relocatable: bool,
    layout: NoteLayout,
    segments: Vec<Segment>,
    sections: Vec<Section>,
    build_id: Option<BuildId>,
}

impl ImageParts {
    fn with_file(self, file: File, len: u64) -> Image {
        Image {
            file,
            len,
            arch: self.arch,
            relocatable: self.relocatable,
            layout: self.layout,
            segments: self.segments,
            sections: self.sections,
            build_id: self.build_id,
        }
    }
}

/// Looks for the GNU build-id in note segments and sections: owner `GNU` *and* type 3 (SDT notes are of type 3 too).
struct BuildIdFinder<Elf: FileHeader> {
    endian: Elf::Endian,
    found: Option<BuildId>,
    /// Bytes of notes that may still be read: runs may overlap, and what was read stays in memory until all is.
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

    /// Looks through one run of notes, unless the build-id was found before. Damaged notes end the run silently:
    /// they are not what is looked for.
    fn look<'data>(
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

/// The GNU build-id in a run of notes of this machine's byte order.
pub(super) fn build_id_of_notes(notes: &[u8]) -> Option<BuildId> {
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

/// The section name table's bytes; empty where the file has none.
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
        .take(MOST_SEGMENTS)
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

fn neutral_section<Elf: FileHeader>(
    header: &Elf::SectionHeader,
    endian: Elf::Endian,
    names: &[u8],
) -> Section {
    let name = names
        .get(header.sh_name(endian) as usize..)
        .unwrap_or_default();
    let end = name
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(name.len());
    let flags: u64 = header.sh_flags(endian).0;
    let code = SHF_ALLOC.0 | SHF_EXECINSTR.0;
    Section {
        // Names longer than this are none that we look for; a hostile table could repeat one at length.
        name: name[..end.min(64)].to_vec(),
        address: header.sh_addr(endian).into(),
        offset: header.sh_offset(endian).into(),
        size: header.sh_size(endian).into(),
        no_bits: header.sh_type(endian) == SHT_NOBITS,
        code: flags & code == code,
    }
}
