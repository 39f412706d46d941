//! Names of probes without their providers, where that leaves no two the same.

use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_trace::session::event_name::{bare_name, short_name as short};

/// Names of probes without their providers, where that leaves no two the same.
pub struct ShortNames {
    bare: bool,
}

impl ShortNames {
    /// The names for the probes of a summary.
    pub fn new(facts: &SummaryFacts) -> Self {
        let bare = facts.probes.iter().map(|probe| bare_name(&probe.event));
        let mut bare: Vec<&str> = bare.collect();
        let all = bare.len();
        bare.sort_unstable();
        bare.dedup();
        Self {
            bare: bare.len() == all,
        }
    }

    /// The name of an event.
    pub fn name<'e>(&self, event: &'e str) -> &'e str {
        if self.bare {
            bare_name(event)
        } else {
            short(event)
        }
    }
}
