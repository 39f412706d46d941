//! `--prometheus`: what is counted as metrics of Prometheus.

mod file;

use std::io;

use usdtrec_report::stat::{PrometheusView, StatSnapshot};

use self::file::MetricsFile;
use crate::cli::StatArgs;

/// Where metrics go.
pub(super) struct Metrics {
    view: PrometheusView,
    file: MetricsFile,
}

impl Metrics {
    /// Those that are asked for; `None` if none are.
    pub(super) fn new(args: &StatArgs) -> anyhow::Result<Option<Self>> {
        let Some(path) = &args.prometheus else {
            return Ok(None);
        };
        Ok(Some(Self {
            view: PrometheusView::new(&args.by),
            file: MetricsFile::new(path)?,
        }))
    }

    /// Replaces the metrics.
    ///
    /// # Errors
    /// Why the file could not be replaced, if the last time it could.
    pub(super) fn show(&mut self, snapshot: &StatSnapshot) -> io::Result<()> {
        self.file.replace(&self.view.show(snapshot))
    }

    /// The end of the recording.
    ///
    /// # Errors
    /// Why the file does not have the last counts.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.file.end()
    }
}
