//! Metrics of spans.

use super::super::fates::SpanFates;
use super::super::snapshot::StatSum;
use super::family::{Family, MetricKind};
use super::values::{Scale, put_numbers};

/// The metrics of spans.
pub(super) struct SpanFamilies {
    spans: Family,
    durations: Family,
    open: Family,
    unfinished: Family,
    unmatched: Family,
    unkeyed: Family,
    short: Family,
    unkept: Family,
    lost: Family,
}

impl SpanFamilies {
    pub(super) fn new() -> Self {
        use MetricKind::{Counter, Gauge, Histogram};
        let family = |name: &str, kind, help| Family::new(format!("usdtrec_{name}"), kind, help);
        Self {
            spans: family(
                "spans_total",
                Counter,
                "Spans that ended since the start of the recording, but for those that were too short.",
            ),
            durations: family(
                "span_seconds",
                Histogram,
                "Durations of the spans that ended since the start of the recording.",
            ),
            open: family("spans_open", Gauge, "Begins of spans without an end."),
            unfinished: family(
                "spans_unfinished_total",
                Counter,
                "Begins of spans that had not ended when a span around them did.",
            ),
            unmatched: family(
                "span_ends_unmatched_total",
                Counter,
                "Ends of spans without a begin.",
            ),
            unkeyed: family(
                "span_hits_unkeyed_total",
                Counter,
                "Begins and ends of spans whose key could not be read.",
            ),
            short: family(
                "spans_short_total",
                Counter,
                "Spans that were shorter than what is asked for.",
            ),
            unkept: family(
                "spans_unkept_total",
                Counter,
                "Begins of spans that were not kept, because too many were open.",
            ),
            lost: family(
                "span_hits_lost_total",
                Counter,
                "Begins and ends of spans that were lost.",
            ),
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
        for (family, count) in [
            (&mut self.open, fates.open),
            (&mut self.unfinished, fates.unfinished),
            (&mut self.unmatched, fates.unmatched),
            (&mut self.unkeyed, fates.unkeyed),
            (&mut self.short, fates.short),
            (&mut self.unkept, fates.unkept),
            (&mut self.lost, lost),
        ] {
            family.put("", labels, &count.to_string());
        }
    }

    /// The lines of all metrics.
    pub(super) fn into_lines(self) -> String {
        let Self {
            spans,
            durations,
            open,
            unfinished,
            unmatched,
            unkeyed,
            short,
            unkept,
            lost,
        } = self;
        let all = [
            spans, durations, open, unfinished, unmatched, unkeyed, short, unkept, lost,
        ];
        all.into_iter().map(Family::into_lines).collect()
    }
}
