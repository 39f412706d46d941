//! Perf events on CPUs that come on line while recording.

use usdtrec_kernel::separate_process::planting;

use super::super::events::event::{Event, KernelAttr};
use super::super::events::refusal::refusal;
use super::PerfEngine;
use crate::error::RecordError;
use crate::select::probe::PlannedProbe;

impl PerfEngine {
    /// Opens the events of all sites on another CPU. `probes` are the attached ones.
    pub(in crate::engine) fn follow_to(
        &mut self,
        cpu: u32,
        probes: &[PlannedProbe],
    ) -> Result<(), RecordError> {
        self.rings.add(cpu)?;
        for (probe, opened) in probes.iter().zip(&mut self.probes) {
            let path = probe.file().kernel_path();
            for (site, planned) in opened.sites.iter().zip(&probe.sites) {
                let pages = probe.offsets(&planned.site)?.pages();
                probe.program.check_pages(pages).map_err(refusal)?;
                let attr = KernelAttr::for_site(&site.place, &path, self.mode, &probe.plan);
                let mut event = planting(|| Event::open(&attr, -1, cpu)).map_err(refusal)?;
                let known = site.first_id.unwrap_or(event.id);
                self.rings.redirect_as(&mut event, known).map_err(refusal)?;
                event.enable().map_err(refusal)?;
                opened.events.push(event);
            }
        }
        Ok(())
    }
}
