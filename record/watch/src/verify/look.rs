//! One look into a process: what is there is compared with what must be there. No causes are known here, only states.

use std::collections::BTreeMap;
use std::io;

use usdtrec_buildid_cache::FileMapping;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::trace::ShortfallKind;
use usdtrec_kernel::host::process::Page;

use super::expected::{ExpectedFile, ExpectedFiles, ExpectedSite, SITE_BYTES, wrapped};
use super::process::{ProcessMemory, address_of};
use crate::limits::MAX_BASES;
use crate::semaphores::copies::CopiedSemaphore;

/// What a look into a process found.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Number of sites that it maps.
    pub(super) sites: u64,
    pub(super) faults: Vec<SiteFault>,
    /// Its semaphores that the kernel raises for breakpoints.
    pub(super) copied: Vec<CopiedSemaphore>,
}

/// A site that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SiteFault {
    /// Index of the file.
    pub(super) file: usize,
    /// Index of the site in the file.
    pub(super) site: usize,
    pub(super) fault: Fault,
}

/// What makes two faults of a process the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FaultKey {
    pub(super) kind: ShortfallKind,
    pub(super) file: usize,
    site: usize,
}

impl SiteFault {
    /// Whether it is about the semaphore of a file that the process maps more than once.
    pub(super) const fn is_of_copy(&self) -> bool {
        matches!(self.fault, Fault::Semaphore { copies: 2.., .. })
    }

    pub(super) const fn key(&self) -> FaultKey {
        FaultKey {
            kind: self.fault.kind(),
            file: self.file,
            site: self.site,
        }
    }
}

/// What is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// There is no breakpoint.
    NoBreakpoint {
        address: u64,
        /// The bytes that are there.
        found: Vec<u8>,
        /// Whether these are the bytes of the file.
        is_original: bool,
        page: Page,
        is_writable: bool,
        is_shared: bool,
        /// Whether the process may have inherited the perf events that attach it.
        is_inherited: bool,
    },
    /// The semaphore is 0.
    Semaphore {
        address: u64,
        /// The address of the file's own semaphore, if the program tests another one.
        hidden: Option<u64>,
        /// How often the process maps the file.
        copies: usize,
    },
    /// The code is a mapping of another file.
    OtherFile { inode: u64, expected: u64 },
    /// There is other executable memory in the place of the code.
    MovedCode { address: u64 },
}

impl Fault {
    pub(super) const fn kind(&self) -> ShortfallKind {
        match self {
            Self::NoBreakpoint { .. } => ShortfallKind::NoBreakpoint,
            Self::Semaphore { .. } => ShortfallKind::Semaphore,
            Self::OtherFile { .. } => ShortfallKind::OtherFile,
            Self::MovedCode { .. } => ShortfallKind::MovedCode,
        }
    }

    /// The same of a file that the process maps so often.
    fn of_copies(mut self, number: usize) -> Self {
        if let Self::Semaphore { copies, .. } = &mut self {
            *copies = number.max(1);
        }
        self
    }
}

/// How to look into a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looking<'a> {
    pub(super) pid: i32,
    pub(super) files: &'a ExpectedFiles,
    /// Whether its loader has had enough time: a semaphore that two writable mappings may have is final then.
    pub(super) is_settled: bool,
    /// Whether a file with the build-id of the attached one is to be the attached one: the process was named by the user.
    pub(super) is_named: bool,
    /// Whether children of recorded processes inherit the perf events that attach their probes.
    pub(super) inherits: bool,
    /// Indexes of files that the process maps with the same build-id, and those with another one.
    pub(super) same_build: &'a [usize],
    pub(super) other_build: &'a [usize],
}

impl Looking<'_> {
    /// Looks into the process.
    ///
    /// # Errors
    /// `NotFound` if it has ended; `Interrupted` if it changed meanwhile; `TimedOut` if it maps files too often; others of reading its memory.
    pub(super) fn look(self) -> io::Result<Look> {
        let memory = ProcessMemory::open(self.pid)?;
        if memory.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut look = Look::default();
        let maps: Vec<FileMapping> = memory.files().collect();
        let files = self.files.0.iter().enumerate();
        for (at, file) in files.filter(|(_, file)| !file.is_detached()) {
            self.look_at_file(at, file, &maps, &memory, &mut look)?;
        }
        if look.faults.is_empty() || memory.is_unchanged() {
            return Ok(look);
        }
        Err(io::ErrorKind::Interrupted.into())
    }

    fn look_at_file(
        &self,
        number: usize,
        file: &ExpectedFile,
        maps: &[FileMapping],
        memory: &ProcessMemory,
        look: &mut Look,
    ) -> io::Result<()> {
        memory.check_time()?;
        let is_candidate = |map: &&FileMapping| {
            let has_name = || map.path.file_name() == file.path.file_name();
            file.is(map) || map.path == file.path || self.is_copy_meant(number) && has_name()
        };
        let of_file: Vec<&FileMapping> = maps.iter().filter(is_candidate).collect();
        if of_file.is_empty() {
            return Ok(());
        }
        let own: Vec<&FileMapping> = of_file.iter().copied().filter(|map| file.is(map)).collect();
        let first = own.get(..MAX_BASES).unwrap_or(&own);
        let mut is_other = None;
        let mut copied: BTreeMap<u64, CopiedSemaphore> = BTreeMap::new();
        for (at, site) in file.sites.iter().enumerate() {
            memory.check_time()?;
            let copies = own.iter().filter(|map| map.permissions[2]);
            let copies = copies.filter(|map| address_of(map, site.offset).is_some());
            let copies = copies.count();
            let mut push = |fault| {
                look.faults.push(SiteFault {
                    file: number,
                    site: at,
                    fault,
                });
            };
            let mut is_mapped = false;
            let code = of_file.iter().filter(|map| map.permissions[2]);
            for map in code {
                let Some(address) = address_of(map, site.offset) else {
                    continue;
                };
                is_mapped = true;
                memory.check_time()?;
                let found = memory.bytes::<SITE_BYTES>(address)?;
                if file.arch.is_planted(&site.original, &found) {
                    if site.ref_ctr != 0 {
                        let semaphore = copied.entry(site.ref_ctr).or_default();
                        semaphore.file = number;
                        semaphore.offset = site.ref_ctr;
                        semaphore.copies = copies;
                        semaphore.breakpoints = semaphore.breakpoints.saturating_add(1);
                        semaphore.add(site.semaphore_at(&file.file, address));
                    }
                    if let Some(fault) = self.semaphore(file, site, address, maps, memory)? {
                        push(fault.of_copies(copies));
                    }
                } else if file.is(map) {
                    push(self.no_breakpoint(map, site, address, found, memory));
                } else if *is_other.get_or_insert_with(|| self.is_meant(number, file, map)) {
                    push(Fault::OtherFile {
                        inode: map.inode,
                        expected: file.identity.map_or(0, |identity| identity.inode),
                    });
                }
            }
            if is_mapped {
                look.sites += 1;
            } else if let Some(address) = moved_code(&file.file, site, first, memory) {
                look.sites += 1;
                push(Fault::MovedCode { address });
            }
        }
        look.copied.extend(copied.into_values());
        Ok(())
    }

    /// Whether a mapping of another file is one that the recording is meant to have: it is called as the attached file, which the process finds
    /// there, or the process was named and maps a copy of the same build.
    fn is_meant(&self, number: usize, file: &ExpectedFile, map: &FileMapping) -> bool {
        // The report says that it is another version.
        let is_other_version = self.other_build.contains(&number);
        let is_replaced = || map.path == file.path && file.is_at_path_of(self.pid);
        !is_other_version && (self.is_copy_meant(number) || is_replaced())
    }

    /// Whether a copy of a file is meant, too.
    fn is_copy_meant(&self, number: usize) -> bool {
        self.is_named && self.same_build.contains(&number)
    }

    fn no_breakpoint(
        &self,
        map: &FileMapping,
        site: &ExpectedSite,
        address: u64,
        found: Vec<u8>,
        memory: &ProcessMemory,
    ) -> Fault {
        Fault::NoBreakpoint {
            address,
            is_original: found.starts_with(&site.original),
            found,
            page: memory.page(address),
            is_writable: map.permissions[1],
            is_shared: !map.is_private,
            is_inherited: self.inherits,
        }
    }

    /// Why the semaphore of a site is not as it must be.
    fn semaphore(
        &self,
        file: &ExpectedFile,
        site: &ExpectedSite,
        address: u64,
        maps: &[FileMapping],
        memory: &ProcessMemory,
    ) -> io::Result<Option<Fault>> {
        if site.semaphore == 0 {
            return Ok(None);
        }
        let own = site.semaphore_at(&file.file, address);
        let holds =
            |map: &&FileMapping| file.is(map) && address_of(map, site.semaphore_offset).is_some();
        let mut all = maps.iter().filter(holds);
        let is_there = |map: &FileMapping| map.range.contains(&own);
        let Some(there) = all.clone().find(|map| is_there(map)) else {
            return Ok(None);
        };
        // While the loader works, the part that becomes read-only is writable, and may have the same page of the file.
        let is_other_writable =
            all.any(|map| map.permissions[1] && !is_there(map)) && !is_copied(file, site, maps);
        if !self.is_settled && (!there.permissions[1] || is_other_writable) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let tested = site.tested_semaphore(&file.file, file.references(), address, memory)?;
        let found = memory.bytes::<2>(tested)?;
        Ok((found == [0, 0]).then_some(Fault::Semaphore {
            address: tested,
            hidden: (tested != own).then_some(own),
            copies: 1,
        }))
    }
}

/// Whether a process maps the code of a site more than once.
fn is_copied(file: &ExpectedFile, site: &ExpectedSite, maps: &[FileMapping]) -> bool {
    let code = maps
        .iter()
        .filter(|map| map.permissions[2] && file.is(map) && address_of(map, site.offset).is_some());
    code.count() > 1
}

/// Where the code of a site would be, if there is other executable memory. `of_file` are the mappings of its file, none of which has the site; a
/// single one is no program that was loaded, and neither are shared ones, which a recorder has of pages with probes.
pub(super) fn moved_code(
    file: &ObjectFile,
    site: &ExpectedSite,
    of_file: &[&FileMapping],
    memory: &ProcessMemory,
) -> Option<u64> {
    let loaded = of_file.iter().filter(|map| map.is_private);
    if loaded.clone().count() < 2 {
        return None;
    }
    let mut addresses = loaded.map(|map| {
        let distance = site.offset.wrapping_sub(map.offset);
        wrapped(file, map.range.start.wrapping_add(distance))
    });
    addresses.find(|address| memory.has_code(*address))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look into this process.
    fn looking(files: &ExpectedFiles, is_named: bool) -> Looking<'_> {
        Looking {
            pid: std::process::id().cast_signed(),
            files,
            is_settled: true,
            is_named,
            inherits: false,
            same_build: &[],
            other_build: &[],
        }
    }

    /// Any user may map a file so often that a look at all its sites takes minutes.
    #[test]
    fn a_look_that_lasts_too_long_ends() {
        let pid = std::process::id().cast_signed();
        let mut memory = ProcessMemory::open(pid).unwrap();
        let maps: Vec<FileMapping> = memory.files().collect();
        let code = maps.iter().find(|map| map.permissions[2]).unwrap();
        let files = ExpectedFiles::of_site(&code.path, code.offset);
        let looking = looking(&files, true);
        let look = |memory: &ProcessMemory| {
            looking.look_at_file(0, &files.0[0], &maps, memory, &mut Look::default())
        };
        look(&memory).unwrap();
        memory.opened -= std::time::Duration::from_secs(60);
        let error = look(&memory).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    /// A file that was released and is mapped again is no other file than the one with the probes.
    #[test]
    fn nothing_is_expected_of_a_file_whose_probes_are_detached() {
        let pid = std::process::id().cast_signed();
        let memory = ProcessMemory::open(pid).unwrap();
        let code = memory.files().find(|map| map.permissions[2]).unwrap();
        let files = ExpectedFiles::of_site(&code.path, code.offset);
        let looking = looking(&files, false);
        // Other threads may map something meanwhile.
        let look = || (0..100).find_map(|_| looking.look().ok()).unwrap();
        assert_eq!(look().faults.len(), 1);
        files.0[0].detach();
        assert_eq!(look().faults, []);
    }
}
