//! `usdtrec export`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use tempfile::NamedTempFile;
use usdtrec_format::escape::shown;
use usdtrec_report::export::{self, ExportFormat, ExportOptions};
use usdtrec_report::{EventSelection, Notices, TraceSession};

use super::selection;
use crate::cli::{ExportArgs, ExportTo};
use crate::terminal::Usage;
use crate::{progress, terminal};

/// Path that means standard output.
const STDOUT: &str = "-";

/// Runs the verb.
pub(crate) fn run(args: &ExportArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    if args.trace_id.is_some() && !matches!(args.to, ExportTo::Otlp | ExportTo::OtlpProto) {
        return Err(
            Usage("--trace-id has no effect without --to otlp or otlp-proto".to_owned()).into(),
        );
    }
    let options = ExportOptions {
        spans: args.span.clone(),
        key: args.key.clone(),
        trace_id: args.trace_id.clone(),
        ..ExportOptions::new(format(args.to))
    };
    let session = selection::open(&args.selection, buildid_dir)?;
    let asked = selection::selection(&args.selection.which);
    let what = Exported {
        session: &session,
        asked: &asked,
        options: &options,
    };
    let notices = if args.output.as_os_str() == STDOUT {
        what.write(&mut selection::output()?)?
    } else {
        what.write_file(&args.output)?
    };
    selection::print_notices(&args.selection.input, &notices);
    if let Some(tail) = session.trace().uncommitted() {
        terminal::warn(&args.selection.input, tail);
    }
    Ok(ExitCode::SUCCESS)
}

/// Converts the format.
const fn format(to: ExportTo) -> ExportFormat {
    match to {
        ExportTo::Chrome => ExportFormat::Chrome,
        ExportTo::Perfetto => ExportFormat::Perfetto,
        ExportTo::Otlp => ExportFormat::OtlpJson,
        ExportTo::OtlpProto => ExportFormat::OtlpProto,
        ExportTo::Folded => ExportFormat::Folded,
        ExportTo::Speedscope => ExportFormat::Speedscope,
        ExportTo::Pprof => ExportFormat::Pprof,
    }
}

/// What is exported.
struct Exported<'a> {
    session: &'a TraceSession,
    asked: &'a EventSelection,
    options: &'a ExportOptions,
}

impl Exported<'_> {
    fn write(&self, out: &mut File) -> anyhow::Result<Notices> {
        let written = progress::shown(self.session, || {
            export::write(self.session, self.asked, self.options, out)
        });
        Ok(written?)
    }

    /// Writes a file, which has its name only when it is complete. A device or FIFO is written to.
    fn write_file(&self, path: &Path) -> anyhow::Result<Notices> {
        let cannot = || format!("cannot write {}", shown(path));
        let found = fs::metadata(path);
        if found.as_ref().is_ok_and(|found| found.is_dir()) {
            return Err(io::Error::from(io::ErrorKind::IsADirectory)).with_context(cannot);
        }
        if found.is_ok_and(|found| !found.is_file()) {
            let mut out = File::options()
                .write(true)
                .open(path)
                .with_context(cannot)?;
            return self.write(&mut out);
        }
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut unfinished = NamedTempFile::with_prefix_in(
            ".usdtrec-export-",
            folder.unwrap_or_else(|| Path::new(".")),
        )
        .with_context(cannot)?;
        let notices = self.write(unfinished.as_file_mut())?;
        unfinished.as_file_mut().flush().with_context(cannot)?;
        unfinished.persist(path).with_context(cannot)?;
        Ok(notices)
    }
}
