//! What is aggregated in the kernel where hits are not copied out.

mod group;
mod key;

pub use self::group::{GroupedProbe, HitGroup};
pub use self::key::{AggregateKey, AggregateValue};

use std::collections::BTreeSet;
use std::time::Duration;

use usdtrec_format::ShownArgument;
use usdtrec_format::expr::Name;
use usdtrec_format::schema::Argument;

use crate::plan::condition::own_argument;
use crate::select::argument_list::length_of;
use crate::select::probe::PlannedProbe;
use crate::usage_error::UsageError;

/// An aggregation: programs count the hits, and write no samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aggregation {
    /// Interval at which the counts are read; `None` for the end alone.
    pub interval: Option<Duration>,
    /// What hits are grouped by; empty if only those of each probe are counted.
    pub by: Vec<AggregateKey>,
}

/// The arguments of a probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a> {
    pub(crate) all: &'a [Argument],
    /// Those that an argument list shows, if it computes none; `None` for all.
    pub(crate) shown: Option<&'a [ShownArgument]>,
}

impl<'a> Arguments<'a> {
    /// Those of a probe.
    pub(crate) fn of(probe: &'a PlannedProbe) -> Self {
        Self {
            all: &probe.arguments,
            shown: probe.shown.as_deref(),
        }
    }
}

impl Aggregation {
    /// The place of the argument of each key, in the list of a probe's arguments; `None` for other keys, and if the probe has none of this
    /// name.
    pub(crate) fn places(&self, of: Arguments<'_>) -> Vec<Option<usize>> {
        let place = |key: &AggregateKey| {
            let AggregateKey::Argument(name) = key else {
                return None;
            };
            let mut shown = of.shown.iter().copied().flatten();
            let renamed = shown.find(|shown| shown.argument_from(of.all).name == *name);
            let text = name.clone();
            let own = || own_argument(&Name { text, at: 0 }, "", of.all).ok()?;
            renamed.map(|shown| shown.argument).or_else(own)
        };
        self.by.iter().map(place).collect()
    }

    /// Checks that each key is an argument of any probe. Not known where there is no probe yet.
    ///
    /// # Errors
    /// [`UsageError::GroupArgument`].
    pub(crate) fn check(&self, probes: &[&PlannedProbe]) -> Result<(), UsageError> {
        let has = |probe: &PlannedProbe, at: usize| self.places(Arguments::of(probe))[at].is_some();
        let is_missing = |(at, key): &(usize, &AggregateKey)| {
            matches!(key, AggregateKey::Argument(_)) && !probes.iter().any(|probe| has(probe, *at))
        };
        let missing = self.by.iter().enumerate().find(is_missing);
        let Some((_, AggregateKey::Argument(name))) = missing.filter(|_| !probes.is_empty()) else {
            return Ok(());
        };
        let arguments = probes.iter().flat_map(|probe| &probe.arguments);
        let known: BTreeSet<&str> = arguments.map(|argument| argument.name.as_str()).collect();
        Err(UsageError::GroupArgument {
            name: name.clone(),
            known: known.into_iter().collect::<Vec<_>>().join(", "),
        })
    }

    /// Which of a probe's arguments are captured: those of keys, and the lengths of texts among these.
    pub(crate) fn needed(&self, of: Arguments<'_>) -> Vec<bool> {
        let arguments = of.all;
        let places: Vec<usize> = self.places(of).into_iter().flatten().collect();
        let lengths = places.iter().filter_map(|place| {
            let length = length_of(arguments.get(*place)?)?;
            arguments.iter().position(|known| known.name == length)
        });
        let needed: Vec<usize> = lengths.chain(places.iter().copied()).collect();
        (0..arguments.len())
            .map(|place| needed.contains(&place))
            .collect()
    }
}
