//! Prints the samples of a trace, usdtrec's or stock perf's: time, process, event and address of each, block by block.
//!
//! `cargo run -p usdtrec-format --example print_trace -- usdtrec.data`

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use usdtrec_format::escape::escape;
use usdtrec_format::perf::{RecordType, Records, SampleLayout};
use usdtrec_format::trace::{BlockReader, Trace};

/// Writes one line per sample, in the order of the file; damage is reported and costs only its block.
pub(crate) fn run(path: &Path, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let trace = Trace::open(path)?;
    let events = &trace.info().events;
    // The id has the same offset in the samples of all events, so that any layout finds it.
    let layouts: Vec<SampleLayout> = events
        .iter()
        .map(|event| SampleLayout::new(&event.attr))
        .collect();
    let any = layouts.first().ok_or("the trace has no events")?;
    let by_id: HashMap<u64, usize> = events
        .iter()
        .enumerate()
        .flat_map(|(index, event)| event.ids.iter().map(move |&id| (id, index)))
        .collect();
    let mut reader = BlockReader::new();
    for block in trace.blocks() {
        let records = match reader.read(&trace, block) {
            Ok(records) => records,
            Err(damage) => {
                writeln!(out, "damaged: {damage:?}")?;
                continue;
            }
        };
        for record in Records::new(records).filter(|record| record.kind == RecordType::SAMPLE) {
            let id = any.parse(record.body).map(|sample| sample.id);
            let index = id.and_then(|id| by_id.get(&id).copied()).unwrap_or(0);
            let (Some(event), Some(layout)) = (events.get(index), layouts.get(index)) else {
                continue;
            };
            if let Some(sample) = layout.parse(record.body) {
                let seconds = sample.time as f64 / 1e9;
                writeln!(
                    out,
                    "{seconds:.6} {} {} {:#x}",
                    sample.pid,
                    escape(&event.name),
                    sample.ip
                )?;
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or("usage: print_trace FILE")?;
    run(Path::new(&path), &mut io::stdout().lock())
}
