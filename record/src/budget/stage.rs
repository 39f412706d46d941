//! Stages that count hits by thread: those of units, where hits that fall into pauses are dropped (of the moments in which a unit is being detached or
//! attached), and those of all probes for a time.

use std::collections::{HashMap, VecDeque};

use usdtrec_watch::batch::Batch;
use usdtrec_watch::stage::Stage;

use super::loads::MAX_THREADS;

/// Number of the last pauses of a unit into which hits may fall that are read late: by at most one pass over the rings, and a pass is shorter than
/// a period.
const LAST_PAUSES: usize = 8;

/// Counts the hits of units, and drops those in pauses.
#[derive(Debug)]
pub(crate) struct PauseStage {
    /// The unit of each sample id from `first_id` on.
    of_id: Vec<Option<usize>>,
    first_id: u64,
    units: Vec<UnitHits>,
    left_out: u64,
}

#[derive(Clone, Debug, Default)]
struct UnitHits {
    /// Number of hits of each thread since they were last taken.
    threads: HashMap<i32, u64>,
    pauses: VecDeque<PauseTime>,
}

/// A pause; without an end while it lasts.
#[derive(Clone, Copy, Debug)]
struct PauseTime {
    from: u64,
    to: Option<u64>,
}

impl PauseTime {
    fn has(self, time: u64) -> bool {
        self.from <= time && self.to.is_none_or(|to| time < to)
    }
}

/// Hits of a thread that follow each other.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    unit: usize,
    tid: i32,
    hits: u64,
}

impl PauseStage {
    /// `ids` are the sample ids of each unit.
    pub(super) fn new(ids: &[Vec<u64>]) -> Self {
        let all = || ids.iter().flatten().copied();
        let first_id = all().min().unwrap_or(0);
        let last = all().max().unwrap_or(0);
        let mut of_id = vec![None; (last - first_id) as usize + 1];
        for (unit, ids) in ids.iter().enumerate() {
            for id in ids {
                if let Some(of_id) = of_id.get_mut((id - first_id) as usize) {
                    *of_id = Some(unit);
                }
            }
        }
        Self {
            of_id,
            first_id,
            units: vec![UnitHits::default(); ids.len()],
            left_out: 0,
        }
    }

    /// Begins a pause of a unit: no hit at this time or later has been read.
    pub(super) fn begin(&mut self, unit: usize, from: u64) {
        if let Some(unit) = self.units.get_mut(unit) {
            unit.pauses.truncate(LAST_PAUSES - 1);
            unit.pauses.push_front(PauseTime { from, to: None });
        }
    }

    /// Ends the pause of a unit.
    pub(super) fn end(&mut self, unit: usize, to: u64) {
        let unit = self.units.get_mut(unit);
        if let Some(pause) = unit.and_then(|unit| unit.pauses.front_mut()) {
            pause.to = Some(to);
        }
    }

    /// The hits of each thread in a unit since they were last taken, those in pauses, too.
    pub(super) fn hits(&self, unit: usize) -> Option<&HashMap<i32, u64>> {
        self.units.get(unit).map(|unit| &unit.threads)
    }

    /// Takes them.
    pub(super) fn take_hits(&mut self, unit: usize) -> HashMap<i32, u64> {
        let unit = self.units.get_mut(unit);
        unit.map(|unit| std::mem::take(&mut unit.threads))
            .unwrap_or_default()
    }
}

/// Adds hits to those of their thread.
fn count(units: &mut [UnitHits], run: Run) {
    let Some(unit) = units.get_mut(run.unit).filter(|_| run.hits > 0) else {
        return;
    };
    if let Some(hits) = unit.threads.get_mut(&run.tid) {
        *hits += run.hits;
    } else if unit.threads.len() < MAX_THREADS {
        unit.threads.insert(run.tid, run.hits);
    }
}

impl Stage for PauseStage {
    fn take<'a>(&'a mut self, mut batch: Batch<'a>) -> Batch<'a> {
        let Self {
            of_id,
            first_id,
            units,
            left_out,
        } = self;
        let mut run = Run::default();
        *left_out += batch.retain(|record| {
            let Some(sample) = record.sample() else {
                return true;
            };
            let at = sample.id.checked_sub(*first_id);
            let unit = at.and_then(|at| of_id.get(usize::try_from(at).ok()?).copied());
            let Some(unit) = unit.flatten() else {
                return true;
            };
            if (run.unit, run.tid) != (unit, sample.tid) {
                count(units, run);
                run = Run {
                    unit,
                    tid: sample.tid,
                    hits: 0,
                };
            }
            run.hits += 1;
            let pauses = units.get(unit).map(|unit| &unit.pauses);
            !pauses.is_some_and(|pauses| pauses.iter().any(|pause| pause.has(sample.time)))
        });
        count(units, run);
        batch
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Counts the hits of each thread for a time. It passes all records on.
#[derive(Debug, Default)]
pub(crate) struct HotThreads {
    is_counting: bool,
    /// Hits of a thread at a probe, by thread id and sample id. At most [`MAX_THREADS`].
    hits: HashMap<(i32, u64), u64>,
}

impl HotThreads {
    /// Counts from now on. One that is made does not.
    pub(crate) fn begin(&mut self) {
        self.is_counting = true;
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
    use usdtrec_format::perf::{RawRecord, RecordType};

    use super::*;
    use usdtrec_watch::batch::Heads;

    /// A sample of an id, a thread of process 3, and a time.
    fn sample(id: u64, tid: u64, time: u64) -> Vec<u8> {
        let words = [id, 0x1000, 3 | tid << 32, time];
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut out = Vec::new();
        let record = RawRecord {
            kind: RecordType::SAMPLE,
            misc: 2,
            body: &body,
            offset: 0,
        };
        record.put(&mut out);
        out
    }

    fn times(stage: &mut PauseStage, samples: &[Vec<u8>]) -> Vec<u64> {
        let all = samples.concat();
        let mut heads = Heads::default();
        let batch = stage.take(Batch::read(&all, &mut heads));
        let samples = batch.records().filter_map(|record| record.sample());
        samples.map(|sample| sample.time).collect()
    }

    #[test]
    fn hits_in_pauses_are_dropped_and_counted_and_others_stay() {
        let mut stage = PauseStage::new(&[vec![10, 11], vec![13]]);
        stage.begin(0, 100);
        let samples = [
            sample(10, 7, 99),
            sample(10, 7, 100),
            sample(11, 8, 150),
            sample(13, 7, 150),
            sample(12, 7, 151),
            sample(9, 7, 152),
        ];
        assert_eq!(times(&mut stage, &samples), [99, 150, 151, 152]);
        stage.end(0, 200);
        // Some are read late.
        let samples = [sample(10, 7, 199), sample(10, 7, 200), sample(11, 7, 98)];
        assert_eq!(times(&mut stage, &samples), [200, 98]);
        stage.begin(0, 300);
        let samples = [sample(10, 7, 150), sample(10, 7, 250), sample(10, 7, 300)];
        assert_eq!(times(&mut stage, &samples), [250]);
        assert_eq!(stage.left_out(), 5);
        assert_eq!(stage.take_hits(0), HashMap::from([(7, 8), (8, 1)]));
        assert_eq!(stage.take_hits(1), HashMap::from([(7, 1)]));
        assert!(stage.take_hits(0).is_empty());
    }

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
