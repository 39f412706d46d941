//! The budget of a recording, and which probes are detached together for it.

use std::collections::HashMap;

use usdtrec_format::spans::pairs;

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

/// The unit of each event, by the places of the events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    of_event: Vec<usize>,
    count: usize,
}

impl Units {
    /// The units of probes.
    pub fn of_probes<'p>(probes: impl Iterator<Item = &'p PlannedProbe>) -> Self {
        let names: Vec<String> = probes.map(PlannedProbe::event).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Self::of_events(&names)
    }

    /// The units of events with these names, numbered in the order of their first events: the events that begin or end the same spans, those
    /// that share an event with them, and events of the same name are together.
    fn of_events(names: &[&str]) -> Self {
        let mut sets = Sets((0..names.len()).collect());
        let mut by_name = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            sets.join(*by_name.entry(*name).or_insert(at), at);
        }
        for pair in pairs(names) {
            let mut members = pair.starts.iter().chain(&pair.dones);
            if let Some(first) = members.next() {
                members.for_each(|member| sets.join(*first, *member));
            }
        }
        let mut numbers = HashMap::new();
        let of_event = (0..names.len()).map(|at| {
            let next = numbers.len();
            *numbers.entry(sets.first(at)).or_insert(next)
        });
        Self {
            of_event: of_event.collect(),
            count: numbers.len(),
        }
    }

    /// The unit of an event.
    pub fn unit(&self, event: usize) -> Option<usize> {
        self.of_event.get(event).copied()
    }

    /// Number of units.
    pub const fn count(&self) -> usize {
        self.count
    }
}

/// Sets of places: each place has one before it in its set, or itself if it is the first.
struct Sets(Vec<usize>);

impl Sets {
    fn first(&self, mut at: usize) -> usize {
        while let Some(&before) = self.0.get(at).filter(|before| **before != at) {
            at = before;
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first(one), self.first(other));
        if let Some(later) = self.0.get_mut(one.max(other)) {
            *later = one.min(other);
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

    fn units(names: &[&str]) -> Vec<usize> {
        Units::of_events(names).of_event
    }

    #[test]
    fn begin_and_end_are_together_and_others_alone() {
        let names = [
            "sdt_db:rare",
            "sdt_db:query__start",
            "sdt_db:hot",
            "sdt_db:query__done",
        ];
        assert_eq!(units(&names), [0, 1, 2, 1]);
        assert_eq!(Units::of_events(&names).count(), 3);
        assert!(units(&[]).is_empty());
    }

    /// Both spans end with the same event.
    #[test]
    fn spans_that_share_an_event_are_one_unit() {
        let names = [
            "sdt_a:x__start",
            "sdt_a:x__begin",
            "sdt_a:y",
            "sdt_a:x__done",
        ];
        assert_eq!(units(&names), [0, 0, 1, 0]);
    }

    /// Sites with other operands are events of the same name.
    #[test]
    fn events_of_one_name_are_together() {
        assert_eq!(units(&["sdt_a:x", "sdt_a:y", "sdt_a:x"]), [0, 1, 0]);
    }
}
