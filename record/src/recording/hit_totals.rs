//! What was aggregated in the kernel, as it is read from the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use usdtrec_attach::aggregation::{SpanHitCounts, SpanHits};
use usdtrec_attach::engine::Engine;
use usdtrec_attach::error::RecordError;
use usdtrec_kernel::KernelError;
use usdtrec_kernel::clocks::trace_clock;

use super::losses::ProbeHits;
use super::outcome::HitTotals;

/// What was aggregated until now. `hits` has those of all probes.
///
/// # Errors
/// [`KernelError::Host`] if the groups cannot be read.
pub(super) fn read(
    engine: &Engine,
    elapsed: Duration,
    hits: Vec<ProbeHits>,
) -> Result<HitTotals, RecordError> {
    // Counted before their groups are read: a span in them has ended by then.
    let sites = engine.span_sites();
    let groups = engine.hit_groups();
    let groups = groups.map_err(KernelError::host("the groups of hits"))?;
    let mut spans: BTreeMap<String, SpanHits> = BTreeMap::new();
    let mut of_spans = BTreeSet::new();
    for site in sites {
        let span = spans.entry(site.name.clone()).or_insert_with(|| SpanHits {
            name: site.name,
            counts: SpanHitCounts::default(),
            lost: 0,
        });
        span.counts = span.counts.plus(site.counts);
        if of_spans.insert(site.probe) {
            span.lost += hits.get(site.probe).map_or(0, |probe| probe.lost);
        }
    }
    let hits = hits.into_iter().enumerate();
    let others = hits.filter(|(probe, _)| !of_spans.contains(probe));
    Ok(HitTotals {
        elapsed,
        time: trace_clock::now(),
        hits: others.map(|(_, hits)| hits).collect(),
        groups,
        spans: spans.into_values().collect(),
    })
}
