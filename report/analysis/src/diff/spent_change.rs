//! What the time of the same spans was spent on in both recordings.

use usdtrec_format::TimePart;

use crate::diff::metric::MetricSubject;
use crate::spans::spent_time::SpentFacts;
use crate::stats::ratio::share;

/// What the time of spans was spent on in both recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct SpentChange {
    /// The spans, or a group of them.
    pub subject: MetricSubject,
    /// In the first recording.
    pub a: SpentFacts,
    /// In the second recording.
    pub b: SpentFacts,
}

/// How much more of a part a span has on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartChange {
    /// The part.
    pub part: TimePart,
    /// In B less that in A, ns.
    pub by: f64,
}

impl SpentChange {
    /// The change of a part.
    fn of(&self, part: TimePart) -> PartChange {
        let mean = |spent: &SpentFacts| spent.part(part) as f64 / spent.known.max(1) as f64;
        PartChange {
            part,
            by: mean(&self.b) - mean(&self.a),
        }
    }

    /// The part that accounts for the most of the change of the whole: that which grew the most if spans last longer, else that which shrank the most.
    pub fn most(&self) -> PartChange {
        let changes = TimePart::ALL.map(|part| self.of(part));
        let whole: f64 = changes.iter().map(|change| change.by).sum();
        let [first, others @ ..] = changes;
        others.into_iter().fold(first, |most, change| {
            let is_more = match whole >= 0.0 {
                true => change.by > most.by,
                false => change.by < most.by,
            };
            if is_more { change } else { most }
        })
    }

    /// The shares of a part in the time of spans, 0 to 1: in A and in B.
    pub fn shares(&self, part: TimePart) -> [f64; 2] {
        [&self.a, &self.b].map(|spent| share(spent.part(part), spent.total()))
    }
}
