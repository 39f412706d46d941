//! The trace reader: a whole file.

use usdtrec_format::perf::{
    Comm, Lost, LostSamples, Mmap, RawRecord, RecordType, Records, Sample, SampleLayout,
    SampleType, Task,
};
use usdtrec_format::trace::{BlockReader, Damage, Trace};
use usdtrec_format::{Definitions, parse_operands};

use super::file::Scratch;
use super::{repair, tracing_data};

/// Opens the file and reads everything in it.
pub fn run(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    repair::checksums(&mut bytes);
    let scratch = Scratch::new(&bytes);
    match Trace::from_file(scratch.open()) {
        Ok(trace) => read(&trace),
        Err(error) => plain(&error.to_string()),
    }
}

fn read(trace: &Trace) {
    trace.damage().iter().for_each(check_damage);
    let mut end = 0;
    for block in trace.blocks() {
        assert!(
            block.offset >= end && block.len != 0,
            "{block:?} behind {end}"
        );
        end = block.end();
    }
    assert!(end <= trace.file_len());
    let layouts: Vec<SampleLayout> = trace
        .info()
        .events
        .iter()
        .take(8)
        .map(|event| SampleLayout::new(&event.attr))
        .collect();
    let id_type = trace
        .info()
        .events
        .first()
        .map_or(SampleType::default(), |event| event.attr.id_type());
    let mut reader = BlockReader::new();
    for block in trace.blocks() {
        match reader.read(trace, block) {
            Ok(records) => {
                let mut walk = Records::new(records);
                walk.by_ref().for_each(|record| {
                    one(&record, id_type);
                    for layout in &layouts {
                        sample(layout.parse(record.body), record.body);
                    }
                });
                assert_eq!(walk.offset(), records.len(), "whole records only");
            }
            Err(damage) => check_damage(&damage),
        }
        reader.cut().into_iter().for_each(check_damage);
    }
    if let Some(time) = trace.time() {
        assert!(time.last != 0 || time.first == 0);
    }
    for format in &trace.info().tracepoints {
        tracing_data::check(format);
    }
    trace.info().definitions.iter().for_each(definitions);
}

/// Takes a record apart as everything that it may be.
pub(crate) fn one(record: &RawRecord<'_>, id_type: SampleType) {
    if let Some(comm) = Comm::parse(record, id_type) {
        assert!(!comm.name.contains(&0));
    }
    if let Some(map) = Mmap::parse(record, id_type) {
        assert!(!map.path.contains(&0));
    }
    let kinds = [
        Task::parse_fork(record, id_type).is_some(),
        Task::parse_exit(record, id_type).is_some(),
        Lost::parse(record, id_type).is_some(),
        LostSamples::parse(record, id_type).is_some(),
    ];
    let most = usize::from(record.kind != RecordType::SAMPLE);
    assert!(kinds.into_iter().filter(|kind| *kind).count() <= most);
}

fn sample(sample: Option<Sample<'_>>, body: &[u8]) {
    if let Some(sample) = sample {
        let parts = [sample.callchain, sample.raw, sample.regs, sample.stack];
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        assert!(bytes <= body.len());
    }
}

fn definitions(definitions: &Definitions) {
    for probe in &definitions.probes {
        let arch = definitions.files.get(probe.file).and_then(|file| file.arch);
        for site in &probe.sites {
            assert!(parse_operands(&site.site.args, arch).len() <= site.site.args.len());
        }
    }
}

fn check_damage(damage: &Damage) {
    let message = damage.kind.to_string();
    assert!(!message.is_empty());
    plain(&message);
}

/// Messages are for people, and what stands in a file must not reach a terminal as it is.
fn plain(message: &str) {
    assert!(!message.contains(char::is_control), "{message:?}");
}
