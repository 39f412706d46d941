//! From a sample's id to its event and site.

use foldhash::HashMap;
use usdtrec_format::perf::{EventAttr, SampleType};

use crate::session::events::Events;

/// The event and the site of a sample id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleTarget {
    /// Index of the event.
    pub event: u32,
    /// Index of the site; `None` if the id alone does not say.
    pub site: Option<u32>,
}

/// The ids of a trace. Ids are counted up by the kernel, so those of one trace are mostly close together.
#[derive(Debug)]
pub(crate) struct SampleIds {
    /// Whether every sample begins with its id (`PERF_SAMPLE_IDENTIFIER`).
    pub(crate) in_front: bool,
    /// Whom a sample without an id belongs to: the only event that fires.
    pub(crate) only: Option<SampleTarget>,
    first: u64,
    dense: Vec<Option<SampleTarget>>,
    sparse: HashMap<u64, SampleTarget>,
}

/// Most entries of the dense table for each id in it.
const SPREAD: u64 = 4;

impl SampleIds {
    pub(crate) fn new(attrs: &[EventAttr], events: &Events) -> Self {
        let mut targets = HashMap::default();
        for (event, attr) in (0..).zip(attrs) {
            for &id in &attr.ids {
                targets.insert(id, SampleTarget { event, site: None });
            }
        }
        for shared in by_id(events).chunk_by(|a, b| a.0 == b.0) {
            // An id that several sites share says nothing about the site.
            if let [(id, event, site), ref others @ ..] = *shared {
                let known = targets.get(&id).map_or(event, |target| target.event);
                let site = others.is_empty().then_some(site);
                targets.insert(id, SampleTarget { event: known, site });
            }
        }
        let firing: Vec<u32> = (0..)
            .zip(&events.events)
            .filter(|(_, event)| !event.is_dummy())
            .map(|(at, _)| at)
            .collect();
        let only = match firing[..] {
            [event] => Some(SampleTarget { event, site: None }),
            _ => None,
        };
        let in_front = !attrs.is_empty()
            && attrs
                .iter()
                .all(|event| event.attr.sample_type.has(SampleType::IDENTIFIER));
        let mut ids = Self {
            in_front,
            only,
            first: 0,
            dense: Vec::new(),
            sparse: HashMap::default(),
        };
        ids.fill(targets);
        ids
    }

    fn fill(&mut self, targets: HashMap<u64, SampleTarget>) {
        let first = targets.keys().min().copied().unwrap_or(0);
        let last = targets.keys().max().copied().unwrap_or(0);
        if last - first >= SPREAD.saturating_mul(targets.len() as u64) + 1024 {
            self.sparse = targets;
            return;
        }
        self.first = first;
        self.dense = vec![None; (last - first) as usize + 1];
        for (id, target) in targets {
            self.dense[(id - first) as usize] = Some(target);
        }
    }

    /// The event and the site of an id.
    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<SampleTarget> {
        match self.dense.get(id.wrapping_sub(self.first) as usize) {
            Some(target) => *target,
            None if self.sparse.is_empty() => None,
            None => self.sparse.get(&id).copied(),
        }
    }
}

/// Every id of every site, with its event and site, sorted.
fn by_id(events: &Events) -> Vec<(u64, u32, u32)> {
    let mut ids: Vec<_> = (0..)
        .zip(&events.events)
        .flat_map(|(event, owner)| owner.sites.clone().map(move |site| (event, site)))
        .flat_map(|(event, site)| {
            let ids = events.sites.get(site).map_or(&[][..], |site| &site.ids);
            ids.iter().map(move |&id| (id, event, site as u32))
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::Attr;
    use usdtrec_format::schema::Schemas;
    use usdtrec_format::schema::telemetry::Telemetry;
    use usdtrec_format::trace::TraceInfo;
    use usdtrec_format::{
        CapturePlan, CodePlace, Definitions, ProbeDefinition, Site, SiteDefinition,
    };

    use super::*;

    fn attr(name: &str, ids: &[u64]) -> EventAttr {
        EventAttr {
            attr: Attr {
                kind: 8,
                sample_type: SampleType::IDENTIFIER | SampleType::IP,
                ..Attr::default()
            },
            name: name.to_owned(),
            ids: ids.to_vec(),
        }
    }

    fn probe(event: &str, sites: &[&[u64]]) -> ProbeDefinition {
        ProbeDefinition {
            event: event.to_owned(),
            provider: String::new(),
            name: String::new(),
            description: None,
            needs: None,
            call: None,
            lock: None,
            telemetry: Telemetry::default(),
            filter: None,
            file: 0,
            plan: CapturePlan::default(),
            arguments: Vec::new(),
            shown: None,
            sites: sites
                .iter()
                .map(|ids| SiteDefinition {
                    site: Site {
                        pc: 0,
                        base: 0,
                        semaphore: 0,
                        offset: None,
                        semaphore_offset: None,
                        args: String::new(),
                    },
                    ids: ids.to_vec(),
                    place: CodePlace::default(),
                })
                .collect(),
        }
    }

    fn ids(attrs: &[EventAttr], probes: Vec<ProbeDefinition>) -> SampleIds {
        let definitions = Definitions {
            version: 1,
            producer: String::new(),
            engine: String::new(),
            uncounted: None,
            boot: None,
            files: Vec::new(),
            probes,
        };
        let info = TraceInfo {
            events: attrs.to_vec(),
            definitions: Some(definitions),
            ..TraceInfo::default()
        };
        let events = Events::new(&info, &Schemas::default());
        SampleIds::new(attrs, &events)
    }

    fn target(event: u32, site: Option<u32>) -> Option<SampleTarget> {
        Some(SampleTarget { event, site })
    }

    #[test]
    fn ids_lead_to_event_and_site() {
        let attrs = [
            attr("dummy:u", &[1]),
            attr("a:b", &[10, 11, 12, 13, 14]),
            attr("a:b", &[20]),
            attr("cycles", &[30]),
        ];
        let probes = vec![
            probe("a:b", &[&[10, 12], &[11, 12], &[12]]),
            probe("a:b", &[&[20]]),
        ];
        let ids = ids(&attrs, probes);
        assert!(ids.in_front);
        assert_eq!(ids.only, None);
        assert_eq!(ids.get(10), target(1, Some(0)));
        assert_eq!(ids.get(11), target(1, Some(1)));
        assert_eq!(ids.get(12), target(1, None), "three sites share it");
        assert_eq!(ids.get(14), target(1, None));
        assert_eq!(ids.get(20), target(2, Some(3)));
        assert_eq!(ids.get(30), target(3, None));
        for unknown in [0, 2, 15, 31, u64::MAX] {
            assert_eq!(ids.get(unknown), None);
        }
    }

    #[test]
    fn ids_far_apart_take_no_table() {
        let ids = ids(&[attr("a:b", &[1, u64::MAX])], Vec::new());
        assert!(ids.dense.is_empty());
        assert_eq!(ids.get(u64::MAX), target(0, None));
        assert_eq!(ids.get(2), None);
        assert_eq!(ids.only, target(0, None));
    }
}
