//! `usdtrec buildid-cache`.

mod cache_of_sudo_user;
mod missing;
mod scan;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use usdtrec_buildid_cache::{Cache, CacheError};
use usdtrec_format::escape::{escape_bytes, shown};

use self::scan::{print, print_added};
use crate::advice::explained;
use crate::cli::BuildidCacheArgs;
use crate::terminal::say;

/// Runs the verb.
pub(crate) fn run(args: &BuildidCacheArgs, dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let cache = open(dir)?;
    if args.purge_all {
        let count = cache.purge_all()?;
        print(format_args!(
            "{}: {count} {} removed",
            shown(cache.dir()),
            if count == 1 { "entry" } else { "entries" }
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.list {
        return list(&cache);
    }
    if let Some(trace) = &args.missing {
        return missing::run(&cache, trace);
    }
    if !args.scan.is_empty() {
        scan::run(&cache, &args.scan, args.verbose)?;
        cache_of_sudo_user::repeat(&cache);
        return Ok(ExitCode::SUCCESS);
    }
    let added = each(&args.add, |file| print_added(&cache.add(file)?))?;
    let updated = each(&args.update, |file| print_added(&cache.update(file)?))?;
    if !args.add.is_empty() || !args.update.is_empty() {
        cache_of_sudo_user::repeat(&cache);
    }
    let removed = each(&args.remove, |file| {
        let build_id = cache.remove(file)?;
        print(format_args!(
            "{}: removed (build-id {build_id})",
            shown(file)
        ))
    })?;
    let purged = each(&args.purge, |file| {
        for build_id in cache.purge(file)? {
            print(format_args!(
                "{}: removed (build-id {build_id})",
                shown(file)
            ))?;
        }
        Ok(())
    })?;
    Ok(if added && updated && removed && purged {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Opens the cache. Prints a message with the lock's holder if its lock is not free within a second.
pub(super) fn open(dir: Option<&Path>) -> Result<Cache, CacheError> {
    let waiting = |dir: &Path, holder: Option<u32>| {
        let holder = holder.map_or_else(String::new, |pid| {
            let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
            let name = escape_bytes(name.trim_ascii_end()).into_owned();
            format!(", held by process {pid} ({name})")
        });
        say(format_args!(
            "usdtrec: waiting for the lock of the cache {}{holder}",
            shown(dir)
        ));
    };
    Ok(Cache::open(dir)?.on_lock_wait(waiting))
}

/// Calls `act` for each file. An error of the cache is printed and does not stop the others. Returns whether all calls succeeded.
fn each(
    files: &[PathBuf],
    mut act: impl FnMut(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    let mut all_succeeded = true;
    for file in files {
        match act(file) {
            Ok(()) => {}
            Err(error) if error.is::<CacheError>() => {
                say(format_args!("usdtrec: {}", explained(error.as_ref())));
                all_succeeded = false;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all_succeeded)
}

/// Prints build-id and path of each entry whose file is unchanged, in perf's format.
fn list(cache: &Cache) -> anyhow::Result<ExitCode> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for entry in cache.entries()?.iter().filter(|entry| entry.is_valid()) {
        writeln!(out, "{} {}", entry.build_id, shown(&entry.path))?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
