//! Mappings whose processes are held until the probes of all files that were mapped until then are attached (`--no-gap`).

use std::collections::BTreeMap;
use std::time::Duration;

use usdtrec_attach::engine::{MAX_HOLD, NewMapping};

use super::origin::Origin;

/// The mappings that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct HeldMappings {
    /// By token.
    waiting: BTreeMap<u64, Waiting>,
    /// The token up to which all are answered.
    answered: u64,
}

#[derive(Debug)]
struct Waiting {
    mapping: NewMapping,
    /// Number of files that were queued until its record was read.
    files: u64,
}

impl HeldMappings {
    /// Adds mappings, whose records have been read, when so many files have been queued.
    pub(super) fn add(&mut self, mappings: Vec<NewMapping>, files: u64) {
        let waiting = mappings.into_iter().map(|mapping| {
            let waiting = Waiting { mapping, files };
            (mapping.token, waiting)
        });
        self.waiting.extend(waiting);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the next mapping in the order of their tokens, if so many files that are planted or have no probes are enough for it.
    pub(super) fn take(&mut self, files: u64) -> Option<NewMapping> {
        let token = self.answered + 1;
        let next = self.waiting.first_entry()?;
        if *next.key() != token || next.get().files > files {
            return None;
        }
        self.answered = token;
        Some(next.remove().mapping)
    }

    /// Whether it is known if the thread that mapped a file first is held.
    pub(super) fn knows(&self, file: &Origin) -> bool {
        self.of_file(file).is_some()
    }

    /// For how long the thread that mapped a file first had been held at a time; `None` if it was not held, or not until now.
    pub(super) fn held_for(&self, file: &Origin, time: u64) -> Option<Duration> {
        let waiting = self.of_file(file)?;
        // A file may have been planted before.
        let held = Duration::from_nanos(time.saturating_sub(waiting.mapping.time));
        (waiting.mapping.is_held && held < MAX_HOLD).then_some(held)
    }

    /// The mapping of the thread that mapped a file first. Each record is followed by the mapping, before the next record of the thread.
    fn of_file(&self, file: &Origin) -> Option<&Waiting> {
        let tid = u32::try_from(file.tid).ok()?;
        let of_thread = |waiting: &&Waiting| {
            waiting.mapping.tid == tid && waiting.mapping.time >= file.mapped_at
        };
        let waiting = self.waiting.values().find(of_thread);
        waiting.filter(|_| file.mapped_at > 0)
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

    #[test]
    fn they_are_answered_in_order_when_the_files_before_them_are_done() {
        let mut held = HeldMappings::default();
        held.add(vec![mapping(2, 7, 20)], 5);
        assert_eq!(held.take(9), None, "the first has not arrived");
        held.add(vec![mapping(1, 8, 10)], 6);
        assert_eq!(held.take(5), None, "the sixth file is not done");
        let tokens = [held.take(6), held.take(6), held.take(6)];
        let tokens = tokens.map(|mapping| mapping.map(|mapping| mapping.token));
        assert_eq!(tokens, [Some(1), Some(2), None]);
        assert!(held.is_empty());
    }

    #[test]
    fn a_file_was_held_by_the_thread_that_mapped_it() {
        let mut held = HeldMappings::default();
        held.add(vec![mapping(1, 7, 1_010), mapping(2, 7, 2_010)], 0);
        let origin = |tid, mapped_at| Origin {
            pid: 7,
            tid,
            mapped_at,
            ended: 0,
            path: "/lib/x.so".into(),
            build_id: None,
            owner: 0,
        };
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
