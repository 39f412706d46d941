//! What was counted in each interval, from what was counted in all.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use usdtrec_record::HitTotals;
use usdtrec_report::stat::{StatCounts, StatProbe};

/// What was counted before the interval.
#[derive(Default)]
pub(super) struct Intervals {
    elapsed: Duration,
    hits: BTreeMap<String, Hits>,
}

/// Hits of the probes of one name.
#[derive(Clone, Copy, Default)]
struct Hits {
    count: u64,
    lost: u64,
}

impl Intervals {
    /// The counts since the last call, or the start: the most hits first, and of equal counts, by name.
    pub(super) fn next(&mut self, counted: &HitTotals) -> StatCounts {
        let mut hits: BTreeMap<String, Hits> = BTreeMap::new();
        for probe in &counted.hits {
            let sum = hits.entry(probe.event.clone()).or_default();
            sum.count += probe.hits - probe.lost;
            sum.lost += probe.lost;
        }
        let earlier = std::mem::replace(&mut self.hits, hits);
        let since = std::mem::replace(&mut self.elapsed, counted.elapsed);
        let probes = self.hits.iter().map(|(event, now)| {
            let before = earlier.get(event).copied().unwrap_or_default();
            StatProbe {
                event: event.clone(),
                count: now.count - before.count,
                lost: now.lost - before.lost,
            }
        });
        let mut probes: Vec<StatProbe> = probes.collect();
        probes.sort_by_key(|probe| Reverse(probe.count));
        StatCounts {
            elapsed: counted.elapsed,
            interval: counted.elapsed.saturating_sub(since),
            probes,
        }
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_record::ProbeHits;

    use super::*;

    fn counted(seconds: u64, hits: &[(&str, u64, u64)]) -> HitTotals {
        let hits = hits.iter().map(|(event, hits, lost)| ProbeHits {
            event: (*event).to_owned(),
            hits: *hits,
            lost: *lost,
        });
        HitTotals {
            elapsed: Duration::from_secs(seconds),
            hits: hits.collect(),
        }
    }

    #[test]
    fn intervals_add_up_to_the_whole() {
        let mut intervals = Intervals::default();
        let first = intervals.next(&counted(2, &[("b", 3, 1), ("a", 2, 0), ("b", 1, 0)]));
        let shown = |counts: &StatCounts| {
            let probes = counts.probes.iter();
            let shown =
                probes.map(|probe| format!("{} {} {}", probe.event, probe.count, probe.lost));
            shown.collect::<Vec<_>>()
        };
        assert_eq!(shown(&first), ["b 3 1", "a 2 0"]);
        let second = intervals.next(&counted(
            3,
            &[("b", 4, 1), ("a", 2, 0), ("b", 1, 0), ("c", 7, 0)],
        ));
        assert_eq!(shown(&second), ["c 7 0", "b 1 0", "a 0 0"]);
        assert_eq!(
            (second.elapsed.as_secs(), second.interval.as_secs()),
            (3, 1)
        );
    }
}
