//! `usdtrec buildid-cache --missing TRACE`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use usdtrec_buildid_cache::Cache;
use usdtrec_format::escape::shown;
use usdtrec_format::perf::{Mmap, MmapFile, RecordType, Records, SampleType};
use usdtrec_format::trace::{BlockReader, Trace};
use usdtrec_format::{BuildId, Definitions, FileDefinition};

use crate::terminal;

/// Lists the files that have hits in a trace and are not in the cache, by build-id, as perf does. A perf trace without a build-id feature
/// does not say which files have hits: all files that its processes mapped are listed.
pub(super) fn run(cache: &Cache, path: &Path) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(path).with_context(|| shown(path).to_string())?;
    for damage in trace.damage() {
        terminal::warn(path, &damage);
    }
    let mut files = BTreeMap::new();
    if let Some(definitions) = &trace.info().definitions {
        for file in hit(&trace, path, definitions) {
            match file.build_id {
                Some(id) => drop(files.insert(id, file.path.clone())),
                None => terminal::warn(
                    &file.path,
                    &"has no build-id and cannot be stored in the cache",
                ),
            }
        }
    } else {
        let entries = trace.info().build_ids.iter();
        files.extend(entries.map(|entry| (entry.build_id, entry.path.clone())));
        if files.is_empty() {
            add_mapped(&trace, path, &mut files);
        }
        if files.is_empty() {
            terminal::warn(path, &"the trace has no build-ids");
        }
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

/// The files that have samples. Reading stops as soon as each file has one.
fn hit<'t>(
    trace: &Trace,
    path: &Path,
    definitions: &'t Definitions,
) -> impl Iterator<Item = &'t FileDefinition> {
    let probes = definitions.by_id();
    let mut unseen: BTreeSet<usize> = definitions.probes.iter().map(|probe| probe.file).collect();
    let mut hit = BTreeSet::new();
    let mut reader = BlockReader::new();
    for block in trace.blocks().iter().filter(|block| !block.metadata) {
        if unseen.is_empty() {
            break;
        }
        let records = match reader.read(trace, block) {
            Ok(records) => Records::new(records),
            Err(damage) => {
                terminal::warn(path, &damage);
                continue;
            }
        };
        for sample in records.filter(|record| record.kind == RecordType::SAMPLE) {
            // `PERF_SAMPLE_IDENTIFIER` puts the id first.
            let id = sample.body.first_chunk().map(|id| u64::from_le_bytes(*id));
            let probe = id.and_then(|id| definitions.probes.get(*probes.get(&id)?));
            if let Some(probe) = probe
                && unseen.remove(&probe.file)
            {
                hit.insert(probe.file);
            }
        }
    }
    hit.into_iter().filter_map(|at| definitions.files.get(at))
}

/// Adds the files of `PERF_RECORD_MMAP2` records that carry a build-id.
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
