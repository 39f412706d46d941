//! Adding the files of a tarball to the build-id cache.
//!
//! A tarball may come from anywhere. Only regular files `PATH/BUILD-ID/elf` and `PATH/BUILD-ID/debug` are taken, and only if they have that
//! build-id; the cache makes directories and links itself.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use bzip2::read::MultiBzDecoder;
use tar::{Archive, EntryType};
use usdtrec_buildid_cache::{Cache, CacheError};
use usdtrec_format::BuildId;

/// Maximum ratio of the unpacked size to that of the tarball. Programs are compressed to a half or a tenth.
const MAX_RATIO: u64 = 200;
/// Unpacked size that is accepted at any ratio, bytes.
const SMALL: u64 = 64 << 20;
/// Maximum number of separate files, each an open one, that wait for programs later in the tarball.
const MAX_WAITING: usize = 128;
/// Magic bytes of bzip2.
const BZIP2: &[u8] = b"BZh";

/// What was added.
pub(super) struct Unpacked {
    /// Number of files that are in the cache now.
    pub(super) added: usize,
    /// Files that are not, with the reasons.
    pub(super) left_out: Vec<LeftOut>,
}

/// Path of an entry, and why it was not added.
pub(super) type LeftOut = (PathBuf, String);

/// Adds the files of a tarball, compressed by bzip2 or not.
///
/// # Errors
/// If the tarball cannot be read to its end, or is much larger unpacked than packed. Files before that are in the cache.
pub(super) fn run(cache: &Cache, tarball: &Path) -> anyhow::Result<Unpacked> {
    let mut file = File::open(tarball)?;
    let len = file.metadata()?.len();
    let mut magic = Vec::new();
    file.by_ref().take(3).read_to_end(&mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    let file = BufReader::new(file);
    let bytes: Box<dyn Read> = if magic == BZIP2 {
        Box::new(MultiBzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let left = SMALL.max(len.saturating_mul(MAX_RATIO));
    let mut archive = Archive::new(Bounded { bytes, left });
    let mut unpacked = Unpacked {
        added: 0,
        left_out: Vec::new(),
    };
    // Their programs may come after them.
    let mut debug_files = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry.context("expected a tarball, compressed by bzip2 or not")?;
        let path = entry.path()?.into_owned();
        let kind = entry.header().entry_type();
        let archived = (kind == EntryType::Regular).then(|| ArchivedFile::from_path(&path));
        let Some(archived) = archived.flatten() else {
            if kind == EntryType::Regular {
                let why = "expected PATH/BUILD-ID/elf or PATH/BUILD-ID/debug".to_owned();
                unpacked.left_out.push((path, why));
            }
            continue;
        };
        let mut copy = tempfile::tempfile_in(unpack_dir(cache)?)?;
        io::copy(&mut entry, &mut copy)?;
        let has_program =
            archived.kind == Kind::Program || cache.entry(archived.build_id).is_some();
        if !has_program && debug_files.len() < MAX_WAITING {
            debug_files.push((archived, copy));
            continue;
        }
        unpacked.note(path, archived.import(cache, copy));
    }
    for (archived, copy) in debug_files {
        let added = archived.import(cache, copy);
        unpacked.note(archived.path, added);
    }
    Ok(unpacked)
}

impl Unpacked {
    fn note(&mut self, path: PathBuf, added: Result<(), CacheError>) {
        match added {
            Ok(()) => self.added += 1,
            Err(error) => {
                let error = anyhow::Error::from(error);
                self.left_out.push((path, format!("{error:#}")));
            }
        }
    }
}

/// The cache's directory, which exists afterwards: from there files are linked into the cache.
fn unpack_dir(cache: &Cache) -> io::Result<&Path> {
    cache.make_dir()?;
    Ok(cache.dir())
}

/// A file of a tarball: which program it is of, by its path in the tarball.
#[derive(Debug, PartialEq, Eq)]
struct ArchivedFile {
    /// Absolute path of the program on its host.
    path: PathBuf,
    build_id: BuildId,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Program,
    Debug,
}

impl ArchivedFile {
    fn import(&self, cache: &Cache, copy: File) -> Result<(), CacheError> {
        match self.kind {
            Kind::Program => cache.import(&self.path, self.build_id, copy).map(drop),
            Kind::Debug => cache.import_debug_file(&self.path, self.build_id, copy),
        }
    }

    /// `None` if the path is not of the layout.
    fn from_path(path: &Path) -> Option<Self> {
        let kind = match path.file_name()?.to_str()? {
            "elf" => Kind::Program,
            "debug" => Kind::Debug,
            _ => return None,
        };
        let dir = path.parent()?;
        let build_id = dir.file_name()?.to_str()?.parse().ok()?;
        let origin = dir.parent()?;
        let mut parts = origin.components().peekable();
        // GNU tar writes `./` where it is asked for `.`.
        parts.next_if_eq(&Component::CurDir);
        let first = *parts.peek()?;
        let is_link = first == Component::Normal(".build-id".as_ref());
        let mut full = PathBuf::from("/");
        for part in parts {
            let Component::Normal(name) = part else {
                return None;
            };
            full.push(name);
        }
        (!is_link).then_some(Self {
            path: full,
            build_id,
            kind,
        })
    }
}

/// Ends with an error where a tarball is larger than it may be.
struct Bounded<R> {
    bytes: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let len = self.bytes.read(to)?;
        self.left = self.left.checked_sub(len as u64).ok_or_else(|| {
            let why = format!(
                "expected at most {MAX_RATIO} times the size of the tarball when it is unpacked"
            );
            io::Error::new(io::ErrorKind::FileTooLarge, why)
        })?;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_layout_alone_are_taken() {
        let id = "00112233445566778899aabbccddeeff00112233";
        let found =
            ArchivedFile::from_path(&PathBuf::from(format!("./usr/bin/app/{id}/elf"))).unwrap();
        assert_eq!(found.path, Path::new("/usr/bin/app"));
        assert_eq!(found.build_id.to_string(), id);
        for path in [
            format!("/usr/bin/app/{id}/elf"),
            format!("../usr/bin/app/{id}/elf"),
            format!("usr/../bin/{id}/elf"),
            format!(".build-id/00/{id}/elf"),
            format!("usr/bin/app/{id}/probes"),
            "usr/bin/app/nothex/elf".to_owned(),
            format!("{id}/elf"),
            "elf".to_owned(),
        ] {
            assert_eq!(ArchivedFile::from_path(Path::new(&path)), None, "{path}");
        }
    }
}
