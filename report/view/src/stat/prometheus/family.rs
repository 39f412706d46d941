//! Samples of one metric in Prometheus's text format, version 0.0.4.

use std::fmt::Write as _;

use usdtrec_format::escape::escape;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricKind {
    Counter,
    Gauge,
    Histogram,
    /// A sum and a count.
    Summary,
}

/// The lines of a metric.
#[derive(Debug)]
pub(super) struct Family {
    name: String,
    lines: String,
}

impl Family {
    /// A metric without samples.
    pub(super) fn new(name: String, kind: MetricKind, help: &str) -> Self {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
            MetricKind::Summary => "summary",
        };
        let help = escape(help).replace('\\', "\\\\");
        let lines = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Self { name, lines }
    }

    /// Appends a sample. `suffix` is that of the name.
    pub(super) fn put(&mut self, suffix: &str, labels: &str, value: &str) {
        let _ = writeln!(self.lines, "{}{suffix}{{{labels}}} {value}", self.name);
    }

    /// The lines.
    pub(super) fn into_lines(self) -> String {
        self.lines
    }
}

/// Appends a label to a list of labels.
pub(super) fn put_label(name: &str, value: &str, labels: &mut String) {
    if !labels.is_empty() {
        labels.push(',');
    }
    let value = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    let _ = write!(labels, "{name}=\"{value}\"");
}
