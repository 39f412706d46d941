//! Traces in pipes: what was written comes out, whole or cut, however the bytes arrive.

use std::io::{self, Read, Write};

use crate::support::{info, open, pipe_bytes, read, round_records, rounds};
use usdtrec_format::perf::{RecordType, Records};
use usdtrec_format::trace::{Compression, PipeReader, PipeWriter, WriteError};

const BOTH: [Compression; 2] = [Compression::None, Compression::Zstd(1)];

/// Bytes that arrive in pieces of one size.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = self.1.min(out.len());
        self.0.read(&mut out[..len])
    }
}

/// Numbers of the samples in a stream, the ends of rounds, and what was said to be wrong.
fn read_pipe(bytes: &[u8], piece: usize) -> (Vec<u64>, usize, Vec<String>) {
    let mut reader = PipeReader::open(Trickle(bytes, piece)).unwrap();
    assert_eq!(reader.info().events, info().events);
    assert_eq!(reader.info().definitions, info().definitions);
    assert_eq!(reader.info().hostname, info().hostname);
    let (mut numbers, mut ends, mut records) = (Vec::new(), 0, Vec::new());
    while reader.read(&mut records).unwrap() {
        for record in Records::new(&records) {
            match record.kind {
                RecordType::SAMPLE => {
                    let word = record.body[48..].first_chunk().unwrap();
                    numbers.push(u64::from_le_bytes(*word));
                }
                RecordType::FINISHED_ROUND => ends += 1,
                _ => {}
            }
        }
        records.clear();
    }
    let damage = reader.take_damage();
    let messages = damage.iter().map(|damage| damage.kind.to_string());
    (numbers, ends, messages.collect())
}

#[test]
fn what_was_written_comes_out() {
    for compression in BOTH {
        let bytes = pipe_bytes(&rounds(7, 500), compression, true);
        for piece in [1, 7, 4096, usize::MAX] {
            let (mut numbers, ends, damage) = read_pipe(&bytes, piece);
            numbers.sort_unstable();
            assert_eq!(numbers, (0..3500).collect::<Vec<_>>(), "pieces of {piece}");
            // A last one settles the round before it.
            assert_eq!(ends, 8, "pieces of {piece}");
            assert_eq!(damage, [""; 0]);
        }
        // The same stream, stored in a file.
        let trace = open(&bytes).unwrap();
        let found = read(&trace);
        assert_eq!(found.sorted(), (0..3500).collect::<Vec<_>>());
        assert_eq!(found.damage, []);
        assert_eq!(trace.info().events, info().events);
        assert_eq!(trace.info().definitions, info().definitions);
        assert!(trace.is_finished());
    }
}

/// A reader in another thread has a round when it was flushed, and not only when the pipe is closed.
#[test]
fn a_round_arrives_when_it_is_flushed() {
    let (input, output) = io::pipe().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        let mut reader = PipeReader::open(input).unwrap();
        let mut records = Vec::new();
        while reader.read(&mut records).unwrap() {
            let samples = Records::new(&records).filter(|record| record.kind == RecordType::SAMPLE);
            sender.send(samples.count()).unwrap();
            records.clear();
        }
    });
    let mut writer = PipeWriter::create(output, &info(), Compression::Zstd(1)).unwrap();
    for (round, numbers) in rounds(5, 100).iter().enumerate() {
        writer.push(&round_records(round, numbers));
        writer.flush().unwrap();
        let mut arrived = 0;
        while arrived < 100 {
            arrived += receiver
                .recv_timeout(std::time::Duration::from_secs(60))
                .unwrap();
        }
        assert_eq!(arrived, 100);
    }
    assert!(writer.is_unsettled());
    writer.flush().unwrap();
    assert!(!writer.is_unsettled());
    writer.finish(&[]).unwrap();
    reading.join().unwrap();
}

#[test]
fn a_cut_stream_gives_what_arrived_and_says_so() {
    for compression in BOTH {
        let bytes = pipe_bytes(&rounds(3, 200), compression, false);
        let whole = read_pipe(&bytes, usize::MAX).0;
        let mut cuts = 0;
        for len in (0..bytes.len()).step_by(61) {
            let Ok(mut reader) = PipeReader::open(&bytes[..len]) else {
                assert!(len < 16, "{len} bytes");
                continue;
            };
            let mut records = Vec::new();
            while reader.read(&mut records).unwrap() {}
            let samples = Records::new(&records).filter(|record| record.kind == RecordType::SAMPLE);
            assert!(samples.count() <= whole.len());
            let damage = reader.take_damage();
            cuts += usize::from(
                damage
                    .iter()
                    .any(|damage| damage.to_string().contains("ends inside")),
            );
        }
        assert!(cuts > 20, "{cuts}");
    }
}

#[test]
fn flips_are_survived_and_huge_claims_are_not_believed() {
    let bytes = pipe_bytes(&rounds(2, 50), Compression::Zstd(1), true);
    for at in (0..bytes.len()).step_by(5) {
        let mut odd = bytes.clone();
        odd[at] ^= 0xff;
        if let Ok(mut reader) = PipeReader::open(&odd[..]) {
            let mut records = Vec::new();
            while reader.read(&mut records).unwrap() {}
            assert!(records.len() < 1 << 20);
        }
    }
}

#[test]
fn what_is_no_stream_is_refused() {
    for (bytes, what) in [
        (&b""[..], "the end of the stream"),
        (b"hello, world, hello", "hello"),
        (b"PERFILE2\x68\0\0\0\0\0\0\0", "104"),
    ] {
        let error = PipeReader::open(bytes).err().unwrap().to_string();
        assert!(error.contains(what), "{error}");
    }
}

/// A pipe that is closed after some bytes.
struct Closed(usize);

impl Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.0);
        self.0 -= len;
        if len == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn after_a_failed_write_nothing_is_written() {
    let mut writer = PipeWriter::create(Closed(20_000), &info(), Compression::None).unwrap();
    writer.push(&round_records(0, &rounds(1, 1000)[0]));
    let error = writer.flush().unwrap_err();
    assert!(matches!(error, WriteError::Io { .. }), "{error}");
    assert!(writer.flush().is_err());
    assert!(writer.finish(&[]).is_err());
}
