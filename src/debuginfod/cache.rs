//! The cache of debuginfod's clients: a directory for each build-id, in it `debuginfo`, which is empty if servers do not have it.

use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use usdtrec_format::BuildId;

/// For how long servers are not asked again for what they did not have (`cache_miss_s`).
const MISS_TIME: Duration = Duration::from_secs(600);

/// The cache of this user.
#[derive(Debug)]
pub(super) struct ClientCache(PathBuf);

/// The path of a debug file in the cache.
#[derive(Debug)]
pub(super) struct CachedFile(PathBuf);

impl ClientCache {
    /// `$DEBUGINFOD_CACHE_PATH`, else `~/.debuginfod_client_cache` if it is there, else `debuginfod_client` in `$XDG_CACHE_HOME` or `~/.cache`.
    pub(super) fn from_env() -> Option<Self> {
        let path = |name| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        if let Some(cache) = path("DEBUGINFOD_CACHE_PATH") {
            return Some(Self(cache));
        }
        let home = path("HOME");
        let old = home
            .as_ref()
            .map(|home| home.join(".debuginfod_client_cache"));
        if let Some(old) = old.filter(|old| old.is_dir()) {
            return Some(Self(old));
        }
        let caches = path("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")))?;
        Some(Self(caches.join("debuginfod_client")))
    }

    pub(super) fn file(&self, id: BuildId) -> CachedFile {
        CachedFile(self.0.join(id.to_string()).join("debuginfo"))
    }
}

impl CachedFile {
    /// The file, or `None` if servers do not have it; `None` if servers must be asked.
    pub(super) fn known(&self) -> Option<Option<PathBuf>> {
        let found = self.0.metadata().ok()?;
        if found.len() > 0 {
            return Some(Some(self.0.clone()));
        }
        let age = found.modified().ok()?.elapsed().unwrap_or_default();
        (age < MISS_TIME).then_some(None)
    }

    /// Keeps a file with this build-id. Others see it when it is whole.
    ///
    /// # Errors
    /// The error of reading or writing; `InvalidData` if it has another build-id, or none.
    pub(super) fn keep(&self, mut from: impl Read, id: BuildId) -> io::Result<PathBuf> {
        let dir = self.0.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mut file = tempfile::Builder::new()
            .prefix("debuginfo.")
            .tempfile_in(dir)?;
        io::copy(&mut from, &mut file)?;
        let found = usdtrec_buildid_cache::elf::build_id(file.path());
        let found = found.map_err(|error| invalid(error.to_string()))?;
        if found != Some(id) {
            let found = found.map_or_else(|| "none".to_owned(), |found| found.to_string());
            return Err(invalid(format!(
                "expected a file with build-id {id}, found {found}"
            )));
        }
        // What is there is a miss, which nobody may write.
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        file.persist(&self.0).map_err(|error| error.error)?;
        Ok(self.0.clone())
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
