//! `usdtrec export --drop` and `--hash`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use usdtrec_format::escape::shown;
use usdtrec_report::export::Redaction;

use crate::cli::ExportArgs;
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

/// Refuses to leave out the id of traces. A hash can be one.
pub(super) fn check(args: &ExportArgs) -> Result<(), Usage> {
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
