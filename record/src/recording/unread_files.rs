//! Files that processes mapped and that could not be read.
//!
//! A file that could not be opened in one process may be in a later one, and then it is known whether it has selected probes. So those are counted
//! that were never read.

use std::collections::{HashMap, HashSet};

use super::mapped_file::MappedFileId;

/// Maximum number of files that are distinguished.
const MAX_FILES: usize = 4096;
/// Maximum number of programs that are distinguished, once for each of their files.
const MAX_PROGRAMS: usize = 1 << 16;

/// Why a file could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnreadReason {
    /// The process has ended.
    Ended,
    /// The process runs, and does not map it any more.
    Unmapped,
    /// This user may not open it.
    Denied,
    /// Its file system has not answered in time.
    NoAnswer,
    /// Another error.
    Failed,
    /// Nothing was read any more when it was mapped.
    Late,
}

impl UnreadReason {
    const COUNT: usize = Self::Late as usize + 1;
}

/// Numbers of files that were not read, and of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnreadCounts {
    /// For each reason: files, but of [`UnreadReason::Ended`] programs.
    pub(super) by_reason: [usize; UnreadReason::COUNT],
    /// Process records that were lost, each of which may have reported a mapping.
    pub(super) lost_records: u64,
    /// Processes whose mappings could not be read in time.
    pub(super) processes: usize,
}

/// The files that could not be read so far.
#[derive(Debug, Default)]
pub(super) struct UnreadFiles {
    files: HashMap<MappedFileId, UnreadFile>,
    /// The numbers of the programs that processes ran last, of those with such a file.
    running: HashMap<i32, u32>,
    /// Number of programs so far.
    programs: u32,
    /// Number of entries in [`UnreadFile::programs`].
    entries: usize,
    /// What was too much to be distinguished.
    more: UnreadCounts,
}

#[derive(Debug, Default)]
struct UnreadFile {
    /// The programs that ended.
    programs: Vec<u32>,
    /// The other reasons.
    has: [bool; UnreadReason::COUNT],
}

impl UnreadFiles {
    /// Notes that a file of a process could not be opened.
    pub(super) fn note(&mut self, file: MappedFileId, pid: i32, reason: UnreadReason) {
        let is_full = self.files.len() >= MAX_FILES && !self.files.contains_key(&file);
        if is_full || self.entries >= MAX_PROGRAMS {
            return self.more.add(reason);
        }
        let unread = self.files.entry(file).or_default();
        if reason != UnreadReason::Ended {
            unread.has[reason as usize] = true;
            return;
        }
        let next = &mut self.programs;
        let program = *self.running.entry(pid).or_insert_with(|| {
            *next += 1;
            *next
        });
        // The mappings of a file follow each other.
        if unread.programs.last() != Some(&program) {
            unread.programs.push(program);
            self.entries += 1;
        }
    }

    /// Notes lost process records.
    pub(super) const fn note_lost(&mut self, records: u64) {
        self.more.lost_records = self.more.lost_records.saturating_add(records);
    }

    /// Number of lost process records.
    pub(super) const fn lost_records(&self) -> u64 {
        self.more.lost_records
    }

    /// A process begins another program.
    pub(super) fn begin_program(&mut self, pid: i32) {
        if !self.running.is_empty() {
            self.running.remove(&pid);
        }
    }

    /// A file was read after all. Returns the number of programs that ended before.
    pub(super) fn take(&mut self, file: &MappedFileId) -> usize {
        let ended = self.files.remove(file).map(|file| file.programs.len());
        let ended = ended.unwrap_or(0);
        self.entries -= ended;
        ended
    }

    /// The numbers so far.
    pub(super) fn counts(&self) -> UnreadCounts {
        let mut counts = self.more;
        let programs = self.files.values().flat_map(|file| &file.programs);
        counts.by_reason[UnreadReason::Ended as usize] += programs.collect::<HashSet<_>>().len();
        for file in self.files.values() {
            for (count, has) in counts.by_reason.iter_mut().zip(file.has) {
                *count += usize::from(has);
            }
        }
        counts
    }
}

impl UnreadCounts {
    /// With others.
    pub(super) fn with(mut self, others: Self) -> Self {
        for (count, other) in self.by_reason.iter_mut().zip(others.by_reason) {
            *count += other;
        }
        self.lost_records = self.lost_records.saturating_add(others.lost_records);
        self.processes += others.processes;
        self
    }

    /// The number for a reason.
    pub(super) const fn of(&self, reason: UnreadReason) -> usize {
        self.by_reason[reason as usize]
    }

    const fn add(&mut self, reason: UnreadReason) {
        self.by_reason[reason as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::UnreadReason::{Denied, Ended, Unmapped};
    use super::*;

    #[test]
    fn programs_are_counted_once_and_not_if_their_files_were_read_later() {
        let mut unread = UnreadFiles::default();
        let file = MappedFileId::numbered;
        for number in [1, 1, 2, 3] {
            unread.note(file(number), 7, Ended);
        }
        unread.note(file(1), 8, Ended);
        unread.note(file(4), 9, Unmapped);
        unread.note(file(5), 9, Denied);
        let mut counts = UnreadCounts::default();
        for reason in [Ended, Ended, Unmapped, Denied] {
            counts.add(reason);
        }
        assert_eq!(unread.counts(), counts);
        unread.begin_program(7);
        unread.note(file(1), 7, Ended);
        assert_eq!(unread.counts().of(Ended), 3);
        assert_eq!(unread.take(&file(1)), 3);
        assert_eq!(unread.counts().of(Ended), 1, "it has other files");
        assert_eq!(unread.take(&file(2)) + unread.take(&file(3)), 2);
        assert_eq!(unread.take(&file(4)), 0);
        let mut left = UnreadCounts::default();
        left.add(Denied);
        assert_eq!((unread.counts(), unread.entries), (left, 0));
    }

    #[test]
    fn lost_records_are_added_up() {
        let mut unread = UnreadFiles::default();
        unread.note_lost(3);
        unread.note_lost(u64::MAX - 1);
        assert_eq!(unread.counts().lost_records, u64::MAX);
        let counts = unread.counts().with(UnreadCounts::default());
        assert_eq!(counts.lost_records, u64::MAX);
    }

    #[test]
    fn they_are_bounded() {
        let mut unread = UnreadFiles::default();
        let many = MAX_FILES as u64 + 10;
        for number in 0..many {
            unread.note(MappedFileId::numbered(number), number as i32, Ended);
        }
        assert_eq!(unread.files.len(), MAX_FILES);
        assert_eq!(unread.counts().of(Ended) as u64, many);
    }
}
