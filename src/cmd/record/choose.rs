//! Where `record` looks for the probes that are asked for.

use std::path::Path;

use usdtrec_buildid_cache::{Cache, Indexed, elf, process, resolve};
use usdtrec_format::Binary;
use usdtrec_record::{Request, Selection, Wanted, select};

use crate::cli::CaptureArgs;
use crate::schemas;
use crate::terminal::say;
use crate::units::parse_size;

/// Looks for the probes in the cache and in the binaries of the traced processes and of the command.
pub(super) fn choose(
    args: &CaptureArgs,
    events: &[Wanted],
    buildid_dir: Option<&Path>,
) -> anyhow::Result<Selection> {
    let cache = Cache::open(buildid_dir);
    let mut indexed = Vec::new();
    if events.iter().any(|wanted| wanted.pattern.path().is_none()) {
        indexed = cache
            .as_ref()
            .ok()
            .map(Cache::binaries)
            .transpose()?
            .unwrap_or_default();
        indexed.extend(traced(args).into_iter().map(Indexed::current));
    }
    let stack = parse_size("--stack-size", &args.stack_size, 1)?;
    let stack = u32::try_from(stack).unwrap_or(u32::MAX);
    let selection = select(Request {
        events,
        indexed,
        force: args.force,
        stack,
        schemas: &schemas::in_force(&args.schema)?,
    })?;
    if let Ok(cache) = cache {
        index(&cache, &selection, args.verbose);
    }
    Ok(selection)
}

/// The binaries of the traced processes and of the command, indexed or not. One that cannot be read has no probes.
fn traced(args: &CaptureArgs) -> Vec<Binary> {
    let command = args
        .command
        .first()
        .and_then(|program| resolve(Path::new(program)).ok());
    let mut binaries: Vec<Binary> = command
        .and_then(|path| elf::read_binary(&path).ok())
        .into_iter()
        .collect();
    for &pid in args.pid.iter().chain(&args.tid) {
        let mapped = process::binaries(pid)
            .map(|files| files.mapped)
            .unwrap_or_default();
        // The path by which the kernel finds the file from here, also if it is a container's or was deleted.
        binaries.extend(mapped.into_iter().map(|mapped| Binary {
            path: mapped.access,
            ..mapped.scan.binary
        }));
    }
    binaries
}

/// Keeps files named by path in the cache, so that their traces can be read elsewhere. Recording does not depend on it.
fn index(cache: &Cache, selection: &Selection, verbose: bool) {
    for path in &selection.named {
        match cache.add(path) {
            Err(error) if verbose => say(format_args!("usdtrec: not indexed: {error:#}")),
            _ => {}
        }
    }
}
