//! `usdtrec export --drop` and `--hash`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use usdtrec_format::escape::shown;
use usdtrec_report::export::Redaction;

use crate::cli::{ExportArgs, ExportTo};
use crate::terminal::Usage;

/// Minimum bytes of a key.
const MIN_KEY: usize = 16;
/// Maximum bytes of a key.
const MAX_KEY: u64 = 4096;
/// Bytes of a random key.
const RANDOM_KEY: u64 = 32;

/// What is left out and hashed.
pub(super) fn redaction(args: &ExportArgs) -> anyhow::Result<Redaction> {
    Ok(Redaction {
        drop: args.drop.clone(),
        hash: args.hash.clone(),
        key: key(args)?,
    })
}

/// Refuses to redact what another option needs, and formats that have no arguments or all of them.
pub(super) fn check(args: &ExportArgs) -> Result<(), Usage> {
    let redacts = [
        ("--drop", "leaves out", &args.drop),
        ("--hash", "replaces", &args.hash),
    ];
    for (option, does, names) in redacts {
        if names.is_empty() {
            continue;
        }
        if let Some((needs, name)) = needed(args, option).find(|(_, name)| names.contains(name)) {
            return Err(Usage(format!(
                "{needs} {name} needs the values of {name}, which {option} {does}"
            )));
        }
        let why = match args.to {
            ExportTo::Folded => {
                "folded, which has functions and no arguments: functions of scripts keep their names"
            }
            ExportTo::Pprof => {
                "pprof, which has functions and no arguments: functions of scripts keep their names"
            }
            ExportTo::Perf => {
                "perf, which copies the records of the trace; all formats with arguments but this one can leave values out"
            }
            _ => continue,
        };
        return Err(Usage(format!("{option} has no effect with --to {why}")));
    }
    Ok(())
}

/// Options that need values, with the names of the arguments. A hash can be the id of a trace.
fn needed<'a>(
    args: &'a ExportArgs,
    option: &str,
) -> impl Iterator<Item = (&'static str, &'a String)> {
    let trace_id = args.trace_id.iter().filter(move |_| option == "--drop");
    let weights = args.value.iter().map(|name| ("--value", name));
    let trace_id = trace_id.map(|name| ("--trace-id", name));
    trace_id.chain(weights)
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
