//! Names of probes without their providers, where that leaves no two the same.

use crate::analysis::summary::facts::Facts;
use crate::trace::session::event_name::short_name as short;

/// Names of probes without their providers, where that leaves no two the same.
pub(crate) struct ShortNames {
    bare: bool,
}

impl ShortNames {
    pub(crate) fn new(facts: &Facts) -> Self {
        let bare = facts.probes.iter().map(|probe| bare(&probe.event));
        let mut bare: Vec<&str> = bare.collect();
        let all = bare.len();
        bare.sort_unstable();
        bare.dedup();
        Self {
            bare: bare.len() == all,
        }
    }

    pub(crate) fn of<'e>(&self, event: &'e str) -> &'e str {
        if self.bare { bare(event) } else { short(event) }
    }
}

pub(crate) fn bare(event: &str) -> &str {
    event.split_once(':').map_or(event, |(_, name)| name)
}
