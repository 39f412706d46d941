//! Names of events, also in files without them, as those of recorders that were killed.

use usdtrec_format::perf::Attr;

/// `PERF_TYPE_HARDWARE`: `enum perf_hw_id`.
const HARDWARE: &str = "\
    cycles instructions cache-references cache-misses branches branch-misses bus-cycles \
    stalled-cycles-frontend stalled-cycles-backend ref-cycles";

/// `PERF_TYPE_SOFTWARE`: `enum perf_sw_ids`.
const SOFTWARE: &str = "\
    cpu-clock task-clock page-faults context-switches cpu-migrations minor-faults major-faults \
    alignment-faults emulation-faults dummy bpf-output cgroup-switches";

pub use usdtrec_format::spans::short_name;

/// A name without its provider: `query__start`.
pub fn bare_name(event: &str) -> &str {
    event.split_once(':').map_or(event, |(_, name)| name)
}

/// What an event of this attr is called: perf's name if there is one, else its numbers.
pub(crate) fn event_name(attr: &Attr) -> String {
    let names = match attr.kind {
        0 => HARDWARE,
        1 => SOFTWARE,
        _ => "",
    };
    let known = usize::try_from(attr.config)
        .ok()
        .and_then(|config| names.split_ascii_whitespace().nth(config));
    known.map_or_else(
        || format!("event {}/{:#x}", attr.kind, attr.config),
        str::to_owned,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_name() {
        let name = |kind, config| {
            event_name(&Attr {
                kind,
                config,
                ..Attr::default()
            })
        };
        assert_eq!(name(0, 1), "instructions");
        assert_eq!(name(1, 0), "cpu-clock");
        assert_eq!(name(1, u64::MAX), "event 1/0xffffffffffffffff");
        assert_eq!(name(2, 2326), "event 2/0x916");
    }
}
