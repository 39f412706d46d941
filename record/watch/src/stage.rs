//! Stages: what records pass between the rings and the trace file.
//!
//! A stage gets batches, so that its cost beyond its work is a call for each batch. The heads of the records have been read, and by the first stage,
//! the table of processes, what process records say: an observer of processes is a stage that looks at [`Batch::changes`].

use crate::batch::Batch;

/// A stage of the pipeline.
pub trait Stage {
    /// Takes a batch of whole records. Returns those that the next stage gets: the same, fewer, or others in their place.
    fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a>;

    /// Ends a pass over all rings. Returns records to add, which only later stages get.
    fn end_pass(&mut self) -> Option<Batch<'_>> {
        None
    }

    /// Ends the recording, after the last pass: no hits come any more. Returns records to add, as at the end of a pass.
    fn end_recording(&mut self) -> Option<Batch<'_>> {
        None
    }

    /// Begins another file.
    fn begin_file(&mut self) {}

    /// Number of samples that the stage has dropped on purpose, so that they are neither in a file nor lost.
    fn left_out(&self) -> u64 {
        0
    }
}

/// Stages in the order in which records pass them.
pub struct Stages<'s>(Vec<&'s mut dyn Stage>);

impl<'s> Stages<'s> {
    /// Leaves out the stages that a recording does not have.
    pub fn new<const N: usize>(stages: [Option<&'s mut dyn Stage>; N]) -> Self {
        Self(stages.into_iter().flatten().collect())
    }

    /// Passes a batch through all stages.
    pub fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        pass(&mut self.0, batch)
    }

    /// Ends a pass. `sink` gets what stages add, once later stages have taken it.
    pub fn end_pass(self, sink: impl FnMut(Batch<'_>)) {
        self.end(|stage| stage.end_pass(), sink);
    }

    /// Ends the recording, as [`end_pass`](Self::end_pass) does a pass.
    pub fn end_recording(self, sink: impl FnMut(Batch<'_>)) {
        self.end(|stage| stage.end_recording(), sink);
    }

    fn end(
        mut self,
        end: impl for<'a> Fn(&'a mut dyn Stage) -> Option<Batch<'a>>,
        mut sink: impl FnMut(Batch<'_>),
    ) {
        let mut stages = &mut *self.0;
        while let Some((stage, later)) = stages.split_first_mut() {
            if let Some(batch) = end(&mut **stage) {
                sink(pass(later, batch));
            }
            stages = later;
        }
    }

    /// Begins another file.
    pub fn begin_file(self) {
        for stage in self.0 {
            stage.begin_file();
        }
    }

    /// Number of samples that stages have dropped on purpose.
    pub fn left_out(&self) -> u64 {
        self.0.iter().map(|stage| stage.left_out()).sum()
    }
}

fn pass<'a>(stages: &'a mut [&mut dyn Stage], batch: Batch<'a>) -> Batch<'a> {
    let stages = stages.iter_mut();
    stages.fold(batch, |batch, stage| stage.take(batch))
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::{RawRecord, RecordType};

    use super::*;
    use crate::batch::{Heads, RecordBuffer};

    /// Keeps every second sample.
    #[derive(Default)]
    struct EverySecond {
        samples: u64,
        left_out: u64,
    }

    impl Stage for EverySecond {
        fn take<'a>(&'a mut self, mut batch: Batch<'a>) -> Batch<'a> {
            let Self { samples, left_out } = self;
            *left_out += batch.retain(|record| {
                let is_sample = record.sample().is_some();
                *samples += u64::from(is_sample);
                !is_sample || *samples % 2 == 1
            });
            batch
        }

        fn left_out(&self) -> u64 {
            self.left_out
        }
    }

    /// Holds the samples until the end of the pass.
    #[derive(Default)]
    struct Hold {
        held: RecordBuffer,
        out: RecordBuffer,
    }

    impl Stage for Hold {
        fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
            self.out.clear();
            for record in batch.records() {
                match record.sample() {
                    Some(_) => self.held.push(record),
                    None => self.out.push(record),
                }
            }
            self.out.batch()
        }

        fn end_pass(&mut self) -> Option<Batch<'_>> {
            self.out.clear();
            std::mem::swap(&mut self.held, &mut self.out);
            Some(self.out.batch())
        }

        fn end_recording(&mut self) -> Option<Batch<'_>> {
            self.out.clear();
            self.out
                .write(|bytes| bytes.extend(record(RecordType::EXIT, 9)));
            Some(self.out.batch())
        }
    }

    /// Notes the times of the samples.
    #[derive(Default)]
    struct Times {
        times: Vec<u64>,
        files: usize,
    }

    impl Stage for Times {
        fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
            let samples = batch.records().filter_map(|record| record.sample());
            self.times.extend(samples.map(|sample| sample.time));
            batch
        }

        fn begin_file(&mut self) {
            self.files += 1;
        }
    }

    /// A record with this time, if it is a sample.
    fn record(kind: RecordType, time: u64) -> Vec<u8> {
        let words = [1, 0x1000, 7, time];
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let record = RawRecord {
            kind,
            misc: 0,
            body: &body,
            offset: 0,
        };
        let mut out = Vec::new();
        record.put(&mut out);
        out
    }

    fn samples(times: &[u64]) -> Vec<u8> {
        let samples = times.iter().map(|time| record(RecordType::SAMPLE, *time));
        samples.flatten().collect()
    }

    /// What comes out of the stages.
    fn bytes(batch: &Batch<'_>) -> Vec<u8> {
        batch.pieces().flatten().copied().collect()
    }

    #[test]
    fn a_stage_gets_what_the_one_before_it_passes_on() {
        let (mut before, mut after) = (Times::default(), Times::default());
        let mut every_second = EverySecond::default();
        let mut heads = Heads::default();
        let mut out = Vec::new();
        for times in [&[1, 2, 3][..], &[4, 5], &[]] {
            let comm = record(RecordType::COMM, 0);
            let all = [samples(times), comm].concat();
            let mut stages = Stages::new([
                Some(&mut before as &mut dyn Stage),
                Some(&mut every_second),
                None,
                Some(&mut after),
            ]);
            out.push(bytes(&stages.take(Batch::read(&all, &mut heads))));
        }
        let comm = record(RecordType::COMM, 0);
        let expected: [&[u64]; 3] = [&[1, 3], &[5], &[]];
        let expected = expected.map(|times| [samples(times), comm.clone()].concat());
        assert_eq!(out, expected);
        assert_eq!(before.times, [1, 2, 3, 4, 5]);
        assert_eq!(after.times, [1, 3, 5]);
        assert_eq!(every_second.left_out(), 2);
        assert_eq!(after.left_out(), 0);
    }

    #[test]
    fn what_a_stage_adds_at_the_end_of_a_pass_is_for_later_stages() {
        let (mut before, mut after) = (Times::default(), Times::default());
        let mut hold = Hold::default();
        let mut heads = Heads::default();
        let comm = record(RecordType::COMM, 0);
        let all = [samples(&[1, 2]), comm.clone(), samples(&[3])].concat();
        macro_rules! list {
            () => {
                Stages::new([
                    Some(&mut before as &mut dyn Stage),
                    Some(&mut hold),
                    Some(&mut after),
                ])
            };
        }
        assert_eq!(bytes(&list!().take(Batch::read(&all, &mut heads))), comm);
        let mut added = Vec::new();
        list!().end_pass(|batch| added.push(bytes(&batch)));
        list!().end_pass(|batch| added.push(bytes(&batch)));
        list!().end_recording(|batch| added.push(bytes(&batch)));
        let exit = record(RecordType::EXIT, 9);
        assert_eq!(added, [samples(&[1, 2, 3]), Vec::new(), exit]);
        list!().begin_file();
        assert_eq!((before.times, before.files), (vec![1, 2, 3], 1));
        assert_eq!((after.times, after.files), (vec![1, 2, 3], 1));
    }

    /// No stage, as when nothing is unwound or filtered.
    #[test]
    fn without_stages_records_pass_unchanged() {
        let all = samples(&[1, 2]);
        let mut heads = Heads::default();
        let mut stages = Stages::new([None]);
        assert_eq!(bytes(&stages.take(Batch::read(&all, &mut heads))), all);
    }
}
