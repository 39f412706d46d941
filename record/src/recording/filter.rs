//! The filter of a probe, evaluated on its samples.

use usdtrec_decode::{Filter, FilterError, SampleField};

use crate::error::RecordError;
use crate::select::probe::PlannedProbe;
use crate::usage_error::UsageError;

/// Binds the filter of a probe to the values that are in samples; `has_context` is whether they have the thread context.
///
/// # Errors
/// [`UsageError::FilterName`] for unknown arguments; [`UsageError::FilterReadsMemory`] and
/// [`UsageError::FilterOfUser`] for texts and other memory, and for users, which are not sampled.
pub(crate) fn of_samples(
    probe: &PlannedProbe,
    has_context: bool,
) -> Result<Option<Filter>, RecordError> {
    let Some(asked) = probe.own_filter() else {
        return Ok(None);
    };
    let of_context = SampleField::OF_CONTEXT.iter().filter(|_| has_context);
    let fields: Vec<SampleField> = SampleField::OF_HIT
        .iter()
        .chain(of_context)
        .copied()
        .collect();
    let bound = Filter::bind(asked, &probe.event(), &probe.arguments, &fields);
    let filter = bound.map_err(|error| {
        let (FilterError::Name(error) | FilterError::Word(error)) = error;
        UsageError::FilterName {
            event: probe.event(),
            error,
        }
    })?;
    if filter.reads_memory() {
        let event = probe.event();
        return Err(UsageError::FilterReadsMemory { event }.into());
    }
    if probe.plan.raw.is_none() && filter.fields().contains(&SampleField::Uid) {
        let event = probe.event();
        return Err(UsageError::FilterOfUser { event }.into());
    }
    Ok(Some(filter))
}
