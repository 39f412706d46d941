//! What was counted as metrics of Prometheus, in its text format, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! A counter must not decrease. So a group that once has a sample of its own keeps it, and one that is counted among the others stays there.

mod names;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write as _};

use usdtrec_analysis::counted_numbers::CountedNumbers;
use usdtrec_format::TimePart;
use usdtrec_format::escape::escape;
use usdtrec_format::schema::{Argument, Unit};
use usdtrec_trace::session::event_name::short_name;

use self::names::{label_names, metric_name};
use super::fates::SpanFates;
use super::key::StatKey;
use super::parts::SpanParts;
use super::snapshot::{SnapshotRow, StatSnapshot, StatSum};

/// Maximum number of groups of a probe that have samples of their own.
const MAX_SERIES: usize = 1000;

/// The bounds of histograms are 2^0 - 1 to 2^this - 1, in the unit of the argument: of times in ns a minute, of bytes 64 GiB. They are always the same, so that
/// histograms can be added up.
const BOUNDS: u32 = 36;

/// The name of each metric, its kind and help.
const HITS: &str = "usdtrec_hits_total counter Hits of the probe since the start of the recording";
const LOST: &str = "usdtrec_lost_hits_total counter Hits that were not counted, because the filter of the probe could not be evaluated.";
/// What the time of spans was spent on.
const SPENT: &str = "usdtrec_span_part_seconds_total counter What the time of the spans that ended was spent on: on a CPU (oncpu), ready to run without one (runnable), in I/O (iowait), or in other waits (blocked).";
/// The metrics of spans: after the first two, in the order of [`SpanFates::parts`]; hits that are lost follow.
const OF_SPANS: [&str; 9] = [
    "usdtrec_spans_total counter Spans that ended since the start of the recording, but for those that were too short.",
    "usdtrec_span_seconds histogram Durations of the spans that ended since the start of the recording.",
    "usdtrec_spans_open gauge Begins of spans without an end.",
    "usdtrec_spans_unfinished_total counter Begins of spans that had not ended when a span around them did.",
    "usdtrec_span_ends_unmatched_total counter Ends of spans without a begin.",
    "usdtrec_span_hits_unkeyed_total counter Begins and ends of spans whose key could not be read.",
    "usdtrec_spans_short_total counter Spans that were shorter than what is asked for.",
    "usdtrec_spans_unkept_total counter Begins of spans that were not kept, because too many were open.",
    "usdtrec_span_hits_lost_total counter Begins and ends of spans that were lost.",
];

/// Shows what was counted as metrics.
#[derive(Debug)]
pub struct PrometheusView {
    /// Labels of the keys; empty if probes are not divided into groups.
    labels: Vec<String>,
    /// The labels of the groups with samples of their own, by event.
    own: BTreeMap<String, BTreeSet<String>>,
    /// Whether spans have the parts of their time.
    has_parts: bool,
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
            has_parts: false,
        }
    }

    /// The same with what the time of spans was spent on, if it was counted.
    #[must_use]
    pub const fn with_parts(mut self, has_parts: bool) -> Self {
        self.has_parts = has_parts;
        self
    }

    /// The metrics: what was counted since the start.
    #[must_use]
    pub fn show(&mut self, snapshot: &StatSnapshot) -> String {
        let mut hits = Metric::new(&match self.labels.is_empty() {
            true => format!("{HITS}."),
            false => format!(
                "{HITS}, by group. others=\"true\" has the hits of all groups of a probe beyond its first {MAX_SERIES}, and those in no group."
            ),
        });
        let mut lost = Metric::new(LOST);
        let mut values = BTreeMap::new();
        let mut of_spans = OF_SPANS.map(Metric::new);
        let mut spent = Metric::new(SPENT);
        let mut has_spans = false;
        for (event, series) in self.series(snapshot) {
            let probe = Probe::new(&event, series.is_span);
            let [spans, durations, fates @ ..] = &mut of_spans;
            if series.is_span {
                has_spans = true;
                let counts = series.fates.parts().map(|fate| fate.count);
                let counts = counts.into_iter().chain([series.others.lost]);
                for (metric, count) in fates.iter_mut().zip(counts) {
                    metric.put("", &probe.labels, count);
                }
            } else {
                lost.put("", &probe.labels, series.others.lost);
            }
            let others = (with_label("others", "true", &probe.labels), series.others);
            let others = (!self.labels.is_empty()).then_some(others);
            for (labels, sum) in series.sums.into_iter().chain(others) {
                if series.is_span {
                    spans.put("", &labels, sum.count);
                    let numbers = sum.numbers.last().and_then(Option::as_ref);
                    if let Some(numbers) = numbers.filter(|numbers| numbers.unbucketed == 0) {
                        durations.put_numbers(&Scale::NANOSECONDS, numbers, &labels);
                    }
                    if self.has_parts {
                        put_parts(&sum, &labels, &mut spent);
                    }
                    continue;
                }
                hits.put("", &labels, sum.count);
                for (place, numbers) in sum.numbers.iter().enumerate() {
                    let argument = snapshot.argument(&event, place);
                    if let (Some(argument), Some(numbers)) = (argument, numbers) {
                        let of = MeasuredValue {
                            probe: &probe,
                            place,
                            argument,
                        };
                        of.put(numbers, &labels, &mut values);
                    }
                }
            }
        }
        let all = [hits, lost].into_iter().chain(values.into_values());
        let all = all.chain(of_spans.into_iter().filter(|_| has_spans));
        let all = all.chain((has_spans && self.has_parts).then_some(spent));
        all.map(|metric| metric.lines).collect()
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
        let probe = Probe::new(&row.event, row.is_span);
        let keys = self.labels.iter().zip(keys);
        let labels = keys.fold(probe.labels, |labels, (name, key)| {
            with_label(name, &label_value(key), &labels)
        });
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
        let labels = with_label("provider", &escape(provider), "");
        let of_name = if is_span { "span" } else { "probe" };
        Self {
            provider,
            name,
            labels: with_label(of_name, &escape(name), &labels),
        }
    }
}

/// The text of a key. Groups whose keys are the same text are one: a byte that cannot be printed, and its escape.
fn label_value(key: &StatKey) -> String {
    match key {
        StatKey::Absent => String::new(),
        key => key.cell().text,
    }
}

/// A list of labels with another one.
fn with_label(name: &str, value: &str, labels: &str) -> String {
    let value = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    let between = if labels.is_empty() { "" } else { "," };
    format!("{labels}{between}{name}=\"{value}\"")
}

/// A metric with its samples.
struct Metric {
    name: String,
    /// Of values, the place of the argument among those that are measured.
    place: usize,
    lines: String,
}

impl Metric {
    /// A metric without samples, from its name, kind and help.
    fn new(words: &str) -> Self {
        let (name, kind_and_help) = words.split_once(' ').unwrap_or((words, ""));
        let (kind, help) = kind_and_help.split_once(' ').unwrap_or_default();
        let help = escape(help).replace('\\', "\\\\");
        Self {
            name: name.to_owned(),
            place: 0,
            lines: format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"),
        }
    }

    /// Appends a sample. `suffix` is that of the name.
    fn put(&mut self, suffix: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.lines, "{}{suffix}{{{labels}}} {value}", self.name);
    }

    /// Appends the samples of a histogram, or of a sum and a count. Buckets are read after the count, so that they may have further numbers: the count is that
    /// of all buckets then.
    fn put_numbers(&mut self, scale: &Scale, numbers: &CountedNumbers, labels: &str) {
        let mut count = numbers.count;
        if let Some(buckets) = &numbers.histogram {
            count = count.max(buckets.iter().map(|(_, count)| count).sum());
            for end in (0..=BOUNDS).map(|power| 1_i128 << power) {
                let within = buckets.iter().filter(|(bucket, _)| bucket.to() <= end);
                let within: u64 = within.map(|(_, count)| count).sum();
                let labels = with_label("le", &scale.shown(end - 1), labels);
                self.put("_bucket", &labels, within);
            }
            self.put("_bucket", &with_label("le", "+Inf", labels), count);
        }
        self.put("_sum", labels, scale.shown(numbers.sum));
        self.put("_count", labels, count);
    }
}

/// Appends what the time of spans was spent on.
fn put_parts(sum: &StatSum, labels: &str, spent: &mut Metric) {
    let Some(parts) = SpanParts::from_counted(&sum.numbers) else {
        return;
    };
    for (part, sum) in TimePart::ALL.into_iter().zip(parts.sums) {
        let labels = with_label("part", part.spec().name, labels);
        spent.put("", &labels, Scale::NANOSECONDS.shown(sum.into()));
    }
}

/// Whose values are shown.
struct MeasuredValue<'a> {
    probe: &'a Probe<'a>,
    /// The place of the argument among those that are measured.
    place: usize,
    argument: &'a Argument,
}

impl MeasuredValue<'_> {
    /// Adds the values of a probe or group with these labels to metrics by name.
    fn put(&self, numbers: &CountedNumbers, labels: &str, all: &mut BTreeMap<String, Metric>) {
        let scale = Scale::new(self.argument);
        let kind = match numbers.histogram {
            Some(_) => "histogram",
            None => "summary",
        };
        let values = self.metric("value", kind, all);
        values.put_numbers(&scale, numbers, labels);
        if let Some(ends) = numbers.ends {
            for (what, end) in [("minimum", ends.min), ("maximum", ends.max)] {
                let metric = self.metric(what, "gauge", all);
                metric.put("", labels, scale.shown(end));
            }
        }
    }

    fn metric<'m>(
        &self,
        what: &str,
        kind: &str,
        all: &'m mut BTreeMap<String, Metric>,
    ) -> &'m mut Metric {
        let Self {
            probe: Probe { provider, name, .. },
            place,
            argument,
        } = *self;
        let first = metric_name(
            [what, provider, name, &argument.name],
            argument.unit.as_ref(),
        );
        let mut metric = first.clone();
        // Names of two arguments may be the same words.
        for number in 2.. {
            if all.get(&metric).is_none_or(|known| known.place == place) {
                break;
            }
            metric = format!("{first}_{number}");
        }
        all.entry(metric).or_insert_with_key(|metric| {
            let of = format!("{} of {provider}:{name}", argument.name);
            let description = argument.description.iter();
            let of = description.fold(of, |of, description| format!("{of}: {description}"));
            let help = match what {
                "value" => of,
                _ => format!("The {what} of {of}"),
            };
            Metric {
                place,
                ..Metric::new(&format!("{metric} {kind} {help}"))
            }
        })
    }
}

/// What values are multiplied with so that they are in a base unit: seconds, bytes.
struct Scale {
    factor: u64,
    divisor: u64,
}

impl Scale {
    /// The scale of durations.
    const NANOSECONDS: Self = Self {
        factor: 1,
        divisor: 1_000_000_000,
    };

    fn new(argument: &Argument) -> Self {
        let unit = argument.unit.as_ref();
        match unit.and_then(Unit::nanoseconds) {
            Some(factor) => Self {
                factor,
                ..Self::NANOSECONDS
            },
            None => Self {
                factor: unit.and_then(Unit::bytes).unwrap_or(1),
                divisor: 1,
            },
        }
    }

    fn shown(&self, value: i128) -> String {
        if self.divisor == 1
            && let Some(value) = value.checked_mul(self.factor.into())
        {
            return value.to_string();
        }
        (value as f64 * self.factor as f64 / self.divisor as f64).to_string()
    }
}

#[cfg(test)]
mod tests;
