//! Plans all probes but those that cannot be planned, or whose events no trace can have, because of what their file is.
//!
//! What is wrong with a file that any user's process maps is no error of the recording. An error about a file that the user named is one, unless it is
//! about the trace.

use usdtrec_format::perf::TracepointFormat;
use usdtrec_format::trace::Limit;

use super::plan::{self, Group, PlanRequest};
use super::spans::{SpanArguments, SpanMemory, plan_spans, with_own_filters};
use crate::error::RecordError;
use crate::select::probe::{PlannedProbe, RefusedProbe};
use crate::select::refusal::RefusalReason;
use crate::usage_error::UsageError;

/// Maximum size of the format of an event for stock perf, bytes: with it, the next event can be added to the trace
/// ([`Limit::Format`]).
const MAX_FORMAT: usize = Limit::Format.max() as usize;

/// Planned events, and the probes that were left out.
#[derive(Debug)]
pub(super) struct Fitting {
    pub(super) groups: Vec<Group>,
    pub(super) refused: Vec<RefusedProbe>,
}

impl Fitting {
    /// Plans the events of all probes; `memory` as in [`plan_spans`].
    ///
    /// # Errors
    /// Those of [`plan_spans`], for probes of files that the user named, or if nothing is left.
    pub(super) fn plan(
        request: &PlanRequest<'_>,
        memory: Option<SpanMemory>,
    ) -> Result<Self, RecordError> {
        let spans = request.options.slow_spans.as_ref();
        let spans = spans.filter(|_| request.options.aggregation.is_none());
        let filtered = spans.map(|spans| with_own_filters(request.probes, spans));
        let request = &PlanRequest {
            probes: filtered.as_deref().unwrap_or(request.probes),
            ..*request
        };
        let planned = plan_spans(request, memory);
        if let Ok(groups) = &planned
            && groups.iter().all(|group| too_long(group).is_none())
        {
            let refused = Vec::new();
            return planned.map(|groups| Self { groups, refused });
        }
        let (mut kept, mut refused) = (Vec::new(), Vec::new());
        for probe in request.probes {
            match fault(request, probe)? {
                None => kept.push(probe.clone()),
                Some(probe) => refused.push(probe),
            }
        }
        if let Some(first) = refused.pop_if(|_| kept.is_empty()) {
            return Err(first.error);
        }
        let request = PlanRequest {
            probes: &kept,
            ..*request
        };
        let groups = plan_spans(&request, memory)?;
        Ok(Self { groups, refused })
    }
}

/// Why a probe is left out.
///
/// # Errors
/// Those of [`plan::group`], for probes of files that the user named.
fn fault(
    request: &PlanRequest<'_>,
    probe: &PlannedProbe,
) -> Result<Option<RefusedProbe>, RecordError> {
    let request = PlanRequest {
        probes: std::slice::from_ref(probe),
        ..*request
    };
    match plan::group(&request, &SpanArguments::None) {
        Ok(groups) => Ok(groups.iter().find_map(too_long).map(|reason| RefusedProbe {
            error: probe.refused(reason),
            probe: probe.clone(),
        })),
        Err(RecordError::Usage(UsageError::FilterNeverTrue)) => Ok(None),
        Err(error) => probe.refused_for(error).map(Some),
    }
}

/// Why the format of an event does not fit into a trace.
fn too_long(group: &Group) -> Option<RefusalReason> {
    let bytes = bytes(&group.format());
    (bytes > MAX_FORMAT).then_some(RefusalReason::LongFormat {
        bytes,
        most: MAX_FORMAT,
    })
}

/// Size of a format as it is written, bytes, or more.
fn bytes(format: &TracepointFormat) -> usize {
    /// What is written of each field beside its declaration; the common fields, the name of a system and what else is always there.
    const OF_FIELD: usize = 64;
    const OTHERS: usize = 1024;
    let fields = format.fields.iter();
    let fields: usize = fields.map(|field| field.declaration.len() + OF_FIELD).sum();
    let arguments = format.print_arguments.iter();
    let arguments: usize = arguments.map(|argument| argument.len() + 2).sum();
    let names = format.name.len() + format.system.len();
    OTHERS + names + fields + format.print.len() + arguments
}
