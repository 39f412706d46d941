//! Opening what a recording needs in the kernel, with the first engine that works.

use std::io;

use usdtrec_kernel::KernelError;

use super::attached::Attached;
use super::bpf::bpf_engine::BpfEngine;
use super::dispatch::Engine;
use super::events::event::refusal;
use super::events::event::{Event, KernelAttr, Mode};
use super::events::process_events::Processes;
use super::options::AttachRequest;
use super::options::EngineChoice;
use super::options::NonResident;
use super::perf::{self, PerfEngine, PerfMethod};
use crate::error::RecordError;
use crate::error::TargetError;
use crate::error::{SpanFault, UsageError};
use crate::select::argument_list::leave_out_unfit;
use crate::select::probe::PlannedProbe;

impl Attached {
    /// Opens everything, disabled, with the first engine that works. Without probes, which may be added later, that is the bpf engine.
    pub fn open(
        mut probes: Vec<PlannedProbe>,
        request: &AttachRequest<'_>,
    ) -> Result<Self, RecordError> {
        let options = request.options;
        let spans = options.slow_spans.as_ref();
        let spans_required = spans.is_some_and(|spans| spans.is_required);
        let mut passed_over = None;
        if !options.choice.bpf_attach_methods().is_empty() {
            match Self::open_bpf(&probes, request) {
                Ok(attached) => return Ok(attached),
                Err(error @ (RecordError::Usage(_) | RecordError::Interrupted(_))) => {
                    return Err(error);
                }
                Err(error)
                    if options.choice == EngineChoice::Auto
                        && options.no_gap.is_none()
                        && options.processes.is_all()
                        && !options.thread_context
                        && !options.off_cpu
                        && options.aggregation.is_none()
                        && !spans_required
                        && options.nonresident == NonResident::Auto =>
                {
                    passed_over = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        if probes.is_empty() {
            return Err(passed_over.unwrap_or(RecordError::NotFollowed));
        }
        if spans_required {
            return Err(UsageError::Span(SpanFault::Engine).into());
        }
        perf::check(options)?;
        let unfit = leave_out_unfit(&mut probes, false, |probe| perf::check_probe(probe))?;
        match (Self::open_perf(probes, request), passed_over) {
            (Ok(mut attached), bpf) => {
                attached.passed_over = bpf;
                attached.refused.extend(unfit);
                Ok(attached)
            }
            (
                Err(
                    perf @ (RecordError::Kernel(KernelError::Operation { .. })
                    | RecordError::Attach { .. }
                    | RecordError::NoTracefs(_)),
                ),
                Some(bpf),
            ) => Err(RecordError::NoEngine {
                bpf: Box::new(bpf),
                perf: Box::new(perf),
            }),
            (Err(error), _) => Err(error),
        }
    }

    fn open_bpf(probes: &[PlannedProbe], request: &AttachRequest<'_>) -> Result<Self, RecordError> {
        // Probes of files that appear are attached as soon as possible.
        let mode = Mode {
            is_prompt: true,
            ..mode(request, false)?
        };
        let processes = Processes::open(mode, &request.perf_target)?;
        let opened = BpfEngine::open(probes, request, &processes.attr)?;
        let waits = opened.engine.wait_event(&processes.attr.attr);
        let opened = opened.with(|bpf| Engine::Bpf(Box::new(bpf)));
        let mut attached = Self::new(opened, processes, request.pmu);
        attached.waits = waits;
        Ok(attached)
    }

    fn open_perf(
        probes: Vec<PlannedProbe>,
        request: &AttachRequest<'_>,
    ) -> Result<Self, RecordError> {
        let method = PerfMethod::choose(request)?;
        let probes = perf::attach::split(probes);
        let keeps = perf::keeps_copies(&probes, request.options.graph)?;
        let mode = mode(request, keeps)?;
        let processes = Processes::open(mode, &request.perf_target)?;
        let opened = PerfEngine::open(probes, request, method, mode)?;
        Ok(Self::new(
            opened.with(|perf| Engine::Perf(Box::new(perf))),
            processes,
            request.pmu,
        ))
    }
}

/// The settings of events that this kernel supports, found by trying. `keeps` is whether copies of stacks are written.
fn mode(request: &AttachRequest<'_>, keeps: bool) -> Result<Mode, RecordError> {
    let perf_target = &request.perf_target;
    let mode = Mode {
        inherit: perf_target.inherit,
        enable_on_exec: perf_target.enable_on_exec,
        maps_data: false,
        is_prompt: false,
        graph: None,
        counts_losses: true,
    };
    let &[cpu, ..] = perf_target.cpus.as_slice() else {
        return Err(TargetError::NoCpu.into());
    };
    for mode in [
        mode,
        Mode {
            counts_losses: false,
            ..mode
        },
    ] {
        match Event::open(&KernelAttr::ring_owner(mode, 1), -1, cpu) {
            Ok(_) => {
                return Ok(Mode {
                    maps_data: keeps,
                    graph: request.options.graph,
                    ..mode
                });
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(refusal(error)),
        }
    }
    Err(refusal(io::Error::from_raw_os_error(libc::EINVAL)))
}
