//! Puts the instruction of a site back in the place of a breakpoint that stayed.
//!
//! The kernel does it itself when the last probe of a site goes: one is attached and removed. So the breakpoint of a tracer that cannot be listed stays.
//! It cannot where the semaphore is 0, because it would have to decrement it ("ref_ctr going negative"): so that is incremented before, since attaching does
//! not where there is a breakpoint. Where the kernel does not restore it all the same, the bytes are written.

use std::io;

use usdtrec_attach::engine::attach_and_remove;
use usdtrec_buildid_cache::FileMapping;
use usdtrec_buildid_cache::process::mapped_handle;
use usdtrec_buildid_cache::served::{Contents, Patience, ProcessFile, read_maps};
use usdtrec_format::Arch;

use super::notes::NotedSite;
use super::scan::FoundBreakpoint;
use crate::verify::address_of;

/// A breakpoint, in the memory of the process that has it.
struct Stayed<'a> {
    breakpoint: &'a [u8],
    original: &'a [u8],
    address: u64,
    /// Memory of the program that ran when it was opened; that of another program cannot be read or written.
    memory: ProcessFile,
    mappings: Vec<FileMapping>,
    /// The mapped file.
    file: Contents,
}

/// Restores the instruction, if the process still has a breakpoint where the notes name one, and nobody else.
///
/// # Errors
/// Another tracer has a breakpoint there, the process or the file is not as noted, or a probe cannot be attached.
pub(super) fn restore(arch: Arch, found: &FoundBreakpoint, noted: &NotedSite) -> io::Result<()> {
    let stayed = Stayed::find(arch, found, noted)?;
    let zero = stayed.zero_semaphore(noted);
    if let Some(semaphore) = zero {
        let one = 1_u16.to_ne_bytes();
        stayed.memory.write_all_at(&one, semaphore)?;
    }
    let attached = attach_and_remove(&stayed.file, noted.site.offset, noted.semaphore_offset);
    if stayed.there()? == stayed.original {
        return Ok(());
    }
    if let Some(semaphore) = zero {
        stayed.memory.write_all_at(&[0, 0], semaphore)?;
    }
    check_alone(attached, zero.is_some())?;
    // The whole breakpoint is written at once, as the kernel does.
    stayed.memory.write_all_at(stayed.original, stayed.address)
}

/// Checks that nobody else has the breakpoint that stayed when a probe was attached and removed. `was_zero`: the kernel may have failed to remove it
/// because of its semaphore.
///
/// # Errors
/// Another tracer has it; the probe could not be attached, so that nobody knows.
fn check_alone(attached: io::Result<()>, was_zero: bool) -> io::Result<()> {
    match attached {
        Ok(()) if was_zero => Ok(()),
        // The kernel refuses a second semaphore of a breakpoint.
        Err(error) if error.raw_os_error() != Some(libc::EINVAL) => Err(error),
        _ => Err(io::Error::other("another tracer has a breakpoint there")),
    }
}

impl<'a> Stayed<'a> {
    fn find(arch: Arch, found: &FoundBreakpoint, noted: &'a NotedSite) -> io::Result<Self> {
        let changed = || io::Error::other("the site differs from what was noted");
        let breakpoint = arch.breakpoint().ok_or_else(changed)?;
        let original = noted.original.get(..breakpoint.len()).ok_or_else(changed)?;
        let pid = u32::try_from(found.pid).map_err(|_| changed())?;
        let memory = ProcessFile::memory(pid, true, Patience::Usual)?;
        let maps = read_maps(pid, Patience::Usual)?;
        let mappings: Vec<FileMapping> = FileMapping::parse_all(&maps).collect();
        let is_code = |map: &&FileMapping| {
            map.permissions[2] && address_of(map, noted.site.offset) == Some(found.address)
        };
        let code = mappings.iter().find(is_code).ok_or_else(changed)?;
        let handle = mapped_handle(pid, code).map_err(io::Error::other)?;
        let id = handle.stat().id;
        let stayed = Self {
            breakpoint,
            original,
            address: found.address,
            memory,
            file: handle.open().map_err(io::Error::other)?,
            mappings,
        };
        let mut in_file = vec![0; original.len()];
        stayed.file.read_exact_at(&mut in_file, noted.site.offset)?;
        let is_noted = id == noted.site.file && in_file == original;
        let is_breakpoint = stayed.there()? == breakpoint && original != breakpoint;
        (is_noted && is_breakpoint)
            .then_some(stayed)
            .ok_or_else(changed)
    }

    fn there(&self) -> io::Result<Vec<u8>> {
        let mut there = vec![0; self.breakpoint.len()];
        self.memory.read_exact_at(&mut there, self.address)?;
        Ok(there)
    }

    /// The address of the site's semaphore that the kernel counts, if it has one and that is 0 in the process.
    fn zero_semaphore(&self, noted: &NotedSite) -> Option<u64> {
        if noted.semaphore_offset == 0 {
            return None;
        }
        let mut mappings = self.mappings.iter();
        let code = mappings.find(|map| map.range.contains(&self.address))?;
        let writable = self.mappings.iter().filter(|map| {
            map.permissions[1] && (map.device, map.inode) == (code.device, code.inode)
        });
        let addresses = writable.filter_map(|map| address_of(map, noted.semaphore_offset));
        let addresses: Vec<u64> = addresses.collect();
        let is_zero = addresses.iter().all(|address| {
            let mut value = [0; 2];
            let read = self.memory.read_exact_at(&mut value, *address);
            read.is_ok() && value == [0, 0]
        });
        // The kernel takes the first mapping.
        addresses.first().copied().filter(|_| is_zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_tracer_is_named_only_where_there_is_one() {
        let refused = |number| Err(io::Error::from_raw_os_error(number));
        let text = |attached, was_zero| check_alone(attached, was_zero).unwrap_err().to_string();
        let another = "another tracer has a breakpoint there";
        assert_eq!(text(Ok(()), false), another);
        assert_eq!(text(refused(libc::EINVAL), true), another);
        let error = check_alone(refused(libc::EPERM), true).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        assert!(check_alone(Ok(()), true).is_ok());
    }
}
