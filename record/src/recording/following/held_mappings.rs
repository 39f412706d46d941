//! Mappings whose processes are held until the probes of all files that were mapped until then are attached (`--no-gap`).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use usdtrec_attach::engine::{MAX_HOLD, NewMapping};

use super::origin::Origin;
use crate::recording::slow_files::Tries;

/// How long threads are held for files that did not answer at once: a busy host answers in this time, and others are not held for a silent one.
const SLOW_TIME: Duration = Duration::from_millis(500);
/// Maximum number of answered mappings that are kept.
const MAX_ANSWERED: usize = 4096;

/// The mappings that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct HeldMappings {
    /// By token.
    waiting: BTreeMap<u64, Waiting>,
    /// The token up to which all are answered.
    answered: u64,
    /// The mappings that were answered last.
    latest: VecDeque<NewMapping>,
}

#[derive(Debug)]
struct Waiting {
    mapping: NewMapping,
    /// Number of files that were queued until its record was read, and until those that did not answer at once were tried again.
    files: u64,
    /// Number of the last one of these; `None` if all have been tried.
    slow: Option<u64>,
}

/// How far the files are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Number of files that are attached or have no probes.
    pub(super) done: u64,
    /// Number of files that were queued.
    pub(super) queued: u64,
    /// Numbers of files that did not answer at once.
    pub(super) slow: Tries,
    /// ns of the trace's clock.
    pub(super) now: u64,
}

impl HeldMappings {
    /// Adds mappings, whose records have been read.
    pub(super) fn add(
        &mut self,
        mappings: Vec<NewMapping>,
        Progress { queued, slow, .. }: Progress,
    ) {
        let waiting = mappings.into_iter().map(|mapping| {
            let waiting = Waiting {
                mapping,
                files: queued,
                slow: (slow.added > slow.tried).then_some(slow.added),
            };
            (mapping.token, waiting)
        });
        self.waiting.extend(waiting);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the next mapping in the order of their tokens, if the files up to it are done, or take too long.
    pub(super) fn take(&mut self, progress: Progress) -> Option<NewMapping> {
        let token = self.answered + 1;
        let mut next = self.waiting.first_entry()?;
        let waiting = next.get_mut();
        let held = Duration::from_nanos(progress.now.saturating_sub(waiting.mapping.time));
        if waiting.slow.is_some_and(|slow| slow <= progress.slow.tried) {
            waiting.slow = None;
            waiting.files = progress.queued;
        }
        let is_slow = waiting.slow.is_some() && held < SLOW_TIME;
        if *next.key() != token || is_slow || next.get().files > progress.done {
            return None;
        }
        self.answered = token;
        let mapping = next.remove().mapping;
        self.latest.push_back(mapping);
        if self.latest.len() > MAX_ANSWERED {
            self.latest.pop_front();
        }
        Some(mapping)
    }

    /// Whether it is known if the thread that mapped a file first is held.
    pub(super) fn knows(&self, file: &Origin) -> bool {
        self.of_file(file).is_some()
    }

    /// For how long the thread that mapped a file first had been held at a time; `None` if it was not held, or not until now.
    pub(super) fn held_for(&self, file: &Origin, time: u64) -> Option<Duration> {
        let mapping = self.of_file(file)?;
        let is_answered = mapping.token <= self.answered;
        // A file may have been attached before.
        let held = Duration::from_nanos(time.saturating_sub(mapping.time));
        (mapping.is_held && !is_answered && held < MAX_HOLD).then_some(held)
    }

    /// The mapping of the thread that mapped a file first. Each record is followed by the mapping, before the next record of the thread.
    fn of_file(&self, file: &Origin) -> Option<&NewMapping> {
        let tid = u32::try_from(file.tid).ok()?;
        let of_thread =
            |mapping: &&NewMapping| mapping.tid == tid && mapping.time >= file.mapped_at;
        let waiting = self.waiting.values().map(|waiting| &waiting.mapping);
        let mapping = self.latest.iter().chain(waiting).find(of_thread);
        mapping.filter(|_| file.mapped_at > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mapping(token: u64, tid: u32, time: u64) -> NewMapping {
        NewMapping {
            token,
            time,
            pid: tid,
            tid,
            is_held: true,
            file: [0; 16],
        }
    }

    const fn progress(queued: u64, done: u64) -> Progress {
        Progress {
            done,
            queued,
            slow: Tries { added: 0, tried: 0 },
            now: 100,
        }
    }

    #[test]
    fn they_are_answered_in_order_when_the_files_before_them_are_done() {
        let mut held = HeldMappings::default();
        held.add(vec![mapping(2, 7, 20)], progress(5, 0));
        assert_eq!(held.take(progress(9, 9)), None, "the first has not arrived");
        held.add(vec![mapping(1, 8, 10)], progress(6, 0));
        assert_eq!(held.take(progress(9, 5)), None, "the sixth is not done");
        let tokens = [(); 3].map(|()| held.take(progress(9, 6)));
        let tokens = tokens.map(|mapping| mapping.map(|mapping| mapping.token));
        assert_eq!(tokens, [Some(1), Some(2), None]);
        assert!(held.is_empty());
    }

    #[test]
    fn they_wait_for_files_that_are_tried_again() {
        let mut held = HeldMappings::default();
        let slow = |queued, done, tried, now| Progress {
            slow: Tries { added: 3, tried },
            now,
            ..progress(queued, done)
        };
        held.add(
            vec![mapping(1, 7, 10), mapping(2, 8, 20)],
            slow(5, 5, 2, 30),
        );
        assert_eq!(held.take(slow(5, 5, 2, 30)), None);
        assert_eq!(held.take(slow(6, 5, 3, 40)), None, "it is queued");
        assert!(held.take(slow(6, 6, 3, 50)).is_some());
        held.add(vec![mapping(3, 9, 60)], slow(6, 6, 2, 60));
        assert!(
            held.take(slow(6, 6, 2, 60)).is_none(),
            "the second waits, too"
        );
        let late = 60 + SLOW_TIME.as_nanos() as u64;
        let both = [(); 2].map(|()| held.take(slow(6, 6, 2, late)).is_some());
        assert_eq!(both, [true, true], "too long");
    }

    /// The thread continues, and maps another file before that one is attached.
    #[test]
    fn a_file_that_is_planted_after_the_answer_was_not_held() {
        let mut held = HeldMappings::default();
        let origin = origin(7, 1_000);
        held.add(vec![mapping(1, 7, 1_010)], progress(0, 0));
        assert!(held.take(progress(0, 0)).is_some());
        held.add(vec![mapping(2, 7, 2_010)], progress(0, 0));
        assert!(held.knows(&origin));
        assert_eq!(held.held_for(&origin, 3_000), None);
    }

    fn origin(tid: i32, mapped_at: u64) -> Origin {
        Origin {
            pid: 7,
            tid,
            mapped_at,
            ended: 0,
            path: "/lib/x.so".into(),
            build_id: None,
            owner: 0,
        }
    }

    #[test]
    fn a_file_was_held_by_the_thread_that_mapped_it() {
        let mut held = HeldMappings::default();
        held.add(
            vec![mapping(1, 7, 1_010), mapping(2, 7, 2_010)],
            progress(0, 0),
        );
        let held_for =
            |origin: Origin, now| held.held_for(&origin, now).map(|held| held.as_nanos());
        assert_eq!(held_for(origin(7, 1_000), 4_010), Some(3_000));
        assert_eq!(held_for(origin(7, 2_000), 4_010), Some(2_000));
        assert_eq!(held_for(origin(7, 2_000), 2_005), Some(0), "planted before");
        assert_eq!(held_for(origin(8, 1_000), 4_010), None, "another thread");
        assert_eq!(held_for(origin(7, 3_000), 4_010), None, "a later mapping");
        assert_eq!(held_for(origin(7, 0), 4_010), None, "it is not known when");
        let later = 1_010 + MAX_HOLD.as_nanos() as u64;
        assert_eq!(held_for(origin(7, 1_000), later), None, "too long");
    }
}
