//! Stock files and streams with data of a processor's trace, which follow a record and are no records.

use std::io::{self, Read};
use std::path::Path;

use crate::support;
use usdtrec_format::perf::{RecordType, Records};
use usdtrec_format::trace::PipeReader;

const HEADER: usize = 8;
const DATA: usize = 40;

fn stock(name: &str) -> Vec<u8> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/traces");
    std::fs::read(traces.join(name)).unwrap()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// An AUXTRACE record and its data, which look like records without size.
fn auxiliary(len: usize) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend(71_u32.to_le_bytes());
    record.extend([0, 0, 48, 0]);
    record.extend((len as u64).to_le_bytes());
    record.extend([0; 32]);
    record.extend(vec![0; len]);
    record
}

/// A file with `added` after every second of its records, of which `stride` says how many.
fn with_auxiliary(file: &[u8], len: usize, stride: usize) -> Vec<u8> {
    let (start, size) = (u64_at(file, DATA) as usize, u64_at(file, DATA + 8) as usize);
    let mut out = file[..start].to_vec();
    for (number, record) in Records::new(&file[start..start + size]).enumerate() {
        if number % stride == 1 {
            out.extend(auxiliary(len));
        }
        record.put(&mut out);
    }
    let added = (out.len() - start - size) as u64;
    out.splice(DATA + 8..DATA + 16, (size as u64 + added).to_le_bytes());
    let table = out.len();
    out.extend(&file[start + size..]);
    let features: u32 = file[72..104].iter().map(|byte| byte.count_ones()).sum();
    for at in (table..).step_by(16).take(features as usize) {
        let moved = u64_at(&out, at) + added;
        out.splice(at..at + 8, moved.to_le_bytes());
    }
    out
}

#[test]
fn stock_files_are_read_whole() {
    for name in [
        "stock-6.1.data",
        "stock-7.2.data",
        "stock-6.1-z.data",
        "stock-7.2-z.data",
    ] {
        let file = stock(name);
        let plain = support::open(&file).unwrap();
        let expected = support::read(&plain);
        for (len, stride) in [(0, 2), (4096, 10), (3 << 20, 100)] {
            let trace = support::open(&with_auxiliary(&file, len, stride)).unwrap();
            let found = support::read(&trace);
            assert_eq!(found.samples, expected.samples, "{name} {len}");
            assert_eq!(trace.info().hostname, plain.info().hostname, "{name} {len}");
            assert!(
                trace.damage().is_empty(),
                "{name} {len}: {:?}",
                trace.damage()
            );
            assert!(trace.is_finished(), "{name} {len}");
        }
    }
}

#[test]
fn data_that_are_cut_are_damage() {
    let mut file = stock("stock-6.1.data");
    let whole = support::read(&support::open(&file).unwrap()).samples.len();
    let (start, size) = (
        u64_at(&file, DATA) as usize,
        u64_at(&file, DATA + 8) as usize,
    );
    file.truncate(start + size);
    for claimed in [5000, u64::MAX] {
        let mut record = auxiliary(4096);
        record.splice(HEADER..HEADER + 8, claimed.to_le_bytes());
        let mut cut = file.clone();
        cut.extend(record);
        cut.splice(DATA + 8..DATA + 16, 0_u64.to_le_bytes());
        let trace = support::open(&cut).unwrap();
        assert_eq!(support::read(&trace).samples.len(), whole, "{claimed}");
        assert!(!trace.damage().is_empty(), "{claimed}");
    }
}

#[test]
fn streams_are_read_whole() {
    let stream = stock("stock-6.1-pipe.data");
    let samples = |bytes: &[u8]| {
        let mut reader = PipeReader::open(bytes).unwrap();
        let mut records = Vec::new();
        while reader.read(&mut records).unwrap() {}
        let count = Records::new(&records)
            .filter(|record| record.kind == RecordType::SAMPLE)
            .count();
        (count, reader.take_damage().len())
    };
    let (expected, _) = samples(&stream);
    for len in [0, 4096, 3 << 20] {
        let at = offset_of_record(&stream, 20);
        let mut with = stream.clone();
        with.splice(at..at, auxiliary(len));
        assert_eq!(samples(&with), (expected, 0), "{len}");
        let trace = support::open(&with).unwrap();
        assert_eq!(trace.damage().len(), 0, "{len}: {:?}", trace.damage());
    }
    let mut cut = stream.clone();
    cut.extend(&auxiliary(4096)[..4000]);
    assert_eq!(samples(&cut), (expected, 1));
}

/// Where a record of a stream begins, by its number among those of the kernel.
fn offset_of_record(stream: &[u8], number: usize) -> usize {
    let mut reader = PipeReader::open(OneByte(stream)).unwrap();
    let mut records = Vec::new();
    for _ in 0..number {
        assert!(reader.read(&mut records).unwrap());
    }
    reader.offset() as usize
}

/// A stream that arrives byte by byte.
struct OneByte<'a>(&'a [u8]);

impl Read for OneByte<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(1);
        self.0.read(&mut out[..len])
    }
}
