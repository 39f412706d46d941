//! The independent reader of the crate `linux-perf-data` finds in a trace what was written. That crate brings the C library of zstd with
//! it, which the tests of `usdtrec-format` do without.

#[path = "../format/tests/support/mod.rs"]
mod support;

use std::io::Cursor;

use linux_perf_data::linux_perf_event_reader::EventRecord;
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use usdtrec_format::trace::Compression;

use self::support::{rounds, time, trace_bytes};
use crate::common::test;

#[test]
fn another_reader_finds_the_same_samples() {
    for compression in [Compression::None, Compression::Zstd(1)] {
        for finish in [false, true] {
            let bytes = trace_bytes(&rounds(10, 2000), compression, finish);
            let PerfFileReader {
                mut perf_file,
                mut record_iter,
            } = PerfFileReader::parse_file(Cursor::new(&bytes)).unwrap();
            assert_eq!(perf_file.hostname().unwrap(), Some("db7"));
            assert_eq!(perf_file.event_attributes().len(), 3);
            assert_eq!(perf_file.event_attributes()[1].name(), Some("sdt_app:done"));
            let mut times = Vec::new();
            while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
                if let PerfFileRecord::EventRecord { record, .. } = record
                    && let EventRecord::Sample(sample) = record.parse().unwrap()
                {
                    times.push(sample.timestamp.unwrap());
                }
            }
            assert_eq!(times, (0..20_000).map(time).collect::<Vec<_>>());
        }
    }
}
