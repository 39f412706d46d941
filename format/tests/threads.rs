//! Several threads that compress: the records are those that one thread writes, and so is what is in the file at any time.

use std::cell::Cell;
use std::io;
use std::num::NonZeroUsize;
use std::rc::Rc;

use crate::support::log::Log;
use crate::support::{self, LOSSES, info, open, read, sample};
use usdtrec_format::trace::{Compression, PipeWriter, Storage, Trace, TraceWriter, WriteError};
use usdtrec_testing::SplitMix64;

/// Samples of a part: more than a megabyte.
const PART: u64 = 16_000;
const PARTS: u64 = 12;

/// A part of a pass over the rings. Every fourth one is hard to compress, so that its runs become several chunks each.
fn part(number: u64) -> Vec<u8> {
    let mut records = Vec::new();
    let mut random = SplitMix64(number);
    for sample_number in number * PART..(number + 1) * PART {
        let start = records.len();
        sample(sample_number, &mut records);
        if number % 4 == 3 {
            // The two words after the one that has the number.
            for at in [start + 64, start + 72] {
                records[at..at + 8].copy_from_slice(&random.number().to_le_bytes());
            }
        }
    }
    records
}

fn threads(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

/// Writes passes of parts; each pass ends with a flush.
fn write<S: Storage>(storage: S, number: usize, at_once: bool) {
    let mut writer = TraceWriter::create(storage, &info(), Compression::Zstd(1)).unwrap();
    writer.set_threads(threads(number), at_once);
    for number in 0..PARTS {
        writer.push(&part(number));
        if number % 6 == 5 {
            writer.flush().unwrap();
            assert_eq!(writer.pending(), 0);
            assert_eq!(writer.totals().samples, (number + 1) * PART);
        } else {
            writer.flush_part().unwrap();
        }
    }
    writer.finish(&LOSSES).unwrap();
}

#[test]
fn all_numbers_of_threads_write_the_same_records_in_the_same_order() {
    let mut all = Vec::new();
    for (number, at_once) in [(1, true), (2, true), (2, false), (5, true), (5, false)] {
        let log = Log::default();
        write(log.clone(), number, at_once);
        let trace = open(&log.image(log.steps(), 0)).unwrap();
        assert!(trace.is_finished());
        let found = read(&trace);
        assert_eq!(found.damage, []);
        assert_eq!(found.samples.len() as u64, PARTS * PART);
        all.push((number, found.samples));
    }
    let (_, one) = &all[0];
    for (number, several) in &all[1..] {
        assert!(several == one, "{number} threads");
    }
}

/// Whatever is written when the recorder is killed: whole parts from the front, and no damage.
#[test]
fn every_kill_leaves_the_first_parts() {
    let log = Log::default();
    write(log.clone(), 3, true);
    let mut seen = 0;
    for step in 0..log.steps() {
        for torn in [0, log.len(step) / 2] {
            // A commit is one copy of 8 bytes, which no signal parts.
            if torn != 0 && log.len(step) <= 8 {
                continue;
            }
            let Ok(trace) = open(&log.image(step, torn)) else {
                assert_eq!(seen, 0, "step {step}");
                continue;
            };
            let found = read(&trace);
            assert_eq!(found.damage, [], "step {step}");
            let samples = found.samples.len() as u64;
            assert_eq!(samples % PART, 0, "whole parts only");
            assert!(samples >= seen);
            let expected: Vec<u64> = (0..samples).collect();
            assert!(found.numbers() == expected, "step {step}");
            seen = samples;
        }
    }
    assert_eq!(seen, PARTS * PART);
}

/// A disk with room for so many bytes.
#[derive(Clone)]
struct Full {
    log: Log,
    room: Rc<Cell<usize>>,
}

impl Storage for Full {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if offset as usize + bytes.len() > self.room.get() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.log.write_at(bytes, offset)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.log.set_len(len)
    }
}

#[test]
fn a_full_disk_keeps_the_parts_for_another_try() {
    let full = Full {
        log: Log::default(),
        room: Rc::new(Cell::new(500_000)),
    };
    let mut writer = TraceWriter::create(full.clone(), &info(), Compression::Zstd(1)).unwrap();
    writer.set_threads(threads(3), true);
    let mut failures = 0;
    for number in 0..PARTS {
        writer.push(&part(number));
        match writer.flush_part() {
            Ok(()) => {}
            Err(WriteError::Io { .. }) => failures += 1,
            Err(error) => panic!("{error}"),
        }
    }
    writer.flush().unwrap_err();
    assert!(failures > 0);
    let committed = writer.totals().samples;
    assert!(committed < PARTS * PART);
    let trace = open(&full.log.image(full.log.steps(), 0)).unwrap();
    let expected: Vec<u64> = (0..committed).collect();
    assert!(read(&trace).numbers() == expected);
    full.room.set(usize::MAX);
    writer.flush().unwrap();
    writer.finish(&[]).unwrap();
    let trace = open(&full.log.image(full.log.steps(), 0)).unwrap();
    let found = read(&trace);
    let expected: Vec<u64> = (0..PARTS * PART).collect();
    assert!(found.numbers() == expected);
    assert_eq!(found.damage, []);
}

/// A pass over the rings stays one round of a pipe: nothing is written before its end.
#[test]
fn a_pipe_has_a_pass_as_one_round() {
    let stream = |number: usize| {
        let mut bytes = Vec::new();
        let mut writer = PipeWriter::create(&mut bytes, &info(), Compression::Zstd(1)).unwrap();
        writer.set_threads(threads(number), true);
        let before = writer.totals();
        for number in 0..4 {
            let mut records = part(number);
            support::process(&mut records);
            writer.push(&records);
            writer.compress_part();
            assert_eq!(writer.totals(), before);
        }
        assert_eq!(writer.unflushed() == 0, number > 1);
        writer.flush().unwrap();
        assert_eq!(writer.pending(), 0);
        assert_eq!(writer.totals().samples, 4 * PART);
        writer.finish(&LOSSES).unwrap();
        bytes
    };
    let read = |bytes: &[u8]| read(&open(bytes).unwrap());
    let (one, three) = (read(&stream(1)), read(&stream(3)));
    assert_eq!(one.samples.len() as u64, 4 * PART);
    assert!(one.samples == three.samples);
    assert_eq!(one.metadata, three.metadata);
    assert_eq!(three.damage, []);
}

/// A writer that is dropped in the middle ends its threads, and the file has what was committed.
#[test]
fn a_writer_that_is_dropped_leaves_a_valid_file() {
    let file = tempfile::tempfile().unwrap();
    let copy = file.try_clone().unwrap();
    let mut writer = TraceWriter::create(copy, &info(), Compression::Zstd(1)).unwrap();
    writer.set_threads(threads(4), true);
    for number in 0..PARTS {
        writer.push(&part(number));
        writer.flush_part().unwrap();
    }
    let committed = writer.totals().samples;
    drop(writer);
    let found = read(&Trace::from_file(file).unwrap());
    assert_eq!(found.samples.len() as u64, committed);
    assert_eq!(found.damage, []);
}
