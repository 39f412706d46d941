//! How a file appears among the mappings of a process.
//!
//! The device and the inode there are not always those of stat(2): btrfs and overlayfs show others. So the file is mapped here, too, and
//! looked up among the own mappings.
//!
//! Whether two open files are one inode, although stat(2) shows two devices.
//!
//! Each mount of an overlay has a device number of its own, so that the containers of one image have as many files as mounts, of which the kernel
//! has one: a probe that is attached in two of them is hit twice. What cannot differ is the page cache: the same page of both files is one frame.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt;

use memmap2::{Mmap, MmapOptions};
use rustix::param::page_size;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_buildid_cache::served::{self, PageTools};
use usdtrec_buildid_cache::{FileMapping, MappedInode};

use super::page_reading::cache_page;

/// A file as `/proc/PID/maps` and MMAP2 records have it; `None` if it cannot be mapped. One that a helper reads is mapped by that, unless it was
/// opened by a mapping.
pub fn of_file(object: &ObjectFile) -> Option<MappedInode> {
    match object.local() {
        Some(file) => of_open(file),
        None => object.mapped().or_else(|| object.contents().mapped_as()),
    }
}

/// Maps an open file to find it; `None` if it cannot be mapped.
pub fn of_open(file: &File) -> Option<MappedInode> {
    // SAFETY: the memory is never read: the mapping is looked up by its address, and removed.
    let mapped = unsafe { MmapOptions::new().len(1).map_copy_read_only(file) }.ok()?;
    let address = mapped.as_ptr() as u64;
    // Reads of a page: std begins with small ones if the length of a file is not known.
    let mut maps = Vec::with_capacity(1 << 14);
    File::open("/proc/self/maps")
        .and_then(|mut file| file.read_to_end(&mut maps))
        .ok()?;
    let mut maps = FileMapping::parse_all(&maps);
    let found = maps.find(|map| map.range.contains(&address))?;
    Some(found.mapped_inode())
}

/// Bits of an entry of `/proc/PID/pagemap` with the number of the frame (Documentation/admin-guide/mm/pagemap.rst). They are 0 without
/// CAP_SYS_ADMIN.
const FRAME: u64 = (1 << 55) - 1;
/// The page is in memory.
const PRESENT: u64 = 1 << 63;
/// Size of an entry, bytes.
const ENTRY_BYTES: u64 = 8;

/// Whether two files are one inode: by device and inode, or, on different devices, by their build-ids and the frame of memory of the first page.
/// Without CAP_SYS_ADMIN the second is not known, and `false`.
pub fn is_same_inode(one: &ObjectFile, other: &ObjectFile) -> bool {
    let may_be = || {
        one.id().device != other.id().device
            && one.build_id().is_some()
            && one.build_id() == other.build_id()
    };
    let is_frame = || match (one.local(), other.local()) {
        (Some(one), Some(other)) => same_frame(one, other),
        // A file that a helper reads is not mapped here.
        _ => one.contents().is_same_page(other.contents()),
    };
    one == other || may_be() && is_frame().is_ok_and(|same| same == Some(true))
}

/// Whether the first page of both files is the same frame; `None` if that is not known.
pub fn same_frame(one: &File, other: &File) -> io::Result<Option<bool>> {
    let pagemap = File::open("/proc/self/pagemap")?;
    let (one, other) = (first_page(one)?, first_page(other)?);
    let before = frame(&pagemap, &one)?;
    let found = frame(&pagemap, &other)?;
    // A page may be evicted and read again into another frame.
    let after = frame(&pagemap, &one)?;
    Ok((before.is_some() && before == after && found.is_some()).then_some(before == found))
}

/// Maps the first page of a file. It is faulted in by the call, so that a file that is cut meanwhile cannot raise SIGBUS.
fn first_page(file: &File) -> io::Result<Mmap> {
    // SAFETY: the memory is never read: only its address is used.
    unsafe {
        MmapOptions::new()
            .len(1)
            .populate()
            .map_copy_read_only(file)
    }
}

/// The frame of a page of this process; `None` if it is not in memory or may not be known.
fn frame(pagemap: &File, page: &Mmap) -> io::Result<Option<u64>> {
    let index = page.as_ptr() as u64 / page_size() as u64;
    let mut entry = [0; ENTRY_BYTES as usize];
    pagemap.read_exact_at(&mut entry, index * ENTRY_BYTES)?;
    let entry = u64::from_ne_bytes(entry);
    Ok((entry & PRESENT != 0 && entry & FRAME != 0).then_some(entry & FRAME))
}

/// Serves files to the recorder that started this process (see [`served`]).
///
/// # Errors
/// Standard input is no socket of a recorder.
pub fn serve_files() -> io::Result<()> {
    // What the recorder inherited from its caller is not this process's. Before Linux 5.9 it stays open.
    // SAFETY: close_range(2) takes integers, and this process has opened nothing yet.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    served::serve(PageTools {
        compare: same_frame,
        cache: cache_page,
        identify: of_open,
    })
}

/// The generation of a file's inode (`i_generation`), by which it differs from a file that had the number before; `None` if its file system does not report it.
pub fn generation(file: &File) -> Option<u64> {
    let mut generation: [libc::c_uint; 2] = [0; 2];
    // SAFETY: file systems store an int, and the request's own type is a long: both have room.
    let failed = unsafe {
        libc::ioctl(
            file.as_raw_fd(),
            libc::FS_IOC_GETVERSION,
            generation.as_mut_ptr(),
        )
    };
    (failed == 0).then(|| generation[0].into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_has_a_generation_where_its_file_system_tells() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let known = generation(file.as_file());
        let again = File::open(file.path()).unwrap();
        assert_eq!(generation(&again), known);
        assert_eq!(generation(&File::open("/proc/self/maps").unwrap()), None);
    }

    #[test]
    fn a_file_is_found_among_mappings() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"x").unwrap();
        let identity = of_open(file.as_file()).unwrap();
        assert_eq!(identity.inode, file.as_file().metadata().unwrap().ino());
    }

    #[test]
    fn a_copy_is_another_inode() {
        let dir = tempfile::tempdir().unwrap();
        let (one, copy) = (dir.path().join("one"), dir.path().join("copy"));
        fs::write(&one, [7; 5000]).unwrap();
        fs::copy(&one, &copy).unwrap();
        let open = |path| File::open(path).unwrap();
        let of_copy = same_frame(&open(&one), &open(&copy)).unwrap();
        assert_ne!(of_copy, Some(true));
        let known = same_frame(&open(&one), &open(&one)).unwrap();
        if rustix::process::geteuid().is_root() {
            assert_eq!(known, Some(true));
        } else {
            assert_eq!(known, None);
        }
        fs::write(&copy, "").unwrap();
        let empty = same_frame(&open(&one), &open(&copy));
        assert!(!empty.is_ok_and(|same| same == Some(true)));
    }
}
