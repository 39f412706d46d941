//! What a hit says about arguments that it and later hits get: it begins or ends a span, or does something with a lock.

use std::sync::Arc;

use usdtrec_format::Value;
use usdtrec_format::perf::Sample;
use usdtrec_format::schema::LockAction;

use crate::added::added_argument::AddedPlace;
use crate::process::comm::ProcessNumber;
use crate::session::resolver::Resolver;

/// Which thread a hit is of, and when.
#[derive(Clone, Copy, Debug)]
pub struct StepPlace {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// On the trace's clock, ns.
    pub time: u64,
    /// Which of the processes that had the pid.
    pub process: ProcessNumber,
}

/// What a hit says.
#[derive(Clone, Debug)]
pub enum HitStep {
    /// It begins or ends a span.
    Span(SpanStep),
    /// It does something with a lock.
    Lock(LockStep),
}

/// A hit does something with a lock.
#[derive(Clone, Debug)]
pub struct LockStep {
    /// What it does.
    pub action: LockAction,
    /// Whether it acquires the lock together with others that share it.
    pub shared: bool,
    /// Whether the lock is a group of locks, of all processes.
    pub group: bool,
    /// Whether releases of the lock are hit only while another thread waits.
    pub contended: bool,
    /// Of a hit that gets who held the lock: where the values of the spans are that the holder was in.
    pub of_spans: Option<Arc<[AddedPlace]>>,
    /// The provider of the probe, as a number.
    pub provider: u64,
    /// Which lock of the provider it is, within the process unless it is a group.
    pub key: [u64; 2],
    /// What the thread is called.
    pub comm: Value,
}

/// A hit begins or ends a span.
#[derive(Clone, Debug)]
pub struct SpanStep {
    /// Which pair of probes it is of; the same as long as the trace is open.
    pub pair: u32,
    /// The part that has the values.
    pub part: usize,
    /// What begin and end have in common.
    pub key: [u64; 2],
    /// Hashes of the arguments that must agree besides.
    pub marks: [u64; 4],
    /// If it begins a span: that.
    pub begin: Option<BegunStep>,
}

/// The begin of a span.
#[derive(Clone, Debug)]
pub struct BegunStep {
    /// The values of the part.
    pub values: Arc<[Value]>,
    /// Whether the name of the probe says that spans of the pair are calls, which may be within each other.
    pub is_call: bool,
}

impl StepPlace {
    /// The place of a sample.
    #[inline]
    pub(crate) fn new(resolver: &mut Resolver<'_>, sample: &Sample<'_>) -> Self {
        Self {
            pid: sample.pid,
            tid: sample.tid,
            time: sample.time,
            process: resolver.comm(sample.pid, sample.time).process,
        }
    }
}
