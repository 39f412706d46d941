//! From an address to a site, for events whose ids do not say which of their sites it is.

use foldhash::HashMap;

use crate::session::events::Events;

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
