//! Filters in user space, where the kernel cannot evaluate them: samples for which a filter is not true are not written.
//!
//! The decoder and the filter are those of `script`, so that both reject the same hits. Filters on texts are refused
//! here: perf events record no memory.

use std::collections::HashMap;

use usdtrec_decode::{Decoder, Filter, SampleTexts};
use usdtrec_format::Value;
use usdtrec_format::perf::{RecordType, Records, SampleLayout};

use crate::engine::Attached;
use crate::error::RecordError;
use crate::recording::filter;
use crate::select::probe::PlannedProbe;

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
}

impl UserFilter {
    /// The filters of all attached probes that the kernel does not evaluate; `None` if there are none.
    ///
    /// # Errors
    /// As [`filter::of_samples`].
    pub(crate) fn for_attached(attached: &Attached) -> Result<Option<Self>, RecordError> {
        let mut sites = HashMap::new();
        let probes = attached.probes.iter().zip(&attached.attrs);
        let is_late = |probe: &PlannedProbe| probe.plan.raw.is_none() || probe.filter_in_recorder;
        for (probe, attrs) in probes.filter(|(probe, _)| is_late(probe)) {
            let Some(filter) = filter::of_samples(probe)? else {
                continue;
            };
            let attr = &attrs.attr.attr;
            for (site, ids) in probe.sites.iter().zip(&attrs.site_ids) {
                let decoder = match &probe.plan.raw {
                    Some(layout) => Decoder::of_raw(&site.site.args, probe.arch, layout),
                    None => Decoder::of_operands(&site.operands, probe.arch, attr),
                };
                let decoder = decoder.typed(&probe.arguments);
                sites.extend(ids.iter().map(|id| {
                    let site = Site {
                        filter: filter.clone(),
                        values: decoder.values(),
                        decoder: decoder.clone(),
                        layout: SampleLayout::new(attr),
                    };
                    (*id, site)
                }));
            }
        }
        let left_out = 0;
        Ok((!sites.is_empty()).then_some(Self { sites, left_out }))
    }

    /// Number of samples dropped so far.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Passes whole records to `sink`, except for samples for which their filter is not true.
    pub(crate) fn pass(&mut self, records: &[u8], mut sink: impl FnMut(&[u8])) {
        let (mut walk, mut begin, mut at) = (Records::new(records), 0, 0);
        while let Some(record) = walk.next() {
            let end = walk.offset();
            let is_sample = record.kind == RecordType::SAMPLE;
            if is_sample && !self.lets_through(record.body) {
                self.left_out += 1;
                sink(&records[begin..at]);
                begin = end;
            }
            at = end;
        }
        // The writer reports bytes that are not a whole record.
        sink(&records[begin..]);
    }

    fn lets_through(&mut self, body: &[u8]) -> bool {
        // `PERF_SAMPLE_IDENTIFIER` puts the id first.
        let id = body.first_chunk().map(|id| u64::from_ne_bytes(*id));
        let Some(site) = id.and_then(|id| self.sites.get_mut(&id)) else {
            return true;
        };
        let Some(sample) = site.layout.parse(body) else {
            return true;
        };
        site.decoder.decode(&sample, &mut site.values);
        site.filter
            .is_true(&sample, &site.values, &SampleTexts::UNKNOWN)
    }
}
