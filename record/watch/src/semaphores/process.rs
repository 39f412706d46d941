//! The semaphores of one process.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use usdtrec_attach::engine::Counting;
use usdtrec_kernel::trace_clock;

use super::counted_files::CountedFiles;
use super::file::{CountedFile, Semaphore};
use super::file_memory::{AllMemory, Change, FileMemory, LastMemory, PartlyChanged};
use super::stored_increments::{Note, StoredIncrements};
use crate::limits::MAX_BASES;

/// What the semaphores of a process need besides its state.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) pid: u32,
    pub(super) files: &'a CountedFiles,
    pub(super) kept: &'a Mutex<StoredIncrements>,
}

/// The state of a process, which is read and changed together with its memory.
#[derive(Debug)]
pub(super) struct Process {
    /// Start time, clock ticks since boot.
    start: u64,
    images: Vec<Image>,
    /// What the kernel counts.
    owned: Vec<Owned>,
}

/// A file in the memory of the process, whose semaphores were incremented.
#[derive(Clone, Debug)]
struct Image {
    /// Index of the file.
    file: usize,
    bias: u64,
    /// When that began, ns of `CLOCK_MONOTONIC`.
    raised: u64,
    /// In the order of the file's semaphores.
    counts: Vec<Count>,
}

/// How a semaphore is incremented.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// By hand; otherwise the kernel counts it.
    by_hand: bool,
    /// When it was decremented by hand.
    lowered: Option<u64>,
}

#[derive(Debug)]
struct Owned {
    file: usize,
    descriptors: Vec<OwnedFd>,
}

/// A semaphore that is not 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    /// Index of the file.
    pub(super) file: usize,
    /// Link-time address.
    pub(super) address: u64,
    pub(super) value: u16,
}

/// The outcome of an attempt to increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raise {
    /// The semaphores were incremented.
    Done,
    /// They were before.
    Known,
    /// Their memory is not mapped yet.
    NotYet,
}

/// The outcome of an attempt to let the kernel count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandedOver {
    /// Nothing is left to do.
    Done,
    /// The loader is not done yet.
    NotYet,
}

impl Context<'_> {
    fn kept(&self) -> MutexGuard<'_, StoredIncrements> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    /// A process of which nothing was incremented.
    pub(super) const fn new(start: u64) -> Self {
        Self {
            start,
            images: Vec::new(),
            owned: Vec::new(),
        }
    }

    /// Start time, clock ticks since boot.
    pub(super) const fn start(&self) -> u64 {
        self.start
    }

    /// Whether the semaphores of a file were incremented at a time or later.
    pub(super) fn has_raised(&self, file: usize, since: u64) -> bool {
        let mut images = self.images.iter();
        images.any(|image| image.file == file && image.raised >= since)
    }

    /// Increments the semaphores of a file. `since` is when its code was mapped: what was incremented later is left as it is.
    pub(super) fn raise(
        &mut self,
        context: Context<'_>,
        file: usize,
        since: u64,
    ) -> io::Result<Raise> {
        // If the process executes a program now, nothing is written, and it is incremented when its own code is reported.
        let raised = trace_clock::now();
        let Some(object) = context.files.get(file) else {
            return Ok(Raise::Known);
        };
        let memory = FileMemory::open(context.pid, object.identity)?;
        let biases = memory.biases(object);
        self.forget(context, |image| {
            image.file == file && !biases.contains(&image.bias)
        });
        let mut outcome = Raise::Known;
        for bias in biases {
            let known = self.image(file, bias);
            let images = self.images.iter().filter(|image| image.file == file);
            if known.is_none() && images.count() >= MAX_BASES {
                break;
            }
            if !memory.has_semaphores(object, bias) {
                return Ok(Raise::NotYet);
            }
            if let Some(known) = known {
                let is_same = known.raised >= since || !is_zero(&memory, object, bias)?;
                if is_same {
                    continue;
                }
                self.forget(context, |image| image.file == file && image.bias == bias);
            }
            self.raise_image(
                context,
                &memory,
                Image {
                    file,
                    bias,
                    raised,
                    counts: vec![Count::default(); object.semaphores.len()],
                },
            )?;
            outcome = Raise::Done;
        }
        Ok(outcome)
    }

    /// Increments the semaphores of a new image.
    fn raise_image(
        &mut self,
        context: Context<'_>,
        memory: &FileMemory,
        mut image: Image,
    ) -> io::Result<()> {
        let Some(file) = context.files.get(image.file) else {
            return Ok(());
        };
        // A uprobe of before: the kernel decrements them once for each breakpoint, and has incremented another mapping, or once only.
        let is_owned = self.owned.iter().any(|owned| owned.file == image.file)
            && !self.images.iter().any(|known| known.file == image.file);
        let mut changes = Vec::new();
        for (semaphore, count) in file.semaphores.iter().zip(&mut image.counts) {
            let is_counted = is_owned && semaphore.place.is_some();
            count.by_hand = !is_counted;
            let by = if is_counted {
                let breakpoints = memory.breakpoints(semaphore) as i32;
                breakpoints - i32::from(!semaphore.is_misplaced && breakpoints > 0)
            } else {
                1
            };
            changes.push(Change {
                address: semaphore.at(image.bias),
                by,
            });
        }
        let notes = self.notes(context, &image, |count| count.by_hand);
        // Without a note it is incremented all the same: only a SIGKILL of the recorder would leave it so.
        let _ = context.kept().add(&notes);
        if let Err(PartlyChanged { error, left }) = memory.change_all(&changes) {
            // Nobody would decrement them at the end. What cannot be taken back stays noted, for a repair.
            let mut taken_back = notes;
            taken_back.retain(|note| !left.contains(&note.address));
            context.kept().remove(&taken_back);
            return Err(error);
        }
        self.images.push(image);
        Ok(())
    }

    /// Lets the kernel count what is incremented by hand, and decrements that.
    pub(super) fn hand_over(
        &mut self,
        context: Context<'_>,
        counting: &Counting,
    ) -> io::Result<HandedOver> {
        let mut outcome = HandedOver::Done;
        let mut last = LastMemory::default();
        for (index, file) in context.files.iter().enumerate() {
            let mut images = self.images.iter().filter(|image| image.file == index);
            let (Some(image), None) = (images.next(), images.next()) else {
                // Of a file that is there twice the kernel counts one only.
                continue;
            };
            let counted = file.counted();
            if counted.is_empty() || self.owned.iter().any(|owned| owned.file == index) {
                continue;
            }
            let bias = image.bias;
            let memory = last.of_file(context.pid, self.start, file.identity)?;
            if !memory.has_semaphores(file, bias) || !memory.is_loaded(file) {
                outcome = HandedOver::NotYet;
                continue;
            }
            let read = |semaphore: &Semaphore| memory.semaphore(semaphore.at(bias));
            let values = || {
                file.semaphores
                    .iter()
                    .map(read)
                    .collect::<io::Result<Vec<u16>>>()
            };
            let before = values()?;
            // A child has its parent's breakpoints, and semaphores that were incremented for them.
            let had = |semaphore: &Semaphore| memory.breakpoints(semaphore) > 0;
            let had: Vec<bool> = file.semaphores.iter().map(had).collect();
            let descriptors = counting.count(context.pid, &file.object, &counted)?;
            self.owned.push(Owned {
                file: index,
                descriptors,
            });
            let after = values()?;
            let is_counted: Vec<bool> = file
                .semaphores
                .iter()
                .enumerate()
                .map(|(at, semaphore)| {
                    semaphore.place.is_some() && (had[at] || after[at] > before[at])
                })
                .collect();
            self.lower_image(context, &memory, index, &is_counted)?;
        }
        Ok(outcome)
    }

    /// Decrements those semaphores of a file by hand that were incremented so, and that `which` selects.
    fn lower_image(
        &mut self,
        context: Context<'_>,
        memory: &FileMemory,
        index: usize,
        which: &[bool],
    ) -> io::Result<()> {
        let Some(file) = context.files.get(index) else {
            return Ok(());
        };
        let start = self.start;
        for image in self.images.iter_mut().filter(|image| image.file == index) {
            let counts = image.counts.iter_mut().zip(&file.semaphores).zip(which);
            for ((count, semaphore), _) in
                counts.filter(|((count, _), which)| count.by_hand && **which)
            {
                let note = Note {
                    pid: context.pid,
                    start,
                    file: file.identity,
                    offset: semaphore.offset,
                    address: semaphore.at(image.bias),
                };
                memory.add(note.address, -1)?;
                count.by_hand = false;
                count.lowered = Some(trace_clock::now());
                context.kept().remove(&[note]);
            }
        }
        Ok(())
    }

    /// The state of a child that was forked at `time`, with the memory of this process. Where it is not recorded, its semaphores are
    /// decremented; `None` if nothing is left to do.
    pub(super) fn child(
        &self,
        context: Context<'_>,
        start: u64,
        time: u64,
        is_recorded: bool,
    ) -> io::Result<Option<Self>> {
        let mut child = Self::new(start);
        let images = self.images.iter().filter(|image| image.raised <= time);
        let images: Vec<&Image> = images.collect();
        if images.is_empty() {
            return Ok(None);
        }
        let opened = AllMemory::open(context.pid)?;
        for image in images {
            let Some(file) = context.files.get(image.file) else {
                continue;
            };
            let memory = opened.of_file(file.identity)?;
            if !memory.has_semaphores(file, image.bias) {
                continue;
            }
            let mut inherited = image.clone();
            for (count, semaphore) in inherited.counts.iter_mut().zip(&file.semaphores) {
                let was_by_hand =
                    count.by_hand || count.lowered.is_some_and(|lowered| time < lowered);
                count.lowered = None;
                count.by_hand = was_by_hand && memory.semaphore(semaphore.at(image.bias))? > 0;
            }
            let notes = child.notes(context, &inherited, |count| count.by_hand);
            let _ = context.kept().add(&notes);
            child.images.push(inherited);
        }
        if !is_recorded {
            child.lower(context)?;
            return Ok(None);
        }
        Ok((!child.images.is_empty()).then_some(child))
    }

    /// Decrements what is incremented by hand.
    pub(super) fn lower(&mut self, context: Context<'_>) -> io::Result<()> {
        let mut last = LastMemory::default();
        for (index, file) in context.files.iter().enumerate() {
            if !self.images.iter().any(|image| image.file == index) {
                continue;
            }
            let memory = last.of_file(context.pid, self.start, file.identity)?;
            self.forget(context, |image| {
                image.file == index && !memory.has_semaphores(file, image.bias)
            });
            self.lower_image(context, &memory, index, &vec![true; file.semaphores.len()])?;
        }
        Ok(())
    }

    /// Forgets all memory of before an `execve(2)`.
    pub(super) fn executed(&mut self, context: Context<'_>, time: u64) {
        self.forget(context, |image| image.raised < time);
    }

    /// Whether something is incremented by hand.
    pub(super) fn is_raised(&self) -> bool {
        let mut counts = self.images.iter().flat_map(|image| &image.counts);
        counts.any(|count| count.by_hand)
    }

    /// Takes the descriptors of what the kernel counts.
    pub(super) fn take_owned(&mut self) -> Vec<OwnedFd> {
        let owned = self.owned.drain(..);
        owned.flat_map(|owned| owned.descriptors).collect()
    }

    /// Number of those.
    pub(super) fn owned(&self) -> usize {
        self.owned.iter().map(|owned| owned.descriptors.len()).sum()
    }

    /// The semaphores that are not 0, with their values.
    pub(super) fn values(&self, context: Context<'_>) -> io::Result<Vec<Value>> {
        let mut values = Vec::new();
        let mut last = LastMemory::default();
        for image in &self.images {
            let Some(file) = context.files.get(image.file) else {
                continue;
            };
            let memory = last.of_file(context.pid, self.start, file.identity)?;
            if !memory.has_semaphores(file, image.bias) {
                continue;
            }
            for semaphore in &file.semaphores {
                let value = memory.semaphore(semaphore.at(image.bias))?;
                // Another recorder's uprobe has its share.
                if value != 0 && memory.breakpoints(semaphore) == 0 {
                    values.push(Value {
                        file: image.file,
                        address: semaphore.address,
                        value,
                    });
                }
            }
        }
        Ok(values)
    }

    fn image(&self, file: usize, bias: u64) -> Option<&Image> {
        let mut images = self.images.iter();
        images.find(|image| image.file == file && image.bias == bias)
    }

    /// Forgets images whose memory is gone.
    fn forget(&mut self, context: Context<'_>, is_gone: impl Fn(&Image) -> bool) {
        let (gone, left): (Vec<Image>, Vec<Image>) = std::mem::take(&mut self.images)
            .into_iter()
            .partition(|image| is_gone(image));
        self.images = left;
        for image in gone {
            let notes = self.notes(context, &image, |count| count.by_hand);
            context.kept().remove(&notes);
        }
    }

    /// Forgets everything, of a process that has ended.
    pub(super) fn ended(&mut self, context: Context<'_>) -> Vec<OwnedFd> {
        self.forget(context, |_| true);
        self.take_owned()
    }

    /// The notes of an image.
    fn notes(
        &self,
        context: Context<'_>,
        image: &Image,
        which: impl Fn(&Count) -> bool,
    ) -> Vec<Note> {
        let file = context.files.get(image.file);
        let semaphores = file.map_or(&[][..], |file| &file.semaphores);
        let counts = image.counts.iter().zip(semaphores);
        counts
            .filter(|(count, _)| which(count))
            .filter_map(|(_, semaphore)| {
                Some(Note {
                    pid: context.pid,
                    start: self.start,
                    file: file?.identity,
                    offset: semaphore.offset,
                    address: semaphore.at(image.bias),
                })
            })
            .collect()
    }
}

/// Whether all semaphores of an image are 0.
fn is_zero(memory: &FileMemory, file: &CountedFile, bias: u64) -> io::Result<bool> {
    for semaphore in &file.semaphores {
        if memory.semaphore(semaphore.at(bias))? != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::sync::Arc;

    use usdtrec_buildid_cache::elf::ObjectFile;
    use usdtrec_kernel::host::identity;

    use super::super::stored_increments::start_of;
    use super::*;

    /// Any user may map a file so often that each of many steps takes minutes.
    #[test]
    fn not_all_of_many_copies_of_a_file_are_incremented() {
        let page = rustix::param::page_size() as u64;
        let opened = File::open("/usr/bin/cat").unwrap();
        let object = Arc::new(ObjectFile::open("/usr/bin/cat".as_ref()).unwrap());
        let mut offsets = (0..).map(|number| number * page);
        let code = offsets.find(|offset| object.load_bias(0, *offset, page).is_some());
        let code = code.unwrap();
        let semaphore = Semaphore {
            address: 0_u64.wrapping_sub(object.load_bias(0, code, page).unwrap()),
            offset: code,
            is_misplaced: true,
            place: None,
        };
        let file = CountedFile {
            identity: identity::of_file(&object).unwrap(),
            object,
            path: "/usr/bin/cat".into(),
            semaphores: vec![semaphore],
        };
        for _ in 0..2 * MAX_BASES {
            let rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            let (descriptor, code) = (opened.as_raw_fd(), code as i64);
            let (any, len) = (std::ptr::null_mut(), page as usize);
            // SAFETY: The kernel chooses the address, and nobody else uses the memory.
            let map = unsafe { libc::mmap(any, len, rights, libc::MAP_PRIVATE, descriptor, code) };
            assert_ne!(map, libc::MAP_FAILED);
        }
        let context = Context {
            pid: std::process::id(),
            files: &CountedFiles::new(vec![file]),
            kept: &Mutex::default(),
        };
        let mut process = Process::new(start_of(context.pid).unwrap());
        for raised in [Raise::Done, Raise::Known] {
            assert_eq!(process.raise(context, 0, 0).unwrap(), raised);
            assert_eq!(process.images.len(), MAX_BASES);
        }
        process.lower(context).unwrap();
        assert!(!process.is_raised());
    }
}
