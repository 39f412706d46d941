//! Names of probes without their providers, where that leaves no two the same.

use crate::analysis::summary::facts::SummaryFacts;
use crate::trace::session::event_name::{bare_name, short_name as short};

/// Names of probes without their providers, where that leaves no two the same.
pub(crate) struct ShortNames {
    bare: bool,
}

impl ShortNames {
    pub(crate) fn new(facts: &SummaryFacts) -> Self {
        let bare = facts.probes.iter().map(|probe| bare_name(&probe.event));
        let mut bare: Vec<&str> = bare.collect();
        let all = bare.len();
        bare.sort_unstable();
        bare.dedup();
        Self {
            bare: bare.len() == all,
        }
    }

    pub(crate) fn of<'e>(&self, event: &'e str) -> &'e str {
        if self.bare {
            bare_name(event)
        } else {
            short(event)
        }
    }
}
