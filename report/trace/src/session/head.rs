//! The part of a sample that is read before it is parsed: its event and its time; and for events whose ids do not say it, the site, by the address.

use foldhash::HashMap;

use crate::session::events::Events;
use crate::session::ids::{SampleIds, SampleTarget};

/// A sample's event, from the body of its record.
#[inline(always)]
pub(crate) fn target_of(body: &[u8], events: &Events, ids: &SampleIds) -> Option<SampleTarget> {
    match ids.in_front {
        true => ids.get(u64::from_le_bytes(*body.first_chunk::<8>()?)),
        false => target_within(body, events, ids),
    }
}

/// The same without identifiers in front: then all events of a file have their parts at the same places.
#[inline(never)]
fn target_within(body: &[u8], events: &Events, ids: &SampleIds) -> Option<SampleTarget> {
    let sample = events.events.first()?.layout.parse(body)?;
    ids.get(sample.id).or(ids.only)
}

/// When a sample's event was hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedTarget {
    pub(crate) target: SampleTarget,
    /// Time, ns of the trace's clock; 0 without times.
    pub(crate) time: u64,
}

/// A sample's event and time, from the body of its record.
#[inline(always)]
pub(crate) fn time_of(body: &[u8], events: &Events, ids: &SampleIds) -> Option<TimedTarget> {
    let target = target_of(body, events, ids)?;
    let event = events.events.get(target.event as usize)?;
    let time = match event.layout.time_offset() {
        None => 0,
        Some(offset) => u64::from_le_bytes(*body.get(offset..)?.first_chunk::<8>()?),
    };
    Some(TimedTarget { target, time })
}

/// Where the sites of all events are.
#[derive(Debug, Default)]
pub(crate) struct SitePlaces {
    /// By event and offset in a page: the only site there, `None` if there are several.
    in_page: HashMap<(u32, u16), Option<usize>>,
    /// By event and file offset, the first.
    in_file: HashMap<(u32, u64), usize>,
}

impl SitePlaces {
    pub(crate) fn new(events: &Events) -> Self {
        let mut places = Self::default();
        for (event, owner) in (0..).zip(&events.events) {
            for site in owner.sites.clone() {
                let Some(offset) = events.sites.get(site).and_then(|site| site.offset) else {
                    continue;
                };
                let in_page = places.in_page.entry((event, page_offset(offset)));
                in_page
                    .and_modify(|only| *only = None)
                    .or_insert(Some(site));
                places.in_file.entry((event, offset)).or_insert(site);
            }
        }
        places
    }

    /// The site at an address, by its offset in a page: `None` without a site, `Some(None)` if there are
    /// several. Files are mapped at page boundaries, so an address and its file offset end in the same bits.
    pub(crate) fn at_address(&self, event: u32, address: u64) -> Option<Option<usize>> {
        self.in_page.get(&(event, page_offset(address))).copied()
    }

    /// The site at a file offset.
    pub(crate) fn at_offset(&self, event: u32, offset: u64) -> Option<usize> {
        self.in_file.get(&(event, offset)).copied()
    }
}

const fn page_offset(offset: u64) -> u16 {
    (offset & 0xfff) as u16
}
