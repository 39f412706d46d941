//! `usdtrec buildid-cache --missing TRACE`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use usdtrec_buildid_cache::Cache;
use usdtrec_format::BuildId;
use usdtrec_format::perf::{Mmap, MmapFile, Records, SampleType};
use usdtrec_format::trace::{BlockReader, Trace};

use super::shown;
use crate::terminal;

/// Lists the files of a trace, by build-id, that the cache does not hold: those that carry its probes, and
/// those that its processes mapped.
pub(super) fn run(cache: &Cache, path: &Path) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(path).with_context(|| shown(path))?;
    for damage in trace.damage() {
        terminal::warn(path, &damage);
    }
    let mut files: BTreeMap<_, _> = trace.info().build_ids.iter().cloned().collect();
    if let Some(definitions) = &trace.info().definitions {
        for file in &definitions.files {
            match file.build_id {
                Some(id) => drop(files.insert(id, file.path.clone())),
                None => terminal::warn(&file.path, &"no build-id, so the cache cannot hold it"),
            }
        }
    }
    add_mapped(&trace, path, &mut files);
    if files.is_empty() {
        terminal::warn(path, &"holds no build-ids");
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (id, path) in files {
        if cache.entry(id).is_none() {
            writeln!(out, "{id} {}", shown(&path))?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Adds the files that processes mapped, where the records say their build-ids.
fn add_mapped(trace: &Trace, path: &Path, files: &mut BTreeMap<BuildId, PathBuf>) {
    use std::os::unix::ffi::OsStrExt;
    let id_type = trace
        .info()
        .events
        .first()
        .map_or(SampleType::default(), |event| event.attr.id_type());
    let mut reader = BlockReader::new();
    for block in trace.blocks().iter().filter(|block| block.metadata) {
        match reader.read(trace, block) {
            Ok(records) => {
                for map in Records::new(records).filter_map(|record| Mmap::parse(&record, id_type))
                {
                    if let MmapFile::BuildId(id) = map.file {
                        let path = std::ffi::OsStr::from_bytes(map.path);
                        files.entry(id).or_insert_with(|| path.into());
                    }
                }
            }
            Err(damage) => terminal::warn(path, &damage),
        }
    }
}
