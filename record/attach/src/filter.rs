//! The filter of a probe, evaluated on its samples.

use usdtrec_decode::{Filter, FilterError, SampleField, SampleStrings};
use usdtrec_format::HexId;
use usdtrec_format::expr::{Datum, Expr};
use usdtrec_format::perf::Sample;

use crate::error::RecordError;
use crate::select::probe::PlannedProbe;
use crate::site_decoder::SiteDecoder;
use crate::usage_error::UsageError;

/// Binds the filter of a probe to the values that are in samples; `has_context` is whether they have the thread context.
///
/// # Errors
/// [`UsageError::FilterName`] for unknown arguments; [`UsageError::FilterReadsMemory`] and
/// [`UsageError::FilterOfUser`] for strings and other memory, and for users, which are not sampled.
pub fn of_samples(probe: &PlannedProbe, has_context: bool) -> Result<Option<Filter>, RecordError> {
    let Some(asked) = probe.own_filter() else {
        return Ok(None);
    };
    let filter = bind(probe, asked, has_context)?;
    if filter.reads_memory() {
        let event = probe.event();
        return Err(UsageError::FilterReadsMemory { event }.into());
    }
    Ok(Some(filter))
}

/// Binds an expression to the values that are in samples of a probe.
///
/// # Errors
/// [`UsageError::FilterName`]; [`UsageError::FilterOfUser`].
pub fn bind(probe: &PlannedProbe, asked: Expr, has_context: bool) -> Result<Filter, RecordError> {
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
    if probe.plan.raw.is_none() && filter.fields().contains(&SampleField::Uid) {
        let event = probe.event();
        return Err(UsageError::FilterOfUser { event }.into());
    }
    Ok(filter)
}

/// Whether a filter is true for a sample of a site.
pub fn is_true(filter: &Filter, decoder: &mut SiteDecoder, sample: &Sample<'_>) -> bool {
    let mut strings = SampleStrings::UNKNOWN;
    if let Some(context) = decoder.context(sample) {
        let ids = [&context.trace_id[..], &context.span_id];
        let digits = ids.map(|id| HexId::new(id).as_str().as_bytes().to_vec());
        let names = SampleField::OF_CONTEXT.iter().map(|field| field.name());
        let ids = names
            .zip(digits)
            .map(|(name, id)| (name, Datum::String(id.into())));
        strings.process.extend(ids);
    }
    filter.is_true(sample, decoder.values(sample), &strings)
}
