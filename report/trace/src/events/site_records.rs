//! The records of a block, those of one site together.

use crate::session::TraceSession;
use crate::session::ids::SampleTarget;

/// Samples of one site that are read together at most: few enough that their records stay in the cache.
const TOGETHER: usize = 256;

/// Offsets of records of a block by event and site, until there are enough of one to be read together.
#[derive(Debug, Default)]
pub(crate) struct SiteRecords {
    /// Those of each site, then those of samples of each event whose ids do not say the site.
    offsets: Vec<Vec<u32>>,
    /// The places that are not empty, or were not when they were noted.
    used: Vec<(usize, SampleTarget)>,
}

impl SiteRecords {
    /// Adds a record; returns those of its site, if they are enough.
    #[inline]
    pub(crate) fn add(
        &mut self,
        session: &TraceSession,
        target: SampleTarget,
        offset: u32,
    ) -> Option<&mut Vec<u32>> {
        let place = match target.site {
            Some(site) => site as usize,
            None => session.events().sites.len() + target.event as usize,
        };
        if place >= self.offsets.len() {
            self.offsets.resize_with(place + 1, Vec::new);
        }
        let offsets = self.offsets.get_mut(place)?;
        if offsets.is_empty() {
            self.used.push((place, target));
        }
        offsets.push(offset);
        (offsets.len() >= TOGETHER).then_some(offsets)
    }

    /// Takes all out.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(SampleTarget, &[u32])) {
        for (place, target) in self.used.drain(..) {
            if let Some(offsets) = self.offsets.get_mut(place).filter(|all| !all.is_empty()) {
                take(target, offsets);
                offsets.clear();
            }
        }
    }
}
