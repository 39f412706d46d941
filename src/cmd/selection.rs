//! What `script`, `report` and `diff` share: opening a trace, choosing events, telling what is wrong.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::Context;
use usdtrec_buildid_cache::{Cache, CacheError};
use usdtrec_format::escape::escape_bytes;
use usdtrec_format::trace::ReadError;
use usdtrec_report::script::Format;
use usdtrec_report::{Notices, ReportError, Selection, Session, Sources};

use crate::cli::{OutputFormat, SelectionArgs, WhichArgs};
use crate::{schemas, terminal};

/// What standard input is called.
const STDIN: &str = "-";

/// What is taken besides the trace. Without a build-id cache there are only the symbols of files in place.
///
/// # Errors
/// If a schema file cannot be read.
pub(super) fn sources(args: &WhichArgs, buildid_dir: Option<&Path>) -> anyhow::Result<Sources> {
    Ok(Sources {
        buildid_dir: cache_dir(buildid_dir),
        schemas: schemas::named(&args.schema)?,
        time: args.time.clone(),
    })
}

/// The directory of the build-id cache, if there is one that can be used.
pub(super) fn cache_dir(buildid_dir: Option<&Path>) -> Option<PathBuf> {
    match Cache::open(buildid_dir) {
        Ok(cache) => Some(cache.dir().to_owned()),
        Err(CacheError::NoDirectory) => None,
        Err(error) => {
            terminal::say(format_args!("usdtrec: {error}"));
            None
        }
    }
}

/// Opens the trace that all is about until the process ends, which frees its memory quicker than dropping does.
pub(super) fn open(
    args: &SelectionArgs,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<ManuallyDrop<Session>> {
    open_file(&args.input, &args.which, buildid_dir).map(ManuallyDrop::new)
}

/// Opens a trace.
pub(super) fn open_file(
    path: &Path,
    args: &WhichArgs,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<Session> {
    let sources = sources(args, buildid_dir)?;
    let opened = if path.as_os_str() == STDIN {
        Session::from_file(stored_stdin()?, path, &sources)
    } else {
        Session::open(path, &sources)
    };
    opened.map_err(|error| named(error, path))
}

/// An error with the trace that it is about, unless it names it already.
pub(super) fn named(error: ReportError, path: &Path) -> anyhow::Error {
    let names_file = matches!(&error, ReportError::Read(ReadError::Io { path, .. }) if !path.as_os_str().is_empty());
    let is_about_file = matches!(error, ReportError::Read(_));
    let error = anyhow::Error::from(error);
    if names_file || !is_about_file {
        return error;
    }
    error.context(escape_bytes(path.as_os_str().as_encoded_bytes()).into_owned())
}

/// Whether the trace comes from standard input.
pub(super) fn is_stdin(args: &SelectionArgs) -> bool {
    args.input.as_os_str() == STDIN
}

/// Standard input, if it is a file and no pipe.
///
/// # Errors
/// If it is closed.
pub(super) fn stdin_file() -> io::Result<Option<File>> {
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let is_file = stdin.metadata()?.is_file();
    Ok(is_file.then_some(stdin))
}

/// Standard input as a file: what comes from a pipe is stored in one that has no name, until it ends.
fn stored_stdin() -> anyhow::Result<File> {
    if let Some(file) = stdin_file()? {
        return Ok(file);
    }
    let mut file = tempfile::tempfile().context("cannot store what comes from standard input")?;
    io::copy(&mut io::stdin().lock(), &mut file)
        .context("cannot store what comes from standard input")?;
    Ok(file)
}

/// The events asked for.
pub(super) fn selection(args: &WhichArgs) -> Selection {
    Selection {
        events: args.event.concat(),
        time: args.time.clone(),
        comms: args.comm.clone(),
        pids: args.pid.clone(),
        tids: args.tid.clone(),
        cpus: args.cpu.clone(),
        filter: args.filter.clone(),
    }
}

/// The format asked for.
pub(super) const fn format(format: OutputFormat) -> Format {
    match format {
        OutputFormat::Text => Format::Text,
        OutputFormat::Json => Format::Json,
        OutputFormat::Csv => Format::Csv,
        OutputFormat::CsvRaw => Format::CsvRaw,
    }
}

/// Standard output without a buffer of its own, for what is written in large pieces and by another thread.
///
/// # Errors
/// If it is closed.
pub(super) fn output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Tells on stderr what is wrong with the trace.
pub(super) fn tell(path: &Path, notices: &Notices) {
    for sentence in notices.sentences() {
        terminal::warn(path, &sentence);
    }
}
