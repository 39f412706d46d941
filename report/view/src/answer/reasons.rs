//! What is unusual in a trace, what it lacks, and why.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;
use usdtrec_analysis::stats::bursts::Episode;
use usdtrec_analysis::summary::unusual::{Unusual, UnusualKind};
use usdtrec_format::escape::escape_bytes;
use usdtrec_format::trace::{Shortfall, ShortfallKind};
use usdtrec_trace::events::no_events::NoEventsReason;
use usdtrec_trace::session::joined_files::PlacedDamage;

/// Something that stands out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum UnusualRow {
    /// Values of an argument that are not known.
    Missing {
        /// The event.
        event: String,
        /// The argument.
        argument: String,
        /// Why.
        reason: String,
        /// Number of events.
        count: u64,
        /// Number of all events.
        of: u64,
    },
    /// Strings of an argument that were longer than what was captured.
    Cut {
        /// The event.
        event: String,
        /// The argument.
        argument: String,
        /// Number of strings.
        count: u64,
        /// Number of all strings.
        of: u64,
    },
    /// Each hit is one of other probes, too, which are at the same instruction.
    OneInstruction {
        /// The event.
        event: String,
        /// Events of the other probes.
        with: Vec<String>,
    },
    /// Times with more events than usual, the strongest first.
    Burst {
        /// The event.
        event: String,
        /// The times.
        times: Vec<UnusualTime>,
    },
    /// Times without an event, the longest first.
    Pause {
        /// The event.
        event: String,
        /// The times.
        times: Vec<UnusualTime>,
    },
}

/// A time that is unlike the others of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UnusualTime {
    /// Its begin, by the trace's clock, ns.
    pub from_ns: u64,
    /// Its end, by the trace's clock, ns.
    pub to_ns: u64,
    /// Maximum ratio to the median rate; `None` for a pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_median: Option<f64>,
}

/// Why probes have no events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NoEventsRow {
    /// No recorded process mapped a file.
    Unmapped {
        /// The file, escaped.
        file: String,
    },
    /// Processes run another version of a file than was recorded.
    OtherVersion {
        /// The file, escaped.
        file: String,
        /// The processes, in ascending order.
        pids: Vec<i32>,
    },
    /// Probes need something to be hit at all, or a filter refused all of their hits.
    Unmet {
        /// Names of the events.
        events: Vec<String>,
        /// What a schema says that they need.
        needs: Option<String>,
        /// The filter.
        filter: Option<String>,
    },
}

/// What the recorder found not to work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShortfallRow {
    /// What is not as it must be.
    pub kind: ShortfallKind,
    /// The file with the probes, escaped; `None` if it is about several.
    pub file: Option<String>,
    /// Events of the probes concerned, the first few.
    pub events: Vec<String>,
    /// Number of sites concerned, in the process with the most.
    pub sites: u64,
    /// Processes, the first few.
    pub pids: Vec<i32>,
    /// Number of processes.
    pub processes: u64,
    /// Build-id of a file that appeared while recording.
    pub build_id: Option<String>,
    /// Time from the mapping of that file to the planting of its probes, ns; `None` if it is not known.
    pub gap_ns: Option<u64>,
    /// What was found, in the first process.
    pub found: String,
    /// What follows from it.
    pub effect: String,
    /// What can be done.
    pub remedy: Option<String>,
}

/// A damaged part of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamageRow {
    /// The file, of a trace that is made of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// What is damaged, and what is lost.
    pub message: String,
}

impl UnusualRow {
    /// `start` is the time of the trace's first event, ns.
    pub(crate) fn new(unusual: &Unusual, start: u64) -> Self {
        let event = unusual.event.clone();
        let times = |episodes: &[Episode]| -> Vec<UnusualTime> {
            let all = episodes.iter();
            all.map(|episode| UnusualTime::new(episode, start))
                .collect()
        };
        match &unusual.what {
            UnusualKind::Missing {
                argument,
                reason,
                count,
                of,
            } => Self::Missing {
                event,
                argument: argument.clone(),
                reason: reason.clone(),
                count: *count,
                of: *of,
            },
            UnusualKind::Cut {
                argument,
                count,
                of,
            } => Self::Cut {
                event,
                argument: argument.clone(),
                count: *count,
                of: *of,
            },
            UnusualKind::OneInstruction { with } => Self::OneInstruction {
                event,
                with: with.clone(),
            },
            UnusualKind::Bursts(bursts) => Self::Burst {
                event,
                times: times(bursts),
            },
            UnusualKind::Pauses(pauses) => Self::Pause {
                event,
                times: times(pauses),
            },
        }
    }
}

impl UnusualTime {
    fn new(episode: &Episode, start: u64) -> Self {
        Self {
            from_ns: start.saturating_add(episode.from),
            to_ns: start.saturating_add(episode.to),
            times_median: (episode.times > 0.0).then_some(episode.times),
        }
    }
}

impl NoEventsRow {
    pub(crate) fn new(reason: &NoEventsReason) -> Self {
        match reason {
            NoEventsReason::Unmapped(file) => Self::Unmapped { file: text(file) },
            NoEventsReason::OtherVersion { file, pids } => Self::OtherVersion {
                file: text(file),
                pids: pids.clone(),
            },
            NoEventsReason::Needs {
                events,
                needs,
                filter,
            } => Self::Unmet {
                events: events.clone(),
                needs: needs.clone(),
                filter: filter.clone(),
            },
        }
    }
}

impl ShortfallRow {
    pub(crate) fn new(shortfall: &Shortfall) -> Self {
        let file = text(&shortfall.path);
        let remedy = shortfall.remedy.clone();
        Self {
            kind: shortfall.kind,
            file: (!file.is_empty()).then_some(file),
            events: shortfall.events.clone(),
            sites: shortfall.sites,
            pids: shortfall.pids.clone(),
            processes: shortfall.processes,
            build_id: shortfall.build_id.map(|build_id| build_id.to_string()),
            gap_ns: shortfall.gap_ns,
            found: shortfall.found.clone(),
            effect: shortfall.effect.clone(),
            remedy: (!remedy.is_empty()).then_some(remedy),
        }
    }
}

impl DamageRow {
    pub(crate) fn new(placed: &PlacedDamage) -> Self {
        let PlacedDamage { file, damage } = placed;
        Self {
            file: file.as_deref().map(text),
            offset: damage.offset,
            message: damage.kind.to_string(),
        }
    }
}

fn text(path: &Path) -> String {
    escape_bytes(path.as_os_str().as_bytes()).into_owned()
}
