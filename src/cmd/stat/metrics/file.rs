//! The file of metrics, for collectors that read files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use usdtrec_format::escape::shown;

use crate::output;
use crate::terminal::Usage;
use crate::unfinished_file::UnfinishedFile;

/// A file that is replaced as a whole: a reader sees the metrics of one interval, and never a part of them.
pub(super) struct MetricsFile {
    path: PathBuf,
    /// Why the file does not have the latest metrics.
    failed: Option<io::Error>,
}

impl MetricsFile {
    /// The file of this path, which is not changed before there are metrics.
    pub(super) fn new(path: &Path) -> anyhow::Result<Self> {
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
    pub(super) fn replace(&mut self, text: &str) -> io::Result<()> {
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
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}
