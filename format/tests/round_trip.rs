//! Writing a trace and reading it again.

use crate::support::log::Log;
use crate::support::{
    LOSSES, info, open, process, push_round, read, rounds, sample, sample_at, time, trace_bytes,
};
use usdtrec_format::perf::SampleLayout;
use usdtrec_format::trace::{BlockKind, Compression, TimeRange, TraceWriter, WriteError};
use usdtrec_testing::SplitMix64;

const BOTH: [Compression; 2] = [Compression::None, Compression::Zstd(1)];

#[test]
fn everything_that_was_pushed_is_read() {
    for compression in BOTH {
        for finish in [false, true] {
            let bytes = trace_bytes(&rounds(10, 5000), compression, finish);
            let trace = open(&bytes).unwrap();
            let found = read(&trace);
            assert_eq!(found.damage, []);
            assert_eq!(found.sorted(), (0..50_000).collect::<Vec<_>>());
            assert_eq!(found.metadata, 4);
            assert_eq!(trace.is_finished(), finish);
            assert_eq!(trace.losses(), finish.then_some(LOSSES.as_slice()));
            assert_eq!(trace.time(), Some(TimeRange::new(time(0), time(49_999))));
            assert_eq!(trace.file_len(), bytes.len() as u64);
        }
    }
}

#[test]
fn the_head_is_read_as_written() {
    for compression in BOTH {
        let trace = open(&trace_bytes(&rounds(1, 10), compression, true)).unwrap();
        let (wrote, read) = (info(), trace.info());
        assert_eq!(read.hostname, wrote.hostname);
        assert_eq!(read.os_release, wrote.os_release);
        assert_eq!(read.machine, wrote.machine);
        assert_eq!(read.version, wrote.version);
        assert_eq!(read.cpu_description, wrote.cpu_description);
        assert_eq!(read.total_memory_kb, wrote.total_memory_kb);
        assert_eq!(read.cpus_available, wrote.cpus_available);
        assert_eq!(read.cpus_online, wrote.cpus_online);
        assert_eq!(read.command, wrote.command);
        assert_eq!(read.clock, wrote.clock);
        assert_eq!(read.pmus, wrote.pmus);
        assert_eq!(read.events, wrote.events);
        assert_eq!(read.definitions, wrote.definitions);
    }
}

#[test]
fn blocks_tell_what_they_hold_without_being_read() {
    let trace = open(&trace_bytes(&rounds(3, 20_000), Compression::Zstd(1), true)).unwrap();
    let time_at = SampleLayout::new(&info().events[0].attr)
        .time_offset()
        .unwrap();
    let mut reader = usdtrec_format::trace::BlockReader::new();
    assert!(trace.blocks().len() > 10, "several chunks a round");
    for block in trace.blocks() {
        assert_eq!(block.kind, BlockKind::Chunk);
        let records = reader.read(&trace, block).unwrap();
        assert_eq!(records.len(), block.raw_len as usize);
        let times: Vec<u64> = usdtrec_format::perf::Records::new(records)
            .filter(|record| record.kind.0 == 9)
            .map(|record| u64::from_le_bytes(*record.body[time_at..].first_chunk().unwrap()))
            .collect();
        assert_eq!(block.samples, Some(times.len() as u32));
        assert_eq!(block.metadata, times.is_empty());
        let span = times.iter().min().copied().zip(times.iter().max().copied());
        assert_eq!(
            block.time,
            span.map(|(first, last)| TimeRange::new(first, last))
        );
    }
}

#[test]
fn metadata_stands_before_the_samples_of_its_round() {
    let mut records = Vec::new();
    sample(0, &mut records);
    process(&mut records);
    sample(1, &mut records);
    let log = Log::default();
    let mut writer = TraceWriter::create(log.clone(), &info(), Compression::Zstd(1)).unwrap();
    writer.push(&records);
    writer.flush().unwrap();
    let trace = open(&log.image(log.steps(), 0)).unwrap();
    let kinds: Vec<bool> = trace.blocks().iter().map(|block| block.metadata).collect();
    assert_eq!(kinds, [true, false]);
    assert_eq!(read(&trace).sorted(), [0, 1]);
}

/// Register values that no compressor makes smaller.
fn noise(number: u64, out: &mut Vec<u8>) {
    let start = out.len();
    sample(number, out);
    let mut random = SplitMix64(number);
    for byte in &mut out[start + 64..] {
        *byte = random.number() as u8;
    }
}

/// A sample with much stack, of what compresses badly.
fn large(number: u64, stack: usize, out: &mut Vec<u8>) {
    let start = out.len();
    sample(number, out);
    let mut random = SplitMix64(number);
    out.extend((0..stack).map(|_| random.number() as u8));
    let size = (out.len() - start) as u16;
    out[start + 6..start + 8].copy_from_slice(&size.to_le_bytes());
}

#[test]
fn what_does_not_compress_is_kept_whole() {
    for stack in [0, 8, 4096, 60_000, 65_432] {
        let count = if stack > 1000 { 300 } else { 30_000 };
        let mut records = Vec::new();
        for number in 0..count {
            match stack {
                0 => noise(number, &mut records),
                _ => large(number, stack, &mut records),
            }
        }
        let log = Log::default();
        let mut writer = TraceWriter::create(log.clone(), &info(), Compression::Zstd(1)).unwrap();
        writer.push(&records);
        writer.flush().unwrap();
        let totals = writer.totals();
        assert_eq!(totals.samples, count);
        assert_eq!(totals.raw_bytes, records.len() as u64);
        let trace = open(&log.image(log.steps(), 0)).unwrap();
        let found = read(&trace);
        assert_eq!(found.damage, [], "stack {stack}");
        let bodies: Vec<u8> = found.samples.concat();
        assert_eq!(bodies.len() as u64 + 8 * count, records.len() as u64);
        let expected: Vec<u8> = usdtrec_format::perf::Records::new(&records)
            .flat_map(|record| record.body.to_vec())
            .collect();
        assert!(bodies == expected, "stack {stack}");
    }
}

#[test]
fn many_flushes_make_pages_and_all_blocks_are_found() {
    for compression in BOTH {
        for finish in [false, true] {
            let trace = open(&trace_bytes(&rounds(2600, 2), compression, finish)).unwrap();
            assert_eq!(trace.blocks().len(), 2601);
            let found = read(&trace);
            assert_eq!(found.damage, []);
            assert_eq!(found.numbers(), (0..5200).collect::<Vec<_>>());
        }
    }
}

#[test]
fn one_flush_of_many_chunks_is_found() {
    let mut writer_rounds = rounds(1, 1);
    writer_rounds.push((1..400_000).collect());
    let trace = open(&trace_bytes(&writer_rounds, Compression::None, true)).unwrap();
    let found = read(&trace);
    assert_eq!(found.sorted().len(), 400_000);
    assert_eq!(found.damage, []);
}

#[test]
fn chunks_may_overlap_in_time_and_times_may_be_zero() {
    let mut records = Vec::new();
    for number in 0..20_000 {
        let backwards = 30_000 - number;
        sample_at(
            number,
            if number % 100 == 0 { 0 } else { backwards },
            &mut records,
        );
    }
    let log = Log::default();
    let mut writer = TraceWriter::create(log.clone(), &info(), Compression::Zstd(1)).unwrap();
    writer.push(&records);
    writer.flush().unwrap();
    writer.finish(&[]).unwrap();
    let trace = open(&log.image(log.steps(), 0)).unwrap();
    assert_eq!(trace.time(), Some(TimeRange::new(10_001, 29_999)));
    assert_eq!(read(&trace).numbers(), (0..20_000).collect::<Vec<_>>());
}

#[test]
fn an_empty_trace_is_a_trace() {
    for compression in BOTH {
        for finish in [false, true] {
            let trace = open(&trace_bytes(&[], compression, finish)).unwrap();
            assert_eq!(trace.blocks(), []);
            assert_eq!(trace.damage(), []);
            assert_eq!(trace.is_finished(), finish);
            assert_eq!(trace.time(), None);
            assert_eq!(trace.info().events.len(), 3);
        }
    }
}

#[test]
fn a_head_beyond_64_kib_moves_the_data() {
    let mut large = info();
    for event in &mut large.events {
        event.ids = (0..20_000).map(|id| event.ids[0] * 100_000 + id).collect();
    }
    let log = Log::default();
    let mut writer = TraceWriter::create(log.clone(), &large, Compression::Zstd(1)).unwrap();
    push_round(&mut writer, 0, &[0, 1, 2]);
    writer.finish(&[]).unwrap();
    let trace = open(&log.image(log.steps(), 0)).unwrap();
    assert_eq!(trace.info().events, large.events);
    assert!(trace.blocks()[0].offset > 65536 * 14);
    assert_eq!(read(&trace).numbers(), [0, 2, 1]);
}

#[test]
fn definitions_larger_than_a_record_are_carried() {
    let mut large = info();
    let definitions = large.definitions.as_mut().unwrap();
    let mut random = SplitMix64(1);
    definitions.probes[0].sites[0].ids = (0..50_000).map(|_| random.number()).collect();
    let log = Log::default();
    let writer = TraceWriter::create(log.clone(), &large, Compression::Zstd(1)).unwrap();
    writer.finish(&[]).unwrap();
    let mut bytes = log.image(log.steps(), 0);
    assert_eq!(open(&bytes).unwrap().info().definitions, large.definitions);
    // The copy in the VERSION section, made unreadable: the one at the start of the data is taken.
    let at = bytes
        .windows(8)
        .position(|part| part == b"USDTDEFS")
        .unwrap();
    bytes[at + 5000] ^= 1;
    let trace = open(&bytes).unwrap();
    assert_eq!(trace.info().definitions, large.definitions);
    assert!(!trace.damage()[0].loses_records(), "{:?}", trace.damage());
}

#[test]
fn bytes_that_are_no_records_cost_only_themselves() {
    let mut good = Vec::new();
    sample(0, &mut good);
    let no_record: [&[u8]; 6] = [
        &[9, 0, 0, 0, 2, 0, 0, 0],
        &[9, 0, 0, 0, 2, 0, 12, 0, 1, 2, 3, 4],
        &[9, 0, 0, 0, 2, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[3, 0, 0, 0, 2, 0, 64, 0],
        &[3, 0, 0, 0],
        &[0],
    ];
    for bad in no_record {
        let log = Log::default();
        let mut writer = TraceWriter::create(log.clone(), &info(), Compression::None).unwrap();
        writer.push(&[&good, bad].concat());
        writer.push(&good);
        let error = writer.flush().unwrap_err();
        assert!(matches!(error, WriteError::Record(_)), "{error}");
        writer.flush().unwrap();
        writer.finish(&[]).unwrap();
        let trace = open(&log.image(log.steps(), 0)).unwrap();
        assert_eq!(read(&trace).numbers(), [0, 0]);
    }
}

#[test]
fn attrs_that_do_not_fit_together_are_refused() {
    let create = |change: &dyn Fn(&mut usdtrec_format::perf::Attr)| {
        let mut info = info();
        change(&mut info.events[1].attr);
        TraceWriter::create(Log::default(), &info, Compression::None)
    };
    assert!(create(&|_| ()).is_ok());
    for change in [
        (|attr| attr.sample_type.0 &= !4) as fn(&mut usdtrec_format::perf::Attr),
        |attr| attr.sample_type.0 |= 1 << 9,
        |attr| attr.flags &= !(1 << 18),
        |attr| attr.read_format = 0,
    ] {
        let error = create(&change).unwrap_err();
        assert!(error.to_string().contains("sdt_app:done"), "{error}");
    }
}
