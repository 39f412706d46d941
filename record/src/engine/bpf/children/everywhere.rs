//! Why probes are attached to all processes of the files.

use std::fmt;

/// Why probes are attached to all processes of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Reason {
    /// A process began while the probes were being attached.
    Early,
    /// There are too many processes, or they begin too fast.
    Many,
    /// Attaching took too long.
    Slow,
    /// A process could not be held, or was not held for long enough.
    Unheld,
    /// A process runs in real time, or its first thread has ended.
    Special,
    /// A thread other than the first executed a program, and what was attached to the process was not detached in time.
    Executed,
    /// The kernel refused.
    Refused,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Early => "a recorded process started a child while the probes were being attached",
            Self::Many => "recorded processes have too many children, or start them too fast, to attach to each",
            Self::Slow => "attaching to each child of the recorded processes takes too long",
            Self::Unheld => "a child could not be stopped until the probes were attached",
            Self::Special => "a recorded process runs in real time, could not be stopped, or its first thread ended",
            Self::Executed => "a thread other than the first executed a program",
            Self::Refused => "the kernel refused to attach to a child",
        })
    }
}
