//! Shared by `script`, `report` and `diff`: opening a trace, selecting events, printing notices.

use std::fs::{self, File, Metadata};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use usdtrec_buildid_cache::{Cache, CacheError};
use usdtrec_format::escape::shown;
use usdtrec_format::trace::ReadError;
use usdtrec_report::{
    Event, EventSelection, FetchDebug, Format, Notices, ReportError, Sentences, Sources,
    TraceSession,
};

use crate::advice::{HINTS, explained};
use crate::cli::{
    DEFAULT_TRACE, InlineArgs, OutputFormat, PagerArgs, SelectionArgs, WhichArgs, WithArgs,
};
use crate::pager::Paged;
use crate::terminal::Usage;
use crate::{schemas, shell, terminal};

/// File name that means standard input.
pub(super) const STDIN: &str = "-";

/// Sources of symbols and schemas besides the trace. Without a build-id cache, symbols come from the files at their original paths only.
///
/// # Errors
/// If a schema file cannot be read.
pub(super) fn sources(
    args: &WhichArgs,
    inline: InlineArgs,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<Sources> {
    Ok(Sources {
        views: Vec::new(),
        fetch: fetch(),
        no_inline: inline.no_inline,
        buildid_dir: cache_dir(buildid_dir),
        schemas: schemas::named(&args.schema)?,
        time: args.time.clone(),
        filter: args.filter.clone(),
    })
}

/// Fetches debugging information that this host lacks, if the environment names servers.
#[cfg(feature = "debuginfod")]
pub(super) fn fetch() -> Option<Arc<dyn FetchDebug>> {
    let client = crate::debuginfod::Debuginfod::from_env()?;
    Some(Arc::new(client))
}

/// This usdtrec is built without a client of debuginfod servers.
#[cfg(not(feature = "debuginfod"))]
pub(super) const fn fetch() -> Option<Arc<dyn FetchDebug>> {
    None
}

/// The directory of the build-id cache; `None`, with a message, if it cannot be used.
pub(super) fn cache_dir(buildid_dir: Option<&Path>) -> Option<PathBuf> {
    match Cache::open(buildid_dir) {
        Ok(cache) => Some(cache.dir().to_owned()),
        Err(CacheError::NoDirectory) => None,
        Err(error) => {
            terminal::say(format_args!("usdtrec: {}", explained(&error)));
            None
        }
    }
}

/// What is read of a trace if a part of its time is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// That part.
    Part,
    /// All of it: spans are matched before they are selected.
    Whole,
}

impl Extent {
    /// What is read where spans are asked for, or are not.
    pub(super) const fn for_spans(are_spans: bool) -> Self {
        match are_spans {
            true => Self::Whole,
            false => Self::Part,
        }
    }
}

/// Opens the trace of the command line. It is never dropped: the end of the process frees its memory faster.
pub(super) fn open(
    args: &SelectionArgs,
    extent: Extent,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<ManuallyDrop<TraceSession>> {
    let context = args.with.context();
    // What begins before a part of the time is in the rest.
    let extent = match context.is_empty() {
        true => extent,
        false => Extent::Whole,
    };
    let mut session = open_files(&args.input, &args.which, args.inline, extent, buildid_dir)?;
    context.add_to(&mut session)?;
    Ok(ManuallyDrop::new(session))
}

/// Opens a trace: a file, or a directory or a glob of files.
pub(super) fn open_file(
    path: &Path,
    args: &WhichArgs,
    inline: InlineArgs,
    extent: Extent,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<TraceSession> {
    open_files(&[path.to_owned()], args, inline, extent, buildid_dir)
}

/// Opens a trace that may be made of several files.
fn open_files(
    paths: &[PathBuf],
    args: &WhichArgs,
    inline: InlineArgs,
    extent: Extent,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<TraceSession> {
    let mut sources = sources(args, inline, buildid_dir)?;
    if extent == Extent::Whole {
        sources.time = None;
    }
    let is_stdin = |path: &PathBuf| path.as_os_str() == STDIN;
    Usage::ensure(
        paths.len() < 2 || !paths.iter().any(is_stdin),
        "standard input (-) cannot be put together with files: store it in a file",
    )?;
    let path = TraceSession::name_of(paths);
    let opened = if is_stdin(&path) {
        TraceSession::from_file(stored_stdin()?, &path, &sources)
    } else {
        TraceSession::open_files(paths, &sources)
    };
    let session = opened.map_err(|error| named(error, &path))?;
    let has_stacks = || session.events().events.iter().any(Event::has_chain);
    let refused = format!(
        "--no-inline has no effect on {}, which has no stacks: record -g records them",
        shown(&path)
    );
    Usage::ensure(!inline.no_inline || has_stacks(), refused)?;
    Ok(session)
}

/// Whether a key is of functions that may be inlined.
pub(super) fn has_functions(key: &str) -> bool {
    let key = key.strip_suffix(":native").unwrap_or(key);
    ["stack", "caller", "sym", "symbol"].contains(&key)
}

/// Refuses arguments of other events that would not be shown: `texts` name arguments, and `what` is the output.
pub(super) fn refuse_unused_with<'t>(
    with: &WithArgs,
    texts: impl Iterator<Item = &'t str> + Clone,
    what: &str,
) -> Result<(), Usage> {
    match with.unused(texts) {
        Some(option) => Err(Usage(format!(
            "{option} has no effect on {what} without one of its arguments: name one of those that script {option} prints"
        ))),
        None => Ok(()),
    }
}

/// Adds the trace's path to an error that is about the trace and does not name it.
pub(super) fn named(error: ReportError, path: &Path) -> anyhow::Error {
    let names_file = matches!(&error, ReportError::Read(ReadError::Open { .. }));
    let is_about_file = matches!(error, ReportError::Read(_));
    let error = anyhow::Error::from(error);
    if names_file || !is_about_file {
        return error;
    }
    error.context(shown(path).to_string())
}

/// The options that name the same trace in another command line, each after a blank; none for the default one.
pub(super) fn trace_options(args: &SelectionArgs) -> String {
    options_of(&args.input, &args.which.schema)
}

fn options_of(input: &[PathBuf], schemas: &[PathBuf]) -> String {
    let is_default = matches!(input, [only] if only.as_os_str() == DEFAULT_TRACE);
    let input = match is_default {
        true => &[],
        false => input,
    };
    let input = input.iter().map(|path| match path.as_os_str() == STDIN {
        true => format!(" -i {STDIN}"),
        false => format!(" -i {}", shell::path(path)),
    });
    let schemas = schemas
        .iter()
        .map(|path| format!(" --schema {}", shell::path(path)));
    input.chain(schemas).collect()
}

/// Whether the trace comes from standard input.
pub(super) fn is_stdin(args: &SelectionArgs) -> bool {
    matches!(&*args.input, [only] if only.as_os_str() == STDIN)
}

/// Refuses an output that is a file of the trace, which the complete output would replace.
pub(super) fn refuse_input(session: &TraceSession, output: &Path) -> anyhow::Result<()> {
    let found = match fs::metadata(output) {
        Ok(found) if found.is_file() => found,
        _ => return Ok(()),
    };
    let is_output = |input: &Metadata| (input.dev(), input.ino()) == (found.dev(), found.ino());
    let is_path_of_output = |path: &Path| fs::metadata(path).is_ok_and(|input| is_output(&input));
    let is_input = match session.path().as_os_str() == STDIN {
        true => stdin_file()?.is_some_and(|file| file.metadata().is_ok_and(|it| is_output(&it))),
        false => is_path_of_output(session.path()),
    };
    let mut files = session.files().iter();
    Usage::ensure(
        !is_input && !files.any(|file| is_path_of_output(&file.path)),
        format!(
            "-o {}: is a file of the trace that is read: expected another name",
            shown(output)
        ),
    )?;
    Ok(())
}

/// Standard input, if it is a regular file; `None` for a pipe.
///
/// # Errors
/// The error of `dup` or `fstat`, if standard input is closed.
pub(super) fn stdin_file() -> io::Result<Option<File>> {
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let is_file = stdin.metadata()?.is_file();
    Ok(is_file.then_some(stdin))
}

/// Standard input as a regular file. The data of a pipe is stored in an unnamed temporary file.
fn stored_stdin() -> anyhow::Result<File> {
    if let Some(file) = stdin_file()? {
        return Ok(file);
    }
    let mut file =
        tempfile::tempfile().context("cannot store standard input in a temporary file")?;
    io::copy(&mut io::stdin().lock(), &mut file)
        .context("cannot store standard input in a temporary file")?;
    Ok(file)
}

/// Converts the options that select events.
pub(super) fn selection(args: &WhichArgs) -> EventSelection {
    EventSelection {
        events: args.event.concat(),
        time: args.time.clone(),
        comms: args.comm.clone(),
        pids: args.pid.clone(),
        tids: args.tid.clone(),
        cpus: args.cpu.clone(),
        filter: args.filter.clone(),
    }
}

same!(pub(super) fn format(OutputFormat) -> Format: Text Json Csv CsvRaw);

/// Standard output, unbuffered, for large writes from another thread.
///
/// # Errors
/// The error of `dup`, if standard output is closed.
pub(super) fn output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// The same, with a pager in front of it if it is a terminal, unless that is refused.
///
/// # Errors
/// As [`output`].
pub(super) fn paged_output(pager: PagerArgs) -> io::Result<Paged> {
    Ok(Paged::new(!pager.no_pager, output()?))
}

/// Prints notices about a trace on stderr.
pub(super) fn print_notices(path: &Path, notices: &Notices) {
    for sentence in notices.sentences(HINTS) {
        terminal::warn(path, &sentence);
    }
}

/// Prints notices about a trace on stderr, and whether its end is not whole.
pub(super) fn print_faults(session: &TraceSession, notices: &Notices) {
    print_notices(session.path(), notices);
    if let Some(tail) = session.uncommitted() {
        terminal::warn(session.path(), &tail);
    }
}

/// Prints on stderr how many events were lost, if any were, or that this is not known.
pub(super) fn print_losses(path: &Path, lost: Option<u64>) {
    let message = match lost {
        None => "the number of lost events is not known: the recorder was killed".to_owned(),
        Some(0) => return,
        Some(lost) => format!("{lost} events were lost while recording; see usdtrec report"),
    };
    terminal::warn(path, &message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_command_line_names_all_files() {
        let options = |input: &[&str], schemas: &[&str]| {
            let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
            options_of(&paths(input), &paths(schemas))
        };
        assert_eq!(options(&["usdtrec.data"], &[]), "");
        assert_eq!(
            options(&["a b.data*", "c.data"], &["x.toml", "my y.d"]),
            " -i 'a b.data*' -i c.data --schema x.toml --schema 'my y.d'"
        );
        assert_eq!(options(&["-"], &[]), " -i -");
    }
}
