//! Breakpoints in the code of all processes.
//!
//! Only pages of executable private file mappings that the process has copied can have one. These are found by `/proc/PID/pagemap`, and
//! compared with the file.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use usdtrec_attach::places::{Account, account_of};
use usdtrec_buildid_cache::FileMapping;
use usdtrec_buildid_cache::elf::FileId;
use usdtrec_buildid_cache::process::mapped_handle;
use usdtrec_buildid_cache::served::{Contents, Patience, ProcessFile, read_maps};
use usdtrec_format::Arch;
use usdtrec_kernel::host::capabilities::may_read_processes;
use usdtrec_kernel::host::process::{Page, Process};

use crate::limits::check_time;

/// Maximum number of breakpoints of a scan. Those of the processes of an account are never more than what is left for all others.
const MAX_BREAKPOINTS: usize = 1 << 16;
/// Number of entries of a pagemap that are read at once.
const ENTRIES: usize = 8192;

/// A site of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileSite {
    /// The file.
    pub file: FileId,
    /// File offset.
    pub offset: u64,
}

/// A breakpoint in the code of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundBreakpoint {
    pub(super) pid: i32,
    pub(super) path: PathBuf,
    pub(super) site: FileSite,
    pub(super) address: u64,
    /// Whether only breakpoints were changed in its page; else the program may have changed it itself, as loaders of old libraries do.
    pub(super) is_alone: bool,
}

/// The breakpoints that were found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) found: Vec<FoundBreakpoint>,
    /// Number of processes that could not be read, or not in time.
    pub(super) unchecked: usize,
    /// Whether another look could read some of them. It could not read those that a security module keeps from everybody.
    pub(super) is_incomplete: bool,
}

/// Scans all processes but this one, for at most so long. `arch` has the breakpoints.
pub(super) fn scan(arch: Arch, time: Duration) -> Scan {
    let mut scan = Scan::default();
    let deadline = Instant::now() + time;
    let own = std::process::id();
    let may_read = may_read_processes();
    let pids = Process::all().into_iter().flatten();
    let pids = pids.map(|process| process.pid);
    let mut accounts: HashMap<Option<Account>, usize> = HashMap::new();
    for pid in pids.filter(|pid| pid.unsigned_abs() != own) {
        let before = scan.found.len();
        // Few processes have any.
        let account = || account_of(pid.unsigned_abs());
        let room = || room(before, accounts.get(&account()).copied().unwrap_or(0));
        let read = process(pid, arch, deadline, &room, &mut scan.found);
        if scan.found.len() > before {
            *accounts.entry(account()).or_default() += scan.found.len() - before;
        }
        match read {
            Err(error) if is_unchecked(&error) => {
                scan.unchecked += 1;
                scan.is_incomplete |= error.kind() == io::ErrorKind::TimedOut || !may_read;
            }
            // It has ended.
            Ok(()) | Err(_) => {}
        }
    }
    scan
}

/// Whether a process stays that could not be read.
pub(super) fn is_unchecked(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::TimedOut
    )
}

/// How many breakpoints of a process may be found, if there are so many of all processes, and of those of its account.
const fn room(all: usize, own: usize) -> usize {
    MAX_BREAKPOINTS.saturating_sub(all + own) / 2
}

/// The process says how much of its memory there is to read, and what there is: it is read until the deadline only, and as long as there is `room`.
fn process(
    pid: i32,
    arch: Arch,
    deadline: Instant,
    room: &dyn Fn() -> usize,
    found: &mut Vec<FoundBreakpoint>,
) -> io::Result<()> {
    let mut most = None;
    check_time(deadline)?;
    let number = u32::try_from(pid).map_err(|_| io::ErrorKind::NotFound)?;
    let maps = read_maps(number, Patience::Usual)?;
    let mut code = FileMapping::parse_all(&maps)
        .filter(|map| map.permissions[2])
        .peekable();
    if code.peek().is_none() {
        return Ok(());
    }
    let memory = ProcessFile::memory(number, false, Patience::Usual)?;
    let pagemap = ProcessFile::page_map(number, Patience::Usual)?;
    for map in code {
        // A shared mapping has no copies.
        let copies = copied_pages(&pagemap, &map, deadline)?;
        if copies.is_empty() {
            continue;
        }
        let handle = match mapped_handle(number, &map) {
            Err(error) if error.is_timeout() => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => continue,
            Ok(handle) => handle,
        };
        let id = handle.stat().id;
        let Ok(file) = handle.open() else {
            continue;
        };
        for page in copies {
            check_time(deadline)?;
            let offset = map.offset + (page - map.range.start);
            let changes = changes(arch, &memory, page, &file, offset)?;
            let number = changes.breakpoints.len();
            let before = found.len();
            if number > 0 && before + number > *most.get_or_insert_with(|| before + room()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            for at in changes.breakpoints {
                found.push(FoundBreakpoint {
                    pid,
                    path: map.display_path(),
                    site: FileSite {
                        file: id,
                        offset: offset + at,
                    },
                    address: page + at,
                    is_alone: !changes.has_others,
                });
            }
        }
    }
    Ok(())
}

/// The addresses of the pages of a mapping that are not the file's.
fn copied_pages(
    pagemap: &ProcessFile,
    map: &FileMapping,
    deadline: Instant,
) -> io::Result<Vec<u64>> {
    let size = rustix::param::page_size() as u64;
    let mut copied = Vec::new();
    let mut entries = vec![0; 8 * ENTRIES];
    let mut at = map.range.start;
    while at < map.range.end {
        check_time(deadline)?;
        let pages = ((map.range.end - at) / size).min(ENTRIES as u64) as usize;
        let entries = entries.get_mut(..8 * pages).unwrap_or_default();
        let read = pagemap.read_at(entries, at / size * 8)? / 8;
        if read == 0 {
            break;
        }
        for entry in entries.chunks_exact(8).take(read) {
            let entry = entry
                .first_chunk()
                .map_or(0, |entry| u64::from_ne_bytes(*entry));
            if Page::from_entry(entry) == Page::Private {
                copied.push(at);
            }
            at += size;
        }
    }
    Ok(copied)
}

/// What a page has that the file does not have.
#[derive(Debug, Default)]
struct Changes {
    /// Where in the page there are breakpoints.
    breakpoints: Vec<u64>,
    has_others: bool,
}

fn changes(
    arch: Arch,
    memory: &ProcessFile,
    page: u64,
    file: &Contents,
    offset: u64,
) -> io::Result<Changes> {
    let mut there = vec![0; rustix::param::page_size()];
    let mut original = there.clone();
    // What cannot be read has no breakpoint, unless it could be read later.
    let len = |read: io::Result<usize>| match read {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
        read => Ok(read.unwrap_or(0)),
    };
    let read = len(memory.read_at(&mut there, page))?;
    there.truncate(read);
    let read = len(file.read_at(&mut original, offset))?;
    original.truncate(read);
    let mut changes = Changes::default();
    let Some(breakpoint) = arch.breakpoint() else {
        return Ok(changes);
    };
    let step = breakpoint.len();
    let pairs = there.chunks_exact(step).zip(original.chunks_exact(step));
    for (at, (there, _)) in pairs.enumerate().filter(|(_, (a, b))| a != b) {
        match there == breakpoint {
            true => changes.breakpoints.push((at * step) as u64),
            false => changes.has_others = true,
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use memmap2::MmapOptions;

    use super::*;

    /// Whatever the processes of one account have, those of the next one are found, too.
    #[test]
    fn no_account_has_all_breakpoints_of_a_scan() {
        let (mut all, mut own) = (0, 0);
        for _ in 0..100 {
            let more = room(all, own);
            (all, own) = (all + more, own + more);
        }
        assert!((MAX_BREAKPOINTS / 2 - 1..=MAX_BREAKPOINTS / 2).contains(&own));
        assert!(room(all, 0) >= MAX_BREAKPOINTS / 4);
    }

    /// Any user may map a file with a size that takes minutes to read.
    #[test]
    fn a_large_mapping_is_read_until_the_deadline() {
        let file = File::open("/proc/self/exe").unwrap();
        // SAFETY: The memory is not read.
        let map = unsafe {
            MmapOptions::new()
                .len(1 << 43)
                .no_reserve_swap()
                .map_copy(&file)
        };
        let map = map.unwrap().make_exec().unwrap();
        let deadline = Instant::now() + Duration::from_millis(50);
        let own = std::process::id().cast_signed();
        let read = process(own, Arch::X86_64, deadline, &|| 1, &mut Vec::new());
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(map);
    }
}
