//! The engine in use, and why it is not a better one.

use std::fmt;

use super::bpf::{AttachMethod, SkippedMethod};
use crate::error::RecordError;
use crate::error::with_source;

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
