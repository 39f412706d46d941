//! Metrics of spans.

use super::super::fates::SpanFates;
use super::super::snapshot::StatSum;
use super::family::{Family, MetricKind};
use super::values::{Scale, put_numbers};

/// What becomes of begins and ends: the name of each metric after `usdtrec_`, its kind and help, in the order of [`SpanFates::parts`]; hits that are lost
/// follow.
const FATES: [(&str, MetricKind, &str); 7] = [
    (
        "spans_open",
        MetricKind::Gauge,
        "Begins of spans without an end.",
    ),
    (
        "spans_unfinished_total",
        MetricKind::Counter,
        "Begins of spans that had not ended when a span around them did.",
    ),
    (
        "span_ends_unmatched_total",
        MetricKind::Counter,
        "Ends of spans without a begin.",
    ),
    (
        "span_hits_unkeyed_total",
        MetricKind::Counter,
        "Begins and ends of spans whose key could not be read.",
    ),
    (
        "spans_short_total",
        MetricKind::Counter,
        "Spans that were shorter than what is asked for.",
    ),
    (
        "spans_unkept_total",
        MetricKind::Counter,
        "Begins of spans that were not kept, because too many were open.",
    ),
    (
        "span_hits_lost_total",
        MetricKind::Counter,
        "Begins and ends of spans that were lost.",
    ),
];

/// The metrics of spans.
pub(super) struct SpanFamilies {
    spans: Family,
    durations: Family,
    /// Those of [`FATES`].
    fates: [Family; FATES.len()],
}

impl SpanFamilies {
    pub(super) fn new() -> Self {
        let family = |name: &str, kind, help| Family::new(format!("usdtrec_{name}"), kind, help);
        Self {
            spans: family(
                "spans_total",
                MetricKind::Counter,
                "Spans that ended since the start of the recording, but for those that were too short.",
            ),
            durations: family(
                "span_seconds",
                MetricKind::Histogram,
                "Durations of the spans that ended since the start of the recording.",
            ),
            fates: FATES.map(|(name, kind, help)| family(name, kind, help)),
        }
    }

    /// Adds the spans of a name or group with these labels.
    pub(super) fn put(&mut self, sum: &StatSum, labels: &str) {
        self.spans.put("", labels, &sum.count.to_string());
        let durations = sum.numbers.last().and_then(Option::as_ref);
        if let Some(durations) = durations.filter(|durations| durations.unbucketed == 0) {
            put_numbers(&mut self.durations, &Scale::NANOSECONDS, durations, labels);
        }
    }

    /// Adds what became of begins and ends of the spans of a name with these labels.
    pub(super) fn put_fates(&mut self, fates: SpanFates, lost: u64, labels: &str) {
        let counts = fates.parts().into_iter().map(|fate| fate.count);
        for (family, count) in self.fates.iter_mut().zip(counts.chain([lost])) {
            family.put("", labels, &count.to_string());
        }
    }

    /// The lines of all metrics.
    pub(super) fn into_lines(self) -> String {
        let all = [self.spans, self.durations].into_iter().chain(self.fates);
        all.map(Family::into_lines).collect()
    }
}
