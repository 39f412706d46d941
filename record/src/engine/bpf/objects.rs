//! What the programs and the recorder share in the kernel: maps and rings.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::super::options::AttachRequest;
use super::attach;
use super::attach::site_programs::Maps;
use super::control::Control;
use super::kernel::btf::Btf;
use super::lossless::stopped::Stopped;
use super::preemption::Preemption;
use super::processes::follow::Tracked;
use super::rings::cpu_rings::{CpuRings, Sizes};
use super::samples::Samples;
use super::samples::stack_rates;
use super::thread_contexts::ThreadContexts;
use crate::error::RecordError;
use crate::kernel_error::{BpfObject, KernelOperation};

/// The maps and rings of a recording.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) tracked: Tracked,
    /// `None` if processes are not stopped.
    pub(super) stopped: Option<Stopped>,
    pub(super) control: Control,
    pub(super) rings: CpuRings,
    /// `None` if thread contexts are not read.
    pub(super) thread_contexts: Option<ThreadContexts>,
    /// `None` if the rate of stacks is not limited.
    stack_rates: Option<OwnedFd>,
}

impl Objects {
    /// Creates the objects for the sample ids of `samples`.
    pub(super) fn create(
        request: &AttachRequest<'_>,
        ring_bytes: usize,
        btf: Option<&Btf>,
        preemption: Option<Preemption>,
        samples: &Samples,
    ) -> Result<Self, RecordError> {
        let control = Control::new(samples.ids(), samples.strings());
        let control = control.map_err(setup(BpfObject::Control))?;
        let AttachRequest {
            options,
            watch,
            filter,
            planting,
            ..
        } = request;
        let sizes = Sizes {
            cpus: &watch.cpus,
            bytes: ring_bytes,
        };
        let rings = CpuRings::new(sizes).map_err(setup(BpfObject::Rings))?;
        let apart = attach::can_be_apart(request).then_some(&control);
        let tracked = Tracked::new(filter, btf, preemption, apart);
        let tracked = tracked.map_err(setup(BpfObject::Follower))?;
        let stopped = options
            .lossless
            .then(|| Stopped::new(&control, *planting))
            .transpose();
        let stack_rates = options.graph.and_then(|graph| graph.rate);
        let stack_rates = stack_rates.map(|_| stack_rates::create()).transpose();
        let thread_contexts = options
            .thread_context
            .then(|| ThreadContexts::new(btf, preemption))
            .transpose();
        Ok(Self {
            thread_contexts: thread_contexts.map_err(setup(BpfObject::ThreadContexts))?,
            stack_rates: stack_rates.map_err(setup(BpfObject::Control))?,
            tracked,
            stopped: stopped.map_err(setup(BpfObject::StoppedProcesses))?,
            control,
            rings,
        })
    }

    /// The maps, for programs.
    pub(super) fn maps(&self) -> Maps<'_> {
        Maps {
            rings: self.rings.array(),
            control: self.control.as_fd(),
            tracked: self.tracked.as_fd(),
            can_hold: self.tracked.hold.is_some(),
            stopped: self.stopped.as_ref().map(AsFd::as_fd),
            stack_rates: self.stack_rates.as_ref().map(AsFd::as_fd),
            thread_contexts: self.thread_contexts.as_ref().map(AsFd::as_fd),
            spared: self.stopped.as_ref().map(Stopped::spared),
        }
    }

    /// Continues all stopped processes.
    pub(super) fn let_go(&self) {
        if let Some(stopped) = &self.stopped {
            stopped.let_go();
        }
    }
}

/// The error for an object that cannot be created.
pub(super) fn setup(object: BpfObject) -> impl FnOnce(io::Error) -> RecordError {
    move |source| RecordError::Kernel {
        operation: KernelOperation::BpfObject(object),
        source,
    }
}
