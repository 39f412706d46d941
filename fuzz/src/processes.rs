//! Process records: a byte for what their trailers hold, then records.

use usdtrec_format::perf::{Records, SampleType};
use usdtrec_report::process::{Mappings, ProcessLog, Processes};

use super::trace;

/// Puts the records in order and asks for every thread and address in them.
pub fn run(bytes: &[u8]) {
    let Some((&trailer, bytes)) = bytes.split_first() else {
        return;
    };
    let id_type = match trailer & 3 {
        0 => SampleType(0),
        1 => SampleType::TID | SampleType::TIME,
        2 => SampleType::SAMPLE_ID,
        _ => SampleType::TIME,
    };
    let mut log = ProcessLog::default();
    let mut questions = Vec::new();
    for record in Records::new(bytes) {
        trace::one(&record, id_type);
        let _ = log.record(&record, id_type);
        let word = |at: usize| {
            record
                .body
                .get(at..)?
                .first_chunk()
                .map(|word| u64::from_le_bytes(*word))
        };
        if let (Some(ids), Some(address), Some(time)) =
            (word(0), word(8), word(record.body.len().saturating_sub(16)))
        {
            questions.push((ids as i32, (ids >> 32) as i32, address, time));
        }
    }
    let processes = Processes::new(&mut log);
    let mappings = Mappings::new(log, &[]);
    for (pid, tid, address, time) in questions.into_iter().take(256) {
        let span = processes.comm(tid, time);
        assert!(
            span.from <= time && (time < span.until || time == u64::MAX),
            "{span:?} at {time}"
        );
        if let Some(name) = span.name {
            let name = processes.name(name).unwrap();
            assert!(!name.text.contains(char::is_control));
            let escaped = usdtrec_format::escape::escape(name.unescaped());
            assert!(!escaped.contains(char::is_control));
        }
        for address in [address, address.wrapping_add(1), address.wrapping_sub(1)] {
            if let Some(mapping) = mappings.mapping(pid, address, time) {
                assert!(mapping.start <= address);
                mappings.file(mapping.dso).unwrap();
            }
        }
        let until = mappings.mappings_until(pid, time);
        assert!(until > time || time == u64::MAX, "{until} {time}");
    }
}
