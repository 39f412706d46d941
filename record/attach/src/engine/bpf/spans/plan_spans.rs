//! Planning events with what they are to spans.

use std::collections::BTreeMap;

use super::super::plan::{self, Group, PlanRequest};
use super::arguments::{MatchedBy, SpanArguments};
use super::entry::SpanMemory;
use super::planner::with_roles;
use crate::error::RecordError;

/// Plans the events of all probes, with what each is to spans that programs match. `memory` is that of the recording, if it has begun.
///
/// # Errors
/// The errors of [`plan::group`]; [`RecordError::Usage`] if there is no such span, or programs cannot match it, and that is required.
pub(in crate::engine::bpf) fn plan_spans(
    request: &PlanRequest<'_>,
    memory: Option<SpanMemory>,
) -> Result<Vec<Group>, RecordError> {
    let options = request.options;
    let planned = |arguments: &SpanArguments| {
        let groups = plan::group(request, arguments)?;
        with_roles(groups, options, memory)
    };
    if options.aggregation.is_none() || options.slow_spans.is_none() {
        return planned(&SpanArguments::None);
    }
    // Which arguments match spans depends on those of both sides.
    let all = planned(&SpanArguments::All)?;
    planned(&SpanArguments::OfEvents(matched_by(&all)))
}

/// The arguments of the events of spans.
fn matched_by(groups: &[Group]) -> BTreeMap<String, MatchedBy> {
    let mut events: BTreeMap<String, MatchedBy> = BTreeMap::new();
    for group in groups {
        let Some(role) = &group.role else {
            continue;
        };
        let arguments = role.places.iter();
        let arguments = arguments.filter_map(|place| group.probe.arguments.get(*place));
        let matched = events.entry(group.probe.event()).or_default();
        matched.has_keys = role.begins;
        matched
            .names
            .extend(arguments.map(|argument| argument.name.clone()));
    }
    events
}
