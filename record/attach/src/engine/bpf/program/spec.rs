//! What programs are generated from.

use usdtrec_format::{Arch, RawLayout};
use usdtrec_kernel::bpf::features::members::{ExecutableMembers, IdMembers, PidNamespace};
use usdtrec_kernel::bpf::preemption::Preemption;

use super::super::aggregate::grouping::Grouping;
use super::super::aggregate::hit_counts::HitCounts;
use super::super::aggregate::number_layout::Measured;
use super::super::contract::RecordedProcesses;
use super::super::nonresident::Touch;
use super::super::spans::entry::SpanMemory;
use super::super::spans::role::SpanRole;
use crate::plan::call_graph::CallGraph;
use crate::plan::capture::Capture;
use crate::plan::condition::Condition;
use crate::plan::frame::ReturnAddress;

/// What the program of a site captures.
#[derive(Clone, Debug)]
pub(in crate::engine::bpf) struct Spec<'a> {
    /// Architecture of the traced program.
    pub arch: Arch,
    /// What the program captures for each operand.
    pub captures: &'a [Capture],
    /// Layout of the raw part.
    pub layout: &'a RawLayout,
    /// Arguments whose numbers are aggregated.
    pub measured: &'a [Measured],
    /// How the callers are found; `None` if they are not.
    pub graph: Option<CallGraph>,
    /// Where the return address is, if the callers are found by frame pointers and the function has no frame.
    pub return_address: Option<ReturnAddress>,
    /// Filter; `None` for all hits.
    pub condition: Option<&'a Condition>,
    /// What the hits are to spans that programs match; `None` if they are recorded.
    pub role: Option<&'a SpanRole>,
    /// Where the kernel has no cookies (before Linux 5.15): that of the only site that the program is for.
    pub cookie: Option<u64>,
}

/// Settings of all programs of a session.
#[derive(Clone, Debug, Default)]
pub(in crate::engine::bpf) struct Common {
    /// How memory that is not resident is faulted in.
    pub touch: Touch,
    /// CPUs recorded; `None` for all.
    pub cpus: Option<Vec<CpuRange>>,
    /// Whose hits are recorded.
    pub recorded: RecordedProcesses,
    /// The pid namespace of the recorder, outside of which nothing is recorded; `None` if it is the first one.
    pub namespace: Option<PidNamespace>,
    /// The process of the recorder, whose own waits are not recorded.
    pub recorder: Option<u32>,
    /// Whether only hits in the control groups in the map are recorded.
    pub in_groups: bool,
    /// Where the executable of a process is found, if only those in the map are recorded.
    pub executables: Option<ExecutableMembers>,
    /// Where the ids and the user of a task are; `None` if helpers give them.
    pub id_members: Option<IdMembers>,
    /// Smallest sample id. Its losses are the first word of the losses.
    pub first_id: u64,
    /// Number of sample ids.
    pub ids: u32,
    /// Where hits are counted instead of recorded; `None` if they are recorded.
    pub hit_counts: Option<HitCounts>,
    /// How hits are grouped where they are counted; `None` if only those of each site are counted.
    pub grouping: Option<Grouping>,
    /// How open spans are kept, where programs match them; `None` if they do not.
    pub spans: Option<SpanMemory>,
    /// Maximum number of strings of a site.
    pub strings: u32,
    /// Size of each ring, bytes.
    pub ring_bytes: u32,
    /// Location of the base of thread-local storage in `task_struct`; `None` if unknown.
    pub thread_base: Option<ThreadBase>,
    /// How preemption is disabled, if it must be.
    pub preemption: Option<Preemption>,
    /// Whether global functions may have an address as an argument (Linux 5.12).
    pub functions_take_memory: bool,
}

/// CPUs with numbers that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct CpuRange {
    pub first: u32,
    pub last: u32,
}

impl CpuRange {
    /// The ranges of CPU numbers, which must be sorted.
    pub(in crate::engine::bpf) fn from_cpus(cpus: &[u32]) -> Vec<Self> {
        let mut ranges: Vec<Self> = Vec::new();
        for &cpu in cpus {
            match ranges.last_mut() {
                Some(range) if range.last + 1 == cpu => range.last = cpu,
                _ => ranges.push(Self {
                    first: cpu,
                    last: cpu,
                }),
            }
        }
        ranges
    }
}

/// Offsets in `task_struct`, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct ThreadBase {
    /// The thread pointer of a 64-bit program: `thread.fsbase` of x86-64, `thread.uw.tp_value` of arm64. The latter is 0 until a thread that has not
    /// got its pointer from clone(2) was switched from for the first time.
    pub pointer: u32,
    /// `thread.tls_array` of x86-64: the three descriptors of a 32-bit program, of which C libraries use the first
    /// (`struct desc_struct`, `arch/x86/include/asm/desc_defs.h`).
    pub descriptors: Option<u32>,
}
