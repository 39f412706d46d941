//! Breakpoints that are at the sites of a process.

use std::io;
use std::path::PathBuf;

use usdtrec_buildid_cache::FileMapping;
use usdtrec_buildid_cache::elf::FileId;

use super::expected::{ExpectedFiles, SITE_BYTES};
use super::process::ProcessMemory;
use super::process::address_of;

/// A site of a process with a breakpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedSite {
    pub file: FileId,
    pub path: PathBuf,
    /// File offset.
    pub offset: u64,
    pub address: u64,
}

impl ExpectedFiles {
    /// The sites in a process that have a breakpoint.
    ///
    /// # Errors
    /// As [`ProcessMemory::open`]; `TimedOut` if the memory cannot be read in time.
    pub fn planted_in(&self, pid: i32) -> io::Result<Vec<PlantedSite>> {
        let memory = ProcessMemory::open(pid)?;
        let maps: Vec<FileMapping> = memory.files().collect();
        let mut planted = Vec::new();
        for file in &self.0 {
            let of_file = maps
                .iter()
                .filter(|map| map.permissions[2])
                .filter(|map| file.is(map) || map.path == file.path);
            for map in of_file {
                let sites = file.sites.iter();
                let addresses =
                    sites.filter_map(|site| Some((site, address_of(map, site.offset)?)));
                for (site, address) in addresses {
                    memory.check_time()?;
                    let found = match memory.bytes::<SITE_BYTES>(address) {
                        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
                        found => found.unwrap_or_default(),
                    };
                    if file.arch.is_planted(&site.original, &found) {
                        planted.push(PlantedSite {
                            file: file.file.id(),
                            path: file.path.clone(),
                            offset: site.offset,
                            address,
                        });
                    }
                }
            }
        }
        Ok(planted)
    }
}
