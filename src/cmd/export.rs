//! `usdtrec export`.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use usdtrec_format::escape::shown;
use usdtrec_report::export::{
    self, ExportFormat, ExportOptions, Redaction, RowFormat, StackFormat,
};
use usdtrec_report::{EventSelection, Notices, TraceSession};

#[cfg(feature = "parquet")]
use super::dataset;
use super::print;
use super::selection::{self, Extent};
use crate::cli::{ExportArgs, ExportTo, SelectionArgs, stack_kind};
use crate::progress;
use crate::terminal::Usage;
use crate::unfinished_file::UnfinishedFile;
use crate::units::least_ns;

/// Path that means standard output.
const STDOUT: &str = "-";

/// Runs the verb.
pub(crate) fn run(args: &ExportArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    Usage::ensure(
        args.to != ExportTo::Parquet || args.output.as_os_str() != STDOUT,
        "--to parquet writes a folder, not standard output (-o -)",
    )?;
    check_format(args)?;
    check_with(args)?;
    check_redaction(args)?;
    let Some(format) = format(args.to) else {
        return dataset(args, buildid_dir);
    };
    let least = least(args)?;
    let options = ExportOptions {
        // A page has all spans in the order of their times.
        spans: match args.to {
            ExportTo::Html => args.span.clone(),
            _ => print::spans_or_all(
                &args.span,
                least > 0 || args.selection.which.asks_for_spans(),
            ),
        },
        key: args.key.clone(),
        min: least,
        least_parts: args.selection.which.span_parts,
        value: args.value.clone(),
        stacks: stack_kind(args.stacks),
        trace_id: args.trace_id.clone(),
        redaction: redaction(args)?,
        // Profiles of pprof always are.
        gzip: args.to != ExportTo::Pprof && args.output.extension() == Some("gz".as_ref()),
        ..ExportOptions::new(format)
    };
    write(&args.selection, &options, &args.output, buildid_dir)
}

/// Duration of the shortest spans that are exported, ns.
fn least(args: &ExportArgs) -> anyhow::Result<u64> {
    least_ns(args.min.as_ref(), args.selection.which.span_least)
}

/// Exports to a file, or to standard output.
fn write(
    args: &SelectionArgs,
    options: &ExportOptions,
    output: &Path,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let are_spans = options.format.has_spans() || !options.spans.is_empty();
    let session = selection::open(args, Extent::for_spans(are_spans), buildid_dir)?;
    selection::refuse_input(&session, output)?;
    let asked = selection::selection(&args.which);
    let what = Exported {
        session: &session,
        asked: &asked,
        options,
    };
    let notices = match output.as_os_str() == STDOUT {
        true => what.write(&mut selection::output()?)?,
        false => what.write_file(output)?,
    };
    Ok(end(&session, &notices))
}

/// Prints what is wrong with the trace, and what was lost: not all formats have a place for it.
fn end(session: &TraceSession, notices: &Notices) -> ExitCode {
    selection::print_faults(session, notices);
    selection::print_losses(session.path(), session.losses().known_total());
    ExitCode::SUCCESS
}

/// Refuses options that have no effect on the format.
fn check_format(args: &ExportArgs) -> anyhow::Result<()> {
    let is_copy = args.to == ExportTo::Perf;
    Usage::ensure(
        !is_copy || args.output.extension() != Some("gz".as_ref()),
        "--to perf writes a plain file: expected a name that does not end with .gz",
    )?;
    let which = &args.selection.which;
    if args.span.is_empty() && least(args)? == 0 && !which.asks_for_spans() {
        print::refuse_key(&args.key)?;
    }
    match args.to {
        ExportTo::Html => print::refuse_parts(which, "--to html")?,
        ExportTo::Folded | ExportTo::Pprof => print::refuse_parts(which, "stacks")?,
        ExportTo::Perf => print::refuse_parts(which, "--to perf")?,
        _ => {}
    }
    Ok(())
}

/// Refuses arguments of other events that are not in what is written.
fn check_with(args: &ExportArgs) -> Result<(), Usage> {
    let what = match args.to {
        ExportTo::Folded => "--to folded",
        ExportTo::Pprof => "--to pprof",
        ExportTo::Perf => "--to perf",
        _ => return Ok(()),
    };
    let texts = [&args.value, &args.selection.which.filter];
    let texts = texts.into_iter().flatten().map(String::as_str);
    selection::refuse_unused_with(&args.selection.with, texts, what)
}

#[cfg(feature = "parquet")]
fn dataset(args: &ExportArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let options = dataset::options(args, least(args)?, redaction(args)?)?;
    let session = selection::open(&args.selection, Extent::Whole, buildid_dir)?;
    let asked = selection::selection(&args.selection.which);
    let notices = dataset::write(&session, &asked, &options, &args.output)?;
    Ok(end(&session, &notices))
}

#[cfg(not(feature = "parquet"))]
fn dataset(_: &ExportArgs, _: Option<&Path>) -> anyhow::Result<ExitCode> {
    let refused =
        "--to parquet: usdtrec was built without feature parquet; build it with --features parquet";
    Err(Usage(refused.to_owned()).into())
}

/// Converts the format; `None` of a dataset.
const fn format(to: ExportTo) -> Option<ExportFormat> {
    Some(match to {
        ExportTo::Html => ExportFormat::Html,
        ExportTo::Perfetto => ExportFormat::Rows(RowFormat::Perfetto),
        ExportTo::Otlp => ExportFormat::Rows(RowFormat::OtlpJson),
        ExportTo::OtlpProto => ExportFormat::Rows(RowFormat::OtlpProto),
        ExportTo::Folded => ExportFormat::Stacks(StackFormat::Folded),
        ExportTo::Perf => ExportFormat::Perf,
        ExportTo::Pprof => ExportFormat::Stacks(StackFormat::Pprof),
        ExportTo::Parquet => return None,
    })
}

/// What is exported.
struct Exported<'a> {
    session: &'a TraceSession,
    asked: &'a EventSelection,
    options: &'a ExportOptions,
}

impl Exported<'_> {
    /// Writes to standard output, a device or a FIFO.
    fn write(&self, out: &mut File) -> anyhow::Result<Notices> {
        if self.options.format != ExportFormat::Perf {
            return self.write_new(out);
        }
        // The header is written last.
        let mut stored = tempfile::tempfile().context("cannot make a temporary file")?;
        let notices = self.write_new(&mut stored)?;
        stored.rewind().context("cannot read the temporary file")?;
        io::copy(&mut stored, out).context("cannot write")?;
        Ok(notices)
    }

    /// Writes to an empty file.
    fn write_new(&self, out: &mut File) -> anyhow::Result<Notices> {
        let written = progress::shown(self.session, || match self.options.format {
            ExportFormat::Perf => export::write_perf(self.session, self.asked, out),
            _ => export::write(self.session, self.asked, self.options, out),
        });
        Ok(written?)
    }

    /// Writes a file, which has its name only when it is complete. A device or FIFO is written to.
    fn write_file(&self, path: &Path) -> anyhow::Result<Notices> {
        let cannot = || format!("cannot write {}", shown(path));
        let mut unfinished = UnfinishedFile::create(path).with_context(cannot)?;
        let notices = if unfinished.is_stream() {
            self.write(unfinished.file())?
        } else {
            self.write_new(unfinished.file())?
        };
        unfinished.finish(path).with_context(cannot)?;
        Ok(notices)
    }
}

/// Minimum bytes of a key.
const MIN_KEY: usize = 16;
/// Maximum bytes of a key.
const MAX_KEY: u64 = 4096;
/// Bytes of a random key.
const RANDOM_KEY: u64 = 32;

/// What is left out and hashed.
fn redaction(args: &ExportArgs) -> anyhow::Result<Redaction> {
    Ok(Redaction {
        drop: args.drop.clone(),
        hash: args.hash.clone(),
        key: key(args)?,
    })
}

/// Refuses to leave out the id of traces. A hash can be one.
fn check_redaction(args: &ExportArgs) -> Result<(), Usage> {
    match args.trace_id.as_ref().filter(|id| args.drop.contains(id)) {
        None => Ok(()),
        Some(name) => Err(Usage(format!(
            "--trace-id {name} needs the values of {name}, which --drop leaves out"
        ))),
    }
}

/// The key of hashes: the bytes of the file, or random ones.
fn key(args: &ExportArgs) -> anyhow::Result<Vec<u8>> {
    let mut key = Vec::new();
    let Some(path) = &args.hash_key else {
        if !args.hash.is_empty() {
            let random = Path::new("/dev/urandom");
            let read =
                File::open(random).and_then(|file| file.take(RANDOM_KEY).read_to_end(&mut key));
            read.with_context(|| format!("cannot read {}", shown(random)))?;
        }
        return Ok(key);
    };
    let read = File::open(path).and_then(|file| file.take(MAX_KEY + 1).read_to_end(&mut key));
    read.with_context(|| format!("cannot read {}", shown(path)))?;
    if !(MIN_KEY..=MAX_KEY as usize).contains(&key.len()) {
        let found = match key.len() as u64 > MAX_KEY {
            true => "more".to_owned(),
            false => key.len().to_string(),
        };
        return Err(Usage(format!(
            "--hash-key {}: expected {MIN_KEY} to {MAX_KEY} bytes, found {found}",
            shown(path)
        ))
        .into());
    }
    Ok(key)
}
