//! `usdtrec export --to parquet`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use usdtrec_format::escape::shown;
use usdtrec_report::export::Redaction;
use usdtrec_report::export::parquet::{self, DatasetOptions};
use usdtrec_report::{EventSelection, Notices, TraceSession};

use crate::cli::ExportArgs;
use crate::cmd::print::spans_or_all;
use crate::progress;
use crate::unfinished_folder::UnfinishedFolder;

/// What is requested of a dataset. `least` is the duration of the shortest spans, ns.
pub(super) fn options(
    args: &ExportArgs,
    least: u64,
    redaction: Redaction,
) -> anyhow::Result<DatasetOptions> {
    Ok(DatasetOptions {
        spans: spans_or_all(
            &args.span,
            least > 0 || args.selection.which.asks_for_spans(),
        ),
        key: args.key.clone(),
        min: least,
        least_parts: args.selection.which.span_parts,
        redaction,
    })
}

/// Writes a folder, which has its name only when it is complete.
pub(super) fn write(
    session: &TraceSession,
    asked: &EventSelection,
    options: &DatasetOptions,
    path: &Path,
) -> anyhow::Result<Notices> {
    let cannot = || format!("cannot write {}", shown(path));
    if path.symlink_metadata().is_ok() {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists)).with_context(cannot);
    }
    let unfinished = UnfinishedFolder::create(path).with_context(cannot)?;
    remove_at_signal(unfinished.path().to_owned()).with_context(cannot)?;
    let notices = progress::shown(session, || {
        parquet::write(session, asked, options, unfinished.path())
    })?;
    let rename = |unfinished: &Path| rename_to_new(unfinished, path);
    unfinished.finish(rename).with_context(cannot)?;
    Ok(notices)
}

/// Removes the folder if a signal ends the program.
fn remove_at_signal(folder: PathBuf) -> io::Result<()> {
    /// How often: files may be made meanwhile.
    const TRIES: usize = 8;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _ = (0..TRIES).find(|_| fs::remove_dir_all(&folder).is_ok());
            // It ends the program.
            let _ = emulate_default_handler(signal);
        }
    })?;
    Ok(())
}

/// Gives a folder its name, unless there is one of that name.
fn rename_to_new(unfinished: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, unfinished, CWD, path, RenameFlags::NOREPLACE) {
        // Some file systems cannot refuse; without this, an empty folder is replaced at most.
        Err(rustix::io::Errno::INVAL) => fs::rename(unfinished, path),
        named => Ok(named?),
    }
}
