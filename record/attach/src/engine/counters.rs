//! What an engine counts besides the hits and losses of each probe: each counter is one entry, which says what is printed, and stored in the trace.

use usdtrec_format::counted;
use usdtrec_format::trace::ShortfallKind;

use super::outcome::EngineOutcome;

/// A counter of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// What it is in the trace, and in JSON.
    pub kind: ShortfallKind,
    /// Its value.
    pub value: fn(&EngineOutcome) -> u64,
    /// What was found, by its value.
    pub found: fn(u64) -> String,
    /// What follows.
    pub effect: &'static str,
}

/// Those that are said if they are not 0.
pub const COUNTERS: [Counter; 5] = [
    Counter {
        kind: ShortfallKind::Unjudged,
        value: |outcome| outcome.unjudged,
        found: |hits| {
            format!(
                "the filter of {} reads memory that was not resident, so that it could not be evaluated",
                counted(hits, "hit")
            )
        },
        effect: "they are lost",
    },
    Counter {
        kind: ShortfallKind::Unfinished,
        value: |outcome| outcome.unfinished,
        found: |hits| {
            format!(
                "{} were still being captured when the recording ended, because their threads wait for a page fault",
                counted(hits, "hit")
            )
        },
        effect: "they are not in the trace",
    },
    Counter {
        kind: ShortfallKind::UnattachedChildren,
        value: |outcome| outcome.missed_processes,
        found: |children| {
            format!(
                "at least {} of recorded processes may have run before they had probes, or without them",
                match children {
                    1 => "one child".to_owned(),
                    number => format!("{number} children"),
                }
            )
        },
        effect: "their hits are neither in the trace nor counted as lost",
    },
    Counter {
        kind: ShortfallKind::UnheldMappings,
        value: |outcome| outcome.unheld_mappings,
        found: |mappings| {
            format!(
                "at {} of new files the thread was not held until their probes were attached: that took more than two seconds, or it is a real-time thread",
                counted(mappings, "mapping")
            )
        },
        effect: "its first hits there may be missing",
    },
    Counter {
        kind: ShortfallKind::InexactExtremes,
        value: |outcome| outcome.unraised,
        found: |times| {
            format!(
                "too many CPUs changed the minimum or maximum of a group at a time, {}",
                counted(times, "time")
            )
        },
        effect: "one may be wrong",
    },
];
