//! Sites whose pages can be kept in the page cache: only to these are probes attached.

use std::collections::BTreeMap;
use std::sync::Arc as Shared;

use usdtrec_kernel::host::page_reading::NotCached;

use crate::select::Selection;
use crate::select::probe::{PlannedProbe, SiteOffsets};
use crate::select::program::Program;
use crate::select::refusal::{Refusal, RefusalReason, Refusals};

impl Selection {
    /// Reads the pages with selected sites. Those that are not in the page cache then are refused; with `force`, they are attached all the same.
    pub(super) fn keep_pages(&mut self, force: bool) {
        let mut programs: Vec<Shared<Program>> = Vec::new();
        for probe in &self.probes {
            if !programs
                .iter()
                .any(|known| Shared::ptr_eq(known, &probe.program))
            {
                programs.push(Shared::clone(&probe.program));
            }
        }
        let mut refusals = Refusals::default();
        for program in programs {
            let is_of = |probe: &&PlannedProbe| Shared::ptr_eq(&probe.program, &program);
            let probes = self.probes.iter().filter(is_of);
            let absent = program.keep_pages(probes.flat_map(pages));
            match (absent.is_empty(), force) {
                (true, _) => {}
                (false, true) => program.force_pages(),
                (false, false) => self.refuse_sites(&program, &absent, &mut refusals),
            }
        }
        self.refusals.extend(refusals.into_vec());
    }

    fn refuse_sites(
        &mut self,
        program: &Shared<Program>,
        absent: &BTreeMap<u64, NotCached>,
        refusals: &mut Refusals,
    ) {
        for probe in &mut self.probes {
            if !Shared::ptr_eq(&probe.program, program) {
                continue;
            }
            let mut reason = None;
            let (event, mut sites) = (probe.event(), std::mem::take(&mut probe.sites));
            sites.retain(|site| {
                let offsets = probe.offsets(&site.site);
                let mut pages = offsets.into_iter().flat_map(SiteOffsets::pages);
                let found = pages.find_map(|page| absent.get(&page));
                reason = reason.take().or_else(|| found.cloned());
                found.is_none()
            });
            probe.sites = sites;
            if let Some(reason) = reason {
                let reason = RefusalReason::NotCached(reason);
                refusals.add(Refusal::new(event, &probe.path, reason));
            }
        }
        self.probes.retain(|probe| !probe.sites.is_empty());
    }
}

/// The pages of all sites of a probe.
fn pages(probe: &PlannedProbe) -> impl Iterator<Item = u64> {
    let offsets = probe
        .sites
        .iter()
        .filter_map(|site| probe.offsets(&site.site).ok());
    offsets.flat_map(SiteOffsets::pages)
}
