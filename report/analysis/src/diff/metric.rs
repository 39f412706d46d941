//! A figure of both recordings, and whether the two differ beyond noise.

use usdtrec_trace::form::Form;

use crate::diff::difference::{Difference, Uncertain};
use crate::diff::span_groups::GroupKey;
use crate::stats::number::Scalar;

/// What a figure is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetricSubject {
    /// A probe, by perf's event name.
    Probe(String),
    /// Spans of one name.
    Span(String),
    /// The part with the same values of keys.
    Group {
        /// Name of the spans.
        span: String,
        /// The values of the keys.
        group: GroupKey,
    },
    /// An argument of a probe.
    Argument {
        /// The probe, by perf's event name.
        event: String,
        /// The argument.
        name: String,
    },
}

/// Which figure.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricKind {
    /// Hits a second.
    Rate,
    /// Number of spans.
    Count,
    /// The longest span, ns.
    Max,
    /// A percentile.
    Quantile(Percentile),
    /// The share of hits with this value.
    Share(ShareOf),
}

/// Which percentile.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentile {
    /// The percentile in thousandths: 990 is p99.
    pub thousandths: u32,
    /// The forms of the argument in both recordings; `None` for times, ns.
    pub forms: Option<[Form; 2]>,
}

/// A value that has a share.
#[derive(Clone, Debug, PartialEq)]
pub enum ShareOf {
    /// Hits without a value.
    Missing,
    /// A number.
    Number {
        /// The number.
        number: Scalar,
        /// How it is shown.
        form: Form,
    },
    /// A string.
    String {
        /// The string.
        string: Vec<u8>,
        /// How it is shown.
        form: Form,
    },
}

/// A figure of one recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The number that it is, if it is one of the recording's own.
    pub number: Option<Scalar>,
    /// The limits within which it may vary by noise; `None` where there is too little to say.
    pub low: Option<f64>,
    /// The upper limit.
    pub high: Option<f64>,
}

/// How far apart both are, beside how far they could be by noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseTest {
    /// The least difference that counts; `None` if there is too little data.
    pub noise: Option<f64>,
    /// How far apart both are, beside that: beyond noise from 1 on.
    pub score: Option<f64>,
    /// The limits between which B's figure less A's is; `None` where there is too little data.
    pub low: Option<f64>,
    /// The upper limit.
    pub high: Option<f64>,
}

/// The result of comparing two figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They differ by more than noise.
    Beyond,
    /// They do not.
    Within,
    /// There is too little data.
    Unknown,
}

/// A figure of both recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// What the figure is of.
    pub subject: MetricSubject,
    /// Which figure.
    pub kind: MetricKind,
    /// Estimate of the first recording.
    pub a: Estimate,
    /// Estimate of the second recording.
    pub b: Estimate,
    /// `None` for what nothing can be said about, as extremes.
    pub test: Option<NoiseTest>,
}

impl Estimate {
    /// A number, without a word on noise.
    pub(crate) fn plain(number: Scalar) -> Self {
        Self {
            value: number.approximate(),
            number: Some(number),
            low: None,
            high: None,
        }
    }
}

impl NoiseTest {
    /// Of a difference from A's figure.
    pub(crate) fn new(difference: &Difference, a: f64) -> Self {
        let Uncertain {
            value,
            below,
            above,
        } = difference.of;
        let reach = difference.reach().filter(|reach| reach.is_finite());
        let noise = |reach: f64| difference.from(a, if value >= 0.0 { reach } else { -reach });
        let is_same = value == 0.0;
        Self {
            noise: reach.map(|reach| noise(reach).abs()),
            score: reach.map(|reach| if is_same { 0.0 } else { value.abs() / reach }),
            low: below.map(|below| difference.from(a, value - below)),
            high: above.map(|above| difference.from(a, value + above)),
        }
    }

    /// With limits between those of what there can be.
    pub(crate) fn within(self, least: f64, most: f64) -> Self {
        Self {
            low: self.low.map(|low| low.max(least)),
            high: self.high.map(|high| high.min(most)),
            ..self
        }
    }

    /// There is too little data.
    pub(crate) const UNKNOWN: Self = Self {
        noise: None,
        score: None,
        low: None,
        high: None,
    };

    fn verdict(self) -> Verdict {
        match self.score {
            None => Verdict::Unknown,
            Some(score) if score > 1.0 => Verdict::Beyond,
            Some(_) => Verdict::Within,
        }
    }
}

impl Metric {
    /// The result of the comparison, if it can be made.
    pub fn verdict(&self) -> Option<Verdict> {
        self.test.map(NoiseTest::verdict)
    }

    /// Ratio of the difference to the noise; 0 if it is not known.
    pub fn score(&self) -> f64 {
        self.test.and_then(|test| test.score).unwrap_or(0.0)
    }

    /// By what part of A's figure B's is greater (negative: less); `None` where A's is 0, or signs differ.
    pub fn change(&self) -> Option<f64> {
        let ratio = self.b.value / self.a.value;
        (self.a.value != 0.0 && ratio.is_finite() && ratio >= 0.0).then_some(ratio - 1.0)
    }

    /// Whether it changed by at least so many percent of A's figure. What was nothing before did.
    pub fn changed_by(&self, percent: f64) -> bool {
        self.change()
            .is_none_or(|change| change.abs() * 100.0 >= percent)
    }
}
