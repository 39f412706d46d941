//! CPUs that come on line while recording.
//!
//! A uevent of the kernel reports them. With `-a` events are opened there at once: an event of all threads cannot be
//! opened on a CPU that is off line, and one on a CPU that went off line stops counting. Hits before that are missing,
//! and this is reported. Events of single threads are not opened on later CPUs: children have inherited copies of them,
//! which the recorder cannot reach.

use super::attached::Attached;
use super::event::{Event, KernelAttr};
use super::planter::planting;
use super::refusal::refusal;
use crate::error::RecordError;

impl Attached {
    /// Records on CPUs that have come on line, if all CPUs are recorded. Hits of events that cannot be opened are missing, like earlier
    /// hits on those CPUs.
    pub(crate) fn follow_to(&mut self, cpus: &[u32]) {
        if !self.watches_cpus {
            return;
        }
        for &cpu in cpus {
            let _ = self.processes.follow_to(cpu);
            let _ = self.plant_on(cpu);
        }
    }

    /// Opens the perf events of all sites on another CPU.
    fn plant_on(&mut self, cpu: u32) -> Result<(), RecordError> {
        let Some(rings) = &mut self.rings else {
            return Ok(());
        };
        rings.add(cpu)?;
        for (probe, planted) in self.probes.iter().zip(&mut self.planted) {
            let path = probe.file().kernel_path();
            for (place, ids) in planted.places.iter().zip(&planted.site_ids) {
                let attr = KernelAttr::for_site(place, &path, self.mode.of(probe), &probe.plan);
                let mut event = planting(|| Event::open(&attr, -1, cpu)).map_err(refusal)?;
                let known = ids.first().copied().unwrap_or(event.id);
                rings.redirect_as(&mut event, known).map_err(refusal)?;
                event.enable().map_err(refusal)?;
                planted.events.push(event);
            }
        }
        Ok(())
    }
}
