//! What perf events can record.

use std::fs;

use super::super::bpf::NonResident;
use super::super::options::EngineOptions;
use crate::error::RecordError;
use crate::filter;
use crate::plan::call_graph::{CallGraph, CallGraphMethod};
use crate::select::probe::PlannedProbe;
use crate::usage_error::{ProgramFeature, UsageError};

/// Whether perf events can record what is asked for of a probe.
pub(crate) fn check_probe(probe: &PlannedProbe) -> Result<(), RecordError> {
    if let Some(argument) = probe.computed_argument() {
        let (event, argument) = (probe.event(), argument.to_string());
        return Err(UsageError::ComputedArgument { event, argument }.into());
    }
    filter::of_samples(probe, false)?;
    Ok(())
}

/// Whether perf events can record in the way that is asked for.
pub(crate) fn check(options: &EngineOptions) -> Result<(), RecordError> {
    if let Some(graph) = options.graph {
        check_callers(graph)?;
    }
    if !options.processes.is_all() {
        return Err(UsageError::NeedsBpf(ProgramFeature::ProcessChoice).into());
    }
    if options.thread_context {
        return Err(UsageError::NeedsBpf(ProgramFeature::ThreadContext).into());
    }
    if options.nonresident != NonResident::Auto {
        return Err(UsageError::NeedsBpf(ProgramFeature::NonResident).into());
    }
    Ok(())
}

/// Whether perf events can record callers beside what else is asked for.
fn check_callers(graph: CallGraph) -> Result<(), RecordError> {
    if graph.rate.is_some() {
        return Err(UsageError::NeedsBpf(ProgramFeature::StackRate).into());
    }
    // Documentation/admin-guide/sysctl/kernel.rst
    let most = fs::read_to_string("/proc/sys/kernel/perf_event_max_stack");
    let most = most.ok().and_then(|most| most.trim().parse().ok());
    match (graph.method, most) {
        (CallGraphMethod::FramePointers, Some(most)) if graph.frames > most => {
            Err(UsageError::MaxStack { most }.into())
        }
        _ => Ok(()),
    }
}

/// Whether copies of stacks are written.
///
/// # Errors
/// [`UsageError::LimitOfCopies`] if they are written for the arguments of a probe, so that a limit of frames is not kept.
pub(crate) fn keeps_copies(
    probes: &[PlannedProbe],
    graph: Option<CallGraph>,
) -> Result<bool, UsageError> {
    let keeps = |probe: &&PlannedProbe| graph.is_some_and(|graph| graph.keeps_copy(&probe.plan));
    let is_limited = |graph: CallGraph| graph.frames != CallGraph::USUAL_FRAMES;
    match probes.iter().find(keeps) {
        Some(probe) if graph.is_some_and(is_limited) => Err(UsageError::LimitOfCopies {
            probe: probe.event(),
        }),
        kept => Ok(kept.is_some()),
    }
}
