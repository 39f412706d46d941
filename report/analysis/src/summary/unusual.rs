//! Unusual things in a trace: values that could not be read or are not whole, bursts and pauses.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use usdtrec_format::{Definitions, ProbeDefinition};

use crate::stats::bursts::Episode;
use crate::stats::frequency::total;
use crate::summary::probe::{ArgumentFacts, ProbeFacts};

/// Maximum number of bursts and pauses of all probes that are listed.
const MAX_PACES: usize = 5;

/// Something that stands out.
#[derive(Clone, Debug, PartialEq)]
pub struct Unusual {
    /// The probe's event.
    pub event: String,
    /// What stands out.
    pub what: UnusualKind,
}

/// Kind of an unusual thing.
#[derive(Clone, Debug, PartialEq)]
pub enum UnusualKind {
    /// Values of an argument that are not there.
    Missing {
        /// The argument.
        argument: String,
        /// Why they are missing.
        reason: String,
        /// Number of these values.
        count: u64,
        /// Number of all values.
        of: u64,
    },
    /// Strings of an argument that are not whole.
    Cut {
        /// The argument.
        argument: String,
        /// Number of these strings.
        count: u64,
        /// Number of all strings.
        of: u64,
    },
    /// Other probes are at the same instruction, so that each hit is an event of each: linkers fold functions whose code is equal.
    OneInstruction {
        /// Their events.
        with: Vec<String>,
    },
    /// More events than usual, the strongest first.
    Bursts(Vec<Episode>),
    /// No events, the longest first.
    Pauses(Vec<Episode>),
}

impl Unusual {
    /// All that stands out, of the probes in their order.
    pub(crate) fn find(probes: &[ProbeFacts], definitions: Option<&Definitions>) -> Vec<Self> {
        let mut all: Vec<Self> = probes.iter().flat_map(of_arguments).collect();
        all.extend(
            definitions
                .into_iter()
                .flat_map(|all| at_one_instruction(probes, &all.probes)),
        );
        let mut paces: Vec<(f64, Self)> = probes.iter().flat_map(of_pace).collect();
        paces.sort_by(|a, b| b.0.total_cmp(&a.0));
        let paces = paces.into_iter().take(MAX_PACES);
        all.extend(paces.map(|(_, unusual)| unusual));
        all
    }
}

/// Of probes with events that are at one instruction, each with those that come later in the trace.
fn at_one_instruction(probes: &[ProbeFacts], defined: &[ProbeDefinition]) -> Vec<Unusual> {
    let with_events = probes.iter().filter(|probe| probe.count > 0);
    let with_events: BTreeSet<&str> = with_events.map(|probe| &*probe.event).collect();
    let mut places: BTreeMap<(usize, u64), BTreeSet<&str>> = BTreeMap::new();
    for probe in defined
        .iter()
        .filter(|probe| with_events.contains(&*probe.event))
    {
        for site in &probe.sites {
            let events = places.entry((probe.file, site.site.pc)).or_default();
            events.insert(&probe.event);
        }
    }
    let groups: BTreeSet<BTreeSet<&str>> = places
        .into_values()
        .filter(|events| events.len() > 1)
        .collect();
    let unusual = groups.into_iter().filter_map(|events| {
        let mut events = events.into_iter().map(str::to_owned);
        Some(Unusual {
            event: events.next()?,
            what: UnusualKind::OneInstruction {
                with: events.collect(),
            },
        })
    });
    unusual.collect()
}

fn of_arguments(probe: &ProbeFacts) -> Vec<Unusual> {
    let unusual = |what| Unusual {
        event: probe.event.clone(),
        what,
    };
    let mut all = Vec::new();
    for argument in &probe.arguments {
        let missing = total(&argument.missing);
        // What is never there is the way it was recorded; the table of arguments says it.
        if missing < probe.count {
            for reason in &argument.missing {
                all.push(unusual(UnusualKind::Missing {
                    argument: argument.name.clone(),
                    reason: reason.value.clone(),
                    count: reason.count,
                    of: probe.count,
                }));
            }
        }
        if let Some(what) = cut(argument) {
            all.push(unusual(what));
        }
    }
    all
}

fn cut(argument: &ArgumentFacts) -> Option<UnusualKind> {
    let strings = argument.strings.as_ref()?;
    (strings.cut > 0).then(|| UnusualKind::Cut {
        argument: argument.name.clone(),
        count: strings.cut,
        of: strings.count,
    })
}

/// Bursts and pauses of a probe, with how much they stand out.
fn of_pace(probe: &ProbeFacts) -> Vec<(f64, Unusual)> {
    // Its events are as many as the recorder wanted.
    if probe.part.is_some() {
        return Vec::new();
    }
    let length = |episode: &Episode| episode.to - episode.from;
    let mut bursts = probe.episodes.bursts.clone();
    bursts.sort_by(|a, b| b.times.total_cmp(&a.times));
    let mut pauses = probe.episodes.pauses.clone();
    pauses.sort_by_key(|pause| Reverse(length(pause)));
    let unusual = |what| Unusual {
        event: probe.event.clone(),
        what,
    };
    let mut all = Vec::new();
    if let Some(most) = bursts.first() {
        all.push((most.times, unusual(UnusualKind::Bursts(bursts.clone()))));
    }
    if let Some(longest) = pauses.first() {
        // As much as a burst of so many slices.
        let weight = 3.0 + length(longest) as f64 / probe.episodes.slice.max(1) as f64;
        all.push((weight, unusual(UnusualKind::Pauses(pauses.clone()))));
    }
    all
}
