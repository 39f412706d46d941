//! `--prometheus` and `--listen`: what is counted as metrics of Prometheus.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use usdtrec_format::escape::shown;
use usdtrec_report::stat::{PrometheusView, StatSnapshot};

#[cfg(feature = "listen")]
use super::listen::MetricsServer;
use crate::cli::StatArgs;
use crate::output;
use crate::terminal::Usage;
#[cfg(feature = "listen")]
use crate::terminal::say;
use crate::unfinished_file::UnfinishedFile;

/// Where metrics go.
pub(super) struct Metrics {
    view: PrometheusView,
    file: Option<MetricsFile>,
    #[cfg(feature = "listen")]
    server: Option<MetricsServer>,
}

impl Metrics {
    /// The requested metrics; `None` if none are requested.
    pub(super) fn new(args: &StatArgs) -> anyhow::Result<Option<Self>> {
        let file = args.prometheus.as_deref().map(MetricsFile::new);
        let metrics = Self {
            view: PrometheusView::new(&args.by).with_parts(args.capture.off_cpu),
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

/// A file that is replaced as a whole: a reader sees the metrics of one interval, and never a part of them.
struct MetricsFile {
    path: PathBuf,
    /// Why the file does not have the latest metrics.
    failed: Option<io::Error>,
}

impl MetricsFile {
    /// The file of this path, which is not changed before there are metrics.
    fn new(path: &Path) -> anyhow::Result<Self> {
        let file = UnfinishedFile::create_readable(path);
        let file = file.map_err(|error| output::named(path, &error))?;
        Usage::ensure(
            !file.is_stream(),
            format!(
                "--prometheus: expected a file, which is replaced at each interval, found a device or FIFO: {}",
                shown(path)
            ),
        )?;
        Ok(Self {
            path: path.to_owned(),
            failed: None,
        })
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// Why this failed, if it did not fail the last time.
    fn replace(&mut self, text: &str) -> io::Result<()> {
        let written = UnfinishedFile::create_readable(&self.path).and_then(|mut file| {
            file.file().write_all(text.as_bytes())?;
            file.finish(&self.path)
        });
        let failed = written.err().map(|error| output::named(&self.path, &error));
        let before = std::mem::replace(&mut self.failed, failed);
        match (&self.failed, before) {
            (Some(error), None) => Err(io::Error::new(error.kind(), error.to_string())),
            _ => Ok(()),
        }
    }

    /// The error of the last time.
    fn end(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}
