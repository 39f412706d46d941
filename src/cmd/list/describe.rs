//! Descriptions of the listed probes: names and types of their arguments.

#[cfg(feature = "record")]
use std::collections::BTreeMap;
#[cfg(feature = "record")]
use std::path::Path;
#[cfg(feature = "record")]
use std::sync::Arc;

#[cfg(feature = "record")]
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::schema::{Description, Schemas};
#[cfg(feature = "record")]
use usdtrec_format::{Binary, Probe};

use super::found::Found;
use super::listing::Files;

/// Describes probes by their schemas, or by debugging information if there is no schema.
pub(super) fn describe(found: &[Found<'_>], open: &Files, schemas: &Schemas) -> Vec<Description> {
    let described = found
        .iter()
        .map(|(indexed, probe)| schemas.describe(probe, indexed.binary.arch));
    let mut described: Vec<Description> = described.collect();
    add_debug_info(found, open, &mut described);
    described
}

/// A probe without a schema.
#[cfg(feature = "record")]
type Unknown<'a> = (&'a Probe, &'a mut Description);

/// Fills in the arguments of probes without a schema from debugging information, which is read once per file.
#[cfg(feature = "record")]
fn add_debug_info(found: &[Found<'_>], open: &Files, described: &mut [Description]) {
    use usdtrec_record::{PlannedSite, Program, debug_info};
    let mut files: BTreeMap<&Path, (&Binary, Vec<Unknown<'_>>)> = BTreeMap::new();
    for ((indexed, probe), description) in found.iter().zip(described) {
        if description.choice.schema.is_none() && indexed.is_current() {
            let binary = &indexed.binary;
            let (_, unknown) = files
                .entry(&binary.path)
                .or_insert_with(|| (binary, Vec::new()));
            unknown.push((probe, description));
        }
    }
    for (path, (binary, unknown)) in files {
        let file = match open.get(path) {
            Some(file) => Arc::clone(file),
            // Skipped if the file is gone or is a different one now.
            None => match ObjectFile::open(path) {
                Ok(file) if file.build_id() == binary.build_id => Arc::new(file),
                _ => continue,
            },
        };
        let arch = file.arch();
        let sites = |probe: &Probe| -> Vec<PlannedSite> {
            let sites = probe.sites.iter().cloned();
            sites.map(|site| PlannedSite::new(site, arch)).collect()
        };
        let sites: Vec<_> = unknown.iter().map(|(probe, _)| sites(probe)).collect();
        let named = debug_info::arguments(&Program::new(file), sites.iter().map(Vec::as_slice));
        for ((_, description), arguments) in unknown.into_iter().zip(named) {
            description.arguments = arguments;
        }
    }
}

/// Does nothing: this build cannot read debugging information.
#[cfg(not(feature = "record"))]
const fn add_debug_info(_found: &[Found<'_>], _open: &Files, _described: &mut [Description]) {}
