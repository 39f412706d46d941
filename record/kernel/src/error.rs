//! Errors of what is asked of the kernel.

use std::io;
use std::path::PathBuf;

use usdtrec_format::escape::shown;

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

/// What the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelOperation {
    /// Reading the number of the uprobe PMU, from this file.
    #[error(
        "this kernel has no uprobe PMU (it needs CONFIG_UPROBE_EVENTS and Linux 4.17): cannot read {0}"
    )]
    UprobePmu(&'static str),
    /// Opening a perf event.
    #[error("the kernel refuses a perf event{}", in_brackets(.0.as_ref()))]
    PerfEvent(Option<ErrorMeaning>),
    /// Reading or changing the list of uprobe events in tracefs.
    #[error("cannot use {}/uprobe_events{}", shown(.root), in_brackets(.meaning.as_ref()))]
    Tracefs {
        /// Where tracefs is mounted.
        root: PathBuf,
        /// What the error means.
        meaning: Option<ErrorMeaning>,
    },
    /// Starting the process that removes tracefs events after the recorder.
    #[error("cannot start the guard of the tracefs events")]
    TracefsGuard,
    /// Creating this, which all programs share.
    #[error("no BPF {0}")]
    BpfObject(&'static str),
    /// Loading the program of a probe, by its event.
    #[error("the kernel does not load the program for {0}")]
    Program(String),
    /// Preparing the links of a probe, by its event.
    #[error("cannot attach {0}")]
    Links(String),
    /// Enabling the events.
    #[error("the events cannot be started")]
    Enable,
}

/// What an error number of `perf_event_open(2)` or of tracefs means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorMeaning {
    /// `EMFILE`, `ENFILE`.
    #[error("too many open files")]
    TooManyFiles,
    /// `EACCES`, `EPERM`.
    #[error("not permitted")]
    NotPermitted,
    /// `EACCES`, without `CAP_SYS_ADMIN`, and `perf_event_paranoid` is above 2 (seen on Debian's Linux 6.1 and 6.12).
    #[error(
        "with a perf_event_paranoid above 2, Debian's and Ubuntu's kernels open perf events only with CAP_SYS_ADMIN"
    )]
    Paranoid,
    /// `EACCES` for a probe's event, without `CAP_SYS_ADMIN` (seen on Linux 6.1 to 7.3).
    #[error("events of the uprobe PMU need CAP_SYS_ADMIN; uprobe_multi links (Linux 6.6) do not")]
    UprobePmuNeedsAdmin,
    /// The kernel's lockdown (kernel_lockdown(7)) is `confidentiality`.
    #[error(
        "the kernel's lockdown mode confidentiality disables tracefs: perf events cannot follow processes here"
    )]
    Lockdown,
    /// `EINVAL`.
    #[error("invalid instruction at the site, or another uprobe there has another semaphore")]
    NoInstruction,
    /// `EINVAL` for a site with a semaphore (`alloc_uprobe`, "ref_ctr_offset mismatch").
    #[error(
        "the kernel has a probe at this site with a different semaphore, or with one where the recorder uses none, and allows only one: end the other tracer, unless it left the probe behind"
    )]
    OtherSemaphore,
}

/// Why programs cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BpfRefusal {
    /// The recorder is in a pid namespace, and programs cannot find the ids of processes in it.
    #[error(
        "process ids of this container differ from the kernel's, which does not describe its structures (/sys/kernel/btf/vmlinux)"
    )]
    PidNamespace,
    /// No attach method is left to try.
    #[error("no attach method works")]
    NoAttachMethod,
    /// The kernel has no uprobe_multi links.
    #[error("uprobe_multi links need Linux 6.6")]
    MultiLinks,
    /// The kernel has no programs that may sleep on perf events.
    #[error("programs on perf events that may sleep need Linux 6.0")]
    SleepingEvents,
    /// Programs that wait for any memory would disturb other tracers.
    #[error(
        "before Linux 6.10 a program on a perf event that waits for memory holds up the uprobe events of all tracers on its CPU"
    )]
    WaitingEvents,
    /// The stack of a program may be that of another one on the same CPU.
    #[error(
        "this kernel keeps stacks of programs for each CPU, so programs need bpf_preempt_disable, which it does not describe (/sys/kernel/btf/vmlinux) or does not let them call"
    )]
    Preemption,
    /// Programs cannot ask for the control groups above that of a hit.
    #[error("choosing control groups needs Linux 5.15")]
    ControlGroups,
    /// Programs cannot find what a process executes.
    #[error("choosing executables needs Linux 5.11 with BTF (/sys/kernel/btf/vmlinux)")]
    Executables,
    /// Thread contexts are requested, and the thread pointer is not known.
    #[error(
        "thread contexts are read on x86-64, and need a kernel that describes its structures (/sys/kernel/btf/vmlinux)"
    )]
    ThreadPointer,
    /// Threads are to be held at new mappings in a pid namespace.
    #[error(
        "threads cannot be held at new mappings from inside a pid namespace: record on the host"
    )]
    MappingHoldNamespace,
    /// Functions of programs cannot have memory as an argument.
    #[error("counting hits by stack needs Linux 5.12, and from Linux 6.13 on Linux 6.15")]
    StackKeys,
    /// There are more measured arguments than a program has room for.
    #[error("expected at most 8 arguments to add up, found more")]
    TooManyMeasured,
    /// The numbers of a file that was added have more bits than those of the files at the start.
    #[error("the argument has more bits than in the first files")]
    WideNumbers,
    /// The keys of groups are too long.
    #[error("group keys are too long")]
    LongKeys,
    /// A site has more arguments than a program can read.
    #[error("too many arguments for a program")]
    TooManyArguments,
    /// There is nothing to attach to.
    #[error("there is no site")]
    NoSite,
}

/// What follows the text of an error: what it means, if that is known.
pub fn in_brackets(meaning: Option<&ErrorMeaning>) -> String {
    meaning.map_or_else(String::new, |meaning| format!(" ({meaning})"))
}
