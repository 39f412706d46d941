//! The cache directory: its location, its lock, its entries.
//!
//! perf's layout:
//! ```text
//! DIR/.build-id/28/9ee39f… -> ../../usr/lib/libx.so/289ee39f…     one link per build-id
//! DIR/usr/lib/libx.so/289ee39f…/elf                               the file: a hard link, or a copy
//! DIR/usr/lib/libx.so/289ee39f…/probes                            its probes in perf's text form
//! ```
//! perf takes no lock. usdtrec locks the cache against other usdtrec processes, and perf can read it after each step of a change: files
//! are created by rename, and the link, without which an entry does not exist, is created last and removed first.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use usdtrec_format::escape::shown;
use usdtrec_format::{BuildId, Probe};

use rustix::process::geteuid;

use crate::directory::Directory;
use crate::elf::ElfError;
use crate::entry::{Entry, Indexed};
use crate::lock::Lock;

/// Error of reading or changing the cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// Neither an option nor the environment names the cache's directory.
    #[error("no build-id cache: neither PERF_BUILDID_DIR nor HOME is set")]
    NoDirectory,
    /// This process runs as root, and another user can change the cache.
    #[error(
        "{}: root does not use a build-id cache that {why}, because that user could choose what is recorded and removed",
        shown(.dir)
    )]
    Untrusted {
        /// Directory.
        dir: PathBuf,
        /// Who can change it, as the continuation of "a cache that".
        why: String,
    },
    /// A directory to be removed has files that neither perf nor usdtrec created.
    #[error("{}: not removed, because it has a file that does not belong to the cache: {name}", shown(.dir), name = shown(.name))]
    Foreign {
        /// Directory.
        dir: PathBuf,
        /// Name of the first such file.
        name: PathBuf,
    },
    /// A symbolic link takes the place of a directory of the cache.
    #[error("{}: not removed, because a component of the path is a symbolic link", shown(.0))]
    Elsewhere(PathBuf),
    /// A system call failed.
    #[error("{}", shown(.path))]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Error.
        #[source]
        source: io::Error,
    },
    /// A file cannot be added.
    #[error("{}", shown(.path))]
    Elf {
        /// File.
        path: PathBuf,
        /// Why.
        #[source]
        source: ElfError,
    },
    /// The file has no build-id, by which the cache identifies files.
    #[error(
        "{}: no build-id, which the cache needs (link with -Wl,--build-id)",
        shown(.0)
    )]
    NoBuildId(PathBuf),
    /// The copy of a file does not have the build-id that it is to be stored under.
    #[error(
        "{}: expected build-id {expected}, found {}",
        shown(.path),
        .found.as_ref().map_or_else(|| "no build-id".to_owned(), |id| id.to_string())
    )]
    OtherBuildId {
        /// Path of the file on its host.
        path: PathBuf,
        /// The expected build-id.
        expected: Box<BuildId>,
        /// The build-id in the file.
        found: Option<Box<BuildId>>,
    },
    /// A name without a slash was not found.
    #[error("{}: not found in the working directory, in PATH or as a library", shown(.0))]
    NotFound(PathBuf),
    /// The cache has no entry for this file.
    #[error("{} is not in the cache", shown(.0))]
    NotCached(PathBuf),
}

impl CacheError {
    /// Whether something was not removed because it does not belong to the cache.
    pub(crate) const fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign { .. } | Self::Elsewhere(_))
    }

    /// For `map_err`: adds the path to the error of a system call.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// For `map_err`: adds the path to the error of an ELF file.
    pub(crate) fn elf(path: impl Into<PathBuf>) -> impl FnOnce(ElfError) -> Self {
        let path = path.into();
        move |source| Self::Elf { path, source }
    }
}

/// perf's build-id cache.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
    is_of_home: bool,
    waiting: LockWaitCallback,
}

/// Called when the cache's lock was not free for a second: with the cache's directory and, if known, the id of the process that holds the lock.
pub type LockWaitCallback = fn(&Path, Option<u32>);

impl Cache {
    /// The cache at `dir` , else at `$PERF_BUILDID_DIR`, else at `$HOME/.debug`. The directory
    /// need not exist yet.
    ///
    /// perf itself reads `buildid.dir` of its configuration file instead of `PERF_BUILDID_DIR`,
    /// which it only sets for the programs that it starts; we do not read that file.
    ///
    /// # Errors
    /// [`CacheError::NoDirectory`]; [`CacheError::Untrusted`] if we are root and another user could change it.
    pub fn open(dir: Option<&Path>) -> Result<Self, CacheError> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let chosen = dir
            .map(Path::to_owned)
            .or_else(|| set("PERF_BUILDID_DIR").map(PathBuf::from));
        let is_of_home = chosen.is_none();
        let dir = chosen
            .or_else(|| set("HOME").map(|home| Path::new(&home).join(".debug")))
            .ok_or(CacheError::NoDirectory)?;
        // An absolute path keeps its meaning when the working directory changes.
        let dir = std::path::absolute(&dir).map_err(CacheError::io(dir))?;
        if let Ok(metadata) = fs::metadata(&dir) {
            check_trust(&dir, &metadata)?;
        }
        Ok(Self {
            dir,
            is_of_home,
            waiting: |_, _| {},
        })
    }

    /// Sets a function to call when the lock is not free.
    #[must_use]
    pub const fn on_lock_wait(mut self, waiting: LockWaitCallback) -> Self {
        self.waiting = waiting;
        self
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether it is that of the user's home, because none was chosen.
    #[must_use]
    pub const fn is_of_home(&self) -> bool {
        self.is_of_home
    }

    /// All entries, ordered by build-id. Other files in the directory are ignored.
    ///
    /// # Errors
    /// [`CacheError::Io`] if a directory that exists cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, CacheError> {
        let ids = self.dir.join(".build-id");
        let mut entries = Vec::new();
        for head in names(&ids)? {
            if !is_hex(&head) || head.len() != 2 {
                continue;
            }
            for tail in names(&ids.join(&head))? {
                if let Some(id) = BuildId::from_link_name(&head, &tail)
                    && let Some(entry) = self.entry(id)
                {
                    entries.push(entry);
                }
            }
        }
        entries.sort_unstable_by_key(|entry| entry.build_id);
        Ok(entries)
    }

    /// The entry of a build-id.
    #[must_use]
    pub fn entry(&self, build_id: BuildId) -> Option<Entry> {
        Entry::read(&self.dir, build_id)
    }

    /// All indexed binaries, in the order of their build-ids. They are read in parallel. Of several paths with the same build-id,
    /// the one of perf's link comes first.
    ///
    /// A binary whose file changed since ([`FileState`](crate::elf::FileState)) is included unless the current file at its path is
    /// indexed, too.
    ///
    /// # Errors
    /// As [`entries`](Self::entries).
    pub fn binaries(&self) -> Result<Vec<Indexed>, CacheError> {
        let entries = self.entries()?;
        let mut found: Vec<Indexed> = entries.par_iter().flat_map_iter(Entry::load).collect();
        let current: std::collections::HashSet<PathBuf> = found
            .iter()
            .filter(|indexed| indexed.is_current())
            .map(|indexed| indexed.binary.path.clone())
            .collect();
        found.retain(|indexed| indexed.is_current() || !current.contains(&indexed.binary.path));
        Ok(found)
    }

    /// The probes of all entries by perf's texts, which have no sites. No file outside the cache is read.
    ///
    /// # Errors
    /// As [`entries`](Self::entries).
    pub fn named_probes(&self) -> Result<Vec<Probe>, CacheError> {
        let entries = self.entries()?;
        Ok(entries
            .iter()
            .flat_map(|entry| entry.text().probes())
            .collect())
    }

    /// Creates its directory if necessary. As perf's, it is not for others to write, whatever the umask: root would not use it.
    ///
    /// # Errors
    /// The error of `mkdir(2)`.
    pub fn make_dir(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&self.dir)
    }

    /// Takes the lock for changes. Creates the cache directory if necessary.
    pub(crate) fn lock(&self) -> Result<Locked, CacheError> {
        self.make_dir().map_err(CacheError::io(&self.dir))?;
        let root = Directory::open(&self.dir).map_err(CacheError::io(&self.dir))?;
        let metadata = root.metadata().map_err(CacheError::io(&self.dir))?;
        check_trust(&self.dir, &metadata)?;
        let waiting = |holder| (self.waiting)(&self.dir, holder);
        let lock = Lock::take(&root, waiting).map_err(CacheError::io(&self.dir))?;
        Ok(Locked { root, _lock: lock })
    }
}

/// The open cache directory, with its lock held.
#[derive(Debug)]
pub(crate) struct Locked {
    /// The directory.
    pub(crate) root: Directory,
    _lock: Lock,
}

/// Refuses, for root, a cache that another user owns or can write: its contents determine what is recorded and removed.
fn check_trust(dir: &Path, metadata: &Metadata) -> Result<(), CacheError> {
    match distrust(metadata) {
        None => Ok(()),
        Some(why) => Err(CacheError::Untrusted {
            dir: dir.to_owned(),
            why,
        }),
    }
}

/// Why root does not trust the contents of a file or directory: another user owns it or can write it. `None` if it does, or if we are not
/// root.
#[must_use]
pub fn distrust(metadata: &Metadata) -> Option<String> {
    let (owner, group, mode) = (metadata.uid(), metadata.gid(), metadata.mode());
    if !geteuid().is_root() {
        None
    } else if owner != 0 {
        Some(format!("belongs to user {owner}"))
    } else if mode & 0o002 != 0 {
        Some("every user can write".to_owned())
    } else if mode & 0o020 != 0 && group != 0 {
        Some(format!("group {group} can write"))
    } else {
        None
    }
}

/// The UTF-8 names in a directory; empty if the directory does not exist.
fn names(dir: &Path) -> Result<Vec<String>, CacheError> {
    let read = match fs::read_dir(dir) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        outcome => outcome.map_err(CacheError::io(dir))?,
    };
    let names = read.filter_map(Result::ok);
    Ok(names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect())
}

/// Whether a name consists of lower-case hexadecimal digits, as perf's directories are named.
pub(crate) fn is_hex(name: &str) -> bool {
    name.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
