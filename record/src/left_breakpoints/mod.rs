//! Breakpoints that stay in programs: after the end of a recording, which looks at its own sites, and later, when all processes are searched.
//!
//! The kernel may fail to remove a breakpoint ("failed to unregister, leaking uprobe"). A program that hits it goes on more slowly, or, if
//! the kernel knows nothing of it any more, ends by SIGTRAP. Instructions are restored only where the notes of a recording that has
//! ended name the site, nobody else is known to have it, and the file has the noted instruction there.

mod kernel_log;
mod notes;
mod others;
mod own;
mod scan;

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use usdtrec_format::Arch;

pub(crate) use self::kernel_log::KernelLog;
use self::notes::FoundNotes;
pub(crate) use self::notes::{NotedSite, SiteNotes};
pub use self::others::BreakpointOwner;
pub(crate) use self::others::{FileSite, OtherTracers};
pub(crate) use self::own::OwnSites;
pub use self::own::{LeftBehind, LeftBreakpoint};
use self::scan::FoundBreakpoint;

/// Searches all processes for breakpoints. With `heal`, restores the instructions at sites of recordings that have ended, and removes the
/// notes of these. Breakpoints of recordings that run are left out.
///
/// # Errors
/// The error of reading the notes in `/run/usdtrec`.
pub(crate) fn left_breakpoints(heal: bool) -> io::Result<LeftBehind> {
    let notes = FoundNotes::all()?;
    let mut left = LeftBehind {
        logged: KernelLog::whole().map(KernelLog::leaks).unwrap_or_default(),
        ..LeftBehind::default()
    };
    let arch = Arch::host().filter(|arch| arch.breakpoint().is_some());
    let Some(arch) = arch else { return Ok(left) };
    let scan = scan::scan(arch);
    left.unchecked = scan.unchecked;
    if !scan.found.is_empty() {
        let others = OtherTracers::read(&notes);
        let noted = by_site(&notes);
        for found in scan.found {
            let owner = others.owner(found.pid, found.site);
            if owner == BreakpointOwner::Recording {
                continue;
            }
            let is_ours = heal && owner == BreakpointOwner::EndedRecording;
            let noted = noted.get(&found.site).filter(|_| is_ours);
            left.breakpoints.push(LeftBreakpoint {
                is_restored: noted.is_some_and(|noted| restore(arch, &found, noted).is_ok()),
                pid: found.pid,
                offset: found.site.offset,
                path: found.path,
                address: found.address,
                owner,
            });
        }
    }
    let is_left =
        |left: &LeftBreakpoint| left.owner == BreakpointOwner::EndedRecording && !left.is_restored;
    if heal && !left.breakpoints.iter().any(is_left) {
        notes.into_iter().for_each(FoundNotes::remove);
    }
    Ok(left)
}

/// The sites of recordings that have ended.
fn by_site(notes: &[FoundNotes]) -> HashMap<FileSite, &NotedSite> {
    let ended = notes.iter().filter(|notes| !notes.is_live);
    let sites = ended.flat_map(|notes| &notes.sites);
    sites
        .map(|site| {
            let key = FileSite {
                file: site.file,
                offset: site.offset,
            };
            (key, site)
        })
        .collect()
}

/// Puts the instruction of a site back in the place of a breakpoint. The whole breakpoint is written at once, as the kernel does.
fn restore(arch: Arch, found: &FoundBreakpoint, noted: &NotedSite) -> io::Result<()> {
    let other = || io::Error::other("the site is not as noted");
    let breakpoint = arch.breakpoint().ok_or_else(other)?;
    let original = noted.original.get(..breakpoint.len()).ok_or_else(other)?;
    let mut options = OpenOptions::new();
    let memory = options
        .read(true)
        .write(true)
        .open(format!("/proc/{}/mem", found.pid))?;
    let mut there = vec![0; breakpoint.len()];
    memory.read_exact_at(&mut there, found.address)?;
    if there != breakpoint || original == breakpoint || !is_in_file(found, original) {
        return Err(other());
    }
    memory.write_all_at(original, found.address)
}

/// Whether the mapped file has these bytes at the site.
fn is_in_file(found: &FoundBreakpoint, bytes: &[u8]) -> bool {
    let maps = std::fs::read(format!("/proc/{}/maps", found.pid)).unwrap_or_default();
    let mut maps = usdtrec_buildid_cache::FileMapping::parse_all(&maps);
    let map = maps.find(|map| map.range.contains(&found.address));
    let file = map.and_then(|map| {
        let link = format!("/proc/{}/map_files/{}", found.pid, map.map_files_name());
        File::open(link).ok()
    });
    let mut there = vec![0; bytes.len()];
    file.is_some_and(|file| {
        file.read_exact_at(&mut there, found.site.offset).is_ok() && there == bytes
    })
}
