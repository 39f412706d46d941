//! `report --hist`: the distribution of numbers.

use crate::analysis::measured::{Division, MeasuredSubject};
use crate::analysis::origin::Origin;
use crate::analysis::question::{Scale, Subject};
use crate::analysis::samples::SelectedSamples;
use crate::analysis::span_report::request::SpanRequest;
use crate::analysis::span_report::{self, SpanDurations};
use crate::analysis::spans::ambiguity::Ambiguity;
use crate::analysis::summary::recount::recount;
use crate::analysis::values::ArgumentValues;
use crate::error::ReportError;
use crate::events::fold::Folded;
use crate::events::notices::Notices;
use crate::question_error::QuestionError;
use crate::stats::argument::ArgumentStats;
use crate::stats::distribution::Distribution;
use crate::stats::frequency::Frequency;
use crate::stats::log2::{self, BucketKind, Log2};
use crate::stats::number::{Float, Integer, Number, Scalar};
use crate::stats::text_counts::TextCounts;

/// Different values up to which they are shown one by one unless a scale is requested.
const FEW: usize = 16;
/// Buckets of one width.
const LINEAR: usize = 20;
/// Texts that have a bucket.
const MOST_TEXTS: usize = 50;

/// Histograms of a trace.
#[derive(Debug)]
pub(crate) struct Histograms {
    pub(crate) origin: Origin,
    /// Names that begin and end of a span both have.
    pub(crate) ambiguities: Vec<Ambiguity>,
    pub(crate) all: Vec<Histogram>,
}

/// A histogram.
#[derive(Debug)]
pub(crate) struct Histogram {
    pub(crate) of: MeasuredSubject,
    pub(crate) division: Division,
    pub(crate) count: u64,
    pub(crate) exact: bool,
    pub(crate) buckets: Vec<Bucket>,
    /// Values that are not known.
    pub(crate) missing: u64,
}

/// A bucket of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bucket {
    pub(crate) from: Edge,
    /// `None`: the bucket is one value.
    pub(crate) to: Option<Edge>,
    pub(crate) count: u64,
}

/// Where a bucket begins or ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edge {
    Number(Scalar),
    /// Between infinities.
    NaN,
    Text(Vec<u8>),
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

impl Histogram {
    /// The histogram of spans.
    pub(crate) fn of_spans(spans: SpanDurations, scale: Scale) -> Self {
        let SpanDurations { spans, durations } = spans;
        let kind = BucketKind::Time;
        divided(&durations.distribution, Ruler { scale, kind }).of(MeasuredSubject::Spans(spans), 0)
    }
}

impl Divided {
    fn of(self, of: MeasuredSubject, missing: u64) -> Histogram {
        Histogram {
            of,
            division: self.division,
            count: self.count,
            exact: self.exact,
            buckets: self.buckets,
            missing,
        }
    }
}

/// Counts.
pub(crate) fn histograms(
    samples: SelectedSamples<'_>,
    of: &Subject,
    scale: Scale,
    span_groups: usize,
    notices: &mut Notices,
) -> Result<Histograms, ReportError> {
    match of {
        Subject::Argument(name) => Ok(Histograms {
            origin: Origin::new(samples.session),
            ambiguities: Vec::new(),
            all: of_argument(samples, name, scale, notices)?,
        }),
        Subject::Span(question) => {
            let request = SpanRequest {
                samples,
                question,
                groups: span_groups,
            };
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
    let mut texts: Vec<&mut TextCounts> = all.iter_mut().map(|held| &mut held.texts).collect();
    recount(samples, &mut texts, &values.texts_of_rows(), notices);
    let held = all.into_iter().enumerate();
    let held = held.filter(|(row, _)| values.has(*row));
    let histograms = held.map(|(row, mut held)| {
        held.settle();
        let missing = held.missing.count();
        of_held(&held, scale).of(values.measured(row), missing)
    });
    Ok(histograms.collect())
}

/// Of what an argument held: numbers, else texts.
fn of_held(held: &ArgumentStats, scale: Scale) -> Divided {
    if held.floats.count() > held.integers.count() {
        let kind = BucketKind::Float;
        divided(&held.floats, Ruler { scale, kind })
    } else if held.integers.count() > 0 || held.texts.count() == 0 {
        let kind = BucketKind::Integer;
        divided(&held.integers, Ruler { scale, kind })
    } else {
        of_texts(&held.texts)
    }
}

fn divided<N: Number + Log2 + Linear>(numbers: &Distribution<N>, ruler: Ruler) -> Divided {
    let Ruler { scale, kind } = ruler;
    let values = numbers.values();
    let few = values.as_ref().is_some_and(|values| values.len() <= FEW);
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

fn of_texts(texts: &TextCounts) -> Divided {
    let bucket = |text: &Frequency<&[u8]>| Bucket {
        from: Edge::Text(text.value.to_vec()),
        to: None,
        count: text.count,
    };
    Divided {
        division: Division::Texts,
        count: texts.count(),
        exact: texts.others() == 0,
        buckets: texts
            .by_count()
            .iter()
            .take(MOST_TEXTS)
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

fn by_power<N: Log2 + Copy>(counts: &[Frequency<N>], kind: BucketKind) -> Vec<Bucket> {
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
        to: Some(Edge::Number(log2::from(index + 1, kind))),
        count,
    };
    buckets.into_iter().map(bucket).collect()
}

/// Numbers that can be divided into buckets of one width.
trait Linear {
    /// An edge, as near as there is one.
    fn edge(at: f64) -> Edge;
    /// Width of a bucket, of so many between two numbers.
    fn width(from: f64, to: f64) -> f64;
}

impl Linear for Integer {
    fn edge(at: f64) -> Edge {
        // The least number is whole, and so is the width.
        Edge::Number(Scalar::integer(at as i128))
    }
    fn width(from: f64, to: f64) -> f64 {
        ((to - from + 1.0) / LINEAR as f64).ceil().max(1.0)
    }
}

impl Linear for Float {
    fn edge(at: f64) -> Edge {
        let edge = Self::single(at as f32);
        edge.map_or(Edge::NaN, |edge| Edge::Number(Scalar::Float(edge)))
    }
    fn width(from: f64, to: f64) -> f64 {
        (to - from) / LINEAR as f64
    }
}

fn linear<N: Number + Linear>(numbers: &Distribution<N>) -> Vec<Bucket> {
    let Some(ends) = numbers.ends() else {
        return Vec::new();
    };
    let from = ends.least.approximate();
    let width = N::width(from, ends.greatest.approximate());
    let mut counts = [0; LINEAR];
    for Frequency { value, count } in numbers.counts() {
        let place = (value.approximate() - from) / width;
        // Infinities leave no width.
        let place = if place.is_finite() { place as usize } else { 0 };
        counts[place.min(LINEAR - 1)] += count;
    }
    let last = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    let bucket = |(at, &count): (usize, &u64)| {
        let edge = |at: usize| N::edge(from + width * at as f64);
        Bucket {
            from: edge(at),
            to: Some(edge(at + 1)),
            count,
        }
    };
    counts[..=last].iter().enumerate().map(bucket).collect()
}
