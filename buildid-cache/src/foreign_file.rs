//! Files of other hosts in the cache.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::Builder;
use usdtrec_format::BuildId;

use crate::cache::{Cache, CacheError};
use crate::copy;
use crate::elf::ObjectFile;
use crate::store::{AddedFile, TEMPORARY};

impl Cache {
    /// Adds a copy of the program or library that another host has at the absolute path `path`.
    ///
    /// # Errors
    /// [`CacheError::OtherBuildId`] if the copy does not have this build-id; other [`CacheError`]s. The cache is unchanged.
    pub fn import(
        &self,
        path: &Path,
        build_id: BuildId,
        copy: File,
    ) -> Result<AddedFile, CacheError> {
        let file = checked(path, build_id, copy)?;
        let mut scan = file.scan().map_err(CacheError::elf(path))?;
        // The file at this path of this host is another one.
        path.clone_into(&mut scan.binary.path);
        self.add_scan(scan, &file)
    }

    /// Adds the separate file with debugging information of an entry, as `debug` beside its program, where perf and reports look for it.
    ///
    /// # Errors
    /// [`CacheError::NotCached`] without an entry of the program; [`CacheError::OtherBuildId`] if the file does not have this build-id;
    /// [`CacheError::Io`].
    pub fn import_debug_file(
        &self,
        path: &Path,
        build_id: BuildId,
        copied: File,
    ) -> Result<(), CacheError> {
        let file = checked(path, build_id, copied)?;
        let locked = self.lock()?;
        let entry = self.entry(build_id);
        let entry = entry.ok_or_else(|| CacheError::NotCached(path.to_owned()))?;
        let dir = self.make(&locked, &entry.dir)?;
        let stored = || {
            let mut temporary = Builder::new()
                .prefix(TEMPORARY)
                .permissions(Permissions::from_mode(0o644))
                .tempfile_in(dir.path())?;
            copy::copy(&file, temporary.as_file_mut())?;
            let made = temporary.persist(dir.join("debug"));
            made.map(drop).map_err(|error| error.error)
        };
        stored().map_err(CacheError::io(&entry.dir))
    }
}

/// A copy that has the build-id.
fn checked(path: &Path, build_id: BuildId, copy: File) -> Result<ObjectFile, CacheError> {
    let file = ObjectFile::from_file(copy, path.to_owned());
    let file = file.map_err(CacheError::elf(path))?;
    if file.build_id() == Some(build_id) {
        return Ok(file);
    }
    Err(CacheError::OtherBuildId {
        path: path.to_owned(),
        expected: Box::new(build_id),
        found: file.build_id().map(Box::new),
    })
}
