//! Why probes are attached to all processes of the files.

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
