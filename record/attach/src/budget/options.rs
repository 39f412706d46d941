//! The budget that a recording has.

use crate::plan::call_graph::CallGraph;
use crate::select::probe::PlannedProbe;

/// The part of its time that a traced thread may spend in probes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The part: more than 0, at most 1.
    pub share: f64,
    /// What a hit takes on this host.
    pub costs: HitCosts,
}

/// What a hit takes the thread that has it, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitCosts {
    /// If the arguments are numbers.
    pub number: u64,
    /// If there are strings among the arguments.
    pub strings: u64,
    /// If the arguments are numbers, and the callers are recorded.
    pub callers: u64,
}

impl HitCosts {
    /// What a hit of a probe takes, ns, in a recording with these callers.
    pub fn of_probe(self, probe: &PlannedProbe, graph: Option<CallGraph>) -> u64 {
        let layout = probe.plan.raw.as_ref();
        let has_strings = layout.is_some_and(|layout| layout.strings().next().is_some());
        self.cost(has_strings, graph.is_some())
    }

    /// What a hit takes, ns.
    const fn cost(self, has_strings: bool, has_callers: bool) -> u64 {
        let own = if has_strings {
            self.strings
        } else {
            self.number
        };
        match has_callers {
            true => own + self.callers.saturating_sub(self.number),
            false => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_callers_are_added_to_a_hit() {
        let costs = HitCosts {
            number: 500,
            strings: 800,
            callers: 1500,
        };
        let all = [(false, false), (true, false), (false, true), (true, true)];
        let found = all.map(|(strings, callers)| costs.cost(strings, callers));
        assert_eq!(found, [500, 800, 1500, 1800]);
    }
}
