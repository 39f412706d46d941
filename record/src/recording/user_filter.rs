//! Filters in user space, where the kernel cannot evaluate them: samples for which a filter is not true are not written.
//!
//! The decoder and the filter are those of `script`, so that both reject the same hits. Filters on texts are refused
//! here: perf events record no memory. The ids of the thread context are in samples of programs.

use std::collections::HashMap;
use std::ops::Range;

use usdtrec_decode::{Decoder, Filter, SampleField, SampleTexts};
use usdtrec_format::expr::Datum;
use usdtrec_format::perf::SampleLayout;
use usdtrec_format::{HexId, ThreadContext, Value};

use crate::batch::{Batch, Record};
use crate::engine::{Attached, ProbeAttr};
use crate::error::RecordError;
use crate::recording::filter;
use crate::select::probe::PlannedProbe;
use crate::stage::Stage;

/// Drops samples for which their filter is not true.
#[derive(Debug)]
pub(crate) struct UserFilter {
    /// Sites with filters, by sample id.
    sites: HashMap<u64, Site>,
    left_out: u64,
}

/// A site with a filter.
#[derive(Debug)]
struct Site {
    filter: Filter,
    decoder: Decoder,
    values: Vec<Value>,
    layout: SampleLayout,
    /// Offset of the thread context in the raw part.
    thread_context: Option<u16>,
}

impl UserFilter {
    /// The filters of attached probes that the kernel does not evaluate; `None` if there are none. `probes` are indexes of
    /// [`Attached::probes`].
    ///
    /// # Errors
    /// As [`filter::of_samples`].
    pub(crate) fn for_attached(
        attached: &Attached,
        probes: Range<usize>,
    ) -> Result<Option<Self>, RecordError> {
        let mut sites = HashMap::new();
        let of_probes = attached.probes.iter().zip(&attached.attrs);
        let of_probes = of_probes.skip(probes.start).take(probes.len());
        let is_late = |probe: &PlannedProbe| probe.plan.raw.is_none() || probe.filter_in_recorder;
        for (probe, attrs) in of_probes.filter(|(probe, _)| is_late(probe)) {
            let thread_context = probe.plan.raw.as_ref().and_then(|raw| raw.thread_context);
            if let Some(filter) = filter::of_samples(probe, thread_context.is_some())? {
                sites.extend(sites_of(probe, attrs, &filter));
            }
        }
        let left_out = 0;
        Ok((!sites.is_empty()).then_some(Self { sites, left_out }))
    }

    /// Adds the filters of further probes.
    pub(crate) fn add(&mut self, others: Self) {
        self.sites.extend(others.sites);
    }
}

/// The sites of a probe with a filter, by sample id.
fn sites_of<'a>(
    probe: &'a PlannedProbe,
    attrs: &'a ProbeAttr,
    filter: &'a Filter,
) -> impl Iterator<Item = (u64, Site)> + 'a {
    let attr = &attrs.attr.attr;
    let sites = probe.sites.iter().zip(&attrs.site_ids);
    sites.flat_map(move |(site, ids)| {
        let decoder = match &probe.plan.raw {
            Some(layout) => Decoder::from_raw(&site.site.args, probe.arch, layout),
            None => Decoder::from_operands(&site.operands, probe.arch, attr),
        };
        let decoder = decoder.typed(&probe.arguments);
        ids.iter().map(move |id| {
            let site = Site {
                filter: filter.clone(),
                values: decoder.values(),
                decoder: decoder.clone(),
                layout: SampleLayout::new(attr),
                thread_context: probe.plan.raw.as_ref().and_then(|raw| raw.thread_context),
            };
            (*id, site)
        })
    })
}

impl Stage for UserFilter {
    fn take<'a>(&'a mut self, mut batch: Batch<'a>) -> Batch<'a> {
        let Self { sites, left_out } = self;
        *left_out += batch.retain(|record| lets_through(sites, record));
        batch
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn lets_through(sites: &mut HashMap<u64, Site>, record: Record<'_>) -> bool {
    let head = record.sample();
    let Some(site) = head.and_then(|head| sites.get_mut(&head.id)) else {
        return true;
    };
    let Some(sample) = site.layout.parse(record.body()) else {
        return true;
    };
    site.decoder.decode(&sample, &mut site.values);
    let mut texts = SampleTexts::UNKNOWN;
    let context = site.thread_context;
    if let Some(Ok(context)) = context.map(|at| ThreadContext::decode(sample.raw, at)) {
        let ids = [&context.trace_id[..], &context.span_id];
        let digits = ids.map(|id| HexId::new(id).as_str().as_bytes().to_vec());
        let names = SampleField::OF_CONTEXT.iter().map(|field| field.name());
        let ids = names
            .zip(digits)
            .map(|(name, id)| (name, Datum::Text(id.into())));
        texts.process.extend(ids);
    }
    site.filter.is_true(&sample, &site.values, &texts)
}
