//! Breakpoints that stay in programs: after the end of a recording, which looks at its own sites, and later, when all processes are searched.
//!
//! The kernel may fail to remove a breakpoint ("failed to unregister, leaking uprobe"). A program that hits it continues more slowly, or, if
//! the kernel knows nothing of it any more, ends by SIGTRAP. Instructions are restored only where the notes of a recording that has
//! ended name the site, nobody else is known to have it, and the file has the noted instruction there.
//!
//! After the last descriptor is closed, the recorder compares its own sites in all processes that map them. A
//! breakpoint that stays longer than 0.3 s and that no other tracer is known to have is reported, with the kernel's own
//! message. The sites are noted in `/run/usdtrec` before attaching, and the notes are removed when nothing has stayed.
//! So `doctor` knows the sites of killed recorders and restores no others.

mod kernel_log;
mod notes;
mod others;
mod own;
mod restore;
mod scan;

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use usdtrec_format::Arch;
use usdtrec_kernel::host::run_directory::RepairLock;

pub use self::kernel_log::KernelLog;
use self::notes::FoundNotes;
pub use self::notes::{AddedNotes, NotedSite, SiteNotes};
pub use self::others::BreakpointOwner;
pub use self::others::OtherTracers;
pub use self::own::OwnSites;
pub use self::own::{LeftBehind, LeftBreakpoint};
use self::restore::restore;
pub use self::scan::FileSite;

/// Maximum time of the search.
const MAX_SCAN_TIME: Duration = Duration::from_secs(20);
/// How long another repair is waited for, which may have to search as long.
const MAX_REPAIR_TIME: Duration = Duration::from_secs(30);

/// Searches all processes for breakpoints. With `heal`, restores the instructions at sites of recordings that have ended, and removes the
/// notes of these, unless processes could not be looked at. Breakpoints of recordings that run are left out.
///
/// # Errors
/// The error of reading the notes in `/run/usdtrec`.
pub fn left_breakpoints(heal: bool) -> io::Result<LeftBehind> {
    // One that restores at the same time would be taken for another tracer.
    let _lock = heal.then(|| RepairLock::take(MAX_REPAIR_TIME));
    let notes = FoundNotes::all()?;
    let mut left = LeftBehind {
        logged: KernelLog::whole().map(KernelLog::leaks).unwrap_or_default(),
        ..LeftBehind::default()
    };
    let arch = Arch::host().filter(|arch| arch.breakpoint().is_some());
    let Some(arch) = arch else { return Ok(left) };
    let scan = scan::scan(arch, MAX_SCAN_TIME);
    left.unchecked = scan.unchecked;
    if !scan.found.is_empty() {
        let others = OtherTracers::read(&notes);
        let noted = by_site(&notes);
        for found in scan.found {
            let owner = others.owner(found.pid, found.site);
            let is_other_change = owner == BreakpointOwner::Unknown && !found.is_alone;
            if owner == BreakpointOwner::Recording || is_other_change {
                continue;
            }
            let is_ours = heal && owner == BreakpointOwner::EndedRecording;
            let noted = noted.get(&found.site).filter(|_| is_ours);
            left.breakpoints.push(LeftBreakpoint {
                restored: noted
                    .map(|noted| restore(arch, &found, noted).map_err(|error| error.to_string())),
                pid: found.pid,
                offset: found.site.offset,
                path: found.path,
                address: found.address,
                owner,
            });
        }
    }
    let is_left = |left: &LeftBreakpoint| {
        left.owner == BreakpointOwner::EndedRecording && left.restored != Some(Ok(()))
    };
    if heal && !scan.is_incomplete && !left.breakpoints.iter().any(is_left) {
        notes.into_iter().for_each(FoundNotes::remove);
    }
    Ok(left)
}

/// The sites of recordings that have ended.
fn by_site(notes: &[FoundNotes]) -> HashMap<FileSite, &NotedSite> {
    let ended = notes.iter().filter(|notes| !notes.is_live);
    let sites = ended.flat_map(|notes| &notes.sites);
    sites.map(|noted| (noted.site, noted)).collect()
}
