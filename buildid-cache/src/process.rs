//! Files mapped by a running process, and their probes.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat};
use usdtrec_format::escape::shown;

use crate::account::Account;
use crate::elf::{ElfError, NOTE_BYTES, ObjectFile, PartialScan, ProbeScan};
use crate::file_mapping::FileMapping;
use crate::live_thread::live_directory;
use crate::served::{Handle, MapsReader, Patience, Reader, file_id};

/// A file with probes that a process maps.
#[derive(Clone, Debug)]
pub struct MappedFile {
    /// The mapped file. Its path is the one in the process's maps if it leads to the file from here, else that path below
    /// `/proc/PID/root`, else the path with ` (deleted)` after it.
    pub file: Arc<ObjectFile>,
    /// The probes of the file.
    pub scan: ProbeScan,
    /// Whether the file was deleted or replaced after it was mapped.
    pub deleted: bool,
    /// Whether all of its notes were read.
    pub is_whole: bool,
}

/// The files that a process maps.
#[derive(Debug, Default)]
pub struct ProcessFiles {
    /// Files with probes, in the order of `/proc/PID/maps`, each file once.
    pub mapped: Vec<MappedFile>,
    /// Files that could not be read.
    pub unreadable: Vec<UnreadableFile>,
}

/// A mapped file that could not be read.
#[derive(Debug)]
pub struct UnreadableFile {
    /// Its path in the process's maps.
    pub path: PathBuf,
    /// Error of reading it.
    pub error: ElfError,
}

/// Reads the probes of all files that a process maps.
///
/// # Errors
/// `/proc/PID/maps` cannot be read: the process does not exist, permission is denied, or it has more than 64 MiB (`FileTooLarge`).
pub fn binaries(pid: u32) -> io::Result<ProcessFiles> {
    let process = OpenProcess::open(pid)?;
    let mut seen = HashSet::new();
    let mut mappings = process.mappings(|_| true)?;
    mappings.retain(|map| seen.insert((map.device, map.inode)));
    let outcomes: Vec<_> = mappings
        .par_iter()
        .map(|mapping| (mapping, process.read(mapping)))
        .collect();
    let mut files = ProcessFiles::default();
    for (mapping, outcome) in outcomes {
        match outcome {
            Ok(mapped) if mapped.has_nothing() => {}
            Ok(mapped) => files.mapped.push(mapped),
            Err(error) if error.is_other_file() => {}
            Err(error) => files.unreadable.push(UnreadableFile {
                path: mapping.path.clone(),
                error,
            }),
        }
    }
    Ok(files)
}

/// Opens the file of a mapping of a process, and reads its headers.
///
/// It is opened by the mapping's link in `/proc/PID/map_files`: no path that a process chose is opened. Without CAP_CHECKPOINT_RESTORE it is
/// opened by its path below the root directory of the process. A file with another device or inode number is refused, also by the link, since
/// the process may have mapped another file there meanwhile; of btrfs and overlayfs, which give other devices than mappings have, only the
/// inode numbers are compared. The path of a file that [cannot have probes](ObjectFile::may_have_probes) is that of the mapping.
///
/// # Errors
/// [`ElfError`]; `NotFound` if it is another file; `TimedOut` if its file system [does not answer](crate::served).
pub fn open_mapped(
    pid: u32,
    mapping: &FileMapping,
    patience: Patience,
) -> Result<ObjectFile, ElfError> {
    let process = OpenProcess::open(pid)?;
    let mapping = process.mapping(mapping, patience)?;
    let opened = mapping.open()?;
    if !Likeness::compare(&opened.handle, mapping.mapping).is_inode() {
        return Err(mapping.is_another(&process.directory));
    }
    let is_inside = opened.is_inside;
    let file = mapping.object(opened)?;
    Ok(match file.may_have_probes() {
        true => mapping.named(file, is_inside).file,
        false => file,
    }
    .patiently())
}

/// Opens a handle of the file of a mapping of a process.
///
/// # Errors
/// As [`open_mapped`].
pub fn mapped_handle(pid: u32, mapping: &FileMapping) -> Result<Handle, ElfError> {
    let process = OpenProcess::open(pid)?;
    Ok(process.mapping(mapping, Patience::Usual)?.open()?.handle)
}

/// Opens the file of a mapping of a process that has ended: by its path, if that leads to the same device and inode number from here.
///
/// # Errors
/// [`ElfError`], also if it is another file; `TimedOut` if its file system [does not answer](crate::served).
pub fn open_formerly_mapped(
    mapping: &FileMapping,
    patience: Patience,
) -> Result<ObjectFile, ElfError> {
    let reader = Reader {
        device: mapping.device,
        ..Reader::of_unknown(patience)
    };
    let found = Handle::of_path_itself(&mapping.path, reader)?;
    if Likeness::compare(&found, mapping) != Likeness::Same {
        return Err(ElfError::Io(io::ErrorKind::NotFound.into()));
    }
    let file = ObjectFile::from_handle(found, mapping.path.clone())?;
    let file = file.mapped_as(mapping.mapped_inode());
    Ok(file.patiently())
}

/// The mappings of files with code that a process has, those of a file under one path once.
///
/// # Errors
/// `/proc/PID/maps` cannot be read, as for [`binaries`].
pub fn code_mappings(pid: u32) -> io::Result<Vec<FileMapping>> {
    OpenProcess::open(pid)?.code_mappings()
}

impl MappedFile {
    /// Whether it has neither probes nor damaged notes.
    pub(crate) fn has_nothing(&self) -> bool {
        self.scan.binary.probes.is_empty() && self.scan.damaged.is_empty()
    }
}

/// A process whose files are read. Files opened relative to the handle belong to this process even if its id is reused.
pub(crate) struct OpenProcess {
    pid: u32,
    directory: PathBuf,
    handle: OwnedFd,
    account: OnceLock<Account>,
}

impl OpenProcess {
    /// # Errors
    /// The process does not exist.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let directory = live_directory(pid);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(CWD, &directory, flags, Mode::empty())?;
        Ok(Self {
            pid,
            directory,
            handle,
            account: OnceLock::new(),
        })
    }

    /// Its mappings of files, those with the same device, inode and path once: the first one that is wanted.
    ///
    /// # Errors
    /// `maps` cannot be read: the process has ended, or permission is denied. `FileTooLarge` if there are very many.
    pub(crate) fn mappings(
        &self,
        is_wanted: impl Fn(&FileMapping) -> bool,
    ) -> io::Result<Vec<FileMapping>> {
        first_mappings(self.maps()?, is_wanted)
    }

    /// Those with code.
    ///
    /// # Errors
    /// As [`mappings`](Self::mappings).
    pub(crate) fn code_mappings(&self) -> io::Result<Vec<FileMapping>> {
        const EXECUTABLE: usize = 2;
        self.mappings(|map| map.permissions[EXECUTABLE])
    }

    /// Whether it still has a mapping.
    pub(crate) fn has(&self, mapping: &FileMapping) -> bool {
        let Ok(maps) = self.maps() else {
            return false;
        };
        let lines = maps.split(b'\n');
        let mut mappings = lines.map_while(Result::ok);
        mappings.any(|line| FileMapping::parse(&line).as_ref() == Some(mapping))
    }

    fn maps(&self) -> io::Result<BufReader<MapsReader>> {
        /// The kernel gives less at once.
        const CAPACITY: usize = 1 << 16;
        let reader = Reader {
            account: self.account()?,
            ..Reader::of_unknown(Patience::Usual)
        };
        let maps = MapsReader::open(self.handle.as_fd(), reader)?;
        Ok(BufReader::with_capacity(CAPACITY, maps))
    }

    /// The number of its mount namespace; `None` without permission.
    pub(crate) fn mount_namespace(&self) -> Option<u64> {
        let found = rustix::fs::statat(&self.handle, c"ns/mnt", AtFlags::empty()).ok()?;
        Some(found.st_ino)
    }

    /// Its effective user. That is the owner of `/proc/PID`, also if the process is not dumpable, when what is in there belongs to root
    /// (fs/proc/base.c, `task_dump_owner`).
    ///
    /// # Errors
    /// The process has ended.
    fn owner(&self) -> io::Result<u32> {
        Ok(rustix::fs::fstat(&self.handle)?.st_uid)
    }

    /// Its account.
    ///
    /// # Errors
    /// As [`owner`](Self::owner).
    pub(crate) fn account(&self) -> io::Result<Account> {
        if let Some(known) = self.account.get() {
            return Ok(*known);
        }
        let of_owner = Account::of_user(self.owner()?);
        Ok(*(self.account).get_or_init(|| Account::of(self.pid).unwrap_or(of_owner)))
    }

    /// Reads a file that it maps.
    ///
    /// # Errors
    /// [`ElfError`], also if the file that is mapped cannot be opened; `TimedOut` if its file system [does not answer](crate::served).
    pub(crate) fn read(&self, mapping: &FileMapping) -> Result<MappedFile, ElfError> {
        let OpenedMapping { file, deleted } = self.named_file(mapping)?;
        Ok(MappedFile {
            scan: file.scan()?,
            file: Arc::new(file),
            deleted,
            is_whole: true,
        })
    }

    /// Reads those probes of a file that it maps which `keep` wants, within the limits of a file that nobody named.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_within(
        &self,
        mapping: &FileMapping,
        keep: impl FnMut(&str, &str) -> bool,
    ) -> Result<MappedFile, ElfError> {
        let OpenedMapping { file, deleted } = self.named_file(mapping)?;
        let PartialScan { scan, is_whole } = file.scan_within(NOTE_BYTES, keep)?;
        Ok(MappedFile {
            scan,
            file: Arc::new(file),
            deleted,
            is_whole,
        })
    }

    fn named_file(&self, mapping: &FileMapping) -> Result<OpenedMapping, ElfError> {
        let mapping = self.mapping(mapping, Patience::Usual)?;
        let opened = mapping.open()?;
        let is_inside = opened.is_inside;
        let file = mapping.object(opened)?;
        Ok(mapping.named(file, is_inside))
    }

    /// A mapping of it, whose file is read so patiently.
    fn mapping<'a>(
        &'a self,
        mapping: &'a FileMapping,
        patience: Patience,
    ) -> io::Result<Mapping<'a>> {
        let reader = Reader {
            account: self.account()?,
            device: mapping.device,
            patience,
        };
        Ok(Mapping {
            process: self,
            mapping,
            reader,
        })
    }
}

/// Reads the mappings of files in `maps`: of those with the same device, inode and path the first one that is wanted.
fn first_mappings(
    maps: impl BufRead,
    is_wanted: impl Fn(&FileMapping) -> bool,
) -> io::Result<Vec<FileMapping>> {
    let mut mappings = Vec::new();
    let mut known = HashSet::new();
    for line in maps.split(b'\n') {
        let mapping = FileMapping::parse(&line?).filter(&is_wanted);
        mappings.extend(
            mapping.filter(|found| known.insert((found.mapped_inode(), found.path.clone()))),
        );
    }
    Ok(mappings)
}

/// Whether an open file is that of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Likeness {
    /// Device and inode are the same.
    Same,
    /// The file system gives another device than mappings have. The inode is the same.
    SameInode,
    /// The file system gives another device than mappings have, and the inode is another one, which some overlays give, too.
    Unknown,
    /// It is another file.
    Other,
}

impl Likeness {
    /// Whether the inode is the same, and the device as far as the file system gives that of mappings.
    const fn is_inode(self) -> bool {
        matches!(self, Self::Same | Self::SameInode)
    }

    fn compare(file: &Handle, mapping: &FileMapping) -> Self {
        /// Types of file systems (statfs(2)) that give other devices than mappings have: btrfs and overlayfs.
        const OTHER_DEVICES: [u64; 2] = [0x9123_683e, 0x794c_7630];
        let found = file.stat();
        let device = rustix::fs::makedev(mapping.device.major, mapping.device.minor);
        let is_inode = found.id.inode == mapping.inode;
        if is_inode && found.id.device == device {
            return Self::Same;
        }
        if !OTHER_DEVICES.contains(&found.file_system) {
            return Self::Other;
        }
        match is_inode {
            true => Self::SameInode,
            false => Self::Unknown,
        }
    }
}

/// The file of a mapping.
struct OpenedMapping {
    file: ObjectFile,
    /// Whether it was deleted or replaced after it was mapped.
    deleted: bool,
}

/// A handle of the file of a mapping.
struct OpenedHandle {
    handle: Handle,
    /// Whether it was found by its path.
    is_inside: bool,
}

/// A file that a process maps.
struct Mapping<'a> {
    process: &'a OpenProcess,
    mapping: &'a FileMapping,
    reader: Reader,
}

impl Mapping<'_> {
    /// Finds a path for a mapped file.
    fn named(&self, file: ObjectFile, is_inside: bool) -> OpenedMapping {
        let id = file.id();
        let inside = self.process.directory.join("root").join(self.below());
        let is_it = |path: &PathBuf| file_id(path, self.reader) == Some(id);
        let mut paths = [self.mapping.path.clone(), inside].into_iter();
        let path = (!self.mapping.deleted).then(|| paths.find(is_it)).flatten();
        let deleted = path.is_none() && !is_inside;
        let path = path.unwrap_or_else(|| {
            let mut path = self.mapping.path.clone().into_os_string();
            path.push(" (deleted)");
            path.into()
        });
        OpenedMapping {
            file: file.named(path),
            deleted,
        }
    }

    /// The path below a root directory.
    fn below(&self) -> &Path {
        let path = &self.mapping.path;
        path.strip_prefix("/").unwrap_or(path)
    }

    /// Opens a handle of the mapped file, if it may be it: the process may have mapped another one since.
    fn open(&self) -> Result<OpenedHandle, ElfError> {
        if let Some(handle) = Handle::of_local(self.mapping, self.reader) {
            return Ok(OpenedHandle {
                handle,
                is_inside: false,
            });
        }
        let directory = &self.process.directory;
        let link = directory
            .join("map_files")
            .join(self.mapping.map_files_name());
        let error = match Handle::of_mapping(&link, self.reader) {
            Ok(handle) => {
                return match Likeness::compare(&handle, self.mapping) {
                    Likeness::Other => Err(self.is_another(&link)),
                    _ => Ok(OpenedHandle {
                        handle,
                        is_inside: false,
                    }),
                };
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error.into()),
            Err(error) => error,
        };
        // map_files needs CAP_CHECKPOINT_RESTORE. Without it, the path is used if it leads to the same device and inode number.
        let path = directory.join("root").join(self.below());
        if !self.mapping.deleted
            && let Ok(handle) = Handle::of_path(&path, self.reader)
            && Likeness::compare(&handle, self.mapping).is_inode()
        {
            return Ok(OpenedHandle {
                handle,
                is_inside: true,
            });
        }
        Err(ElfError::Io(io::Error::new(
            error.kind(),
            format!(
                "{} is not the file that is mapped, and {}: {error}",
                shown(&self.mapping.path),
                shown(&link)
            ),
        )))
    }

    /// Reads the headers of the mapped file.
    fn object(&self, opened: OpenedHandle) -> Result<ObjectFile, ElfError> {
        let likeness = Likeness::compare(&opened.handle, self.mapping);
        let path = self.mapping.path.clone();
        match ObjectFile::from_handle(opened.handle, path) {
            // The error would be taken for one of the mapped file.
            Err(ElfError::NotElf(_)) if likeness != Likeness::Same => {
                Err(self.is_another(&self.process.directory))
            }
            file => Ok(file?.mapped_as(self.mapping.mapped_inode())),
        }
    }

    /// The error of a file that is not the mapped one.
    fn is_another(&self, path: &Path) -> ElfError {
        ElfError::Io(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "{} is not the file of the mapping of {}",
                shown(path),
                shown(&self.mapping.path)
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::file_mapping::DeviceNumber;

    /// A mapping of a file, as its metadata say.
    fn mapping_of(file: &File) -> FileMapping {
        let metadata = file.metadata().unwrap();
        let line = format!(
            "1000-2000 r-xp 00000000 {:x}:{:x} {} /a",
            rustix::fs::major(metadata.dev()),
            rustix::fs::minor(metadata.dev()),
            metadata.ino()
        );
        FileMapping::parse(line.as_bytes()).unwrap()
    }

    /// A file of another device with the same inode number is another file, except where the file system gives another device.
    #[test]
    fn a_mapped_file_has_its_device_and_inode() {
        // procfs gives the device that it has.
        let path = Path::new("/proc/self/maps");
        let mapping = mapping_of(&File::open(path).unwrap());
        let reader = Reader {
            device: mapping.device,
            ..Reader::of_unknown(Patience::Usual)
        };
        let file = Handle::of_path(path, reader).unwrap();
        assert_eq!(Likeness::compare(&file, &mapping), Likeness::Same);
        let other = FileMapping {
            inode: mapping.inode + 1,
            ..mapping.clone()
        };
        assert_eq!(Likeness::compare(&file, &other), Likeness::Other);
        let DeviceNumber { major, minor } = mapping.device;
        let other = FileMapping {
            device: DeviceNumber {
                major,
                minor: minor + 1,
            },
            ..mapping
        };
        assert_eq!(Likeness::compare(&file, &other), Likeness::Other);
    }

    /// A mapping's link leads to what the process maps there when it is opened.
    #[test]
    fn another_file_at_the_addresses_of_a_mapping_is_refused() {
        let pid = std::process::id();
        let process = OpenProcess::open(pid).unwrap();
        let program = std::env::current_exe().unwrap();
        let is_program = |map: &FileMapping| map.path == program;
        let mapping = process.mappings(is_program).unwrap().remove(0);
        let read = open_mapped(pid, &mapping, Patience::Usual).unwrap();
        assert_eq!(read.id().inode, mapping.inode);
        let other = FileMapping {
            inode: mapping.inode + 1,
            ..mapping
        };
        match open_mapped(pid, &other, Patience::Usual) {
            // Without CAP_CHECKPOINT_RESTORE it is the error of opening the link.
            Err(ElfError::Io(_)) => {}
            outcome => panic!("{outcome:?}"),
        }
    }

    #[test]
    fn each_file_of_maps_is_taken_once() {
        let maps = "1000-2000 r--p 00000000 fe:01 7 /a\n\
                    2000-3000 r-xp 00001000 fe:01 7 /a\n\
                    3000-4000 r-xp 00002000 fe:01 7 /a\n\
                    4000-5000 rw-p 00000000 00:00 0 \n\
                    5000-6000 r-xp 00000000 fe:01 7 /b\n\
                    6000-7000 r-xp 00000000 fe:02 7 /a\n";
        let found = first_mappings(maps.as_bytes(), |map| map.permissions[2]).unwrap();
        let starts: Vec<u64> = found.iter().map(|map| map.range.start).collect();
        assert_eq!(starts, [0x2000, 0x5000, 0x6000]);
    }

    /// What is in `/proc/PID` belongs to root if a process is not dumpable, and the directory does not.
    #[test]
    fn the_owner_is_that_of_the_process() {
        let process = OpenProcess::open(std::process::id()).unwrap();
        assert_eq!(
            process.owner().unwrap(),
            rustix::process::geteuid().as_raw()
        );
    }
}
