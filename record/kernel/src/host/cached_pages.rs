//! Pages of files that stay in the page cache while probes are attached to them.
//!
//! When the kernel attaches, it reads the instruction, and in each process the pages of the site and of the semaphore, in which it writes
//! (`copy_insn` and `uprobe_write_opcode`, kernel/events/uprobes.c). It holds `dup_mmap_sem` meanwhile, which each fork of the host needs, and the
//! lock of the process's mappings: a file system that answers late would stop the host as long. So the pages are read before, where nobody but
//! this recorder waits, are kept in memory, and are looked at again before each attaching ([`page_reading`](super::page_reading)).
//!
//! They are mapped shared, which mincore(2) needs. It also reports the pages of an overlay, which `RWF_NOWAIT` and cachestat(2) do not. Nobody
//! reads the mapping, so a file that is cut raises no SIGBUS, and the kernel inserts no breakpoint in it. A file that is read past the page cache
//! (FUSE with direct I/O) has no such mapping. Locked pages are not evicted when memory is short; a file system may still discard them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::param::page_size;

use super::page_reading::{MappedPage, NotCached, PagedFile, bring};

/// Number of bytes that the kernel reads at a site (`MAX_UINSN_BYTES` of x86, the largest).
const INSTRUCTION_BYTES: u64 = 16;

/// The indexes of the pages that the kernel reads when it attaches to a site, by the file offsets of site and semaphore (0 without one).
pub fn of_site(site: u64, semaphore: u64) -> impl Iterator<Item = u64> {
    let size = page_size() as u64;
    let (first, last) = (
        site / size,
        site.saturating_add(INSTRUCTION_BYTES - 1) / size,
    );
    let pages = [
        Some(first),
        (last != first).then_some(last),
        (semaphore != 0).then_some(semaphore / size),
    ];
    pages.into_iter().flatten()
}

/// The pages of a file that are kept.
#[derive(Debug, Default)]
pub struct CachedPages {
    kept: Mutex<HashMap<u64, MappedPage>>,
    /// Whether the user wants to attach without them.
    is_forced: AtomicBool,
}

impl CachedPages {
    /// Brings pages into the page cache, where they are not, and keeps them there. Returns those that are not there, with the reason. Waits for
    /// the file system, but not for long.
    pub fn keep(
        &self,
        file: PagedFile<'_>,
        pages: impl IntoIterator<Item = u64>,
    ) -> BTreeMap<u64, NotCached> {
        let end = file.len.div_ceil(page_size() as u64);
        // Pages of several sites once. The kernel itself refuses what is not in the file.
        let mut pages: BTreeSet<u64> = pages.into_iter().filter(|page| *page < end).collect();
        pages.retain(|page| !self.are_kept(&[*page]));
        let mut absent = BTreeMap::new();
        if pages.is_empty() {
            return absent;
        }
        for (page, result) in bring(file, &pages) {
            match result {
                Ok(Some(kept)) if kept.is_locked => _ = self.kept().insert(page, kept),
                Ok(_) => {}
                Err(reason) => _ = absent.insert(page, reason),
            }
        }
        absent
    }

    /// The first error of [`keep`](Self::keep), unless the user wants to attach all the same: called right before attaching.
    ///
    /// # Errors
    /// A page is not in the page cache.
    pub fn check(
        &self,
        file: PagedFile<'_>,
        pages: impl IntoIterator<Item = u64>,
    ) -> io::Result<()> {
        if self.are_forced() {
            return Ok(());
        }
        let mut pages: Vec<u64> = pages.into_iter().collect();
        pages.dedup();
        if self.are_kept(&pages) {
            return Ok(());
        }
        let absent = self.keep(file, pages).pop_first();
        absent.map_or(Ok(()), |(_, reason)| Err(io::Error::other(reason)))
    }

    /// Whether all of them are there now, and are kept.
    fn are_kept(&self, pages: &[u64]) -> bool {
        let kept = self.kept();
        let mut pages = pages.iter().map(|page| kept.get(page));
        pages.all(|page| page.is_some_and(|page| page.is_cached().unwrap_or(false)))
    }

    /// Keeps none of them any more, so that those of other files can be.
    pub fn free(&self) {
        self.kept().clear();
    }

    /// The user wants to attach without them.
    pub fn force(&self) {
        self.is_forced.store(true, Relaxed);
    }

    /// Whether the user wants that.
    pub fn are_forced(&self) -> bool {
        self.is_forced.load(Relaxed)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<u64, MappedPage>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use usdtrec_buildid_cache::served::Contents;

    use super::*;

    fn file(len: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        file
    }

    #[test]
    fn pages_of_a_site_are_those_of_its_bytes_and_of_its_semaphore() {
        let size = page_size() as u64;
        let pages = |site, semaphore| of_site(site, semaphore).collect::<Vec<_>>();
        assert_eq!(pages(size, 0), [1]);
        assert_eq!(pages(2 * size - 16, 0), [1]);
        assert_eq!(pages(2 * size - 15, 7 * size + 1), [1, 2, 7]);
    }

    /// Pages that were evicted, that a file never had, and that it has no more.
    #[test]
    fn pages_are_kept_as_far_as_the_file_has_them() {
        let size = page_size() as u64;
        let opened = file(4 * size);
        let contents = Contents::Local(opened.try_clone().unwrap());
        opened.write_all_at(&[1; 4096], size).unwrap();
        opened.sync_all().unwrap();
        rustix::fs::fadvise(&opened, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let paged = PagedFile {
            contents: &contents,
            len: 4 * size,
            device: 0,
        };
        let pages = CachedPages::default();
        assert!(pages.keep(paged, [0, 1, 3, 1, 4, 400]).is_empty());
        assert_eq!(pages.kept().len(), 3);
        // They cannot be evicted.
        rustix::fs::fadvise(&opened, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        assert!(pages.are_kept(&[0, 1, 3]));
        opened.set_len(2 * size).unwrap();
        let absent = pages.keep(paged, [0, 1, 3]);
        assert_eq!(absent.into_keys().collect::<Vec<_>>(), [3]);
        assert!(pages.check(paged, [3]).is_err());
        pages.force();
        assert!(pages.check(paged, [3]).is_ok());
        pages.free();
        assert!(pages.kept().is_empty());
    }
}
