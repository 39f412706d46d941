//! What processes map is read again when process records were lost: a file whose record is missing would not be attached as long as it stays mapped.

use std::collections::HashSet;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use usdtrec_attach::target::Target;
use usdtrec_buildid_cache::MappedInode;
use usdtrec_buildid_cache::process::code_mappings;
use usdtrec_kernel::host::descendants::descendants;

use super::build_ids::{BuildIds, MAX_KNOWN_FILES, NewFiles};
use super::mapped_file::MappedFileId;
use super::metadata;

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
}

/// Whose mappings are read, and what is not read of them.
pub(super) struct Reading {
    pub(super) target: Target,
    /// Whether children are recorded, too.
    pub(super) inherit: bool,
    pub(super) known: HashSet<MappedInode>,
}

impl Rereading {
    /// Whether to begin now, when so many process records were lost so far.
    pub(super) fn is_due(&self, lost: u64, now: Instant) -> bool {
        (lost > self.lost || self.is_unfinished)
            && self.running.is_none()
            && self.paused_until.is_none_or(|until| now >= until)
    }

    pub(super) fn begin(&mut self, lost: u64, reading: Reading) {
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
    pub(super) fn take(&mut self) -> Option<NewFiles> {
        let is_done = |running: &mut BegunReading| running.thread.is_finished();
        let BegunReading { begun, thread } = self.running.take_if(is_done)?;
        let pause = MIN_PAUSE.max(begun.elapsed() * PAUSE);
        self.paused_until = Some(Instant::now() + pause);
        let FoundFiles { new, known } = thread.join().unwrap_or_default();
        if self.known.len() >= MAX_KNOWN_FILES {
            self.known.clear();
        }
        self.known.extend(known);
        self.is_unfinished |= new.too_many > 0;
        Some(NewFiles { too_many: 0, ..new })
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
        for pid in self.pids() {
            // One that has ended has no mappings.
            let mappings = u32::try_from(pid).map(code_mappings);
            for mapping in mappings.into_iter().flatten().flatten() {
                if !self.known.contains(&mapping.mapped_inode()) {
                    files.of_mapping(pid, &mapping);
                }
            }
        }
        FoundFiles {
            new: files.take_new(),
            known: files.known_inodes().into_keys().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that reads nothing has ended at once.
    fn read(rereading: &mut Rereading, lost: u64) -> NewFiles {
        let reading = Reading {
            target: Target::Processes(Vec::new()),
            inherit: true,
            known: HashSet::new(),
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
        assert!(read(&mut rereading, 3).files.is_empty());
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
    fn only_what_is_not_known_is_found() {
        let own = std::process::id();
        let find = |known| {
            let reading = Reading {
                target: Target::Processes(vec![own]),
                inherit: false,
                known,
            };
            reading.find().known
        };
        let all = find(HashSet::new());
        assert!(!all.is_empty());
        assert!(find(all).is_empty());
    }
}
