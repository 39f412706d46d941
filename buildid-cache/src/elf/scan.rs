//! Reading the probes of an ELF file.

use std::collections::HashMap;
use std::path::Path;

use usdtrec_format::{Binary, BuildId, Note, NoteError, Probe, Site, notes};

use super::error::ElfError;
use super::headers::{Headers, Segment};
use super::object_file::ObjectFile;

/// What [`scan`] found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The file and its probes.
    pub binary: Binary,
    /// Notes that could not be read. They cost the others nothing.
    pub damaged: Vec<NoteError>,
    /// Whether this is a separate debug file, which repeats the probes of another one and in which
    /// nothing can be planted. Its sites have no file offsets.
    pub debug_file: bool,
}

/// Reads the probes of an ELF file: see [`ObjectFile::open`] for what its path may be, and [`ObjectFile::path`] for what
/// becomes of it.
///
/// Sites are grouped by provider and name in the order of the notes. Addresses are adjusted for prelink:
/// by the difference between the address of section `.stapsdt.base` and the one that the note names.
///
/// # Errors
/// [`ElfError`]; never [`ElfError::DebugFile`], see [`Scan::debug_file`].
pub fn scan(path: &Path) -> Result<Scan, ElfError> {
    ObjectFile::open(path)?.scan()
}

/// As [`scan`], refusing separate debug files and leaving out damaged notes.
///
/// # Errors
/// [`ElfError`].
pub fn read_binary(path: &Path) -> Result<Binary, ElfError> {
    ObjectFile::open(path)?.binary()
}

/// The GNU build-id of an ELF file; `None` if it has none.
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
    pub fn scan(&self) -> Result<Scan, ElfError> {
        scan_object(self)
    }

    /// Reads the probes of a file in which some can be planted, leaving out damaged notes.
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

fn scan_object(object: &ObjectFile) -> Result<Scan, ElfError> {
    let headers = object.headers();
    let mut found = Scan {
        binary: Binary {
            path: object.path().to_owned(),
            build_id: headers.build_id,
            arch: headers.arch,
            probes: Vec::new(),
        },
        damaged: Vec::new(),
        debug_file: headers.is_debug_file(),
    };
    let Some(section) = headers.section(b".note.stapsdt") else {
        return Ok(found);
    };
    if headers.relocatable {
        return Err(ElfError::Relocatable);
    }
    let content = object.notes(section)?;
    let placer = Placer::new(headers, found.debug_file);
    let mut probes = ProbeList::default();
    for note in notes(&content, headers.layout) {
        match note {
            Ok(note) => probes.push(&placer, note),
            Err(error) => found.damaged.push(error),
        }
    }
    found.binary.probes = probes.probes;
    Ok(found)
}

/// Probes in the order of their first note, with an index to find the one that a further note belongs to.
#[derive(Default)]
struct ProbeList {
    probes: Vec<Probe>,
    index: HashMap<(String, String), usize>,
}

impl ProbeList {
    fn push(&mut self, placer: &Placer<'_>, note: Note) {
        let site = placer.site(&note);
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

/// Turns a note's link-time addresses into those of the file.
struct Placer<'a> {
    segments: &'a [Segment],
    /// Address of section `.stapsdt.base`, if there is one.
    base: Option<u64>,
    /// Bits of an address.
    mask: u64,
    debug_file: bool,
}

impl<'a> Placer<'a> {
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

    /// The file offset of an address: of the executable segment that holds it, if any does, else of the first.
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
