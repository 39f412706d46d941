//! Where a group has its numbers: an element of the array of numbers.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 56 each | by measured argument: its [words](Word) |
//! | after them | 8 each | by measured argument with a histogram: the count of each of its [buckets](Buckets) |
//!
//! All begins with 0. The sums of numbers from 0 on and of the magnitudes of negative ones have 128 bits each, so that they cannot overflow: the
//! upper word changes only when the lower one wraps around.

use super::buckets::Buckets;
use super::measured_fields::Measured;
use crate::aggregation::Aggregation;

/// Offset of a word of a measured argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Word {
    /// Sum of the numbers from 0 on, two words.
    Positive = 0,
    /// Sum of the magnitudes of the negative numbers, two words.
    Negative = 16,
    /// Number of hits in which the number could not be read; of durations, of those that are in no bucket.
    Missing = 32,
    /// The complement of the rank of the least number; 0 if there was none since the recorder set it to 0.
    Least = 40,
    /// The rank of the greatest number; 0 as before.
    Greatest = 48,
}

/// Size of the words of a measured argument, bytes.
const WORDS: u32 = 56;

/// What is added to a signed number to get its rank: ranks are unsigned, and have the order of the numbers.
pub(super) const RANK_OF_ZERO: u64 = 1 << 63;

/// Where a group has its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::bpf) struct NumberLayout {
    /// The buckets of each measured argument; `None` without a histogram.
    histograms: Vec<Option<Buckets>>,
}

impl NumberLayout {
    /// The layout for events with these measured arguments, and those of events that are added if they need no more buckets.
    pub(super) fn new(aggregation: &Aggregation, events: &[&[Measured]]) -> Self {
        let measured = aggregation.measured.iter().enumerate();
        let histograms = measured.map(|(place, argument)| {
            let needed = events.iter().filter_map(|event| buckets(event, place));
            // Durations have a map of their own.
            let has_buckets = argument.has_histogram && !argument.is_duration;
            has_buckets.then(|| match events {
                [] => Buckets::ALL,
                _ => needed.fold(Buckets::default(), Buckets::with),
            })
        });
        Self {
            histograms: histograms.collect(),
        }
    }

    /// Whether an event needs no more buckets.
    pub(super) fn fits(&self, event: &[Measured]) -> bool {
        let mut histograms = self.histograms.iter().enumerate();
        histograms.all(|(place, has)| match (has, buckets(event, place)) {
            (Some(has), Some(needed)) => has.have(needed),
            _ => true,
        })
    }

    /// Whether nothing is measured.
    pub(super) fn is_empty(&self) -> bool {
        self.histograms.is_empty()
    }

    /// Number of measured arguments.
    pub(super) fn len(&self) -> u32 {
        self.histograms.len() as u32
    }

    /// Size of an element, bytes.
    pub(super) fn bytes(&self) -> u32 {
        self.buckets_at(self.histograms.len())
    }

    /// Offset of a word of a measured argument, by its place.
    pub(super) const fn word_at(place: usize, word: Word) -> u32 {
        place as u32 * WORDS + word as u32
    }

    /// The buckets of a measured argument; `None` without a histogram.
    pub(super) fn histogram(&self, place: usize) -> Option<Buckets> {
        *self.histograms.get(place)?
    }

    /// Offset of the buckets of a measured argument.
    pub(super) fn buckets_at(&self, place: usize) -> u32 {
        let before = self.histograms.iter().take(place).flatten();
        let buckets: u32 = before.map(|buckets| buckets.all()).sum();
        self.len() * WORDS + 8 * buckets
    }
}

/// The buckets that an event needs for an argument that programs read.
fn buckets(event: &[Measured], place: usize) -> Option<Buckets> {
    match event.get(place)? {
        Measured::Read(field) => Some(Buckets::for_integers(field.shape)),
        _ => None,
    }
}
