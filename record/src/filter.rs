//! The filter of a probe, asked of its samples.

use usdtrec_decode::{Filter, FilterError};

use crate::RecordError;
use crate::probe::PlannedProbe;

/// Binds the filter of a probe to the values that perf events sample.
///
/// # Errors
/// [`RecordError::Usage`] for unknown arguments, and for texts and other memory, which are not sampled.
pub(crate) fn of_samples(probe: &PlannedProbe) -> Result<Option<Filter>, RecordError> {
    let Some(asked) = &probe.filter else {
        return Ok(None);
    };
    let bound = Filter::bind(asked.clone(), &probe.event(), &probe.arguments);
    let filter = bound.map_err(|error| {
        let (FilterError::Name(error) | FilterError::Word(error)) = error;
        RecordError::Usage(format!("filter: {error}"))
    })?;
    if filter.reads_memory() {
        return Err(RecordError::Usage(
            "a filter with texts or other memory needs the bpf engine: record without the filter, and use it with script or report"
                .to_owned(),
        ));
    }
    Ok(Some(filter))
}
