//! Losses: hits that the kernel counted and had no room for in a ring.
//!
//! They come from `PERF_FORMAT_LOST`, read from every event at the end. They are exact even if the ring was full at the
//! end, when there is no `PERF_RECORD_LOST`. Hits that the kernel counted and that are neither in the file nor lost are
//! reported as such. What was aggregated in the kernel is read here, too.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::time::Duration;

use usdtrec_attach::aggregation::{SpanHitCounts, SpanHits};
use usdtrec_attach::engine::{Attached, Engine, IdCount, ProbeAttr};
use usdtrec_attach::error::RecordError;
use usdtrec_format::trace::Loss;
use usdtrec_kernel::KernelError;
use usdtrec_kernel::trace_clock;

use crate::recording::outcome::{HitTotals, ProbeHits};

/// The counts of all events at one moment.
#[derive(Debug, Default)]
pub(super) struct EventCounts {
    /// Losses of each event that lost something.
    losses: Vec<Loss>,
    /// All probes. A probe may be several events of one name.
    pub(super) by_probe: Vec<ProbeHits>,
    /// Hits of all probes.
    pub(super) hits: u64,
    /// Losses of all probes.
    pub(super) lost: u64,
}

impl EventCounts {
    /// Reads all counts.
    pub(super) fn read(attached: &Attached) -> io::Result<Self> {
        let probe = |of_probe: &ProbeAttr| ProbeHits {
            event: of_probe.attr.name.clone(),
            lost: 0,
            hits: 0,
        };
        let mut by_probe: Vec<ProbeHits> = attached.attrs.iter().map(probe).collect();
        let mut counts = Self::default();
        // Several events may have one id: those of a CPU that came later have that of another.
        let mut losses = BTreeMap::new();
        for counted in attached.engine.counts()? {
            let IdCount {
                probe: event,
                id,
                count,
            } = counted;
            let lost = count.lost.unwrap_or(0);
            counts.hits += count.hits;
            counts.lost += lost;
            by_probe[event].hits += count.hits;
            by_probe[event].lost += lost;
            if lost > 0 {
                *losses.entry((event, id)).or_insert(0) += lost;
            }
        }
        let loss = |((probe, id), lost)| Loss {
            event: attached.event_index(probe),
            id,
            lost,
        };
        counts.losses = losses.into_iter().map(loss).collect();
        counts.by_probe = by_probe;
        Ok(counts)
    }

    /// Probes that lost something, most first.
    pub(super) fn losing(&self) -> Vec<ProbeHits> {
        let losing = self.by_probe.iter().filter(|probe| probe.lost > 0);
        let mut losing: Vec<ProbeHits> = losing.cloned().collect();
        losing.sort_by_key(|probe| std::cmp::Reverse(probe.lost));
        losing
    }

    /// Events of the probes without hits.
    pub(super) fn silent(&self) -> Vec<String> {
        let hit = self.by_probe.iter().filter(|probe| probe.hits > 0);
        let hit: HashSet<&str> = hit.map(|probe| probe.event.as_str()).collect();
        let names = self.by_probe.iter().map(|probe| probe.event.as_str());
        let names: BTreeSet<&str> = names.filter(|name| !hit.contains(name)).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Losses since an earlier moment.
    pub(super) fn since(&self, earlier: &Self) -> Vec<Loss> {
        let before: HashMap<u64, u64> = earlier
            .losses
            .iter()
            .map(|loss| (loss.id, loss.lost))
            .collect();
        let since = |loss: &Loss| Loss {
            lost: loss.lost - before.get(&loss.id).copied().unwrap_or(0),
            ..*loss
        };
        self.losses
            .iter()
            .map(since)
            .filter(|loss| loss.lost > 0)
            .collect()
    }
}

/// What was aggregated until now. `hits` has those of all probes.
///
/// # Errors
/// [`KernelError::Host`] if the groups cannot be read.
pub(super) fn read_totals(
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
