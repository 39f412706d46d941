//! Changing the cache: add, update, remove, purge.
//!
//! How one file is added, under the lock:
//! 1. its directory is made, and what a killed run left there is removed;
//! 2. `elf` is linked or copied, under another name first if something stands there;
//! 3. `probes` is written under another name and renamed;
//! 4. the build-id's link is made, or renamed over an old one. Only now the entry exists.
//!
//! Removing goes the other way. Nothing is synced to disk: a power loss may cost the cache, which can be made again.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::Builder;
use usdtrec_format::{BuildId, NoteError};

use crate::cache::{Cache, CacheError, is_hex};
use crate::elf::{self, ElfError, FileState, Scan};
use crate::entry::{Entry, Inode, link_path};
use crate::find::resolve;
use crate::text::ProbesText;

/// Beginning of the names of unfinished files. perf passes over them.
const TEMPORARY: &str = ".usdtrec-";

/// What was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// The file, with all links resolved.
    pub path: PathBuf,
    /// Its build-id.
    pub build_id: BuildId,
    /// Number of its probes.
    pub probes: usize,
    /// Number of their sites.
    pub sites: usize,
    /// Notes that could not be read.
    pub damaged: Vec<NoteError>,
    /// Whether the cache had this build-id at this path already.
    pub known: bool,
}

impl Cache {
    /// Adds a file: a path, or a bare name that is looked up in `PATH` if it is not in the working
    /// directory. A file without probes is added as well, as perf does.
    ///
    /// # Errors
    /// [`CacheError`]; the cache is as before.
    pub fn add(&self, name: &Path) -> Result<Added, CacheError> {
        let path = resolve(name)?;
        let scan = scan_for(&path)?;
        self.add_scan(scan)
    }

    /// Replaces what is cached for a file, that is for the build-id that it has now; earlier ones stay.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn update(&self, name: &Path) -> Result<Added, CacheError> {
        let path = resolve(name)?;
        let scan = scan_for(&path)?;
        self.put(scan, Copies::Renew)
    }

    /// Adds a file that was scanned; its path must be absolute and free of links.
    ///
    /// # Errors
    /// [`CacheError`]; the cache is as before.
    pub fn add_scan(&self, scan: Scan) -> Result<Added, CacheError> {
        self.put(scan, Copies::Keep)
    }

    fn put(&self, scan: Scan, copies: Copies) -> Result<Added, CacheError> {
        let path = scan.binary.path.clone();
        let Some(build_id) = scan.binary.build_id else {
            return Err(CacheError::NoBuildId(path));
        };
        let _lock = self.lock()?;
        let mut paths = self
            .entry(build_id)
            .map_or_else(Vec::new, |old| old.paths());
        paths.retain(|old| *old == path || is_current(old, build_id));
        if !paths.contains(&path) {
            paths.push(path.clone());
        }
        let known = self.write_entry(&scan, build_id, &paths, copies)?;
        Ok(Added {
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

    /// Removes the entry of the build-id that a file has now, for all paths. Gives the build-id.
    ///
    /// # Errors
    /// [`CacheError::NotCached`] if there is none.
    pub fn remove(&self, name: &Path) -> Result<BuildId, CacheError> {
        let path = resolve(name)?;
        let build_id = elf::build_id(&path)
            .map_err(|source| elf_error(&path, source))?
            .ok_or_else(|| CacheError::NotCached(path.clone()))?;
        let _lock = self.lock()?;
        let entry = self
            .entry(build_id)
            .ok_or_else(|| CacheError::NotCached(path.clone()))?;
        self.remove_entry(&entry)?;
        self.remove_dir(&self.entry_dir(&path, build_id))?;
        Ok(build_id)
    }

    /// Removes all that was ever added for a path, which need not exist any more. Gives the build-ids.
    ///
    /// # Errors
    /// [`CacheError::NotCached`] if there is nothing.
    pub fn purge(&self, path: &Path) -> Result<Vec<BuildId>, CacheError> {
        let absolute = std::path::absolute(path).map_err(CacheError::io(path))?;
        let resolved = resolve(path).unwrap_or_else(|_| absolute.clone());
        let mut gone = Vec::new();
        let _lock = self.lock()?;
        for path in [&resolved, &absolute] {
            for build_id in self.build_ids_at(path) {
                self.forget_path(build_id, path)?;
                gone.push(build_id);
            }
        }
        if gone.is_empty() {
            return Err(CacheError::NotCached(absolute));
        }
        Ok(gone)
    }

    /// Empties the cache. Gives the number of entries removed. Files that are none of the cache's are left alone.
    ///
    /// # Errors
    /// [`CacheError::Io`].
    pub fn purge_all(&self) -> Result<usize, CacheError> {
        let _lock = self.lock()?;
        let entries = self.entries()?;
        for entry in &entries {
            self.remove_entry(entry)?;
        }
        for dir in self.orphans() {
            self.remove_dir(&dir)?;
        }
        Ok(entries.len())
    }

    /// Writes or completes the entry of a file that stands at these paths, its home being the first. Says whether
    /// it was complete before.
    fn write_entry(
        &self,
        scan: &Scan,
        build_id: BuildId,
        paths: &[PathBuf],
        copies: Copies,
    ) -> Result<bool, CacheError> {
        let old = self.entry(build_id);
        let home_path = paths.first().unwrap_or(&scan.binary.path);
        let home = self.entry_dir(home_path, build_id);
        let mut complete = true;
        for path in [home_path, &scan.binary.path] {
            let dir = self.entry_dir(path, build_id);
            fs::create_dir_all(&dir).map_err(CacheError::io(&dir))?;
            remove_leftovers(&dir);
            complete &= store_elf(path, &dir, build_id, copies).map_err(CacheError::io(&dir))?;
        }
        let text = old.map_or_else(ProbesText::default, |old| old.text());
        let content = text.with_probes(&scan.binary.probes, scan.binary.arch, paths);
        complete &= store_text(&home, &content).map_err(CacheError::io(&home))?;
        complete &= self.store_link(&home, build_id)?;
        Ok(complete)
    }

    /// Makes the build-id's link point to a directory of the cache; says whether it did before.
    fn store_link(&self, dir: &Path, build_id: BuildId) -> Result<bool, CacheError> {
        let link = link_path(self.dir(), build_id);
        let inside = dir.strip_prefix(self.dir()).unwrap_or(dir);
        let target = Path::new("../..").join(inside);
        if fs::read_link(&link).is_ok_and(|old| old == target) {
            return Ok(true);
        }
        let parent = link.parent().unwrap_or(self.dir());
        fs::create_dir_all(parent).map_err(CacheError::io(parent))?;
        remove_leftovers(parent);
        Builder::new()
            .prefix(TEMPORARY)
            .make_in(parent, |temporary| symlink(&target, temporary))
            .and_then(|temporary| temporary.persist(&link).map_err(|error| error.error))
            .map_err(CacheError::io(&link))?;
        Ok(false)
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

    /// Removes one path of a build-id, and the entry with its last one.
    fn forget_path(&self, build_id: BuildId, path: &Path) -> Result<(), CacheError> {
        let dir = self.entry_dir(path, build_id);
        let Some(entry) = self.entry(build_id) else {
            return self.remove_dir(&dir);
        };
        let mut others = entry.paths();
        others.retain(|other| other != path && is_current(other, build_id));
        match others.first() {
            None => self.remove_entry(&entry)?,
            Some(other) => {
                let scan = scan_for(other)?;
                self.write_entry(&scan, build_id, &others, Copies::Keep)?;
            }
        }
        self.remove_dir(&dir)
    }

    /// Removes an entry with the directories of all of its paths.
    fn remove_entry(&self, entry: &Entry) -> Result<(), CacheError> {
        let paths = entry.paths();
        self.remove_link(entry.build_id)?;
        self.remove_dir(&entry.dir)?;
        for path in paths {
            self.remove_dir(&self.entry_dir(&path, entry.build_id))?;
        }
        Ok(())
    }

    fn remove_link(&self, build_id: BuildId) -> Result<(), CacheError> {
        let link = link_path(self.dir(), build_id);
        missing_is_fine(fs::remove_file(&link)).map_err(CacheError::io(&link))?;
        if let Some(parent) = link.parent() {
            let _ = fs::remove_dir(parent);
        }
        Ok(())
    }

    /// Removes a directory of the cache with its content, and those above that are then empty.
    fn remove_dir(&self, dir: &Path) -> Result<(), CacheError> {
        missing_is_fine(fs::remove_dir_all(dir)).map_err(CacheError::io(dir))?;
        for parent in dir.ancestors().skip(1) {
            if parent == self.dir() || fs::remove_dir(parent).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Directories of entries to which no build-id's link leads.
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

/// What to do where the file is in the cache already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copies {
    /// Keep a copy that has the build-id.
    Keep,
    /// Make it anew.
    Renew,
}

/// Reads a file that is to be added.
fn scan_for(path: &Path) -> Result<Scan, CacheError> {
    let scan = elf::scan(path).map_err(|source| elf_error(path, source))?;
    if scan.debug_file {
        return Err(elf_error(path, ElfError::DebugFile));
    }
    Ok(scan)
}

fn elf_error(path: &Path, source: ElfError) -> CacheError {
    CacheError::Elf {
        path: path.to_owned(),
        source,
    }
}

/// Whether a directory is an entry's: named by a build-id and holding nothing but what perf or we put there.
fn is_entry_dir(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|name| name.to_str());
    let is_ours = |name: &fs::DirEntry| {
        let name = name.file_name();
        let name = name.as_encoded_bytes();
        name.starts_with(TEMPORARY.as_bytes())
            || [&b"elf"[..], b"probes", b"debug", b"kallsyms", b"vdso"].contains(&name)
    };
    name.is_some_and(|name| is_hex(name) && name.parse::<BuildId>().is_ok())
        && fs::read_dir(dir)
            .is_ok_and(|names| names.filter_map(Result::ok).all(|name| is_ours(&name)))
}

fn is_current(path: &Path, build_id: BuildId) -> bool {
    FileState::of(path, build_id) == FileState::Current
}

/// Puts the file into an entry's directory, unless it is there: as a hard link, else (another file system, a file
/// that may not be linked) as a copy. Says whether it was there.
fn store_elf(path: &Path, dir: &Path, build_id: BuildId, copies: Copies) -> io::Result<bool> {
    let elf = dir.join("elf");
    let inode = Inode::of(path);
    let is_link = inode.is_some() && inode == Inode::of(&elf);
    let is_copy = || elf::build_id(&elf).is_ok_and(|found| found == Some(build_id));
    if is_link || copies == Copies::Keep && is_copy() {
        return Ok(true);
    }
    let mut builder = Builder::new();
    builder
        .prefix(TEMPORARY)
        .permissions(Permissions::from_mode(0o755));
    let linked = builder.make_in(dir, |temporary| fs::hard_link(path, temporary));
    if let Ok(temporary) = linked {
        temporary.persist(&elf).map_err(|error| error.error)?;
        return Ok(false);
    }
    let mut copy = builder.tempfile_in(dir)?;
    io::copy(&mut fs::File::open(path)?, copy.as_file_mut())?;
    copy.persist(&elf).map_err(|error| error.error)?;
    Ok(false)
}

/// Writes perf's text into an entry's directory; says whether it stood there before.
fn store_text(dir: &Path, content: &[u8]) -> io::Result<bool> {
    let file = dir.join("probes");
    if fs::read(&file).is_ok_and(|old| old == content) {
        return Ok(true);
    }
    let mut temporary = Builder::new()
        .prefix(TEMPORARY)
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(dir)?;
    io::Write::write_all(&mut temporary, content)?;
    temporary.persist(&file).map_err(|error| error.error)?;
    Ok(false)
}

/// Removes unfinished files; the lock is held, so nobody is writing them.
fn remove_leftovers(dir: &Path) {
    let Ok(names) = fs::read_dir(dir) else { return };
    for name in names.filter_map(Result::ok) {
        if name
            .file_name()
            .as_encoded_bytes()
            .starts_with(TEMPORARY.as_bytes())
        {
            let _ = fs::remove_file(name.path());
        }
    }
}

fn missing_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
