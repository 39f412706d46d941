//! Notes of the attached sites, for the case that breakpoints stay: a file for each recording below `/run/usdtrec`, which root's recordings
//! have. It is locked while the recorder runs, and removed when nothing has stayed; that of a recorder that was killed is removed at the end of a later
//! recording or by `doctor --heal`, when no process has a breakpoint at its sites any more.
//!
//! A line for each file, and lines of its sites: `file DEVICE INODE PATH`, `site OFFSET BYTES SEMAPHORE`. Paths are escaped as in Rust; SEMAPHORE is a
//! file offset, 0 without one.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use usdtrec_attach::engine::Owner;
use usdtrec_buildid_cache::elf::FileId;
use usdtrec_format::Arch;
use usdtrec_kernel::host::run_directory::RepairLock;
use usdtrec_kernel::host::{capabilities, run_directory};

use super::scan::FileSite;
use super::scan::scan;
use crate::verify::ExpectedFiles;

/// Ending of the names of these files.
const ENDING: &str = ".sites";
/// Maximum length of such a file, bytes.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of notes of recordings that have ended.
const MAX_ENDED: usize = 64;
/// Maximum time of the look at all processes after a recording if there are such notes.
const MAX_SCAN_TIME: Duration = Duration::from_millis(200);
/// How long a recorder waits for the lock of its notes.
const MAX_LOCK_TIME: Duration = Duration::from_secs(1);

/// The notes of this recording.
#[derive(Debug)]
pub struct SiteNotes {
    path: PathBuf,
    /// Locked. Processes that inherit the descriptor hold the lock, too.
    file: File,
    is_kept: bool,
}

/// Adds to the notes of this recording.
#[derive(Debug)]
pub struct AddedNotes(File);

/// A site that notes name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NotedSite {
    /// Where it is.
    pub site: FileSite,
    /// The first bytes in the file.
    pub original: Vec<u8>,
    /// File offset of the semaphore that the kernel counts; 0 without one.
    pub semaphore_offset: u64,
}

/// The notes of a recording of the host.
#[derive(Debug)]
pub struct FoundNotes {
    path: PathBuf,
    /// Whether its recorder still runs.
    pub is_live: bool,
    pub sites: Vec<NotedSite>,
    _lock: File,
}

impl SiteNotes {
    /// Writes the notes: of the sites of these files, and of other locations that may have breakpoints.
    ///
    /// # Errors
    /// The error of creating or writing the file, as for users other than root.
    pub fn write(files: &ExpectedFiles, others: &[NotedSite]) -> io::Result<Self> {
        let directory = run_directory::create()?;
        forget_oldest();
        let path = directory.join(format!("{}{ENDING}", Owner::of_this_process()?));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(&path)?;
        // Removed again if it cannot be written.
        let notes = Self {
            path,
            file,
            is_kept: false,
        };
        // Who reads notes has them locked for a moment. Without the lock the process, which runs, shows that they count.
        let _ = run_directory::lock_within(&notes.file, MAX_LOCK_TIME);
        (&notes.file).write_all(text(files, others).as_bytes())?;
        Ok(notes)
    }

    /// Another handle, by which notes are added.
    ///
    /// # Errors
    /// The error of duplicating the descriptor.
    pub fn adding(&self) -> io::Result<AddedNotes> {
        Ok(AddedNotes(self.file.try_clone()?))
    }

    /// Leaves the notes for a later repair.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl AddedNotes {
    /// Adds notes, as [`SiteNotes::write`].
    ///
    /// # Errors
    /// The error of writing.
    pub fn add(&mut self, files: &ExpectedFiles, others: &[NotedSite]) -> io::Result<()> {
        self.0.write_all(text(files, others).as_bytes())
    }
}

impl Drop for SiteNotes {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl FoundNotes {
    /// The notes of all recordings but this process's.
    ///
    /// # Errors
    /// The error of reading `/run/usdtrec`, unless it does not exist; an error if others than root can access it.
    pub fn all() -> io::Result<Vec<Self>> {
        match run_directory::check() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        }
        let us = Owner::of_this_process()?;
        let own = format!("{us}{ENDING}");
        let mut all = Vec::new();
        for entry in fs::read_dir(run_directory::PATH)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = name.strip_suffix(ENDING).and_then(Owner::parse);
            let Some(owner) = owner.filter(|_| name != own) else {
                continue;
            };
            // It may have been removed meanwhile.
            all.extend(Self::read(&entry.path(), owner.has_ended(&us)).ok());
        }
        Ok(all)
    }

    /// The notes of recordings that have ended; none if they cannot be read.
    fn ended() -> Vec<Self> {
        let mut ended = Self::all().unwrap_or_default();
        ended.retain(|notes| !notes.is_live);
        ended
    }

    /// Reads a file. One of a recorder that has ended is locked as long as a child of it runs. One that its recorder has just created is not locked
    /// yet: the recorder does not wait for whoever reads it.
    fn read(path: &Path, has_ended: bool) -> io::Result<Self> {
        use std::io::Read;
        let mut options = OpenOptions::new();
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = options.read(true).custom_flags(flags).open(path)?;
        let is_live = match file.try_lock_shared() {
            Ok(()) if has_ended => false,
            Ok(()) => {
                file.unlock()?;
                true
            }
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => return Err(error),
        };
        let mut text = String::new();
        (&file).take(MAX_BYTES).read_to_string(&mut text)?;
        Ok(Self {
            path: path.to_owned(),
            is_live,
            sites: parse(&text),
            _lock: file,
        })
    }

    /// Whether one of the breakpoints is at one of these sites.
    fn has_any(&self, found: &HashSet<FileSite>) -> bool {
        self.sites.iter().any(|noted| found.contains(&noted.site))
    }

    /// Removes the notes of a recorder that has ended.
    pub fn remove(self) {
        if !self.is_live {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the notes of recordings that have ended of which no process has a breakpoint any more, unless processes cannot be looked at, or a look
/// at all takes too long.
pub(super) fn forget_settled(arch: Arch) {
    if !capabilities::may_read_processes() {
        return;
    }
    if FoundNotes::ended().is_empty() {
        return;
    }
    // One that restores at the same time needs them.
    let Ok(_lock) = RepairLock::take(Duration::ZERO) else {
        return;
    };
    let mut ended = FoundNotes::ended();
    let scan = scan(arch, MAX_SCAN_TIME);
    if scan.is_incomplete {
        return;
    }
    // Any user's process may have very many.
    let found: HashSet<FileSite> = scan.found.iter().map(|found| found.site).collect();
    ended.retain(|notes| !notes.has_any(&found));
    ended.into_iter().for_each(FoundNotes::remove);
}

/// Removes the oldest notes of recordings that have ended if there are many.
fn forget_oldest() {
    let mut ended = FoundNotes::ended();
    if ended.len() <= MAX_ENDED {
        return;
    }
    let changed = |notes: &FoundNotes| fs::metadata(&notes.path)?.modified();
    ended.sort_by_cached_key(|notes| changed(notes).ok());
    let too_many = ended.len() - MAX_ENDED;
    ended
        .into_iter()
        .take(too_many)
        .for_each(FoundNotes::remove);
}

fn text(files: &ExpectedFiles, others: &[NotedSite]) -> String {
    let mut text = String::new();
    for file in &files.0 {
        let FileId { device, inode } = file.file.id();
        let path = file.path.as_os_str().as_bytes().escape_ascii();
        let _ = writeln!(text, "file {device} {inode} {path}");
        for site in &file.sites {
            write_site(&mut text, site.offset, &site.original, site.ref_ctr);
        }
    }
    for noted in others {
        let FileSite { file, offset } = noted.site;
        let _ = writeln!(text, "file {} {} ", file.device, file.inode);
        write_site(&mut text, offset, &noted.original, noted.semaphore_offset);
    }
    text
}

fn write_site(text: &mut String, offset: u64, original: &[u8], semaphore: u64) {
    let _ = write!(text, "site {offset} ");
    for byte in original {
        let _ = write!(text, "{byte:02x}");
    }
    let _ = writeln!(text, " {semaphore}");
}

/// The sites of notes. Lines that are not whole are skipped.
fn parse(text: &str) -> Vec<NotedSite> {
    let mut sites = Vec::new();
    let mut file = None;
    for line in text.lines() {
        let mut words = line.split(' ');
        let kind = words.next();
        let (first, second) = (words.next(), words.next());
        let number = |word: Option<&str>| word.and_then(|word| word.parse().ok());
        match kind {
            Some("file") => {
                let (device, inode) = (number(first), number(second));
                file = device
                    .zip(inode)
                    .map(|(device, inode)| FileId { device, inode });
            }
            Some("site") => {
                if let (Some(file), Some(offset), Some(original)) =
                    (file, number(first), second.and_then(bytes))
                {
                    sites.push(NotedSite {
                        site: FileSite { file, offset },
                        original,
                        semaphore_offset: number(words.next()).unwrap_or(0),
                    });
                }
            }
            _ => {}
        }
    }
    sites
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.map(byte).collect();
    bytes.filter(|bytes| !bytes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any user's process may have very many breakpoints.
    #[test]
    fn very_many_breakpoints_are_compared_with_notes() {
        let site = |offset| FileSite {
            file: FileId {
                device: 1,
                inode: 2,
            },
            offset,
        };
        let noted = |offset| NotedSite {
            site: site(offset),
            original: Vec::new(),
            semaphore_offset: 0,
        };
        let notes = FoundNotes {
            path: PathBuf::new(),
            is_live: false,
            sites: (0..60_000).map(noted).collect(),
            _lock: File::open("/dev/null").unwrap(),
        };
        let found = |first: u64| (first..first + 60_000).map(site).collect();
        assert!(!notes.has_any(&found(60_000)));
        assert!(notes.has_any(&found(59_999)));
    }

    #[test]
    fn notes_name_sites_and_bad_lines_are_skipped() {
        let file = |device, inode| FileId { device, inode };
        let text = "file 1 2 /a\\nb c\nsite 16 90c3 64\nsite x 90\nsite 17 \nsite 18 9\n\nfile 1 x /b\nsite 19 90\nfile 3 4 \nsite 20 0f1f\nsite";
        let sites = parse(text);
        let expected = [
            (file(1, 2), 16, vec![0x90, 0xc3], 64),
            (file(1, 2), 18, vec![9], 0),
            (file(3, 4), 20, vec![0x0f, 0x1f], 0),
        ];
        let expected = expected.map(|(file, offset, original, semaphore_offset)| NotedSite {
            site: FileSite { file, offset },
            original,
            semaphore_offset,
        });
        assert_eq!(sites, expected);
    }
}
