//! A page of a file that is mapped to find out whether it is in the page cache, and to keep it there.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use memmap2::{Mmap, MmapOptions};
use rustix::param::page_size;

/// Maximum number of pages that are kept, of all files: they are locked memory. Others are looked at only.
const MAX_KEPT: usize = 4096;

/// Number of pages that are kept.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// A shared mapping of a page of a file.
#[derive(Debug)]
pub struct MappedPage {
    map: Mmap,
    /// Whether it is locked, and counted in [`KEPT`].
    pub is_locked: bool,
}

impl MappedPage {
    /// Maps a page; with `populates`, also reads it into the page cache: that of tmpfs has no page for what was never written until it is mapped,
    /// and that of 9p may not have what was read by read(2).
    pub fn new(file: &File, page: u64, populates: bool) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        options.offset(page * page_size() as u64).len(page_size());
        if populates {
            options.populate();
        }
        // SAFETY: the memory is never read: only its address is used.
        let map = unsafe { options.map(file) }?;
        Ok(Self {
            map,
            is_locked: false,
        })
    }

    /// Whether the page is in the page cache, and up to date. Who neither owns the file nor may write to it is told that it is (mincore(2)).
    pub fn is_cached(&self) -> io::Result<bool> {
        let mut state = 0;
        // SAFETY: the mapping is one page, for which the kernel writes one byte.
        let failed = unsafe {
            libc::mincore(
                self.map.as_ptr().cast_mut().cast(),
                page_size(),
                &raw mut state,
            )
        };
        match failed {
            0 => Ok(state & 1 != 0),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Locks the page in memory, if there is room. Without permission for it (RLIMIT_MEMLOCK) it may be evicted.
    pub fn lock(&mut self) {
        self.is_locked = true;
        if KEPT.fetch_add(1, Relaxed) < MAX_KEPT {
            let _ = self.map.lock();
        } else {
            self.unlock();
        }
    }

    fn unlock(&mut self) {
        if std::mem::take(&mut self.is_locked) {
            KEPT.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for MappedPage {
    fn drop(&mut self) {
        self.unlock();
    }
}
