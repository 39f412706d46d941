//! What was counted as metrics of Prometheus, in its text format, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! A counter must not decrease. So a group that once has a sample of its own keeps it, and one that is counted among the others stays there.

mod family;
mod names;
mod spans;
mod values;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use usdtrec_format::schema::Argument;
use usdtrec_trace::session::event_name::short_name;

use self::family::{Family, MetricKind, put_label};
use self::names::{ValueOf, label_names};
use self::spans::SpanFamilies;
use self::values::ValueFamilies;
use super::fates::SpanFates;
use super::key::{StatKey, with_mark};
use super::snapshot::{SnapshotRow, StatSnapshot, StatSum};

/// Maximum number of groups of a probe that have samples of their own.
const MAX_SERIES: usize = 1000;

/// Shows what was counted as metrics.
#[derive(Debug)]
pub struct PrometheusView {
    /// Labels of the keys; empty if probes are not divided into groups.
    labels: Vec<String>,
    /// The labels of the groups with samples of their own, by event.
    own: BTreeMap<String, BTreeSet<String>>,
}

/// What was counted of a probe, by the labels of its groups.
#[derive(Default)]
struct ProbeSeries {
    is_span: bool,
    sums: BTreeMap<String, StatSum>,
    /// What became of begins and ends.
    fates: SpanFates,
    /// What is in no group that has a sample of its own.
    others: StatSum,
}

impl PrometheusView {
    /// A view of groups with these keys.
    #[must_use]
    pub fn new(keys: &[String]) -> Self {
        Self {
            labels: label_names(keys),
            own: BTreeMap::new(),
        }
    }

    /// The metrics: what was counted since the start.
    #[must_use]
    pub fn show(&mut self, snapshot: &StatSnapshot) -> String {
        let mut hits = Family::new(
            "usdtrec_hits_total".to_owned(),
            MetricKind::Counter,
            &self.help(),
        );
        let mut lost = Family::new(
            "usdtrec_lost_hits_total".to_owned(),
            MetricKind::Counter,
            "Hits that were not counted, because the filter of the probe could not be evaluated.",
        );
        let mut values = ValueFamilies::default();
        let mut spans = None;
        for (event, series) in self.series(snapshot) {
            let probe = Probe::new(&event, series.is_span);
            let mut others = probe.labels.clone();
            put_label("others", "true", &mut others);
            let fates = series.fates;
            if series.is_span {
                let spans = spans.get_or_insert_with(SpanFamilies::new);
                spans.put_fates(fates, series.others.lost, &probe.labels);
            } else {
                lost.put("", &probe.labels, &series.others.lost.to_string());
            }
            let others = (!self.labels.is_empty()).then_some((others, series.others));
            for (labels, sum) in series.sums.into_iter().chain(others) {
                if let Some(spans) = spans.as_mut().filter(|_| series.is_span) {
                    spans.put(&sum, &labels);
                    continue;
                }
                hits.put("", &labels, &sum.count.to_string());
                for (place, numbers) in sum.numbers.iter().enumerate() {
                    let argument = snapshot.argument(&event, place);
                    if let (Some(argument), Some(numbers)) = (argument, numbers) {
                        let value = probe.value(place, argument);
                        values.put(value, numbers, &labels);
                    }
                }
            }
        }
        let spans = spans.map_or_else(String::new, SpanFamilies::into_lines);
        hits.into_lines() + &lost.into_lines() + &values.into_lines() + &spans
    }

    fn help(&self) -> String {
        let help = "Hits of the probe since the start of the recording";
        match self.labels.is_empty() {
            true => format!("{help}."),
            false => format!(
                "{help}, by group. others=\"true\" has the hits of all groups of a probe beyond its first {MAX_SERIES}, and those in no group."
            ),
        }
    }

    /// What was counted of each probe.
    fn series(&mut self, snapshot: &StatSnapshot) -> BTreeMap<String, ProbeSeries> {
        let mut all: BTreeMap<String, ProbeSeries> = BTreeMap::new();
        let mut rows: Vec<&SnapshotRow> = snapshot.rows.iter().collect();
        // Of those that have no sample yet, the groups with the most hits get theirs first.
        rows.sort_by_key(|row| Reverse(row.total.count));
        for row in rows {
            let series = all.entry(row.event.clone()).or_default();
            series.is_span = row.is_span;
            series.fates = row.total.fates.unwrap_or(series.fates);
            match self.own_labels(row) {
                Some(labels) => {
                    series.others.lost += row.total.lost;
                    series.sums.entry(labels).or_default().add(&row.total);
                }
                None => series.others.add(&row.total),
            }
        }
        all
    }

    /// The labels of a row with a sample of its own; `None` if it is one of the others.
    fn own_labels(&mut self, row: &SnapshotRow) -> Option<String> {
        let keys = row.keys.as_ref()?;
        let mut labels = Probe::new(&row.event, row.is_span).labels;
        for (name, key) in self.labels.iter().zip(keys) {
            put_label(name, &label_value(key), &mut labels);
        }
        if self.labels.is_empty() {
            return Some(labels);
        }
        let own = self.own.entry(row.event.clone()).or_default();
        if !own.contains(&labels) {
            if own.len() >= MAX_SERIES {
                return None;
            }
            own.insert(labels.clone());
        }
        Some(labels)
    }
}

/// A probe or span with its labels.
struct Probe<'e> {
    provider: &'e str,
    name: &'e str,
    labels: String,
}

impl<'e> Probe<'e> {
    fn new(event: &'e str, is_span: bool) -> Self {
        let short = short_name(event);
        let (provider, name) = short.split_once(':').unwrap_or(("", short));
        let mut labels = String::new();
        put_label("provider", &printable(provider), &mut labels);
        let of_name = if is_span { "span" } else { "probe" };
        put_label(of_name, &printable(name), &mut labels);
        Self {
            provider,
            name,
            labels,
        }
    }

    const fn value<'a>(&'a self, place: usize, argument: &'a Argument) -> ValueOf<'a> {
        ValueOf {
            provider: self.provider,
            probe: self.name,
            place,
            argument,
        }
    }
}

fn printable(name: &str) -> String {
    usdtrec_format::escape::escape(name).into_owned()
}

/// The text of a key. Groups whose keys are the same text are one: a byte that cannot be printed, and its escape.
fn label_value(key: &StatKey) -> String {
    match key {
        StatKey::Absent => String::new(),
        key => with_mark(key.cell().text, key.is_cut()),
    }
}

#[cfg(test)]
mod tests;
