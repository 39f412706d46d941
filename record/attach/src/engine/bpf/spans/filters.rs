//! Filters of spans of which only slow ones are recorded: which of the parts that `&&` joins are about the hit that begins a span, and which about the one
//! that ends it. As in a report, a part is of the begin if that has all arguments in it, else of the end, and `EVENT.NAME` says which of them is meant.

use std::iter;

use usdtrec_format::expr::{BinaryOperator, Expr, ExprError, Name};

use super::planner::all_pairs;
use crate::engine::options::SlowSpans;
use crate::plan::condition::site::own_argument;
use crate::select::argument_list::names;
use crate::select::probe::PlannedProbe;

/// The events of a span whose filter is the same.
struct Filtered<'a> {
    starts: Vec<&'a PlannedProbe>,
    dones: Vec<&'a PlannedProbe>,
}

/// The probes, each with the parts of its filter that are about it.
pub(in crate::engine::bpf) fn with_own_filters(
    probes: &[PlannedProbe],
    spans: &SlowSpans,
) -> Vec<PlannedProbe> {
    let mut filtered = probes.to_vec();
    let events: Vec<String> = probes.iter().map(PlannedProbe::event).collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    // What is wrong with the names is said where the spans are planned.
    for pair in all_pairs(spans, &events).unwrap_or_default() {
        let of = |places: &[usize], filter: &Expr| -> Vec<&PlannedProbe> {
            let probes = places.iter().filter_map(|at| probes.get(*at));
            let has_it = |probe: &&PlannedProbe| probe.filter.as_ref() == Some(filter);
            probes.filter(has_it).collect()
        };
        let starts = pair.starts.iter().map(|at| (*at, true));
        let sides = starts.chain(pair.dones.iter().map(|at| (*at, false)));
        for (at, begins) in sides {
            let (Some(probe), Some(filtered)) = (probes.get(at), filtered.get_mut(at)) else {
                continue;
            };
            if let Some(filter) = &probe.filter {
                let sharing = Filtered {
                    starts: of(&pair.starts, filter),
                    dones: of(&pair.dones, filter),
                };
                filtered.filter = sharing.parts_of(probe, begins, filter);
            }
        }
    }
    filtered
}

impl Filtered<'_> {
    /// The parts of the filter that are about a probe.
    fn parts_of(&self, probe: &PlannedProbe, begins: bool, filter: &Expr) -> Option<Expr> {
        let parts = parts(filter).into_iter();
        let own = parts.filter(|part| {
            let of_begin = all_have(&self.starts, part);
            match begins {
                // What no side has is wrong, which is said of one of them.
                true => of_begin || !all_have(&self.dones, part),
                false => !of_begin && (all_have(&self.dones, part) || self.starts.is_empty()),
            }
        });
        let named = own.map(|part| without_event(part, probe).unwrap_or_else(|| part.clone()));
        named.reduce(|all, part| Expr::Binary(BinaryOperator::And, Box::new(all), Box::new(part)))
    }
}

/// The parts that `&&` joins.
fn parts(filter: &Expr) -> Vec<&Expr> {
    match filter {
        Expr::Binary(BinaryOperator::And, left, right) => [parts(left), parts(right)].concat(),
        part => vec![part],
    }
}

/// Whether there are such probes, and all have the arguments in a part.
fn all_have(probes: &[&PlannedProbe], part: &Expr) -> bool {
    let has = |probe: &&PlannedProbe| {
        without_event(part, probe).is_some_and(|part| {
            let names = names(&probe.in_own_names(&part));
            let mut names = names.iter();
            names.all(|name| own_argument(name, "", &probe.arguments).is_ok())
        })
    };
    !probes.is_empty() && probes.iter().all(has)
}

/// A part without the probe's name before its arguments; `None` if it names another one.
fn without_event(part: &Expr, probe: &PlannedProbe) -> Option<Expr> {
    part.clone()
        .bind(&mut |name: Name| match name.text.split_once('.') {
            None | Some(("args", _)) => Ok(name),
            Some((event, rest)) if is_called(probe, event) => Ok(Name {
                text: rest.to_owned(),
                at: name.at,
            }),
            Some(_) => Err(ExprError {
                at: name.at,
                message: String::new(),
            }),
        })
        .ok()
}

fn is_called(probe: &PlannedProbe, event: &str) -> bool {
    let names = iter::once(probe.name.clone());
    let mut names = names.chain([format!("{}:{}", probe.provider, probe.name), probe.event()]);
    names.any(|name| name == event)
}
