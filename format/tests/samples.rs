//! Files that other programs wrote, in `testdata/traces`.

use std::path::PathBuf;

use crate::support;

use usdtrec_format::perf::{Comm, Mmap, MmapFile, RecordType, Records, SampleLayout, Task};
use usdtrec_format::trace::{BlockKind, BlockReader, Trace};

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../testdata/traces", name]
        .iter()
        .collect()
}

/// File, events, samples, and what the events are called.
const FILES: [(&str, usize, &[&str]); 12] = [
    ("stock-6.1.data", 80, &["sdt_tick:loop1", "sdt_tick:loop2"]),
    (
        "stock-6.1-z.data",
        800,
        &["sdt_tick:loop1", "sdt_tick:loop2", "dummy:HG"],
    ),
    ("stock-6.1-killed-z.data", 0, &["", ""]),
    ("stock-6.1-pipe.data", 40, &["sdt_tick:loop1"]),
    ("stock-7.2.data", 80, &["sdt_tick:loop1", "sdt_tick:loop2"]),
    (
        "stock-7.2-z.data",
        800,
        &["sdt_tick:loop1", "sdt_tick:loop2", "dummy:u"],
    ),
    (
        "stock-7.2-regs-stack.data",
        40,
        &["sdt_tick:loop1", "sdt_tick:loop2"],
    ),
    ("tracepoint.data", 20, &["sdt_hot:req"]),
    ("tracepoint-regs.data", 20, &["sdt_hot:req"]),
    ("mixed.data", 40, &["sdt_hot:req", "sdt_tick:loop1"]),
    ("chunks.data", 20, &["sdt_hot:req"]),
    ("chunks-killed.data", 12, &["sdt_hot:req"]),
];

#[test]
fn all_samples_are_found() {
    for (name, samples, events) in FILES {
        let trace = Trace::open(&path(name)).unwrap();
        let names: Vec<&str> = trace
            .info()
            .events
            .iter()
            .map(|event| event.name.as_str())
            .collect();
        assert_eq!(names, events, "{name}");
        let found = support::read(&trace);
        assert_eq!(found.samples.len(), samples, "{name}");
        let told: usize = trace
            .blocks()
            .iter()
            .filter_map(|block| block.samples)
            .sum::<u32>() as usize;
        if !trace.is_serial() {
            assert_eq!(told, samples, "{name}: without reading");
        }
        let killed = name.starts_with("stock") && name.contains("killed");
        assert_eq!(found.tells_loss(), killed, "{name}: {:?}", found.damage);
    }
}

#[test]
fn samples_come_apart_by_the_layout_of_their_event() {
    for (name, ..) in FILES {
        let trace = Trace::open(&path(name)).unwrap();
        let layouts: Vec<SampleLayout> = trace
            .info()
            .events
            .iter()
            .map(|event| SampleLayout::new(&event.attr))
            .collect();
        let mut reader = BlockReader::new();
        let mut times = Vec::new();
        for block in trace.blocks() {
            let records = Records::new(reader.read(&trace, block).unwrap());
            for record in records.filter(|record| record.kind == RecordType::SAMPLE) {
                // All events of a file sample their id, if at all, at the same place.
                let id = layouts[0].parse(record.body).unwrap().id;
                let mut events = trace.info().events.iter();
                let event = events.position(|event| event.ids.contains(&id));
                let event = event.unwrap_or_else(|| panic!("{name}: id {id} is of no event"));
                let sample = layouts[event].parse(record.body).unwrap();
                assert!(
                    sample.pid > 0 && sample.cpu < 2 && sample.time > 0,
                    "{name}"
                );
                times.push(sample.time);
            }
        }
        if let Some(range) = trace.time() {
            assert!(times.iter().all(|time| range.contains(*time)), "{name}");
        }
    }
}

#[test]
fn registers_and_stack_are_there() {
    let trace = Trace::open(&path("stock-7.2-regs-stack.data")).unwrap();
    let mut reader = BlockReader::new();
    let layout = SampleLayout::new(&trace.info().events[0].attr);
    for block in trace.blocks() {
        for record in Records::new(reader.read(&trace, block).unwrap()) {
            if record.kind == RecordType::SAMPLE {
                let sample = layout.parse(record.body).unwrap();
                let mask = trace.info().events[0].attr.sample_regs_user;
                assert_eq!(sample.regs_abi, 2);
                assert_eq!(sample.regs.len(), 8 * mask.count_ones() as usize);
                assert!(!sample.stack.is_empty());
                assert!(!sample.raw.is_empty());
            }
        }
    }
}

#[test]
fn processes_are_named_and_mapped() {
    for (name, ..) in FILES.iter().filter(|file| file.0.starts_with("stock-6.1")) {
        let trace = Trace::open(&path(name)).unwrap();
        let id_type = trace.info().events[0].attr.id_type();
        let mut reader = BlockReader::new();
        let (mut comm, mut mapped, mut exits) = (0, 0, 0);
        for block in trace.blocks() {
            for record in Records::new(reader.read(&trace, block).unwrap()) {
                if let Some(record) = Comm::parse(&record, id_type) {
                    comm += usize::from(record.name == b"sdt-tick");
                    assert!(record.tid > 0);
                }
                if let Some(map) = Mmap::parse(&record, id_type) {
                    mapped += usize::from(map.path.ends_with(b"/sdt-tick"));
                    assert!(!matches!(map.file, MmapFile::BuildId(_)));
                    assert!(map.len > 0);
                }
                exits += usize::from(Task::parse_exit(&record, id_type).is_some());
            }
        }
        if !name.contains("killed") {
            assert!(
                comm > 0 && mapped > 0 && exits > 0,
                "{name}: {comm} {mapped} {exits}"
            );
        }
    }
}

/// A serial stream may be asked for its blocks in any order.
#[test]
fn a_stream_is_read_in_any_order() {
    let trace = Trace::open(&path("stock-6.1-z.data")).unwrap();
    let streams: Vec<_> = trace
        .blocks()
        .iter()
        .filter(|block| block.kind == BlockKind::Stream)
        .collect();
    assert!(streams.len() > 1);
    let mut reader = BlockReader::new();
    let forwards: Vec<Vec<u8>> = streams
        .iter()
        .map(|block| reader.read(&trace, block).unwrap().to_vec())
        .collect();
    for (block, expected) in streams.iter().zip(&forwards).rev() {
        assert_eq!(reader.read(&trace, block).unwrap(), expected);
        assert_eq!(reader.read(&trace, block).unwrap(), expected);
        assert_eq!(BlockReader::new().read(&trace, block).unwrap(), expected);
    }
}

/// As damage in a stream costs all that is behind it, and nothing before it.
#[test]
fn a_stream_is_read_up_to_its_damage() {
    let bytes = std::fs::read(path("stock-6.1-z.data")).unwrap();
    let trace = support::open(&bytes).unwrap();
    let all = support::read(&trace);
    let last = *trace.blocks().last().unwrap();
    for at in (last.offset + 8..last.end()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at as usize] ^= 0xff;
        let found = support::read(&support::open(&damaged).unwrap());
        assert!(found.metadata + found.samples.len() > 0);
        assert!(found.samples.len() <= all.samples.len());
        let cut = (at - 500).max(last.offset);
        let found = support::read(&support::open(&bytes[..cut as usize]).unwrap());
        assert!(found.samples.len() <= all.samples.len());
        assert!(found.tells_loss());
    }
}

#[test]
fn every_prefix_of_every_file_is_read_without_panic() {
    for (name, samples, _) in FILES {
        let bytes = std::fs::read(path(name)).unwrap();
        let step = (bytes.len() / 500).max(1);
        let mut most = 0;
        for len in (0..bytes.len()).step_by(step) {
            if let Ok(trace) = support::open(&bytes[..len]) {
                most = most.max(support::read(&trace).samples.len());
            }
        }
        assert!(most <= samples, "{name}");
        assert!(samples == 0 || most > 0, "{name}");
    }
}
