//! Errors of recording.

use std::io;
use std::path::PathBuf;

use usdtrec_buildid_cache::elf::ElfError;
use usdtrec_buildid_cache::{BuildError, CacheError};
use usdtrec_format::escape::shown;
use usdtrec_format::trace::WriteError;
use usdtrec_kernel::separate_process::was_killed;
use usdtrec_kernel::{ErrorMeaning, KernelError, in_brackets};

use crate::chosen::ChoiceError;
use crate::file_change::FileChange;
use crate::select::no_probe::NoProbe;
use crate::select::refusal::{Refusal, lines};
use crate::usage_error::UsageError;

/// Error of a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A parameter is invalid, or the engine does not support it.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// Processes cannot be chosen.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// A pattern selects no probe.
    #[error(transparent)]
    NoProbe(#[from] NoProbe),
    /// The build-id of a pattern is not that of one build.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A file name of a pattern was not found.
    #[error(transparent)]
    Find(CacheError),
    /// The file of a pattern cannot be opened.
    #[error("{}: {error}", shown(.path))]
    File {
        /// The file.
        path: PathBuf,
        /// Error of opening it.
        error: ElfError,
    },
    /// The file of a pattern cannot be opened below the root directory of a process.
    #[error(
        "{}: {error}, seen from process {pid}{}",
        shown(.path),
        if *.is_outside { "; there is a file of this path outside of its root" } else { "" }
    )]
    FileOfProcess {
        /// The file.
        path: PathBuf,
        /// The first traced process.
        pid: u32,
        /// Error of opening the file.
        error: ElfError,
        /// Whether the recorder itself can open a file of this path.
        is_outside: bool,
    },
    /// Nothing of what a pattern selects can be attached.
    #[error("{}", lines(.0))]
    Refused(Vec<Refusal>),
    /// No probe was given.
    #[error("no probe to record")]
    Nothing,
    /// The kernel refuses or lacks something.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// There is nothing to record on.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The command could not be run.
    #[error("cannot run {command:?}")]
    Command {
        /// The command.
        command: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// tracefs cannot be opened where it is usually mounted, and cannot be mounted for the recorder alone.
    #[error(
        "following new threads and children needs tracefs, which can neither be opened nor mounted"
    )]
    NoTracefs(#[source] io::Error),
    /// The kernel refused to attach a probe.
    #[error(
        "the kernel does not plant {event} at {} offset {offset:#x}{}",
        shown(.path),
        in_brackets(.meaning.as_ref())
    )]
    Attach {
        /// Event of the probe.
        event: String,
        /// The file.
        path: PathBuf,
        /// File offset of the site.
        offset: u64,
        /// What the error means here, if that is known.
        meaning: Option<ErrorMeaning>,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// Perf events are not opened while recording.
    #[error("the perf engine does not follow files that appear while recording")]
    NotFollowed,
    /// Something needs capabilities as long as it is recorded.
    #[error("the recorder cannot drop its capabilities: {0}")]
    KeepsCapabilities(&'static str),
    /// The capabilities could not be dropped.
    #[error("cannot drop the capabilities")]
    Capabilities(#[source] io::Error),
    /// Neither engine can be used.
    #[error("no engine can be used: bpf: {}; perf: {}", with_source(.bpf), with_source(.perf))]
    NoEngine {
        /// Why not the bpf engine.
        bpf: Box<RecordError>,
        /// Why not the perf engine.
        perf: Box<RecordError>,
    },
    /// Recording was ended before it began.
    #[error(transparent)]
    Interrupted(#[from] Interruption),
    /// The trace file could not be created.
    #[error("cannot create the trace file")]
    Output(#[source] io::Error),
    /// Other processes changed files while they were written.
    #[error("{}", lines(.0))]
    Changed(Vec<FileChange>),
    /// Writing the trace failed.
    #[error("the trace ends early; everything written before is complete")]
    Write(#[from] WriteError),
    /// Writing the trace failed, and the events have been counted since.
    #[error(
        "the trace ends early; everything written before is complete, but {missing} of {hits} hits are not in the trace"
    )]
    Incomplete {
        /// Hits up to the end of the recording that are in no file.
        missing: u64,
        /// Hits up to the end of the recording.
        hits: u64,
        /// Why writing failed.
        #[source]
        source: WriteError,
    },
}

/// There is nothing to record on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// A process or thread does not exist.
    #[error("there is no process or thread {0}")]
    Missing(u32),
    /// The processes have too many children.
    #[error("the processes have {found} children, expected at most {most}")]
    TooManyChildren {
        /// Number of children.
        found: usize,
        /// Maximum number.
        most: usize,
    },
    /// A process ended before its threads were read.
    #[error("process {0} has ended")]
    Ended(u32),
    /// All processes or threads ended before their events were opened.
    #[error("the processes or threads to be recorded have all ended")]
    AllEnded,
    /// No CPU is left.
    #[error("there is no CPU to record on")]
    NoCpu,
}

/// Why recording ended before it began.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Interruption {
    /// A signal arrived.
    #[error("a signal ended it before recording began: there is no trace{}", removing(.0.as_ref()))]
    Signal(Option<Removal>),
    /// The process that attaches probes was killed.
    #[error("{0}: there is no trace")]
    Killed(io::Error),
}

impl Interruption {
    /// Ends attaching if the error means that the process that made the call was killed.
    pub fn check(error: &io::Error) -> Result<(), Self> {
        if !was_killed(error) {
            return Ok(());
        }
        Err(Self::Killed(io::Error::new(
            error.kind(),
            error.to_string(),
        )))
    }
}

/// Probe links and events that a process continues removing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The process.
    pub pid: u32,
    /// Number of those that are left.
    pub left: usize,
    /// Number of all of them.
    pub total: usize,
}

fn removing(removal: Option<&Removal>) -> String {
    removal.map_or_else(String::new, |Removal { pid, left, total }| {
        format!("; process {pid} goes on removing {left} of {total} probe links and events")
    })
}

/// An error with the first line of its cause.
pub fn with_source(error: &RecordError) -> String {
    match std::error::Error::source(error).map(ToString::to_string) {
        Some(source) => format!("{error}: {}", source.lines().next().unwrap_or_default()),
        None => error.to_string(),
    }
}
