//! Attaching all probes with perf events.

use super::super::events::event::Mode;
use super::super::events::rings::Rings;
use super::super::opened::Opened;
use super::super::options::AttachRequest;
use super::super::task_filter::TaskFilter;
use super::inexact::InexactCounts;
use super::{PerfEngine, PerfMethod};
use crate::error::RecordError;
use crate::select::probe::{PlannedProbe, RefusedProbe};

impl PerfEngine {
    /// Attaches all probes, disabled.
    pub fn open(
        probes: Vec<PlannedProbe>,
        request: &AttachRequest<'_>,
        method: PerfMethod,
        mode: Mode,
    ) -> Result<Opened<Self>, RecordError> {
        let perf_target = &request.perf_target;
        let rings = Rings::map(mode, &perf_target.cpus, request.options.ring_bytes)?;
        let sites = probes.iter().map(|probe| probe.sites.len()).sum();
        request.announce(method.removals(sites, perf_target));
        let mut opened = Opened {
            engine: Self {
                probes: Vec::new(),
                rings,
                inexact: inexact(&method, mode, request),
                method,
                pmu: request.pmu,
                mode,
            },
            probes: Vec::new(),
            attrs: Vec::new(),
            refused: Vec::new(),
        };
        for probe in probes {
            match opened.engine.attach(&probe, request) {
                Ok(attr) => {
                    opened.attrs.push(attr);
                    opened.probes.push(probe);
                }
                Err(error @ RecordError::Interrupted(_)) => return Err(error),
                Err(error) => opened.refused.push(RefusedProbe { probe, error }),
            }
        }
        Ok(opened)
    }
}

/// Why perf events may miss hits or count them twice without reporting it.
fn inexact(method: &PerfMethod, mode: Mode, request: &AttachRequest<'_>) -> Option<InexactCounts> {
    let perf_target = &request.perf_target;
    match method {
        _ if matches!(request.filter, TaskFilter::ProcessesAlone(_)) => {
            Some(InexactCounts::NotInherited)
        }
        // A tracefs event is one consumer of a site, however many perf events are opened on it.
        PerfMethod::Tracefs(_) if perf_target.inherit => Some(InexactCounts::Inherited),
        // Each PMU event is a consumer of its own. They run one after the other, and each compares its CPU with the current one.
        PerfMethod::Pmu if perf_target.cpus.len() > 1 => Some(InexactCounts::PmuOnSeveralCpus),
        _ if !mode.counts_losses => Some(InexactCounts::LossesNotCounted),
        _ => None,
    }
}
