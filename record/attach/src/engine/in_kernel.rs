//! What is open in the kernel for the probes.

use std::fmt;

use super::bpf::{NonResident, NotFaultedIn, Scope};

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
