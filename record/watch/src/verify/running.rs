//! What a running process has at the sites of its files, before anything is attached.

use std::cell::OnceCell;
use std::collections::HashMap;

use usdtrec_buildid_cache::FileMapping;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::Site;
use usdtrec_kernel::host::identity;

use super::expected::{ExpectedSite, SITE_BYTES, references_to};
use super::fault_words::hex;
use super::look::moved_code;
use super::process::ProcessMemory;
use super::process::address_of;
use crate::left_breakpoints::{BreakpointOwner, FileSite, OtherTracers};

/// Something about a site in a process that matters to who attaches a probe there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteNote {
    /// The process.
    pub pid: u32,
    /// Address of the site.
    pub address: u64,
    /// What was found, and what follows.
    pub found: String,
    /// Whether a recording may have no hits by it; else another one records the site.
    pub is_obstacle: bool,
}

/// What was found of a site.
struct Finding {
    found: String,
    is_obstacle: bool,
}

impl Finding {
    const fn obstacle(found: String) -> Self {
        Self {
            found,
            is_obstacle: true,
        }
    }
}

/// Looks at sites in processes. The other tracers are read once.
#[derive(Debug, Default)]
pub struct RunningSites {
    tracers: OnceCell<OtherTracers>,
}

impl RunningSites {
    /// The notes about each of some sites of a file in a process, as far as its memory can be read. A site that is mapped several times has several.
    #[must_use]
    pub fn notes(&self, pid: u32, file: &ObjectFile, sites: &[Site]) -> Vec<Vec<SiteNote>> {
        let none = vec![Vec::new(); sites.len()];
        let process = i32::try_from(pid).ok();
        let memory = process.and_then(|pid| ProcessMemory::open(pid).ok());
        let (Some(memory), Some(arch)) = (memory, file.arch()) else {
            return none;
        };
        if arch.breakpoint().is_none() {
            return none;
        }
        let identity = identity::of_file(file);
        let maps: Vec<FileMapping> = memory.files().collect();
        let of_file = maps.iter();
        let of_file = of_file.filter(|map| Some(map.mapped_inode()) == identity);
        let running = Running {
            pid,
            file,
            of_file: of_file.collect(),
            memory: &memory,
            references: references_to(file, sites.iter().map(|site| site.semaphore)),
            tracers: &self.tracers,
        };
        let notes = sites.iter().map(|site| running.notes(site));
        notes.collect()
    }
}

/// A file in a process.
struct Running<'a> {
    pid: u32,
    file: &'a ObjectFile,
    of_file: Vec<&'a FileMapping>,
    memory: &'a ProcessMemory,
    /// Where the code finds the addresses of its semaphores.
    references: HashMap<u64, u64>,
    /// Read when they are first needed.
    tracers: &'a OnceCell<OtherTracers>,
}

impl Running<'_> {
    fn notes(&self, site: &Site) -> Vec<SiteNote> {
        let Some(site) = ExpectedSite::of_site(self.file, String::new(), site) else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        let mut push = |address, Finding { found, is_obstacle }| {
            notes.push(SiteNote {
                pid: self.pid,
                address,
                found,
                is_obstacle,
            });
        };
        let code = self.of_file.iter().filter(|map| map.permissions[2]);
        let mut is_mapped = false;
        for map in code {
            let Some(address) = address_of(map, site.offset) else {
                continue;
            };
            is_mapped = true;
            if map.permissions[1] {
                let found = "the code is mapped writable, where the kernel inserts no breakpoint: hits there cannot be recorded";
                push(address, Finding::obstacle(found.to_owned()));
            }
            if let Some(found) = self.code(&site, address) {
                push(address, found);
            }
            if let Some(found) = self.semaphore(&site, address) {
                push(address, found);
            }
        }
        if !is_mapped
            && let Some(address) = moved_code(self.file, &site, &self.of_file, self.memory)
        {
            let found = "the code is not that of the file, but in other memory: hits there cannot be recorded";
            push(address, Finding::obstacle(found.to_owned()));
        }
        notes
    }

    /// What is there instead of the file's instruction, or of the breakpoint of a recording.
    fn code(&self, site: &ExpectedSite, address: u64) -> Option<Finding> {
        let found = self.memory.bytes::<SITE_BYTES>(address).ok()?;
        let is_original = found.starts_with(&site.original);
        if !is_original && !self.is_planted(site, address) {
            return Some(Finding::obstacle(format!(
                "the code is not that of the file: expected {}, found {}",
                hex(&site.original),
                hex(&found)
            )));
        }
        let site = FileSite {
            file: self.file.id(),
            offset: site.offset,
        };
        let tracers = self.tracers.get_or_init(OtherTracers::now);
        let owner = tracers.owner(i32::try_from(self.pid).ok()?, site);
        match (is_original, owner) {
            (false, owner) => Some(Finding {
                found: format!("there is a breakpoint, {owner}"),
                is_obstacle: owner != BreakpointOwner::Recording,
            }),
            (true, BreakpointOwner::Recording) => Some(Finding::obstacle(
                "there is no breakpoint, although a running recording has a probe there: it does not record this process, or the probe does not work in it"
                    .to_owned(),
            )),
            (true, _) => None,
        }
    }

    fn is_planted(&self, site: &ExpectedSite, address: u64) -> bool {
        let found = self.memory.bytes::<SITE_BYTES>(address).unwrap_or_default();
        let arch = self.file.arch();
        let is_planted = arch.is_some_and(|arch| arch.is_planted(&site.original, &found));
        is_planted && !found.starts_with(&site.original)
    }

    /// Says that a semaphore is raised, or is another one than the kernel raises.
    fn semaphore(&self, site: &ExpectedSite, address: u64) -> Option<Finding> {
        if site.semaphore == 0 {
            return None;
        }
        let own = site.semaphore_at(self.file, address);
        let is_there = |map: &&FileMapping| map.permissions[0] && map.range.contains(&own);
        self.of_file.iter().find(|map| is_there(map))?;
        let value = |address| {
            let value = self.memory.bytes::<2>(address).ok()?;
            Some(u16::from_le_bytes(*value.first_chunk()?))
        };
        let tested = site.tested_semaphore(self.file, &self.references, address, self.memory);
        let tested = tested.ok().filter(|tested| *tested != own);
        match (tested, value(own)?) {
            (Some(tested), _) => Some(Finding::obstacle(format!(
                "its code tests a semaphore of another file, at {tested:#x}, which is {}; the kernel raises that of this file at {own:#x}, which is {}",
                value(tested)?,
                value(own)?
            ))),
            (None, 0) => self.is_planted(site, address).then(|| {
                Finding::obstacle("its semaphore is 0 although there is a breakpoint: a program that tests it does not execute the probe"
                    .to_owned())
            }),
            (None, value) => Some(Finding {
                found: format!("its semaphore is {value}: a tracer is attached"),
                is_obstacle: false,
            }),
        }
    }
}
