//! Capture plans of perf events: sites that share an attr need the same registers and the same number of stack bytes.
//!
//! An attr is a probe with one capture plan. The sites of a probe often have different operands. A probe whose sites
//! need different registers or stack sizes has several attrs with one name, and the sample id identifies the site.

use crate::plan::plan;
use crate::select::probe::PlannedProbe;

/// Number of bytes of stack that are copied for operands whose distance from the stack pointer is unknown.
const UNKNOWN_DEPTH: u32 = 8 << 10;

/// Splits probes so that the sites of each have the same plan.
pub(crate) fn split(probes: Vec<PlannedProbe>) -> Vec<PlannedProbe> {
    let mut split: Vec<PlannedProbe> = Vec::new();
    for mut probe in probes {
        let first = split.len();
        let frames = probe.program.frames();
        let needed = probe.needed(true, &probe.arguments);
        for site in std::mem::take(&mut probe.sites) {
            let plan = plan(&site, probe.arch, needed.as_deref(), &frames, UNKNOWN_DEPTH);
            let mut of_probe = split.iter_mut().skip(first);
            match of_probe.find(|known| known.plan == plan) {
                Some(known) => known.sites.push(site),
                None => split.push(PlannedProbe {
                    plan,
                    sites: vec![site],
                    ..probe.clone()
                }),
            }
        }
    }
    split
}
