//! What `script` and `report` share: opening a trace, choosing events, telling what is wrong.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use usdtrec_buildid_cache::Cache;
use usdtrec_format::escape::escape_bytes;
use usdtrec_format::trace::ReadError;
use usdtrec_report::script::Format;
use usdtrec_report::{Notices, ReportError, Selection, Session};

use crate::cli::{OutputFormat, SelectionArgs};
use crate::terminal;

/// Opens the trace. Without a build-id cache there are only the symbols of files in place.
pub(super) fn open(args: &SelectionArgs, buildid_dir: Option<&Path>) -> anyhow::Result<Session> {
    let cache = Cache::open(buildid_dir).ok();
    let dir = cache.as_ref().map(Cache::dir);
    Session::open(&args.input, dir).map_err(|error| {
        let names_file = matches!(error, ReportError::Read(ReadError::Io { .. }));
        let error = anyhow::Error::from(error);
        if names_file {
            return error;
        }
        let path = escape_bytes(args.input.as_os_str().as_encoded_bytes()).into_owned();
        error.context(path)
    })
}

/// The events asked for.
pub(super) fn selection(args: &SelectionArgs) -> Selection {
    Selection {
        events: args.event.clone(),
        time: args.time.clone(),
        comms: args.comm.clone(),
        pids: args.pid.clone(),
        tids: args.tid.clone(),
        cpus: args.cpu.clone(),
    }
}

/// The format asked for.
pub(super) const fn format(format: OutputFormat) -> Format {
    match format {
        OutputFormat::Text => Format::Text,
        OutputFormat::Json => Format::Json,
        OutputFormat::Csv => Format::Csv,
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
