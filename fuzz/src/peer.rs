//! Ours beside another reader of perf.data, that of the crate `linux-perf-data`: where both take a file without a
//! complaint, they find the same samples.

use std::io::Cursor;
use std::panic::{self, AssertUnwindSafe};

use linux_perf_data::linux_perf_event_reader::RecordType as TheirType;
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use usdtrec_format::perf::{RecordType, Records, SampleLayout, SampleType};
use usdtrec_format::trace::{BlockReader, Trace};

use super::file::Scratch;
use super::repair;

/// Reads the file with both and compares the times of the samples.
pub fn run(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    repair::checksums(&mut bytes);
    let Some(ours) = ours(&bytes) else {
        return;
    };
    if !claims_are_plausible(&bytes) {
        return;
    }
    let Some(theirs) = theirs(&bytes) else {
        return;
    };
    // The other reader believes `EVENT_DESC` where that and the attrs differ, and ends without a word at some records of
    // a stream.
    let gave_up = is_pipe(&bytes) && theirs.times.is_empty();
    if ours.layouts == theirs.layouts && !gave_up {
        assert_eq!(ours.times, theirs.times);
    }
}

/// What a reader found.
struct Found {
    /// `sample_type` and flags of each event.
    layouts: Vec<(u64, u64)>,
    /// Times of the samples in ascending order.
    times: Vec<u64>,
}

/// `None` if anything is wrong with the file.
fn ours(bytes: &[u8]) -> Option<Found> {
    let scratch = Scratch::new(bytes);
    let trace = Trace::from_file(scratch.open()).ok()?;
    let attrs = || trace.info().events.iter().map(|event| &event.attr);
    // Otherwise where the time stands depends on the event.
    let layout = SampleLayout::new(attrs().next()?);
    let same = attrs().all(|attr| SampleLayout::new(attr).time_offset() == layout.time_offset());
    let sound = same
        && trace.damage().is_empty()
        && attrs().all(|attr| attr.sample_type.has(SampleType::TIME));
    let offset = layout.time_offset().filter(|_| sound)?;
    let mut times = Vec::new();
    let mut reader = BlockReader::new();
    for block in trace.blocks() {
        let records = Records::new(reader.read(&trace, block).ok()?);
        for record in records.filter(|record| record.kind == RecordType::SAMPLE) {
            times.push(u64::from_le_bytes(
                *record.body.get(offset..)?.first_chunk()?,
            ));
        }
        if reader.cut().is_some() {
            return None;
        }
    }
    times.sort_unstable();
    Some(Found {
        layouts: attrs()
            .map(|attr| (attr.sample_type.0, attr.flags))
            .collect(),
        times,
    })
}

/// Whether the header is that of a stream: 16 bytes, low byte first.
fn is_pipe(bytes: &[u8]) -> bool {
    bytes.get(8) == Some(&16)
}

/// As [`ours`], by the other reader.
fn theirs(bytes: &[u8]) -> Option<Found> {
    quietly(|| {
        if is_pipe(bytes) {
            found(PerfFileReader::parse_pipe(Cursor::new(bytes)).ok()?)
        } else {
            found(PerfFileReader::parse_file(Cursor::new(bytes)).ok()?)
        }
    })
}

fn found<R: std::io::Read>(reader: PerfFileReader<R>) -> Option<Found> {
    let PerfFileReader {
        mut perf_file,
        mut record_iter,
    } = reader;
    let mut times = Vec::new();
    while let Some(record) = record_iter.next_record(&mut perf_file).ok()? {
        if let PerfFileRecord::EventRecord { record, .. } = record
            && record.record_type == TheirType::SAMPLE
        {
            times.push(record.timestamp()?);
        }
    }
    times.sort_unstable();
    let attrs = perf_file.event_attributes().iter().map(|event| &event.attr);
    Some(Found {
        layouts: attrs
            .map(|attr| (attr.sample_format.bits(), attr.flags.bits()))
            .collect(),
        times,
    })
}

/// Whether the sections of the header and of the feature table lie in the file: the other reader allocates what they claim.
fn claims_are_plausible(bytes: &[u8]) -> bool {
    let word = |at: usize| {
        bytes
            .get(at..)?
            .first_chunk()
            .map(|word| u64::from_le_bytes(*word))
    };
    let section = |at: usize| {
        let end = word(at)?.checked_add(word(at.checked_add(8)?)?)?;
        (end <= bytes.len() as u64).then_some(end)
    };
    if is_pipe(bytes) {
        return true;
    }
    let table = || {
        section(24)?;
        let data_end = section(40)?;
        section(56)?;
        let count: u32 = [72, 80, 88, 96]
            .map(|at| word(at).unwrap_or(0).count_ones())
            .iter()
            .sum();
        for number in 0..count as usize {
            section(data_end as usize + 16 * number)?;
        }
        Some(())
    };
    table().is_some()
}

/// Calls the other reader, whose panics are not ours.
fn quietly<T>(call: impl FnOnce() -> Option<T>) -> Option<T> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    panic::set_hook(hook);
    outcome.ok().flatten()
}
