//! Build-ids of the files that processes map, read once for each file.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use usdtrec_attach::places::{Account, account_of};
use usdtrec_buildid_cache::elf::{ElfError, ObjectFile};
use usdtrec_buildid_cache::served::Patience;
use usdtrec_buildid_cache::{DeviceNumber, FileMapping, MappedInode};
use usdtrec_format::BuildId;
use usdtrec_format::perf::{Mmap, MmapFile};
use usdtrec_kernel::host::identity::generation;
use usdtrec_kernel::host::process::live_directory;

use super::mapped_file::{Mapped, MappedFileId};
use super::slow_files::{OpenedFile, SlowFile, SlowFiles, Tries};
use super::sought_files::SoughtFiles;
use super::unread_files::{UnreadCounts, UnreadFiles, UnreadReason};

/// Maximum number of known files.
pub(super) const MAX_KNOWN_FILES: usize = 1 << 16;

/// Maximum number of files that are kept open until they are taken.
const MAX_NEW_FILES: usize = 256;

/// Maximum number of processes of which files of code are known that could not be opened, and of these files of a process: if it has so many, none is
/// opened until it begins another program.
const MAX_FAILED_PROCESSES: usize = 1 << 12;
const MAX_FAILED_FILES: usize = 256;

/// An ELF file that a process mapped, and that may have probes.
#[derive(Debug)]
pub(super) struct NewFile {
    /// The process.
    pub(crate) pid: i32,
    /// The thread that mapped it; 0 if that is not known.
    pub(super) tid: i32,
    /// Its account; `None` if it had ended.
    pub(super) account: Option<Account>,
    /// When it was mapped, ns of the trace's clock; 0 if that is not known.
    pub(super) mapped_at: u64,
    /// Number of programs that mapped it before and ended before it was read.
    pub(super) ended: usize,
    /// The file as mappings identify it.
    pub(super) id: MappedFileId,
    /// Path of the file, as the process sees it.
    pub(super) path: PathBuf,
    /// The file.
    pub(super) object: ObjectFile,
}

/// Of files that are too many, the one to leave out for a file of a process: the last one of the process that has the most, if that has more.
pub(super) fn dispensable<'f>(
    files: impl IntoIterator<Item = &'f NewFile>,
    pid: i32,
) -> Option<usize> {
    let mut last: HashMap<i32, (usize, usize)> = HashMap::new();
    for (at, file) in files.into_iter().enumerate() {
        let (number, last) = last.entry(file.pid).or_default();
        (*number, *last) = (*number + 1, at);
    }
    let own = last.get(&pid).map_or(0, |(number, _)| *number);
    let (most, at) = last.into_values().max()?;
    (most > own + 1).then_some(at)
}

/// Files that were read and not taken yet.
#[derive(Debug, Default)]
pub(super) struct NewFiles {
    /// The files.
    pub(crate) files: Vec<NewFile>,
    /// Number of files that were too many to be kept.
    pub(super) too_many: usize,
    /// Files whose file systems did not answer, and which are tried again.
    pub(super) unanswered: Vec<UnansweredFile>,
}

/// A file whose file system did not answer, and a process that maps it.
#[derive(Debug)]
pub(super) struct UnansweredFile {
    pub(super) path: PathBuf,
    pub(crate) pid: i32,
}

/// A file that was opened.
#[derive(Clone, Copy, Debug)]
struct KnownFile {
    /// `None` if it has none.
    build_id: Option<BuildId>,
    /// Generation of its inode, if it is known.
    generation: Option<u64>,
}

/// The inodes of files that were opened, with their generations, if these are known.
pub(super) type KnownInodes = HashMap<MappedInode, Option<u64>>;

/// Known build-ids.
#[derive(Debug, Default)]
pub(super) struct BuildIds {
    known: HashMap<MappedFileId, KnownFile>,
    new: NewFiles,
    unread: UnreadFiles,
    sought: SoughtFiles,
    /// Whether files are not kept. Those that cannot have probes never are.
    are_ignored: bool,
    /// The files that were known when reading ended: no file is opened any more. `None` before.
    ended: Option<KnownInodes>,
    /// Files that did not answer at once.
    slow: Option<SlowFiles>,
    /// Number of those for which there was no room there.
    left_unread: u64,
    /// Files of code that could not be opened although they were mapped, by process: it may map one again and again.
    failed: HashMap<i32, HashSet<MappedFileId>>,
    /// Files that did not answer, of those that are read once.
    put_off: HashMap<MappedFileId, SlowFile>,
}

impl BuildIds {
    /// Opens no file any more. Others than the known ones count as not read.
    pub(super) fn read_no_more(&mut self, known: KnownInodes) {
        self.ended = Some(known);
        if let Some(slow) = self.slow.take() {
            slow.end();
        }
    }

    /// The files that were opened.
    pub(super) fn known_inodes(&self) -> KnownInodes {
        let files = self.known.iter();
        files
            .map(|(file, known)| (file.mapped_inode(), known.generation))
            .collect()
    }

    /// Keeps the files that are read from now on, or does not.
    pub(super) fn keep_files(&mut self, are_kept: bool) {
        self.are_ignored = !are_kept;
    }

    /// The files that were read since the last call; of very many, the first ones.
    pub(super) fn take_new(&mut self) -> NewFiles {
        let slow = self.slow.as_mut().map(SlowFiles::take);
        for OpenedFile { file, outcome, .. } in slow.unwrap_or_default() {
            let SlowFile { id, mapped, .. } = file;
            // Another process of it had an answer.
            if self.known.contains_key(&id) {
                continue;
            }
            if matches!(&outcome, Err(error) if error.is_timeout()) {
                self.new.unanswered.push(UnansweredFile {
                    path: mapped.mapping.path.clone(),
                    pid: mapped.pid,
                });
            }
            self.note(id, mapped, outcome);
        }
        std::mem::take(&mut self.new)
    }

    /// Numbers of files that did not answer at once.
    pub(super) fn slow_tries(&self) -> Tries {
        self.slow.as_ref().map(SlowFiles::tries).unwrap_or_default()
    }

    /// Forgets files that were left out: they are read again when they are mapped again.
    pub(super) fn forget(&mut self, files: impl IntoIterator<Item = MappedFileId>) {
        for file in files {
            self.known.remove(&file);
        }
    }

    /// Notes of files that could not be read only these.
    pub(super) fn seek(&mut self, files: SoughtFiles) {
        self.sought = files;
    }

    /// Notes that process records were lost, which may have reported mappings.
    pub(super) const fn note_lost(&mut self, records: u64) {
        self.unread.note_lost(records);
    }

    /// Number of mappings that were not read, of lost records and of too many files that did not answer at once: they are looked for once more.
    pub(super) const fn missed_mappings(&self) -> u64 {
        self.unread.lost_records() + self.left_unread
    }

    /// A process begins another program.
    pub(super) fn begin_program(&mut self, pid: i32) {
        self.unread.begin_program(pid);
        self.failed.remove(&pid);
    }

    /// What could not be read so far, and was to be kept.
    pub(super) fn unread(&self) -> UnreadCounts {
        self.unread.counts()
    }

    /// The build-id of the file of a mapping that a record reports. `None` if it has no build-id, or cannot be opened any more.
    pub(super) fn of_record(&mut self, map: &Mmap<'_>) -> Option<BuildId> {
        const DELETED: &[u8] = b" (deleted)";
        let MmapFile::Inode {
            major,
            minor,
            inode,
            generation,
        } = map.file
        else {
            return None;
        };
        let device = DeviceNumber { major, minor };
        let file = MappedFileId {
            device,
            inode,
            generation,
        };
        self.build_id(file, Patience::Short, || {
            let live = map.path.strip_suffix(DELETED);
            let path = OsStr::from_bytes(live.unwrap_or(map.path));
            Mapped {
                pid: map.pid,
                tid: map.tid,
                mapped_at: map.id.time,
                mapping: FileMapping {
                    range: map.start..map.start.saturating_add(map.len),
                    permissions: [true, false, map.is_executable()],
                    is_private: true,
                    offset: map.offset,
                    device,
                    inode,
                    path: path.into(),
                    deleted: live.is_some(),
                },
            }
        })
    }

    /// As [`of_record`](Self::of_record), of a mapping that a process has now.
    pub(super) fn of_mapping(&mut self, pid: i32, mapping: &FileMapping) -> Option<BuildId> {
        let file = MappedFileId {
            device: mapping.device,
            inode: mapping.inode,
            generation: 0,
        };
        self.build_id(file, Patience::Usual, || Mapped {
            pid,
            tid: 0,
            mapped_at: 0,
            mapping: mapping.clone(),
        })
    }

    fn build_id(
        &mut self,
        file: MappedFileId,
        patience: Patience,
        mapped: impl FnOnce() -> Mapped,
    ) -> Option<BuildId> {
        // Memory of no file.
        if file.inode == 0 {
            return None;
        }
        if let Some(known) = self.known.get(&file) {
            return known.build_id;
        }
        let mapped = mapped();
        if let Some(known) = &self.ended {
            let [_, _, is_executable] = mapped.mapping.permissions;
            // Another file may have got the number of one that was removed.
            let is_same = |known: &Option<u64>| {
                file.generation == 0 || known.is_none_or(|known| known == file.generation)
            };
            let known = known.get(&mapped.mapping.mapped_inode());
            let is_known = known.is_some_and(is_same);
            if is_executable && !is_known && self.sought.has(&mapped.mapping) {
                self.unread.note(file, mapped.pid, UnreadReason::Late);
            }
            return None;
        }
        if self
            .slow
            .as_ref()
            .is_some_and(|slow| slow.has(&file, mapped.pid))
        {
            return None;
        }
        let [_, _, is_executable] = mapped.mapping.permissions;
        if is_executable
            && let Some(failed) = self.failed.get(&mapped.pid)
            && (failed.len() >= MAX_FAILED_FILES || failed.contains(&file))
        {
            if self.is_sought(&mapped.mapping) {
                self.unread.note(file, mapped.pid, UnreadReason::Failed);
            }
            return None;
        }
        let outcome = mapped.open(patience);
        if matches!(&outcome, Err(error) if error.is_timeout()) {
            let slow = SlowFile::new(file, mapped.clone());
            let is_tried_again = match patience {
                Patience::Short => self.try_again(slow),
                Patience::Usual => self.put_off(slow),
            };
            if is_tried_again {
                return None;
            }
        }
        self.note(file, mapped, outcome)
    }

    /// Whether hits may be missing if the file of a mapping cannot be read.
    fn is_sought(&self, mapping: &FileMapping) -> bool {
        let [_, _, is_executable] = mapping.permissions;
        is_executable && !self.are_ignored && self.sought.has(mapping)
    }

    /// Has a file that did not answer at once tried again. Returns whether there was room.
    pub(super) fn try_again(&mut self, file: SlowFile) -> bool {
        if self.is_sought(&file.mapped.mapping) {
            // Until it is read. The recording may end before.
            let pid = file.mapped.pid;
            self.unread.note(file.id, pid, UnreadReason::NoAnswer);
        }
        if self.slow.is_none() {
            self.slow = SlowFiles::start();
        }
        let is_added = self.slow.as_mut().is_some_and(|slow| slow.add(file));
        self.left_unread += u64::from(!is_added);
        is_added
    }

    /// Keeps a file that did not answer for who reads on. Returns whether there was room.
    fn put_off(&mut self, file: SlowFile) -> bool {
        let is_kept = self.is_sought(&file.mapped.mapping) && self.put_off.len() < MAX_NEW_FILES;
        if is_kept {
            self.put_off.entry(file.id).or_insert(file);
        }
        is_kept
    }

    /// The files that did not answer when they were read once.
    pub(super) fn take_put_off(&mut self) -> Vec<SlowFile> {
        std::mem::take(&mut self.put_off).into_values().collect()
    }

    fn note_failed(&mut self, file: MappedFileId, pid: i32) {
        if self.failed.len() >= MAX_FAILED_PROCESSES && !self.failed.contains_key(&pid) {
            self.failed.clear();
        }
        self.failed.entry(pid).or_default().insert(file);
    }

    /// Notes what became of a file. Returns its build-id.
    fn note(
        &mut self,
        file: MappedFileId,
        mapped: Mapped,
        outcome: Result<ObjectFile, ElfError>,
    ) -> Option<BuildId> {
        let object = match outcome {
            Ok(object) => Some(object),
            // It is there, and is no ELF file.
            Err(error) if error.is_other_file() => None,
            Err(error) => {
                let reason = unread_reason(&error, mapped.pid);
                if self.is_sought(&mapped.mapping) {
                    self.unread.note(file, mapped.pid, reason);
                }
                let [_, _, is_executable] = mapped.mapping.permissions;
                let is_there = matches!(reason, UnreadReason::Denied | UnreadReason::Failed);
                if is_there && is_executable {
                    self.note_failed(file, mapped.pid);
                }
                return None;
            }
        };
        self.put_off.remove(&file);
        let ended = self.unread.take(&file);
        let build_id = object.as_ref().and_then(ObjectFile::build_id);
        let local = object.as_ref().and_then(ObjectFile::local);
        let generation = local.and_then(generation);
        let is_kept = |object: &ObjectFile| !self.are_ignored && object.may_have_probes();
        if let Some(object) = object.filter(is_kept) {
            if self.new.files.len() == MAX_NEW_FILES {
                self.new.too_many += 1;
                match dispensable(&self.new.files, mapped.pid) {
                    Some(at) => {
                        let left_out = self.new.files.remove(at);
                        self.forget([left_out.id]);
                    }
                    None => return build_id,
                }
            }
            self.new.files.push(NewFile {
                ended,
                ..NewFile::new(mapped, file, object)
            });
        }
        if self.known.len() >= MAX_KNOWN_FILES {
            // A recording may see new files for ever; files that are mapped again are read again.
            self.known.clear();
        }
        let known = KnownFile {
            build_id,
            generation,
        };
        self.known.insert(file, known);
        build_id
    }
}

/// Why the file of a mapping of a process could not be opened.
fn unread_reason(error: &ElfError, pid: i32) -> UnreadReason {
    let ElfError::Io(error) = error else {
        return UnreadReason::Failed;
    };
    match error.kind() {
        io::ErrorKind::PermissionDenied => UnreadReason::Denied,
        io::ErrorKind::TimedOut => UnreadReason::NoAnswer,
        _ if !executes(pid) => UnreadReason::Ended,
        io::ErrorKind::NotFound => UnreadReason::Unmapped,
        _ => UnreadReason::Failed,
    }
}

/// Whether a process executes a program, which one that has ended does not, also if its parent has not waited for it.
fn executes(pid: i32) -> bool {
    fs::read_link(live_directory(pid).join("exe")).is_ok()
}

impl NewFile {
    fn new(mapped: Mapped, id: MappedFileId, object: ObjectFile) -> Self {
        let process = u32::try_from(mapped.pid).ok();
        Self {
            pid: mapped.pid,
            tid: mapped.tid,
            account: process.and_then(account_of),
            mapped_at: mapped.mapped_at,
            ended: 0,
            id,
            path: mapped.mapping.path,
            object,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use usdtrec_format::perf::SampleId;

    use super::*;

    fn mapped(generation: u64) -> Mmap<'static> {
        Mmap {
            pid: 1,
            tid: 1,
            start: 0x40_0000,
            len: 0x1000,
            offset: 0,
            file: MmapFile::Inode {
                major: 8,
                minor: 1,
                inode: 7,
                generation,
            },
            protection: (libc::PROT_READ | libc::PROT_EXEC) as u32,
            flags: libc::MAP_PRIVATE as u32,
            cpu_mode: Mmap::USER,
            path: b"/opt/app",
            id: SampleId::default(),
        }
    }

    #[test]
    fn a_file_that_got_the_inode_of_a_removed_one_is_another() {
        let (major, minor) = (8, 1);
        let inode = MappedInode {
            device: DeviceNumber { major, minor },
            inode: 7,
        };
        for (known, of_record, late) in [
            (Some(5), 5, 0),
            (None, 5, 0),
            (Some(5), 0, 0),
            (Some(5), 6, 1),
        ] {
            let mut files = BuildIds::default();
            files.read_no_more(HashMap::from([(inode, known)]));
            files.of_record(&mapped(of_record));
            assert_eq!(
                files.unread().of(UnreadReason::Late),
                late,
                "{known:?} {of_record}"
            );
        }
    }

    /// A process may map a file that cannot be opened again and again: it is not tried for each mapping.
    #[test]
    fn a_file_that_cannot_be_opened_is_not_tried_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), [b"\x7fELF".as_slice(), &[0; 4096]].concat()).unwrap();
        let (any, descriptor) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: the kernel chooses the address, and nobody uses the memory.
        let map = unsafe { libc::mmap(any, 1, libc::PROT_READ, libc::MAP_PRIVATE, descriptor, 0) };
        assert_ne!(map, libc::MAP_FAILED);
        let maps = fs::read("/proc/self/maps").unwrap();
        let mut all = FileMapping::parse_all(&maps);
        let mut mapping = all.find(|map| map.path == file.path()).unwrap();
        mapping.permissions = [true, false, true];
        let own = std::process::id().cast_signed();
        let mut files = BuildIds::default();
        assert_eq!(files.of_mapping(own, &mapping), None);
        fs::copy(std::env::current_exe().unwrap(), file.path()).unwrap();
        assert_eq!(files.of_mapping(own, &mapping), None);
        assert_eq!(files.unread().of(UnreadReason::Failed), 1);
        files.begin_program(own);
        let opened = ObjectFile::open(file.path()).unwrap();
        assert_eq!(files.of_mapping(own, &mapping), opened.build_id());
        assert_eq!(files.unread().of(UnreadReason::Failed), 0);
        assert!(opened.build_id().is_some());
    }
}
