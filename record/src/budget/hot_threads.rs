//! Counts the hits of each thread for a time.

use std::collections::HashMap;

use usdtrec_watch::batch::Batch;
use usdtrec_watch::stage::Stage;

use super::loads::MAX_THREADS;

/// The stage. It passes all records on.
#[derive(Debug, Default)]
pub(crate) struct HotThreads {
    is_counting: bool,
    /// Hits of a thread at a probe, by thread id and sample id. At most [`MAX_THREADS`].
    hits: HashMap<(i32, u64), u64>,
}

impl HotThreads {
    /// Counts from now on. One that is made does not.
    pub(crate) fn begin(&mut self) {
        *self = Self {
            is_counting: true,
            ..Self::default()
        };
    }

    /// The number of hits of each thread at each probe, by thread id and sample id.
    pub(crate) fn hits(&self) -> impl Iterator<Item = ((i32, u64), u64)> + '_ {
        self.hits.iter().map(|(key, hits)| (*key, *hits))
    }

    fn add(&mut self, key: (i32, u64), hits: u64) {
        if let Some(known) = self.hits.get_mut(&key) {
            *known += hits;
        } else if hits > 0 && self.hits.len() < MAX_THREADS {
            self.hits.insert(key, hits);
        }
    }
}

impl Stage for HotThreads {
    fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        if !self.is_counting {
            return batch;
        }
        // Hits that follow each other are mostly of one thread.
        let (mut key, mut hits) = ((0, 0), 0);
        for sample in batch.records().filter_map(|record| record.sample()) {
            if key != (sample.tid, sample.id) {
                self.add(key, hits);
                (key, hits) = ((sample.tid, sample.id), 0);
            }
            hits += 1;
        }
        self.add(key, hits);
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::stage::tests::sample;
    use usdtrec_watch::batch::Heads;

    #[test]
    fn hits_are_counted_by_thread_and_probe() {
        let mut stage = HotThreads::default();
        stage.begin();
        let samples = [(10, 7), (10, 7), (10, 8), (11, 8), (10, 7)];
        let records: Vec<u8> = samples
            .iter()
            .flat_map(|(id, tid)| sample(*id, *tid, 100))
            .collect();
        let mut heads = Heads::default();
        let passed = stage.take(Batch::read(&records, &mut heads));
        assert_eq!(passed.records().count(), samples.len());
        let counted: HashMap<_, _> = stage.hits().collect();
        let expected = [((7, 10), 3), ((8, 10), 1), ((8, 11), 1)];
        assert_eq!(counted, HashMap::from(expected));
    }
}
