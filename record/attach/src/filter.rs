//! The filter of a probe, evaluated on its samples.

use usdtrec_decode::{Decoder, Filter, FilterError, SampleField, SampleStrings};
use usdtrec_format::expr::{Datum, Expr};
use usdtrec_format::perf::{Sample, SampleLayout};
use usdtrec_format::{HexId, ThreadContext, Value};

use crate::engine::outcome::ProbeAttr;
use crate::error::RecordError;
use crate::error::UsageError;
use crate::select::probe::PlannedProbe;

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

/// Decodes the samples of one site.
#[derive(Clone, Debug)]
pub struct SiteDecoder {
    decoder: Decoder,
    values: Vec<Value>,
    layout: SampleLayout,
    /// Offset of the thread context in the raw part.
    thread_context: Option<u16>,
}

impl SiteDecoder {
    /// The decoders of the sites of a probe, by sample id.
    pub fn of_probe<'a>(
        probe: &'a PlannedProbe,
        attrs: &'a ProbeAttr,
    ) -> impl Iterator<Item = (u64, Self)> + 'a {
        let attr = &attrs.attr.attr;
        let sites = probe.sites.iter().zip(&attrs.site_ids);
        sites.flat_map(move |(site, ids)| {
            let decoder = match &probe.plan.raw {
                Some(layout) => Decoder::from_raw(&site.site.args, probe.arch, layout),
                None => Decoder::from_operands(&site.operands, probe.arch, attr),
            };
            let decoder = decoder.typed(&probe.arguments);
            ids.iter().map(move |id| {
                let site = Self {
                    values: decoder.values(),
                    decoder: decoder.clone(),
                    layout: SampleLayout::new(attr),
                    thread_context: probe.plan.raw.as_ref().and_then(|raw| raw.thread_context),
                };
                (*id, site)
            })
        })
    }

    /// The fields of a sample; `None` if it is too short.
    pub fn parse<'s>(&self, body: &'s [u8]) -> Option<Sample<'s>> {
        self.layout.parse(body)
    }

    /// The arguments of a sample.
    pub fn values(&mut self, sample: &Sample<'_>) -> &[Value] {
        self.decoder.decode(sample, &mut self.values);
        &self.values
    }

    /// The thread context of a sample, if it has one.
    pub fn context(&self, sample: &Sample<'_>) -> Option<ThreadContext> {
        let at = self.thread_context?;
        ThreadContext::decode(sample.raw, at).ok()
    }
}
