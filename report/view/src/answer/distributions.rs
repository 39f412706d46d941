//! Histograms and heat maps.

use serde::Serialize;
use usdtrec_analysis::heatmap::{HeatMap, HeatMaps, HeatRow};
use usdtrec_analysis::histogram::{Bucket, Edge, Histogram, Histograms};
use usdtrec_trace::form::Form;

use crate::answer::figure::Figure;
use crate::report::histogram::readable;
use crate::subject_names::{form, measured};

/// A histogram.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistogramAnswer {
    /// The argument (`request.bytes`), or the span.
    pub of: String,
    /// Number of values in the buckets.
    pub count: u64,
    /// Whether all are in their bucket; else those within 1/256 of its edge may be in the next.
    pub exact: bool,
    /// From the lowest up; of strings, the most frequent first.
    pub buckets: Vec<HistogramBucket>,
    /// Number of values that are not known.
    pub missing: u64,
}

/// A bucket of a histogram.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistogramBucket {
    /// The least value; ns of spans.
    pub from: HistogramEdge,
    /// Its end, which is not in it; `None` if the bucket is one value.
    pub to: Option<HistogramEdge>,
    /// Number of values in it.
    pub count: u64,
    /// The readable name, if the value is a mangled name of C++ or Rust, as a schema says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demangled: Option<String>,
}

/// Where a bucket begins or ends.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum HistogramEdge {
    /// A number.
    Number(Figure),
    /// A string; U+FFFD replaces what is not UTF-8.
    String(String),
}

/// The distribution of numbers over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeatMapAnswer {
    /// The argument, or the span.
    pub of: String,
    /// Time of the first interval, by the trace's clock, ns.
    pub from_ns: u64,
    /// Length of an interval, ns.
    pub interval_ns: u64,
    /// From the lowest up.
    pub buckets: Vec<HeatMapBucket>,
}

/// A bucket of numbers, interval by interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeatMapBucket {
    /// The least value; ns of spans.
    pub from: Figure,
    /// Its end, which is not in it; `None` if the bucket is infinity.
    pub to: Option<Figure>,
    /// Number of values in each interval.
    pub counts: Vec<u64>,
}

impl HistogramAnswer {
    pub(crate) fn all(histograms: &Histograms) -> Vec<Self> {
        histograms.all.iter().map(Self::new).collect()
    }

    fn new(histogram: &Histogram) -> Self {
        let form = form(&histogram.of).plain();
        let buckets = histogram.buckets.iter();
        Self {
            of: measured(&histogram.of, false),
            count: histogram.count,
            exact: histogram.exact,
            buckets: buckets.map(|bucket| bucket_of(bucket, &form)).collect(),
            missing: histogram.missing,
        }
    }
}

/// A bucket of an argument's numbers or strings.
pub(crate) fn bucket_of(bucket: &Bucket, form: &Form) -> HistogramBucket {
    HistogramBucket {
        from: HistogramEdge::new(&bucket.from),
        to: bucket.to.as_ref().map(HistogramEdge::new),
        count: bucket.count,
        demangled: readable(&bucket.from, form),
    }
}

impl HistogramEdge {
    fn new(edge: &Edge) -> Self {
        match edge {
            Edge::Number(number) => Self::Number((*number).into()),
            Edge::String(string) => Self::String(String::from_utf8_lossy(string).into_owned()),
        }
    }
}

impl HeatMapAnswer {
    pub(crate) fn all(maps: &HeatMaps) -> Vec<Self> {
        let one = |map: &HeatMap| Self {
            of: measured(&map.of, false),
            from_ns: maps.timeline.from,
            interval_ns: maps.timeline.interval,
            buckets: map.buckets.iter().map(HeatMapBucket::new).collect(),
        };
        maps.all.iter().map(one).collect()
    }
}

impl HeatMapBucket {
    fn new(row: &HeatRow) -> Self {
        Self {
            from: row.from.into(),
            to: row.to.map(Figure::from),
            counts: row.counts.clone(),
        }
    }
}
