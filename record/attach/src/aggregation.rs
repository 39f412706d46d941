//! What is aggregated in the kernel where hits are not copied out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub use usdtrec_format::NumberEnds;
use usdtrec_format::expr::Name;
use usdtrec_format::schema::Argument;
use usdtrec_format::{NumberBucket, ShownArgument, TimePart, Value};

use crate::error::UsageError;
use crate::plan::condition::site::own_argument;
use crate::select::argument_list::length_of;
use crate::select::probe::PlannedProbe;

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

/// The probes whose hits are aggregated, by what they are to spans.
#[derive(Clone, Debug, Default)]
pub struct AggregatedProbes<'a> {
    /// Those that begin and end none.
    pub of_no_span: Vec<&'a PlannedProbe>,
    /// Those that begin spans.
    pub begins: Vec<&'a PlannedProbe>,
    /// Those that end them.
    pub ends: Vec<&'a PlannedProbe>,
}

/// The arguments of a probe.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    /// All of them.
    pub all: &'a [Argument],
    /// The arguments that an argument list shows, if it computes none; `None` for all.
    pub shown: Option<&'a [ShownArgument]>,
    /// The probe.
    pub probe: &'a PlannedProbe,
}

impl<'a> Arguments<'a> {
    /// The arguments of a probe.
    pub fn from_probe(probe: &'a PlannedProbe) -> Self {
        Self {
            all: &probe.arguments,
            shown: probe.shown.as_deref(),
            probe,
        }
    }
}

impl Arguments<'_> {
    /// The place of the argument with this name, or with `PROBE.NAME`, in the list of the probe's arguments.
    fn place(self, name: &str) -> Option<usize> {
        self.own_place(name).or_else(|| {
            let (probe, name) = name.rsplit_once('.')?;
            let PlannedProbe {
                provider,
                name: own,
                ..
            } = self.probe;
            let is_own =
                probe == own || probe.trim_start_matches("sdt_") == format!("{provider}:{own}");
            is_own.then(|| self.own_place(name)).flatten()
        })
    }

    fn own_place(self, name: &str) -> Option<usize> {
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
        self.measured
            .iter()
            .any(|measured| measured.of_span.is_none())
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
            .map(|argument| match argument.of_span {
                Some(_) => None,
                None => of.place(&argument.name),
            })
            .collect()
    }

    /// Checks that each key is an argument of any probe, not only of ends of spans, and each measured one of any that is of no span. Not known where there
    /// is no probe yet.
    ///
    /// # Errors
    /// [`UsageError::GroupArgument`], [`UsageError::KeyOfEnds`], [`UsageError::MeasuredOfSpans`].
    pub fn check(&self, probes: &AggregatedProbes<'_>) -> Result<(), UsageError> {
        let AggregatedProbes {
            of_no_span,
            begins,
            ends,
        } = probes;
        let all = || of_no_span.iter().chain(begins).chain(ends);
        let has = |probe: &&PlannedProbe, name: &str| {
            let of = Arguments::from_probe(probe);
            of.place(name).is_some()
        };
        let is_unknown = |name: &str| !all().any(|probe| has(probe, name));
        let of_ends = |name: &str| {
            !of_no_span
                .iter()
                .chain(begins)
                .any(|probe| has(probe, name))
        };
        let of_spans = |name: &str| !of_no_span.iter().any(|probe| has(probe, name));
        let keys = self.by.iter().filter_map(|key| match key {
            AggregateKey::Argument(name) => Some(name),
            _ => None,
        });
        let measured = self.measured.iter();
        let measured = measured.filter(|argument| argument.of_span.is_none());
        let measured = measured.map(|argument| &argument.name);
        if all().next().is_none() {
            return Ok(());
        }
        let mut names = keys.clone().chain(measured.clone());
        if let Some(name) = names.find(|name| is_unknown(name)) {
            let arguments = all().flat_map(|probe| &probe.arguments);
            let known: BTreeSet<&str> = arguments.map(|argument| argument.name.as_str()).collect();
            return Err(UsageError::GroupArgument {
                name: name.clone(),
                known: known.into_iter().collect::<Vec<_>>().join(", "),
            });
        }
        if let Some(name) = keys.clone().find(|name| of_ends(name)) {
            return Err(UsageError::KeyOfEnds { name: name.clone() });
        }
        match measured.clone().find(|name| of_spans(name)) {
            Some(name) => Err(UsageError::MeasuredOfSpans { name: name.clone() }),
            None => Ok(()),
        }
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

/// A stack by frame pointers, as addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedStack {
    /// Its number in the recording: others have other ones.
    pub number: u64,
    /// A sample id of the site.
    pub id: u64,
    /// The process.
    pub pid: i32,
    /// Time of the first hit with it, ns of the trace's clock.
    pub time: u64,
    /// Address of the hit.
    pub ip: u64,
    /// The call chain as samples have it ([`Sample::callchain`](usdtrec_format::perf::Sample::callchain)).
    pub callchain: Vec<u8>,
}

/// Hits of a probe with equal keys. Sites whose arguments have other types have groups of their own, and two strings of which the same beginning was
/// read may have, too.
#[derive(Clone, Debug, PartialEq)]
pub struct HitGroup {
    /// The probe.
    pub probe: Arc<GroupedProbe>,
    /// The value of each key.
    pub values: Vec<AggregateValue>,
    /// Number of hits.
    pub count: u64,
    /// What the numbers of each measured argument add up to; `None` if there were too many groups to add up its numbers. Without a value of
    /// the argument, as for a probe that has none of this name, the count is 0.
    pub numbers: Vec<Option<NumberTotals>>,
}

/// The probe of groups.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedProbe {
    /// Event name; of spans, their name.
    pub event: String,
    /// Whether the groups are of spans, by the arguments of their begins.
    pub is_span: bool,
    /// The argument of each key; `None` for other keys, and if the probe has none of this name.
    pub arguments: Vec<Option<Argument>>,
    /// Each measured argument; `None` if the probe has none of this name.
    pub measured: Vec<Option<Argument>>,
}

/// What hits are grouped by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AggregateKey {
    /// The name of the thread.
    Comm,
    /// The process.
    Pid,
    /// The thread.
    Tid,
    /// The real user id of the process, in the initial user namespace.
    Uid,
    /// The id of the container that the control group at the hit (version 2) is of.
    Container,
    /// The unit of systemd that it is of.
    Unit,
    /// The stack by frame pointers. The recording needs a call graph of them.
    Stack,
    /// An argument, by its name, or as `arg1`, `arg2`, ….
    Argument(String),
}

/// What a key is in a group.
#[derive(Clone, Debug, PartialEq)]
pub enum AggregateValue {
    /// The name of the thread at the hit.
    Comm(Vec<u8>),
    /// A process, thread or user.
    Number(u32),
    /// A container or unit, or why it is not known.
    Group(Result<String, NoGroupName>),
    /// The stack.
    Stack(Arc<CountedStack>),
    /// The value of an argument, or why it is missing.
    Argument(Value),
    /// The probe has no such argument.
    Absent,
}

/// Why the container or unit of a hit is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoGroupName {
    /// The control group is of none.
    None,
    /// The control group was made after the recording began, and removed before what was counted was read.
    Removed,
}

/// A number that is added up in each group: an argument of the hits, or a number of the spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredArgument {
    /// Its name, or `arg1`, `arg2`, ….
    pub name: String,
    /// Whether its numbers are counted by bucket, too.
    pub has_histogram: bool,
    /// What of spans it is; `None` for an argument.
    pub of_span: Option<SpanNumber>,
}

/// A number of a span, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanNumber {
    /// How long it lasted.
    Duration,
    /// A part of that.
    Part(TimePart),
}

impl MeasuredArgument {
    /// The duration of spans, with a histogram.
    #[must_use]
    pub fn duration() -> Self {
        Self {
            name: "span".to_owned(),
            has_histogram: true,
            of_span: Some(SpanNumber::Duration),
        }
    }

    /// What the time of spans was spent on, in the order of [`TimePart::ALL`]. It is known of spans that end in the thread in which they begin.
    pub fn parts() -> impl Iterator<Item = Self> {
        TimePart::ALL.into_iter().map(|part| Self {
            name: part.spec().name.to_owned(),
            has_histogram: false,
            of_span: Some(SpanNumber::Part(part)),
        })
    }
}

/// What is known of the numbers that an argument was in the hits of a group. All hits that are counted are in the figures. A hit that is being
/// counted while this is read may be in some figures, and is in the counts of a later reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberTotals {
    /// Number of hits in which it was known, since the start.
    pub count: u64,
    /// Sum of the numbers since the start, exactly.
    pub sum: i128,
    /// The extremes since the last reading; `None` if there was no number.
    pub ends: Option<NumberEnds>,
    /// The numbers since the start by bucket, in ascending order, without empty buckets; empty without a histogram.
    pub buckets: Vec<BucketCount>,
    /// Number of those that are in no bucket, because there were too many buckets.
    pub unbucketed: u64,
}

/// A bucket of a histogram with its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketCount {
    /// The bucket.
    pub bucket: NumberBucket,
    /// Number of numbers in it.
    pub count: u64,
}

/// What was counted of the spans of one name since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanHits {
    /// Name of the span.
    pub name: String,
    /// What was counted.
    pub counts: SpanHitCounts,
    /// Begins and ends that are not counted, as they were lost.
    pub lost: u64,
}

/// What became of begins and ends. Each hit is one of `begun`, `deep`, `full`, `unkeyed`, `ended`, `unmatched`, and the end of a begin among `deep`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanHitCounts {
    /// Begins that were kept.
    pub begun: u64,
    /// Spans that ended.
    pub ended: u64,
    /// Of these, those whose group has no room.
    pub ungrouped: u64,
    /// Of those that ended, those that were shorter than what is asked for. They are in no group.
    pub short: u64,
    /// Begins whose span had not ended when one around it did.
    pub unfinished: u64,
    /// Ends without a begin.
    pub unmatched: u64,
    /// Hits whose key could not be read.
    pub unkeyed: u64,
    /// Begins that were not kept, because 16 of their key were open.
    pub deep: u64,
    /// Begins that were not kept, because more were open than there is room for, or another program had their key.
    pub full: u64,
    /// Of those that ended, ends that are equal to an older begin of their thread than the one that they took.
    pub older: u64,
}

impl SpanHitCounts {
    /// Begins without an end so far, without those that are unfinished.
    #[must_use]
    pub const fn open(&self) -> u64 {
        let over = self.ended.saturating_add(self.unfinished);
        self.begun.saturating_sub(over)
    }

    /// The sums of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            begun: self.begun + other.begun,
            ended: self.ended + other.ended,
            ungrouped: self.ungrouped + other.ungrouped,
            short: self.short + other.short,
            unfinished: self.unfinished + other.unfinished,
            unmatched: self.unmatched + other.unmatched,
            unkeyed: self.unkeyed + other.unkeyed,
            deep: self.deep + other.deep,
            full: self.full + other.full,
            older: self.older + other.older,
        }
    }
}
