//! What is aggregated in the kernel where hits are not copied out.

mod counted_stack;
mod group;
mod key;
mod measured_argument;
mod numbers;
mod spans;

pub use self::counted_stack::CountedStack;
pub use self::group::{GroupedProbe, HitGroup};
pub use self::key::{AggregateKey, AggregateValue, NoGroupName};
pub use self::measured_argument::MeasuredArgument;
pub use self::numbers::{BucketCount, NumberEnds, NumberTotals};
pub use self::spans::{SpanHitCounts, SpanHits};

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
    /// What hits are grouped by; empty if those of a probe are one group.
    pub by: Vec<AggregateKey>,
    /// The arguments whose numbers are added up in each group.
    pub measured: Vec<MeasuredArgument>,
}

/// The arguments of a probe.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    /// All of them.
    pub all: &'a [Argument],
    /// Those that an argument list shows, if it computes none; `None` for all.
    pub shown: Option<&'a [ShownArgument]>,
}

impl<'a> Arguments<'a> {
    /// Those of a probe.
    pub fn from_probe(probe: &'a PlannedProbe) -> Self {
        Self {
            all: &probe.arguments,
            shown: probe.shown.as_deref(),
        }
    }
}

impl Arguments<'_> {
    /// The place of the argument with this name in the list of the probe's arguments.
    fn place(self, name: &str) -> Option<usize> {
        let mut shown = self.shown.iter().copied().flatten();
        let renamed = shown.find(|shown| shown.argument_from(self.all).name == *name);
        let text = name.to_owned();
        let own = || own_argument(&Name { text, at: 0 }, "", self.all).ok()?;
        renamed.map(|shown| shown.argument).or_else(own)
    }
}

impl Aggregation {
    /// Whether any argument is measured.
    pub fn measures_arguments(&self) -> bool {
        self.measured.iter().any(|measured| !measured.is_duration)
    }

    /// Whether a key is about the control group.
    pub fn has_cgroup(&self) -> bool {
        let mut keys = self.by.iter();
        keys.any(|key| matches!(key, AggregateKey::Container | AggregateKey::Unit))
    }

    /// Whether a key is the stack.
    pub fn has_stack(&self) -> bool {
        self.by.contains(&AggregateKey::Stack)
    }

    /// The place of the argument of each key, in the list of a probe's arguments; `None` for other keys, and if the probe has none of this
    /// name.
    pub fn places(&self, of: Arguments<'_>) -> Vec<Option<usize>> {
        let place = |key: &AggregateKey| match key {
            AggregateKey::Argument(name) => of.place(name),
            _ => None,
        };
        self.by.iter().map(place).collect()
    }

    /// The same of each measured argument.
    pub fn measured_places(&self, of: Arguments<'_>) -> Vec<Option<usize>> {
        let measured = self.measured.iter();
        measured
            .map(|argument| match argument.is_duration {
                true => None,
                false => of.place(&argument.name),
            })
            .collect()
    }

    /// Checks that each key is an argument of any probe, and each measured one of any that is of no span. Not known where there is no probe yet.
    ///
    /// # Errors
    /// [`UsageError::GroupArgument`].
    pub fn check(
        &self,
        probes: &[&PlannedProbe],
        of_no_span: &[&PlannedProbe],
    ) -> Result<(), UsageError> {
        let keys = self.by.iter().filter_map(|key| match key {
            AggregateKey::Argument(name) => Some(name),
            _ => None,
        });
        let measured = self.measured.iter();
        let measured = measured.filter(|argument| !argument.is_duration);
        let mut measured = measured.map(|argument| &argument.name);
        let has =
            |probe: &&PlannedProbe, name: &str| Arguments::from_probe(probe).place(name).is_some();
        let is_missing =
            |among: &[&PlannedProbe], name: &str| !among.iter().any(|probe| has(probe, name));
        let mut keys = keys.filter(|name| is_missing(probes, name));
        let missing = keys
            .next()
            .or_else(|| measured.find(|name| is_missing(of_no_span, name)));
        if let Some(name) = missing.filter(|name| !is_missing(probes, name)) {
            return Err(UsageError::MeasuredOfSpans { name: name.clone() });
        }
        let Some(name) = missing.filter(|_| !probes.is_empty()) else {
            return Ok(());
        };
        let arguments = probes.iter().flat_map(|probe| &probe.arguments);
        let known: BTreeSet<&str> = arguments.map(|argument| argument.name.as_str()).collect();
        Err(UsageError::GroupArgument {
            name: name.clone(),
            known: known.into_iter().collect::<Vec<_>>().join(", "),
        })
    }

    /// Which of a probe's arguments are captured: those of keys, the lengths of strings among these, and measured ones.
    pub fn needed(&self, of: Arguments<'_>) -> Vec<bool> {
        let mut needed = self.needed_by_keys(of);
        needed.extend(self.measured_places(of).into_iter().flatten());
        (0..of.all.len())
            .map(|place| needed.contains(&place))
            .collect()
    }

    /// The places of the arguments that keys have: their own, and the lengths of strings among these.
    pub fn needed_by_keys(&self, of: Arguments<'_>) -> Vec<usize> {
        with_lengths(self.places(of).into_iter().flatten().collect(), of.all)
    }
}

/// These places of arguments, and those of the lengths of strings among them.
pub fn with_lengths(places: Vec<usize>, arguments: &[Argument]) -> Vec<usize> {
    let lengths = places.iter().filter_map(|place| {
        let length = length_of(arguments.get(*place)?)?;
        arguments.iter().position(|known| known.name == length)
    });
    lengths.chain(places.iter().copied()).collect()
}
