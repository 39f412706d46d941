//! Reading what symbols need out of an ELF file.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;

use object::read::{CompressionFormat, Object, ObjectSection, ReadCache};
use usdtrec_dwarf::{DebugLink, SectionFile, SectionPlace};
use usdtrec_format::BuildId;
use usdtrec_unwind::Segments;

use crate::symbols::candidates::{CodeSymbols, Content, mini_debug_symbols};
use crate::symbols::table::SymbolTable;

/// Opens what is at a path; `None` if it is no regular file or cannot be read.
pub type OpenFile = fn(&Path) -> Option<fs::File>;

/// What opens files in place of `open_file`.
static OPENER: OnceLock<OpenFile> = OnceLock::new();

/// Has a function open all files at paths that traces name: in a recorder, which waits for no file system. The first one stays.
pub fn open_files_by(open: OpenFile) {
    let _ = OPENER.set(open);
}

/// An ELF file that is open.
pub(crate) struct Binary {
    /// Read piece by piece and not mapped: a mapped file that another program cuts would kill us.
    data: ReadCache<fs::File>,
    /// The same open file.
    file: fs::File,
}

/// Maximum ratio of the length of a file to the size that is allocated for it on disk: bounds the memory for a sparse file.
const MAX_RATIO: u64 = 64;
/// Length that is allowed for any file, bytes. Some file systems do not report the allocated size of a small file.
const MIN_CHECKED_BYTES: u64 = 16 << 20;

impl Binary {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let open = OPENER.get().copied().unwrap_or(open_file);
        let file = open(path)?;
        let found = file.metadata().ok()?;
        let allocated = found.blocks().saturating_mul(512);
        if found.len() > allocated.saturating_mul(MAX_RATIO).max(MIN_CHECKED_BYTES) {
            return None;
        }
        Some(Self {
            data: ReadCache::new(file.try_clone().ok()?),
            file,
        })
    }

    /// Its headers; `None` if it is no ELF file or does not have this build-id (any, if `None`).
    pub(crate) fn parse(&self, build_id: Option<BuildId>) -> Option<ParsedBinary<'_>> {
        let file = object::File::parse(&self.data).ok()?;
        let is_it = build_id.is_none() || build_id_of(&file) == build_id;
        is_it.then_some(file)
    }

    /// The open file.
    pub(crate) fn into_file(self) -> fs::File {
        self.file
    }
}

impl SectionFile for Binary {
    fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |found| found.len())
    }

    fn build_id(&self) -> Option<BuildId> {
        build_id_of(&self.parse(None)?)
    }

    fn is_big_endian(&self) -> bool {
        self.parse(None)
            .is_some_and(|file| !file.is_little_endian())
    }

    fn is_class64(&self) -> bool {
        self.parse(None).is_some_and(|file| file.is_64())
    }

    fn section(&self, name: &str) -> Option<SectionPlace> {
        let file = self.parse(None)?;
        // It finds those in the form before `SHF_COMPRESSED`, too, which have another name.
        let section = file.section_by_name(name)?;
        let is_it = section.name().is_ok_and(|found| found == name);
        let (offset, size) = section.file_range().filter(|_| is_it)?;
        Some(SectionPlace {
            address: section.address(),
            offset,
            size,
            is_compressed: section.compressed_file_range().ok()?.format != CompressionFormat::None,
        })
    }

    fn bytes(&self, at: u64, len: usize) -> Option<Vec<u8>> {
        let end = at.checked_add(len as u64)?;
        if end > self.length() {
            return None;
        }
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }
}

/// Opens a file at a path that comes from a trace. Opening a FIFO would wait for ever, and opening a device may do things; what is at the path may change
/// between the check and the opening.
fn open_file(path: &Path) -> Option<fs::File> {
    let is_file = |found: &Metadata| found.is_file();
    fs::metadata(path).ok().filter(is_file)?;
    let mut options = fs::File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).ok()?;
    file.metadata().ok().filter(is_file)?;
    Some(file)
}

/// An ELF file whose headers were read.
pub(crate) type ParsedBinary<'f> = object::File<'f, &'f ReadCache<fs::File>>;

/// The GNU build-id of a file.
pub(crate) fn build_id_of(file: &ParsedBinary<'_>) -> Option<BuildId> {
    file.build_id().ok()?.and_then(|id| BuildId::new(id).ok())
}

/// What an ELF file says of its code.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) symbols: SymbolTable,
    /// Whether the symbols are of `.symtab` or `.gnu_debugdata`, not only those of `.dynsym` that other files can use.
    pub(crate) complete: bool,
    /// Of the program that the file is, or is about.
    pub(crate) segments: Segments,
    pub(crate) build_id: Option<BuildId>,
    pub(crate) debug_link: Option<DebugLink>,
}

impl Image {
    /// Reads an ELF file that has this build-id (any, if `None`). `None` if the file is another or cannot be read.
    pub(crate) fn read(path: &Path, build_id: Option<BuildId>) -> Option<Self> {
        Self::from_binary(&Binary::open(path)?, build_id)
    }

    /// Reads what an open file says, as [`read`](Self::read) does.
    pub(crate) fn from_binary(binary: &Binary, build_id: Option<BuildId>) -> Option<Self> {
        let file = binary.parse(build_id)?;
        let found = build_id_of(&file);
        let debug_link = DebugLink::from_file(binary);
        let elf: &dyn CodeSymbols = match &file {
            object::File::Elf32(elf) => elf,
            object::File::Elf64(elf) => elf,
            _ => return None,
        };
        let content = Content::File(&binary.file);
        let mut symbols = elf.linked(content);
        let mut complete = !symbols.symbols.is_empty();
        if !complete {
            symbols = elf.dynamic(content);
            if let Some(others) = mini_debug_symbols(&file) {
                symbols = symbols.joined(others);
                complete = true;
            }
        }
        Some(Self {
            symbols: SymbolTable::new(symbols),
            complete,
            segments: Segments::of_program(&file),
            build_id: found,
            debug_link,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_program_has_symbols() {
        let own = std::env::current_exe().unwrap();
        let image = Image::read(&own, None).unwrap();
        assert!(image.complete);
        assert_eq!(image.segments.address(0x40), Some(0x40));
        assert_eq!(image.segments.address(u64::MAX), None);
        let other: BuildId = "00ff".parse().unwrap();
        assert!(Image::read(&own, Some(other)).is_none());
        assert!(Image::read(Path::new("/dev/null"), None).is_none());
    }

    #[test]
    fn a_path_that_becomes_a_fifo_is_not_waited_for() {
        use std::process::Command;
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::sync::{Arc, mpsc};
        use std::time::Duration;

        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        fs::write(file("file"), "no ELF file").unwrap();
        let made = Command::new("mkfifo").arg(file("fifo")).status();
        assert!(made.is_ok_and(|status| status.success()));
        fs::hard_link(file("file"), file("path")).unwrap();
        let (path, is_done) = (file("path"), Arc::new(AtomicBool::new(false)));
        let (send, opened) = mpsc::channel();
        let flag = Arc::clone(&is_done);
        std::thread::spawn(move || {
            for _ in 0..20_000 {
                drop(Binary::open(&path));
            }
            flag.store(true, Ordering::Relaxed);
            let _ = send.send(());
        });
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        for name in ["fifo", "file"].iter().cycle() {
            if is_done.load(Ordering::Relaxed) || std::time::Instant::now() > deadline {
                break;
            }
            fs::hard_link(file(name), file("new")).unwrap();
            fs::rename(file("new"), file("path")).unwrap();
        }
        assert!(
            opened.recv_timeout(Duration::from_secs(1)).is_ok(),
            "it waits for a writer of the FIFO"
        );
    }
}
