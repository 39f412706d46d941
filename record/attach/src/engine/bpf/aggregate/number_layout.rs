//! Where a group has its numbers: an element of the array of numbers.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 56 each | by measured argument: its [words](Word) |
//! | after them | 8 each | by measured argument with a histogram: the count of each of its [buckets](Buckets) |
//!
//! All begins with 0. The sums of numbers from 0 on and of the magnitudes of negative ones have 128 bits each, so that they cannot overflow: the
//! upper word changes only when the lower one wraps around.

use std::ops::Range;

use usdtrec_decode::{Decoder, IntegerShape, NumberSource};
use usdtrec_format::{NumberBucket, RawArgument, RawField, RawLayout};

use crate::aggregation::{Aggregation, Arguments, BucketCount, MeasuredArgument, NumberEnds};
use crate::error::{NoNumber, UsageError};
use crate::select::probe::PlannedProbe;

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
            let has_buckets = argument.has_histogram && argument.of_span.is_none();
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

    /// Whether no argument is measured.
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

/// An argument of an event whose numbers are aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) enum Measured {
    /// Programs read it.
    Read(MeasuredField),
    /// It is the same number at each hit.
    Constant(i128),
    /// It is never known, or the event has no such argument.
    Missing,
    /// The duration of the spans that the event begins.
    Duration,
    /// A part of that.
    Part,
    /// The same of spans whose key has no thread: another one than that of the begin may end them.
    Unknown,
}

/// How durations and their parts are numbers.
pub(super) const DURATION: IntegerShape = IntegerShape {
    bytes: 8,
    signed: false,
};

/// A number that programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct MeasuredField {
    /// Its field in the raw part.
    pub(super) field: RawField,
    /// How the field is a number.
    pub(super) shape: IntegerShape,
    /// Whether the key of the group has it, too.
    pub(super) is_key: bool,
}

/// The measured arguments of an event.
///
/// # Errors
/// [`UsageError::NoNumber`] for strings and floats.
pub(in crate::engine::bpf) fn measured(
    aggregation: &Aggregation,
    probe: &PlannedProbe,
    layout: &RawLayout,
) -> Result<Vec<Measured>, UsageError> {
    let Some(site) = probe.sites.first() else {
        return Ok(Vec::new());
    };
    let decoder = Decoder::from_raw(&site.site.args, probe.arch, layout);
    let decoder = decoder.typed(&probe.arguments);
    let of = Arguments::from_probe(probe);
    let in_keys = aggregation.needed_by_keys(of);
    let places = aggregation
        .measured
        .iter()
        .zip(aggregation.measured_places(of));
    let is_float = |place: usize| {
        let operand = site.operands.get(place);
        !layout.listed && operand.is_some_and(|operand| operand.float)
    };
    let one = |(argument, place): (&MeasuredArgument, Option<usize>)| {
        let Some(place) = place else {
            return Ok(Measured::Missing);
        };
        let refused = |found| {
            Err(UsageError::NoNumber {
                event: probe.event(),
                argument: argument.name.clone(),
                found,
            })
        };
        match (decoder.number_source(place), layout.arguments.get(place)) {
            (NumberSource::String, _) => refused(NoNumber::String),
            (NumberSource::Float, _) => refused(NoNumber::Float),
            // It may be in a register that programs cannot read.
            (NumberSource::Missing, _) if is_float(place) => refused(NoNumber::Float),
            (NumberSource::Constant(number), _) => Ok(Measured::Constant(number)),
            (NumberSource::Field(shape), Some(RawArgument::Field(field))) => {
                Ok(Measured::Read(MeasuredField {
                    field: *field,
                    shape,
                    is_key: in_keys.contains(&place),
                }))
            }
            (NumberSource::Missing | NumberSource::Field(_), _) => Ok(Measured::Missing),
        }
    };
    places.map(one).collect()
}

/// Number of buckets that are not empty, of most arguments.
const USUALLY_FILLED: usize = 64;

/// The buckets of an argument in all events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Buckets {
    /// Number of buckets from 0 on.
    pub(super) upper: u32,
    /// Number of buckets of negative numbers.
    pub(super) lower: u32,
}

impl Buckets {
    /// The buckets of all 64-bit integers, signed or not.
    pub(super) const ALL: Self = Self {
        upper: NumberBucket::count(u64::BITS),
        lower: NumberBucket::count(u64::BITS - 1),
    };

    /// The buckets of integers of a shape.
    pub(super) const fn for_integers(IntegerShape { bytes, signed }: IntegerShape) -> Self {
        let bits = 8 * bytes as u32;
        match signed {
            true => Self {
                upper: NumberBucket::count(bits - 1),
                lower: NumberBucket::count(bits - 1),
            },
            false => Self {
                upper: NumberBucket::count(bits),
                lower: 0,
            },
        }
    }

    /// The buckets of both.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            upper: self.upper.max(other.upper),
            lower: self.lower.max(other.lower),
        }
    }

    /// Whether all of `other` are among them.
    pub(super) const fn have(self, other: Self) -> bool {
        self.upper >= other.upper && self.lower >= other.lower
    }

    /// Number of buckets.
    pub(super) const fn all(self) -> u32 {
        self.upper + self.lower
    }

    /// The buckets that are not empty, in ascending order. All numbers are between these ends. `counts` has the count of each bucket.
    pub(super) fn filled(self, ends: NumberEnds, counts: impl Fn(u32) -> u64) -> Vec<BucketCount> {
        let NumberEnds { min, max } = ends;
        let lower = places(!max.min(-1), !min, self.lower);
        let upper = places(min.max(0), max, self.upper);
        let mut all = Vec::with_capacity((lower.len() + upper.len()).min(USUALLY_FILLED));
        let mut put = |bucket: Option<NumberBucket>, count: u64| {
            if let (Some(bucket), 1..) = (bucket, count) {
                all.push(BucketCount { bucket, count });
            }
        };
        for place in lower.rev() {
            let bucket = NumberBucket::at_place(place).map(NumberBucket::mirrored);
            put(bucket, counts(self.upper + place));
        }
        for place in upper {
            put(NumberBucket::at_place(place), counts(place));
        }
        all.shrink_to_fit();
        all
    }
}

/// The places of the buckets of numbers of one sign, or of their complements, from `first` to `last`, among so many.
fn places(first: i128, last: i128, all: u32) -> Range<u32> {
    let place = |number: i128| u64::try_from(number).map_or(all, NumberBucket::place);
    match last < 0 {
        true => 0..0,
        false => place(first).min(all)..place(last).saturating_add(1).min(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_are_below_the_others() {
        let buckets = Buckets::for_integers(IntegerShape {
            bytes: 1,
            signed: true,
        });
        assert_eq!((buckets.upper, buckets.lower), (96, 96));
        let ends = |min: i64, max: i64| NumberEnds {
            min: min.into(),
            max: max.into(),
        };
        let all = buckets.filled(ends(i64::MIN, i64::MAX), |_| 1);
        assert_eq!((all[0].bucket.from(), all[191].bucket.to()), (-128, 128));
        assert!(
            all.windows(2)
                .all(|pair| pair[0].bucket.to() == pair[1].bucket.from())
        );
        for number in [-128, -65, -1, 0, 64, 127] {
            let bucket = NumberBucket::from_number(number);
            let bucket = BucketCount { bucket, count: 1 };
            assert!(all.contains(&bucket), "{bucket:?}");
            let only = buckets.filled(ends(number as i64, number as i64), |_| 1);
            assert_eq!(only, [bucket], "{number}");
        }
        let some = buckets.filled(ends(-3, 2), |_| 1);
        let from: Vec<i128> = some.iter().map(|some| some.bucket.from()).collect();
        assert_eq!(from, [-3, -2, -1, 0, 1, 2]);
    }
}
