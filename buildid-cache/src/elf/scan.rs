//! Reads the probes of an ELF file.

use std::collections::HashMap;
use std::path::Path;

use usdtrec_format::{Binary, BuildId, Note, NoteError, Probe, Site, notes};

use super::error::ElfError;
use super::headers::{Headers, SECTION_LIMIT, Segment};
use super::object_file::ObjectFile;
use super::section::{Section, USUAL};

/// Maximum size of the notes that are read of a file that nobody named, bytes: any user can map any file. Those of QEMU, which has thousands of probes,
/// have less than 1 MiB.
pub const NOTE_BYTES: u64 = 8 << 20;

/// The probes found in a file, and the notes that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeScan {
    /// The file and its probes.
    pub binary: Binary,
    /// Errors of notes that could not be read. Other notes are not affected.
    pub damaged: Vec<NoteError>,
    /// Whether the file is a separate debug file, which repeats the probes of its program. Its sites have no file offsets, and probes
    /// cannot be attached to it.
    pub debug_file: bool,
}

/// Some of the probes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialScan {
    /// These probes.
    pub scan: ProbeScan,
    /// Whether all notes were read.
    pub is_whole: bool,
}

/// Reads the probes of an ELF file. [`ObjectFile::open`] describes how the path is resolved, [`ObjectFile::path`] which path the result has.
///
/// Sites are grouped by provider and name in the order of the notes. Addresses are adjusted for prelink, by the difference between the
/// address of section `.stapsdt.base` and the base address in the note.
///
/// # Errors
/// [`ElfError`]; never [`ElfError::DebugFile`], see [`ProbeScan::debug_file`].
pub fn scan(path: &Path) -> Result<ProbeScan, ElfError> {
    ObjectFile::open(path)?.scan()
}

/// As [`scan`], but refuses separate debug files and omits damaged notes.
///
/// # Errors
/// [`ElfError`].
pub fn read_binary(path: &Path) -> Result<Binary, ElfError> {
    ObjectFile::open(path)?.binary()
}

/// The GNU build-id of an ELF file; `None` if the file has none.
///
/// # Errors
/// [`ElfError`].
pub fn build_id(path: &Path) -> Result<Option<BuildId>, ElfError> {
    Ok(ObjectFile::open(path)?.build_id())
}

impl ObjectFile {
    /// Reads the probes.
    ///
    /// # Errors
    /// [`ElfError`].
    pub fn scan(&self) -> Result<ProbeScan, ElfError> {
        Ok(self.collect(None, usize::MAX, |_, _| true)?.scan)
    }

    /// Reads the probes, omitting damaged notes.
    ///
    /// # Errors
    /// [`ElfError`], [`ElfError::DebugFile`] for a separate debug file.
    pub fn binary(&self) -> Result<Binary, ElfError> {
        let scan = self.scan()?;
        if scan.debug_file {
            return Err(ElfError::DebugFile);
        }
        Ok(scan.binary)
    }
}

impl ObjectFile {
    /// Reads the probes that `keep` wants, by provider and name, of at most `room` bytes of notes.
    ///
    /// # Errors
    /// As [`Self::scan`].
    pub fn scan_within(
        &self,
        room: u64,
        keep: impl FnMut(&str, &str) -> bool,
    ) -> Result<PartialScan, ElfError> {
        /// Maximum number of damaged notes that are kept.
        const DAMAGED: usize = 64;
        self.collect(Some(room), DAMAGED, keep)
    }

    /// Reads the probes that `keep` wants, and up to so many damaged notes. `room` is that of [`Self::for_each_note`].
    fn collect(
        &self,
        room: Option<u64>,
        damaged: usize,
        mut keep: impl FnMut(&str, &str) -> bool,
    ) -> Result<PartialScan, ElfError> {
        let headers = self.headers();
        let mut scan = ProbeScan {
            binary: Binary {
                path: self.path().to_owned(),
                build_id: headers.build_id,
                arch: headers.arch,
                probes: Vec::new(),
            },
            damaged: Vec::new(),
            debug_file: headers.is_debug_file,
        };
        let mut probes = ProbeList::default();
        let is_whole = self.for_each_note(room, |note| match note {
            Ok((note, site)) => {
                if keep(&note.provider, &note.name) {
                    probes.push(note, site);
                }
            }
            Err(error) if scan.damaged.len() < damaged => scan.damaged.push(error),
            Err(_) => {}
        })?;
        scan.binary.probes = probes.probes;
        Ok(PartialScan { scan, is_whole })
    }

    /// Calls `each` with each note and its site, in the order of the file. With `room` no more than so many bytes of notes
    /// are read; without, a section with more than 64 MiB is an error. Returns whether all notes were read.
    ///
    /// # Errors
    /// [`ElfError`].
    pub fn for_each_note(
        &self,
        room: Option<u64>,
        mut each: impl FnMut(Result<(Note, Site), NoteError>),
    ) -> Result<bool, ElfError> {
        let headers = self.headers();
        let resolver = SiteResolver::new(headers, headers.is_debug_file);
        for part in self.probe_notes(room) {
            if headers.relocatable {
                return Err(ElfError::Relocatable);
            }
            let NotePart { content, is_cut } = part?;
            for note in notes(&content, headers.layout) {
                each(note.map(|note| {
                    let site = resolver.site(&note);
                    (note, site)
                }));
            }
            if is_cut {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Probes in the order of their first note, with an index by provider and name.
#[derive(Default)]
struct ProbeList {
    probes: Vec<Probe>,
    index: HashMap<(String, String), usize>,
}

impl ProbeList {
    fn push(&mut self, note: Note, site: Site) {
        let key = (note.provider, note.name);
        if let Some(&at) = self.index.get(&key) {
            self.probes[at].sites.push(site);
            return;
        }
        self.index.insert(key.clone(), self.probes.len());
        let (provider, name) = key;
        self.probes.push(Probe {
            provider,
            name,
            sites: vec![site],
        });
    }
}

/// Converts the addresses of a note: adjusts them for prelink and finds their file offsets.
struct SiteResolver<'a> {
    segments: &'a [Segment],
    /// Address of section `.stapsdt.base`, if there is one.
    base: Option<u64>,
    /// Mask of address bits.
    mask: u64,
    debug_file: bool,
}

impl<'a> SiteResolver<'a> {
    fn new(headers: &'a Headers, debug_file: bool) -> Self {
        Self {
            segments: &headers.segments,
            base: headers.section(b".stapsdt.base").map(|base| base.address),
            mask: if headers.layout.class64 {
                u64::MAX
            } else {
                u64::from(u32::MAX)
            },
            debug_file,
        }
    }

    fn site(&self, note: &Note) -> Site {
        let shift = match self.base {
            Some(base) if note.base != 0 => base.wrapping_sub(note.base),
            _ => 0,
        };
        let pc = note.pc.wrapping_add(shift) & self.mask;
        let semaphore = match note.semaphore {
            0 => 0,
            address => address.wrapping_add(shift) & self.mask,
        };
        Site {
            pc,
            base: note.base,
            semaphore,
            offset: self.offset(pc, 1),
            semaphore_offset: (semaphore != 0)
                .then(|| self.offset(semaphore, 2))
                .flatten(),
            args: note.args.clone(),
        }
    }

    /// The file offset of an address, from an executable segment if possible, else from the first segment that has it.
    fn offset(&self, address: u64, len: u64) -> Option<u64> {
        if self.debug_file {
            return None;
        }
        let holding = || {
            self.segments
                .iter()
                .filter_map(|segment| Some((segment, segment.file_offset(address, len)?)))
        };
        holding()
            .find(|(segment, _)| segment.executable)
            .or_else(|| holding().next())
            .map(|(_, offset)| offset)
    }
}

impl ObjectFile {
    /// Whether a note section is large enough for a probe, as its header says: nothing is read. Those of most files, which have a build-id and
    /// properties, are not.
    #[must_use]
    pub fn may_have_probes(&self) -> bool {
        /// Header and owner of a note, and the ends of provider, name and arguments, bytes.
        const MIN_BYTES: u64 = 12 + 8 + 3;
        let address = if self.is_class64() { 8 } else { 4 };
        let mut notes = self.headers().notes.iter();
        notes.any(|section| section.size >= MIN_BYTES + 3 * address)
    }

    /// Size of the sections that may have notes of probes, as their headers say, bytes.
    #[must_use]
    pub fn note_bytes(&self) -> u64 {
        let sizes = self.headers().notes.iter().map(|section| section.size);
        sizes.fold(0, u64::saturating_add)
    }

    /// The contents of the sections that have SDT notes, of at most `room` bytes in all: what is beyond is cut off. Without `room` the
    /// limit is [`SECTION_LIMIT`], and an error. What cannot be read is left out, unless it is the usual section.
    fn probe_notes(&self, room: Option<u64>) -> impl Iterator<Item = Result<NotePart, ElfError>> {
        let mut left = room.unwrap_or(SECTION_LIMIT);
        self.headers().notes.iter().filter_map(move |section| {
            let is_usual = section.name == USUAL;
            let is_cut = room.is_some() && section.size > left && self.has(section);
            let size = if is_cut { left } else { section.size };
            match self.content(
                &Section {
                    size,
                    ..section.clone()
                },
                left,
            ) {
                Ok(content) => {
                    left -= size;
                    let has_owner = || content.windows(8).any(|bytes| bytes == b"stapsdt\0");
                    (is_usual || has_owner()).then_some(Ok(NotePart { content, is_cut }))
                }
                Err(error) => is_usual.then_some(Err(error)),
            }
        })
    }
}

/// The content of a section with notes, or its beginning.
struct NotePart {
    content: Vec<u8>,
    is_cut: bool,
}
