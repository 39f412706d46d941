//! `--prometheus` and `--listen`: what is counted as metrics of Prometheus.

mod file;

use std::io;

use usdtrec_report::stat::{PrometheusView, StatSnapshot};

use self::file::MetricsFile;
#[cfg(feature = "listen")]
use super::listen::MetricsServer;
use crate::cli::StatArgs;
#[cfg(feature = "listen")]
use crate::terminal::say;

/// Where metrics go.
pub(super) struct Metrics {
    view: PrometheusView,
    file: Option<MetricsFile>,
    #[cfg(feature = "listen")]
    server: Option<MetricsServer>,
}

impl Metrics {
    /// Those that are asked for; `None` if none are.
    pub(super) fn new(args: &StatArgs) -> anyhow::Result<Option<Self>> {
        let file = args.prometheus.as_deref().map(MetricsFile::new);
        let metrics = Self {
            view: PrometheusView::new(&args.by),
            file: file.transpose()?,
            #[cfg(feature = "listen")]
            server: args.listen.map(MetricsServer::start).transpose()?,
        };
        #[cfg(feature = "listen")]
        if let Some(server) = metrics.server.as_ref().filter(|_| !args.capture.quiet) {
            let address = server.address();
            say(format_args!("usdtrec: metrics at http://{address}/metrics"));
        }
        Ok(metrics.is_asked_for().then_some(metrics))
    }

    #[cfg(feature = "listen")]
    const fn is_asked_for(&self) -> bool {
        self.file.is_some() || self.server.is_some()
    }

    #[cfg(not(feature = "listen"))]
    const fn is_asked_for(&self) -> bool {
        self.file.is_some()
    }

    /// Replaces the metrics.
    ///
    /// # Errors
    /// Why the file could not be replaced, if the last time it could.
    pub(super) fn show(&mut self, snapshot: &StatSnapshot) -> io::Result<()> {
        let text = self.view.show(snapshot);
        let replaced = self
            .file
            .as_mut()
            .map_or(Ok(()), |file| file.replace(&text));
        #[cfg(feature = "listen")]
        if let Some(server) = &self.server {
            server.publish(text);
        }
        replaced
    }

    /// The end of the recording.
    ///
    /// # Errors
    /// Why the file does not have the last counts.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), MetricsFile::end)
    }
}
