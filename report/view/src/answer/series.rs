//! Rates.

use serde::Serialize;
use usdtrec_analysis::rate::Rates;
use usdtrec_analysis::stats::keys::key::Key;

use crate::answer::key_values::KeyValues;

/// Events of one series, interval by interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateSeries {
    /// The event; `None` if `event` is a key, and for the series that are not counted one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The values of its keys; `null`, and `event` among them, for the series that are not counted one by one.
    #[serde(flatten)]
    pub keys: KeyValues,
    /// If it stands for the series that are not counted one by one: what is known of them.
    #[serde(flatten)]
    pub others: Option<OtherSeriesRow>,
    /// Time of the first interval, by the trace's clock, ns.
    pub from_ns: u64,
    /// Length of an interval, ns.
    pub interval_ns: u64,
    /// Number of events in each interval.
    pub counts: Vec<u64>,
    /// For how long its probes were attached in each interval, ns: less in the last one, and in pauses.
    pub recorded_ns: Vec<u64>,
}

/// Series that are not counted one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OtherSeriesRow {
    /// `true`.
    pub others: bool,
    /// Number of events that one of them may have at most, if that is more than the last one shown has.
    pub doubtful: Option<u64>,
}

impl RateSeries {
    pub(crate) fn all(rates: &Rates) -> Vec<Self> {
        let row = |counts: &[u64], recorded: &[u64]| Self {
            event: None,
            keys: KeyValues::default(),
            others: None,
            from_ns: rates.timeline.from,
            interval_ns: rates.timeline.interval,
            counts: counts.to_vec(),
            recorded_ns: recorded.to_vec(),
        };
        let series = rates.series.iter().map(|series| Self {
            event: series.event.clone(),
            keys: KeyValues::new(&rates.keys, &series.values),
            ..row(&series.counts, &series.recorded)
        });
        let by_event = rates.series.iter().any(|series| series.event.is_some());
        let event = by_event.then_some("event");
        let names = || event.into_iter().chain(rates.keys.iter().map(Key::name));
        let others = rates.others.iter().map(|others| Self {
            keys: KeyValues::none(names()),
            others: Some(OtherSeriesRow {
                others: true,
                doubtful: others.doubtful,
            }),
            ..row(&others.counts, &others.recorded)
        });
        series.chain(others).collect()
    }
}
