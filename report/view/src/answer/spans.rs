//! Spans.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use usdtrec_analysis::span_report::facts::{
    DurationFacts, OtherSpans, SlowFacts, SpanFacts, SpanGroupFacts, SpanReport,
};

use crate::answer::key_values::KeyValues;
use crate::answer::recorded_time::RecordedTime;
use crate::cells::cells;
use crate::text::buffer::Text;

/// The spans of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpansAnswer {
    /// What spans are grouped by.
    pub by: Vec<SpanBy>,
    /// A row for each pair of probes.
    pub spans: Vec<SpanPairRow>,
}

/// A key that spans are grouped by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpanBy {
    /// As it was requested.
    pub key: String,
    /// Of which event it is.
    pub of: SpanEvent,
}

/// An end of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanEvent {
    /// The event that begins it.
    Begin,
    /// The event that ends it.
    End,
}

/// The spans of one pair of probes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpanPairRow {
    /// What they are, and how long they lasted.
    #[serde(flatten)]
    pub statistics: SpanStatistics,
    /// Groups in the requested order; empty without keys.
    pub groups: Vec<SpanGroupRow>,
    /// Number of spans in groups that are not shown.
    pub ungrouped: u64,
    /// The groups that are not shown.
    pub others: Option<OtherSpansRow>,
    /// The slowest spans, the slowest first.
    pub slowest: Vec<SlowestSpan>,
}

/// What spans are, and how long they lasted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpanStatistics {
    /// `postgresql:query`.
    pub name: String,
    /// Names of the events that begin it.
    pub starts: Vec<String>,
    /// Names of the events that end it.
    pub dones: Vec<String>,
    /// Begins without an end.
    pub open: u64,
    /// Of `open`, those that had ended when the recording did: a span around them ended, or the next one began.
    pub unfinished: u64,
    /// Ends without a begin.
    pub unmatched: u64,
    /// What begin and end have in common: `tid`, `pid`, an argument, or several with commas between.
    pub key: String,
    /// Names of the arguments that begin and end have in common beside it.
    pub agreed: Vec<String>,
    /// Maximum number of spans of one thread or process that were open at once; `None` with an argument as key, and without spans.
    pub depth: Option<u64>,
    /// Events that are left out because their key is missing, or one of too many.
    pub unkeyed: u64,
    /// Events of these probes that were lost; `None` if that is not known.
    pub lost: Option<u64>,
    /// When they were recorded; `None` if their probes were never detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedSpans>,
    /// How long they lasted.
    #[serde(flatten)]
    pub durations: DurationStatistics,
}

/// Spans whose probes were detached for a part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PausedSpans {
    /// When they were recorded.
    #[serde(flatten)]
    pub recorded: RecordedTime,
    /// About how many there were; `None` if it is not known. Long ones are less than their share.
    pub estimated_count: Option<u64>,
    /// Begins that were open when a pause began; not in `open`.
    pub begins: u64,
    /// Ends without a begin after a pause; not in `unmatched`.
    pub ends: u64,
}

/// How long spans lasted. Durations are `None` without spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DurationStatistics {
    /// Number of spans.
    pub count: u64,
    /// The time in which at least one of them was open, each moment once, ns; `None` if it is not known, because they are of several groups.
    pub total_ns: Option<u64>,
    /// Sum of the time that each of them was open and no span within it, ns.
    pub self_ns: Option<u64>,
    /// The time in which at least one of them was open and no span within that one, each moment once, ns; `None` as `total_ns`.
    pub self_total_ns: Option<u64>,
    /// Mean, ns.
    pub mean_ns: Option<u64>,
    /// The shortest, ns.
    pub min_ns: Option<u64>,
    /// Median, ns.
    pub p50_ns: Option<u64>,
    /// 90th percentile, ns.
    pub p90_ns: Option<u64>,
    /// 99th percentile, ns.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile, ns.
    pub p999_ns: Option<u64>,
    /// The longest, ns.
    pub max_ns: Option<u64>,
    /// Sum of all of them, inner and outer ones, ns.
    pub sum_ns: Option<u64>,
    /// Whether percentiles are exact; else they are within 1/256 of themselves.
    pub exact: bool,
}

/// The spans of one group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpanGroupRow {
    /// The values of its keys.
    #[serde(flatten)]
    pub keys: KeyValues,
    /// How long its spans lasted.
    #[serde(flatten)]
    pub durations: DurationStatistics,
}

/// Spans in groups that are not shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OtherSpansRow {
    /// Number of groups; `None` if they were too many to be counted.
    pub groups: Option<usize>,
    /// What one of them may have at most of the figure that groups are sorted by, if that is more than the last group shown has.
    pub doubtful: Option<u64>,
    /// How long their spans lasted.
    #[serde(flatten)]
    pub durations: DurationStatistics,
}

/// One of the slowest spans.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowestSpan {
    /// Its duration, ns.
    pub duration_ns: u64,
    /// When it began, by the trace's clock, ns.
    pub time_ns: u64,
    /// Process of the event that began it.
    pub pid: i32,
    /// Thread of the event.
    pub tid: i32,
    /// Name of the thread, escaped.
    pub comm: String,
    /// Name of the event.
    pub event: String,
    /// Its arguments, as `script --format json` has them.
    pub args: Map<String, Value>,
    /// The readable names of those that are mangled names of C++ or Rust, as a schema says.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub demangled: BTreeMap<String, String>,
    /// Offset in the file of the block that the event is in, bytes.
    pub offset: u64,
}

impl SpansAnswer {
    pub(crate) fn new(report: &SpanReport) -> Self {
        let by = report.by.iter().map(|by| SpanBy {
            key: by.name.clone(),
            of: match by.of_end {
                true => SpanEvent::End,
                false => SpanEvent::Begin,
            },
        });
        let spans = report.spans.iter().enumerate();
        Self {
            by: by.collect(),
            spans: spans.map(|(at, span)| row(report, at, span)).collect(),
        }
    }
}

fn row(report: &SpanReport, at: usize, span: &SpanFacts) -> SpanPairRow {
    let groups = report.groups.get(at).into_iter().flatten();
    let others = report.others.get(at).and_then(Option::as_ref);
    let slowest = report.slowest.get(at).into_iter().flatten();
    SpanPairRow {
        statistics: SpanStatistics::new(span),
        groups: groups.map(|group| group_row(report, group)).collect(),
        ungrouped: others.map_or(0, |others| others.durations.count),
        others: others.map(OtherSpansRow::new),
        slowest: slowest.map(SlowestSpan::new).collect(),
    }
}

fn group_row(report: &SpanReport, group: &SpanGroupFacts) -> SpanGroupRow {
    let cells = cells(report.by.iter().map(|by| &by.key), &group.values, false);
    let names = report.by.iter().map(|by| &*by.name);
    SpanGroupRow {
        keys: KeyValues::of_cells(names, cells),
        durations: DurationStatistics::new(&group.durations),
    }
}

impl SpanStatistics {
    pub(crate) fn new(span: &SpanFacts) -> Self {
        Self {
            name: span.name.clone(),
            starts: span.starts.clone(),
            dones: span.dones.clone(),
            open: span.counts.open,
            unfinished: span.counts.unfinished,
            unmatched: span.counts.unmatched,
            key: span.key.clone(),
            agreed: span.agreed.clone(),
            depth: (span.counts.depth > 0).then_some(span.counts.depth),
            unkeyed: span.counts.unkeyed,
            lost: span.lost,
            paused: span.part.map(|part| PausedSpans {
                recorded: RecordedTime::new(&part),
                estimated_count: part.estimate(span.durations.count),
                begins: span.counts.paused_begins,
                ends: span.counts.paused_ends,
            }),
            durations: DurationStatistics::new(&span.durations),
        }
    }
}

impl DurationStatistics {
    pub(crate) fn new(durations: &DurationFacts) -> Self {
        let known = |ns: u64| (durations.count > 0).then_some(ns);
        Self {
            count: durations.count,
            total_ns: durations.covered.and_then(|time| known(time.total)),
            self_ns: known(durations.own()),
            self_total_ns: durations.covered.and_then(|time| known(time.own)),
            mean_ns: known(durations.mean()),
            min_ns: known(durations.min),
            p50_ns: known(durations.p50),
            p90_ns: known(durations.p90),
            p99_ns: known(durations.p99),
            p999_ns: known(durations.p999),
            max_ns: known(durations.max),
            sum_ns: known(durations.sum()),
            exact: durations.exact,
        }
    }

    /// The durations with their names in CSV.
    pub(crate) const fn columns(&self) -> [(&'static str, Option<u64>); 11] {
        [
            ("total_ns", self.total_ns),
            ("self_ns", self.self_ns),
            ("self_total_ns", self.self_total_ns),
            ("mean_ns", self.mean_ns),
            ("min_ns", self.min_ns),
            ("p50_ns", self.p50_ns),
            ("p90_ns", self.p90_ns),
            ("p99_ns", self.p99_ns),
            ("p999_ns", self.p999_ns),
            ("max_ns", self.max_ns),
            ("sum_ns", self.sum_ns),
        ]
    }
}

impl OtherSpansRow {
    fn new(others: &OtherSpans) -> Self {
        Self {
            groups: others.groups,
            doubtful: others.doubtful,
            durations: DurationStatistics::new(&others.durations),
        }
    }
}

impl SlowestSpan {
    fn new(slow: &SlowFacts) -> Self {
        let SlowFacts { slow, begin } = slow;
        let arguments = begin.arguments.iter();
        let args = arguments.clone().map(|argument| {
            let mut json = Text::default();
            json.formed_json(&argument.form, &argument.value);
            let value = serde_json::from_str(&json.into_string());
            (argument.name.clone(), value.unwrap_or_default())
        });
        let demangled = arguments.filter_map(|argument| {
            let name = argument.form.readable(&argument.value)?;
            Some((argument.name.clone(), name))
        });
        Self {
            duration_ns: slow.duration,
            time_ns: slow.time.0,
            pid: begin.pid,
            tid: begin.tid,
            comm: begin.comm.clone(),
            event: begin.event.clone(),
            args: args.collect(),
            demangled: demangled.collect(),
            offset: begin.offset,
        }
    }
}
