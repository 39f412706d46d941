//! What processes map is read again when process records were lost: a file whose record is missing would not be attached as long as it stays mapped. So it
//! is of processes whose mappings could not be read in time.

use std::collections::HashSet;
use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use usdtrec_attach::target::Target;
use usdtrec_buildid_cache::MappedInode;
use usdtrec_buildid_cache::process::code_mappings;
use usdtrec_kernel::host::descendants::descendants;

use super::build_ids::{BuildIds, MAX_KNOWN_FILES, NewFiles};
use super::mapped_file::MappedFileId;
use super::metadata;
use super::slow_files::SlowFile;

/// Name of the thread, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "read-again";
/// Minimum pause after a reading, and minimum ratio of the pause to the time that the reading took.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const PAUSE: u32 = 20;

/// When to read again, and what was found.
#[derive(Debug, Default)]
pub(super) struct Rereading {
    /// Number of process records that were lost when it began last.
    lost: u64,
    /// Whether there were too many files to be kept or to wait.
    is_unfinished: bool,
    /// Processes whose mappings could not be read in time, and are read again.
    unanswered: Vec<i32>,
    /// Number of those that ended before they were read.
    ended: usize,
    running: Option<BegunReading>,
    paused_until: Option<Instant>,
    /// The files that were read.
    pub(super) known: HashSet<MappedInode>,
}

#[derive(Debug)]
struct BegunReading {
    begun: Instant,
    thread: JoinHandle<FoundFiles>,
}

/// The files that were not known before.
#[derive(Debug, Default)]
struct FoundFiles {
    new: NewFiles,
    known: HashSet<MappedInode>,
    /// Those that did not answer.
    put_off: Vec<SlowFile>,
    /// The processes whose mappings could not be read in time, and those that were read.
    unanswered: Vec<i32>,
    read: HashSet<i32>,
}

/// Whose mappings are read, and what is not read of them.
pub(super) struct Reading {
    pub(super) target: Target,
    /// Whether children are recorded, too.
    pub(super) inherit: bool,
    pub(super) known: HashSet<MappedInode>,
    /// The only processes that are read, if not all of them.
    pub(super) only: Option<Vec<i32>>,
}

/// What was found.
#[derive(Debug)]
pub(super) struct FoundAgain {
    pub(super) new: NewFiles,
    /// Files that did not answer.
    pub(super) put_off: Vec<SlowFile>,
}

impl Rereading {
    /// With processes whose mappings could not be read in time when the recording began.
    pub(super) fn of_unanswered(unanswered: Vec<i32>) -> Self {
        Self {
            unanswered,
            ..Self::default()
        }
    }

    /// Number of processes whose mappings were never read, as far as is known.
    pub(super) const fn unread_processes(&self) -> usize {
        self.unanswered.len() + self.ended
    }

    /// Whether to begin now, when so many process records were lost so far.
    pub(super) fn is_due(&self, lost: u64, now: Instant) -> bool {
        (lost > self.lost || self.is_unfinished || !self.unanswered.is_empty())
            && self.running.is_none()
            && self.paused_until.is_none_or(|until| now >= until)
    }

    pub(super) fn begin(&mut self, lost: u64, mut reading: Reading) {
        if lost <= self.lost && !self.is_unfinished {
            reading.only = Some(self.unanswered.clone());
        }
        let begun = Instant::now();
        let thread = thread::Builder::new().name(NAME.to_owned());
        match thread.spawn(move || reading.find()) {
            Ok(thread) => {
                self.lost = lost;
                self.is_unfinished = false;
                self.running = Some(BegunReading { begun, thread });
            }
            // It is tried again.
            Err(_) => self.paused_until = Some(begun + MIN_PAUSE),
        }
    }

    /// The files that were found, once all processes have been read.
    pub(super) fn take(&mut self) -> Option<FoundAgain> {
        let is_done = |running: &mut BegunReading| running.thread.is_finished();
        let BegunReading { begun, thread } = self.running.take_if(is_done)?;
        let pause = MIN_PAUSE.max(begun.elapsed() * PAUSE);
        self.paused_until = Some(Instant::now() + pause);
        let Ok(found) = thread.join() else {
            return None;
        };
        let FoundFiles {
            new,
            known,
            put_off,
            unanswered,
            read,
        } = found;
        let has_ended = |pid: &&i32| !read.contains(pid) && !unanswered.contains(pid);
        self.ended += self.unanswered.iter().filter(has_ended).count();
        self.unanswered = unanswered;
        if self.known.len() >= MAX_KNOWN_FILES {
            self.known.clear();
        }
        self.known.extend(known);
        self.is_unfinished |= new.too_many > 0;
        let new = NewFiles { too_many: 0, ..new };
        Some(FoundAgain { new, put_off })
    }

    /// Files for which there was no room are found again.
    pub(super) fn leave_out(&mut self, files: &[MappedFileId]) {
        self.is_unfinished |= !files.is_empty();
        for file in files {
            self.known.remove(&file.mapped_inode());
        }
    }
}

impl Reading {
    fn pids(&self) -> Vec<i32> {
        if let Some(only) = &self.only {
            return only.clone();
        }
        let with_children = |pids: &[u32]| {
            let children = if self.inherit {
                descendants(pids)
            } else {
                Vec::new()
            };
            Target::Processes([pids, &children].concat())
        };
        match &self.target {
            Target::Processes(pids) => metadata::pids(&with_children(pids)),
            Target::Command(pid) => metadata::pids(&with_children(&[*pid])),
            target => metadata::pids(target),
        }
    }

    fn find(self) -> FoundFiles {
        let mut files = BuildIds::default();
        let (mut unanswered, mut read) = (Vec::new(), HashSet::new());
        for pid in self.pids() {
            let mappings = match code_mappings(pid.cast_unsigned()) {
                Ok(mappings) => mappings,
                Err(error) => {
                    // Else it has ended.
                    if error.kind() == io::ErrorKind::TimedOut {
                        unanswered.push(pid);
                    }
                    continue;
                }
            };
            read.insert(pid);
            for mapping in mappings {
                if !self.known.contains(&mapping.mapped_inode()) {
                    files.of_mapping(pid, &mapping);
                }
            }
        }
        FoundFiles {
            new: files.take_new(),
            put_off: files.take_put_off(),
            unanswered,
            read,
            known: files.known_inodes().into_keys().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that reads nothing has ended at once.
    fn read(rereading: &mut Rereading, lost: u64) -> FoundAgain {
        let reading = Reading {
            target: Target::Processes(Vec::new()),
            inherit: true,
            known: HashSet::new(),
            only: None,
        };
        rereading.begin(lost, reading);
        assert!(!rereading.is_due(lost + 1, Instant::now()), "it runs");
        loop {
            match rereading.take() {
                Some(found) => return found,
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn each_loss_is_followed_by_a_reading_with_pauses() {
        let mut rereading = Rereading::default();
        let now = Instant::now();
        assert!(!rereading.is_due(0, now));
        assert!(rereading.is_due(3, now));
        assert!(read(&mut rereading, 3).new.files.is_empty());
        let later = Instant::now() + 2 * MIN_PAUSE;
        assert!(!rereading.is_due(3, later), "no others were lost");
        assert!(!rereading.is_due(4, now), "the pause is not over");
        rereading.paused_until = Some(later);
        assert!(rereading.is_due(4, later));
        let file = MappedFileId::numbered(7);
        rereading.known.insert(file.mapped_inode());
        rereading.leave_out(&[]);
        assert!(!rereading.is_due(3, later));
        rereading.leave_out(&[file]);
        assert!(rereading.is_due(3, later), "there was no room for it");
        assert!(rereading.known.is_empty(), "it is found again");
        rereading.paused_until = None;
        read(&mut rereading, 3);
        rereading.paused_until = None;
        assert!(!rereading.is_due(3, later));
    }

    #[test]
    fn processes_that_could_not_be_read_are_read_again() {
        let own = std::process::id().cast_signed();
        let mut rereading = Rereading::of_unanswered(vec![own, i32::MAX]);
        assert!(rereading.is_due(0, Instant::now()));
        assert_eq!(rereading.unread_processes(), 2);
        let found = read(&mut rereading, 0);
        assert!(!found.new.files.is_empty() || !rereading.known.is_empty());
        assert_eq!(rereading.unread_processes(), 1, "one has ended");
        assert!(!rereading.is_due(0, Instant::now() + 2 * MIN_PAUSE));
    }

    #[test]
    fn only_what_is_not_known_is_found() {
        let own = std::process::id();
        let find = |known| {
            let reading = Reading {
                target: Target::Processes(vec![own]),
                inherit: false,
                known,
                only: None,
            };
            reading.find().known
        };
        let all = find(HashSet::new());
        assert!(!all.is_empty());
        assert!(find(all).is_empty());
    }
}
