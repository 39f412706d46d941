//! Filters in user space, where the kernel cannot evaluate them: samples for which a filter is not true are not written.
//!
//! The decoder and the filter are those of `script`, so that both reject the same hits. Filters on strings are refused
//! here: perf events record no memory. The ids of the thread context are in samples of programs.

use std::collections::HashMap;
use std::ops::Range;

use usdtrec_attach::engine::Attached;
use usdtrec_attach::error::RecordError;
use usdtrec_attach::filter;
use usdtrec_attach::filter::SiteDecoder;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_decode::Filter;
use usdtrec_watch::batch::{Batch, Record};
use usdtrec_watch::stage::Stage;

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
    decoder: SiteDecoder,
}

impl UserFilter {
    /// The filters of attached probes that the kernel does not evaluate. `probes` are indexes of
    /// [`Attached::probes`].
    ///
    /// # Errors
    /// As [`filter::of_samples`].
    pub(crate) fn for_attached(
        attached: &Attached,
        probes: Range<usize>,
    ) -> Result<Self, RecordError> {
        let mut sites = HashMap::new();
        let of_probes = attached.probes.iter().zip(&attached.attrs);
        let of_probes = of_probes.skip(probes.start).take(probes.len());
        let is_late = |probe: &PlannedProbe| probe.plan.raw.is_none() || probe.filter_in_recorder;
        for (probe, attrs) in of_probes.filter(|(probe, _)| is_late(probe)) {
            let thread_context = probe.plan.raw.as_ref().and_then(|raw| raw.thread_context);
            if let Some(filter) = filter::of_samples(probe, thread_context.is_some())? {
                let of_probe = SiteDecoder::of_probe(probe, attrs);
                sites.extend(of_probe.map(|(id, decoder)| {
                    let filter = filter.clone();
                    (id, Site { filter, decoder })
                }));
            }
        }
        let left_out = 0;
        Ok(Self { sites, left_out })
    }

    /// Adds the filters of further probes.
    pub(crate) fn add(&mut self, others: Self) {
        self.sites.extend(others.sites);
    }
}

impl Stage for UserFilter {
    fn take<'a>(&'a mut self, mut batch: Batch<'a>) -> Batch<'a> {
        let Self { sites, left_out } = self;
        if sites.is_empty() {
            return batch;
        }
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
    let Site { filter, decoder } = site;
    let sample = decoder.parse(record.body());
    sample.is_none_or(|sample| filter::is_true(filter, decoder, &sample))
}
