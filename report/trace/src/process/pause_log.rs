//! When probes were detached, as the records of a trace say it.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::HashSet;
use usdtrec_format::perf::RawRecord;
use usdtrec_format::trace::{Pause, TimeRange};

/// Pauses in the order of their records. Most are of the same probes, whose ids are stored once.
#[derive(Debug, Default)]
pub(crate) struct PauseLog {
    notes: Vec<PauseNote>,
    ids: HashSet<Arc<[u64]>>,
}

/// What a record says.
#[derive(Clone, Debug)]
struct PauseNote {
    /// Which of the recordings, and the number in it.
    number: (u32, u64),
    ids: Arc<[u64]>,
    from: u64,
    /// `None` until the end of the recording.
    to: Option<u64>,
}

/// Sample ids, and a time in which there were no samples of them: after `first` and before `last`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PausedIds {
    pub(crate) ids: Arc<[u64]>,
    pub(crate) time: TimeRange,
}

impl PauseLog {
    /// Bytes of memory that a record takes at most.
    pub(crate) const fn most_memory(record: &RawRecord<'_>) -> usize {
        // An id has at least two characters in JSON.
        size_of::<PauseNote>() + record.body.len() / 2 * size_of::<u64>()
    }

    /// Adds a pause. Returns the bytes of memory that it takes.
    pub(crate) fn push(&mut self, pause: Pause) -> usize {
        let (ids, memory) = self.intern(&pause.ids);
        self.notes.push(PauseNote {
            number: (0, pause.number),
            ids,
            from: pause.from_ns,
            to: pause.to_ns,
        });
        memory + size_of::<PauseNote>()
    }

    /// Number of records.
    pub(crate) const fn len(&self) -> usize {
        self.notes.len()
    }

    fn intern(&mut self, ids: &[u64]) -> (Arc<[u64]>, usize) {
        if let Some(known) = self.ids.get(ids) {
            return (Arc::clone(known), 0);
        }
        let ids: Arc<[u64]> = ids.into();
        self.ids.insert(Arc::clone(&ids));
        let memory = size_of_val(&*ids) + 4 * size_of::<usize>();
        (ids, memory)
    }

    /// Appends those of another log. Returns the bytes of memory that they take.
    pub(crate) fn append(&mut self, other: Self) -> usize {
        let mut all = size_of_val(&*other.notes);
        for note in other.notes {
            let (ids, memory) = self.intern(&note.ids);
            all += memory;
            self.notes.push(PauseNote { ids, ..note });
        }
        all
    }

    /// Has them be those of a recording, and replaces their ids.
    pub(crate) fn renumber(&mut self, recording: u32, id: impl Fn(u64) -> u64) {
        for note in std::mem::take(&mut self.notes) {
            let ids: Vec<u64> = note.ids.iter().map(|&of_file| id(of_file)).collect();
            let (ids, _) = self.intern(&ids);
            let number = (recording, note.number.1);
            self.notes.push(PauseNote {
                number,
                ids,
                ..note
            });
        }
    }

    /// Has those that have not ended end with the recording that they are of.
    pub(crate) fn end_recording(&mut self, last: Option<u64>) {
        for note in &mut self.notes {
            note.to = note.to.or(last);
        }
    }

    /// The pauses by number. Of two records with the same number, the last one holds. Those that take no time are left out.
    pub(crate) fn into_pauses(self) -> impl Iterator<Item = PausedIds> {
        let notes = self.notes.into_iter();
        let last: BTreeMap<(u32, u64), PauseNote> = notes.map(|note| (note.number, note)).collect();
        let pauses = last.into_values().map(|note| PausedIds {
            ids: note.ids,
            time: TimeRange::new(note.from, note.to.unwrap_or(u64::MAX)),
        });
        pauses.filter(|pause| pause.time.first < pause.time.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(number: u64, from_ns: u64, to_ns: Option<u64>) -> Pause {
        Pause {
            number,
            ids: vec![7],
            from_ns,
            to_ns,
        }
    }

    fn times(log: PauseLog) -> Vec<(u64, u64)> {
        let pauses = log.into_pauses();
        let mut times: Vec<_> = pauses
            .map(|pause| (pause.time.first, pause.time.last))
            .collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn later_records_replace_earlier_ones_of_the_same_recording() {
        let mut first = PauseLog::default();
        let memory = first.push(pause(0, 10, None));
        assert!(first.push(pause(0, 10, Some(20))) < memory, "the same ids");
        first.push(pause(1, 30, None));
        first.end_recording(Some(40));
        let mut second = PauseLog::default();
        second.push(pause(0, 50, None));
        second.push(pause(2, 60, Some(60)));
        second.push(pause(3, 70, Some(1)));
        second.renumber(1, |id| id + 1);
        first.append(second);
        assert_eq!(times(first), [(10, 20), (30, 40), (50, u64::MAX)]);
    }
}
