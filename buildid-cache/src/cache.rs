//! The cache directory: where it is, its lock, its entries.
//!
//! Layout, perf's own:
//! ```text
//! DIR/.build-id/28/9ee39f… -> ../../usr/lib/libx.so/289ee39f…     one link a build-id
//! DIR/usr/lib/libx.so/289ee39f…/elf                               the file: a hard link, or a copy
//! DIR/usr/lib/libx.so/289ee39f…/probes                            its probes in perf's words
//! ```
//! perf takes no lock; we take one among ourselves and make every step one that perf can meet at any moment: files
//! come into being by rename, and an entry's link, which makes the entry exist, is made last and removed first.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use usdtrec_format::BuildId;

use crate::elf::ElfError;
use crate::entry::{Entry, Indexed};

/// Name of the lock file in the cache directory.
const LOCK: &str = ".usdtrec-lock";

/// Why the cache could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// Neither an option nor the environment says where the cache is.
    #[error("no build-id cache: give --buildid-dir, or set PERF_BUILDID_DIR or HOME")]
    NoDirectory,
    /// A system call failed.
    #[error("{path}")]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Error.
        #[source]
        source: io::Error,
    },
    /// A file to be added is not one that can be.
    #[error("{path}")]
    Elf {
        /// File.
        path: PathBuf,
        /// Why.
        #[source]
        source: ElfError,
    },
    /// The file has no build-id, which is what the cache goes by.
    #[error(
        "{0}: no build-id, so the cache cannot hold it (link with -Wl,--build-id); its probes are reached by path: sdt_PROVIDER:NAME@{0}"
    )]
    NoBuildId(PathBuf),
    /// A bare name is neither here nor in `PATH`.
    #[error("{0}: not found here or in PATH")]
    NotFound(PathBuf),
    /// Nothing is cached for this file.
    #[error("{0} is not in the cache")]
    NotCached(PathBuf),
}

impl CacheError {
    /// For `map_err`: the path that a system call failed on.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

/// perf's build-id cache.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// The cache at `dir` (option `--buildid-dir`), else at `$PERF_BUILDID_DIR`, else at `$HOME/.debug`. The directory
    /// need not exist yet.
    ///
    /// perf itself reads `buildid.dir` of its configuration file instead of `PERF_BUILDID_DIR`,
    /// which it only sets for the programs that it starts; we do not read that file.
    ///
    /// # Errors
    /// [`CacheError::NoDirectory`].
    pub fn open(dir: Option<&Path>) -> Result<Self, CacheError> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dir = dir
            .map(Path::to_owned)
            .or_else(|| set("PERF_BUILDID_DIR").map(PathBuf::from))
            .or_else(|| set("HOME").map(|home| Path::new(&home).join(".debug")))
            .ok_or(CacheError::NoDirectory)?;
        // An absolute path keeps its meaning when the working directory changes.
        let dir = std::path::absolute(&dir).map_err(CacheError::io(dir))?;
        Ok(Self { dir })
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All entries, ordered by build-id. What is no entry is passed over.
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
                let id = format!("{head}{tail}");
                if is_hex(&tail)
                    && let Ok(id) = id.parse()
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

    /// All indexed binaries, read in parallel, in the order of their build-ids. Of a build-id that stands at
    /// several paths, the one that perf knows comes first.
    ///
    /// One whose file changed since ([`FileState`](crate::elf::FileState)) is among them unless the file that now stands
    /// at its path is indexed too.
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

    /// Takes the lock that all of our changes hold, making the cache directory first if need be.
    pub(crate) fn lock(&self) -> Result<Lock, CacheError> {
        fs::create_dir_all(&self.dir).map_err(CacheError::io(&self.dir))?;
        let path = self.dir.join(LOCK);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            // Another user's lock file in a directory that we share can be locked all the same.
            .or_else(|error| File::open(&path).map_err(|_| error))
            .map_err(CacheError::io(&path))?;
        file.lock().map_err(CacheError::io(&path))?;
        Ok(Lock { _file: file })
    }
}

/// The held lock; the kernel lets go of it when the file is closed, however the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Names in a directory that are text; none if the directory does not exist.
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
