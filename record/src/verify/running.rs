//! What a running process has at the sites of its files, before anything is attached.

use std::cell::OnceCell;

use usdtrec_buildid_cache::FileMapping;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::Site;

use super::expected::{ExpectedSite, SITE_BYTES};
use super::identity::MapIdentity;
use super::look::{address_of, moved_code};
use super::process::ProcessMemory;
use super::words::hex;
use crate::left_breakpoints::{FileSite, OtherTracers};

/// Something about a site in a process that matters to who attaches a probe there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteNote {
    /// The process.
    pub pid: u32,
    /// Address of the site.
    pub address: u64,
    /// What was found, and what follows.
    pub found: String,
}

/// The notes about each of some sites of a file in a process, as far as its memory can be read. A site that is mapped several times has several.
#[must_use]
pub fn notes_of_sites(pid: u32, file: &ObjectFile, sites: &[Site]) -> Vec<Vec<SiteNote>> {
    let none = vec![Vec::new(); sites.len()];
    let process = i32::try_from(pid).ok();
    let memory = process.and_then(|pid| ProcessMemory::open(pid).ok());
    let (Some(memory), Some(arch)) = (memory, file.arch()) else {
        return none;
    };
    if arch.breakpoint().is_none() {
        return none;
    }
    let identity = MapIdentity::of(file.file());
    let maps: Vec<FileMapping> = memory.files().collect();
    let of_file = maps.iter().filter(|map| {
        identity.is_some_and(|identity| identity.is(map.device.major, map.device.minor, map.inode))
    });
    let running = Running {
        pid,
        file,
        of_file: of_file.collect(),
        maps: &maps,
        memory: &memory,
        tracers: OnceCell::new(),
    };
    let notes = sites.iter().map(|site| running.notes(site));
    notes.collect()
}

/// A file in a process.
struct Running<'a> {
    pid: u32,
    file: &'a ObjectFile,
    of_file: Vec<&'a FileMapping>,
    maps: &'a [FileMapping],
    memory: &'a ProcessMemory,
    /// Read when a breakpoint is found.
    tracers: OnceCell<OtherTracers>,
}

impl Running<'_> {
    fn notes(&self, site: &Site) -> Vec<SiteNote> {
        let Some(site) = ExpectedSite::of(self.file, String::new(), site) else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        let mut push = |address, found| {
            notes.push(SiteNote {
                pid: self.pid,
                address,
                found,
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
                push(
                    address,
                    "the code is mapped writable, where the kernel plants no breakpoint: hits there cannot be recorded".to_owned(),
                );
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
            push(
                address,
                "the code is not that of the file, but in memory of no file: hits there cannot be recorded"
                    .to_owned(),
            );
        }
        notes
    }

    /// What is there instead of the file's instruction.
    fn code(&self, site: &ExpectedSite, address: u64) -> Option<String> {
        let found = self.memory.bytes::<SITE_BYTES>(address).ok()?;
        if found.starts_with(&site.original) {
            return None;
        }
        if self.file.arch()?.is_planted(&site.original, &found) {
            let site = FileSite {
                file: self.file.id(),
                offset: site.offset,
            };
            let tracers = self.tracers.get_or_init(OtherTracers::now);
            let owner = tracers.owner(i32::try_from(self.pid).ok()?, site);
            return Some(format!("there is a breakpoint, {owner}"));
        }
        Some(format!(
            "the code is not that of the file: expected {}, found {}",
            hex(&site.original),
            hex(&found)
        ))
    }

    /// Says that a semaphore is raised.
    fn semaphore(&self, site: &ExpectedSite, address: u64) -> Option<String> {
        if site.semaphore == 0 {
            return None;
        }
        let address = site.semaphore_at(self.file, address);
        let is_there = |map: &FileMapping| map.permissions[1] && map.range.contains(&address);
        self.maps.iter().find(|map| is_there(map))?;
        let value = self.memory.bytes::<2>(address).ok()?;
        let value = u16::from_le_bytes(*value.first_chunk()?);
        (value > 0).then(|| format!("its semaphore is {value}: a tracer is attached"))
    }
}
