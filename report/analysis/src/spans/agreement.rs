//! Which arguments of begin and end must agree.
//!
//! Names say which may ([`usdtrec_format::spans`]). The beginning of the trace says which do: where few values of the one side are values of the
//! other, begin and end mean different things by them.

use std::collections::BTreeMap;

use usdtrec_format::perf::{RecordType, Records};
use usdtrec_format::schema::Argument;
use usdtrec_format::spans::{SharedArgument, argument_place as place, mark, shared_arguments};
use usdtrec_format::trace::BlockReader;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::ParsedHit;
use usdtrec_trace::session::resolver::Resolver;

use crate::spans::marks::Agreement;
use crate::spans::pair::Pair;

/// Blocks from the beginning of the trace that are looked at, at most.
const BLOCKS: usize = 8;
/// Hits of one pair that are looked at, at most.
const HITS: usize = 4096;

/// An argument of both sides of a pair.
struct Candidate {
    name: String,
    /// Whether its name and type say that it identifies things.
    expected: bool,
    numbers: bool,
    /// Marks that begins had, and how many; those of ends.
    begins: BTreeMap<u64, u64>,
    ends: BTreeMap<u64, u64>,
}

/// The arguments of a pair that may have to agree.
struct Candidates {
    /// As if all of them had to.
    agreement: Agreement,
    candidates: Vec<Candidate>,
}

/// For each pair, the arguments that must agree.
pub(crate) fn agreements(session: &TraceSession, pairs: &[Pair]) -> Vec<Agreement> {
    let mut all: Vec<Candidates> = pairs
        .iter()
        .map(|pair| {
            let candidates = candidates(session, pair);
            let events = session.events().events.len();
            let mut places = vec![Vec::new(); events];
            for &event in pair.starts.iter().chain(&pair.dones) {
                if let (Some(places), Some(event)) =
                    (places.get_mut(event), session.events().events.get(event))
                {
                    *places = candidates
                        .iter()
                        .filter_map(|known| place(&event.arguments, &known.name))
                        .collect();
                }
            }
            let agreement = Agreement {
                numbers: candidates.iter().map(|known| known.numbers).collect(),
                names: candidates.iter().map(|known| known.name.clone()).collect(),
                places,
                ..Agreement::default()
            };
            Candidates {
                agreement,
                candidates,
            }
        })
        .collect();
    if all.iter().any(|of_pair| !of_pair.candidates.is_empty()) {
        read_beginning(session, pairs, &mut all);
    }
    let kept = all.into_iter().map(|of_pair| {
        let Candidates {
            mut agreement,
            candidates,
        } = of_pair;
        for (at, candidate) in candidates.iter().enumerate().rev() {
            if !candidate.agrees() {
                agreement.names.remove(at);
                agreement.numbers.remove(at);
                for places in agreement.places.iter_mut().filter(|all| !all.is_empty()) {
                    places.remove(at);
                }
            }
        }
        agreement
    });
    kept.collect()
}

impl Candidate {
    /// Whether begins and ends mean the same by it: half the hits of one side have a value that the other one has, too. Not of both, for a
    /// program may report ends without begins, or the other way round.
    fn agrees(&self) -> bool {
        if self.begins.is_empty() || self.ends.is_empty() {
            return self.expected;
        }
        let half = |of: &BTreeMap<u64, u64>, other: &BTreeMap<u64, u64>| {
            let all: u64 = of.values().sum();
            let shared = of.iter().filter(|(mark, _)| other.contains_key(mark));
            shared.map(|(_, hits)| hits).sum::<u64>() * 2 >= all
        };
        half(&self.begins, &self.ends) || half(&self.ends, &self.begins)
    }
}

/// Arguments that all begins and ends of a pair have under one name.
pub(super) fn in_common<'s>(session: &'s TraceSession, pair: &Pair) -> Vec<SharedArgument<'s>> {
    let events = pair.starts.iter().chain(&pair.dones);
    let events = events.filter_map(|&event| session.events().events.get(event));
    let events: Vec<&[Argument]> = events.map(|event| event.own_arguments()).collect();
    shared_arguments(&events)
}

/// The arguments that may have to agree.
fn candidates(session: &TraceSession, pair: &Pair) -> Vec<Candidate> {
    let both = in_common(session, pair).into_iter();
    let candidates = both.map(|shared| Candidate {
        name: shared.argument.name.clone(),
        expected: shared.is_expected_to_agree(),
        numbers: shared.has_identifying_numbers(),
        begins: BTreeMap::new(),
        ends: BTreeMap::new(),
    });
    candidates.collect()
}

/// Counts the values of candidates at the beginning of the trace.
fn read_beginning(session: &TraceSession, pairs: &[Pair], all: &mut [Candidates]) {
    let mut resolver = Resolver::new(session);
    let mut reader = BlockReader::new();
    let mut hits = vec![0; pairs.len()];
    for block in session.blocks().iter().take(BLOCKS) {
        let Ok(records) = reader.read(session.trace(), &block.block) else {
            continue;
        };
        for record in Records::new(records) {
            if record.kind != RecordType::SAMPLE {
                continue;
            }
            let Some(ParsedHit { target, sample }) = session.sample(record.body) else {
                continue;
            };
            let event = target.event as usize;
            for (at, pair) in pairs.iter().enumerate() {
                let Some(Candidates {
                    agreement,
                    candidates,
                }) = all.get_mut(at)
                else {
                    continue;
                };
                let places = agreement.places.get(event).map_or(&[][..], Vec::as_slice);
                if places.is_empty() || hits[at] >= HITS {
                    continue;
                }
                hits[at] += 1;
                let Some(site) = session.site_of(target, &sample) else {
                    continue;
                };
                let begins = pair.starts.contains(&event);
                for (&place, candidate) in places.iter().zip(candidates) {
                    let value = resolver.value(site, place, &sample);
                    let mark =
                        value.map_or(0, |value| mark(value, candidate.numbers, &agreement.state));
                    if mark == 0 {
                        continue;
                    }
                    let side = match begins {
                        true => &mut candidate.begins,
                        false => &mut candidate.ends,
                    };
                    *side.entry(mark).or_default() += 1;
                }
            }
        }
        let enough =
            |(at, of_pair): (usize, &Candidates)| of_pair.candidates.is_empty() || hits[at] >= HITS;
        if all.iter().enumerate().all(enough) {
            break;
        }
    }
}
