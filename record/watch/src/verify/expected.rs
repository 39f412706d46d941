//! What must be there in a process for the attached probes to work.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc as Shared, OnceLock};

use usdtrec_attach::select::probe::{PlannedProbe, ref_ctr};
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_buildid_cache::served::{Patience, Reader};
use usdtrec_buildid_cache::{DeviceNumber, FileMapping, MappedInode, file_id};
use usdtrec_format::perf::{Mmap, MmapFile};
use usdtrec_format::{Arch, BuildId, Site};
use usdtrec_kernel::host::identity;
use usdtrec_kernel::host::process::live_directory;

use super::process::ProcessMemory;

/// Number of bytes that are compared at a site: the longest form of an inserted breakpoint.
pub(super) const SITE_BYTES: usize = 6;

/// A file with attached probes.
#[derive(Debug)]
pub struct ExpectedFile {
    pub file: Shared<ObjectFile>,
    pub path: PathBuf,
    build_id: Option<BuildId>,
    pub(super) arch: Arch,
    /// How it appears among the mappings of processes; `None` if that is not known.
    pub(super) identity: Option<MappedInode>,
    pub sites: Vec<ExpectedSite>,
    /// Whether its probes were detached for good.
    is_detached: AtomicBool,
    /// Where its code finds the addresses of semaphores that other files can hide, by their link-time addresses. Read when first needed.
    references: OnceLock<HashMap<u64, u64>>,
}

/// A site with a probe.
#[derive(Debug)]
pub struct ExpectedSite {
    pub(super) event: String,
    /// File offset.
    pub offset: u64,
    /// Link-time address minus file offset.
    delta: u64,
    /// Link-time address of the semaphore; 0 without one.
    pub(super) semaphore: u64,
    /// File offset of the semaphore.
    pub semaphore_offset: u64,
    /// File offset of the semaphore that the kernel counts; 0 without one.
    pub ref_ctr: u64,
    /// The bytes in the file.
    pub original: Vec<u8>,
}

/// The files with attached probes.
#[derive(Debug, Default)]
pub struct ExpectedFiles(pub Vec<Shared<ExpectedFile>>);

/// A mapping that a record reports of a file with probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MappedExpected {
    /// Index of the file.
    pub(super) file: usize,
    /// Whether it has the build-id of the attached file; `None` if that is not known.
    pub(super) has_build_id: Option<bool>,
    /// Whether it is the attached file by its path or inode; else it may be a copy of it.
    pub(super) is_it: bool,
    /// The address of the file's begin, if it were mapped with the code; `None` if no record says it.
    pub(super) base: Option<u64>,
}

impl ExpectedFiles {
    /// The files of attached probes. Probes on machines whose breakpoints are not known are left out.
    pub fn of_probes(probes: &[impl Borrow<PlannedProbe>]) -> Self {
        let mut files: Vec<ExpectedFile> = Vec::new();
        let mut known_sites: HashSet<(usize, u64)> = HashSet::new();
        for probe in probes {
            let probe: &PlannedProbe = probe.borrow();
            let Some(arch) = probe.arch.filter(|arch| arch.breakpoint().is_some()) else {
                continue;
            };
            let known = files.iter().position(|file| file.file == *probe.file());
            let at = known.unwrap_or_else(|| {
                files.push(ExpectedFile {
                    identity: identity::of_file(probe.file()),
                    file: Shared::clone(probe.file()),
                    path: probe.path.clone(),
                    build_id: probe.build_id,
                    arch,
                    sites: Vec::new(),
                    is_detached: AtomicBool::new(false),
                    references: OnceLock::new(),
                });
                files.len() - 1
            });
            let file = &mut files[at];
            for planned in &probe.sites {
                let offset = planned.site.offset.unwrap_or(u64::MAX);
                if known_sites.insert((at, offset)) {
                    let site = ExpectedSite::of_site(&file.file, probe.event(), &planned.site);
                    file.sites.extend(site);
                }
            }
        }
        Self(files.into_iter().map(Shared::new).collect())
    }

    /// These and others, which follow them.
    pub(super) fn with(&self, others: Self) -> Self {
        let files = self.0.iter().cloned();
        Self(files.chain(others.0).collect())
    }

    /// The file of a mapping that a record reports, among those with these indexes; `None` if it is another one.
    pub(super) fn find(&self, among: &[usize], map: &Mmap<'_>) -> Option<MappedExpected> {
        use std::os::unix::ffi::OsStrExt;
        let mut files = among.iter().filter_map(|at| Some((*at, self.0.get(*at)?)));
        files.find_map(|(file, expected)| {
            let is_path = expected.path.as_os_str().as_bytes() == map.path;
            let has_build_id = match map.file {
                MmapFile::BuildId(id) => expected.build_id.map(|expected| expected == id),
                _ => None,
            };
            let is_inode = match map.file {
                MmapFile::Inode {
                    major,
                    minor,
                    inode,
                    ..
                } => {
                    let device = DeviceNumber { major, minor };
                    expected.identity == Some(MappedInode { device, inode })
                }
                _ => false,
            };
            let is_it = is_path || is_inode;
            (is_it || has_build_id == Some(true)).then_some(MappedExpected {
                file,
                has_build_id,
                is_it: is_it && map.is_executable(),
                base: Some(map.start.wrapping_sub(map.offset)),
            })
        })
    }
}

impl ExpectedFile {
    /// Whether a mapping is one of this very file, as far as it is known.
    pub(super) fn is(&self, map: &FileMapping) -> bool {
        !self.is_detached() && self.identity == Some(map.mapped_inode())
    }

    /// Its probes are detached for good: nothing is expected in processes that map it later.
    pub(super) fn detach(&self) {
        self.is_detached.store(true, Ordering::Relaxed);
    }

    /// Whether they are.
    pub(super) fn is_detached(&self) -> bool {
        self.is_detached.load(Ordering::Relaxed)
    }

    /// Where its code finds the addresses of its semaphores.
    pub(super) fn references(&self) -> &HashMap<u64, u64> {
        let semaphores = self.sites.iter().map(|site| site.semaphore);
        self.references
            .get_or_init(|| references_to(&self.file, semaphores))
    }

    /// Whether a process finds this file at its path.
    pub(super) fn is_at_path_of(&self, pid: i32) -> bool {
        let Ok(below) = self.path.strip_prefix("/") else {
            return false;
        };
        let inside = live_directory(pid).join("root").join(below);
        let reader = Reader::of_process(pid, Patience::Usual);
        file_id(&inside, reader) == Some(self.file.id())
    }
}

/// Where the code of a file finds the addresses of semaphores that other files can hide, by their link-time addresses.
pub(super) fn references_to(
    file: &ObjectFile,
    semaphores: impl Iterator<Item = u64>,
) -> HashMap<u64, u64> {
    let semaphores: HashSet<u64> = semaphores.filter(|address| *address != 0).collect();
    // A program whose tables cannot be read finds them in another way.
    file.references_to(&semaphores).unwrap_or_default()
}

/// An address of a program; those of 32-bit programs wrap.
pub(super) fn wrapped(file: &ObjectFile, address: u64) -> u64 {
    match file.is_class64() {
        true => address,
        false => address & 0xffff_ffff,
    }
}

impl ExpectedSite {
    /// `None` if the site is in no segment of the file.
    pub(super) fn of_site(file: &ObjectFile, event: String, site: &Site) -> Option<Self> {
        let offset = site.offset?;
        Some(Self {
            event,
            offset,
            delta: site.pc.wrapping_sub(offset),
            semaphore: site.semaphore,
            semaphore_offset: site.semaphore_offset.unwrap_or(0),
            ref_ctr: ref_ctr(file, site),
            original: file.bytes_at(offset, SITE_BYTES).unwrap_or_default(),
        })
    }

    /// The address of the semaphore in a process in which the site has this address.
    pub(super) fn semaphore_at(&self, file: &ObjectFile, address: u64) -> u64 {
        self.runtime(file, address, self.semaphore)
    }

    /// The address of the semaphore that the code tests: if it is looked up at run time, a symbol of the same name in another file hides that of this
    /// one.
    ///
    /// # Errors
    /// The errors of [`ProcessMemory::bytes`].
    pub(super) fn tested_semaphore(
        &self,
        file: &ObjectFile,
        references: &HashMap<u64, u64>,
        address: u64,
        memory: &ProcessMemory,
    ) -> io::Result<u64> {
        let own = self.semaphore_at(file, address);
        let Some(reference) = references.get(&self.semaphore) else {
            return Ok(own);
        };
        let reference = self.runtime(file, address, *reference);
        let tested = memory.word(reference, file.is_class64())?.unwrap_or(own);
        // The loader may not have written it.
        let is_there = !memory.bytes::<2>(tested)?.is_empty();
        Ok(if is_there { tested } else { own })
    }

    /// A link-time address in a process in which the site has `address`.
    fn runtime(&self, file: &ObjectFile, address: u64, link_time: u64) -> u64 {
        let pc = self.offset.wrapping_add(self.delta);
        wrapped(file, address.wrapping_sub(pc).wrapping_add(link_time))
    }
}

#[cfg(test)]
impl ExpectedFiles {
    /// A file with one site at a file offset.
    pub fn of_site(path: &std::path::Path, offset: u64) -> Self {
        let file = Shared::new(ObjectFile::open(path).unwrap());
        let site = Site {
            pc: offset,
            offset: Some(offset),
            base: 0,
            semaphore: 0,
            semaphore_offset: None,
            args: String::new(),
        };
        let mut expected = ExpectedFile {
            identity: identity::of_file(&file),
            path: file.path().to_owned(),
            build_id: file.build_id(),
            arch: Arch::host().unwrap(),
            file,
            sites: Vec::new(),
            is_detached: AtomicBool::new(false),
            references: OnceLock::new(),
        };
        let site = ExpectedSite::of_site(&expected.file, "sdt_a:b".to_owned(), &site);
        expected.sites.extend(site);
        Self(vec![Shared::new(expected)])
    }
}
