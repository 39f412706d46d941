//! A recorder killed between any two writes, or inside one: the file holds exactly what was committed.

use std::cell::Cell;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use crate::support::log::Log;
use crate::support::{LOSSES, info, open, push_round, read};
use usdtrec_format::trace::{Compression, Storage, Trace, TraceWriter, WriteError};

const ROUNDS: u64 = 6;
const SAMPLES: u64 = 7000;

/// Writes a trace and gives its steps, with the samples that are committed after each.
fn record(compression: Compression) -> (Log, Vec<u64>) {
    let log = Log::default();
    let mut committed = Vec::new();
    let mut done = |samples: u64| committed.resize(log.steps() + 1, samples);
    let mut writer = TraceWriter::create(log.clone(), &info(), compression).unwrap();
    done(0);
    for round in 0..ROUNDS {
        let numbers: Vec<u64> = (round * SAMPLES..(round + 1) * SAMPLES).collect();
        push_round(&mut writer, round as usize, &numbers);
        // Two parts within a pass, then its end.
        if round % 3 == 2 {
            writer.flush().unwrap();
        } else {
            writer.flush_part().unwrap();
        }
        // The last step of a flush is the commit; before it, what was.
        committed.resize(log.steps(), round * SAMPLES);
        committed.push((round + 1) * SAMPLES);
    }
    writer.finish(&LOSSES).unwrap();
    committed.resize(log.steps() + 1, ROUNDS * SAMPLES);
    (log, committed)
}

/// How many bytes of a step are written when the kill comes: none, and some in the middle of it. The 8 bytes of a commit
/// are one copy within a page, which no signal parts.
fn torn(len: usize) -> Vec<usize> {
    match len {
        0..=8 => vec![0],
        len => vec![0, 1, 8, len / 3, len / 2, len - 9, len - 1],
    }
}

#[test]
fn every_kill_leaves_exactly_what_was_committed() {
    for compression in [Compression::None, Compression::Zstd(1)] {
        let (log, committed) = record(compression);
        let mut opened = 0;
        for (step, &samples) in committed.iter().enumerate().take(log.steps()) {
            for torn in torn(log.len(step)) {
                let place = format!("{compression:?}: step {step}, {torn} bytes of it");
                let image = log.image(step, torn);
                let Ok(trace) = open(&image) else {
                    assert_eq!(samples, 0, "{place}");
                    continue;
                };
                opened += 1;
                let found = read(&trace);
                let expected: Vec<u64> = (0..samples).collect();
                assert!(
                    found.sorted() == expected,
                    "{place}: {}",
                    found.samples.len()
                );
                assert_eq!(found.damage, [], "{place}");
                assert!(!trace.is_finished(), "{place}");
                assert_eq!(trace.info().events, info().events, "{place}");
                assert_eq!(trace.info().definitions, info().definitions, "{place}");
            }
        }
        assert!(opened > 50, "{opened}");
        assert!(open(&log.image(log.steps(), 0)).unwrap().is_finished());
    }
}

#[test]
fn a_torn_tail_is_told_with_its_place() {
    let (log, _) = record(Compression::Zstd(1));
    // The last flush's large write, cut in the middle.
    let step = (0..log.steps())
        .rev()
        .find(|&step| log.len(step) > 10_000)
        .unwrap();
    let whole = log.image(step, 0).len() as u64;
    let trace = open(&log.image(step, 5000)).unwrap();
    assert_eq!(trace.damage(), [], "the file has all that was flushed");
    let tail = trace.uncommitted().unwrap();
    assert_eq!(tail.offset, whole);
    let chunks = format!("the {} chunks before it are whole", trace.blocks().len());
    for part in [chunks.as_str(), "killed", "5000 bytes"] {
        assert!(tail.to_string().contains(part), "{tail}");
    }
}

/// A file on a full disk: after some bytes every write fails half done.
struct Full {
    file: std::fs::File,
    room: Rc<Cell<usize>>,
}

impl Storage for Full {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let room = self.room.get();
        let fits = bytes.len().min(room);
        self.file.write_all_at(&bytes[..fits], offset)?;
        self.room.set(room - fits);
        if fits < bytes.len() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
}

#[test]
fn a_full_disk_leaves_what_was_committed() {
    for room in (66_000..600_000).step_by(20_011) {
        let file = tempfile::tempfile().unwrap();
        let full = Full {
            file: file.try_clone().unwrap(),
            room: Rc::new(Cell::new(room)),
        };
        let Ok(mut writer) = TraceWriter::create(full, &info(), Compression::None) else {
            continue;
        };
        let mut committed = 0;
        let error = loop {
            let numbers: Vec<u64> = (committed..committed + 500).collect();
            push_round(&mut writer, 1, &numbers);
            match writer.flush() {
                Ok(()) => committed += 500,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, WriteError::Io { .. }), "{error}");
        assert_eq!(writer.totals().samples, committed);
        assert!(writer.finish(&[]).is_err());
        let trace = Trace::from_file(file).unwrap();
        let found = read(&trace);
        assert_eq!(found.sorted(), (0..committed).collect::<Vec<_>>());
        assert_eq!(found.damage, [], "the rest of the failed flush was cut off");
    }
}

#[test]
fn a_flush_may_be_tried_again() {
    let file = tempfile::tempfile().unwrap();
    let room = Rc::new(Cell::new(80_000));
    let full = Full {
        file: file.try_clone().unwrap(),
        room: room.clone(),
    };
    let mut writer = TraceWriter::create(full, &info(), Compression::Zstd(1)).unwrap();
    let numbers: Vec<u64> = (0..20_000).collect();
    push_round(&mut writer, 0, &numbers);
    writer.flush().unwrap_err();
    assert_eq!(
        read(&Trace::from_file(file.try_clone().unwrap()).unwrap())
            .samples
            .len(),
        0
    );
    room.set(usize::MAX);
    writer.finish(&[]).unwrap();
    let trace = Trace::from_file(file).unwrap();
    assert_eq!(read(&trace).sorted(), numbers);
}

#[test]
fn a_live_recording_is_read_while_it_grows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.data");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = TraceWriter::create(file, &info(), Compression::Zstd(1)).unwrap();
    let reading = {
        let path = path.clone();
        std::thread::spawn(move || {
            let mut seen = 0;
            let mut reads = 0;
            while seen < 200 * 100 {
                let trace = Trace::open(&path).unwrap();
                let found = read(&trace);
                let count = found.samples.len() as u64;
                assert!(!found.tells_loss(), "{:?}", found.damage);
                assert_eq!(found.sorted(), (0..count).collect::<Vec<_>>());
                assert_eq!(count % 100, 0, "whole flushes only");
                assert!(count >= seen);
                seen = count;
                reads += 1;
            }
            reads
        })
    };
    for round in 0..200 {
        let numbers: Vec<u64> = (round * 100..(round + 1) * 100).collect();
        push_round(&mut writer, round as usize, &numbers);
        writer.flush().unwrap();
    }
    let reads = reading.join().unwrap();
    assert!(reads > 0);
    writer.finish(&[]).unwrap();
}
