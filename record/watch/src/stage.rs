//! Stages: what records pass between the rings and the trace file.
//!
//! A stage gets batches, so that its cost beyond its work is a call for each batch. The heads of the records have been read, and by the first stage,
//! the table of processes, what process records say: an observer of processes is a stage that looks at [`Batch::changes`].

use std::any::Any;
use std::fmt::Debug;

use crate::batch::Batch;

/// A stage of the pipeline.
pub trait Stage: Any + Debug {
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

/// Stages in the order in which records pass them: made once, at most one of each type.
#[derive(Debug)]
pub struct Stages(Vec<Box<dyn Stage>>);

/// An entry of [`Stages::new`], of a stage that a recording may not have.
pub fn entry<S: Stage>(stage: Option<S>) -> Option<Box<dyn Stage>> {
    stage.map(|stage| Box::new(stage) as Box<dyn Stage>)
}

impl Stages {
    /// Leaves out the stages that a recording does not have.
    pub fn new<const N: usize>(stages: [Option<Box<dyn Stage>>; N]) -> Self {
        Self(stages.into_iter().flatten().collect())
    }

    /// The stage of a type.
    #[must_use]
    pub fn get<S: Stage>(&self) -> Option<&S> {
        let mut stages = self.0.iter();
        stages.find_map(|stage| (&**stage as &dyn Any).downcast_ref())
    }

    /// The same, to tell it something.
    #[must_use]
    pub fn get_mut<S: Stage>(&mut self) -> Option<&mut S> {
        let mut stages = self.0.iter_mut();
        stages.find_map(|stage| (&mut **stage as &mut dyn Any).downcast_mut())
    }

    /// Takes out the stage of a type, at the end.
    #[must_use]
    pub fn take_out<S: Stage>(&mut self) -> Option<S> {
        let mut stages = self.0.iter();
        let at = stages.position(|stage| (&**stage as &dyn Any).is::<S>())?;
        let stage: Box<dyn Any> = self.0.remove(at);
        stage.downcast().ok().map(|stage| *stage)
    }

    /// Passes a batch through all stages.
    pub fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        pass(&mut self.0, batch)
    }

    /// Ends a pass. `sink` gets what stages add, once later stages have taken it.
    pub fn end_pass(&mut self, sink: impl FnMut(Batch<'_>)) {
        self.end(|stage| stage.end_pass(), sink);
    }

    /// Ends the recording, as [`end_pass`](Self::end_pass) does a pass.
    pub fn end_recording(&mut self, sink: impl FnMut(Batch<'_>)) {
        self.end(|stage| stage.end_recording(), sink);
    }

    fn end(
        &mut self,
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
    pub fn begin_file(&mut self) {
        self.0.iter_mut().for_each(|stage| stage.begin_file());
    }

    /// Number of samples that stages have dropped on purpose.
    pub fn left_out(&self) -> u64 {
        self.0.iter().map(|stage| stage.left_out()).sum()
    }
}

fn pass<'a>(stages: &'a mut [Box<dyn Stage>], batch: Batch<'a>) -> Batch<'a> {
    let stages = stages.iter_mut();
    stages.fold(batch, |batch, stage| stage.take(batch))
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::{RawRecord, RecordType};

    use super::*;
    use crate::batch::{Heads, RecordBuffer};

    /// Keeps every second sample.
    #[derive(Debug, Default)]
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
    #[derive(Debug, Default)]
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

    /// Notes the times of the samples: before other stages, and after them.
    #[derive(Debug, Default)]
    struct Times<const IS_AFTER: bool> {
        times: Vec<u64>,
        files: usize,
    }

    type Before = Times<false>;
    type After = Times<true>;

    impl<const IS_AFTER: bool> Stage for Times<IS_AFTER> {
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
        let mut stages = Stages::new([
            entry(Some(Before::default())),
            entry(Some(EverySecond::default())),
            entry::<Hold>(None),
            entry(Some(After::default())),
        ]);
        let mut heads = Heads::default();
        let mut out = Vec::new();
        for times in [&[1, 2, 3][..], &[4, 5], &[]] {
            let comm = record(RecordType::COMM, 0);
            let all = [samples(times), comm].concat();
            out.push(bytes(&stages.take(Batch::read(&all, &mut heads))));
        }
        let comm = record(RecordType::COMM, 0);
        let expected: [&[u64]; 3] = [&[1, 3], &[5], &[]];
        let expected = expected.map(|times| [samples(times), comm.clone()].concat());
        assert_eq!(out, expected);
        let times = |times: Option<Vec<u64>>| times.expect("a stage");
        let before = stages.get::<Before>().map(|stage| stage.times.clone());
        assert_eq!(times(before), [1, 2, 3, 4, 5]);
        assert_eq!(stages.left_out(), 2);
        assert!(stages.get::<Hold>().is_none());
        let after = stages.get_mut::<After>();
        assert_eq!(
            times(after.map(|stage| std::mem::take(&mut stage.times))),
            [1, 3, 5]
        );
        let every_second = stages.take_out::<EverySecond>().expect("a stage");
        assert_eq!(every_second.left_out(), 2);
        assert_eq!(stages.left_out(), 0);
    }

    #[test]
    fn what_a_stage_adds_at_the_end_of_a_pass_is_for_later_stages() {
        let mut stages = Stages::new([
            entry(Some(Before::default())),
            entry(Some(Hold::default())),
            entry(Some(After::default())),
        ]);
        let mut heads = Heads::default();
        let comm = record(RecordType::COMM, 0);
        let all = [samples(&[1, 2]), comm.clone(), samples(&[3])].concat();
        assert_eq!(bytes(&stages.take(Batch::read(&all, &mut heads))), comm);
        let mut added = Vec::new();
        stages.end_pass(|batch| added.push(bytes(&batch)));
        stages.end_pass(|batch| added.push(bytes(&batch)));
        stages.end_recording(|batch| added.push(bytes(&batch)));
        let exit = record(RecordType::EXIT, 9);
        assert_eq!(added, [samples(&[1, 2, 3]), Vec::new(), exit]);
        stages.begin_file();
        let before = stages.take_out::<Before>().expect("a stage");
        let after = stages.take_out::<After>().expect("a stage");
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
