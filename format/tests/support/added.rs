//! Events that are added to the synthetic recording: tracepoints, as those of the bpf engine are.

use usdtrec_format::perf::{Attr, EventAttr, SampleType, TracepointField, TracepointFormat};
use usdtrec_format::trace::{Compression, NewEvents, PipeWriter, Trace, TraceInfo, TraceWriter};

use super::log::Log;
use super::{EVENTS, PID, attr, info, read, time};

/// Sample id of the first one; the others follow.
pub const FIRST_ID: u64 = 1000;
/// Tracepoint id of the first one.
const FIRST_FORMAT: u64 = 300;

/// The head with some added events.
pub fn info_with(count: usize) -> TraceInfo {
    let mut info = info();
    for number in 0..count {
        let name = format!("n{number}");
        info.events.push(EventAttr {
            attr: Attr {
                kind: Attr::TRACEPOINT,
                config: FIRST_FORMAT + number as u64,
                sample_type: SampleType(super::BASE_TYPE) | SampleType::RAW,
                config2: 0,
                sample_regs_user: 0,
                // After the 8 bytes that may have a record header instead of zeros.
                sample_max_stack: 127,
                ..attr(0)
            },
            name: format!("sdt_late:{name}"),
            ids: vec![FIRST_ID + number as u64],
        });
        info.tracepoints.push(TracepointFormat {
            system: "sdt_late".to_owned(),
            name: name.clone(),
            id: (FIRST_FORMAT as usize + number) as u16,
            fields: vec![TracepointField {
                declaration: "s32 arg1".to_owned(),
                offset: 8,
                size: 4,
                signed: true,
            }],
            print: "arg1=%d".to_owned(),
            print_arguments: vec!["REC->arg1".to_owned()],
        });
        let definitions = info.definitions.as_mut().unwrap();
        let mut probe = definitions.probes[0].clone();
        probe.event = format!("sdt_late:{name}");
        probe.provider = "late".to_owned();
        probe.name = name;
        // Something that zstd cannot make short.
        let random = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let random: Vec<String> = (0..8)
            .map(|turn| format!("{:x}", random.rotate_left(turn * 7).wrapping_mul(random)))
            .collect();
        probe.description = Some(random.concat());
        probe.sites[0].ids = vec![FIRST_ID + number as u64];
        definitions.probes.push(probe);
    }
    info
}

/// A sample of an added event, with the number as its argument.
pub fn added_sample(event: usize, number: u64, out: &mut Vec<u8>) {
    let words = [
        9 | 2 << 32 | 64 << 48,
        FIRST_ID + event as u64,
        0x5555_5555_4100,
        PID as u64 | (PID as u64) << 32,
        time(number),
        number % 2,
        // 12 bytes: the common fields, the argument.
        12 | (FIRST_FORMAT + event as u64) << 32,
        PID as u64 | number << 32,
    ];
    out.extend(words.into_iter().flat_map(u64::to_le_bytes));
}

/// The ids and numbers of all samples of a trace, in the order of numbers.
pub fn found(trace: &Trace) -> Vec<(u64, u64)> {
    let samples = read(trace).samples;
    let mut found: Vec<_> = samples.iter().map(|body| id_and_number(body)).collect();
    found.sort_unstable_by_key(|&(_, number)| number);
    found
}

/// The id and the number of a sample, from its body.
pub fn id_and_number(body: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(*body[at..].first_chunk().unwrap());
    (word(0), (word(24) - time(0)) / (time(1) - time(0)))
}

/// The id of sample `number` of a recording with some added events, that each round has: every other sample is of an added one.
pub fn expected_id(number: u64, added: usize) -> u64 {
    match number % 2 {
        1 if added > 0 => FIRST_ID + number / 2 % added as u64,
        _ => EVENTS[usize::from(number % 3 == 2)].1[(number % 2) as usize],
    }
}

/// Samples of a recording with some added events.
pub fn mixed_samples(numbers: std::ops::Range<u64>, added: usize) -> Vec<u8> {
    let mut records = Vec::new();
    for number in numbers {
        match expected_id(number, added) {
            id if id >= FIRST_ID => added_sample((id - FIRST_ID) as usize, number, &mut records),
            _ => super::sample(number, &mut records),
        }
    }
    records
}

/// Samples in a round.
pub const SAMPLES: u64 = 400;

/// The ids of the samples of a recording in rounds, each of which may add events.
pub fn expected(adding: &[usize], samples: u64) -> Vec<(u64, u64)> {
    let round = |number: u64| (number / SAMPLES) as usize;
    let id = |number| (expected_id(number, adding[round(number)]), number);
    (0..samples).map(id).collect()
}

/// A stream of rounds, the numbers of whose added events are given.
pub fn stream(adding: &[usize], compression: Compression) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = PipeWriter::create(&mut bytes, &info(), compression).unwrap();
    let mut now = 0;
    for (round, &added) in (0..).zip(adding) {
        if added != now {
            let new = NewEvents::after(writer.info(), &info_with(added));
            writer.add_events(new).unwrap();
            now = added;
        }
        writer.push(&mixed_samples(
            round * SAMPLES..(round + 1) * SAMPLES,
            added,
        ));
        writer.flush().unwrap();
    }
    writer.finish(&[]).unwrap();
    bytes
}

/// The same as a file.
pub fn file(adding: &[usize], compression: Compression) -> Vec<u8> {
    let log = Log::default();
    let mut writer = TraceWriter::create(log.clone(), &info(), compression).unwrap();
    let mut now = 0;
    for (round, &added) in (0..).zip(adding) {
        if added != now {
            let new = NewEvents::after(writer.info(), &info_with(added));
            writer.add_events(new).unwrap();
            now = added;
        }
        writer.push(&mixed_samples(
            round * SAMPLES..(round + 1) * SAMPLES,
            added,
        ));
        writer.flush().unwrap();
    }
    writer.finish(&[]).unwrap();
    log.image(log.steps(), 0)
}
