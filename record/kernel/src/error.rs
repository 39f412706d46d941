//! Errors of what is asked of the kernel.

use std::io;

use crate::refusal::{BpfRefusal, KernelOperation};

/// Error of something that is asked of the kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// This user has no permission to record.
    #[error(
        "recording needs CAP_PERFMON and CAP_BPF, or root (you are uid {uid}, perf_event_paranoid is {paranoid})"
    )]
    Privilege {
        /// Effective user id.
        uid: u32,
        /// Content of `/proc/sys/kernel/perf_event_paranoid`; empty if it cannot be read.
        paranoid: String,
    },
    /// Information about the host could not be read.
    #[error("cannot read {what}")]
    Host {
        /// Path or system call.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A ring for each CPU cannot be mapped.
    #[error("cannot map a ring of {bytes} bytes for each of the CPUs")]
    Ring {
        /// Size of a ring, bytes.
        bytes: usize,
        /// Error of `mmap(2)`.
        #[source]
        source: io::Error,
    },
    /// The kernel refused an event, a program or a map.
    #[error("{operation}")]
    Operation {
        /// The operation, and the possible reason.
        operation: KernelOperation,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// Programs cannot be used.
    #[error("the bpf engine cannot be used: {0}")]
    NoBpf(BpfRefusal),
}

impl KernelError {
    /// The error for something that cannot be read: a path, or the name of what a system call gives.
    pub fn host<'a>(what: &'a str) -> impl Fn(io::Error) -> Self + Copy + 'a {
        move |source| Self::Host {
            what: what.to_owned(),
            source,
        }
    }

    /// The error for an operation that the kernel refuses.
    pub fn operation(operation: KernelOperation) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Operation { operation, source }
    }
}

/// A part of a CPU list is no number and no range of at most 65,536 CPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a CPU number or a range like 0-3, found {part:?} in {list:?}")]
pub struct CpuListError {
    /// The list.
    pub list: String,
    /// The invalid part.
    pub part: String,
}
