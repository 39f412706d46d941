//! Changes of the cache: add, update, remove, purge.
//!
//! Steps of adding a file, under the lock:
//! 1. create its directory, and remove unfinished files of killed processes;
//! 2. link or copy the file to a temporary name and rename it to `elf`;
//! 3. write the probes to a temporary name and rename it to `probes`;
//! 4. create the build-id's link by rename. From now on the entry exists.
//!
//! Removing takes the steps in reverse. Nothing is synced to disk: after a power loss the cache may have to be rebuilt.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::Builder;
use usdtrec_format::{BuildId, NoteError};

use crate::cache::{Cache, CacheError, Locked, is_hex};
use crate::copy;
use crate::directory::Directory;
use crate::elf::{self, ElfError, FileId, FileState, ObjectFile, ProbeScan};
use crate::entry::{Entry, link_path};
use crate::find_file::{self, resolve};
use crate::probes_text::ProbesText;

/// Prefix of the names of unfinished files, which perf ignores.
pub(crate) const TEMPORARY: &str = ".usdtrec-";

/// A file that was added to the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedFile {
    /// Path of the file, with all links resolved.
    pub path: PathBuf,
    /// Build-id.
    pub build_id: BuildId,
    /// Number of probes.
    pub probes: usize,
    /// Number of sites of all probes.
    pub sites: usize,
    /// Errors of notes that could not be read.
    pub damaged: Vec<NoteError>,
    /// Whether the cache already had this build-id at this path.
    pub known: bool,
}

impl Cache {
    /// Adds a file, found as [`locate`](crate::find_file::locate) does. A file without probes is added as well, as perf does.
    ///
    /// # Errors
    /// [`CacheError`]; the cache is unchanged.
    pub fn add(&self, name: &Path) -> Result<AddedFile, CacheError> {
        let file = find_file::open(name)?;
        let scan = scan_for(&file)?;
        self.add_scan(scan, &file)
    }

    /// Replaces the entry of a file's current build-id. Entries of its earlier build-ids are kept.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn update(&self, name: &Path) -> Result<AddedFile, CacheError> {
        let file = find_file::open(name)?;
        let scan = scan_for(&file)?;
        self.put(scan, &file, Copies::Replace)
    }

    /// Adds a file whose probes were already read.
    ///
    /// # Errors
    /// [`CacheError`]; the cache is unchanged.
    pub fn add_scan(&self, scan: ProbeScan, file: &ObjectFile) -> Result<AddedFile, CacheError> {
        self.put(scan, file, Copies::Keep)
    }

    fn put(
        &self,
        scan: ProbeScan,
        file: &ObjectFile,
        copies: Copies,
    ) -> Result<AddedFile, CacheError> {
        let path = scan.binary.path.clone();
        let Some(build_id) = scan.binary.build_id else {
            return Err(CacheError::NoBuildId(path));
        };
        let locked = self.lock()?;
        let mut paths = self
            .entry(build_id)
            .map_or_else(Vec::new, |old| old.paths());
        paths.retain(|old| *old == path || is_current(old, build_id));
        if !paths.contains(&path) {
            paths.push(path.clone());
        }
        let known = self.write_entry(&locked, &scan, file, &paths, copies)?;
        Ok(AddedFile {
            path,
            build_id,
            probes: scan.binary.probes.len(),
            sites: scan
                .binary
                .probes
                .iter()
                .map(|probe| probe.sites.len())
                .sum(),
            damaged: scan.damaged,
            known,
        })
    }

    /// Removes the entry of a file's current build-id, with all its paths. Returns the build-id.
    ///
    /// # Errors
    /// [`CacheError::NotCached`] if there is no entry.
    pub fn remove(&self, name: &Path) -> Result<BuildId, CacheError> {
        let file = find_file::open(name)?;
        let path = file.path().to_owned();
        let build_id = file
            .build_id()
            .ok_or_else(|| CacheError::NotCached(path.clone()))?;
        let locked = self.lock()?;
        let entry = self
            .entry(build_id)
            .ok_or_else(|| CacheError::NotCached(path.clone()))?;
        self.remove_entry(&locked, &entry)?;
        self.remove_dir(&locked, &self.entry_dir(&path, build_id))?;
        Ok(build_id)
    }

    /// Removes all entries of a path, which need not exist any more. Returns their build-ids.
    ///
    /// # Errors
    /// [`CacheError::NotCached`] if there is no entry.
    pub fn purge(&self, path: &Path) -> Result<Vec<BuildId>, CacheError> {
        let absolute = std::path::absolute(path).map_err(CacheError::io(path))?;
        let resolved = resolve(path).unwrap_or_else(|_| absolute.clone());
        let mut gone = Vec::new();
        let locked = self.lock()?;
        for path in [&resolved, &absolute] {
            for build_id in self.build_ids_at(path) {
                self.forget_path(&locked, build_id, path)?;
                gone.push(build_id);
            }
        }
        if gone.is_empty() {
            return Err(CacheError::NotCached(absolute));
        }
        Ok(gone)
    }

    /// Removes all entries. Returns their number. Files that do not belong to the cache are kept.
    ///
    /// # Errors
    /// [`CacheError::Io`].
    pub fn purge_all(&self) -> Result<usize, CacheError> {
        let locked = self.lock()?;
        let mut count = 0;
        for entry in self.entries()? {
            match self.remove_entry(&locked, &entry) {
                Ok(()) => count += 1,
                Err(error) if error.is_foreign() => {}
                Err(error) => return Err(error),
            }
        }
        for dir in self.orphans() {
            self.remove_dir(&locked, &dir)?;
        }
        Ok(count)
    }

    /// Writes or completes the entry of a file with these paths; the build-id's link leads to the directory of the first one. Returns
    /// whether the entry was complete before.
    fn write_entry(
        &self,
        locked: &Locked,
        scan: &ProbeScan,
        file: &ObjectFile,
        paths: &[PathBuf],
        copies: Copies,
    ) -> Result<bool, CacheError> {
        let path = &scan.binary.path;
        let Some(build_id) = scan.binary.build_id else {
            return Err(CacheError::NoBuildId(path.clone()));
        };
        let old = self.entry(build_id);
        let home_path = paths.first().unwrap_or(path);
        let home = self.entry_dir(home_path, build_id);
        let mut complete = true;
        for path in [home_path, path] {
            let dir = self.entry_dir(path, build_id);
            let open = self.make(locked, &dir)?;
            remove_leftovers(&open);
            // The files at all paths have the same build-id, so any of them can be stored.
            complete &= store_elf(file, &open, copies).map_err(CacheError::io(&dir))?;
        }
        let text = old.map_or_else(ProbesText::default, |old| old.text());
        let content = text.with_probes(&scan.binary.probes, scan.binary.arch, paths);
        let open = self.make(locked, &home)?;
        complete &= store_text(&open, &content).map_err(CacheError::io(&home))?;
        complete &= self.store_link(locked, &home, build_id)?;
        Ok(complete)
    }

    /// Makes the build-id's link point to a directory of the cache. Returns whether it already did.
    fn store_link(
        &self,
        locked: &Locked,
        dir: &Path,
        build_id: BuildId,
    ) -> Result<bool, CacheError> {
        let link = link_path(self.dir(), build_id);
        let inside = self.inside(dir);
        let target = Path::new("../..").join(inside);
        if fs::read_link(&link).is_ok_and(|old| old == target) {
            return Ok(true);
        }
        let parent = link.parent().unwrap_or(self.dir());
        let open = self.make(locked, parent)?;
        let name = link.file_name().unwrap_or_default();
        remove_leftovers(&open);
        Builder::new()
            .prefix(TEMPORARY)
            .make_in(open.path(), |temporary| symlink(&target, temporary))
            .and_then(|temporary| {
                let made = temporary.persist(open.join(name));
                made.map_err(|error| error.error)
            })
            .map_err(CacheError::io(&link))?;
        Ok(false)
    }

    /// A path of the cache, relative to the cache's directory.
    fn inside<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(self.dir()).unwrap_or(path)
    }

    /// Opens a directory of the cache, creating it if necessary.
    pub(crate) fn make(&self, locked: &Locked, dir: &Path) -> Result<Directory, CacheError> {
        let made = locked.root.create_below(self.inside(dir));
        made.map_err(CacheError::io(dir))
    }

    /// `DIR/PATH`.
    fn path_dir(&self, path: &Path) -> PathBuf {
        self.dir().join(path.strip_prefix("/").unwrap_or(path))
    }

    /// `DIR/PATH/BUILD-ID`.
    fn entry_dir(&self, path: &Path, build_id: BuildId) -> PathBuf {
        self.path_dir(path).join(build_id.to_string())
    }

    /// The build-ids that have a directory below `DIR/PATH`.
    fn build_ids_at(&self, path: &Path) -> Vec<BuildId> {
        let Ok(names) = fs::read_dir(self.path_dir(path)) else {
            return Vec::new();
        };
        names
            .filter_map(Result::ok)
            .filter(|name| is_entry_dir(&name.path()))
            .filter_map(|name| name.file_name().to_str()?.parse().ok())
            .collect()
    }

    /// Removes a path from the entry of a build-id, and the entry itself with its last path.
    fn forget_path(
        &self,
        locked: &Locked,
        build_id: BuildId,
        path: &Path,
    ) -> Result<(), CacheError> {
        let dir = self.entry_dir(path, build_id);
        let Some(entry) = self.entry(build_id) else {
            return self.remove_dir(locked, &dir);
        };
        let mut others = entry.paths();
        others.retain(|other| other != path && is_current(other, build_id));
        match others.first() {
            None => self.remove_entry(locked, &entry)?,
            Some(other) => {
                let file = find_file::open(other)?;
                let scan = scan_for(&file)?;
                self.write_entry(locked, &scan, &file, &others, Copies::Keep)?;
            }
        }
        self.remove_dir(locked, &dir)
    }

    /// Removes an entry with the directories of all of its paths.
    fn remove_entry(&self, locked: &Locked, entry: &Entry) -> Result<(), CacheError> {
        let paths = entry.paths();
        // Check before removing the link: a directory that cannot be removed keeps its link.
        self.open_entry_dir(locked, &entry.dir)?;
        self.remove_link(locked, entry.build_id)?;
        self.remove_dir(locked, &entry.dir)?;
        for path in paths {
            match self.remove_dir(locked, &self.entry_dir(&path, entry.build_id)) {
                Ok(()) => {}
                // perf's text may name any path.
                Err(error) if error.is_foreign() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn remove_link(&self, locked: &Locked, build_id: BuildId) -> Result<(), CacheError> {
        let link = link_path(self.dir(), build_id);
        let (parent, name) = parts(self.inside(&link));
        let removed = locked.root.open_below(parent).and_then(|open| {
            let at = open.join(name);
            match fs::symlink_metadata(&at) {
                Ok(found) if found.is_symlink() => fs::remove_file(at),
                _ => Ok(()),
            }
        });
        missing_is_fine(removed).map_err(CacheError::io(&link))?;
        remove_empty(&locked.root, parent);
        Ok(())
    }

    /// Opens the directory of an entry and lists its files; `None` if it does not exist.
    ///
    /// # Errors
    /// [`CacheError::Foreign`] if it has a file that neither perf nor usdtrec creates; [`CacheError::Elsewhere`] if a link leads to it.
    fn open_entry_dir(
        &self,
        locked: &Locked,
        dir: &Path,
    ) -> Result<Option<EntryDirectory>, CacheError> {
        let open = match locked.root.open_below(self.inside(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if leads_elsewhere(&error) => {
                return Err(CacheError::Elsewhere(dir.to_owned()));
            }
            outcome => outcome.map_err(CacheError::io(dir))?,
        };
        let files = open.entries().map_err(CacheError::io(dir))?;
        let is_named = dir.file_name().is_some_and(is_build_id);
        match files.iter().find(|file| !is_named || !is_ours(file)) {
            Some(foreign) => Err(CacheError::Foreign {
                dir: dir.to_owned(),
                name: foreign.file_name().into(),
            }),
            None => Ok(Some(EntryDirectory { open, files })),
        }
    }

    /// Removes the directory of an entry with its files, and the directories above it that are then empty.
    fn remove_dir(&self, locked: &Locked, dir: &Path) -> Result<(), CacheError> {
        if let Some(EntryDirectory { open, files }) = self.open_entry_dir(locked, dir)? {
            for file in files {
                let removed = fs::remove_file(open.join(file.file_name()));
                missing_is_fine(removed).map_err(CacheError::io(dir))?;
            }
        }
        remove_empty(&locked.root, self.inside(dir));
        Ok(())
    }

    /// Directories of entries without a build-id link.
    fn orphans(&self) -> Vec<PathBuf> {
        let is_dir = |entry: &walkdir::DirEntry| entry.file_type().is_dir();
        walkdir::WalkDir::new(self.dir())
            .min_depth(2)
            .into_iter()
            .filter_map(Result::ok)
            .filter(is_dir)
            .map(walkdir::DirEntry::into_path)
            .filter(|dir| dir.file_name().is_some_and(|name| name.len() >= 16) && is_entry_dir(dir))
            .collect()
    }
}

/// What to do with a file that is already in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copies {
    /// Keep it if it has the build-id.
    Keep,
    /// Replace it.
    Replace,
}

/// Reads the probes of a file to add.
fn scan_for(file: &ObjectFile) -> Result<ProbeScan, CacheError> {
    let error = CacheError::elf(file.path());
    let scan = match file.scan() {
        Ok(scan) if scan.debug_file => Err(ElfError::DebugFile),
        scanned => scanned,
    };
    scan.map_err(error)
}

/// Whether a directory could not be opened because its path has a link or a component such as `..`.
fn leads_elsewhere(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput
    ) || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// The open directory of an entry, and its files.
struct EntryDirectory {
    open: Directory,
    files: Vec<fs::DirEntry>,
}

/// Whether a directory belongs to an entry: it is named by a build-id and has only files that perf or usdtrec create.
fn is_entry_dir(dir: &Path) -> bool {
    dir.file_name().is_some_and(is_build_id)
        && fs::read_dir(dir)
            .is_ok_and(|names| names.filter_map(Result::ok).all(|name| is_ours(&name)))
}

fn is_build_id(name: &OsStr) -> bool {
    let name = name.to_str();
    name.is_some_and(|name| is_hex(name) && name.parse::<BuildId>().is_ok())
}

/// Whether perf or usdtrec create a file of this name in the directory of an entry. Neither creates directories there.
fn is_ours(file: &fs::DirEntry) -> bool {
    let name = file.file_name();
    let name = name.as_encoded_bytes();
    let is_named = name.starts_with(TEMPORARY.as_bytes())
        || [&b"elf"[..], b"probes", b"debug", b"kallsyms", b"vdso"].contains(&name);
    is_named && file.file_type().is_ok_and(|kind| !kind.is_dir())
}

/// Removes a directory of the cache and the directories above it, up to the first that is not empty.
fn remove_empty(root: &Directory, dir: &Path) {
    for dir in dir.ancestors().filter(|dir| dir.file_name().is_some()) {
        let (parent, name) = parts(dir);
        let removed = root
            .open_below(parent)
            .and_then(|open| fs::remove_dir(open.join(name)));
        if missing_is_fine(removed).is_err() {
            break;
        }
    }
}

/// Splits a path into its directory and its last component.
fn parts(path: &Path) -> (&Path, &OsStr) {
    let parent = path.parent().unwrap_or(Path::new(""));
    (parent, path.file_name().unwrap_or_default())
}

fn is_current(path: &Path, build_id: BuildId) -> bool {
    FileState::compare(path, build_id) == FileState::Current
}

/// Stores the file in an entry's directory, as a hard link, or as a copy if linking fails (another file system, no permission). Returns
/// whether it was already there.
fn store_elf(file: &ObjectFile, dir: &Directory, copies: Copies) -> io::Result<bool> {
    let elf = dir.join("elf");
    let is_link = FileId::from_path(&elf) == Some(file.id());
    let is_copy = || elf::build_id(&elf).is_ok_and(|found| found == file.build_id());
    if is_link || copies == Copies::Keep && is_copy() {
        return Ok(true);
    }
    let mut builder = Builder::new();
    builder
        .prefix(TEMPORARY)
        .permissions(Permissions::from_mode(0o755));
    let linked = builder.make_in(dir.path(), |temporary| copy::link(file, temporary));
    if let Ok(temporary) = linked {
        temporary.persist(&elf).map_err(|error| error.error)?;
        return Ok(false);
    }
    let mut temporary = builder.tempfile_in(dir.path())?;
    copy::copy(file, temporary.as_file_mut())?;
    temporary.persist(&elf).map_err(|error| error.error)?;
    Ok(false)
}

/// Writes perf's text into an entry's directory. Returns whether it was already there.
fn store_text(dir: &Directory, content: &[u8]) -> io::Result<bool> {
    let file = dir.join("probes");
    if fs::read(&file).is_ok_and(|old| old == content) {
        return Ok(true);
    }
    let mut temporary = Builder::new()
        .prefix(TEMPORARY)
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(dir.path())?;
    io::Write::write_all(&mut temporary, content)?;
    temporary.persist(&file).map_err(|error| error.error)?;
    Ok(false)
}

/// Removes unfinished files. The lock is held, so no process is writing them.
fn remove_leftovers(dir: &Directory) {
    for name in dir.entries().unwrap_or_default() {
        let name = name.file_name();
        if name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            let _ = fs::remove_file(dir.join(name));
        }
    }
}

fn missing_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
