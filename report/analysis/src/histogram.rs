//! `report --hist`: the distribution of numbers.

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::fold::Folded;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::question_error::QuestionError;

use crate::measured_subject::{Division, MeasuredSubject};
use crate::origin::Origin;
use crate::question::{Scale, Subject};
use crate::samples::SelectedSamples;
use crate::span_report::request::SpanRequest;
use crate::span_report::{self, SpanDurations};
use crate::spans::ambiguity::Ambiguity;
use crate::stats::argument::ArgumentStats;
use crate::stats::distribution::{Distribution, Extremes};
use crate::stats::frequency::Frequency;
use crate::stats::log2::{self, BucketKind, Log2};
use crate::stats::number::{Float, Integer, Number, Scalar};
use crate::stats::string_counts::StringCounts;
use crate::summary::frequent_strings::recount;
use crate::values::ArgumentValues;

/// Different values up to which they are shown one by one unless a scale is requested.
const MAX_LISTED_VALUES: usize = 16;
/// Buckets of one width.
const LINEAR: usize = 20;
/// Strings that have a bucket.
const MAX_STRINGS: usize = 50;

/// Histograms of a trace.
#[derive(Debug)]
pub struct Histograms {
    /// Facts about the trace.
    pub origin: Origin,
    /// Names that begin and end of a span both have.
    pub ambiguities: Vec<Ambiguity>,
    /// The histograms.
    pub all: Vec<Histogram>,
}

/// A histogram.
#[derive(Debug)]
pub struct Histogram {
    /// What its values are of.
    pub of: MeasuredSubject,
    /// How they are divided.
    pub division: Division,
    /// Number of values.
    pub count: u64,
    /// Whether each value was counted; else numbers are within 1/256 of themselves.
    pub exact: bool,
    /// The buckets, in the order of their values; of strings, the most frequent first.
    pub buckets: Vec<Bucket>,
    /// Values that are not known.
    pub missing: u64,
    /// Floats that are no number, which are in no bucket.
    pub nan: u64,
    /// Strings whose pointer is null.
    pub nulls: u64,
    /// Strings without a bucket: less frequent ones.
    pub others: u64,
}

/// A bucket of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// Where it begins.
    pub from: Edge,
    /// `None`: the bucket is one value.
    pub to: Option<Edge>,
    /// Number of values in it.
    pub count: u64,
}

/// Where a bucket begins or ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Edge {
    /// A number.
    Number(Scalar),
    /// A string.
    String(Vec<u8>),
}

/// How numbers are divided.
#[derive(Clone, Copy, Debug)]
struct Ruler {
    scale: Scale,
    kind: BucketKind,
}

/// What a histogram has besides whose numbers it is of.
struct Divided {
    division: Division,
    count: u64,
    exact: bool,
    buckets: Vec<Bucket>,
}

/// Values of an argument that are in no histogram.
#[derive(Clone, Copy, Default)]
struct NotDivided {
    missing: u64,
    nan: u64,
    nulls: u64,
}

impl Histogram {
    /// The histogram of spans.
    pub(crate) fn of_spans(spans: SpanDurations, scale: Scale) -> Self {
        let SpanDurations { spans, durations } = spans;
        let kind = BucketKind::Time;
        let rest = NotDivided {
            missing: spans.measured.map_or(0, |_| durations.spent.unknown()),
            ..NotDivided::default()
        };
        divided(&durations.distribution, Ruler { scale, kind })
            .into_histogram(MeasuredSubject::Spans(spans), rest)
    }
}

impl Divided {
    fn into_histogram(self, of: MeasuredSubject, rest: NotDivided) -> Histogram {
        let in_buckets: u64 = self.buckets.iter().map(|bucket| bucket.count).sum();
        Histogram {
            of,
            division: self.division,
            count: self.count,
            exact: self.exact,
            others: self.count.saturating_sub(in_buckets),
            buckets: self.buckets,
            missing: rest.missing,
            nan: rest.nan,
            nulls: rest.nulls,
        }
    }
}

/// Counts.
pub(crate) fn histograms(
    samples: SelectedSamples<'_>,
    of: &Subject,
    scale: Scale,
    notices: &mut Notices,
) -> Result<Histograms, ReportError> {
    match of {
        Subject::Argument(name) => Ok(Histograms {
            origin: Origin::new(samples.session),
            ambiguities: Vec::new(),
            all: of_argument(samples, name, scale, notices)?,
        }),
        Subject::Span(question) => {
            let request = SpanRequest { samples, question };
            let found = span_report::named(request, None, notices)?;
            let one = |spans: SpanDurations| Histogram::of_spans(spans, scale);
            Ok(Histograms {
                origin: Origin::new(samples.session),
                ambiguities: found.ambiguities,
                all: found.named.into_iter().map(one).collect(),
            })
        }
    }
}

fn of_argument(
    samples: SelectedSamples<'_>,
    name: &str,
    scale: Scale,
    notices: &mut Notices,
) -> Result<Vec<Histogram>, ReportError> {
    let SelectedSamples { session, filter } = samples;
    let of_key = |name| QuestionError::HistogramOfKey { name };
    let values = ArgumentValues::new(session, filter, name, of_key)?;
    let none = || vec![ArgumentStats::default(); values.rows.rows.len()];
    let Folded { states, outcome } = values.fold(session, filter, none, |held, row, value, _| {
        if let Some(held) = held.get_mut(row) {
            held.add(value);
        }
    });
    notices.add(outcome);
    let mut all = none();
    for state in states {
        for (all, held) in all.iter_mut().zip(state) {
            all.merge(held);
        }
    }
    let mut strings: Vec<&mut StringCounts> =
        all.iter_mut().map(|held| &mut held.strings).collect();
    recount(samples, &mut strings, &values.strings_of_rows(), notices);
    let held = all.into_iter().enumerate();
    let held = held.filter(|(row, _)| values.has(*row));
    let histograms = held.flat_map(|(row, mut held)| {
        held.settle();
        let all = of_held(&held, scale);
        // What is in none is said once, with the last.
        let last = all.len().saturating_sub(1);
        let rest = NotDivided {
            missing: held.missing.count(),
            nan: held.nan,
            nulls: held.nulls,
        };
        let all = all.into_iter().enumerate().map(|(at, divided)| {
            let rest = if at == last {
                rest
            } else {
                NotDivided::default()
            };
            divided.into_histogram(values.measured(row), rest)
        });
        all.collect::<Vec<_>>()
    });
    Ok(histograms.collect())
}

/// Of what an argument held: integers, floats and strings each have their own; one is there if it held nothing.
fn of_held(held: &ArgumentStats, scale: Scale) -> Vec<Divided> {
    let (has_floats, has_strings) = (held.floats.count() > 0, held.strings.count() > 0);
    let mut all = Vec::new();
    if held.integers.count() > 0 || !has_floats && !has_strings {
        let kind = BucketKind::Integer;
        all.push(divided(&held.integers, Ruler { scale, kind }));
    }
    if has_floats {
        let kind = BucketKind::Float;
        all.push(divided(&held.floats, Ruler { scale, kind }));
    }
    if has_strings {
        all.push(of_strings(&held.strings));
    }
    all
}

fn divided<N: Log2 + Linear>(numbers: &Distribution<N>, ruler: Ruler) -> Divided {
    let Ruler { scale, kind } = ruler;
    let values = numbers.values();
    let few = values
        .as_ref()
        .is_some_and(|values| values.len() <= MAX_LISTED_VALUES);
    let scale = match scale {
        Scale::Auto if few && kind != BucketKind::Time => Scale::Value,
        Scale::Auto => Scale::Log2,
        Scale::Value if values.is_none() => Scale::Log2,
        asked => asked,
    };
    let (division, buckets) = match (scale, values) {
        (Scale::Value, Some(values)) => (Division::Values, by_value(&values)),
        (Scale::Linear, _) => (Division::Linear, linear(numbers)),
        _ => (Division::Log2, by_power(&numbers.counts(), kind)),
    };
    Divided {
        division,
        count: numbers.count(),
        exact: numbers.values().is_some(),
        buckets,
    }
}

fn of_strings(strings: &StringCounts) -> Divided {
    let bucket = |string: &Frequency<&[u8]>| Bucket {
        from: Edge::String(string.value.to_vec()),
        to: None,
        count: string.count,
    };
    Divided {
        division: Division::Strings,
        count: strings.count(),
        exact: strings.others() == 0,
        buckets: strings
            .by_count()
            .iter()
            .take(MAX_STRINGS)
            .map(bucket)
            .collect(),
    }
}

fn by_value<N: Number>(values: &[Frequency<N>]) -> Vec<Bucket> {
    let bucket = |number: &Frequency<N>| Bucket {
        from: Edge::Number(number.value.scalar()),
        to: None,
        count: number.count,
    };
    values.iter().map(bucket).collect()
}

pub(crate) fn by_power<N: Log2 + Copy>(counts: &[Frequency<N>], kind: BucketKind) -> Vec<Bucket> {
    let mut buckets: Vec<(i32, u64)> = Vec::new();
    for &Frequency { value, count } in counts {
        let index = value.index(kind);
        match buckets.last_mut() {
            Some((last, sum)) if *last == index => *sum += count,
            Some((last, _)) => {
                // Empty ones between show that there is nothing; of floats there may be very many.
                let gap = if index - *last <= 64 {
                    *last + 1..index
                } else {
                    0..0
                };
                buckets.extend(gap.map(|index| (index, 0)));
                buckets.push((index, count));
            }
            None => buckets.push((index, count)),
        }
    }
    let bucket = |(index, count): (i32, u64)| Bucket {
        from: Edge::Number(log2::from(index, kind)),
        to: log2::to(index, kind).map(Edge::Number),
        count,
    };
    buckets.into_iter().map(bucket).collect()
}

/// Numbers that can be divided into buckets of one width.
trait Linear: Number {
    /// The lower edges of at most [`LINEAR`] buckets, and the upper edge of the last one, which is above the greatest number.
    fn edges(ends: Extremes<Self>) -> Vec<Self>;
    /// Whether it is no infinity.
    fn is_finite(self) -> bool;
    /// Whether it is at an edge or above it.
    fn is_from(self, edge: Self) -> bool;
}

impl Linear for Integer {
    fn edges(Extremes { least, greatest }: Extremes<Self>) -> Vec<Self> {
        let (least, numbers) = (least.0, greatest.0 - least.0 + 1);
        let width = (numbers as u128).div_ceil(LINEAR as u128).max(1) as i128;
        let buckets = (numbers as u128).div_ceil(width as u128) as i128;
        (0..=buckets).map(|at| Self(least + width * at)).collect()
    }

    fn is_finite(self) -> bool {
        true
    }

    fn is_from(self, edge: Self) -> bool {
        self >= edge
    }
}

impl Linear for Float {
    fn edges(Extremes { least, greatest }: Extremes<Self>) -> Vec<Self> {
        let (from, to) = (least.value(), greatest.value());
        // Half of it, since the whole may be beyond what a float can hold.
        let half = to / 2.0 - from / 2.0;
        let width = half / (LINEAR as f64 / 2.0);
        // Edges have no more digits than buckets need.
        let digits = (2.0 - width.log10().floor()).clamp(0.0, 340.0) as usize;
        let edge = |at: usize| {
            let edge = format!("{:.digits$}", from + width * at as f64);
            Self::double(edge.parse().ok()?)
        };
        let mut edges = vec![least];
        edges.extend(
            (1..LINEAR)
                .filter_map(edge)
                .filter(|edge| least < *edge && *edge <= greatest),
        );
        edges.dedup();
        edges.extend(Self::double(to.next_up()).filter(|end| *end > greatest));
        edges
    }

    fn is_finite(self) -> bool {
        self.value().is_finite()
    }

    fn is_from(self, edge: Self) -> bool {
        // Two zeros are one number.
        self.value() >= edge.value()
    }
}

fn linear<N: Linear>(numbers: &Distribution<N>) -> Vec<Bucket> {
    let Some(all) = numbers.ends() else {
        return Vec::new();
    };
    let counts = numbers.counts();
    let (finite, infinite): (Vec<Frequency<N>>, Vec<_>) =
        counts.iter().partition(|one| one.value.is_finite());
    let ends = finite
        .first()
        .zip(finite.last())
        .map(|(first, last)| Extremes {
            least: if all.least.is_finite() {
                all.least
            } else {
                first.value
            },
            greatest: if all.greatest.is_finite() {
                all.greatest
            } else {
                last.value
            },
        });
    let mut buckets = ends.map_or_else(Vec::new, |ends| of_one_width(&finite, ends));
    // Infinities have buckets of their own, and the others the width that these alone have.
    for Frequency { value, count } in infinite {
        let from = Edge::Number(value.scalar());
        match value == all.least {
            true => {
                let to = buckets.first().map(|bucket| bucket.from.clone());
                buckets.insert(0, Bucket { from, to, count });
            }
            false => buckets.push(Bucket {
                from,
                to: None,
                count,
            }),
        }
    }
    buckets
}

/// Finite numbers, whose least and greatest are known.
fn of_one_width<N: Linear>(counts: &[Frequency<N>], ends: Extremes<N>) -> Vec<Bucket> {
    let edges = N::edges(ends);
    let edge = |at: usize| Some(Edge::Number(edges.get(at)?.scalar()));
    let between = (1..edges.len()).filter_map(|at| {
        Some(Bucket {
            from: edge(at - 1)?,
            to: edge(at),
            count: 0,
        })
    });
    let mut buckets: Vec<Bucket> = between.collect();
    for Frequency { value, count } in counts {
        let at = edges.partition_point(|edge| value.is_from(*edge));
        let last = buckets.len().saturating_sub(1);
        if let Some(bucket) = buckets.get_mut(at.saturating_sub(1).min(last)) {
            bucket.count += count;
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution<N: Number>(numbers: impl IntoIterator<Item = N>) -> Distribution<N> {
        let mut all = Distribution::default();
        numbers.into_iter().for_each(|number| all.add(number));
        all.settle();
        all
    }

    /// Asserts that each bucket has the numbers that are between its edges.
    fn holds(buckets: &[Bucket], numbers: &[f64]) {
        let at = |edge: &Edge| match edge {
            Edge::Number(number) => number.approximate(),
            Edge::String(_) => panic!("{edge:?}"),
        };
        for Bucket { from, to, count } in buckets {
            let is_in = |number: &&f64| {
                **number >= at(from) && to.as_ref().is_none_or(|to| **number < at(to))
            };
            let expected = numbers.iter().filter(is_in).count() as u64;
            assert_eq!(*count, expected, "{from:?} to {to:?}");
        }
        let all: u64 = buckets.iter().map(|bucket| bucket.count).sum();
        assert_eq!(all, numbers.len() as u64);
    }

    #[test]
    fn buckets_have_what_is_between_their_edges() {
        for (from, to) in [(-8, 9), (-1024, 1025), (-5000, -3), (-1, 1), (3, 700)] {
            let numbers: Vec<f64> = (from..to).map(f64::from).collect();
            let integers = distribution((from..to).map(|at: i32| Integer(at.into())));
            let floats = numbers.iter().filter_map(|&number| Float::double(number));
            let floats = distribution(floats);
            let is_exact = integers.values().is_some();
            holds(&by_power(&integers.counts(), BucketKind::Integer), &numbers);
            holds(&by_power(&floats.counts(), BucketKind::Float), &numbers);
            if is_exact {
                holds(&linear(&integers), &numbers);
                holds(&linear(&floats), &numbers);
            }
        }
        let numbers = [0.1, 0.2, 1.0 / 3.0, 0.7, 2.0 / 3.0, 1.0];
        let floats = distribution(numbers.into_iter().filter_map(Float::double));
        holds(&linear(&floats), &numbers);
        holds(&by_power(&floats.counts(), BucketKind::Float), &numbers);
    }

    #[test]
    fn extremes_have_buckets() {
        let floats = [
            f64::NEG_INFINITY,
            f64::MIN,
            -0.0,
            0.0,
            f64::MAX,
            f64::INFINITY,
        ];
        for few in [
            &floats[..],
            &floats[1..5],
            &floats[..1],
            &floats[5..],
            &floats[2..4],
        ] {
            let all = distribution(few.iter().filter_map(|&number| Float::double(number)));
            holds(&by_power(&all.counts(), BucketKind::Float), few);
            holds(&linear(&all), few);
        }
        let ends = [i64::MIN.into(), -1, 0, u64::MAX.into()];
        for few in [&ends[..], &ends[..1], &ends[3..]] {
            let all = distribution(few.iter().map(|&number| Integer(number)));
            for buckets in [linear(&all), by_power(&all.counts(), BucketKind::Integer)] {
                let all: u64 = buckets.iter().map(|bucket| bucket.count).sum();
                assert_eq!(all, few.len() as u64);
                assert_eq!(buckets[0].count, 1);
            }
        }
    }

    const REPETITIONS: usize = 2000;

    /// Each number is in the bucket that rational arithmetic says, whatever the scale; sums of integers are exact.
    #[test]
    fn any_numbers_have_their_buckets() {
        let special = [
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.0,
            -0.0,
            f64::MIN_POSITIVE,
            -5e-324,
            f64::MAX,
            f64::MIN,
            1.0,
            -1.0,
            0.1,
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..REPETITIONS {
            let count = random() % 40 + 1;
            let mut numbers = Vec::new();
            for _ in 0..count {
                let number = match random() % 4 {
                    0 => special[random() as usize % special.len()],
                    1 => (random() % 2000) as f64 / 8.0 - 100.0,
                    2 => f64::from_bits(random()),
                    _ => (random() as i64) as f64,
                };
                numbers.extend((!number.is_nan()).then_some(number));
            }
            let all = distribution(numbers.iter().filter_map(|&number| Float::double(number)));
            holds(&by_power(&all.counts(), BucketKind::Float), &numbers);
            holds(&linear(&all), &numbers);
            let integers: Vec<i128> = (0..count)
                .map(|_| match random() % 3 {
                    0 => i128::from(random()),
                    1 => i128::from(random() as i64),
                    _ => i128::from(random() % 64) - 32,
                })
                .collect();
            let all = distribution(integers.iter().map(|&number| Integer(number)));
            for buckets in [linear(&all), by_power(&all.counts(), BucketKind::Integer)] {
                holds_integers(&buckets, &integers);
            }
        }
    }

    fn holds_integers(buckets: &[Bucket], numbers: &[i128]) {
        let at = |edge: &Edge| match edge {
            Edge::Number(Scalar::Integer(number)) => number.0,
            other => panic!("{other:?}"),
        };
        for Bucket { from, to, count } in buckets {
            let is_in = |number: &&i128| {
                **number >= at(from) && to.as_ref().is_none_or(|to| **number < at(to))
            };
            let expected = numbers.iter().filter(is_in).count() as u64;
            assert_eq!(*count, expected, "{from:?} to {to:?} of {numbers:?}");
        }
        let all: u64 = buckets.iter().map(|bucket| bucket.count).sum();
        assert_eq!(all, numbers.len() as u64);
    }
}
