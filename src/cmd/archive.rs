//! `usdtrec archive`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use usdtrec_buildid_cache::Cache;
use usdtrec_format::counted;
use usdtrec_format::escape::shown;
use usdtrec_format::scaled::size;
use usdtrec_report::{CodeFile, Sources, TraceSession};

use super::pack::{self, Packed};
use super::selection::{cache_dir, fetch, named, refuse_input};
use super::unpack::{self, Unpacked};
use crate::cli::ArchiveArgs;
use crate::terminal::say;
use crate::{progress, shell};

/// Runs the verb.
pub(crate) fn run(args: &ArchiveArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    if let Some(tarball) = &args.unpack {
        return unpack(tarball, buildid_dir);
    }
    if args.debug {
        pack(args, buildid_dir)?;
    } else {
        store_names(args, buildid_dir)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if no file was added although the tarball has some.
fn unpack(tarball: &Path, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let cache = Cache::open(buildid_dir)?;
    let Unpacked { added, left_out } =
        unpack::run(&cache, tarball).with_context(|| shown(tarball).to_string())?;
    for (path, why) in &left_out {
        say(format_args!("usdtrec: left out: {}: {why}", shown(path)));
    }
    say(format_args!(
        "usdtrec: {} in {}",
        counted(added, "file"),
        shown(cache.dir())
    ));
    let is_useless = added == 0 && !left_out.is_empty();
    Ok(if is_useless {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn pack(args: &ArchiveArgs, buildid_dir: Option<&Path>) -> anyhow::Result<()> {
    let buildid_dir = cache_dir(buildid_dir);
    let session = open(&args.input, buildid_dir.clone())?;
    let tarball = args.output.clone().unwrap_or_else(|| {
        let mut name = args.input.clone().into_os_string();
        name.push(".tar.bz2");
        PathBuf::from(name)
    });
    refuse_input(&session, &tarball)?;
    let files = progress::shown(&session, || CodeFile::all(&session, buildid_dir.as_deref()))?;
    let written = pack::write(&files, &tarball);
    let Packed { count, bytes } =
        written.with_context(|| format!("cannot write {}", shown(&tarball)))?;
    for file in files.iter().filter(|file| file.program.is_none()) {
        let why = match file.build_id {
            None => "the trace has no build-id of it".to_owned(),
            Some(id) => {
                format!("no file of build-id {id} is at this path or in the build-id cache")
            }
        };
        say(format_args!(
            "usdtrec: left out: {}: {why}",
            shown(&file.path)
        ));
    }
    say(format_args!(
        "usdtrec: wrote {}, {} {}; on the other host: usdtrec archive --unpack {}",
        counted(count, "file"),
        size(bytes as f64),
        shown(&tarball),
        shell::path(Path::new(tarball.file_name().unwrap_or_default())),
    ));
    Ok(())
}

fn open(path: &Path, buildid_dir: Option<PathBuf>) -> anyhow::Result<TraceSession> {
    let sources = Sources {
        buildid_dir,
        fetch: fetch(),
        ..Sources::default()
    };
    TraceSession::open(path, &sources).map_err(|error| named(error, path))
}

/// Stores the names of functions in stacks in a trace that has none.
#[cfg(feature = "record")]
fn store_names(args: &ArchiveArgs, buildid_dir: Option<&Path>) -> anyhow::Result<()> {
    use usdtrec_format::trace::append_code_names;
    use usdtrec_report::StackNames;

    use super::record::RunningNames;
    use crate::output;

    let path = &args.input;
    let session = open(path, cache_dir(buildid_dir))?;
    anyhow::ensure!(
        session.files().iter().next().is_none(),
        "{}: names are stored in one file: name each of them by -i FILE",
        shown(path)
    );
    if session.trace().code_names().is_some() {
        say(format_args!(
            "usdtrec: {}: names of functions in stacks are stored already; missing ones are not added",
            shown(path)
        ));
        return Ok(());
    }
    let file = output::existing(path);
    let file = file.with_context(|| format!("cannot write {}", shown(path)))?;
    // A process that began after the trace was written has the pid of a recorded one by chance.
    let written = file.metadata().and_then(|found| found.modified());
    let written = written.with_context(|| format!("cannot read {}", shown(path)))?;
    let made = RunningNames(written);
    let found = progress::shown(&session, || {
        StackNames::find(&session, &made, true, || false)
    })?;
    let count = found.names.functions.len();
    append_code_names(&file, &found.names).with_context(|| shown(path).to_string())?;
    say(format_args!(
        "usdtrec: {}: stored the names of {} in the trace",
        shown(path),
        counted(count, "function"),
    ));
    Ok(())
}

/// Perf maps are opened by the recorder's code.
#[cfg(not(feature = "record"))]
fn store_names(_args: &ArchiveArgs, _buildid_dir: Option<&Path>) -> anyhow::Result<()> {
    anyhow::bail!(
        "expected --debug or --unpack: this usdtrec is built without the recorder, which finds names"
    )
}
