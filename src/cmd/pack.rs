//! Writing a tarball in the layout of `perf archive`.
//!
//! | entry | |
//! |---|---|
//! | `PATH/BUILD-ID/elf` | a program or library; `PATH` is its absolute path without the first slash |
//! | `PATH/BUILD-ID/debug` | its separate file with debugging information, if there is one |
//! | `.build-id/XX/REST` | a symbolic link to `../../PATH/BUILD-ID`; `XX` is the first byte of the build-id |

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bzip2::Compression;
use bzip2::write::BzEncoder;
use tar::{Builder, EntryType, Header};
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::BuildId;
use usdtrec_format::escape::shown;
use usdtrec_report::CodeFile;

use crate::unfinished_file::UnfinishedFile;

/// What was written.
pub(super) struct Packed {
    /// Number of files.
    pub(super) count: usize,
    /// Size of the tarball, bytes.
    pub(super) bytes: u64,
}

/// Writes those of `files` that are on this host. The tarball gets its name when it is complete.
pub(super) fn write(files: &[CodeFile], tarball: &Path) -> anyhow::Result<Packed> {
    let mut unfinished = UnfinishedFile::create(tarball)?;
    let packed = append(files, BufWriter::new(unfinished.file()))?;
    unfinished.finish(tarball)?;
    Ok(packed)
}

fn append(files: &[CodeFile], to: impl Write) -> anyhow::Result<Packed> {
    let mut tar = Tarball {
        tar: Builder::new(BzEncoder::new(to, Compression::best())),
        count: 0,
    };
    for file in files {
        let (Some(id), Some(program)) = (file.build_id, &file.program) else {
            continue;
        };
        let relative = file.path.strip_prefix("/")?;
        let dir = relative.join(id.to_string());
        tar.file(id, program, &dir.join("elf"), 0o755)?;
        if let Some(debug) = &file.debug {
            tar.file(id, debug, &dir.join("debug"), 0o644)?;
        }
        tar.link(id, &dir)?;
    }
    let mut encoder = tar.tar.into_inner()?;
    encoder.try_finish()?;
    let bytes = encoder.total_out();
    encoder.finish()?.flush()?;
    Ok(Packed {
        count: tar.count,
        bytes,
    })
}

/// A tarball that is being written.
struct Tarball<W: Write> {
    tar: Builder<W>,
    count: usize,
}

impl<W: Write> Tarball<W> {
    /// Appends the file at `from`, which must have the build-id still.
    fn file(&mut self, id: BuildId, from: &Path, name: &Path, mode: u32) -> anyhow::Result<()> {
        let object = ObjectFile::open(from)?;
        if object.build_id() != Some(id) {
            anyhow::bail!("{}: the file was replaced meanwhile", shown(from));
        }
        let path = PathBuf::from(std::ffi::OsStr::new(object.kernel_path().to_str()?));
        let file = File::open(path)?;
        let found = file.metadata()?;
        let mut header = header(EntryType::Regular, mode);
        header.set_size(found.len());
        header.set_mtime(u64::try_from(found.mtime()).unwrap_or(0));
        let mut bytes = Counted {
            from: file.take(found.len()),
            count: 0,
        };
        self.tar.append_data(&mut header, name, &mut bytes)?;
        if bytes.count != found.len() {
            anyhow::bail!(
                "{}: expected {} bytes, found {}: the file was cut meanwhile",
                shown(from),
                found.len(),
                bytes.count
            );
        }
        self.count += 1;
        Ok(())
    }

    /// Appends the link of a build-id to the directory of its files.
    fn link(&mut self, id: BuildId, dir: &Path) -> io::Result<()> {
        let name = Path::new(".build-id").join(id.link_name());
        let mut header = header(EntryType::Symlink, 0o777);
        header.set_size(0);
        let target = Path::new("../..").join(dir);
        self.tar.append_link(&mut header, name, target)
    }
}

fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

/// Counts the bytes that are read.
struct Counted<R> {
    from: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let len = self.from.read(to)?;
        self.count += len as u64;
        Ok(len)
    }
}
