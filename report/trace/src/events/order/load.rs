//! Reading a block and sorting what is requested in it.

use usdtrec_format::perf::{RecordType, Records};
use usdtrec_format::trace::{BlockReader, Damage};

use crate::events::order::pending::{LoadedBlock, SampleKey};
use crate::events::selection::SampleFilter;
use crate::session::TraceSession;
use crate::session::head::TimedTarget;
use crate::session::resolver::Resolver;
use crate::session::scan::SampleBlock;

/// Reads a block into `loaded`, which is empty.
pub(crate) fn load(
    session: &TraceSession,
    filter: &SampleFilter,
    block: &SampleBlock,
    reader: &mut BlockReader,
    loaded: &mut LoadedBlock,
) -> Result<(), Damage> {
    let mut sorted = true;
    let mut last = 0;
    let mut resolver = None;
    for record in Records::new(reader.read(session.trace(), &block.block)?) {
        if record.kind != RecordType::SAMPLE {
            continue;
        }
        let Some(TimedTarget { target, time }) = session.time_of(record.body) else {
            loaded.unknown += 1;
            continue;
        };
        if !filter.early(target, time) {
            continue;
        }
        if !filter.is_simple() {
            let hit = session.sample(record.body);
            let resolver = resolver.get_or_insert_with(|| Resolver::new(session));
            if !hit.is_some_and(|hit| filter.late(hit.target, &hit.sample, resolver)) {
                continue;
            }
        }
        sorted &= time >= last;
        last = time;
        loaded.keys.push(SampleKey {
            time,
            offset: record.offset as u32,
        });
    }
    if !sorted {
        // Stable, and finds the runs of the rings that were drained one after the other.
        loaded.keys.sort_by_key(|key| key.time);
    }
    reader.swap_records(&mut loaded.bytes);
    Ok(())
}
