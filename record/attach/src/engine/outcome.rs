//! What an engine has found out: the engine and attach method in use, the processes that probes are attached to, and what is counted besides the hits
//! and losses of each probe.

use std::error::Error;
use std::sync::Arc;
use std::{fmt, io};

use usdtrec_format::counted;
use usdtrec_format::perf::EventAttr;
use usdtrec_format::trace::ShortfallKind;
use usdtrec_kernel::KernelError;

use super::options::{AttachMethod, NonResident};
use crate::error::{RecordError, with_source};
use crate::select::probe::{PlannedProbe, RefusedProbe};

/// What an engine has counted and noted by the end of a recording, besides the hits and losses of each probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineOutcome {
    /// What was counted besides hits and losses.
    pub counts: EngineCounts,
    /// Number of samples of waits.
    pub waits: u64,
    /// Number of hits of which no stack was taken, because of [`CallGraph::rate`](crate::plan::call_graph::CallGraph::rate).
    pub without_stack: u64,
    /// Why probes were attached to all processes of the files, after they had been attached to the recorded processes and their children
    /// only; `None` if they were not.
    pub planted_everywhere: Option<EverywhereReason>,
    /// What was counted of spans, where programs match them and record slow ones only; `None` if they do not.
    pub spans: Option<SlowSpanCounts>,
    /// Whether strings that arguments point to may be missing in samples, which a reader finds in files.
    pub may_lack_strings: bool,
}

/// What an engine has counted besides hits and losses, by what it is in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineCounts(Vec<(ShortfallKind, u64)>);

impl EngineCounts {
    /// The number of a kind.
    #[must_use]
    pub fn of(&self, kind: ShortfallKind) -> u64 {
        let known = self.0.iter().find(|(known, _)| *known == kind);
        known.map_or(0, |(_, number)| *number)
    }

    pub(super) fn add(&mut self, kind: ShortfallKind, number: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, known)) => *known += number,
            None => self.0.push((kind, number)),
        }
    }
}

/// What programs have counted of spans of which they record slow ones only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowSpanCounts {
    /// Spans that were shorter than those that are recorded.
    pub short: u64,
    /// Begins that were not kept, because too many spans were open at once.
    pub full: u64,
    /// Begins that were not kept, because too many spans of one thread were open.
    pub deep: u64,
    /// Ends without a begin.
    pub unmatched: u64,
    /// Ends that are equal to an older begin of their thread than the one that they take.
    pub older: u64,
}

impl SlowSpanCounts {
    /// Whether probes were hit that are not counted as hits.
    #[must_use]
    pub const fn has_any(&self) -> bool {
        self.short > 0 || self.full > 0 || self.deep > 0 || self.unmatched > 0
    }

    /// The sums of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            short: self.short + other.short,
            full: self.full + other.full,
            deep: self.deep + other.deep,
            unmatched: self.unmatched + other.unmatched,
            older: self.older + other.older,
        }
    }
}

/// Why probes are attached to all processes of the files, after they had been attached to the recorded processes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EverywhereReason {
    /// A process began while the probes were being attached.
    #[error("a recorded process started a child while the probes were being attached")]
    Early,
    /// There are too many processes, or they begin too fast.
    #[error("recorded processes have too many children, or start them too fast, to attach to each")]
    Many,
    /// Attaching took too long.
    #[error("attaching to each child of the recorded processes takes too long")]
    Slow,
    /// A process could not be held, or was not held for long enough.
    #[error("a child could not be stopped until the probes were attached")]
    Unheld,
    /// A process runs in real time, or its first thread has ended.
    #[error(
        "a recorded process runs in real time, could not be stopped, or its first thread ended"
    )]
    Special,
    /// A thread other than the first executed a program, and what was attached to the process was not detached in time.
    #[error("a thread other than the first executed a program")]
    Executed,
    /// The kernel refused.
    #[error("the kernel refused to attach to a child")]
    Refused,
}

/// The processes that probes are attached to.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Scope<'a> {
    /// The recorded processes.
    Recorded,
    /// The recorded processes and their children.
    RecordedAndChildren,
    /// All processes of the files.
    All,
    /// All processes of the files, after they had been attached to the recorded processes only.
    AllAfterAll(EverywhereReason),
    /// All processes of the files, because the kernel cannot hold children until probes are attached to them.
    AllWithoutHold(&'a io::Error),
}

impl fmt::Display for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorded => f.write_str("in the recorded processes alone"),
            Self::RecordedAndChildren => {
                f.write_str("in the recorded processes and their children alone")
            }
            Self::All => f.write_str("in all processes of the files"),
            Self::AllAfterAll(reason) => write!(f, "{}, because {reason}", Self::All),
            Self::AllWithoutHold(error) => {
                let error = error.to_string();
                let first = error.lines().next().unwrap_or_default();
                write!(f, "{}, because children cannot be held: {first}", Self::All)
            }
        }
    }
}

/// An attach method of programs that does not work on this kernel.
#[derive(Debug)]
pub struct SkippedMethod {
    /// The method.
    pub attach_method: AttachMethod,
    /// Error of attaching by it.
    pub error: RecordError,
}

impl fmt::Display for SkippedMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} not used: {}", self.attach_method, line(&self.error))
    }
}

/// Why programs do not bring memory in that is not resident, although they should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotFaultedIn {
    /// The kernel does not describe the structures by which mappings are checked.
    #[error("/sys/kernel/btf/vmlinux is missing or lacks a type that is needed")]
    NoBtf,
    /// Programs that do it do not work on this kernel.
    #[error("{}", line(.0))]
    Refused(RecordError),
}

/// An error and its cause, in one line.
fn line(error: &RecordError) -> String {
    if let RecordError::Kernel(KernelError::NoBpf(reason)) = error {
        return reason.to_string();
    }
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Why hits may be missing or duplicated without being counted as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InexactCounts {
    /// Perf events are not inherited by threads.
    #[error("perf events that are not inherited miss threads that start later")]
    NotInherited,
    /// Perf events are inherited.
    #[error("inherited perf events miss hits of children, which are not counted as lost")]
    Inherited,
    /// Perf events of the uprobe PMU on several CPUs.
    #[error(
        "perf events of the uprobe PMU, one for each CPU, miss a hit or count it twice when its thread changes CPU"
    )]
    PmuOnSeveralCpus,
    /// The kernel has no `PERF_FORMAT_LOST`.
    #[error("counting the hits that perf events lose needs Linux 6.0")]
    LossesNotCounted,
}

/// What is open in the kernel for the probes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum InKernel<'a> {
    /// Programs (the bpf engine).
    Programs {
        /// Number of programs.
        programs: usize,
        /// Whether they bring memory in that is not resident.
        nonresident: NonResident,
        /// Why they do not although they should; `None` if they do, or should not.
        not_faulted_in: Option<&'a NotFaultedIn>,
        /// Number of links, or of events with a program.
        links: usize,
        /// The processes that they are attached to.
        scope: Scope<'a>,
    },
    /// Number of perf events (the perf engine).
    PerfEvents(usize),
}

impl fmt::Display for InKernel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Programs {
                programs,
                nonresident,
                not_faulted_in,
                links,
                scope,
            } => {
                let memory = match nonresident {
                    NonResident::Auto => "",
                    NonResident::Always => " that wait for any memory",
                    NonResident::Never => " that read resident memory only",
                };
                write!(f, "{programs} programs{memory}")?;
                if let Some(reason) = not_faulted_in {
                    write!(f, " ({reason})")?;
                }
                write!(f, ", {links} links {scope}")
            }
            Self::PerfEvents(events) => write!(f, "{events} perf events"),
        }
    }
}

/// The engine in use, with its attach method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UsedEngine {
    /// Perf events of the uprobe PMU.
    PerfPmu,
    /// Perf events on tracefs events.
    PerfTracefs,
    /// Programs.
    Bpf(AttachMethod),
}

impl UsedEngine {
    /// Name of the engine: `bpf` or `perf`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerfPmu | Self::PerfTracefs => "perf",
            Self::Bpf(_) => "bpf",
        }
    }

    /// Name of the attach method: `uprobe_multi`, `uprobe PMU` or `tracefs`.
    #[must_use]
    pub const fn attach_method(self) -> &'static str {
        match self {
            Self::PerfPmu => "uprobe PMU",
            Self::PerfTracefs => "tracefs",
            Self::Bpf(attach_method) => attach_method.name(),
        }
    }
}

/// Why a better engine or attach method is not used.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum NotBetter<'a> {
    /// Error of the bpf engine.
    Engine(&'a RecordError),
    /// The last better attach method that was tried.
    AttachMethod(&'a SkippedMethod),
}

/// The reason in one line.
impl fmt::Display for NotBetter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => f.write_str(&with_source(error)),
            Self::AttachMethod(skipped) => skipped.fmt(f),
        }
    }
}

/// A number of [`EngineCounts`], as it is reported.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// What it is in the trace, and in JSON.
    pub kind: ShortfallKind,
    /// What was found, by its value.
    pub found: fn(u64) -> String,
    /// What follows.
    pub effect: &'static str,
    /// Why hits are counted as lost that are in it; `None` if none are.
    pub why_lost: Option<&'static str>,
}

/// The counters that are reported if they are not 0.
pub const COUNTERS: [Counter; 9] = [
    Counter {
        kind: ShortfallKind::Unjudged,
        found: |hits| {
            format!(
                "the filter of {} could not be evaluated, because it reads memory that was not resident",
                counted(hits, "hit")
            )
        },
        effect: "they are lost",
        why_lost: Some("their filter could not be evaluated"),
    },
    Counter {
        kind: ShortfallKind::Unfinished,
        found: |hits| {
            format!(
                "{} were still being captured when the recording ended, because their threads wait for a page fault",
                counted(hits, "hit")
            )
        },
        effect: "they are not in the trace",
        why_lost: None,
    },
    Counter {
        kind: ShortfallKind::UnattachedChildren,
        found: |children| {
            format!(
                "at least {} of recorded processes may have run without probes, at first or always",
                match children {
                    1 => "one child".to_owned(),
                    number => format!("{number} children"),
                }
            )
        },
        effect: "their hits are neither in the trace nor counted as lost",
        why_lost: None,
    },
    Counter {
        kind: ShortfallKind::UnheldMappings,
        found: |mappings| {
            format!(
                "{} of new files: the thread was not held until the probes were attached, because that took more than two seconds or it is a real-time thread",
                counted(mappings, "mapping")
            )
        },
        effect: "its first hits there may be missing",
        why_lost: None,
    },
    Counter {
        kind: ShortfallKind::ReplacedPrograms,
        found: |files| {
            format!(
                "{} replaced a recorded program after too many others",
                counted(files, "file")
            )
        },
        effect: "hits of their processes are neither in the trace nor counted as lost",
        why_lost: None,
    },
    Counter {
        kind: ShortfallKind::InexactExtremes,
        found: |times| {
            format!(
                "the minimum or maximum of a group could not be updated {}, because too many CPUs changed it at once",
                counted(times, "time")
            )
        },
        effect: "it may be wrong",
        why_lost: None,
    },
    Counter {
        kind: ShortfallKind::UnknownWaits,
        found: |hits| {
            format!(
                "no room for the waits of {}, because too many threads with hits lived at the same time",
                counted(hits, "hit")
            )
        },
        effect: "how long their threads waited is not known",
        why_lost: None,
    },
    Counter {
        kind: ShortfallKind::MissedSwitches,
        found: |times| {
            format!(
                "the kernel did not run the program at a switch or waking of a thread, {}",
                counted(times, "time")
            )
        },
        effect: "how long threads waited may be wrong",
        why_lost: None,
    },
    Counter {
        kind: ShortfallKind::LostWaits,
        found: |waits| {
            format!(
                "no room in the rings for {} of threads",
                counted(waits, "wait")
            )
        },
        effect: "they are not among the events; how long threads waited is known all the same",
        why_lost: None,
    },
];

/// An engine with attached probes, disabled.
#[derive(Debug)]
pub struct Opened<E> {
    pub(super) engine: E,
    /// The probes that are attached.
    pub(super) probes: Vec<Arc<PlannedProbe>>,
    /// Their attrs, in the same order.
    pub(super) attrs: Vec<ProbeAttr>,
    /// The planned probes that the kernel refused.
    pub(super) refused: Vec<RefusedProbe>,
}

/// The attr of an attached probe.
#[derive(Debug)]
pub struct ProbeAttr {
    /// The attr of the trace, with name and ids.
    pub attr: EventAttr,
    /// The sample ids of each site, in the order of the plan's sites.
    pub site_ids: Vec<Vec<u64>>,
}

impl<E> Opened<E> {
    /// The same, with what `make` makes of the engine.
    pub(super) fn with<T>(self, make: impl FnOnce(E) -> T) -> Opened<T> {
        Opened {
            engine: make(self.engine),
            probes: self.probes,
            attrs: self.attrs,
            refused: self.refused,
        }
    }
}
