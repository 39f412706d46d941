//! What was counted so far, and in the last interval, as plain rows: what tables on a terminal and metrics show.

use std::collections::BTreeMap;
use std::time::Duration;

use usdtrec_analysis::counted_numbers::{CountedNumbers, NumberFacts};
use usdtrec_format::schema::Argument;

use super::fates::SpanFates;
use super::key::StatKey;

/// What was counted at the end of an interval.
#[derive(Clone, Debug)]
pub struct StatSnapshot {
    /// Time from the start of the recording to the end of the interval.
    pub elapsed: Duration,
    /// Length of the interval.
    pub interval: Duration,
    /// Length that intervals are to have.
    pub every: Duration,
    /// Each measured argument of a probe, by event; `None` if it has none of this name. Probes without groups have none here.
    pub measured: BTreeMap<String, Vec<Option<Argument>>>,
    /// A row for each probe and each group, in the order of events and keys.
    pub rows: Vec<SnapshotRow>,
}

/// A probe, or a group of its hits.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotRow {
    /// `sdt_PROVIDER:NAME`, or the name of a span.
    pub event: String,
    /// Whether it is a span, or a group of spans: the hits are spans then.
    pub is_span: bool,
    /// The value of each key; `None` for hits that are in no group.
    pub keys: Option<Vec<StatKey>>,
    /// What was counted in the interval.
    pub interval: StatSum,
    /// What was counted since the start.
    pub total: StatSum,
    /// The hits of the last intervals, the newest last; empty if they are not kept.
    pub history: Vec<u32>,
}

/// What was counted of a probe or group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatSum {
    /// Number of hits.
    pub count: u64,
    /// Hits that are not counted, because a filter could not be evaluated; 0 in groups.
    pub lost: u64,
    /// The numbers of each measured argument, and the durations of spans where these are asked for; `None` if they are not known. Empty if they were not
    /// asked for.
    pub numbers: Vec<Option<CountedNumbers>>,
    /// What became of begins and ends; `None` but for all spans of a name.
    pub fates: Option<SpanFates>,
}

impl StatSum {
    /// Statistics of the numbers of each measured argument.
    pub(super) fn facts(&self) -> Vec<Option<NumberFacts>> {
        let numbers = self.numbers.iter();
        let facts = numbers.map(|numbers| Some(numbers.as_ref()?.facts()));
        facts.collect()
    }

    /// Adds what was counted of another group of the probe.
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.lost += other.lost;
        self.fates = self.fates.or(other.fates);
        for (sum, other) in self.numbers.iter_mut().zip(&other.numbers) {
            match (&mut *sum, other) {
                (Some(sum), Some(other)) => sum.add(other.clone()),
                _ => *sum = None,
            }
        }
        let further = other.numbers.iter().skip(self.numbers.len());
        self.numbers.extend(further.cloned());
    }
}

impl SnapshotRow {
    /// The durations of the spans in the interval; `None` if they are not known.
    pub(super) fn durations(&self) -> Option<&CountedNumbers> {
        let durations = self.interval.numbers.last().filter(|_| self.is_span)?;
        durations.as_ref()
    }
}

impl StatSnapshot {
    /// A measured argument of a probe, by its place; `None` if it is not known.
    pub(super) fn argument(&self, event: &str, place: usize) -> Option<&Argument> {
        self.measured.get(event)?.get(place)?.as_ref()
    }

    /// The hits and spans in the interval.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.rows.iter().map(|row| row.interval.count).sum()
    }

    /// The hits or the spans in the interval.
    pub(super) fn count_of(&self, spans: bool) -> u64 {
        let rows = self.rows.iter().filter(|row| row.is_span == spans);
        rows.map(|row| row.interval.count).sum()
    }

    /// The same since the start.
    pub(super) fn total_of(&self, spans: bool) -> u64 {
        let rows = self.rows.iter().filter(|row| row.is_span == spans);
        rows.map(|row| row.total.count).sum()
    }

    /// Whether there are rows of hits, or of spans.
    pub(super) fn has(&self, spans: bool) -> bool {
        self.rows.iter().any(|row| row.is_span == spans)
    }

    /// The lost hits since the start.
    pub(super) fn lost(&self) -> u64 {
        self.rows.iter().map(|row| row.total.lost).sum()
    }
}
