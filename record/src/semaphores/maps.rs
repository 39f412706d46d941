//! Where a process has mapped a file.

use std::fs;
use std::io;
use std::path::PathBuf;

use usdtrec_buildid_cache::elf::FileId;

use super::file::{CountedFile, Semaphore};

/// A mapping of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    /// File offset of `start`.
    offset: u64,
    is_writable: bool,
    is_executable: bool,
    is_private: bool,
}

/// The mappings of a file in a process.
#[derive(Debug)]
pub(super) struct Maps {
    mappings: Vec<Mapping>,
    page: u64,
}

impl Maps {
    /// Reads them.
    ///
    /// # Errors
    /// The error of reading `/proc/PID/maps`: the process has ended, or may not be read.
    pub(super) fn read(pid: u32, file: &CountedFile) -> io::Result<Self> {
        let text = fs::read(format!("/proc/{pid}/maps"))?;
        let text = String::from_utf8_lossy(&text);
        let id = file.object.id();
        let lines = text.lines().filter_map(|line| parse(line, id.inode));
        let mut mappings: Vec<Mapping> = lines.collect();
        // Files of other file systems have the same inode.
        mappings.retain(|mapping| {
            let link = format!(
                "/proc/{pid}/map_files/{:x}-{:x}",
                mapping.start, mapping.end
            );
            FileId::of(&PathBuf::from(link)).is_none_or(|found| found == id)
        });
        Ok(Self {
            mappings,
            page: rustix::param::page_size() as u64,
        })
    }

    /// The load biases at which the file is mapped.
    pub(super) fn biases(&self, file: &CountedFile) -> Vec<u64> {
        let code = self.mappings.iter().filter(|mapping| mapping.is_executable);
        let biases = code.filter_map(|mapping| {
            file.object
                .load_bias(mapping.start, mapping.offset, self.page)
        });
        let mut biases: Vec<u64> = biases.collect();
        biases.sort_unstable();
        biases.dedup();
        biases
    }

    /// Whether the memory of all semaphores is mapped.
    pub(super) fn has_semaphores(&self, file: &CountedFile, bias: u64) -> bool {
        file.semaphores.iter().all(|semaphore| {
            let address = bias.wrapping_add(semaphore.address);
            self.mappings.iter().any(|mapping| {
                mapping.is_writable
                    && mapping.is_private
                    && (mapping.start..mapping.end).contains(&address)
                    && address - mapping.start + mapping.offset == semaphore.offset
            })
        })
    }

    /// Whether exactly one writable mapping has each semaphore that the kernel may count: the loader is done.
    pub(super) fn is_loaded(&self, file: &CountedFile) -> bool {
        let mut counted = file
            .semaphores
            .iter()
            .filter(|semaphore| semaphore.place.is_some());
        counted.all(|semaphore| {
            let writable = self.mappings.iter().filter(|mapping| {
                mapping.is_writable && mapping.is_private && mapping.has(semaphore.offset)
            });
            writable.count() == 1
        })
    }

    /// The addresses at which the place of a semaphore is mapped.
    pub(super) fn places(&self, semaphore: &Semaphore) -> Vec<u64> {
        let Some(place) = semaphore.place else {
            return Vec::new();
        };
        let mapped = self.mappings.iter().filter(|mapping| mapping.has(place));
        mapped
            .map(|mapping| mapping.start + (place - mapping.offset))
            .collect()
    }
}

impl Mapping {
    /// Whether a file offset is mapped.
    fn has(&self, offset: u64) -> bool {
        offset
            .checked_sub(self.offset)
            .is_some_and(|within| within < self.end - self.start)
    }
}

/// Whether a file offset of a file with this inode is mapped writable at an address.
///
/// # Errors
/// The error of reading `/proc/PID/maps`.
pub(super) fn has(pid: u32, inode: u64, offset: u64, address: u64) -> io::Result<bool> {
    let text = fs::read(format!("/proc/{pid}/maps"))?;
    let text = String::from_utf8_lossy(&text);
    let mut mappings = text.lines().filter_map(|line| parse(line, inode));
    Ok(mappings.any(|mapping| {
        mapping.is_writable
            && (mapping.start..mapping.end).contains(&address)
            && address - mapping.start + mapping.offset == offset
    }))
}

/// A line of `/proc/PID/maps`: `START-END PERMISSIONS OFFSET MAJOR:MINOR INODE PATH`. `None` for other inodes.
fn parse(line: &str, inode: u64) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let permissions = words.next()?.as_bytes();
    let offset = words.next()?;
    let found: u64 = words.nth(1)?.parse().ok()?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mapping = Mapping {
        start: number(start)?,
        end: number(end)?,
        offset: number(offset)?,
        is_writable: permissions.get(1) == Some(&b'w'),
        is_executable: permissions.get(2) == Some(&b'x'),
        is_private: permissions.get(3) == Some(&b'p'),
    };
    (found == inode && mapping.start < mapping.end).then_some(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        let line = "55d3e000-55d3f000 rw-p 00001000 fe:01 1234   /a file with words";
        let mapping = parse(line, 1234).unwrap();
        assert_eq!((mapping.start, mapping.end), (0x55d3_e000, 0x55d3_f000));
        assert!(mapping.is_writable && mapping.is_private && !mapping.is_executable);
        assert!(mapping.has(0x1fff) && !mapping.has(0x2000) && !mapping.has(0xfff));
        assert_eq!(parse(line, 1), None);
        for wrong in ["", "1-2", "55d3f000-55d3e000 rw-p 0 fe:01 1234 /a"] {
            assert_eq!(parse(wrong, 1234), None, "{wrong}");
        }
    }
}
