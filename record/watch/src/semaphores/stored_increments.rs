//! Notes of the semaphores that are incremented by hand, for the case that the recorder is killed: a file for each recording below
//! `/run/usdtrec`, with a line for each increment and each end of one.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use usdtrec_attach::engine::Owner;
use usdtrec_buildid_cache::{DeviceNumber, MappedInode};
use usdtrec_kernel::host::process::{Process, is_gone};
use usdtrec_kernel::host::run_directory;

use super::file_memory::LastMemory;

/// Ending of the names of these files.
const ENDING: &str = ".semaphores";
/// The same of a file that is being written anew.
const NEW_ENDING: &str = ".semaphores.new";
const NEW: &str = ".new";
/// What is before it if they are of copies of a file: another part of the recorder writes these.
const OF_COPIES: &str = ".copies";
/// Size from which on a file is written anew, bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum time for which a repair waits for a killed recorder that is ending.
const MAX_ENDING_TIME: Duration = Duration::from_secs(15);
const STEP: Duration = Duration::from_millis(10);

/// A semaphore in a process that is incremented by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Note {
    /// Process id.
    pub(super) pid: u32,
    /// Start time of the process, clock ticks since boot.
    pub(super) start: u64,
    pub(super) file: MappedInode,
    /// File offset of the semaphore.
    pub(super) offset: u64,
    /// Its address in the process.
    pub(super) address: u64,
}

impl Note {
    fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(' ').map(|word| word.parse().ok());
        let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
        let [pid, start, major, minor, inode, offset, address] = numbers.try_into().ok()?;
        Some(Self {
            pid: pid.try_into().ok()?,
            start,
            file: MappedInode {
                device: DeviceNumber {
                    major: major.try_into().ok()?,
                    minor: minor.try_into().ok()?,
                },
                inode,
            },
            offset,
            address,
        })
    }
}

impl Note {
    /// Decrements the semaphore, unless it is 0 or the memory is another one now.
    ///
    /// # Errors
    /// As [`LastMemory::of_file`].
    pub(super) fn lower(self, memory: &mut LastMemory) -> io::Result<()> {
        is_raised(self, true, memory).map(|_| ())
    }

    /// Whether the process lives and may still have the increment: it does not if the memory is another one now, or the semaphore is 0.
    pub(super) fn may_count(&self, memory: &mut LastMemory) -> bool {
        let is_alive = || start_of(self.pid).is_ok_and(|start| start == self.start);
        let is_raised = is_raised(*self, false, memory).unwrap_or_else(|error| !is_gone(&error));
        is_raised && is_alive()
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            start,
            file,
            offset,
            address,
        } = self;
        let MappedInode { device, inode } = file;
        write!(
            f,
            "{pid} {start} {} {} {inode} {offset} {address}",
            device.major, device.minor
        )
    }
}

/// The notes of this recording. The file is created with the first one, and removed when this is dropped, unless semaphores are still incremented.
#[derive(Debug, Default)]
pub(super) struct StoredIncrements {
    /// What the name has after the recorder's.
    suffix: &'static str,
    file: Option<(PathBuf, File)>,
    notes: HashSet<Note>,
    bytes: u64,
}

impl StoredIncrements {
    /// The increments of files that processes map more than once.
    pub(super) fn of_copies() -> Self {
        Self {
            suffix: OF_COPIES,
            file: None,
            notes: HashSet::new(),
            bytes: 0,
        }
    }

    /// Notes semaphores that are about to be incremented.
    ///
    /// # Errors
    /// The error of creating or writing the file.
    pub(super) fn add(&mut self, notes: &[Note]) -> io::Result<()> {
        self.notes.extend(notes);
        self.write('+', notes)
    }

    /// Removes notes: of semaphores that were decremented, or whose memory is gone.
    pub(super) fn remove(&mut self, notes: &[Note]) {
        for note in notes {
            self.notes.remove(note);
        }
        // A note of a semaphore that was decremented is harmless: it is not decremented below 0.
        let _ = self.write('-', notes);
    }

    fn write(&mut self, sign: char, notes: &[Note]) -> io::Result<()> {
        let lines: String = notes.iter().map(|note| format!("{sign}{note}\n")).collect();
        if lines.is_empty() {
            return Ok(());
        }
        if self.bytes > MAX_BYTES {
            return self.write_anew();
        }
        if self.file.is_none() {
            let name = format!("{}{}{ENDING}", Owner::of_this_process()?, self.suffix);
            let path = run_directory::create()?.join(name);
            self.file = Some((path.clone(), create(&path)?));
        }
        if let Some((_, file)) = &mut self.file {
            // The last line may have been cut by a full disk.
            file.write_all(format!("\n{lines}").as_bytes())?;
            self.bytes += lines.len() as u64;
        }
        Ok(())
    }

    /// Replaces the file by one with the notes that count.
    fn write_anew(&mut self) -> io::Result<()> {
        let Some((path, _)) = &self.file else {
            return Ok(());
        };
        let path = path.clone();
        let mut new = path.clone().into_os_string();
        new.push(NEW);
        let new = PathBuf::from(new);
        let lines: String = self.notes.iter().map(|note| format!("+{note}\n")).collect();
        // Of an attempt that failed: its notes may be of what was decremented since.
        let _ = fs::remove_file(&new);
        let mut file = create(&new)?;
        let written = file.write_all(lines.as_bytes());
        if let Err(error) = written.and_then(|()| fs::rename(&new, &path)) {
            let _ = fs::remove_file(&new);
            return Err(error);
        }
        // Notes that are as long as this stay so: the next time is after as many more.
        self.bytes = 0;
        self.file = Some((path, file));
        Ok(())
    }
}

impl Drop for StoredIncrements {
    fn drop(&mut self) {
        // What could not be decremented is left to a repair. Processes may have ended, and with them their semaphores.
        let mut memory = LastMemory::default();
        let notes = by_process(std::mem::take(&mut self.notes)).into_iter();
        self.notes = notes.filter(|note| note.may_count(&mut memory)).collect();
        if !self.notes.is_empty() {
            // Without that the file has what was decremented, too, as far as that could not be written.
            let _ = self.write_anew();
        } else if let Some((path, _)) = &self.file {
            let _ = fs::remove_file(path);
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

/// A process with semaphores that a killed recorder left incremented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaisedProcess {
    /// Process id.
    pub pid: u32,
    /// Number of semaphores.
    pub semaphores: usize,
}

/// What [`raised_processes`] does about the processes that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing.
    ReportOnly,
    /// It decrements what recorders left that have ended.
    Now,
    /// It waits for recorders that are just ending, too, up to `MAX_ENDING_TIME`.
    UntilEnded,
}

/// The processes in which killed recorders left semaphores incremented. A repair decrements these; [`Repair::UntilEnded`] waits up to 15 s for
/// killed recorders that are still ending.
///
/// # Errors
/// The error of reading `/run/usdtrec`, unless it does not exist; an error if others than root can access it.
pub fn raised_processes(repair: Repair) -> io::Result<Vec<RaisedProcess>> {
    match run_directory::check() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    }
    let us = Owner::of_this_process()?;
    let mut found: BTreeMap<u32, usize> = BTreeMap::new();
    for entry in fs::read_dir(run_directory::PATH)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_unfinished = name.ends_with(NEW_ENDING);
        let ending = if is_unfinished { NEW_ENDING } else { ENDING };
        let owner = name.strip_suffix(ending);
        let owner = owner.map(|owner| owner.strip_suffix(OF_COPIES).unwrap_or(owner));
        let Some(owner) = owner.and_then(Owner::parse) else {
            continue;
        };
        let begun = Instant::now();
        while repair == Repair::UntilEnded
            && !owner.has_ended(&us)
            && owner.is_ending(&us)
            && begun.elapsed() < MAX_ENDING_TIME
        {
            thread::sleep(STEP);
        }
        if !owner.has_ended(&us) {
            continue;
        }
        let repairs = repair != Repair::ReportOnly;
        if is_unfinished {
            // The file that it was to replace has all of its notes.
            if repairs {
                let _ = fs::remove_file(entry.path());
            }
            continue;
        }
        let file = match File::open(entry.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        if repairs {
            // Two repairs at once would decrement twice. The other one may wait for a process.
            let locked = run_directory::lock_within(&file, MAX_ENDING_TIME);
            if locked.is_err() || file.metadata()?.nlink() == 0 {
                continue;
            }
        }
        let text = io::read_to_string(&file)?;
        let (mut lowered, mut is_left) = (Vec::new(), false);
        let mut memory = LastMemory::default();
        for note in by_process(current(&text)) {
            match is_raised(note, repairs, &mut memory) {
                Ok(true) => {
                    *found.entry(note.pid).or_default() += 1;
                    lowered.push(note);
                }
                Ok(false) => {}
                // A later repair may reach it, or one that has more capabilities.
                Err(error) => {
                    let may_pass = [io::ErrorKind::TimedOut, io::ErrorKind::PermissionDenied];
                    is_left |= may_pass.contains(&error.kind());
                }
            }
        }
        if repairs && is_left {
            let lines: String = lowered.iter().map(|note| format!("-{note}\n")).collect();
            let mut file = OpenOptions::new().append(true).open(entry.path())?;
            file.write_all(lines.as_bytes())?;
        } else if repairs {
            fs::remove_file(entry.path())?;
        }
    }
    let processes = found.into_iter();
    Ok(processes
        .map(|(pid, semaphores)| RaisedProcess { pid, semaphores })
        .collect())
}

/// The notes of a file that were not removed. A line that was not written to its end is omitted.
fn current(text: &str) -> HashSet<Note> {
    let mut notes = HashSet::new();
    for line in text.lines() {
        let (sign, note) = (line.chars().next(), line.get(1..).and_then(Note::parse));
        match (sign, note) {
            (Some('+'), Some(note)) => _ = notes.insert(note),
            (Some('-'), Some(note)) => _ = notes.remove(&note),
            _ => {}
        }
    }
    notes
}

/// The notes of a process after each other.
fn by_process(notes: HashSet<Note>) -> Vec<Note> {
    let mut notes: Vec<Note> = notes.into_iter().collect();
    notes.sort_unstable_by_key(|note| (note.pid, note.start));
    notes
}

/// Whether a semaphore is not 0 in the process of the note. A repair decrements it.
fn is_raised(note: Note, repair: bool, memory: &mut LastMemory) -> io::Result<bool> {
    if start_of(note.pid)? != note.start {
        return Ok(false);
    }
    let memory = memory.of_file(note.pid, note.start, note.file)?;
    if !memory.has(note.offset, note.address) || memory.semaphore(note.address)? == 0 {
        return Ok(false);
    }
    if repair {
        memory.add(note.address, -1)?;
    }
    Ok(true)
}

/// The start time of a process, clock ticks since boot.
///
/// # Errors
/// `NotFound` if it has ended.
pub(super) fn start_of(pid: u32) -> io::Result<u64> {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let pid = i32::try_from(pid).map_err(|_| missing())?;
    let process = Process::open(pid).map_err(|_| missing())?;
    let stat = process.stat().map_err(|_| missing())?;
    if stat.has_ended() && stat.num_threads <= 1 {
        return Err(missing());
    }
    Ok(stat.start)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use usdtrec_buildid_cache::FileMapping;

    use super::super::file_memory::{Change, FileMemory};
    use super::*;

    /// What a killed recorder left is decremented once, and only where the note is right.
    #[test]
    fn a_semaphore_is_decremented_where_it_was_noted() {
        let mut child = Command::new("/usr/bin/cat")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        let data = loop {
            let maps = fs::read(format!("/proc/{pid}/maps")).unwrap();
            let is_data = |map: &FileMapping| map.permissions[1] && map.path.ends_with("cat");
            let mut maps = FileMapping::parse_all(&maps);
            if let Some(data) = maps.find(is_data) {
                break data;
            }
        };
        // The last bytes of its page, which no variable has.
        let distance = data.range.end - data.range.start - 2;
        let right = Note {
            pid,
            start: start_of(pid).unwrap(),
            file: data.mapped_inode(),
            offset: data.offset + distance,
            address: data.range.start + distance,
        };
        let memory = FileMemory::open(pid, right.file).unwrap();
        let before = memory.semaphore(right.address).unwrap();
        memory.add(right.address, 1).unwrap();
        let mut wrong = [right; 4];
        wrong[0].start += 1;
        wrong[1].file.inode += 1;
        wrong[2].offset += 2;
        wrong[3].address -= 2;
        for note in wrong {
            assert!(
                !is_raised(note, true, &mut LastMemory::default()).unwrap_or(false),
                "{note:?}"
            );
        }
        assert_eq!(memory.semaphore(right.address).unwrap(), before + 1);
        assert!(is_raised(right, false, &mut LastMemory::default()).unwrap());
        assert!(is_raised(right, true, &mut LastMemory::default()).unwrap());
        assert_eq!(memory.semaphore(right.address).unwrap(), before);
        memory.add(right.address, -1 - i32::from(before)).unwrap();
        assert_eq!(memory.semaphore(right.address).unwrap(), before);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!is_raised(right, true, &mut LastMemory::default()).unwrap_or(false));
    }

    /// A change waits for no repair, which searches all processes, and not long for another recorder, which may be stopped. Of several changes all
    /// are made, or none.
    #[test]
    fn a_change_waits_for_nobody() {
        if !rustix::process::geteuid().is_root() || run_directory::create().is_err() {
            return;
        }
        let own = std::process::id();
        let maps = fs::read("/proc/self/maps").unwrap();
        let data = FileMapping::parse_all(&maps)
            .find(|map| map.permissions[2])
            .unwrap();
        let memory = FileMemory::open(own, data.mapped_inode()).unwrap();
        let semaphore = Box::new(0_u16);
        let address = std::ptr::from_ref(&*semaphore) as u64;
        let repair = run_directory::RepairLock::take(Duration::from_secs(60)).unwrap();
        let recorder = run_directory::lock(Duration::from_secs(60)).unwrap();
        memory.add(address, 1).unwrap();
        assert_eq!(memory.semaphore(address).unwrap(), 1);
        drop((recorder, repair));
        // Of several that are changed together, one that is not mapped: none is.
        let both = [address, 8].map(|address| Change { address, by: 1 });
        let failed = memory.change_all(&both).unwrap_err();
        assert!(failed.left.is_empty(), "{failed:?}");
        assert_eq!(memory.semaphore(address).unwrap(), 1);
        assert!(!Path::new(run_directory::PATH).join("repair.lock").exists());
    }

    /// What an attempt to write the notes anew has left counts for nothing, and neither does a line that a full disk has cut.
    #[test]
    fn notes_are_written_anew_without_what_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("notes{ENDING}"));
        let new = folder.path().join(format!("notes{NEW_ENDING}"));
        let note = |pid| Note {
            pid,
            start: 7,
            file: MappedInode {
                device: DeviceNumber { major: 5, minor: 6 },
                inode: 8,
            },
            offset: 9,
            address: 10,
        };
        let mut stored = StoredIncrements::default();
        stored.file = Some((path.clone(), create(&path).unwrap()));
        let notes = || current(&fs::read_to_string(&path).unwrap());
        fs::write(&path, "+1 7 5 6").unwrap();
        stored.add(&[note(2)]).unwrap();
        assert_eq!(notes(), HashSet::from([note(2)]));
        fs::write(&new, format!("+{}\n", note(1))).unwrap();
        stored.bytes = MAX_BYTES + 1;
        stored.add(&[note(3)]).unwrap();
        assert_eq!(notes(), HashSet::from([note(2), note(3)]));
        assert!(!new.exists());
    }

    /// A process that ended needs no repair; one whose semaphore is still incremented does.
    #[test]
    fn notes_of_what_could_not_be_decremented_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("notes{ENDING}"));
        let own = std::process::id();
        let maps = fs::read("/proc/self/maps").unwrap();
        let counts = |map: &FileMapping| {
            let is_own = map.permissions[1] && map.is_private && map.inode != 0;
            let note = Note {
                pid: own,
                start: start_of(own).unwrap(),
                file: MappedInode {
                    device: map.device,
                    inode: map.inode,
                },
                offset: map.offset,
                address: map.range.start,
            };
            let has = |end: u64| {
                let step = |offset| Note {
                    offset: note.offset + offset,
                    address: note.address + offset,
                    ..note
                };
                (0..end)
                    .step_by(8)
                    .map(step)
                    .find(|note| note.may_count(&mut LastMemory::default()))
            };
            is_own
                .then(|| has(map.range.end - map.range.start))
                .flatten()
        };
        // Bytes of this program that are not 0 stand for a semaphore.
        let raised = FileMapping::parse_all(&maps)
            .find_map(|map| counts(&map))
            .unwrap();
        let gone = Note {
            start: raised.start + 1,
            ..raised
        };
        let stored = |notes: &[Note]| {
            let mut stored = StoredIncrements::default();
            stored.file = Some((path.clone(), create(&path).unwrap()));
            stored.add(notes).unwrap();
            stored
        };
        drop(stored(&[gone]));
        assert!(!path.exists());
        drop(stored(&[gone, raised]));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("+{raised}\n"));
        let mut lowered = stored(&[raised]);
        lowered.remove(&[raised]);
        drop(lowered);
        assert!(!path.exists());
    }

    #[test]
    fn notes_that_were_not_removed_are_current() {
        let note = |pid| Note {
            pid,
            start: 7,
            file: MappedInode {
                device: DeviceNumber { major: 5, minor: 6 },
                inode: 8,
            },
            offset: 9,
            address: 10,
        };
        let text = format!("+{}\n+{}\n-{}\n+{}", note(1), note(2), note(1), note(3));
        assert_eq!(current(&text), HashSet::from([note(2), note(3)]));
        // A line that was cut, and lines of something else.
        assert_eq!(
            current("+1 7 8\n\nx\n+1 7 5 6 8 9 10 11\n+1 7 5 x 8 9 10\n"),
            HashSet::new()
        );
    }
}
